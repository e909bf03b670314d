//! Data races by happens-before with epochs (FastTrack: Flanagan and Freund, PLDI 2009).
//!
//! Order comes from locks, conditions, semaphores, barriers, creation, joining, and from every location that a
//! locked instruction ever touched. What it misses: variables in the same eight bytes that locked instructions touch
//! order as one, and an access that reaches from such a one into its neighbour races for neither. Plain stores that a
//! language calls atomic cannot be told apart here; the caller knows types and lines. A race whose second context had
//! read what the first one wrote later says so ([`HandOver`]).

use std::collections::BTreeMap;

use raddle_stdx::width::{low_u32, to_u64};
use raddle_trace::VectorClock;
use raddle_world::{
    Access, AccessKind, ContextId, Event, EventKind, GRANULE_BYTES, Location, PageKey, Site,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::reading::{HandOver, Readings};
use crate::shadow::{Epoch, Shadow};

/// Two conflicting accesses that nothing orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Race {
    pub addr: u64,
    pub size: u8,
    pub first: Side,
    pub second: Side,
    /// The plain store and load that order the two in this run.
    pub handed_over: Option<HandOver>,
}

/// One of the two accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Side {
    pub context: ContextId,
    pub step: u64,
    pub site: Site,
    pub writes: bool,
    /// It reads and writes: counting, setting bits.
    pub updates: bool,
    /// Number of the set of locks that were held ([`Races::locks`]).
    pub lockset: u32,
}

/// What locked instructions touched of eight bytes.
#[derive(Debug, Default)]
struct Atomic {
    mask: u8,
    clock: VectorClock,
}

/// What is known of a context.
#[derive(Debug, Default)]
struct Known {
    clock: VectorClock,
    /// Its own counter in all clocks.
    slot: usize,
    /// Locks that it holds, and the number of that set once somebody asked.
    held: Vec<u64>,
    lockset: Option<u32>,
    has_ended: bool,
}

impl Known {
    /// Its own counter.
    fn own(&self) -> u32 {
        self.clock.get(self.slot)
    }

    fn tick(&mut self) {
        self.clock.tick(self.slot);
    }
}

/// The detector for one run.
#[derive(Debug, Default)]
pub struct Races {
    contexts: Vec<Known>,
    /// Counters that contexts have had so far, and those of ended contexts. Whoever is created knows what all the
    /// ended ones knew, so it may go on counting where one of them stopped: clocks are as long as many contexts live
    /// at a time.
    slots: usize,
    free_slots: Vec<usize>,
    objects: FxHashMap<u64, VectorClock>,
    atomics: FxHashMap<MappedGranule, Atomic>,
    shadows: FxHashMap<MappedGranule, Shadow>,
    /// The page of memory at each virtual page that was touched, for allocations.
    pages: FxHashMap<u64, PageKey>,
    /// Everything that ended contexts knew: a stack or a thread structure may be used again.
    ended: VectorClock,
    /// The sets that were seen, and their numbers.
    locksets: Vec<Vec<u64>>,
    lockset_numbers: FxHashMap<Vec<u64>, u32>,
    /// Accesses so far.
    number: u64,
    readings: Readings,
    /// One race for each pair of instructions; one that nothing orders at all before one that is handed over.
    found: BTreeMap<(Site, Site), Race>,
}

impl Races {
    /// The races so far, by pair of instructions.
    pub fn found(&self) -> impl Iterator<Item = &Race> {
        self.found.values()
    }

    /// The race of a pair of instructions, the lower one first.
    pub fn of_pair(&self, pair: (Site, Site)) -> Option<&Race> {
        self.found.get(&pair)
    }

    /// The locks of a set.
    pub fn locks(&self, set: u32) -> &[u64] {
        self.locksets
            .get(set as usize)
            .map_or(&[], |locks| locks.as_slice())
    }

    /// From now on every access to this place orders, as those of locked instructions do.
    pub fn mark_atomic(&mut self, access: &Access) {
        for piece in access.pieces() {
            self.atomic(&piece);
        }
    }

    /// A place that orders.
    fn atomic(&mut self, access: &Access) -> &mut Atomic {
        let key = MappedGranule::new(access.location.page, access.addr);
        let atomic = self.atomics.entry(key).or_default();
        atomic.mask |= mask(access.location, access.size);
        atomic
    }

    pub fn event(&mut self, event: &Event) {
        let who = event.context.0 as usize;
        self.know(who);
        self.note_lock(event);
        match event.kind {
            EventKind::Access(access) | EventKind::Aside(access) if access.how.is_atomic() => {
                for piece in access.pieces() {
                    // Taken out, because the place is looked up in the same structure.
                    let mut clock = std::mem::take(&mut self.contexts[who].clock);
                    exchange(&mut clock, &mut self.atomic(&piece).clock);
                    self.contexts[who].clock = clock;
                }
                self.contexts[who].tick();
            }
            EventKind::Access(access) | EventKind::Aside(access) if access.is_in_one_granule() => {
                self.access(event, &access);
            }
            EventKind::Access(access) | EventKind::Aside(access) => {
                for piece in access.pieces() {
                    self.access(event, &piece);
                }
            }
            EventKind::Alloc { addr, size } => self.forget(addr, size),
            _ => self.order(event),
        }
    }

    fn note_lock(&mut self, event: &Event) {
        let known = &mut self.contexts[event.context.0 as usize];
        match event.kind {
            EventKind::Acquire { object, .. } => known.held.push(object),
            EventKind::Release { object, .. } => {
                if let Some(index) = known.held.iter().rposition(|lock| *lock == object) {
                    known.held.remove(index);
                }
            }
            _ => return,
        }
        known.lockset = None;
    }

    /// The number of the set of locks that a context holds.
    fn lockset(&mut self, who: usize) -> u32 {
        let Known { held, lockset, .. } = &mut self.contexts[who];
        *lockset.get_or_insert_with(|| {
            if let Some(number) = self.lockset_numbers.get(held) {
                return *number;
            }
            let number = low_u32(to_u64(self.locksets.len()));
            self.locksets.push(held.clone());
            self.lockset_numbers.insert(held.clone(), number);
            number
        })
    }

    fn order(&mut self, event: &Event) {
        let who = event.context.0 as usize;
        match event.kind {
            EventKind::Acquire { object, .. }
            | EventKind::Obtain { object }
            | EventKind::BarrierLeave { object } => {
                if let Some(clock) = self.objects.get(&object) {
                    self.contexts[who].clock.join(clock);
                }
            }
            EventKind::Release { object, .. }
            | EventKind::Notify { object, .. }
            | EventKind::BarrierEnter { object } => {
                self.objects
                    .entry(object)
                    .or_default()
                    .join(&self.contexts[who].clock);
                self.contexts[who].tick();
            }
            EventKind::Publish { object } => {
                let known = &mut self.contexts[who];
                self.objects.entry(object).or_default().join(&known.clock);
                // The end of a process is told by a thread that is no more, whose counter may be another's.
                if !known.has_ended {
                    known.tick();
                }
            }
            // One-time initialisation ends for the first caller and for all that come later.
            EventKind::WaitEnd { object } => {
                let clock = self.objects.entry(object).or_default();
                exchange(&mut self.contexts[who].clock, clock);
                self.contexts[who].tick();
            }
            EventKind::Create { child } => {
                let child = child.0 as usize;
                self.know(child);
                let parent = self.contexts[who].clock.clone();
                let known = &mut self.contexts[child];
                known.clock.join(&parent);
                known.clock.join(&self.ended);
                known.tick();
                self.contexts[who].tick();
            }
            EventKind::Join { child } => {
                let child = child.0 as usize;
                self.know(child);
                let known = &mut self.contexts[child];
                // Who has ended says nothing more, and what it knew is needed once.
                let clock = if known.has_ended {
                    std::mem::take(&mut known.clock)
                } else {
                    known.clock.clone()
                };
                self.contexts[who].clock.join(&clock);
            }
            EventKind::Exit => {
                let known = &mut self.contexts[who];
                known.has_ended = true;
                self.ended.join(&known.clock);
                self.free_slots.push(known.slot);
            }
            _ => {}
        }
    }

    fn know(&mut self, who: usize) {
        while self.contexts.len() <= who {
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            let mut known = Known {
                slot,
                ..Known::default()
            };
            // Even one that nobody created comes after whoever had its counter before.
            known.clock.join(&self.ended);
            known.tick();
            self.contexts.push(known);
        }
    }

    /// An access to one place.
    fn access(&mut self, event: &Event, access: &Access) {
        let writes = access.how.writes();
        let who = event.context.0 as usize;
        let key = MappedGranule::new(access.location.page, access.addr);
        self.pages.insert(access.addr >> 12, access.location.page);
        let bytes = mask(access.location, access.size);
        if let Some(atomic) = self.atomics.get_mut(&key)
            && atomic.mask & bytes != 0
        {
            if writes {
                atomic.clock.join(&self.contexts[who].clock);
                self.contexts[who].tick();
            } else {
                self.contexts[who].clock.join(&atomic.clock);
            }
            return;
        }
        if matches!(event.kind, EventKind::Aside(_)) && !writes {
            return;
        }
        let now = self.epoch(event, access);
        let contexts = &self.contexts;
        let clock = &contexts[who].clock;
        let knows =
            |old: &Epoch| clock.get(contexts[old.side.context.0 as usize].slot) >= old.clock;
        let is_other = |old: &Epoch| old.side.context != event.context;
        let races = |old: &Epoch| {
            let are_rivals = !(old.is_aside || now.is_aside);
            is_other(old) && are_rivals && old.mask & bytes != 0 && !knows(old)
        };
        let shadow = self.shadows.entry(key).or_default();
        let mut partner = shadow.find_write(races);
        // What is read, and who wrote it, if it is another one and all of it.
        let mut seen = None;
        if access.how != AccessKind::Write {
            seen = shadow.find_write(|old| is_other(old) && bytes & !old.mask == 0);
        }
        if writes {
            partner = partner.or_else(|| shadow.find_read(races));
            shadow.write(now);
        } else {
            shadow.read(now, knows);
        }
        if let Some(old) = partner {
            self.note_race(&old, &now, access);
        }
        if let Some(old) = seen {
            let by = HandOver {
                store: old.side.site,
                load: event.site,
            };
            let writer = old.side.context.0 as usize;
            self.readings.note(who, writer, old.number, by);
        }
    }

    /// An access as it is remembered.
    fn epoch(&mut self, event: &Event, access: &Access) -> Epoch {
        let who = event.context.0 as usize;
        let lockset = self.lockset(who);
        self.number += 1;
        Epoch {
            clock: self.contexts[who].own(),
            number: self.number,
            mask: mask(access.location, access.size),
            is_aside: matches!(event.kind, EventKind::Aside(_)),
            side: Side {
                context: event.context,
                step: event.step,
                site: event.site,
                writes: access.how.writes(),
                updates: access.how == AccessKind::Update,
                lockset,
            },
        }
    }

    fn note_race(&mut self, old: &Epoch, now: &Epoch, access: &Access) {
        let (first, second) = (old.side, now.side);
        let [writer, reader] = [first, second].map(|side| side.context.0 as usize);
        let race = Race {
            addr: access.addr,
            size: access.size,
            first,
            second,
            handed_over: self.readings.after(reader, writer, old.number),
        };
        let pair = (first.site.min(second.site), first.site.max(second.site));
        let known = self.found.entry(pair).or_insert(race);
        if known.handed_over.is_some() && race.handed_over.is_none() {
            *known = race;
        }
    }

    /// A new block of memory has no past.
    fn forget(&mut self, addr: u64, size: u64) {
        let end = addr.saturating_add(size.min(1 << 20));
        let mut at = addr & !7;
        while at < end {
            if let Some(page) = self.pages.get(&(at >> 12)) {
                let key = MappedGranule::new(*page, at);
                self.shadows.remove(&key);
                self.atomics.remove(&key);
            }
            at += 8;
        }
    }
}

fn exchange(mine: &mut VectorClock, theirs: &mut VectorClock) {
    mine.join(theirs);
    theirs.join(mine);
}

/// A granule of memory at a virtual address: a frame that was given back and is used elsewhere is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MappedGranule {
    page: PageKey,
    /// Virtual address in units of granules.
    at: u64,
}

impl MappedGranule {
    #[inline]
    fn new(page: PageKey, addr: u64) -> Self {
        let at = addr / u64::from(GRANULE_BYTES);
        Self { page, at }
    }
}

/// The bytes of the granule that an access touches.
fn mask(location: Location, size: u8) -> u8 {
    let first = u32::from(location.offset & 7);
    let ones = if size >= 8 { 0xFF } else { (1_u8 << size) - 1 };
    ones.checked_shl(first).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::READS_KEPT;
    use raddle_world::{AccessKind, LockMode};

    fn event(context: u32, pc: u64, kind: EventKind) -> Event {
        Event {
            context: ContextId(context),
            step: pc,
            site: Site::first(pc),
            kind,
        }
    }

    fn access(context: u32, pc: u64, how: AccessKind, offset: u16) -> Event {
        let kind = EventKind::Access(Access {
            how,
            size: 4,
            location: Location::shared(3, offset),
            addr: 0x3000 + u64::from(offset),
            value: None,
        });
        event(context, pc, kind)
    }

    fn write(context: u32, pc: u64) -> Event {
        access(context, pc, AccessKind::Write, 16)
    }

    fn lock(context: u32, takes: bool) -> Event {
        let (object, mode) = (7, LockMode::Exclusive);
        let kind = if takes {
            EventKind::Acquire { object, mode }
        } else {
            EventKind::Release { object, mode }
        };
        event(context, 1, kind)
    }

    fn races(events: &[Event]) -> usize {
        let mut detector = Races::default();
        events.iter().for_each(|event| detector.event(event));
        detector.found().count()
    }

    #[test]
    fn what_two_processes_have_for_themselves_or_in_frames_far_apart_does_not_race() {
        let at = |context, pc, page| {
            let mut event = write(context, pc);
            if let EventKind::Access(access) = &mut event.kind {
                access.location.page = page;
            }
            event
        };
        let (own, other) = (PageKey::private(3, 3), PageKey::private(4, 3));
        assert_eq!(races(&[at(0, 10, own), at(1, 20, own)]), 1);
        assert_eq!(races(&[at(0, 10, own), at(1, 20, other)]), 0);
        let far = PageKey::shared(3 | 1 << 20);
        assert_eq!(races(&[write(0, 10), at(1, 20, far)]), 0);
    }

    #[test]
    fn unordered_writes_race_and_locked_ones_do_not() {
        assert_eq!(races(&[write(0, 10), write(1, 20)]), 1);
        assert_eq!(
            races(&[
                lock(0, true),
                write(0, 10),
                lock(0, false),
                lock(1, true),
                write(1, 20),
                lock(1, false)
            ]),
            0
        );
    }

    #[test]
    fn variables_in_the_same_eight_bytes_are_their_own() {
        let (read, write, update) = (
            AccessKind::Read,
            AccessKind::Write,
            AccessKind::AtomicUpdate,
        );
        let data = |context, pc, how| access(context, pc, how, 16);
        let flag = |context, pc, how| access(context, pc, how, 20);
        assert_eq!(races(&[data(0, 10, write), flag(1, 20, write)]), 0);
        assert_eq!(
            races(&[data(0, 10, write), flag(0, 11, write), data(1, 20, read)]),
            1,
            "a write beside it"
        );
        assert_eq!(
            races(&[data(0, 10, read), flag(0, 11, write), data(1, 20, write)]),
            1,
            "a write beside what was read"
        );
        assert_eq!(
            races(&[data(0, 10, read), flag(0, 11, read), data(1, 20, write)]),
            1,
            "a read beside it"
        );
        assert_eq!(
            races(&[flag(2, 5, update), data(0, 10, write), data(1, 20, write)]),
            1,
            "a locked instruction beside it"
        );
        let ordered = [
            data(0, 10, write),
            flag(0, 11, update),
            flag(1, 20, update),
            data(1, 21, write),
        ];
        assert_eq!(races(&ordered), 0);
    }

    #[test]
    fn creation_and_joining_order() {
        let child = ContextId(1);
        assert_eq!(
            races(&[
                write(0, 10),
                event(0, 1, EventKind::Create { child }),
                write(1, 20),
                event(0, 1, EventKind::Join { child }),
                write(0, 30)
            ]),
            0
        );
        assert_eq!(
            races(&[
                event(0, 1, EventKind::Create { child }),
                write(0, 10),
                write(1, 20)
            ]),
            1
        );
    }

    #[test]
    fn a_counter_that_is_used_again_confuses_nobody() {
        let create = |child| {
            event(
                0,
                1,
                EventKind::Create {
                    child: ContextId(child),
                },
            )
        };
        let exit = |context| event(context, 1, EventKind::Exit);
        let begin = [create(1), write(1, 10), exit(1), create(2)];
        let then = |rest: &[Event]| races(&[&begin, rest].concat());
        assert_eq!(
            then(&[write(2, 20)]),
            0,
            "it was created after the first had ended"
        );
        assert_eq!(then(&[write(0, 30)]), 1, "nobody has waited for the first");
        assert_eq!(then(&[write(2, 20), write(0, 30)]), 1);
        let join = event(
            0,
            1,
            EventKind::Join {
                child: ContextId(1),
            },
        );
        assert_eq!(then(&[join.clone(), write(0, 30)]), 0);
        assert_eq!(then(&[join, write(2, 20), write(0, 30)]), 1);
    }

    #[test]
    fn of_many_reads_those_that_can_race_are_remembered() {
        let read = |context: u32| access(context, 100 + u64::from(context), AccessKind::Read, 16);
        let in_turn = |context| [lock(context, true), read(context), lock(context, false)];
        let readers = 2 * u32::try_from(READS_KEPT).unwrap();
        let mut events: Vec<Event> = (1..readers).flat_map(in_turn).collect();
        events.push(read(readers));
        let with = |rest: &[Event]| races(&[events.as_slice(), rest].concat());
        assert_eq!(with(&[write(0, 10)]), 1);
        assert_eq!(
            with(&[lock(0, true), write(0, 10)]),
            1,
            "the last one took no lock"
        );
        let last_too = [lock(readers, true), lock(readers, false), lock(0, true)];
        assert_eq!(with(&[last_too.as_slice(), &[write(0, 10)]].concat()), 0);
    }

    /// Whether each race is one that a plain store and load order, by pair of instructions.
    fn handed_over(events: &[Event]) -> Vec<(u64, u64, bool)> {
        let mut detector = Races::default();
        events.iter().for_each(|event| detector.event(event));
        let told = detector.found.iter();
        told.map(|((a, b), race)| (a.pc(), b.pc(), race.handed_over.is_some()))
            .collect()
    }

    /// The same event by somebody who is nobody's rival any more.
    fn aside(event: Event) -> Event {
        let EventKind::Access(access) = event.kind else {
            panic!("an access");
        };
        Event {
            kind: EventKind::Aside(access),
            ..event
        }
    }

    #[test]
    fn who_is_nobodys_rival_still_orders_and_overwrites() {
        let update = |context| access(context, 5, AccessKind::AtomicUpdate, 64);
        assert_eq!(races(&[write(0, 10), aside(write(1, 20))]), 0);
        assert_eq!(races(&[write(0, 10), aside(write(0, 11)), write(1, 20)]), 0);
        assert_eq!(
            races(&[write(0, 10), aside(update(0)), update(1), write(1, 20)]),
            0
        );
        // A reader that is no rival takes nothing from a race.
        let read = |context, pc| access(context, pc, AccessKind::Read, 16);
        assert_eq!(races(&[read(0, 10), aside(read(0, 11)), write(1, 20)]), 1);
    }

    #[test]
    fn what_is_written_before_a_flag_is_handed_over_by_it() {
        let flag = |context, pc, how| access(context, pc, how, 64);
        let (store, load) = (AccessKind::Write, AccessKind::Read);
        assert_eq!(
            handed_over(&[
                write(0, 10),
                flag(0, 11, store),
                flag(1, 20, load),
                write(1, 21)
            ]),
            [(10, 21, true), (11, 20, false)]
        );
        // The flag is set too early.
        assert_eq!(
            handed_over(&[
                flag(0, 11, store),
                write(0, 10),
                flag(1, 20, load),
                write(1, 21)
            ]),
            [(10, 21, false), (11, 20, false)]
        );
        // The flag is looked at and not obeyed: one run in which it does not help is enough.
        assert_eq!(
            handed_over(&[
                write(0, 10),
                flag(0, 11, store),
                flag(1, 20, load),
                write(1, 21),
                write(0, 10)
            ]),
            [(10, 21, false), (11, 20, false)]
        );
    }
}
