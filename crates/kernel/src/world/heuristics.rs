//! Why processors are passed over: SKI's heuristics H1 to H4, counted.

use std::collections::BTreeSet;

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

/// How often each heuristic spoke, and at which instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heuristics {
    pub counts: [u64; 4],
    pub places: [BTreeSet<u64>; 4],
    /// Times a context went on that the user had not allowed to, because nobody else could.
    pub outside: u64,
}

impl Heuristics {
    pub fn note(&mut self, which: Heuristic, pc: u64) {
        self.counts[which as usize] += 1;
        self.places[which as usize].insert(pc);
    }

    /// Adds those of another run.
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
