//! Runs that cannot go on: circles of waiting, lost wake-ups, loops that never end.

use std::collections::{BTreeMap, BTreeSet};

use raddle_detect::Failure;
use raddle_linux::{Effect, Halt, LinuxWorld};
use raddle_report::evidence::Wait;
use raddle_report::words::listed;
use raddle_report::{Action, Finding, Place, Step, Word, action};
use raddle_symbols::SymbolSpace;
use raddle_trace::Facts;
use raddle_world::{ContextId, Liveness, LockMode, Until, WaitReason, World};

use super::{held, quote};
use crate::history::History;
use crate::names::{label, name_of};
use crate::session::Session;
use crate::stack::{self, frames, is_harness, own, own_place};
use crate::steps::number;

/// Steps of a context that runs on and on in which its loop is looked for.
const LOOP_STEPS: u32 = 600;

/// What a context that cannot go on waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// A lock, and who has it.
    Lock {
        object: u64,
        holder: Option<ContextId>,
    },
    /// A lock that it may share with those who have it, but a context waits for it that may not.
    Behind { object: u64, other: ContextId },
    /// To be signalled or woken.
    Signal { object: u64 },
    /// The end of a thread.
    End { of: Option<ContextId> },
    /// Something else that blocks.
    Other(action::Want),
    /// Nothing: it runs.
    Nothing,
}

impl Want {
    /// Who has to do something before the context can go on.
    fn depends_on(self) -> Option<ContextId> {
        match self {
            Self::Lock { holder, .. } => holder,
            Self::Behind { other, .. } => Some(other),
            Self::End { of } => of,
            _ => None,
        }
    }
}

/// The world stands where no context can go on, where a circle has just been closed, or at the step limit.
pub(super) fn describe_waits(
    session: &mut Session,
    failure: &Failure,
    (history, facts): (&History, &Facts),
    finding: &mut Finding,
) {
    let live: Vec<ContextId> = session
        .world
        .contexts()
        .iter()
        .filter(|(_, context)| *context.liveness() != Liveness::Done)
        .map(|(id, _)| id)
        .collect();
    let wants: BTreeMap<ContextId, Want> = live
        .iter()
        .map(|who| (*who, want(session, facts, *who)))
        .collect();
    let circle = match session.world.halt() {
        Some(Halt::Cycle(contexts)) => contexts.clone(),
        _ => circle(&wants),
    };
    // A harness waits for what the test does, and a context that could go on has nothing to do with a deadlock.
    let is_hang = matches!(failure, Failure::Hang { .. });
    let mut wants = wants;
    wants.retain(|who, want| {
        let lines = stack::stack(&mut session.world, *who);
        let is_part = match want {
            Want::Nothing => is_hang && own(&lines).is_some(),
            _ => !is_harness(&lines),
        };
        is_part || circle.contains(who)
    });
    let others = wants.keys().filter(|who| !circle.contains(who));
    // Those of the circle come first.
    let shown: Vec<ContextId> = circle.iter().chain(others).copied().collect();
    for who in shown {
        let want = wants.get(&who).copied().unwrap_or(Want::Nothing);
        show(session, who, want, circle.contains(&who), finding);
    }
    match failure {
        Failure::Hang { .. } => describe_hang(session, &wants, finding),
        _ if !circle.is_empty() => describe_circle(session, &wants, &circle, finding),
        _ => describe_silence(session, history, &wants, finding),
    }
}

fn want(session: &mut Session, facts: &Facts, who: ContextId) -> Want {
    let world = &mut session.world;
    let Liveness::Blocked(reason) = world.contexts().get(who).liveness().clone() else {
        return Want::Nothing;
    };
    match (world.pending_call(who), reason) {
        (Some(call), _) if call.effect == Effect::Acquire => want_lock(session, call.object, who),
        (Some(call), _)
            if matches!(
                call.effect,
                Effect::ConditionWait | Effect::Wait | Effect::Once
            ) =>
        {
            Want::Signal {
                object: call.object,
            }
        }
        (Some(call), _) if call.effect == Effect::JoinThread => Want::End {
            of: world.thread_of_handle(who, call.object),
        },
        (_, WaitReason::Futex { addr }) => {
            // Locks that a compiler has inlined are known by the word they wait on.
            let word = world.read_word(who, addr).unwrap_or(0);
            let taker = world
                .location(who, addr)
                .and_then(|location| facts.taker(location, addr))
                .filter(|_| word & 0xFFFF_FFFF != 0);
            match taker {
                // A thread that has set the word once and waits says that it waits, as a parked one does.
                Some(taker)
                    if has_not_ended(world, taker.context)
                        && (taker.context != who || taker.tries_again) =>
                {
                    Want::Lock {
                        object: addr,
                        holder: Some(taker.context),
                    }
                }
                _ => Want::Signal { object: addr },
            }
        }
        (_, WaitReason::Io { .. }) => Want::Other(action::Want::Io),
        (_, WaitReason::Child) => Want::Other(action::Want::Child),
        (_, WaitReason::Signal) => Want::Other(action::Want::SystemSignal),
        (_, WaitReason::Sleep) => Want::Other(action::Want::Time),
        _ => Want::Other(action::Want::Other),
    }
}

/// A context that has ended has no lock that was inferred: the last to change a counter of wake-ups looks the same.
fn has_not_ended(world: &LinuxWorld, who: ContextId) -> bool {
    let context = world.contexts().find(who);
    context.is_some_and(|context| *context.liveness() != Liveness::Done)
}

/// A reader that has a lock already is kept from having it twice by a writer that waits.
fn want_lock(session: &Session, object: u64, who: ContextId) -> Want {
    let world = &session.world;
    let held = world.held_locks(who);
    let reads = held
        .iter()
        .any(|section| section.lock == object && section.mode == LockMode::Shared);
    let holder = holder(session, object, who);
    let waits = |other: &ContextId| {
        let liveness = world.contexts().get(*other).liveness();
        let call = world.pending_call(*other);
        *other != who
            && matches!(liveness, Liveness::Blocked(_))
            && call.is_some_and(|call| call.effect == Effect::Acquire && call.object == object)
    };
    let mut others = world.contexts().iter().map(|(id, _)| id);
    match others.find(waits) {
        Some(other) if reads && holder == Some(who) => Want::Behind { object, other },
        _ => Want::Lock { object, holder },
    }
}

fn holder(session: &Session, lock: u64, except: ContextId) -> Option<ContextId> {
    let table = session.world.contexts();
    let holds = |id: ContextId| {
        let held = session.world.held_locks(id);
        held.iter().any(|section| section.lock == lock)
    };
    let others = table.iter().map(|(id, _)| id).filter(|id| *id != except);
    others.chain([except]).find(|id| holds(*id))
}

/// The contexts of a circle of waiting, if there is one.
fn circle(wants: &BTreeMap<ContextId, Want>) -> Vec<ContextId> {
    for start in wants.keys() {
        let mut path = vec![*start];
        let mut at = *start;
        while let Some(next) = wants.get(&at).and_then(|want| want.depends_on()) {
            if next == *start {
                return path;
            }
            if path.contains(&next) {
                break;
            }
            path.push(next);
            at = next;
        }
    }
    Vec::new()
}

/// Where one context stands and what it waits for.
fn show(session: &mut Session, who: ContextId, want: Want, in_circle: bool, finding: &mut Finding) {
    let symbols = session.world.symbols(who).unwrap_or_default();
    let lines = stack::stack(&mut session.world, who);
    let (action, object) = match want {
        Want::Lock { object, .. } | Want::Behind { object, .. } => {
            (blocked(action::Want::Lock), Some(object))
        }
        Want::Signal { object } => (blocked(action::Want::Signal), Some(object)),
        Want::End { .. } => (blocked(action::Want::End), None),
        Want::Other(on) => (blocked(on), None),
        Want::Nothing => (Action::RunOn, None),
    };
    let name = object.map(|object| name_of(&mut session.world, &symbols, who, object));
    // Without own code, the function of another library says more than what the C library does inside.
    let outside = || lines.iter().find(|line| !line.is_c_library);
    let place = own(&lines).or_else(outside).or(lines.first());
    let place = place.map_or_else(Place::default, |line| line.place.clone());
    quote(finding, &place);
    if want != Want::Nothing {
        finding.waits.push(Wait {
            context: number(who),
            step: finding.steps.len(),
            object: name.clone(),
            holder: want.depends_on().map(number),
            in_circle,
        });
    }
    let step = Step {
        object: name,
        address: object.map(Word),
        stack: finding.stack(frames(&lines)),
        locks: held(&mut session.world, who),
        ..Step::new(number(who), action, place)
    };
    finding.steps.push(step);
}

fn blocked(on: action::Want) -> Action {
    Action::Blocked { on }
}

fn describe_circle(
    session: &mut Session,
    wants: &BTreeMap<ContextId, Want>,
    circle: &[ContextId],
    finding: &mut Finding,
) {
    let symbols = session.world.symbols(circle[0]).unwrap_or_default();
    let world = &session.world;
    let labels: Vec<String> = circle.iter().map(|who| label(world, *who)).collect();
    finding.title = match circle {
        [_] => format!("deadlock: {} waits for itself", labels[0]),
        _ => format!("deadlock: {} wait for each other", listed(&labels)),
    };
    let parts: Vec<String> = circle
        .iter()
        .filter_map(|who| link(session, &symbols, *who, wants.get(who).copied()?))
        .collect();
    finding.why = parts.join("; ");
    if session.world.halt().is_some()
        && let Some(last) = labels.last()
    {
        finding
            .notes
            .insert(0, format!("the circle was closed by {last}"));
    }
    finding.objects = circle
        .iter()
        .filter_map(|who| match wants.get(who) {
            Some(Want::Lock { object, .. } | Want::Behind { object, .. }) => {
                Some(name_of(&mut session.world, &symbols, *who, *object))
            }
            _ => None,
        })
        .collect();
}

/// `thread 2 wants `lock`, which thread 3 holds`.
fn link(
    session: &mut Session,
    symbols: &SymbolSpace,
    who: ContextId,
    want: Want,
) -> Option<String> {
    let world = &mut session.world;
    let me = label(world, who);
    let other = |world: &LinuxWorld, id: ContextId| {
        if id == who {
            "it".to_owned()
        } else {
            label(world, id)
        }
    };
    match want {
        Want::Lock {
            object,
            holder: Some(holder),
        } => {
            let lock = name_of(world, symbols, who, object);
            let itself = if holder == who { " itself" } else { "" };
            Some(format!(
                "{me} wants {lock}, which {} holds{itself}",
                other(world, holder)
            ))
        }
        Want::Behind { object, other } => {
            let lock = name_of(world, symbols, who, object);
            Some(format!(
                "{me} wants to read under {lock} once more, for which {} waits already",
                label(world, other)
            ))
        }
        Want::End { of: Some(of) } => {
            Some(format!("{me} waits for the end of {}", other(world, of)))
        }
        _ => None,
    }
}

/// No context can go on, and none waits for another one in particular: a wake-up that never comes.
fn describe_silence(
    session: &mut Session,
    history: &History,
    wants: &BTreeMap<ContextId, Want>,
    finding: &mut Finding,
) {
    let waiting = wants.iter().find_map(|(who, want)| match want {
        Want::Signal { object } => Some((*who, *object)),
        _ => None,
    });
    let Some((waiter, object)) = waiting else {
        finding.title = "deadlock: no thread can ever go on".into();
        finding.why = "every thread waits for something that no other thread will do".into();
        return;
    };
    let symbols = session.world.symbols(waiter).unwrap_or_default();
    let me = label(&session.world, waiter);
    let name = name_of(&mut session.world, &symbols, waiter, object);
    let lost = wants.iter().find_map(|(who, want)| match want {
        Want::Signal { object } => Some((*who, *object, history.lost_wake(*who, *object)?)),
        _ => None,
    });
    if let Some((waiter, object, wake)) = lost {
        let me = label(&session.world, waiter);
        let name = name_of(&mut session.world, &symbols, waiter, object);
        let sender = label(&session.world, wake.context);
        let place = wake
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!(" at {}", place.describe()));
        finding.title = format!("lost wake-up: {me} waits on {name} for ever");
        finding.why = format!(
            "{sender} has woken {name}{place} before {me} began to wait, and nobody is left to do it again"
        );
        finding.objects = vec![name];
    } else {
        finding.title = format!("deadlock: {me} waits on {name}, and nobody is left to wake it");
        finding.why = format!(
            "in this order no thread wakes {name}: a wake-up was never sent, or went to another waiter"
        );
        finding.objects = vec![name];
    }
}

fn describe_hang(session: &mut Session, wants: &BTreeMap<ContextId, Want>, finding: &mut Finding) {
    finding.title = "hang: the program does not end although every thread gets its turn".into();
    finding.why = "the step limit was reached while all threads were scheduled fairly: a livelock, or a loop that waits for something that no longer happens".into();
    let running: Vec<ContextId> = wants
        .iter()
        .filter(|(_, want)| **want == Want::Nothing)
        .map(|(who, _)| *who)
        .collect();
    for who in running {
        let lines = loop_lines(session, who);
        if !lines.is_empty() {
            let thread = label(&session.world, who);
            finding
                .notes
                .push(format!("{thread} goes round: {}", lines.join(", ")));
        }
    }
}

/// The own source lines that a context visits when it goes on alone.
fn loop_lines(session: &mut Session, who: ContextId) -> Vec<String> {
    let world = &mut session.world;
    let symbols = world.symbols(who).unwrap_or_default();
    let mut visited: BTreeSet<(String, u32)> = BTreeSet::new();
    for _ in 0..LOOP_STEPS {
        if !world.contexts().get(who).is_runnable() {
            break;
        }
        world.run(who, Until::Steps(1));
        world.take_events();
        let Some(pc) = world.registers(who).and_then(|registers| registers.pc()) else {
            break;
        };
        if let Some(place) = own_place(&symbols, pc)
            && place.line > 0
        {
            visited.insert((place.short_file().to_owned(), place.line));
        }
    }
    visited
        .into_iter()
        .map(|(file, line)| format!("{file}:{line}"))
        .collect()
}
