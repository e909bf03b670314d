//! One schedule, from the snapshot to its end and to a judgement.

use std::collections::BTreeSet;

use raddle_detect::communication::Meetings;
use raddle_detect::{Communication, Failure, Race, Races};
use raddle_linux::{LinuxWorld, Observe};
use raddle_sched::{AbstractSchedule, Drive, End, Profile, Scheduler, drive};
use raddle_stdx::width::to_u64;
use raddle_trace::Limits;
use raddle_world::{ContextId, Event, EventKind, Liveness, World};

use crate::session::Session;

/// Bytes of standard error that are kept for a judgement.
const WORDS_MAX: usize = 16 << 10;

/// How to run and to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) limits: Limits,
    pub(crate) expected_exit: i32,
}

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
    /// Only if memory was observed.
    pub(crate) learned: Option<Learned>,
}

/// What an observed run told.
#[derive(Debug, Clone)]
pub(crate) struct Learned {
    pub(crate) meetings: Meetings,
    pub(crate) shared_places: u64,
    /// Instructions at meeting places that wrote.
    pub(crate) writers: BTreeSet<u64>,
    pub(crate) races: Vec<Race>,
}

/// Runs one schedule. With `observes`, memory accesses are watched for communication points and races.
pub(crate) fn run_schedule(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    observes: bool,
) -> Outcome {
    run_watched(session, scheduler, rules, observes, &mut |_, _| {})
}

/// Runs one schedule; somebody else sees the events, too.
pub(crate) fn run_watched(
    session: &mut Session,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    observes: bool,
    watch: &mut dyn FnMut(&LinuxWorld, &[Event]),
) -> Outcome {
    session.restore();
    session.world.set_observe(if observes {
        Observe::Addr
    } else {
        Observe::None
    });
    let mut communication = Communication::default();
    let mut races = Races::default();
    let mut words = Vec::new();
    let libraries = session.libraries().to_vec();
    let is_library = |pc: u64| libraries.iter().any(|range| range.contains(&pc));
    let driven = drive(
        &mut session.world,
        scheduler,
        rules.limits,
        &mut |world, events| {
            watch(world, events);
            for event in events {
                match &event.kind {
                    EventKind::Output {
                        descriptor: 2,
                        bytes,
                    } if words.len() < WORDS_MAX => words.extend_from_slice(bytes),
                    EventKind::Access(access)
                        if !access.how.is_atomic() && is_library(event.pc) => {}
                    _ if observes => {
                        communication.event(event);
                        races.event(event);
                    }
                    _ => {}
                }
            }
        },
    );
    session.world.set_observe(Observe::None);
    let learned = observes.then(|| Learned {
        meetings: communication.meetings(&mut |pc| !session.is_library(pc)),
        writers: communication.writers().clone(),
        shared_places: communication.shared_places(),
        races: races.found().copied().collect(),
    });
    Outcome {
        index: 0,
        is_default: false,
        failure: judge(&session.world, &driven, rules, &words),
        profile: None,
        is_guided: false,
        wishes: Vec::new(),
        contexts: to_u64(session.world.contexts().iter().count()),
        drive: driven,
        learned,
    }
}

fn judge(world: &LinuxWorld, drive: &Drive, rules: Rules, words: &[u8]) -> Option<Failure> {
    match &drive.end {
        End::Exited { status } => Failure::of_status(
            *status,
            rules.expected_exit,
            &String::from_utf8_lossy(words),
            world.crash(),
        ),
        End::Stuck => Some(Failure::Deadlock {
            calls: places(world),
        }),
        End::Hanging => Some(Failure::Hang {
            places: places(world),
        }),
        End::Unsupported(_) => None,
    }
}

/// Where live contexts stand: the return address of the known function they are in, or their own place.
fn places(world: &LinuxWorld) -> Vec<u64> {
    let mut places: Vec<u64> = world
        .contexts()
        .iter()
        .filter(|(_, context)| context.liveness != Liveness::Done)
        .filter_map(|(id, _)| place(world, id))
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn place(world: &LinuxWorld, who: ContextId) -> Option<u64> {
    match world.pending_call(who) {
        Some(call) => Some(call.return_pc),
        None => world.registers(who)?.pc(),
    }
}
