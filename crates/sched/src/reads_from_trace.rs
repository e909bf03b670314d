//! Who read whose write: the part of a run that decides what the program computes.
//!
//! Two runs in which every operation reads from the same operation are equal for the program (the reads-from
//! equivalence of Wolff, Shi, Duck, Mathur, Roychoudhury, "Greybox fuzzing for concurrency testing",
//! ASPLOS 2024). Operations are those at which contexts stop: communication points and synchronisation.

use raddle_stdx::Digest;
use raddle_world::{ContextId, ContextTable, Pending};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::operation::{Touch, touch};

/// An observed pair: the place of the last write (0: none in this run) and the place of the read.
pub type ReadsFromPair = (u64, u64);

/// The last write to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastWrite {
    context: ContextId,
    place: u64,
    /// Which operation of its context it was.
    number: u64,
}

/// Follows one run.
#[derive(Debug, Clone, Default)]
pub struct ReadsFromTrace {
    last: FxHashMap<u64, LastWrite>,
    /// By context number: operations so far, and what they read from.
    contexts: Vec<(u64, Digest)>,
    pairs: FxHashSet<ReadsFromPair>,
}

impl ReadsFromTrace {
    /// A context is about to do this operation at this place.
    pub fn note(&mut self, who: ContextId, place: u64, next: &Pending, table: &ContextTable) {
        let Some(touch) = touch(next) else { return };
        let index = who.0 as usize;
        if self.contexts.len() <= index {
            self.contexts.resize_with(index + 1, Default::default);
        }
        let entry = &mut self.contexts[index];
        entry.0 += 1;
        let number = entry.0;
        if touch.reads {
            let source = self.last.get(&touch.object);
            entry.1.word(place);
            if let Some(write) = source {
                for element in &*table.get(write.context).path {
                    entry.1.word(u64::from(*element));
                }
                entry.1.word(write.number);
            }
            // What a context reads from itself says nothing about the schedule.
            if source.is_none_or(|write| write.context != who) {
                self.pairs
                    .insert((source.map_or(0, |write| write.place), place));
            }
        }
        if touch.writes {
            let write = LastWrite {
                context: who,
                place,
                number,
            };
            self.last.insert(touch.object, write);
        }
    }

    /// The place of the last write to what this operation reads; 0 if there was none.
    pub(crate) fn source_of(&self, touch: &Touch) -> u64 {
        self.last.get(&touch.object).map_or(0, |write| write.place)
    }

    /// The pairs of contexts' operations so far, ascending.
    pub fn pairs(&self) -> Vec<ReadsFromPair> {
        let mut pairs: Vec<_> = self.pairs.iter().copied().collect();
        pairs.sort_unstable();
        pairs
    }

    /// Equal for runs of the same class.
    pub fn class(&self, table: &ContextTable) -> u64 {
        let mut parts: Vec<(&[u32], u64)> = table
            .iter()
            .zip(&self.contexts)
            .map(|((_, context), (_, digest))| (&*context.path, digest.value()))
            .collect();
        parts.sort_unstable();
        let mut whole = Digest::default();
        for (path, part) in parts {
            path.iter()
                .for_each(|element| whole.word(u64::from(*element)));
            whole.word(part);
        }
        whole.value()
    }
}
