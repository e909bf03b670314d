//! Data races by happens-before with epochs (FastTrack: Flanagan and Freund, PLDI 2009).
//!
//! Order comes from the facts of the run ([`Facts::knows`]): locks, conditions, semaphores, barriers, creation, joining,
//! and every location that a locked instruction ever touched. What it misses: variables in the same eight bytes that locked instructions touch
//! order as one, and an access that reaches from such a one into its neighbour races for neither. Plain stores that a
//! language calls atomic cannot be told apart here; the caller knows types and lines. A race whose second context had
//! read what the first one wrote later says so ([`HandOver`]).

use std::collections::BTreeMap;

use raddle_trace::facts::{MappedGranule, touched_bytes};
use raddle_trace::{Facts, Needs, Observation, Observer};
use raddle_world::{Access, AccessKind, ContextId, Event, EventKind, Site};
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
    /// Number of the set of locks that were held ([`Facts::locks`]).
    pub lockset: u32,
}

/// The detector for one run.
#[derive(Debug, Default)]
pub struct Races {
    shadows: FxHashMap<MappedGranule, Shadow>,
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

    /// An access to data in one granule.
    fn access(&mut self, event: &Event, access: &Access, facts: &Facts) {
        let writes = access.how.writes();
        let is_aside = matches!(event.kind, EventKind::Aside(_));
        if is_aside && !writes {
            return;
        }
        let bytes = touched_bytes(access);
        let now = self.epoch(event, access, facts);
        let knows = |old: &Epoch| facts.knows(event.context, old.side.context, old.clock);
        let is_other = |old: &Epoch| old.side.context != event.context;
        let races = |old: &Epoch| {
            let are_rivals = !(old.is_aside || now.is_aside);
            is_other(old) && are_rivals && old.mask & bytes != 0 && !knows(old)
        };
        let shadow = self.shadows.entry(MappedGranule::of(access)).or_default();
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
            let [reader, writer] = [event.context, old.side.context].map(|who| who.0 as usize);
            self.readings.note(reader, writer, old.number, by);
        }
    }

    /// An access as it is remembered.
    fn epoch(&mut self, event: &Event, access: &Access, facts: &Facts) -> Epoch {
        self.number += 1;
        Epoch {
            clock: facts.clock(),
            number: self.number,
            mask: touched_bytes(access),
            is_aside: matches!(event.kind, EventKind::Aside(_)),
            side: Side {
                context: event.context,
                step: event.step,
                site: event.site,
                writes: access.how.writes(),
                updates: access.how == AccessKind::Update,
                lockset: facts.lockset(event.context),
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
}

impl Observer for Races {
    fn needs(&self) -> Needs {
        Needs::of(Observation::Addresses)
    }

    fn event(&mut self, event: &Event, facts: &Facts) {
        match &event.kind {
            EventKind::Access(access) | EventKind::Aside(access) => {
                if access.is_in_one_granule() {
                    if facts.is_data() {
                        self.access(event, access, facts);
                    }
                } else {
                    for piece in facts.data(access) {
                        self.access(event, &piece, facts);
                    }
                }
            }
            // A new block of memory has no past.
            EventKind::Alloc { addr, size } => {
                for granule in facts.granules(*addr, *size) {
                    self.shadows.remove(&granule);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::READS_KEPT;
    use raddle_world::{Location, LockMode, PageKey};

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

    fn detect(events: &[Event]) -> Races {
        let (mut facts, mut detector) = (Facts::default(), Races::default());
        for event in events {
            facts.event(event);
            detector.event(event, &facts);
        }
        detector
    }

    fn races(events: &[Event]) -> usize {
        let detector = detect(events);
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
        let detector = detect(events);
        let told = detector.found.iter();
        told.map(|((a, b), race)| (a.pc(), b.pc(), race.handed_over.is_some()))
            .collect()
    }

    /// The same event by a context that is no other's rival any more.
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
