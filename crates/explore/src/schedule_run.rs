//! One schedule, from the snapshot to its end and to a judgement.

use std::ops::Range;
use std::sync::Arc;

use raddle_campaign::{Learned, Spent, Stopwatch, Watch};
use raddle_detect::{Communication, Coverage, Race, Races};
use raddle_linux::{LinuxWorld, Observe};
use raddle_sched::Scheduler;
use raddle_stdx::width::to_u64;
use raddle_trace::{Facts, Observer as _};
use raddle_world::{ContextId, Event, EventKind, GRANULE_BYTES, Location, World};

use crate::atomics::Atomics;
use crate::attribution::{Attribution, Own, Territory};
use crate::handlers::Handlers;
use crate::judge::{Rules, Writing, judge};
use crate::session::{Look, Session};

/// A schedule that was run.
pub(crate) type Run = raddle_campaign::RunOf<Session>;
/// What a worker tells of one.
pub(crate) type Outcome = raddle_campaign::OutcomeOf<Session>;

/// Runs one schedule.
pub(crate) fn run_schedule(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: &Rules,
    watch: Watch,
) -> Run {
    run_watched(session, scheduler, rules, watch, &mut |_, _| {})
}

/// Runs one schedule; `also` sees the events, too.
pub(crate) fn run_watched(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: &Rules,
    watch: Watch,
    also: &mut dyn FnMut(&mut LinuxWorld, &[Event]),
) -> Run {
    let look = Look::at(if watch.memory {
        Observe::Addr
    } else {
        Observe::None
    });
    run_under(session, scheduler, rules, (watch, look), also)
}

/// Runs one schedule and shows the events of the program's own code to observers, with what libraries do to its memory as
/// part of the calling instruction. What words are locks is known from the runs before; conditions exclude, since
/// an observer asks for other schedules.
pub(crate) fn run_observed(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: &Rules,
    observers: &mut [&mut dyn raddle_trace::Observer],
) -> Run {
    let territory = Arc::clone(&session.territory);
    let mut attribution = Attribution::new(&territory);
    session.restore();
    let mut facts = Facts::knowing(&session.inferred_locks)
        .with_conditions_that_exclude()
        .with_blocks(session.world.blocks_of_before(ContextId(0)));
    let mut atomics = std::mem::take(&mut session.atomics);
    let values = (Watch::NOTHING, Look::VALUES);
    let run = run_under(session, scheduler, rules, values, &mut |world, events| {
        for event in events {
            let own = attribution.own(world, event);
            if let Some(own) = &own
                && let EventKind::Access(access) = &own.kind
                && atomics.is_atomic(own.pc(), access.addr)
            {
                facts.mark_atomic(access);
            }
            facts.event_with(event, &mut |site| attribution.locked(world, event, site));
            let is_inside = |own: &Own<'_>| {
                matches!(own.kind, EventKind::Access(_)) && territory.is_library(own.pc())
            };
            let own = own.filter(|own| own.is_exact() && !is_inside(own));
            let own = own.map(Own::at_call);
            for observer in observers.iter_mut() {
                if let Some(own) = &own {
                    observer.event(own, &facts);
                }
            }
        }
    });
    session.atomics = atomics;
    session.inferred_locks = facts.inferred_locks();
    run
}

/// Runs one schedule; `also` sees the events, too.
pub(crate) fn run_under(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: &Rules,
    (watch, look): (Watch, Look),
    also: &mut dyn FnMut(&mut LinuxWorld, &[Event]),
) -> Run {
    let mut stopwatch = Stopwatch::start(session.clock);
    let mut spent = Spent::default();
    session.restore();
    spent.restore = stopwatch.lap();
    let mut observer = Observer::new(session, watch);
    let mut atomics = std::mem::take(&mut session.atomics);
    let clock = session.clock;
    let drive = session.drive(scheduler, rules.limits, look, &mut |world, events| {
        let mut inside = Stopwatch::start(clock);
        also(world, events);
        for event in events {
            observer.event(world, event, &mut atomics);
        }
        spent.detect += inside.lap();
    });
    session.atomics = atomics;
    spent.run = stopwatch.lap().saturating_sub(spent.detect);
    let judged_by = (rules, session.about.judge.as_ref());
    let failure = judge(&session.world, &drive, judged_by, &observer.writing);
    let learned = watch.memory.then(|| observer.learned(session));
    spent.detect += stopwatch.lap();
    Run {
        failure,
        profile: watch.points.then(|| drive.profile(&session.world)),
        contexts: to_u64(session.world.contexts().iter().count()),
        drive,
        learned,
        tally: (),
        spent,
    }
}

/// Takes in the events of one run.
struct Observer {
    communication: Communication,
    handlers: Handlers,
    territory: Arc<Territory>,
    facts: Facts,
    races: Races,
    writing: Writing,
    /// Only if memory is observed.
    attribution: Option<Attribution>,
    coverage: Option<Coverage>,
}

impl Observer {
    fn new(session: &Session, watch: Watch) -> Self {
        Self {
            communication: Communication::default(),
            handlers: Handlers::default(),
            territory: Arc::clone(&session.territory),
            facts: Facts::default(),
            races: Races::default(),
            writing: Writing::default(),
            attribution: watch.memory.then(|| Attribution::new(&session.territory)),
            coverage: watch.coverage.then(Coverage::default),
        }
    }

    fn event(&mut self, world: &LinuxWorld, event: &Event, atomics: &mut Atomics) {
        if let EventKind::Output { .. } | EventKind::Mark(_) = event.kind {
            self.writing.event(world, event);
        }
        let Some(attribution) = &mut self.attribution else {
            return;
        };
        if let EventKind::Free { addr } = event.kind {
            take_away(world, &mut self.communication, event.context, addr);
            return;
        }
        if let Some((of, memory)) = new_memory(world, event) {
            renew(world, &mut self.communication, of, memory);
        }
        let Some(event) = attribution.own(world, event) else {
            return;
        };
        if let EventKind::Access(access) = &event.kind
            && (world.is_point(event.site) || atomics.is_runtime(event.pc()))
            && atomics.is_atomic(event.pc(), access.addr)
        {
            self.facts.mark_atomic(access);
        }
        if self.territory.managed.changes_goroutine(event.pc()) {
            self.handlers.change_goroutine(event.context);
        }
        self.handlers.event(&event);
        let place = (world, &*self.territory);
        if !self.territory.managed.contains(event.pc()) {
            self.handlers
                .communicate(&mut self.communication, place, &event);
        }
        if event.is_exact() {
            self.facts.event(&event);
            self.races.event(&event, &self.facts);
            if let Some(coverage) = &mut self.coverage {
                coverage.event(&event, &self.facts);
            }
        }
    }

    fn learned(self, session: &Session) -> Learned<Race> {
        Learned {
            meetings: self
                .communication
                .meetings(&mut |site| !session.is_library(site)),
            writers: self.communication.writers(),
            shared_places: self.communication.shared_places(),
            // What is atomic was asked only at points that were known before.
            races: self
                .races
                .found()
                .filter(|race| {
                    session.is_point(race.first.site) && session.is_point(race.second.site)
                })
                .copied()
                .collect(),
            covered: self.coverage.map(Coverage::finish),
        }
    }
}

/// Memory that begins to be something else, and a context to which it belongs.
fn new_memory(world: &LinuxWorld, event: &Event) -> Option<(ContextId, Range<u64>)> {
    match event.kind {
        EventKind::Alloc { addr, size } => Some((
            event.context,
            addr..addr.saturating_add(size.min(ALLOCATED_MAX)),
        )),
        EventKind::Create { child } => Some((child, world.own_memory(child))),
        _ => None,
    }
}

/// A block that was handed out again, and a stack that was used before, connect no contexts.
fn renew(world: &LinuxWorld, communication: &mut Communication, of: ContextId, memory: Range<u64>) {
    let mut at = memory.start;
    while at < memory.end {
        let page_end = (at | 0xFFF) + 1;
        if let Some(location) = world.location(of, at) {
            communication.becomes_new(location, memory.end - at);
        }
        at = page_end;
    }
}

/// Bytes of a new block that are looked at.
const ALLOCATED_MAX: u64 = 1 << 20;

/// Bytes of a freed block that are looked at.
const FREED_MAX: u64 = 4096;

/// A freed block meets the contexts that have used it.
fn take_away(world: &LinuxWorld, communication: &mut Communication, by: ContextId, addr: u64) {
    for location in block_places(world, by, addr, FREED_MAX) {
        communication.taken_away(by, location);
    }
}

/// The places of the heap block at an address, up to so many bytes.
pub(crate) fn block_places(
    world: &LinuxWorld,
    who: ContextId,
    addr: u64,
    bytes_max: u64,
) -> impl Iterator<Item = Location> {
    let size = world.block_at(who, addr).map_or(0, |block| block.size);
    let offsets = (0..size.min(bytes_max)).step_by(usize::from(GRANULE_BYTES));
    offsets.filter_map(move |offset| world.location(who, addr + offset))
}
