//! One round after the other. After each of them the state is written whole; what was killed between two of them left
//! the state of the first.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use raddle_kernel::recording::KernelRecording;
use raddle_report::Finding;
use raddle_report::words::counted;
use raddle_stdx::regular_file;
use raddle_trace::{Enveloped, Recording};

use super::known::Baseline;
use super::place::Place;
use super::round::{Ended, Round, Told};
use super::state::{Cost, KnownFinding, State, SubjectState};
use super::{Named, energy, metrics};
use crate::exit::{Code, Failure};
use crate::hub::HubOptions;
use crate::interrupt::Interrupt;
use crate::keep::RECORDING_BYTES_MAX;
use crate::{message, units};

/// Begin a campaign, or go on with it, until Ctrl-C or `pause`.
#[derive(Debug, Args)]
pub(super) struct Resume {
    #[command(flatten)]
    named: Named,
    /// End when the campaign has had so many rounds in all.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// End after the round in which this time is up: seconds, or 90s, 8h.
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    time: Option<u64>,
    /// Threads of each round. Default: one per core.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    // Last: its heading would also hold what follows.
    #[command(flatten)]
    hub: HubOptions,
}

impl Resume {
    pub(super) fn run(self) -> Result<Code, Failure> {
        let place = self.named.place()?;
        let Some(_lock) = place.lock()? else {
            return Err(anyhow::anyhow!(
                "campaign {} is running already; `raddle campaign show {0}` tells how far it is",
                self.named.name
            )
            .into());
        };
        let interrupt = Interrupt::listen()?;
        let mut state = place.read()?;
        // A hub that is not there is no trouble of the subjects.
        drop(self.hub.connect()?);
        place.set_paused(false)?;
        for subject in &mut state.subjects {
            subject.trouble = None;
        }
        let mut runner = Runner {
            place: &place,
            state,
            more: self.more(),
        };
        runner.clear_up()?;
        let begun = Instant::now();
        let time = self.time.map_or(Duration::MAX, Duration::from_secs);
        let is_over = |state: &State| {
            let has_rounds = self.rounds.is_some_and(|rounds| state.rounds >= rounds);
            has_rounds || begun.elapsed() >= time || place.is_paused()
        };
        while !interrupt.is_requested() && !is_over(&runner.state) {
            let Some(number) = energy::next(&runner.state) else {
                return Err(runner.no_subject().into());
            };
            runner.round(number, &interrupt)?;
        }
        runner.clear_up()?;
        let news = Baseline::of(&place)?.news(&runner.state);
        message::note(&format!(
            "campaign {}: {} in all, {} that {} not known; raddle campaign show {0}",
            runner.state.name,
            counted(runner.state.rounds, "round"),
            counted(u64::try_from(news).unwrap_or(u64::MAX), "finding"),
            if news == 1 { "is" } else { "are" },
        ));
        Ok(match news {
            0 if interrupt.is_requested() => Code::Interrupted,
            0 => Code::Clean,
            _ => Code::Findings,
        })
    }

    /// Options of all rounds.
    fn more(&self) -> Vec<String> {
        let jobs = self.jobs.map(|jobs| format!("--jobs={jobs}"));
        jobs.into_iter().chain(self.hub.words()).collect()
    }
}

/// A campaign that goes on.
struct Runner<'a> {
    place: &'a Place,
    state: State,
    more: Vec<String>,
}

impl Runner<'_> {
    fn round(&mut self, number: usize, interrupt: &Interrupt) -> anyhow::Result<()> {
        let subject = &self.state.subjects[number];
        let workplace = self.place.workplace(&subject.name)?;
        let round = Round::next(&self.state, subject, workplace.clone(), self.more.clone());
        match round.run(interrupt)? {
            Ended::Interrupted => return Ok(()),
            Ended::Trouble(reason) => {
                message::warning(&format!(
                    "subject {} cannot be explored, and is left out until the campaign is resumed: {reason}",
                    subject.name
                ));
                self.state.subjects[number].trouble = Some(reason);
            }
            Ended::Told(told) => self.take(number, &told)?,
        }
        self.commit()?;
        // What is not needed any more only takes room.
        drop(std::fs::remove_dir_all(&workplace));
        Ok(())
    }

    /// Writes everything down.
    fn commit(&self) -> anyhow::Result<()> {
        self.place.write(&self.state)?;
        self.place.forget_classes(&self.state);
        metrics::write(self.place, &self.state)
    }

    /// Takes what a round told. Files are written before the state that names them.
    fn take(&mut self, number: usize, told: &Told) -> anyhow::Result<()> {
        let round = self.state.rounds + 1;
        let cost = self.state.cost;
        let subject = &mut self.state.subjects[number];
        let mut classes = self.place.classes(subject.class_file.as_deref())?;
        let before = classes.len();
        classes.extend(&told.classes);
        let new = u64::try_from(classes.len() - before).unwrap_or(u64::MAX);
        if new > 0 {
            let file = format!("{}.{}", subject.name, subject.rounds + 1);
            self.place.write_classes(&file, &classes)?;
            subject.class_file = Some(file);
        }
        subject.rounds += 1;
        for finding in &told.findings {
            take_finding(self.place, subject, finding)?;
        }
        let new_points = told.points.saturating_sub(subject.points);
        subject.classes += new;
        subject.points = subject.points.max(told.points);
        subject.interrupted = subject.interrupted.max(told.interrupted);
        subject.schedules += told.schedules;
        subject.failing += told.failing;
        subject.steps += told.steps;
        subject.cpu_milliseconds += told.cpu_milliseconds;
        let cost = match cost {
            Cost::Time => told.cpu_milliseconds,
            Cost::Instructions => told.steps / 1_000_000,
        };
        subject.energy.spend(new, new_points, cost);
        subject.note_history();
        subject.last_round = round;
        self.state.rounds = round;
        Ok(())
    }

    /// Takes the recordings out of rounds that were killed, and removes what else is left of them.
    fn clear_up(&mut self) -> anyhow::Result<()> {
        let mut has_found = false;
        for folder in self.place.unfinished()? {
            let name = folder.file_name().and_then(|name| name.to_str());
            let name = name.and_then(|name| name.rsplit_once('@'));
            let of = |subject: &&mut SubjectState| Some(subject.name.as_str()) == name.map(|n| n.0);
            if let Some(subject) = self.state.subjects.iter_mut().find(of) {
                has_found |= salvage(self.place, subject, &folder)?;
            }
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        if has_found {
            self.commit()?;
        }
        Ok(())
    }

    fn no_subject(&self) -> anyhow::Error {
        let troubles = self.state.subjects.iter().filter_map(|subject| {
            let trouble = subject.trouble.as_ref()?;
            Some(format!("{}: {trouble}", subject.name))
        });
        let troubles: Vec<String> = troubles.collect();
        anyhow::anyhow!(
            "none of the subjects can be explored; {}",
            troubles.join("; ")
        )
    }
}

/// Notes a finding; one that is known from an earlier round only counts once more.
fn take_finding(
    place: &Place,
    subject: &mut SubjectState,
    finding: &Finding,
) -> anyhow::Result<()> {
    let file = finding.recording.as_ref().map(|file| Path::new(&file.file));
    // A recording that went elsewhere, because the folder did not take it, stays there.
    let file = file.filter(|file| file.starts_with(place.folder()) && file.is_file());
    let recorded = file.and_then(recorded).map(|(fingerprint, _)| fingerprint);
    let is_it = |known: &KnownFinding| {
        let was_kept = known.seen == 0 && known.recorded.is_some() && known.recorded == recorded;
        known.fingerprint == finding.fingerprint || was_kept
    };
    let at = subject.findings.iter().position(is_it);
    if let Some(known) = at.map(|at| &mut subject.findings[at])
        && known.seen > 0
    {
        known.seen += 1;
        return Ok(());
    }
    let recording = file.map(|file| place.keep_recording(&subject.name, file));
    // What was kept of a round that was killed is replaced.
    let as_found = at.map(|at| subject.findings.remove(at));
    subject.findings.push(KnownFinding {
        fingerprint: finding.fingerprint.clone(),
        id: finding.short_id(),
        kind: finding.kind.clone(),
        title: finding.title.clone(),
        recording: match recording {
            Some(kept) => Some(kept?),
            None => as_found.and_then(|known| known.recording),
        },
        recorded,
        first_round: subject.rounds,
        seen: 1,
    });
    Ok(())
}

/// Keeps the recordings of a round that was killed before it could tell of them; says whether there were new ones.
fn salvage(place: &Place, subject: &mut SubjectState, folder: &Path) -> anyhow::Result<bool> {
    let entries = folder.read_dir();
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut has_found = false;
    for entry in entries {
        let file = entry?.path();
        let Some((fingerprint, title)) = recorded(&file) else {
            continue;
        };
        let mut known = subject.findings.iter();
        if known.any(|known| known.recorded.as_ref() == Some(&fingerprint)) {
            continue;
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let id = stem.rsplitn(3, '-').take(2).collect::<Vec<_>>();
        subject.findings.push(KnownFinding {
            recorded: Some(fingerprint.clone()),
            fingerprint,
            id: id.into_iter().rev().collect::<Vec<_>>().join("-"),
            kind: "as-found".to_owned(),
            title,
            recording: Some(place.keep_recording(&subject.name, &file)?),
            first_round: subject.rounds + 1,
            seen: 0,
        });
        has_found = true;
    }
    Ok(has_found)
}

/// Fingerprint and failure of a recording.
fn recorded(file: &Path) -> Option<(String, String)> {
    let bytes = regular_file::read(file, RECORDING_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    if let Ok(program) = Recording::parse(&text) {
        return Some((program.fingerprint, program.failure));
    }
    let kernel = KernelRecording::parse(&text).ok()?;
    Some((kernel.fingerprint, kernel.failure))
}
