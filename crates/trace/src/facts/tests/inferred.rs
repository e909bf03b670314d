//! Locks without a function: what is one, and what only looks like one.

use super::*;
use LockedKind::{Arithmetic, ClearBits, CompareExchange, Exchange, SetBit};

/// One access to a word: who, what, and the value that it finds or stores.
#[derive(Clone, Copy)]
enum Does {
    Locked(u32, LockedKind, u64),
    Load(u32, u64),
    Store(u32, u64),
}
use Does::{Load, Locked, Store};

/// What is told of the accesses: who obtains and who gives up.
fn told(facts: &mut Facts, accesses: &[Does]) -> Vec<(&'static str, u32)> {
    let mut told = Vec::new();
    for (step, does) in (1..).zip(accesses) {
        let (event, kind) = match *does {
            Locked(who, kind, found) => (memory(who, step, AccessKind::AtomicUpdate, found), kind),
            Load(who, value) => (memory(who, step, AccessKind::Read, value), Arithmetic),
            Store(who, value) => (memory(who, step, AccessKind::Write, value), Arithmetic),
        };
        // Each kind of instruction has an address of its own.
        let event = Event {
            site: Site::first(0x40_0000 + 16 * (kind as u64)),
            ..event
        };
        facts.event_with(&event, &mut |_| kind);
        told.extend(facts.lock_changes().map(|change| match change {
            LockChange::Obtained(section) => ("takes", section.context.0),
            LockChange::GivenUp(section) => ("gives up", section.context.0),
            LockChange::WasHeld(section) => ("had", section.context.0),
        }));
    }
    told
}

fn sections(accesses: &[Does]) -> Vec<(&'static str, u32)> {
    told(&mut Facts::default(), accesses)
}

#[test]
fn the_mutex_of_rust_is_a_lock() {
    let taken_twice = [
        Locked(0, CompareExchange, 0),
        Locked(0, Exchange, 1),
        Locked(1, CompareExchange, 0),
        Locked(1, Exchange, 1),
    ];
    // When the second one takes it, it is known that the first has given it up.
    assert_eq!(
        sections(&taken_twice),
        [("had", 0), ("takes", 1), ("gives up", 1)]
    );
    let mut facts = Facts::default();
    told(&mut facts, &taken_twice);
    assert_eq!(
        facts.inferred_locks().addresses().collect::<Vec<_>>(),
        [0x3010]
    );
    let mut again = Facts::knowing(&facts.inferred_locks());
    assert_eq!(
        told(&mut again, &taken_twice),
        [("takes", 0), ("gives up", 0), ("takes", 1), ("gives up", 1)]
    );
}

#[test]
fn waiters_may_write_into_the_word_of_a_mutex() {
    let contended = [
        Locked(0, CompareExchange, 0),
        Locked(0, Exchange, 1),
        Locked(0, CompareExchange, 0),
        Locked(1, CompareExchange, 1),
        Load(1, 1),
        Locked(1, Exchange, 1),
        Locked(0, Exchange, 2),
        Locked(1, Exchange, 0),
        Locked(1, Exchange, 2),
    ];
    assert_eq!(
        sections(&contended),
        [
            ("had", 0),
            ("takes", 0),
            ("gives up", 0),
            ("takes", 1),
            ("gives up", 1)
        ]
    );
}

#[test]
fn a_spin_lock_that_is_given_up_by_a_store_is_told_at_once() {
    for kind in [CompareExchange, Exchange, SetBit] {
        let used = [
            Locked(0, kind, 0),
            Locked(1, kind, 1),
            Store(0, 0),
            Locked(1, kind, 0),
        ];
        assert_eq!(sections(&used), [("had", 0), ("takes", 1)], "{kind:?}");
    }
}

#[test]
fn while_a_lock_is_held_its_section_is_known() {
    let mut facts = Facts::default();
    told(
        &mut facts,
        &[Locked(0, Exchange, 0), Store(0, 0), Locked(1, Exchange, 0)],
    );
    let [section] = facts.held(ContextId(1)) else {
        panic!("one lock is held");
    };
    assert_eq!((section.lock, section.step), (0x3010, 3));
    assert_eq!(section.source, LockSource::Inferred);
    assert!(facts.held(ContextId(0)).is_empty());
}

#[test]
fn an_owner_that_tries_to_lock_once_more_still_has_the_lock() {
    let mut facts = Facts::default();
    let used = [
        Locked(0, CompareExchange, 0),
        Store(0, 0),
        Locked(1, CompareExchange, 0),
        Locked(1, CompareExchange, 1),
        Load(1, 1),
    ];
    assert_eq!(told(&mut facts, &used), [("had", 0), ("takes", 1)]);
    assert_eq!(facts.held(ContextId(1)).len(), 1);
    // The one that unlocks looks the same, and leaves zero.
    let events = [Locked(1, CompareExchange, 1), Load(0, 0)];
    assert_eq!(told(&mut facts, &events), [("gives up", 1)]);
}

#[test]
fn counters_are_no_locks() {
    let counted = [
        Locked(0, Arithmetic, 0),
        Locked(0, Arithmetic, 1),
        Locked(1, Arithmetic, 0),
        Store(1, 0),
        Locked(0, CompareExchange, 0),
        Store(0, 0),
    ];
    assert_eq!(sections(&counted), []);
    // A reference that is taken only if there is one already.
    let upgraded = [
        Locked(0, CompareExchange, 1),
        Locked(1, CompareExchange, 2),
        Locked(1, Arithmetic, 3),
        Locked(0, Arithmetic, 2),
    ];
    assert_eq!(sections(&upgraded), []);
}

#[test]
fn what_happens_once_is_no_lock() {
    let by_store = [
        Locked(0, CompareExchange, 0),
        Load(1, 1),
        Store(0, 2),
        Load(1, 2),
        Locked(1, CompareExchange, 2),
    ];
    assert_eq!(sections(&by_store), []);
    let by_exchange = [
        Locked(0, CompareExchange, 0),
        Locked(0, Exchange, 1),
        Load(1, 4),
        Load(0, 4),
    ];
    assert_eq!(sections(&by_exchange), []);
    let flag = [Locked(0, Exchange, 0), Locked(1, Exchange, 1), Load(0, 1)];
    assert_eq!(sections(&flag), []);
}

#[test]
fn semaphores_and_hand_overs_are_no_locks() {
    // One gives a token, another takes it.
    let tokens = [
        Locked(0, CompareExchange, 0),
        Locked(1, CompareExchange, 1),
        Locked(0, CompareExchange, 0),
        Locked(1, CompareExchange, 1),
        Load(1, 0),
        Locked(0, CompareExchange, 0),
        Store(0, 0),
    ];
    assert_eq!(sections(&tokens), []);
    // One raises a flag, another takes it back.
    let flag = [
        Locked(0, Exchange, 0),
        Store(1, 0),
        Locked(0, Exchange, 0),
        Store(0, 0),
    ];
    assert_eq!(sections(&flag), []);
}

#[test]
fn bits_that_are_cleared_give_up() {
    let used = [
        Locked(0, SetBit, 0),
        Locked(0, ClearBits, 1),
        Locked(1, SetBit, 0),
        Locked(1, ClearBits, 1),
    ];
    assert_eq!(sections(&used), [("had", 0), ("takes", 1), ("gives up", 1)]);
    assert_eq!(sections(&[Locked(0, ClearBits, 0), Store(0, 0)]), []);
}

#[test]
fn nothing_is_inferred_of_instructions_that_nobody_looked_at() {
    let mut facts = Facts::default();
    facts.event(&memory(0, 1, AccessKind::AtomicUpdate, 0));
    facts.event(&memory(0, 2, AccessKind::Write, 0));
    assert_eq!(facts.lock_changes().count(), 0);
    assert!(facts.inferred_locks().is_empty());
}

#[test]
fn whoever_changed_a_word_from_zero_is_its_taker() {
    let mut facts = Facts::default();
    let location = Location::shared(3, 16);
    let taker = |facts: &Facts| {
        let taker = facts.taker(location, 0x3010)?;
        Some((taker.context.0, taker.tries_again))
    };
    assert_eq!(taker(&facts), None);
    // Also of a word that is counted, as those of reader-writer locks are.
    told(
        &mut facts,
        &[Locked(1, CompareExchange, 0), Locked(2, Arithmetic, 1)],
    );
    assert_eq!(taker(&facts), Some((1, false)));
    told(&mut facts, &[Locked(1, CompareExchange, 2)]);
    assert_eq!(taker(&facts), Some((1, true)), "it waits for itself");
    told(&mut facts, &[Locked(2, CompareExchange, 0)]);
    assert_eq!(taker(&facts), Some((2, false)));
}
