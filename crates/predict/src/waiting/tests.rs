//! Loops that wait, by hand-written reads.

use raddle_world::{ContextId, Site};

use super::Waiting;
use crate::access::Seen;
use crate::target::Spot;

fn seen(context: u32, pc: u64, number: u64, value: u64) -> Seen {
    Seen {
        context: ContextId(context),
        spot: Spot {
            site: Site::first(pc),
            addr: 0x5000,
            visit: 1,
        },
        reads: true,
        writes: false,
        value: Some(value),
        written: None,
        overwritten: None,
        bytes: 0xFF,
        synchronises: false,
        clock: 3,
        step: number,
        number,
        held: Vec::new(),
        own_before: Vec::new(),
        own_after: Vec::new(),
        from: None,
        is_first_use: false,
        concurrent: 0,
    }
}

/// Context 1 reads zero at 0x10 until it finds what a write left.
fn wait(waiting: &mut Waiting, writer: &Seen, value: u64) {
    for number in 1..4 {
        waiting.read(&seen(1, 0x10, number, 0), None);
    }
    waiting.read(&seen(1, 0x10, 9, value), Some(writer));
}

#[test]
fn a_loop_that_another_context_ends_waits() {
    let mut waiting = Waiting::default();
    wait(&mut waiting, &seen(2, 0x30, 8, 1), 1);
    assert_eq!(waiting.loops(), [(Site::first(0x10), Site::first(0x30))]);
}

#[test]
fn a_loop_that_its_own_context_ends_does_not() {
    let mut waiting = Waiting::default();
    wait(&mut waiting, &seen(2, 0x30, 8, 1), 1);
    waiting.end_run();
    wait(&mut waiting, &seen(1, 0x11, 8, 1), 1);
    assert_eq!(waiting.loops(), []);
}

#[test]
fn what_is_released_twice_is_a_lock() {
    let mut waiting = Waiting::default();
    wait(&mut waiting, &seen(2, 0x30, 8, 1), 1);
    wait(&mut waiting, &seen(2, 0x30, 18, 2), 2);
    assert_eq!(waiting.loops(), []);
}

#[test]
fn one_look_is_no_wait() {
    let mut waiting = Waiting::default();
    waiting.read(&seen(1, 0x10, 1, 0), None);
    waiting.read(&seen(1, 0x10, 9, 1), Some(&seen(2, 0x30, 8, 1)));
    assert_eq!(waiting.loops(), []);
}
