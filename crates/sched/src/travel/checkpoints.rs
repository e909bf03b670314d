//! Moments of a run that the world can come back to without beginning anew.
//!
//! ```text
//!   0        gap_max   gap_max       half   half half   end of the journey
//!   ├──────────┼─────────┼─────────────┼──────┼───┼──┼─▶
//! ```
//!
//! A journey to a moment leaves checkpoints behind: at most [`GAP_MAX`] steps apart far from its end, and each in the
//! middle of what is left near it. So a step back costs at most [`GAP_MIN`] steps as a rule, and [`GAP_MAX`] at worst,
//! after which there are near ones again. What checkpoints hold in memory is what the run has overwritten since; when it
//! comes near the budget, they are made further apart, and at last not at all.

use raddle_world::{Inspect, Snapshot};

use crate::driver::Replaying;

/// Steps that are not worth a checkpoint.
pub const GAP_MIN: u64 = 20_000;
/// Steps without a checkpoint, as long as there is memory.
pub const GAP_MAX: u64 = 4_000_000;
/// Bytes that checkpoints may hold.
pub const BUDGET: u64 = 1 << 30;

/// A place in the run from which it goes on.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint {
    pub(super) snapshot: Snapshot,
    pub(super) replaying: Replaying,
    /// What the one before holds because of the way here.
    held_bytes: u64,
}

/// Ascending moments; a world forgets later ones when an earlier one is restored.
#[derive(Debug, Default)]
pub struct Checkpoints {
    kept: Vec<Checkpoint>,
}

impl Checkpoints {
    /// The last one that is not after a moment; later ones are gone.
    pub(super) fn before(&mut self, moment: u64) -> Option<&Checkpoint> {
        self.kept
            .retain(|checkpoint| checkpoint.replaying.steps() <= moment);
        self.kept.last()
    }

    /// Remembers where a world stands.
    pub(super) fn make(&mut self, world: &mut impl Inspect, replaying: &Replaying) {
        let held_bytes = world.changed_bytes();
        self.kept.push(Checkpoint {
            snapshot: world.snapshot(),
            replaying: replaying.clone(),
            held_bytes,
        });
    }

    /// Where the next checkpoint of a journey belongs; where the journey ends if there should be none before.
    pub(super) fn next(&self, now: u64, to: u64) -> u64 {
        let held = self.kept.iter().map(|checkpoint| checkpoint.held_bytes);
        next(now, to, held.sum())
    }
}

fn next(now: u64, to: u64, held_bytes: u64) -> u64 {
    let left = to - now;
    let quarters = held_bytes / (BUDGET / 4);
    if left <= GAP_MIN || quarters >= 4 {
        return to;
    }
    // Twice as far apart for each quarter of the budget that is used up.
    let widest = GAP_MAX << quarters;
    now + (left / 2).clamp(GAP_MIN, widest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments at which a journey leaves checkpoints.
    fn journey(to: u64, held_bytes: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut moments = Vec::new();
        let mut now = 0;
        while now < to {
            now = next(now, to, held_bytes(now));
            moments.push(now);
        }
        moments.pop();
        moments
    }

    #[test]
    fn short_journeys_leave_no_checkpoints() {
        assert_eq!(journey(GAP_MIN, |_| 0), Vec::<u64>::new());
    }

    #[test]
    fn long_journeys_leave_near_ones_at_the_end_and_far_ones_before() {
        let end = 100_000_000;
        let moments = journey(end, |_| 0);
        assert!(moments.len() < 50, "{moments:?}");
        let last = *moments.last().expect("some");
        assert!(end - last <= GAP_MIN, "{last}");
        let gaps = moments.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max() <= Some(GAP_MAX), "{moments:?}");
    }

    #[test]
    fn memory_that_is_used_up_makes_them_fewer() {
        // Each step keeps thirty bytes.
        let few = journey(100_000_000, |now| 30 * now);
        assert!(few.len() < journey(100_000_000, |_| 0).len(), "{few:?}");
        let held = few.iter().map(|moment| 30 * moment).max();
        assert!(held < Some(2 * BUDGET), "{few:?}");
    }
}
