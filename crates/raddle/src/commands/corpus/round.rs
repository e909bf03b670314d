//! One round: a command of raddle as a process of its own, so that nothing that a subject does to it ends the campaign.
//!
//! The process writes into a folder of its own: its log, its result, and recordings as soon as something fails.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use raddle_report::Finding;
use raddle_report::campaign_log;
use raddle_report::render::json;
use raddle_stdx::{Digest, Prng, regular_file};

use super::state::{State, SubjectState};
use crate::exit::Code;
use crate::interrupt::Interrupt;

/// Bytes of what a round tells at most.
const TOLD_BYTES_MAX: u64 = 1 << 30;
/// How often it is looked whether a round is over.
const LOOK: Duration = Duration::from_millis(20);
/// Clock ticks of a second in `/proc`: the same for all programs on x86-64.
const TICKS: u64 = 100;

/// Options of commands that campaigns set themselves.
pub(super) const OWN_OPTIONS: [&str; 17] = [
    "--seed",
    "--schedules",
    "--time",
    "--explain-time",
    "--until-found",
    "--json",
    "--log",
    "--output",
    "--hub",
    "--hub-credentials",
    "--hub-nkey",
    "--hub-ca",
    "--resume",
    "--report",
    "--format",
    "--round-of",
    "--exhaustive",
];

/// What a round is run with.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    seed: u64,
    schedules: u64,
    /// Seconds.
    time: u64,
    workplace: PathBuf,
    /// Options for hub and threads.
    more: Vec<String>,
}

impl Settings {
    /// Some, to see whether a command takes them.
    pub(super) fn example() -> Self {
        Self {
            seed: 0,
            schedules: 1,
            time: 1,
            workplace: PathBuf::from("/"),
            more: Vec::new(),
        }
    }
}

/// The words that name a command, and its options.
pub(super) fn split(run: &[String]) -> Option<(&[String], &[String])> {
    let count = match run {
        [command, ..] if command == "explore" => 1,
        [group, command, ..] if group == "kernel" && command == "explore" => 2,
        _ => return None,
    };
    Some(run.split_at(count))
}

/// The whole command, without the program's own name.
pub(super) fn words(command: &[String], options: &[String], settings: &Settings) -> Vec<String> {
    let file = |name: &str| settings.workplace.join(name).display().to_string();
    let own = [
        "--json".to_owned(),
        format!("--seed={}", settings.seed),
        format!("--schedules={}", settings.schedules),
        format!("--time={}", settings.time),
        format!("--log={}", file(LOG)),
        format!("--output={}", settings.workplace.display()),
        format!("--round-of={}", std::process::id()),
    ];
    let words = command.iter().cloned().chain(own);
    let words = words.chain(settings.more.iter().cloned());
    words.chain(options.iter().cloned()).collect()
}

const LOG: &str = "log.jsonl";
const RESULT: &str = "result.json";
const ERRORS: &str = "errors.txt";

/// What a round told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) schedules: u64,
    pub(super) failing: u64,
    pub(super) steps: u64,
    pub(super) cpu_milliseconds: u64,
    pub(super) classes: BTreeSet<u64>,
    pub(super) points: u64,
    pub(super) interrupted: u64,
    pub(super) findings: Vec<Finding>,
}

/// How a round ended.
#[derive(Debug)]
pub(super) enum Ended {
    Told(Box<Told>),
    /// Its command cannot do its work, for this reason.
    Trouble(String),
    /// The user wants an end.
    Interrupted,
}

/// A round that is to be run.
#[derive(Debug)]
pub(super) struct Round<'a> {
    subject: &'a SubjectState,
    settings: Settings,
}

impl<'a> Round<'a> {
    /// The next round of a subject. Its seed follows from the campaign, the subject's name and the number of the round.
    pub(super) fn next(
        state: &'a State,
        subject: &'a SubjectState,
        workplace: PathBuf,
        more: Vec<String>,
    ) -> Self {
        let of_subject = Prng::derive_seed(state.seed, Digest::of(subject.name.as_bytes()));
        Self {
            subject,
            settings: Settings {
                seed: Prng::derive_seed(of_subject, subject.rounds),
                schedules: state.round_schedules,
                time: state.round_time,
                workplace,
                more,
            },
        }
    }

    pub(super) fn run(&self, interrupt: &Interrupt) -> anyhow::Result<Ended> {
        let workplace = &self.settings.workplace;
        let (command, options) = split(&self.subject.command).context("it names no command")?;
        let file = |name: &str| {
            let path = workplace.join(name);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let before = cpu_of_children();
        let begun = Instant::now();
        let child = Command::new("/proc/self/exe")
            .args(words(command, options, &self.settings))
            .current_dir(&self.subject.folder)
            .stdin(Stdio::null())
            .stdout(file(RESULT)?)
            .stderr(file(ERRORS)?)
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                let folder = self.subject.folder.display();
                return Ok(Ended::Trouble(format!(
                    "cannot run its command in {folder}: {error}"
                )));
            }
        };
        let Some(status) = wait(&mut child, interrupt)? else {
            return Ok(Ended::Interrupted);
        };
        let is_done = [Code::Clean, Code::Findings, Code::Vacuous];
        if !is_done
            .iter()
            .any(|code| status.code() == Some(code.number().into()))
        {
            return Ok(Ended::Trouble(match status.code() {
                Some(_) => last_words(workplace),
                None => format!("its process ended with {status}"),
            }));
        }
        let is_remote = self
            .settings
            .more
            .iter()
            .any(|word| word.starts_with("--hub"));
        let cpu = if is_remote {
            // Workers elsewhere tell no time of their processors.
            u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
        } else {
            cpu_of_children().saturating_sub(before)
        };
        let mut told = read(workplace)?;
        told.cpu_milliseconds = cpu;
        Ok(Ended::Told(Box::new(told)))
    }
}

/// Waits for a round; none if the user wants an end, which ends the round, too.
fn wait(
    child: &mut Child,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            // What the terminal interrupts, it interrupts for both.
            return Ok((!interrupt.is_requested()).then_some(status));
        }
        if interrupt.is_requested() {
            // Its recordings are written already.
            drop(child.kill());
            child.wait()?;
            return Ok(None);
        }
        std::thread::park_timeout(LOOK);
    }
}

/// What a round wrote.
fn read(workplace: &Path) -> anyhow::Result<Told> {
    let text = |name: &str| {
        let path = workplace.join(name);
        let bytes = regular_file::read(&path, TOLD_BYTES_MAX)
            .with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut told = Told {
        findings: json::read(&text(RESULT)?)
            .map_err(|error| anyhow!("a round told something strange: {error}"))?,
        ..Told::default()
    };
    let log = campaign_log::read(&text(LOG)?)
        .map_err(|error| anyhow!("a round told something strange: {error}"))?;
    for campaign in log {
        let Some(end) = campaign.end else { continue };
        told.schedules += end.last.schedules;
        told.failing += end.failing;
        told.steps += end.steps;
        told.points += end.last.points;
        told.interrupted += end.last.interrupted;
        // Tests of one subject have classes of their own.
        let name = Digest::of(campaign.begin.name.as_bytes());
        let classes = end.classes.into_iter();
        told.classes
            .extend(classes.map(|class| Prng::derive_seed(name, class)));
    }
    Ok(told)
}

/// The end of what a command complained of.
fn last_words(workplace: &Path) -> String {
    let errors = regular_file::read(&workplace.join(ERRORS), TOLD_BYTES_MAX).unwrap_or_default();
    let errors = String::from_utf8_lossy(&errors);
    let last = errors.lines().rfind(|line| !line.trim().is_empty());
    let last = last.map(|line| line.strip_prefix("raddle: ").unwrap_or(line));
    last.unwrap_or("its command ended without a word")
        .to_owned()
}

/// Milliseconds of processors that children have taken which are over.
fn cpu_of_children() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold anything; `cutime` and `cstime` are the 14th and 15th word behind it.
    let words = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = words.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks * 1000 / TICKS
}
