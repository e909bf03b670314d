//! Facts from sequences of events.

use raddle_world::{AccessKind, LockMode, WaitKind};

use super::*;

mod clocks;
mod inferred;

fn event(context: u32, step: u64, kind: EventKind) -> Event {
    Event {
        context: ContextId(context),
        step,
        site: Site::first(0x40_0000 + step),
        kind,
    }
}

fn memory(context: u32, step: u64, how: AccessKind, value: u64) -> Event {
    let kind = EventKind::Access(Access {
        how,
        size: 4,
        location: Location::shared(3, 16),
        addr: 0x3010,
        value: Some(value),
    });
    event(context, step, kind)
}

fn lock(context: u32, step: u64, object: u64, mode: LockMode) -> Event {
    event(context, step, EventKind::Acquire { object, mode })
}

fn unlock(context: u32, step: u64, object: u64) -> Event {
    let mode = LockMode::Exclusive;
    event(context, step, EventKind::Release { object, mode })
}

#[test]
fn held_locks_are_critical_sections() {
    let mut facts = Facts::default();
    facts.event(&lock(1, 10, 7, LockMode::Exclusive));
    facts.event(&lock(1, 11, 8, LockMode::Shared));
    let both = facts.lockset(ContextId(1));
    assert_eq!(facts.locks(both), [7, 8]);
    let [first, second] = facts.held(ContextId(1)) else {
        panic!("two locks are held");
    };
    assert_eq!((first.serial, first.step, first.lock), (1, 10, 7));
    assert_eq!((second.serial, second.mode), (2, LockMode::Shared));
    facts.event(&unlock(1, 12, 7));
    facts.event(&lock(1, 13, 7, LockMode::Exclusive));
    let again = facts.held(ContextId(1))[1];
    assert_eq!((again.lock, again.serial, again.step), (7, 3, 13));
    assert!(facts.held(ContextId(0)).is_empty());
    assert_eq!(facts.lockset(ContextId(0)), 0);
    facts.event(&unlock(1, 14, 7));
    facts.event(&unlock(1, 15, 8));
    assert_eq!(facts.lockset(ContextId(1)), 0);
}

#[test]
fn memory_that_is_handed_out_again_synchronises_no_more() {
    let mut facts = Facts::default();
    facts.event(&memory(0, 1, AccessKind::Write, 1));
    assert!(facts.is_data());
    facts.event(&memory(0, 2, AccessKind::AtomicUpdate, 1));
    facts.event(&memory(0, 3, AccessKind::Write, 1));
    assert!(!facts.is_data());
    let (addr, size) = (0x3000, 64);
    facts.event(&event(0, 4, EventKind::Alloc { addr, size }));
    facts.event(&memory(0, 5, AccessKind::Write, 1));
    assert!(facts.is_data());
    let within = facts.allocation_at(0x3010).unwrap();
    assert_eq!((within.offset, within.allocation.generation), (16, 1));
}

#[test]
fn whoever_creates_a_context_is_remembered() {
    let mut facts = Facts::default();
    let child = ContextId(2);
    facts.event(&event(1, 9, EventKind::Create { child }));
    let creation = facts.creation(child).unwrap();
    assert_eq!((creation.by, creation.step), (ContextId(1), 9));
    assert_eq!(facts.creation(ContextId(1)), None);
}
