//! Order apart from mutual exclusion.

use super::*;

/// How the second context comes after what the first one did at its first event: by happens-before, by order alone.
fn relation(events: &[Event]) -> (bool, bool) {
    relation_in(Facts::default(), events)
}

fn relation_in(mut facts: Facts, events: &[Event]) -> (bool, bool) {
    let (first, second) = (ContextId(0), ContextId(1));
    facts.event(&memory(0, 0, AccessKind::Write, 0));
    let clock = facts.clock();
    events.iter().for_each(|event| facts.event(event));
    // Both have had an event.
    facts.event(&memory(1, 99, AccessKind::Read, 0));
    (
        facts.knows(second, first, clock),
        facts.is_ordered(second, first, clock),
    )
}

fn notify(context: u32, on: WaitKind) -> Event {
    let (object, everyone) = (5, false);
    event(
        context,
        3,
        EventKind::Notify {
            object,
            on,
            everyone,
        },
    )
}

fn waited(context: u32, on: WaitKind) -> Event {
    event(context, 4, EventKind::WaitEnd { object: 5, on })
}

#[test]
fn a_lock_excludes_and_does_not_order() {
    let exclusive = LockMode::Exclusive;
    let handed_on = [
        lock(0, 1, 7, exclusive),
        unlock(0, 2, 7),
        lock(1, 1, 7, exclusive),
    ];
    assert_eq!(relation(&handed_on), (true, false));
    assert_eq!(relation(&handed_on[1..2]), (false, false));
}

#[test]
fn what_locked_instructions_touch_does_not_order_either() {
    let update = |context| memory(context, 1, AccessKind::AtomicUpdate, 0);
    assert_eq!(relation(&[update(0), update(1)]), (true, false));
}

#[test]
fn creation_joining_barriers_and_hand_overs_order() {
    let both = (true, true);
    let child = ContextId(1);
    assert_eq!(relation(&[event(0, 1, EventKind::Create { child })]), both);
    let (parent, object) = (ContextId(0), 6);
    let join = EventKind::Join { child: parent };
    assert_eq!(
        relation(&[event(0, 1, EventKind::Exit), event(1, 1, join)]),
        both
    );
    let meet = [
        event(0, 1, EventKind::BarrierEnter { object }),
        event(1, 1, EventKind::BarrierLeave { object }),
    ];
    assert_eq!(relation(&meet), both);
    let pass = [
        event(0, 1, EventKind::Publish { object }),
        event(1, 1, EventKind::Obtain { object }),
    ];
    assert_eq!(relation(&pass), both);
    for on in [WaitKind::Condition, WaitKind::Event] {
        assert_eq!(relation(&[notify(0, on), waited(1, on)]), both, "{on:?}");
    }
    let once = WaitKind::Once;
    assert_eq!(relation(&[waited(0, once), waited(1, once)]), both);
}

#[test]
fn a_token_orders_unless_it_is_given_back() {
    let on = WaitKind::Semaphore;
    assert_eq!(relation(&[notify(0, on), waited(1, on)]), (true, true));
    let as_a_lock = [waited(0, on), notify(0, on), waited(1, on)];
    assert_eq!(relation(&as_a_lock), (true, false));
    let two_takers = [waited(0, on), waited(1, on)];
    assert_eq!(relation(&two_takers), (false, false));
}

#[test]
fn order_is_passed_on_by_third_contexts_and_not_through_locks() {
    let (object, exclusive) = (6, LockMode::Exclusive);
    let publish = |context| event(context, 1, EventKind::Publish { object });
    let obtain = |context| event(context, 1, EventKind::Obtain { object });
    assert_eq!(
        relation(&[publish(0), obtain(2), publish(2), obtain(1)]),
        (true, true)
    );
    let through_lock = [
        unlock(0, 1, 7),
        lock(2, 1, 7, exclusive),
        publish(2),
        obtain(1),
    ];
    assert_eq!(relation(&through_lock), (true, false));
}

#[test]
fn a_flag_that_is_waited_for_in_a_loop_orders() {
    let (load, store) = (AccessKind::Read, AccessKind::Write);
    // Something else has made it a location that synchronises.
    let atomic = memory(2, 1, AccessKind::AtomicUpdate, 0);
    let set = memory(0, 2, store, 1);
    let looks = |value| memory(1, 7, load, value);
    let waits = [atomic.clone(), looks(0), looks(0), set.clone(), looks(1)];
    assert_eq!(relation(&waits), (true, true));
    let looks_once = [atomic.clone(), set.clone(), looks(1)];
    assert_eq!(relation(&looks_once), (true, false), "it did not wait");
    let elsewhere = [atomic, memory(1, 6, load, 0), set, looks(1)];
    assert_eq!(relation(&elsewhere), (true, false), "two instructions");
}

#[test]
fn a_lock_that_is_looked_at_until_it_is_free_is_no_flag() {
    let exchange = |context, found| memory(context, 5, AccessKind::AtomicUpdate, found);
    let looks = |value| memory(1, 7, AccessKind::Read, value);
    let free = memory(0, 6, AccessKind::Write, 0);
    let events = [exchange(0, 0), looks(1), looks(1), free, looks(0)];
    let (first, second) = (ContextId(0), ContextId(1));
    let mut facts = Facts::default();
    for event in &events {
        facts.event_with(event, &mut |_| LockedKind::Exchange);
    }
    assert!(facts.knows(second, first, 1));
    assert!(!facts.is_ordered(second, first, 1));
}

#[test]
fn conditions_can_be_asked_not_to_order() {
    let facts = || Facts::default().with_conditions_that_exclude();
    for (on, orders) in [(WaitKind::Condition, false), (WaitKind::Event, true)] {
        let handed_over = [notify(0, on), waited(1, on)];
        assert_eq!(relation_in(facts(), &handed_over), (true, orders), "{on:?}");
    }
}
