//! What the transitions of a program touch, for the search through all its interleavings: contexts are switched at system
//! calls, at known synchronisation functions and at communication points.

use std::sync::Arc;

use raddle_campaign::{NoteTransitions, Noted, Watch};
use raddle_linux::{Effect, LinuxWorld, Observe};
use raddle_sched::Scheduler;
use raddle_sched::dpor::{SharedLog, Touched, Transition};
use raddle_world::{ContextId, Event, EventKind, World};

use crate::attribution::Attribution;
use crate::handlers::Handlers;
use crate::judge::Rules;
use crate::schedule_run::{Run, block_places, run_under};
use crate::session::{Look, Session};

/// Why a search is no proof where signals have handlers: which instruction they come before is not searched through.
const HANDLED: &str =
    "signal handlers came where the other orders put them, and at no other moment";
/// What joining threads and ending ones have in common.
const JOIN_OBJECT: u64 = u64::MAX - 1;
/// System calls whose order may matter touch this.
const KERNEL_OBJECT: u64 = u64::MAX - 2;
/// Synchronisation objects and memory never have equal names.
const SYNC_BIT: u64 = 1 << 63;
/// Virtual pages, which calls can take away from everybody.
const PAGE_BIT: u64 = 1 << 62;
const PAGE_BITS: u32 = 12;
/// Bytes of a freed block that are looked at; larger ones have pages of their own.
const BLOCK_MAX: u64 = 1 << 20;
/// Pages of one call that are looked at: as many as a program can have by default.
const PAGES_MAX: usize = 1 << 20;

impl NoteTransitions for Session {
    fn run_noted(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Rules,
        log: &SharedLog,
    ) -> Noted<Run> {
        let territory = Arc::clone(&self.territory);
        let mut attribution = Attribution::new(&territory).without_limit();
        let look = Look {
            observe: Observe::Addr,
            is_traced: true,
        };
        let closely = (Watch::MEMORY, look);
        let mut handlers = Handlers::default();
        let run = run_under(self, scheduler, rules, closely, &mut |world, events| {
            events.iter().for_each(|event| handlers.event(event));
            note_events(world, events, log, &mut attribution);
        });
        let bound = handlers.has_interrupted.then_some(HANDLED);
        Noted { run, bound }
    }
}

/// Writes down what the current transition touched.
fn note_events(
    world: &LinuxWorld,
    events: &[Event],
    log: &SharedLog,
    attribution: &mut Attribution,
) {
    let mut log = log.borrow_mut();
    let Some(transition) = log.current() else {
        return;
    };
    for event in events {
        if let Some(event) = attribution.step(world, event) {
            note_event(world, &event, transition);
        }
        note_call(world, event.context, &mut transition.touched);
    }
}

fn note_event(world: &LinuxWorld, event: &Event, transition: &mut Transition) {
    let touched = &mut transition.touched;
    match &event.kind {
        EventKind::Access(access) => {
            touched.read(access.addr >> PAGE_BITS | PAGE_BIT);
            for piece in access.pieces() {
                if access.how.writes() {
                    touched.write(piece.location.granule().number());
                } else {
                    touched.read(piece.location.granule().number());
                }
            }
        }
        EventKind::Acquire { object, .. }
        | EventKind::Release { object, .. }
        | EventKind::WaitBegin { object, .. }
        | EventKind::WaitEnd { object, .. }
        | EventKind::Notify { object, .. }
        | EventKind::BarrierEnter { object }
        | EventKind::BarrierLeave { object } => touched.write(object | SYNC_BIT),
        EventKind::Free { addr } => {
            // A context that uses the block must do so before.
            for location in block_places(world, event.context, *addr, BLOCK_MAX) {
                touched.write(location.granule().number());
            }
        }
        EventKind::Exit => touched.read(JOIN_OBJECT),
        EventKind::SyscallEnter { number, arguments } => {
            note_system_call(*number, arguments, touched);
        }
        EventKind::Create { child } => {
            let path = world.contexts().get(*child).path.to_vec();
            transition.created.push(path);
        }
        _ => {}
    }
}

fn note_system_call(number: u32, arguments: &[u64; 6], touched: &mut Touched) {
    let call = raddle_calls::of(number);
    if let Some(changed) = call.and_then(|call| call.memory_changed(arguments)) {
        let last = changed.end.saturating_sub(1) >> PAGE_BITS;
        for page in (changed.start >> PAGE_BITS..=last).take(PAGES_MAX) {
            touched.write(page | PAGE_BIT);
        }
    } else if call.is_none_or(|call| call.has_order) {
        touched.write(KERNEL_OBJECT);
    }
}

/// A context inside a known function touches what the function is about, whenever it goes on there.
fn note_call(world: &LinuxWorld, who: ContextId, touched: &mut Touched) {
    let Some(call) = world.pending_call(who) else {
        return;
    };
    match call.effect {
        Effect::JoinThread => touched.write(JOIN_OBJECT),
        Effect::CreateThread
        | Effect::Allocate
        | Effect::AllocateInto
        | Effect::Reallocate
        | Effect::Free => {}
        _ => touched.write(call.object | SYNC_BIT),
    }
}
