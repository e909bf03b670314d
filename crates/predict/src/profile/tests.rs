//! What could come between, by hand-written runs.

use raddle_world::{Location, LockMode};

use super::*;
use crate::target::Forced;
use crate::unserializable::Case;

const LOCK: u64 = 0x9000;
const X: u64 = 0x5000;

struct Script {
    facts: Facts,
    profile: Profile,
    steps: u64,
}

impl Script {
    fn new() -> Self {
        let mut script = Self {
            facts: Facts::default(),
            profile: Profile::default(),
            steps: 0,
        };
        for child in [1, 2] {
            let child = ContextId(child);
            script.event(0, 0, EventKind::Create { child });
        }
        script
    }

    fn event(&mut self, context: u32, pc: u64, kind: EventKind) {
        self.steps += 1;
        let event = Event {
            context: ContextId(context),
            step: self.steps,
            site: Site::first(pc),
            kind,
        };
        self.facts.event(&event);
        self.profile.event(&event, &self.facts);
    }

    fn access(&mut self, context: u32, pc: u64, how: AccessKind, value: u64) {
        let access = Access {
            how,
            size: 8,
            location: Location::shared(5, 0),
            addr: X,
            value: Some(value),
        };
        self.event(context, pc, EventKind::Access(access));
    }

    fn lock(&mut self, context: u32, pc: u64) {
        let mode = LockMode::Exclusive;
        let object = LOCK;
        self.event(context, pc, EventKind::Acquire { object, mode });
    }

    fn unlock(&mut self, context: u32, pc: u64) {
        let mode = LockMode::Exclusive;
        let object = LOCK;
        self.event(context, pc, EventKind::Release { object, mode });
    }

    fn found(mut self) -> Vec<(Kind, Forced)> {
        self.profile.close(false);
        let ranked = self.profile.ranked().into_iter();
        ranked
            .map(|mut instances| (instances[0].kind, instances[0].ways.remove(0).remove(0)))
            .collect()
    }
}

fn at(pc: u64, visit: u64) -> Spot {
    Spot {
        site: Site::first(pc),
        addr: X,
        visit,
    }
}

#[test]
fn a_write_between_two_reads_is_a_target_whenever_it_was_seen() {
    for is_first in [true, false] {
        let mut script = Script::new();
        if is_first {
            script.access(2, 0x30, AccessKind::Write, 7);
        }
        script.access(1, 0x10, AccessKind::Read, 0);
        script.access(1, 0x20, AccessKind::Read, 0);
        if !is_first {
            script.access(2, 0x30, AccessKind::Write, 7);
        }
        let found = script.found();
        let wanted = found
            .iter()
            .find(|(kind, _)| *kind == Kind::Unserializable(Case::ReadWriteRead));
        let (_, forced) = wanted.expect("it can come between");
        assert_eq!(forced.held, ContextId(1));
        assert_eq!((forced.at, forced.until), (at(0x20, 1), at(0x30, 1)));
    }
}

#[test]
fn what_has_come_between_needs_not_be_forced() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Read, 1);
    script.access(2, 0x30, AccessKind::Write, 7);
    script.access(1, 0x20, AccessKind::Read, 7);
    let is_case = |(kind, _): &(Kind, Forced)| matches!(kind, Kind::Unserializable(_));
    assert!(!script.found().iter().any(is_case));
}

#[test]
fn one_critical_section_protects_and_two_do_not() {
    let twice = |is_one: bool| {
        let mut script = Script::new();
        script.lock(1, 0x11);
        script.access(1, 0x10, AccessKind::Read, 1);
        if !is_one {
            script.unlock(1, 0x12);
            script.lock(1, 0x13);
        }
        script.access(1, 0x20, AccessKind::Write, 2);
        script.unlock(1, 0x14);
        script.lock(2, 0x31);
        script.access(2, 0x30, AccessKind::Write, 3);
        script.unlock(2, 0x32);
        let found = script.found();
        let wanted = found
            .into_iter()
            .find(|(kind, _)| *kind == Kind::Unserializable(Case::ReadWriteWrite));
        wanted.map(|(_, forced)| forced.at)
    };
    assert_eq!(twice(true), None);
    // The other one needs the lock: it is to be held before it takes it.
    let before = Spot {
        site: Site::first(0x13),
        addr: LOCK,
        visit: 1,
    };
    assert_eq!(twice(false), Some(before));
}

#[test]
fn order_forbids_what_locks_allow() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Read, 1);
    script.access(1, 0x20, AccessKind::Read, 1);
    script.event(1, 0x21, EventKind::Exit);
    let child = ContextId(1);
    script.event(0, 0x40, EventKind::Join { child });
    script.access(0, 0x41, AccessKind::Write, 3);
    assert_eq!(script.found(), []);
}

#[test]
fn a_pointer_that_another_context_clears_is_a_target() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Write, 0x7000);
    script.access(1, 0x20, AccessKind::Read, 0x7000);
    script.access(2, 0x30, AccessKind::Write, 0);
    let null = |found: Vec<(Kind, Forced)>| {
        let mut found = found.into_iter();
        found.find(|(kind, _)| *kind == Kind::Null)
    };
    let (_, forced) = null(script.found()).expect("it can be cleared before");
    assert_eq!((forced.at, forced.until), (at(0x20, 1), at(0x30, 1)));
    // A number that is no pointer is none.
    let mut script = Script::new();
    script.access(1, 0x20, AccessKind::Read, 12);
    script.access(2, 0x30, AccessKind::Write, 0);
    assert_eq!(null(script.found()), None);
}

#[test]
fn a_place_that_another_context_initialises_is_a_target() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Write, 5);
    script.access(2, 0x30, AccessKind::Read, 5);
    let found = script.found();
    let (_, forced) = found
        .iter()
        .find(|(kind, _)| *kind == Kind::Uninitialised)
        .expect("it can be read before");
    assert_eq!(forced.held, ContextId(1));
    assert_eq!((forced.at, forced.until), (at(0x10, 1), at(0x30, 1)));
}

fn invariants(found: &[(Kind, Forced)]) -> Vec<(u32, u64, u64)> {
    let found = found.iter().filter(|(kind, _)| *kind == Kind::Invariant);
    let holds = found.map(|(_, forced)| {
        let Forced {
            held, at, until, ..
        } = forced;
        (held.0, at.site.pc(), until.site.pc())
    });
    holds.collect()
}

#[test]
fn a_read_could_find_what_another_write_leaves() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Write, 5);
    script.access(1, 0x20, AccessKind::Read, 5);
    script.access(2, 0x30, AccessKind::Write, 9);
    assert_eq!(invariants(&script.found()), [(1, 0x20, 0x30)]);
}

#[test]
fn a_write_in_the_same_critical_section_protects_the_read() {
    let mut script = Script::new();
    script.lock(1, 0x11);
    script.access(1, 0x10, AccessKind::Write, 5);
    script.access(1, 0x20, AccessKind::Read, 5);
    script.unlock(1, 0x12);
    script.lock(2, 0x31);
    script.access(2, 0x30, AccessKind::Write, 9);
    script.unlock(2, 0x32);
    assert_eq!(invariants(&script.found()), []);
}

#[test]
fn a_value_that_is_replaced_in_its_own_critical_section_is_not_found() {
    let mut script = Script::new();
    script.lock(2, 0x31);
    script.access(2, 0x30, AccessKind::Write, 9);
    script.access(2, 0x33, AccessKind::Write, 5);
    script.unlock(2, 0x32);
    script.lock(1, 0x11);
    script.access(1, 0x20, AccessKind::Read, 5);
    script.unlock(1, 0x12);
    // Only what was there before is possible, and nothing is known of that.
    assert_eq!(invariants(&script.found()), []);
}

#[test]
fn the_usual_write_can_be_kept_away() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Write, 5);
    script.access(2, 0x30, AccessKind::Write, 9);
    script.access(1, 0x20, AccessKind::Read, 9);
    // Held is the write of the other context, until the read is over, for what it replaces and for what was there.
    let found = invariants(&script.found());
    assert_eq!(found, [(2, 0x30, 0x20), (2, 0x30, 0x20)]);
}

#[test]
fn a_value_that_was_seen_breaks_nothing() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Write, 5);
    script.access(1, 0x20, AccessKind::Read, 5);
    script.access(2, 0x30, AccessKind::Write, 9);
    script.access(1, 0x20, AccessKind::Read, 9);
    assert_eq!(invariants(&script.found()), []);
}

#[test]
fn a_run_that_fails_predicts_nothing() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Write, 5);
    script.access(2, 0x30, AccessKind::Read, 5);
    script.profile.close(true);
    assert_eq!(script.profile.ranked(), Vec::<Vec<Target>>::new());
}

#[test]
fn variables_that_share_eight_bytes_are_not_confused() {
    let mut script = Script::new();
    let mut access = |context, pc, offset: u16, how| {
        let access = Access {
            how,
            size: 4,
            location: Location::shared(5, offset),
            addr: X + u64::from(offset),
            value: Some(1),
        };
        script.event(context, pc, EventKind::Access(access));
    };
    access(1, 0x10, 0, AccessKind::Read);
    access(1, 0x20, 0, AccessKind::Write);
    access(2, 0x30, 4, AccessKind::Write);
    assert_eq!(script.found(), []);
}

#[test]
fn what_a_call_touches_is_held_before_the_call() {
    let mut script = Script::new();
    script.access(1, 0x10, AccessKind::Read, 1);
    // The call writes its return address, then the library writes for it.
    let mut access = |addr: u64, how| {
        let access = Access {
            how,
            size: 8,
            location: Location::shared(if addr == X { 5 } else { 6 }, 0),
            addr,
            value: Some(3),
        };
        script.event(1, 0x20, EventKind::Access(access));
        script.steps -= 1;
    };
    access(0x8000, AccessKind::Write);
    access(X, AccessKind::Write);
    script.steps += 1;
    script.access(2, 0x30, AccessKind::Write, 7);
    let found = script.found();
    let wanted = found
        .iter()
        .find(|(kind, _)| *kind == Kind::Unserializable(Case::ReadWriteWrite));
    let (_, forced) = wanted.expect("it can come between");
    let call = Spot {
        site: Site::first(0x20),
        addr: 0,
        visit: 1,
    };
    assert_eq!(forced.at, call);
}
