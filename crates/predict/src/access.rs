//! One access to memory, as far as it matters later.

use raddle_world::ContextId;

use crate::target::Spot;

/// A critical section that an access lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub lock: u64,
    /// Number among the critical sections of its context.
    pub serial: u64,
    /// Where it was entered.
    pub entry: Spot,
}

/// One access, as far as it matters later.
#[derive(Debug, Clone)]
pub struct Seen {
    pub context: ContextId,
    pub spot: Spot,
    pub reads: bool,
    pub writes: bool,
    /// What was read, if it is known.
    pub value: Option<u64>,
    /// What is there afterwards, if it writes and that is known.
    pub written: Option<u64>,
    /// What was there before, if it writes and that is known.
    pub overwritten: Option<u64>,
    /// The bytes of the granule that it touches, one bit each.
    pub bytes: u8,
    /// Whether the place is used by locked instructions: those synchronise, too.
    pub synchronises: bool,
    /// The counter of its context, for questions of order.
    pub clock: u32,
    /// Own steps of its context.
    pub step: u64,
    /// Number among all accesses of the run.
    pub number: u64,
    /// Oldest first.
    pub held: Vec<Held>,
    /// Locks of critical sections in which its context has written the place before, or will.
    pub own_before: Vec<u64>,
    pub own_after: Vec<u64>,
    /// The number of the write whose value it found, if there was one.
    pub from: Option<u64>,
    /// Whether no context had used the place before since the memory was handed out.
    pub is_first_use: bool,
    /// Accesses of others, by their index among those of the place, that no order puts before this one.
    pub concurrent: u64,
}

impl Seen {
    /// Whether both do the same in the eyes of a reader of the program.
    pub fn is_alike(&self, other: &Self) -> bool {
        let key = |seen: &Self| {
            (
                seen.context,
                seen.spot.site,
                seen.bytes,
                seen.reads,
                seen.writes,
            )
        };
        key(self) == key(other)
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.bytes & other.bytes != 0
    }

    /// The locks of critical sections that this access shares with another one of the same context.
    pub fn sections_with(&self, other: &Self) -> Vec<u64> {
        let is_shared = |section: &&Held| {
            let mut held = other.held.iter();
            held.any(|held| (held.lock, held.serial) == (section.lock, section.serial))
        };
        let shared = self.held.iter().filter(is_shared);
        shared.map(|section| section.lock).collect()
    }

    pub fn holds_one_of(&self, locks: &[u64]) -> bool {
        self.held.iter().any(|held| locks.contains(&held.lock))
    }

    /// Whether this access and another one of the same context lie in one critical section of a lock that a third holds.
    pub fn is_excluded_with(&self, other: &Self, third: &Self) -> bool {
        third.holds_one_of(&self.sections_with(other))
    }

    /// Where to hold a context before this access: before the outermost critical section whose lock another access needs.
    pub fn hold_before(&self, other: &[Held]) -> Spot {
        let is_needed = |section: &&Held| other.iter().any(|held| held.lock == section.lock);
        let section = self.held.iter().find(is_needed);
        section.map_or(self.spot, |section| section.entry)
    }
}
