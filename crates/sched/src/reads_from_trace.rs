//! Who read whose write: the part of a run that decides what the program computes.
//!
//! Two runs in which every operation reads from the same operation are equal for the program (the reads-from
//! equivalence of Wolff, Shi, Duck, Mathur, Roychoudhury, "Greybox fuzzing for concurrency testing",
//! ASPLOS 2024). Operations are those at which contexts stop: communication points and synchronisation.

use raddle_stdx::Digest;
use raddle_world::{ContextId, ContextTable, Pending, Site};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::operation::{Touch, touch};

/// An observed pair: the site of the last write ([`Site::NOWHERE`] if there was none in this run) and that of the read.
pub type ReadsFromPair = (Site, Site);

/// The last write to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastWrite {
    context: ContextId,
    site: Site,
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
    /// A context is about to do this operation at this site.
    pub fn note(&mut self, who: ContextId, site: Site, next: &Pending, table: &ContextTable) {
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
            entry.1.word(site.number());
            if let Some(write) = source {
                for element in &*table.get(write.context).path {
                    entry.1.word(u64::from(*element));
                }
                entry.1.word(write.number);
            }
            // What a context reads from itself says nothing about the schedule.
            if source.is_none_or(|write| write.context != who) {
                self.pairs
                    .insert((source.map_or(Site::NOWHERE, |write| write.site), site));
            }
        }
        if touch.writes {
            let write = LastWrite {
                context: who,
                site,
                number,
            };
            self.last.insert(touch.object, write);
        }
    }

    /// The site of the last write to what this operation reads; nowhere if there was none.
    pub(crate) fn source_of(&self, touch: &Touch) -> Site {
        let last = self.last.get(&touch.object);
        last.map_or(Site::NOWHERE, |write| write.site)
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
