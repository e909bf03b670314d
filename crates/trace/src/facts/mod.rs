//! What the events of a run mean, found out once and shared by everyone who looks at the run.
//!
//! ```text
//!   World ──events──▶ Facts ──┬──▶ races        (happens before, sets of locks)
//!                             ├──▶ predictors   (order without exclusion, critical sections)
//!                             ├──▶ the teller   (locks held at each step)
//!                             └──▶ the log
//! ```
//! Reading order: [`Facts`], then `clocks` (who comes after what), `places` (locations that synchronise), `inferred`
//! (locks without a function), `allocation`.

mod allocation;
mod clocks;
mod flags;
mod inferred;
mod locks;
mod places;
#[cfg(test)]
mod tests;

use raddle_world::{
    Access, ContextId, Event, EventKind, Location, LockSource, LockedKind, Obtained, Section, Site,
};
use rustc_hash::FxHashMap;

pub use allocation::{Allocation, Allocations, Within};
pub use inferred::{InferredLocks, Taker};
pub use locks::LockChange;
pub use places::{MappedGranule, touched_bytes};

use clocks::Clocks;
use flags::Flags;
use inferred::Words;
use locks::{LockChanges, Locks};
use places::Places;

/// The facts of one run so far. They are told each event before anybody else is.
#[derive(Debug, Default)]
pub struct Facts {
    clocks: Clocks,
    locks: Locks,
    places: Places,
    allocations: Allocations,
    words: Words,
    flags: Flags,
    /// What locked instructions do.
    instructions: FxHashMap<Site, LockedKind>,
    creations: Vec<Option<Creation>>,
    now: Now,
}

/// Who created a context, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    pub by: ContextId,
    pub site: Site,
    pub step: u64,
}

/// What is known of the event that was told last.
#[derive(Debug, Default)]
struct Now {
    /// The own counter of its context when it began.
    clock: u32,
    /// The granules of an access that synchronise, one bit each.
    synchronising: u64,
    lock_changes: LockChanges,
    /// What its instruction does, if this is the first question.
    new_instruction: Option<LockedKind>,
}

impl Now {
    /// Another event begins. What most events say nothing of is left as it is then.
    #[inline]
    fn begin(&mut self, clock: u32) {
        self.clock = clock;
        self.synchronising = 0;
        if self.lock_changes.iter().any(Option::is_some) || self.new_instruction.is_some() {
            self.lock_changes = [None; 2];
            self.new_instruction = None;
        }
    }
}

impl Facts {
    /// The facts of a run whose locks without a function are known from another run.
    pub fn knowing(locks: &InferredLocks) -> Self {
        Self {
            words: Words::knowing(locks),
            ..Self::default()
        }
    }

    /// The same facts, in which a condition does not order: a context that waits for one holds a lock, and in another schedule
    /// what it waits for may have happened before. For those who predict other schedules.
    #[must_use]
    pub fn with_conditions_that_exclude(mut self) -> Self {
        self.clocks.let_conditions_exclude();
        self
    }

    /// The same facts, where these blocks were allocated before the run began: address and size.
    #[must_use]
    pub fn with_blocks(mut self, blocks: impl IntoIterator<Item = (u64, u64)>) -> Self {
        for (addr, size) in blocks {
            self.allocations.existed(addr, size);
        }
        self
    }

    /// Takes in an event; locks without a function stay unknown.
    pub fn event(&mut self, event: &Event) {
        self.event_with(event, &mut |_| LockedKind::Unknown);
    }

    /// Takes in an event; `code` says what a locked instruction of its context does.
    pub fn event_with(&mut self, event: &Event, code: &mut dyn FnMut(Site) -> LockedKind) {
        let who = event.context;
        self.clocks.know(who);
        self.now.begin(self.clocks.own(who));
        match &event.kind {
            EventKind::Access(access) | EventKind::Aside(access) => {
                self.access(event, access, code);
            }
            EventKind::Alloc { addr, size } => {
                self.places.forget(*addr, *size);
                self.words.forget(*addr, *size);
                self.allocations.allocate(who, event.site, *addr, *size);
            }
            EventKind::Free { addr } => self.allocations.free(who, event.site, *addr),
            kind => {
                self.note_lock(event);
                self.note_creation(event);
                self.clocks.event(who, kind);
            }
        }
    }

    #[inline]
    fn access(&mut self, event: &Event, access: &Access, code: &mut dyn FnMut(Site) -> LockedKind) {
        let who = event.context;
        if access.how.is_atomic() {
            for piece in access.pieces() {
                self.places.update(&mut self.clocks, who, &piece);
            }
            self.clocks.advance(who);
            self.now.synchronising = u64::MAX;
        } else if access.is_in_one_granule() {
            let synchronises = self.places.touch(&mut self.clocks, who, access);
            self.now.synchronising = u64::from(synchronises);
        } else {
            for (number, piece) in access.pieces().enumerate() {
                let synchronises = self.places.touch(&mut self.clocks, who, &piece);
                self.now.synchronising |= u64::from(synchronises) << number;
            }
        }
        if self.now.synchronising & 1 != 0 && access.value.is_some() {
            self.note_flag(event, access);
            let new = &mut self.now.new_instruction;
            let instructions = &mut self.instructions;
            let mut kind = || {
                if let Some(kind) = instructions.get(&event.site) {
                    return *kind;
                }
                let kind = code(event.site);
                // Whose memory could not be read this time may be asked again.
                if kind != LockedKind::Unknown {
                    instructions.insert(event.site, kind);
                    *new = Some(kind);
                }
                kind
            };
            self.now.lock_changes = self.words.access(event, access, &mut kind, &mut self.locks);
        }
    }

    /// A context that has waited for a flag in a loop is ordered behind the one that set it.
    fn note_flag(&mut self, event: &Event, access: &Access) {
        let who = event.context;
        if access.how.writes() {
            let at = (who, self.now.clock);
            self.places.set_flag(&self.clocks, at, access);
        } else if self.flags.ends_wait(who, event.site, access) && !self.words.is_lock(access) {
            self.places.see_flag(&mut self.clocks, who, access);
        }
    }

    fn note_lock(&mut self, event: &Event) {
        match event.kind {
            EventKind::Acquire { object, mode } => {
                let section = self.locks.obtain(Obtained {
                    lock: object,
                    mode,
                    source: LockSource::Function,
                    context: event.context,
                    site: event.site,
                    step: event.step,
                });
                self.now.lock_changes[1] = Some(LockChange::Obtained(section));
            }
            EventKind::Release { object, .. } => {
                let section = self.locks.give_up(event.context, object);
                self.now.lock_changes[1] = section.map(LockChange::GivenUp);
            }
            _ => {}
        }
    }

    fn note_creation(&mut self, event: &Event) {
        if let EventKind::Create { child } = event.kind {
            let index = child.0 as usize;
            if self.creations.len() <= index {
                self.creations.resize(index + 1, None);
            }
            self.creations[index] = Some(Creation {
                by: event.context,
                site: event.site,
                step: event.step,
            });
        }
    }

    /// From now on every access to these bytes orders, as those of locked instructions do.
    pub fn mark_atomic(&mut self, access: &Access) {
        self.places.mark(access);
    }

    /// The parts of the access that was told last which are data, by granule.
    #[inline]
    pub fn data(&self, access: &Access) -> impl Iterator<Item = Access> {
        let synchronising = self.now.synchronising;
        let pieces = access.pieces().enumerate();
        pieces
            .filter(move |(number, _)| synchronising >> number & 1 == 0)
            .map(|(_, piece)| piece)
    }

    /// Whether no part of the access that was told last synchronises.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.now.synchronising == 0
    }

    /// Whether the word that an access touches was used as a lock: taken and given up, in this run or in one before.
    pub fn was_lock(&self, access: &Access) -> bool {
        self.words.was_lock(access)
    }

    /// What the locked instruction of the event that was told last does, the first time that an observer asks.
    pub fn new_instruction(&self) -> Option<LockedKind> {
        self.now.new_instruction
    }

    /// What the event that was told last says of locks.
    pub fn lock_changes(&self) -> impl Iterator<Item = LockChange> {
        self.now.lock_changes.into_iter().flatten()
    }

    /// The counter of its context when the event that was told last happened.
    #[inline]
    pub fn clock(&self) -> u32 {
        self.now.clock
    }

    /// Whether what another context did at its counter `clock` happens before what `who` does now. Both have had an
    /// event.
    #[inline]
    pub fn knows(&self, who: ContextId, other: ContextId, clock: u32) -> bool {
        self.clocks.knows(who, other, clock)
    }

    /// The same by order alone, without mutual exclusion: in every schedule with the same hand-overs.
    pub fn is_ordered(&self, who: ContextId, other: ContextId, clock: u32) -> bool {
        self.clocks.is_ordered(who, other, clock)
    }

    /// The critical sections that a context is in, oldest first.
    pub fn held(&self, who: ContextId) -> &[Section] {
        self.locks.held(who)
    }

    /// The number of the set of locks that a context holds.
    #[inline]
    pub fn lockset(&self, who: ContextId) -> u32 {
        self.locks.set_number(who)
    }

    /// The locks of a set, oldest first.
    pub fn locks(&self, lockset: u32) -> &[u64] {
        self.locks.set(lockset)
    }

    /// The words that were used as locks so far.
    pub fn inferred_locks(&self) -> InferredLocks {
        self.words.locks()
    }

    /// Who last changed a word from zero by a locked instruction; none if values were not observed.
    pub fn taker(&self, location: Location, addr: u64) -> Option<Taker> {
        self.words.taker(location.page, addr)
    }

    /// The allocation that an address belongs to, or did until it was freed.
    pub fn allocation_at(&self, addr: u64) -> Option<Within<'_>> {
        self.allocations.at(addr)
    }

    /// The granules of a block of memory, as far as they were touched.
    pub fn granules(&self, addr: u64, size: u64) -> impl Iterator<Item = MappedGranule> {
        self.places.granules(addr, size)
    }

    /// Who created a context; none for the first one.
    pub fn creation(&self, of: ContextId) -> Option<Creation> {
        *self.creations.get(of.0 as usize)?
    }
}
