//! Searches for findings, and what was found: each search is a run of raddle itself, with a limit on its time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use raddle_explore::Replayer;
use raddle_report::Finding;
use raddle_report::render::{json, terminal};
use raddle_report::words::counted;
use raddle_stdx::width::{to_u64, to_usize};
use serde_json::Value;

use super::super::explore::oracle;
use super::super::{replay, report};
use super::{Refused, text};

/// Seconds of a search, unless told otherwise, and at most.
const SECONDS: u64 = 20;
const SECONDS_MAX: u64 = 300;
/// Interleavings of a search, unless told otherwise.
const SCHEDULES: u64 = 2000;

/// What was found in a conversation.
#[derive(Debug)]
pub(super) struct Found {
    folder: PathBuf,
    findings: Vec<Finding>,
}

impl Found {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            findings: Vec::new(),
        }
    }

    /// Runs `raddle explore` or `raddle predict`.
    pub(super) fn search(&mut self, command: &str, arguments: &Value) -> Result<String, Refused> {
        let program = text(arguments, "program")?;
        let seconds = arguments["seconds"].as_u64().unwrap_or(SECONDS);
        let seconds = seconds.clamp(1, SECONDS_MAX).to_string();
        let schedules = arguments["schedules"].as_u64().unwrap_or(SCHEDULES);
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut search = Command::new(own);
        search
            .args([command, "--json", "--time", &seconds, "--output"])
            .arg(&self.folder);
        if command == "explore" {
            search.args(["--schedules", &schedules.to_string()]);
        }
        if arguments["races"] == true {
            search.arg("--races");
        }
        search.args(["--", program]);
        for argument in arguments["arguments"].as_array().into_iter().flatten() {
            search.arg(argument.as_str().ok_or("`arguments` is a list of texts")?);
        }
        // Standard input is the assistant's.
        search.stdin(Stdio::null());
        let ran = search.output().map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&ran.stdout);
        let findings = match json::read(&told) {
            Ok(findings) if matches!(ran.status.code(), Some(0 | 1)) => findings,
            _ => return Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
        };
        let document: Value = serde_json::from_str(&told).unwrap_or_default();
        let count = counted(to_u64(findings.len()), "finding");
        // What is found again is told again, and stands once in the list.
        let is_other = |old: &Finding| {
            findings
                .iter()
                .all(|new| new.fingerprint != old.fingerprint)
        };
        self.findings.retain(is_other);
        let first = self.findings.len();
        self.findings.extend(findings);
        let mut answer = format!("{count}\n{}", self.listed(first));
        if document["summary"].is_object() {
            answer.push_str(&format!("\nsummary: {}\n", document["summary"]));
        }
        Ok(answer)
    }

    /// Everything so far, a line each.
    pub(super) fn list(&self) -> String {
        if self.findings.is_empty() {
            return String::from("nothing was found yet: call `explore` or `predict`\n");
        }
        self.listed(0)
    }

    fn listed(&self, first: usize) -> String {
        let new = self.findings.iter().skip(first);
        new.map(|finding| {
            let recording = finding.recording.as_ref();
            let recording = recording.map_or("no recording", |recording| &recording.file);
            format!(
                "{}: {}\n  recording: {recording}\n",
                finding.kind, finding.title
            )
        })
        .collect()
    }
}

/// The failure of a recording as a terminal shows it.
pub(super) fn story(arguments: &Value) -> Result<String, Refused> {
    let path = Path::new(text(arguments, "recording")?);
    let finding = report::explained(path).map_err(|failure| format!("{:#}", failure.error))?;
    Ok(terminal::finding(&finding, 1, 1, terminal::Style::PLAIN))
}

/// Runs a schedule with one deviation less, or lists the deviations.
pub(super) fn run_without(arguments: &Value) -> Result<String, Refused> {
    let path = Path::new(text(arguments, "recording")?);
    let mut recording = replay::read(path).map_err(|error| format!("{error:#}"))?;
    let deviations = &mut recording.schedule.deviations;
    let Some(number) = arguments["deviation"].as_u64() else {
        let lines = deviations.iter().zip(1..).map(|(deviation, number)| {
            format!(
                "{number}. context {} at its step {}: {}\n",
                path_text(&deviation.context),
                deviation.at.steps,
                turn_text(&deviation.turn)
            )
        });
        return Ok(lines.collect());
    };
    let index = to_usize(number).checked_sub(1);
    let Some(index) = index.filter(|index| *index < deviations.len()) else {
        return Err(format!(
            "there is no deviation {number}: the recording has {}",
            deviations.len()
        ));
    };
    deviations.remove(index);
    let judge = oracle::judge(recording.expected.output.as_deref(), None);
    let mut replayer = Replayer::start(&recording, judge).map_err(|error| error.to_string())?;
    let run = replayer.run();
    let verdict = match (run.fails, run.same_failure) {
        (true, true) => "it still fails in the same way",
        (true, false) => "it fails in another way",
        _ => "it does not fail: the failure needs this deviation",
    };
    Ok(format!(
        "without deviation {number}: {verdict} ({} steps, {})\n",
        run.steps,
        counted(run.switches, "context switch")
    ))
}

fn path_text(path: &[u32]) -> String {
    let parts: Vec<String> = path.iter().map(u32::to_string).collect();
    format!("/{}", parts.join("/"))
}

fn turn_text(turn: &raddle_trace::Turn) -> String {
    match turn {
        raddle_trace::Turn::Context(path) => format!("context {} goes on", path_text(path)),
        raddle_trace::Turn::Clock => String::from("the clock jumps"),
        raddle_trace::Turn::Fault(fault) => format!("it meets the fault `{}`", fault.name()),
    }
}
