//! Locks without a function: words that are used as locks are.
//!
//! A compiler puts the lock of Rust's `Mutex`, of parking_lot and of most spin locks into the code of its user: a
//! compare-exchange, an exchange or a bit set that finds zero, and later a store or an exchange of zero. The rule:
//!
//! ```text
//!   taken      a compare-exchange, exchange or bit set finds the word zero
//!   given up   the same context stores zero, or changes the word by another such instruction, after which it is zero
//!   a lock     taken and given up once
//!   none       counted by an addition; stored to by another context while taken; found zero after another context
//!              changed it while taken (semaphores, hand-overs)
//! ```
//! A word is a lock from the first time it was given up on. Sections before are told late, when they end; who sees a
//! run a second time knows the words from the first ([`InferredLocks`]). What an exchange leaves behind is known when
//! the word is looked at the next time. What it misses: ticket locks and reader-writer locks, which count; locks whose
//! free state is not zero.

use std::collections::BTreeSet;

use raddle_world::{
    Access, AccessKind, ContextId, Event, LockMode, LockSource, LockedKind, Obtained, PageKey, Site,
};
use rustc_hash::FxHashMap;

use super::locks::{LockChange, LockChanges, Locks};

/// Words that are locks, as one run has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InferredLocks(BTreeSet<WordKey>);

impl InferredLocks {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their addresses.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(_, addr)| *addr)
    }
}

type WordKey = (PageKey, u64);

#[derive(Debug, Clone, Copy)]
struct Taken {
    context: ContextId,
    site: Site,
    step: u64,
    /// Whether a section was told when it was taken.
    is_told: bool,
    /// Another context has changed the word since.
    is_foreign: bool,
    /// The instruction of its context that may have given it up.
    given_up: Option<Site>,
}

#[derive(Debug, Default)]
struct Word {
    taken: Option<Taken>,
    is_lock: bool,
    is_refuted: bool,
    /// An instruction that has given it up.
    release: Option<Site>,
    last_taker: Option<Taker>,
}

/// The words of one run that locked instructions change.
#[derive(Debug, Default)]
pub(super) struct Words {
    of: FxHashMap<WordKey, Word>,
    /// Words that are locks from the beginning.
    known: InferredLocks,
}

/// Who last changed a word from zero by a locked instruction: the holder, if it is a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taker {
    pub context: ContextId,
    /// It has tried again since: it waits for itself.
    pub tries_again: bool,
}

impl Words {
    pub(super) fn knowing(locks: &InferredLocks) -> Self {
        Self {
            known: locks.clone(),
            ..Self::default()
        }
    }

    /// The words that were taken and given up.
    pub(super) fn locks(&self) -> InferredLocks {
        let is_lock = |(_, word): &(&WordKey, &Word)| word.is_lock && !word.is_refuted;
        InferredLocks(
            self.of
                .iter()
                .filter(is_lock)
                .map(|(key, _)| *key)
                .collect(),
        )
    }

    /// A new block of memory has no past.
    pub(super) fn forget(&mut self, addr: u64, size: u64) {
        if !self.of.is_empty() {
            let block = addr..addr.saturating_add(size);
            self.of.retain(|(_, word), _| !block.contains(word));
        }
    }

    /// Whether the word that an access touches is used as a lock, as far as is known.
    pub(super) fn is_lock(&self, access: &Access) -> bool {
        let word = self.of.get(&key(access));
        word.is_some_and(|word| !word.is_refuted && (word.is_lock || word.taken.is_some()))
    }

    /// Whether the word that an access touches was taken and given up, in this run or in one before.
    pub(super) fn was_lock(&self, access: &Access) -> bool {
        let key = key(access);
        let word = self.of.get(&key);
        word.map_or_else(
            || self.known.0.contains(&key),
            |word| word.is_lock && !word.is_refuted,
        )
    }

    pub(super) fn taker(&self, page: PageKey, addr: u64) -> Option<Taker> {
        self.of.get(&(page, addr))?.last_taker
    }

    /// An access to a location that synchronises. `kind` says what a locked instruction does.
    pub(super) fn access(
        &mut self,
        event: &Event,
        access: &Access,
        kind: &mut dyn FnMut() -> LockedKind,
        locks: &mut Locks,
    ) -> LockChanges {
        let Some(value) = access.value else {
            return [None; 2];
        };
        let value = value & low_bytes(access.size);
        let key = key(access);
        if access.how == AccessKind::Read && !self.of.contains_key(&key) {
            return [None; 2];
        }
        let known = &self.known;
        let word = self.of.entry(key).or_insert_with(|| Word {
            is_lock: known.0.contains(&key),
            ..Word::default()
        });
        if access.how.is_atomic() {
            word.note_taker(value, event.context);
        }
        if word.is_refuted {
            return [None; 2];
        }
        let seen = match access.how {
            AccessKind::Write => None,
            _ => word.see(value, access.addr, locks),
        };
        let done = match access.how {
            AccessKind::Read => None,
            AccessKind::Write => word.store(value, event, access.addr, locks),
            AccessKind::Update => word.refute(access.addr, locks),
            AccessKind::AtomicUpdate => match kind() {
                LockedKind::Arithmetic => word.refute(access.addr, locks),
                LockedKind::Unknown => None,
                kind if value == 0 => word.take(kind, event, access.addr, locks),
                kind => word.change(kind, event, access.addr, locks),
            },
        };
        [seen, done]
    }
}

impl Word {
    fn note_taker(&mut self, found: u64, context: ContextId) {
        if found == 0 {
            self.last_taker = Some(Taker {
                context,
                tries_again: false,
            });
        } else if let Some(taker) = &mut self.last_taker {
            taker.tries_again |= taker.context == context;
        }
    }

    /// A context finds a value in the word.
    fn see(&mut self, value: u64, lock: u64, locks: &mut Locks) -> Option<LockChange> {
        let taken = self.taken?;
        if value != 0 {
            // It was changed, but not to zero: it is still held.
            self.taken = Some(Taken {
                given_up: None,
                ..taken
            });
            return None;
        }
        self.taken = None;
        if let Some(site) = taken.given_up {
            self.release = Some(site);
            return self.end(taken, lock, locks);
        }
        // Another context has set it back.
        self.is_refuted |= taken.is_foreign;
        // Or it was never taken: a compare-exchange that found zero and expected something else.
        self.forget(taken, lock, locks)
    }

    /// An instruction finds zero, and probably leaves something else.
    fn take(
        &mut self,
        kind: LockedKind,
        event: &Event,
        lock: u64,
        locks: &mut Locks,
    ) -> Option<LockChange> {
        if kind == LockedKind::ClearBits {
            return None;
        }
        self.taken = Some(Taken {
            context: event.context,
            site: event.site,
            step: event.step,
            is_told: self.is_lock,
            is_foreign: false,
            given_up: None,
        });
        let obtained = obtained(self.taken.filter(|_| self.is_lock)?, lock);
        Some(LockChange::Obtained(locks.obtain(obtained)))
    }

    /// An instruction finds something else than zero.
    fn change(
        &mut self,
        kind: LockedKind,
        event: &Event,
        lock: u64,
        locks: &mut Locks,
    ) -> Option<LockChange> {
        let taken = self.taken.as_mut()?;
        if taken.context != event.context {
            // Waiters say so in the word; what else it may be is seen later.
            taken.is_foreign = true;
            return None;
        }
        if kind == LockedKind::SetBit {
            return None;
        }
        taken.given_up = Some(event.site);
        // The owner's own attempt to lock once more looks the same as a compare-exchange that unlocks.
        let is_certain = self.release == Some(event.site) || kind != LockedKind::CompareExchange;
        if !(self.is_lock && taken.is_told && is_certain) {
            return None;
        }
        taken.is_told = false;
        let section = locks.give_up(event.context, lock)?;
        self.taken = None;
        Some(LockChange::GivenUp(section))
    }

    fn store(
        &mut self,
        value: u64,
        event: &Event,
        lock: u64,
        locks: &mut Locks,
    ) -> Option<LockChange> {
        let taken = self.taken.take()?;
        if taken.context != event.context {
            self.is_refuted = true;
            return self.forget(taken, lock, locks);
        }
        if value != 0 {
            // As a flag that something was done once.
            return self.forget(taken, lock, locks);
        }
        self.end(taken, lock, locks)
    }

    /// A section is over.
    fn end(&mut self, taken: Taken, lock: u64, locks: &mut Locks) -> Option<LockChange> {
        self.is_lock = true;
        if taken.is_told {
            return Some(LockChange::GivenUp(locks.give_up(taken.context, lock)?));
        }
        let section = locks.obtain(obtained(taken, lock));
        locks.give_up(taken.context, lock);
        Some(LockChange::WasHeld(section))
    }

    fn refute(&mut self, lock: u64, locks: &mut Locks) -> Option<LockChange> {
        self.is_refuted = true;
        let taken = self.taken.take()?;
        self.forget(taken, lock, locks)
    }

    /// What was taken is no section, after all.
    fn forget(&self, taken: Taken, lock: u64, locks: &mut Locks) -> Option<LockChange> {
        let section = taken
            .is_told
            .then(|| locks.give_up(taken.context, lock))
            .flatten()?;
        Some(LockChange::GivenUp(section))
    }
}

fn obtained(taken: Taken, lock: u64) -> Obtained {
    Obtained {
        lock,
        mode: LockMode::Exclusive,
        source: LockSource::Inferred,
        context: taken.context,
        site: taken.site,
        step: taken.step,
    }
}

fn key(access: &Access) -> WordKey {
    (access.location.page, access.addr)
}

fn low_bytes(size: u8) -> u64 {
    u64::MAX
        .checked_shr(64_u32.saturating_sub(u32::from(size) * 8))
        .unwrap_or(0)
}
