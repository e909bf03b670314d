//! What exploring one case came to, and whether anything was tested.

use std::time::Duration;

use raddle_explore::ProgramReport;
use raddle_report::Finding;

use super::summary::summary;
use crate::suppressed::Suppressions;

/// A case that was explored.
pub(super) struct Explored {
    pub(super) name: String,
    pub(super) report: ProgramReport,
    pub(super) findings: Vec<Finding>,
    /// Why nothing was tested, if nothing was.
    pub(super) vacuous: Option<Vacuous>,
    /// After how many instructions its runs were cut, if they were.
    pub(super) cut: Option<u64>,
    pub(super) elapsed: Duration,
    /// Schedules of which two workers told different things.
    pub(super) disagreements: usize,
}

/// Why nothing was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vacuous {
    NoThreads,
    NothingInterleaved(Limit),
    NotBegun,
}

/// What kept contexts from running at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Program,
    /// Its schedules ended after so many instructions.
    Cut(u64),
    /// Schedules may switch in chosen places only.
    Focus,
}

impl Limit {
    pub(super) fn of(cut: Option<u64>, has_focus: bool) -> Self {
        match cut {
            Some(steps) => Self::Cut(steps),
            None if has_focus => Self::Focus,
            None => Self::Program,
        }
    }
}

impl std::fmt::Display for Vacuous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self {
            Self::NoThreads => return f.write_str("creates no threads: nothing was tested"),
            Self::NotBegun => {
                return f.write_str(
                    "ended before its first schedule was over: nothing was tested; give it more `--time`",
                );
            }
            Self::NothingInterleaved(limit) => limit,
        };
        let (when, what_to_do) = match why {
            Limit::Program => (String::new(), ""),
            Limit::Cut(steps) => (
                format!(" in the {steps} instructions after which schedules were cut"),
                "; cut later with `--cut STEPS`",
            ),
            Limit::Focus => (
                " at a place of `--focus`, `--site` or `--diff`".to_owned(),
                "; name others, or leave the option out",
            ),
        };
        write!(
            f,
            "no two threads or processes could ever run at the same time{when}: nothing was interleaved, so nothing was tested{what_to_do}"
        )
    }
}

impl Explored {
    /// Takes out what the project does not want to see, with its recordings.
    pub(super) fn leave_out(&mut self, suppressions: &mut Suppressions) {
        for fingerprint in suppressions.apply(&mut self.report) {
            let gone = |finding: &Finding| finding.fingerprint == fingerprint;
            let recordings = self.findings.iter().filter(|finding| gone(finding));
            for file in recordings.filter_map(|finding| finding.recording.as_ref()) {
                drop(std::fs::remove_file(&file.file));
            }
            self.findings.retain(|finding| !gone(finding));
        }
    }

    pub(super) fn summary(&self) -> String {
        match &self.vacuous {
            Some(reason) => reason.to_string(),
            None => {
                let mut text = summary(&self.report, self.findings.len(), self.elapsed);
                if let Some(steps) = self.cut {
                    text.push_str(&format!(
                        "; runs were cut after {steps} instructions: only what happens before that was tested, for crashes, races, heap errors and deadlocks"
                    ));
                }
                text
            }
        }
    }
}

/// Why a report says nothing of its program, if that is so.
pub(super) fn proves_nothing(
    report: &ProgramReport,
    is_without_findings: bool,
    limit: Limit,
) -> Option<Vacuous> {
    // The first run interrupts no context.
    let is_unbegun = report.was_stopped && is_without_findings && report.schedules <= 1;
    if is_unbegun || report.schedules == 0 {
        return Some(Vacuous::NotBegun);
    }
    let is_uninterrupted = is_without_findings && report.decisions == 0 && !report.was_cancelled;
    is_uninterrupted.then_some(Vacuous::NothingInterleaved(limit))
}
