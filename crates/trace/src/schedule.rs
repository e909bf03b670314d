//! A schedule: the default order and the few places where a run left it.
//!
//! The default order is non-preemptive: the current context goes on until it blocks, ends, yields or has used
//! up its patience; then the next runnable one in the order of creation follows. A schedule names only the
//! deviations from that, keyed by the context's own progress, so that taking one deviation away leaves the
//! others meaningful. This is delay bounding's view of schedules (Emmi, Qadeer, Rakamaric, POPL 2011).

use raddle_stdx::Digest;
use serde::{Deserialize, Serialize};

/// Creation path of a context; stable from run to run.
pub type Path = Vec<u32>;

/// How far a context has come.
///
/// Several stops can share one step count, because a system call makes no step:
/// ```text
///   step n: SYSCALL | phase 0: asked for | phase 1, 2, ..: blocked the first, second, .. time | PLAIN: back
///   step n: PLAIN: before `add [x], 1` | TORN: it has read x and not yet written it
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    pub steps: u64,
    pub phase: u32,
}

impl Position {
    /// Phase of a context that executes its own instructions.
    pub const PLAIN: u32 = u32::MAX - 1;
    /// Phase of a context between the read and the write of one instruction that is not locked.
    pub const TORN: u32 = u32::MAX;
}

/// At this place of this context, another than the default context goes on, or the clock jumps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Deviation {
    pub context: Path,
    pub at: Position,
    pub to: Path,
}

impl Deviation {
    /// Stands for the clock as the target of a deviation: time jumps to the next timer or time-out. It is no
    /// context, so its path is empty.
    pub const CLOCK: Path = Vec::new();

    /// Whether it is a jump of the clock and not a switch.
    pub fn is_clock(&self) -> bool {
        self.to.is_empty()
    }
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
        self.deviations.iter().filter(|d| d.is_clock()).count()
    }

    /// How many of the deviations come between the read and the write of one instruction.
    pub fn torn(&self) -> usize {
        let torn = |d: &&Deviation| d.at.phase == Position::TORN;
        self.deviations.iter().filter(torn).count()
    }

    pub fn is_empty(&self) -> bool {
        self.deviations.is_empty()
    }

    /// Equal for equal schedules: two runs with the same deviations are the same run.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for deviation in &self.deviations {
            for element in deviation.context.iter().chain(&deviation.to) {
                digest.word(u64::from(*element));
            }
            digest.word(deviation.at.steps);
            digest.word(u64::from(deviation.at.phase));
        }
        digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_order_calls_before_blocks_before_returns() {
        let at = |steps, phase| Position { steps, phase };
        let (plain, torn) = (Position::PLAIN, Position::TORN);
        let mut positions = [at(5, torn), at(5, plain), at(5, 1), at(6, 0), at(5, 0)];
        positions.sort();
        let phases: Vec<(u64, u32)> = positions.iter().map(|p| (p.steps, p.phase)).collect();
        assert_eq!(phases, [(5, 0), (5, 1), (5, plain), (5, torn), (6, 0)]);
    }
}
