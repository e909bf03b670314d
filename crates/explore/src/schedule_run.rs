//! One schedule, from the snapshot to its end and to a judgement.

use std::collections::BTreeSet;
use std::ops::Range;

use raddle_detect::communication::Meetings;
use raddle_detect::{Communication, Failure, Race, Races};
use raddle_linux::{LinuxWorld, Observe};
use raddle_sched::{AbstractSchedule, Drive, Profile, Scheduler, drive_while};
use raddle_stdx::width::to_u64;
use raddle_world::{ContextId, Event, EventKind, GRANULE_BYTES, Location, Site, World};

use crate::atomics::Atomics;
use crate::attribution::Attribution;
use crate::judge::{Rules, Writing, judge};
use crate::session::Session;
use crate::timing::{Spent, Stopwatch};

/// A schedule that was run.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) index: u64,
    /// Whether nobody was interrupted on purpose.
    pub(crate) is_default: bool,
    pub(crate) drive: Drive,
    pub(crate) failure: Option<Failure>,
    /// Only if nobody was interrupted on purpose.
    pub(crate) profile: Option<Profile>,
    /// Whether reads-from guidance ran it.
    pub(crate) is_guided: bool,
    /// What was wished for then.
    pub(crate) wishes: AbstractSchedule,
    pub(crate) contexts: u64,
    /// Digests of the run and of the world at its end, for a failure that may be recorded.
    pub(crate) digests: Option<Digests>,
    /// Only if memory was observed.
    pub(crate) learned: Option<Learned>,
    pub(crate) spent: Spent,
}

/// What a replay must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digests {
    /// Of the whole run.
    pub(crate) run: u64,
    /// Of registers and memory at its end.
    pub(crate) state: u64,
}

impl Digests {
    pub(crate) fn of(world: &mut LinuxWorld) -> Self {
        Self {
            run: world.run_digest(),
            state: world.state_digest(),
        }
    }
}

impl Outcome {
    /// Right after the run: what a replay of it must come to.
    pub(crate) fn note_digests(&mut self, world: &mut LinuxWorld) {
        self.digests = Some(Digests::of(world));
    }
}

/// What an observed run told.
#[derive(Debug, Clone)]
pub(crate) struct Learned {
    pub(crate) meetings: Meetings,
    pub(crate) shared_places: u64,
    /// Instructions at meeting places that wrote.
    pub(crate) writers: BTreeSet<Site>,
    pub(crate) races: Vec<Race>,
}

/// Runs one schedule. With `observes`, memory accesses are watched for communication points and races.
pub(crate) fn run_schedule(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: &Rules,
    observes: bool,
) -> Outcome {
    run_watched(session, scheduler, rules, observes, &mut |_, _| {})
}

/// Runs one schedule; somebody else sees the events, too.
pub(crate) fn run_watched(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: &Rules,
    observes: bool,
    watch: &mut dyn FnMut(&LinuxWorld, &[Event]),
) -> Outcome {
    let mut stopwatch = Stopwatch::start(session.clock);
    let mut spent = Spent::default();
    session.restore();
    session.world.set_observe(if observes {
        Observe::Addr
    } else {
        Observe::None
    });
    spent.restore = stopwatch.lap();
    let mut observer = Observer::new(session, observes);
    let atomics = &mut session.atomics;
    let clock = session.clock;
    let driven = drive_while(
        &mut session.world,
        scheduler,
        rules.limits,
        &mut |world, events| {
            let mut inside = Stopwatch::start(clock);
            watch(world, events);
            for event in events {
                observer.event(world, event, atomics);
            }
            spent.detect += inside.lap();
        },
        &|| !session.leave.is_over(),
    );
    spent.run = stopwatch.lap().saturating_sub(spent.detect);
    session.world.set_observe(Observe::None);
    let learned = observes.then(|| observer.learned(session));
    let failure = judge(&session.world, &driven, rules, &observer.writing);
    spent.detect += stopwatch.lap();
    Outcome {
        index: 0,
        is_default: false,
        failure,
        profile: None,
        is_guided: false,
        wishes: Vec::new(),
        contexts: to_u64(session.world.contexts().iter().count()),
        digests: None,
        drive: driven,
        learned,
        spent,
    }
}

/// Takes in the events of one run.
struct Observer {
    communication: Communication,
    races: Races,
    writing: Writing,
    /// Only if memory is observed.
    attribution: Option<Attribution>,
}

impl Observer {
    fn new(session: &Session, observes: bool) -> Self {
        Self {
            communication: Communication::default(),
            races: Races::default(),
            writing: Writing::default(),
            attribution: observes.then(|| Attribution::new(&session.territory)),
        }
    }

    fn event(&mut self, world: &LinuxWorld, event: &Event, atomics: &mut Atomics) {
        if let EventKind::Output { .. } = event.kind {
            self.writing.event(event);
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
            && world.is_point(event.site)
            && atomics.is_atomic(event.pc(), access.addr)
        {
            self.races.mark_atomic(access);
        }
        self.communication.event(&event);
        if event.is_exact() {
            self.races.event(&event);
        }
    }

    fn learned(&self, session: &Session) -> Learned {
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
        }
    }
}

/// Memory that begins to be something else, and somebody to whom it belongs.
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

/// A block that was handed out again, and a stack that was used before, connect nobody.
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

/// A freed block meets whoever has used it.
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
