//! What a campaign knows: small, plain, and written down whole after each round.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::energy::Energy;

/// The form of the file.
pub(super) const VERSION: u32 = 1;
/// Points of a subject's history; when there are twice as many, every second one goes.
const HISTORY: usize = 256;

/// A campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: u32,
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) round_schedules: u64,
    /// Seconds.
    pub(super) round_time: u64,
    pub(super) cost: Cost,
    /// Of all subjects.
    pub(super) rounds: u64,
    pub(super) subjects: Vec<SubjectState>,
}

/// In what the price of new behaviour is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cost {
    /// Time of processors.
    #[default]
    Time,
    /// Instructions of schedules: the same on every machine, so that the order of all rounds is, too.
    Instructions,
}

/// What is known of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct SubjectState {
    pub(super) name: String,
    /// The folder that its command is run in.
    pub(super) folder: PathBuf,
    pub(super) command: Vec<String>,
    pub(super) rounds: u64,
    /// The campaign's number of its last round.
    pub(super) last_round: u64,
    pub(super) schedules: u64,
    pub(super) failing: u64,
    /// Instructions of its schedules.
    pub(super) steps: u64,
    /// Time of processors that its rounds took.
    pub(super) cpu_milliseconds: u64,
    /// Different reads-from classes of all rounds, and the file with their digests.
    pub(super) classes: u64,
    pub(super) class_file: Option<String>,
    /// Communication points of the round that had most.
    pub(super) points: u64,
    pub(super) interrupted: u64,
    pub(super) energy: Energy,
    pub(super) findings: Vec<KnownFinding>,
    /// Why it cannot be explored, until the campaign is resumed.
    pub(super) trouble: Option<String>,
    pub(super) history: Vec<Point>,
    /// One in so many rounds is in the history.
    pub(super) history_step: u64,
}

/// A finding, once for all rounds that had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownFinding {
    pub(super) fingerprint: String,
    /// The one in its recording, which an explanation does not change.
    pub(super) recorded: Option<String>,
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) title: String,
    /// Below the campaign's folder.
    pub(super) recording: Option<PathBuf>,
    /// The subject's number of the first round that had it, and how many did.
    pub(super) first_round: u64,
    pub(super) seen: u64,
}

/// How far a subject was after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) cpu_milliseconds: u64,
    pub(super) schedules: u64,
    pub(super) classes: u64,
    pub(super) points: u64,
    pub(super) interrupted: u64,
    pub(super) findings: u64,
}

impl SubjectState {
    pub(super) fn now(&self) -> Point {
        Point {
            cpu_milliseconds: self.cpu_milliseconds,
            schedules: self.schedules,
            classes: self.classes,
            points: self.points,
            interrupted: self.interrupted,
            findings: u64::try_from(self.findings.len()).unwrap_or(u64::MAX),
        }
    }

    /// Notes how far it is; of a long history every second point goes.
    pub(super) fn note_history(&mut self) {
        let step = self.history_step.max(1);
        if self.rounds.is_multiple_of(step) {
            self.history.push(self.now());
        }
        if self.history.len() >= 2 * HISTORY {
            let mut keep = false;
            self.history.retain(|_| {
                keep = !keep;
                !keep
            });
            self.history_step = step * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_stays_small_and_keeps_its_order() {
        let mut subject = SubjectState::default();
        for round in 1..=10_000 {
            subject.rounds = round;
            subject.schedules = round * 10;
            subject.note_history();
        }
        assert!(subject.history.len() < 2 * HISTORY);
        let schedules: Vec<u64> = subject.history.iter().map(|at| at.schedules).collect();
        assert!(schedules.is_sorted());
        assert!(*schedules.last().unwrap() > 99_000, "the end is there");
        assert!(schedules[0] < 2_000, "and so is the begin");
    }
}
