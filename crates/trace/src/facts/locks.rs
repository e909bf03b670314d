//! The locks that contexts hold, and numbers for sets of them.

use raddle_stdx::width::{low_u32, to_u64};
use raddle_world::{ContextId, HeldLocks, Obtained, Section};
use rustc_hash::FxHashMap;

/// What an event says of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockChange {
    /// A critical section began.
    Obtained(Section),
    /// It is over.
    GivenUp(Section),
    /// It is over, and when it began the word was not known to be a lock.
    WasHeld(Section),
}

/// What one event says: of a section that ended before it, and of its own.
pub(super) type LockChanges = [Option<LockChange>; 2];

/// The locks of one run.
#[derive(Debug)]
pub(super) struct Locks {
    contexts: Vec<Holder>,
    /// The sets that were seen, and their numbers. The first is the empty one.
    sets: Vec<Vec<u64>>,
    numbers: FxHashMap<Vec<u64>, u32>,
}

#[derive(Debug, Default)]
struct Holder {
    held: HeldLocks,
    /// The number of the set.
    set: u32,
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            contexts: Vec::new(),
            sets: vec![Vec::new()],
            numbers: FxHashMap::from_iter([(Vec::new(), 0)]),
        }
    }
}

impl Locks {
    pub(super) fn obtain(&mut self, obtained: Obtained) -> Section {
        let section = self.holder(obtained.context).held.obtain(obtained);
        self.count_set(obtained.context);
        section
    }

    pub(super) fn give_up(&mut self, who: ContextId, lock: u64) -> Option<Section> {
        let section = self.holder(who).held.give_up(lock)?;
        self.count_set(who);
        Some(section)
    }

    pub(super) fn held(&self, who: ContextId) -> &[Section] {
        let holder = self.contexts.get(who.0 as usize);
        holder.map_or(&[], |holder| holder.held.sections())
    }

    /// The number of the set of locks that a context holds.
    #[inline]
    pub(super) fn set_number(&self, who: ContextId) -> u32 {
        let holder = self.contexts.get(who.0 as usize);
        holder.map_or(0, |holder| holder.set)
    }

    /// Gives the set of locks that a context holds a number.
    fn count_set(&mut self, who: ContextId) {
        let held = self.held(who).iter();
        let locks: Vec<u64> = held.map(|section| section.lock).collect();
        let next = low_u32(to_u64(self.sets.len()));
        let sets = &mut self.sets;
        let number = *self.numbers.entry(locks).or_insert_with_key(|locks| {
            sets.push(locks.clone());
            next
        });
        self.holder(who).set = number;
    }

    /// The locks of a set, oldest first.
    pub(super) fn set(&self, number: u32) -> &[u64] {
        let set = self.sets.get(number as usize);
        set.map_or(&[], |locks| locks.as_slice())
    }

    fn holder(&mut self, who: ContextId) -> &mut Holder {
        let index = who.0 as usize;
        if self.contexts.len() <= index {
            self.contexts.resize_with(index + 1, Holder::default);
        }
        &mut self.contexts[index]
    }
}
