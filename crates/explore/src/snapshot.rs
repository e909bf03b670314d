//! The way from the start of a program to the place where its schedules begin.

use raddle_campaign::Leave;
use raddle_linux::{Act, LinuxWorld};
use raddle_sched::{End, Plain, Reaction};
use raddle_trace::{Inputs, Outside};
use raddle_world::{ContextId, PendingKind, Site, Stop, Until, World, successor};

use crate::hint::Hints;
use crate::session::{About, StartFailure, setup};

/// Steps before the snapshot after which we give up.
const STEPS_MAX: u64 = 100_000_000_000;
/// Seconds of its own time in which a server must be ready.
const READY_SECONDS: u64 = 100;
const NANOSECONDS: u64 = 1_000_000_000;
/// Steps in a row before another context has its turn, or before anybody who wants an end is heard.
const SLICE: u64 = 1_000_000;

/// Where schedules begin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SnapshotAt {
    /// Before the first thread or process is created.
    #[default]
    FirstThread,
    /// The same, but of a thread that the first one has created and waits for: a test of Rust's harness.
    TestThread,
    /// Where the program itself says so.
    Hint,
    /// Where clients begin to speak to a server.
    Clients,
    /// Where a process first waits for a client.
    Listen,
    /// After so many steps of all contexts in the plain order, as `raddle run` has it.
    Step(u64),
    /// At the entry of a function.
    Symbol(String),
}

/// What comes before the number of steps.
const STEP: &str = "step:";

impl std::str::FromStr for SnapshotAt {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "first-thread" => Self::FirstThread,
            "test-thread" => Self::TestThread,
            "hint" => Self::Hint,
            "clients" => Self::Clients,
            "listen" => Self::Listen,
            other => match other.strip_prefix(STEP).map(str::parse) {
                Some(Ok(steps)) => Self::Step(steps),
                _ => Self::Symbol(other.to_owned()),
            },
        })
    }
}

impl std::fmt::Display for SnapshotAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FirstThread => f.write_str("first-thread"),
            Self::TestThread => f.write_str("test-thread"),
            Self::Hint => f.write_str("hint"),
            Self::Clients => f.write_str("clients"),
            Self::Listen => f.write_str("listen"),
            Self::Step(steps) => write!(f, "{STEP}{steps}"),
            Self::Symbol(name) => f.write_str(name),
        }
    }
}

/// Runs a world that has just started to the place where schedules begin.
pub(crate) fn reach(
    world: &mut LinuxWorld,
    about: &About,
    leave: &Leave,
) -> Result<(), StartFailure> {
    let going = &mut Going::InTurn(ContextId(0));
    match &about.snapshot_at {
        SnapshotAt::FirstThread => run_to_first_thread(world, leave),
        SnapshotAt::TestThread => run_to_test(world, leave),
        SnapshotAt::Clients => run_to_clients(world, leave),
        SnapshotAt::Symbol(name) => run_to_symbol(world, name, going, leave),
        SnapshotAt::Step(steps) => run_to_step(world, *steps, &about.inputs.outside, leave),
        SnapshotAt::Hint => run_to_hint(world, going, leave),
        SnapshotAt::Listen => run_to_listen(world, going, leave),
    }
}

/// The step of a run in the plain order at which it comes to a place.
///
/// # Errors
/// It does not come there.
pub fn step_of(inputs: &Inputs, at: &SnapshotAt, leave: &Leave) -> Result<u64, StartFailure> {
    let mut world = LinuxWorld::new(setup(inputs))?;
    let mut going = Going::Plain(Plain::following(inputs.outside.clone()));
    match at {
        SnapshotAt::Step(steps) => return Ok(*steps),
        SnapshotAt::Symbol(name) => run_to_symbol(&mut world, name, &mut going, leave)?,
        SnapshotAt::Hint => run_to_hint(&mut world, &mut going, leave)?,
        SnapshotAt::Listen => run_to_listen(&mut world, &mut going, leave)?,
        // Until then there is but one context.
        SnapshotAt::FirstThread => run_to_first_thread(&mut world, leave)?,
        SnapshotAt::TestThread => run_to_test(&mut world, leave)?,
        SnapshotAt::Clients => run_to_clients(&mut world, leave)?,
    }
    Ok(world
        .contexts()
        .iter()
        .map(|(_, context)| context.steps)
        .sum())
}

/// Who runs on the way to a place.
enum Going {
    /// Everybody in turn, from one stop to the next; this one was the last.
    InTurn(ContextId),
    Plain(Plain),
}

impl Going {
    /// Runs one context to its next stop.
    fn go_on(
        &mut self,
        world: &mut LinuxWorld,
        until: fn(u64) -> Until,
    ) -> Result<(ContextId, Stop), StartFailure> {
        match self {
            Self::InTurn(last) => {
                let Some(next) = successor(world.contexts().runnable(), Some(*last)) else {
                    wait(world)?;
                    return Ok((*last, Stop::Blocked));
                };
                *last = next;
                Ok((next, world.run(next, until(SLICE))))
            }
            Self::Plain(plain) => plain
                .slice(world, STEPS_MAX, until)
                .map_err(|end| match end {
                    End::Hanging => too_long("the end of the recorded part of its run"),
                    _ => StartFailure::Stuck(world.describe_waits().join("; ")),
                }),
        }
    }
}

fn run_to_listen(
    world: &mut LinuxWorld,
    going: &mut Going,
    leave: &Leave,
) -> Result<(), StartFailure> {
    let until = |steps_max| Until::Sync { steps_max };
    let what = "a wait for a client";
    run_on(world, (going, until), what, leave, |world, _, _| {
        world.waits_for_client()
    })
}

/// Runs all contexts to a hint of any program that one of them executes.
fn run_to_hint(
    world: &mut LinuxWorld,
    going: &mut Going,
    leave: &Leave,
) -> Result<(), StartFailure> {
    let mut hints = Hints::default();
    // Programs and libraries come by calls, so a stop at each call is before their code has run.
    let until = |steps_max| Until::Sync { steps_max };
    let what = "`raddle_snapshot()`";
    hints.look(world, ContextId(0));
    let reached = run_on(world, (going, until), what, leave, |world, who, stop| {
        if matches!(stop, Stop::Point { site } if hints.is_hint(*site)) {
            return true;
        }
        hints.look(world, who);
        false
    });
    hints.forget(world);
    match reached {
        Err(StartFailure::NotReached { .. }) if hints.is_empty() => Err(StartFailure::NoHint),
        reached => reached,
    }
}

fn find_symbol(world: &mut LinuxWorld, name: &str) -> Result<u64, StartFailure> {
    let symbols = world.symbols(ContextId(0)).unwrap_or_default();
    let mut found = symbols.addresses_of(name);
    found.extend(symbols.addresses_of_path(name));
    let first = found.first().copied();
    first.ok_or_else(|| StartFailure::NoSymbol(name.to_owned()))
}

/// Runs until some context stands before a function.
fn run_to_symbol(
    world: &mut LinuxWorld,
    name: &str,
    going: &mut Going,
    leave: &Leave,
) -> Result<(), StartFailure> {
    let target = Site::new(world.image(ContextId(0)), find_symbol(world, name)?);
    world.add_point(target);
    let until = |steps_max| Until::Point { steps_max };
    let reached = run_on(
        world,
        (going, until),
        &format!("`{name}`"),
        leave,
        |_, _, stop| matches!(stop, Stop::Point { site } if *site == target),
    );
    world.remove_point(target);
    reached
}

/// Runs all contexts until the place is reached; it is looked for whenever one stops.
fn run_on(
    world: &mut LinuxWorld,
    (going, until): (&mut Going, fn(u64) -> Until),
    what: &str,
    leave: &Leave,
    mut is_reached: impl FnMut(&mut LinuxWorld, ContextId, &Stop) -> bool,
) -> Result<(), StartFailure> {
    while world.statistics().steps < STEPS_MAX {
        if leave.is_over() {
            return Err(StartFailure::Cancelled);
        }
        let (who, stop) = going.go_on(world, until)?;
        match stop {
            Stop::WorldDone { status } => {
                let what = what.to_owned();
                return Err(StartFailure::NotReached { what, status });
            }
            Stop::Unsupported(what) => return Err(StartFailure::Unsupported(what)),
            stop if is_reached(world, who, &stop) => return Ok(()),
            _ => {}
        }
        world.take_events();
    }
    Err(too_long(what))
}

/// Runs everybody in the plain order, and lets the same happen from outside as in the run that had it.
fn run_to_step(
    world: &mut LinuxWorld,
    steps: u64,
    outside: &Outside,
    leave: &Leave,
) -> Result<(), StartFailure> {
    // The first step is where the program begins: there nothing is decided yet.
    if steps == 0 {
        return Ok(());
    }
    let mut plain = Plain::following(Outside {
        ended: None,
        ..outside.clone()
    });
    let end = plain.run(world, steps, &mut |_, _| match leave.is_over() {
        true => Reaction::Stop,
        false => Reaction::GoOn,
    });
    match end {
        End::Hanging => Ok(()),
        End::Abandoned => Err(StartFailure::Cancelled),
        End::Stuck => Err(StartFailure::Stuck(world.describe_waits().join("; "))),
        End::Unsupported(what) => Err(StartFailure::Unsupported(what)),
        End::Exited { status } => Err(StartFailure::NotReached {
            what: format!("its instruction {steps}"),
            status,
        }),
    }
}

/// No context can run: lets time pass.
fn wait(world: &mut LinuxWorld) -> Result<(), StartFailure> {
    if world.advance_time() {
        Ok(())
    } else {
        Err(StartFailure::Stuck(world.describe_waits().join("; ")))
    }
}

fn too_long(what: &str) -> StartFailure {
    StartFailure::Stuck(format!(
        "it made {STEPS_MAX} instructions without coming to {what}"
    ))
}

fn run_to_first_thread(world: &mut LinuxWorld, leave: &Leave) -> Result<(), StartFailure> {
    let first = ContextId(0);
    while world.contexts().get(first).steps < STEPS_MAX {
        if leave.is_over() {
            return Err(StartFailure::Cancelled);
        }
        run_slice(world, first)?;
        if is_creating(world, first) {
            return Ok(());
        }
        while !world.contexts().get(first).is_runnable() {
            wait(world)?;
        }
        world.take_events();
    }
    Err(too_long("its first thread"))
}

/// Runs the harness and the one test it was told to run, until the test creates a context.
fn run_to_test(world: &mut LinuxWorld, leave: &Leave) -> Result<(), StartFailure> {
    while world.statistics().steps < STEPS_MAX {
        if leave.is_over() {
            return Err(StartFailure::Cancelled);
        }
        // The test before the harness, which waits for it.
        let Some(next) = world.contexts().runnable().last().copied() else {
            wait(world)?;
            continue;
        };
        run_slice(world, next)?;
        world.take_events();
        if next != ContextId(0) && is_creating(world, next) {
            return Ok(());
        }
    }
    Err(too_long("the first thread of the test"))
}

/// Runs a server until it is ready, its set-up is done and its clients are connected.
fn run_to_clients(world: &mut LinuxWorld, leave: &Leave) -> Result<(), StartFailure> {
    let steps_max = SLICE;
    let mut last = ContextId(0);
    while world.now().0 < READY_SECONDS * NANOSECONDS {
        if leave.is_over() {
            return Err(StartFailure::Cancelled);
        }
        if let Some((request, reply)) = world.set_up_complaint() {
            return Err(StartFailure::SetUp { request, reply });
        }
        if world.act() >= Some(Act::Clients) {
            return Ok(());
        }
        let runnable = world.contexts().runnable();
        let Some(next) = successor(runnable, Some(last)) else {
            if !world.advance_time() {
                break;
            }
            continue;
        };
        match world.run(next, Until::Sync { steps_max }) {
            Stop::WorldDone { status } => {
                let what = "the requests of its clients".to_owned();
                return Err(StartFailure::NotReached { what, status });
            }
            Stop::Unsupported(what) => return Err(StartFailure::Unsupported(what)),
            _ => {}
        }
        last = next;
        world.take_events();
    }
    Err(StartFailure::NotReady {
        port: world.clients_port().unwrap_or(0),
        seconds: world.now().0 / NANOSECONDS,
    })
}

fn run_slice(world: &mut LinuxWorld, who: ContextId) -> Result<(), StartFailure> {
    let steps_max = SLICE;
    match world.run(who, Until::Sync { steps_max }) {
        Stop::WorldDone { status } => Err(StartFailure::EndedAlone { status }),
        Stop::Unsupported(what) => Err(StartFailure::Unsupported(what)),
        _ => Ok(()),
    }
}

/// Whether a context is about to create another.
fn is_creating(world: &mut LinuxWorld, who: ContextId) -> bool {
    let creates = |number| raddle_calls::of(number).is_some_and(|call| call.creates);
    world.is_entering_call(who)
        && matches!(world.pending(who).kind, PendingKind::Syscall { number } if creates(number))
}
