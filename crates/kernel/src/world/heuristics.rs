//! Why processors are passed over: SKI's heuristics H1 to H4, counted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Which heuristic spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heuristic {
    /// H1: it halted.
    Halted,
    /// H2: it paused.
    Paused,
    /// H3: it came back to the same place with the same registers.
    Looping,
    /// H4: it ran for too long.
    Starving,
}

/// Instructions of a loop with one pause at most.
pub(super) const PAUSE_LOOP: u64 = 1_000;

/// A PAUSE of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    /// Steps that the processor had made.
    pub(super) steps: u64,
    pub(super) pc: u64,
}

impl Pause {
    /// Whether the processor goes round in a loop: it has paused within `window` instructions before (H2), or at this
    /// very place within `same_place`, since some loops of kernels are longer than SKI's window.
    pub(super) fn closes_loop(self, before: Self, window: u64, same_place: u64) -> bool {
        let passed = self.steps - before.steps;
        passed <= window || before.pc == self.pc && passed <= same_place
    }
}

/// How often each heuristic spoke, and at which instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Heuristics {
    pub counts: [u64; 4],
    pub places: [BTreeSet<u64>; 4],
    /// Schedules in which each of them spoke, and in which any did.
    pub schedules: [u64; 4],
    pub any: u64,
    /// Times a context went on that the user had not allowed to, because no other context could.
    pub outside: u64,
}

impl Heuristics {
    pub fn note(&mut self, which: Heuristic, pc: u64) {
        self.counts[which as usize] += 1;
        self.places[which as usize].insert(pc);
    }

    /// Adds those of a whole schedule.
    pub fn add_schedule(&mut self, schedule: &Self) {
        self.add(schedule);
        for (times, count) in self.schedules.iter_mut().zip(schedule.counts) {
            *times += u64::from(count > 0);
        }
        self.any += u64::from(schedule.counts != [0; 4]);
    }

    /// Per cent of so many schedules in which H1 to H4 and any of them spoke (SKI's Table 6.2).
    pub fn percentages(&self, schedules: u64) -> [f64; 5] {
        let [h1, h2, h3, h4] = self.schedules;
        [h1, h2, h3, h4, self.any].map(|count| 100.0 * share(count, schedules))
    }

    /// How often H1 to H4 and any of them spoke per schedule (SKI's Table 6.3).
    pub fn per_schedule(&self, schedules: u64) -> [f64; 5] {
        let [h1, h2, h3, h4] = self.counts;
        [h1, h2, h3, h4, self.counts.iter().sum()].map(|count| share(count, schedules))
    }

    /// Adds those of a part of the same schedule.
    pub fn add(&mut self, other: &Self) {
        self.outside += other.outside;
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        for (places, more) in self.places.iter_mut().zip(&other.places) {
            places.extend(more);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "for tables")]
fn share(count: u64, schedules: u64) -> f64 {
    count as f64 / schedules.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_counted_once_for_each_heuristic_and_for_any() {
        let mut all = Heuristics::default();
        let mut schedule = Heuristics::default();
        all.add_schedule(&schedule);
        schedule.note(Heuristic::Paused, 1);
        schedule.note(Heuristic::Paused, 2);
        all.add_schedule(&schedule);
        schedule.note(Heuristic::Starving, 2);
        all.add_schedule(&schedule);
        assert_eq!((all.counts, all.schedules), ([0, 4, 0, 1], [0, 2, 0, 1]));
        assert_eq!(all.any, 2);
        assert_eq!(all.percentages(4), [0.0, 50.0, 0.0, 25.0, 50.0]);
        assert_eq!(all.per_schedule(4), [0.0, 1.0, 0.0, 0.25, 1.25]);
    }

    #[test]
    fn a_pause_closes_a_loop_if_another_one_is_near_or_at_the_same_place() {
        let pause = |steps, pc| Pause { steps, pc };
        let closes = |now: Pause| now.closes_loop(pause(1000, 0x40), 30, PAUSE_LOOP);
        assert!(closes(pause(1030, 0x80)));
        assert!(!closes(pause(1031, 0x80)));
        assert!(closes(pause(1031, 0x40)));
        assert!(closes(pause(2000, 0x40)));
        assert!(!closes(pause(2001, 0x40)));
    }
}
