//! Order by reading: a context that has read what another one wrote comes after all that the other did before.
//!
//! On x86 a release store and an acquiring load are plain moves, which nothing in a binary tells from any others. The
//! processor keeps stores in their order and loads in theirs, so a load that sees a store comes after everything before
//! that store, whatever the source says. In one run this order may be an accident; a search runs many orders, and what
//! only a flag protects is met behind the flag in all of them, because the reader looks at the flag first.
//! What it misses: order that a third context passes on.

use std::collections::BTreeMap;

use raddle_world::Site;
use serde::{Deserialize, Serialize};

/// The store and the load by which two accesses are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HandOver {
    /// Instruction that stores, by the context of the earlier access and behind it.
    pub store: Site,
    /// Instruction that loads what was stored, by the context of the later access and before it.
    pub load: Site,
}

/// A load that saw a store.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Number of the store among all accesses of the run.
    stored: u64,
    by: HandOver,
}

/// Who has read what from whom.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// Reader and writer. Invariant: `stored` grows.
    of: BTreeMap<(usize, usize), Vec<Reading>>,
}

impl Readings {
    /// `reader` sees what `writer` stored as access number `stored`.
    pub(crate) fn note(&mut self, reader: usize, writer: usize, stored: u64, by: HandOver) {
        let readings = self.of.entry((reader, writer)).or_default();
        if readings.last().is_none_or(|last| last.stored < stored) {
            readings.push(Reading { stored, by });
        }
    }

    /// By what `reader` comes after access number `number` of `writer`: the first reading that says so.
    pub(crate) fn after(&self, reader: usize, writer: usize, number: u64) -> Option<HandOver> {
        let readings = self.of.get(&(reader, writer))?;
        let first = readings.partition_point(|reading| reading.stored < number);
        readings.get(first).map(|reading| reading.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_the_store_is_known_after_the_load() {
        let mut readings = Readings::default();
        let by = |store| HandOver {
            store: Site::first(store),
            load: Site::first(90),
        };
        readings.note(1, 0, 5, by(1));
        readings.note(1, 0, 9, by(2));
        readings.note(1, 0, 7, by(3));
        assert_eq!(readings.after(1, 0, 3), Some(by(1)));
        assert_eq!(readings.after(1, 0, 5), Some(by(1)));
        assert_eq!(readings.after(1, 0, 6), Some(by(2)));
        assert_eq!(readings.after(1, 0, 10), None);
        assert_eq!(readings.after(0, 1, 3), None);
    }
}
