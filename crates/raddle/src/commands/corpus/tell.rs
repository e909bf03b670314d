//! What users see of campaigns: for people, for programs, and as a log that `raddle report` draws.

use std::path::PathBuf;

use clap::Args;
use raddle_report::campaign_log::{self, Begin, End, FindingLine, Generation, Line};
use raddle_report::words::counted;
use serde_json::{Value, json};

use super::Named;
use super::known::Baseline;
use super::metrics;
use super::place::Place;
use super::state::{KnownFinding, Point, State, SubjectState};
use crate::exit::Code;
use crate::keep::shell_word;
use crate::{keep, message};

/// Show how far a campaign is, and what it has found.
#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    named: Named,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write how it went to this file, too, as `raddle report FILE` draws it.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Show {
    pub(super) fn run(&self) -> anyhow::Result<Code> {
        let place = self.named.place()?;
        let shown = Shown {
            state: place.read()?,
            known: Baseline::of(&place)?,
            is_busy: place.is_busy()?,
            place,
        };
        if let Some(path) = &self.log {
            keep::write(path, shown.log()?.as_bytes())?;
        }
        if self.json {
            let text = serde_json::to_string_pretty(&shown.json())?;
            message::result(&(text + "\n"))?;
        } else {
            message::result(&shown.text())?;
        }
        Ok(Code::Clean)
    }
}

/// Print the figures of a campaign in the text form of OpenMetrics.
#[derive(Debug, Args)]
pub(super) struct Metrics {
    #[command(flatten)]
    named: Named,
}

impl Metrics {
    pub(super) fn run(&self) -> anyhow::Result<Code> {
        let state = self.named.place()?.read()?;
        message::result(&metrics::text(&state))?;
        Ok(Code::Clean)
    }
}

/// All campaigns, a line for each.
pub(super) fn list(states: &[(&Place, State)], is_json: bool) -> anyhow::Result<String> {
    let mut lines = String::new();
    let mut all = Vec::new();
    for (place, state) in states {
        let news = Baseline::of(place)?.news(state);
        let what = doing(place.is_busy()?, place.is_paused());
        lines.push_str(&format!(
            "{}: {what}, {}, {}, {news} findings that are not known\n",
            state.name,
            counted(length(state.subjects.len()), "subject"),
            counted(state.rounds, "round"),
        ));
        all.push(json!({
            "name": state.name,
            "state": what,
            "subjects": state.subjects.len(),
            "rounds": state.rounds,
            "findings_not_known": news,
        }));
    }
    Ok(match is_json {
        true => serde_json::to_string_pretty(&json!({ "schema": 1, "campaigns": all }))? + "\n",
        false if states.is_empty() => "there are no campaigns\n".to_owned(),
        false => lines,
    })
}

fn doing(is_busy: bool, is_paused: bool) -> &'static str {
    match (is_busy, is_paused) {
        (true, true) => "ending",
        (true, false) => "running",
        (false, true) => "paused",
        (false, false) => "not running",
    }
}

/// Seconds.
fn tenths(milliseconds: u64) -> String {
    format!("{}.{}", milliseconds / 1000, milliseconds % 1000 / 100)
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A campaign as it is shown.
struct Shown {
    place: Place,
    state: State,
    known: Baseline,
    is_busy: bool,
}

impl Shown {
    fn text(&self) -> String {
        let state = &self.state;
        let mut text = format!(
            "campaign {}: {}, {}\n\n",
            state.name,
            doing(self.is_busy, self.place.is_paused()),
            counted(state.rounds, "round"),
        );
        let width = state.subjects.iter().map(|one| one.name.len()).max();
        let width = width.unwrap_or(0).max("subject".len());
        text.push_str(&format!(
            "{:width$}  {:>7}  {:>10}  {:>8}  {:>7}  {:>6}  {:>8}  new lately\n",
            "subject", "rounds", "schedules", "CPU s", "classes", "points", "findings"
        ));
        for subject in &state.subjects {
            text.push_str(&format!(
                "{:width$}  {:>7}  {:>10}  {:>8}  {:>7}  {:>6}  {:>8}  {}\n",
                subject.name,
                subject.rounds,
                subject.schedules,
                tenths(subject.cpu_milliseconds),
                subject.classes,
                subject.points,
                subject.findings.len(),
                self.lately(subject),
            ));
        }
        for subject in &state.subjects {
            for finding in &subject.findings {
                text.push_str(&format!(
                    "\n{}  {}: {}\n",
                    finding.id, subject.name, finding.title
                ));
                if let Some(reason) = self.known.reason(&finding.fingerprint) {
                    text.push_str(&format!("  known: {reason}\n"));
                }
                if let Some(command) = self.command(finding) {
                    text.push_str(&format!("  replay: {command}\n"));
                }
            }
        }
        text
    }

    /// What keeps a subject from being explored, or what its last rounds had for what they cost.
    fn lately(&self, subject: &SubjectState) -> String {
        match &subject.trouble {
            Some(trouble) => format!("cannot be explored: {trouble}"),
            None => {
                let lately = subject.energy.per_thousand();
                format!("{}.{:03}", lately / 1000, lately % 1000)
            }
        }
    }

    fn command(&self, finding: &KnownFinding) -> Option<String> {
        let file = self.place.folder().join(finding.recording.as_ref()?);
        let is_kernel = file.extension().is_some_and(|ending| ending == "kraddle");
        let command = if is_kernel {
            "raddle kernel replay"
        } else {
            "raddle replay"
        };
        Some(format!("{command} {}", shell_word(&file)))
    }

    fn json(&self) -> Value {
        let subject = |subject: &SubjectState| {
            let finding = |finding: &KnownFinding| {
                json!({
                    "id": finding.id,
                    "fingerprint": finding.fingerprint,
                    "kind": finding.kind,
                    "title": finding.title,
                    "first_round": finding.first_round,
                    "rounds_seen": finding.seen,
                    "replay": self.command(finding),
                    "known": self.known.reason(&finding.fingerprint),
                })
            };
            json!({
                "name": subject.name,
                "rounds": subject.rounds,
                "schedules": subject.schedules,
                "failing": subject.failing,
                "instructions": subject.steps,
                "cpu_milliseconds": subject.cpu_milliseconds,
                "classes": subject.classes,
                "points": subject.points,
                "points_interrupted": subject.interrupted,
                "new_lately_thousandths": subject.energy.per_thousand(),
                "trouble": subject.trouble,
                "findings": subject.findings.iter().map(finding).collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": 1,
            "name": self.state.name,
            "state": doing(self.is_busy, self.place.is_paused()),
            "rounds": self.state.rounds,
            "subjects": self.state.subjects.iter().map(subject).collect::<Vec<_>>(),
        })
    }

    /// The log of a campaign, each subject as if it had been explored in one go.
    fn log(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        for subject in &self.state.subjects {
            let begin = Line::Begin(Begin {
                version: campaign_log::VERSION,
                name: subject.name.clone(),
                seed: self.state.seed,
            });
            let history = subject
                .history
                .iter()
                .map(|at| Line::Generation(generation(*at)));
            let end = Line::End(self.end(subject));
            for line in [begin].into_iter().chain(history).chain([end]) {
                text.push_str(&serde_json::to_string(&line)?);
                text.push('\n');
            }
        }
        Ok(text)
    }

    fn end(&self, subject: &SubjectState) -> End {
        let line = |finding: &KnownFinding| FindingLine {
            id: finding.id.clone(),
            kind: finding.kind.clone(),
            title: match self.known.reason(&finding.fingerprint) {
                Some(reason) => format!("{} (known: {reason})", finding.title),
                None => finding.title.clone(),
            },
            command: self.command(finding),
        };
        let trouble = subject.trouble.iter();
        End {
            milliseconds: subject.cpu_milliseconds,
            last: generation(subject.now()),
            failing: subject.failing,
            steps: subject.steps,
            findings: subject.findings.iter().map(line).collect(),
            not_explored: trouble
                .map(|trouble| format!("it cannot be explored: {trouble}"))
                .collect(),
            summary: format!(
                "{} of campaign {}",
                counted(subject.rounds, "round"),
                self.state.name
            ),
            ..End::default()
        }
    }
}

/// How far a subject was, against the time of processors that it took. Which schedules of different rounds are equal is
/// not known.
fn generation(at: Point) -> Generation {
    Generation {
        milliseconds: at.cpu_milliseconds,
        schedules: at.schedules,
        distinct: at.schedules,
        classes: at.classes,
        points: at.points,
        interrupted: at.interrupted,
        failures: at.findings,
    }
}
