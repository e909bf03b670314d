//! The locks that one context holds, each with the critical section that began when it was obtained.

use crate::context::ContextId;
use crate::event::LockMode;
use crate::site::Site;

/// How it is known that a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockSource {
    /// A function that is known to lock has returned.
    Function,
    /// A word in memory was used as locks are.
    Inferred,
}

/// A critical section: from obtaining a lock until it is given up. Its context and its serial number name it, in every
/// schedule in which the context does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Section {
    /// Address of the lock.
    pub lock: u64,
    pub mode: LockMode,
    pub source: LockSource,
    /// Who obtained it.
    pub context: ContextId,
    /// Number among the critical sections of this context, from 1.
    pub serial: u64,
    /// The instruction that obtained it, and the context's step count then.
    pub site: Site,
    pub step: u64,
}

/// A lock that was obtained just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obtained {
    pub lock: u64,
    pub mode: LockMode,
    pub source: LockSource,
    pub context: ContextId,
    pub site: Site,
    pub step: u64,
}

/// The locks that one context holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldLocks {
    /// Oldest first.
    sections: Vec<Section>,
    /// Critical sections so far.
    begun: u64,
}

impl HeldLocks {
    /// A lock is obtained; one that is held already is held twice from now on.
    pub fn obtain(&mut self, obtained: Obtained) -> Section {
        let Obtained {
            lock,
            mode,
            source,
            context,
            site,
            step,
        } = obtained;
        self.begun += 1;
        let section = Section {
            lock,
            mode,
            source,
            context,
            serial: self.begun,
            site,
            step,
        };
        self.sections.push(section);
        section
    }

    /// A lock is given up: the latest critical section of it ends.
    pub fn give_up(&mut self, lock: u64) -> Option<Section> {
        let held = self.sections.iter();
        let index = held.clone().rposition(|section| section.lock == lock)?;
        Some(self.sections.remove(index))
    }

    /// The latest critical section of a lock.
    pub fn section_of(&self, lock: u64) -> Option<&Section> {
        self.sections.iter().rfind(|section| section.lock == lock)
    }

    /// The critical sections that the context is in, oldest first.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Whether the lock is held in a way that keeps others from having it in this mode.
    pub fn keeps_out(&self, lock: u64, mode: LockMode) -> bool {
        let is_in_the_way = |section: &Section| {
            section.lock == lock
                && (mode == LockMode::Exclusive || section.mode == LockMode::Exclusive)
        };
        self.sections.iter().any(is_in_the_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obtained(lock: u64, mode: LockMode, step: u64) -> Obtained {
        Obtained {
            lock,
            mode,
            source: LockSource::Function,
            context: ContextId(3),
            site: Site::first(0x40),
            step,
        }
    }

    #[test]
    fn the_same_lock_again_is_another_section() {
        let mut held = HeldLocks::default();
        let first = held.obtain(obtained(7, LockMode::Exclusive, 10));
        assert_eq!(held.give_up(7), Some(first));
        let second = held.obtain(obtained(7, LockMode::Exclusive, 20));
        assert_eq!((first.serial, second.serial), (1, 2));
        assert_eq!(held.give_up(8), None);
        assert_eq!(held.sections(), [second]);
    }

    #[test]
    fn a_lock_that_is_held_twice_is_given_up_twice_inner_first() {
        let mut held = HeldLocks::default();
        held.obtain(obtained(7, LockMode::Exclusive, 10));
        held.obtain(obtained(8, LockMode::Exclusive, 11));
        let inner = held.obtain(obtained(7, LockMode::Exclusive, 12));
        assert_eq!(held.section_of(7), Some(&inner));
        assert_eq!(held.give_up(7), Some(inner));
        let locks: Vec<u64> = held.sections().iter().map(|held| held.lock).collect();
        assert_eq!(locks, [7, 8]);
    }

    #[test]
    fn readers_keep_out_writers_only() {
        let mut held = HeldLocks::default();
        held.obtain(obtained(7, LockMode::Shared, 10));
        assert!(held.keeps_out(7, LockMode::Exclusive));
        assert!(!held.keeps_out(7, LockMode::Shared));
        assert!(!held.keeps_out(8, LockMode::Exclusive));
    }
}
