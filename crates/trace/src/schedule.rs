//! A schedule: the default order and the few places where a run left it.
//!
//! The default order is non-preemptive: the current context goes on until it blocks, ends, yields or has used
//! up its patience; then the next runnable one in the order of creation follows. A schedule names only the
//! deviations from that, keyed by the context's own progress, so that taking one deviation away leaves the
//! others meaningful. This is delay bounding's view of schedules (Emmi, Qadeer, Rakamaric, POPL 2011).

use raddle_stdx::Digest;
use raddle_stdx::width::to_u64;
use raddle_world::Fault;
use serde::{Deserialize, Serialize};

/// Creation path of a context; stable from run to run.
pub type Path = Vec<u32>;

/// How far a context has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    pub steps: u64,
    pub phase: Phase,
}

/// What a context is in the middle of. Several stops can share one step count, because a system call makes no step;
/// the order of the variants is the order in which they come:
/// ```text
///   step n: SYSCALL  | Asked | Blocked(1) | Blocked(2) | .. | Plain: the call is done
///   step n: add [x], 1  | Plain: before it | Torn: it has read x and not yet written it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It has asked for a system call that has not been made yet.
    Asked,
    /// The call has blocked so many times; at least once.
    Blocked(u32),
    /// It executes its own instructions.
    Plain,
    /// It stands between the read and the write of one instruction that is not locked.
    Torn,
}

/// What happens next in a run. Everything that a schedule can decide is a turn: whatever else worlds learn to do at a
/// schedule's wish (drain a store buffer, deliver a message) becomes a variant here, and recordings that have such
/// turns name them in [`crate::Recording::needs`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// Time jumps to the next timer or time-out.
    Clock,
    /// The context meets a fault in what it is about to do.
    Fault(Fault),
    /// This context goes on.
    Context(Path),
}

impl Turn {
    /// Whether this context goes on.
    pub fn is_of(&self, path: &[u32]) -> bool {
        matches!(self, Self::Context(of) if of == path)
    }
}

/// At this place of this context, another turn follows than in the default order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Deviation {
    pub context: Path,
    pub at: Position,
    pub turn: Turn,
}

/// All deviations of a run, in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schedule {
    pub deviations: Vec<Deviation>,
}

impl Schedule {
    /// The same schedule without the deviations in a range of indices.
    #[must_use]
    pub fn without(&self, range: std::ops::Range<usize>) -> Self {
        let mut deviations = self.deviations.clone();
        deviations.drain(range);
        Self { deviations }
    }

    /// How many deviations there are.
    pub fn len(&self) -> usize {
        self.deviations.len()
    }

    /// How many of the deviations are jumps of the clock.
    pub fn clock_jumps(&self) -> usize {
        let clock = |d: &&Deviation| d.turn == Turn::Clock;
        self.deviations.iter().filter(clock).count()
    }

    /// The faults among the deviations, in their order.
    pub fn faults(&self) -> Vec<Fault> {
        let fault = |d: &Deviation| match d.turn {
            Turn::Fault(fault) => Some(fault),
            _ => None,
        };
        self.deviations.iter().filter_map(fault).collect()
    }

    /// How many of the deviations come between the read and the write of one instruction.
    pub fn torn(&self) -> usize {
        let torn = |d: &&Deviation| d.at.phase == Phase::Torn;
        self.deviations.iter().filter(torn).count()
    }

    pub fn is_empty(&self) -> bool {
        self.deviations.is_empty()
    }

    /// Equal for equal schedules: two runs with the same deviations are the same run.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for Deviation { context, at, turn } in &self.deviations {
            add_path(&mut digest, context);
            digest.word(at.steps);
            match at.phase {
                Phase::Asked => digest.word(0),
                Phase::Blocked(times) => digest.word(u64::from(times)),
                Phase::Plain => digest.word(u64::MAX - 1),
                Phase::Torn => digest.word(u64::MAX),
            }
            match turn {
                Turn::Clock => digest.word(u64::MAX),
                Turn::Fault(fault) => {
                    digest.word(u64::MAX - 1);
                    digest.word(*fault as u64);
                }
                Turn::Context(path) => add_path(&mut digest, path),
            }
        }
        digest.value()
    }
}

fn add_path(digest: &mut Digest, path: &[u32]) {
    digest.word(to_u64(path.len()));
    for element in path {
        digest.word(u64::from(*element));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_order_calls_before_blocks_before_returns() {
        let at = |steps, phase| Position { steps, phase };
        let in_order = [
            at(5, Phase::Asked),
            at(5, Phase::Blocked(1)),
            at(5, Phase::Blocked(2)),
            at(5, Phase::Plain),
            at(5, Phase::Torn),
            at(6, Phase::Asked),
        ];
        assert!(in_order.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn schedules_that_differ_in_one_turn_or_phase_have_different_digests() {
        let one = |phase, turn| Schedule {
            deviations: vec![Deviation {
                context: vec![0],
                at: Position { steps: 9, phase },
                turn,
            }],
        };
        let schedules = [
            one(Phase::Plain, Turn::Context(vec![0, 1])),
            one(Phase::Plain, Turn::Context(vec![0])),
            one(Phase::Plain, Turn::Clock),
            one(Phase::Plain, Turn::Fault(Fault::NoMemory)),
            one(Phase::Plain, Turn::Fault(Fault::Interrupted)),
            one(Phase::Torn, Turn::Clock),
            one(Phase::Asked, Turn::Clock),
            one(Phase::Blocked(1), Turn::Clock),
        ];
        for (index, schedule) in schedules.iter().enumerate() {
            let mut others = schedules[..index].iter();
            assert!(others.all(|other| other.digest() != schedule.digest()));
        }
        let jumps: Vec<usize> = schedules.iter().map(Schedule::clock_jumps).collect();
        assert_eq!(jumps, [0, 0, 1, 0, 0, 1, 1, 1]);
        let torn: Vec<usize> = schedules.iter().map(Schedule::torn).collect();
        assert_eq!(torn, [0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_written_form_names_turns_and_phases() {
        let deviation = Deviation {
            context: vec![0],
            at: Position {
                steps: 9,
                phase: Phase::Blocked(2),
            },
            turn: Turn::Clock,
        };
        let text = serde_json::to_string(&deviation).unwrap();
        let expected = r#"{"context":[0],"at":{"steps":9,"phase":{"blocked":2}},"turn":"clock"}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str(&text).ok(), Some(deviation));
    }
}
