//! From a failing schedule to a finding: minimised, replayed twice, told in steps.

use std::collections::BTreeMap;

use raddle_detect::{Failure, Race};
use raddle_linux::Effect;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity, Step};
use raddle_stdx::Digest;
use raddle_symbols::SymbolSpace;
use raddle_trace::recording::SEMANTICS;
use raddle_trace::{Limits, Recording};
use raddle_world::{ContextId, Liveness, World};

use crate::campaign::Options;
use crate::minimise::{follow, minimise};
use crate::schedule_run::{Outcome, Rules};
use crate::session::Session;
use crate::stack::{self, describe, place_of};
use crate::steps::{self, label, name_of, short_file};

/// Frames of a stack in a note.
const FRAMES_SHOWN: usize = 8;

/// Explains a failing run.
pub(crate) fn finding(
    session: &mut Session,
    failing: &Outcome,
    rules: Rules,
    options: &Options,
) -> (Finding, Recording) {
    let minimised = minimise(session, failing, rules);
    let is_reproduced = minimised.is_some();
    let is_minimal = minimised.as_ref().is_some_and(|m| m.is_minimal);
    let outcome = minimised.map_or_else(|| failing.clone(), |m| m.outcome);
    let failure = failing
        .failure
        .clone()
        .expect("only failing runs are explained");
    let digests: Vec<(u64, u64)> = (0..2)
        .map(|_| {
            follow(session, &outcome.drive.schedule, rules);
            (session.world.run_digest(), session.world.state_digest())
        })
        .collect();
    let is_confirmed = is_reproduced && digests[0] == digests[1];
    let mut finding = describe_failure(session, &failure, &outcome, rules);
    let jumps = outcome.drive.schedule.clock_jumps();
    let count = outcome.drive.schedule.len() - jumps;
    let switches = outcome.drive.switches;
    finding.confidence = if is_confirmed {
        Confidence::Confirmed
    } else {
        Confidence::Predicted
    };
    finding.notes.push(match (is_confirmed, is_minimal) {
        (false, _) => "the replay of this run did not fail in the same way".into(),
        (true, true) => format!(
            "minimal: {count} unforced context switches, {switches} in all; found in schedule {}, reproduced in 2 of 2 replays",
            failing.index
        ),
        (true, false) => format!(
            "{count} unforced context switches, {switches} in all (not yet minimal: the search was cut short); found in schedule {}, reproduced in 2 of 2 replays",
            failing.index
        ),
    });
    let torn = outcome.drive.schedule.torn();
    if torn > 0 {
        finding.notes.push(format!(
            "{torn} of the switches come{} between the read and the write of one instruction without LOCK, which is not atomic on a machine with several processors",
            if torn == 1 { "s" } else { "" }
        ));
    }
    if jumps > 0 {
        finding.notes.push(format!(
            "needs {jumps} jump{} of the clock: a timer or time-out comes while others could still run, as on a machine that is busy for that long",
            if jumps == 1 { "" } else { "s" }
        ));
    }
    let recording = Recording {
        semantics: SEMANTICS,
        snapshot_at: options.snapshot_at.to_string(),
        inputs: options.inputs.clone(),
        limits: rules.limits,
        expected_exit: rules.expected_exit,
        snapshot_digest: session.digest,
        run_digest: digests[0].0,
        state_digest: digests[0].1,
        failure: finding.title.clone(),
        fingerprint: finding.fingerprint.clone(),
        schedule: outcome.drive.schedule,
    };
    (finding, recording)
}

/// The finding of a failing run, without what minimisation knows.
pub(crate) fn describe_failure(
    session: &mut Session,
    failure: &Failure,
    outcome: &Outcome,
    rules: Rules,
) -> Finding {
    let story = steps::tell(session, &outcome.drive.schedule, rules);
    let mut finding = Finding {
        kind: failure.kind().into(),
        severity: Severity::Error,
        confidence: Confidence::Confirmed,
        title: String::new(),
        objects: story.objects,
        steps: story.steps,
        why: String::new(),
        notes: Vec::new(),
        fingerprint: failure.fingerprint(),
        replay: None,
    };
    if story.left_out > 0 {
        finding.notes.push(format!(
            "{} more steps are left out; `raddle replay --trace` shows all",
            story.left_out
        ));
    }
    match failure {
        Failure::Deadlock { .. } | Failure::Hang { .. } => {
            describe_waits(session, failure, outcome, rules, &mut finding);
        }
        _ => describe_end(session, failure, outcome, rules, &mut finding),
    }
    finding.notes.extend(story.creations);
    finding
}

/// A run that ended: the stack at its last instruction.
fn describe_end(
    session: &mut Session,
    failure: &Failure,
    outcome: &Outcome,
    rules: Rules,
    finding: &mut Finding,
) {
    let limits = Limits {
        steps: outcome.drive.steps,
        ..rules.limits
    };
    let stopped = follow(session, &outcome.drive.schedule, Rules { limits, ..rules });
    let who = stopped.drive.last.0;
    let lines = stack::stack(&mut session.world, who);
    let own = lines.iter().find(|line| !session.is_library(line.pc));
    let place = own.map_or_else(String::new, |line| format!(" at {}", describe(&line.place)));
    let thread = label(&session.world, who);
    match failure {
        Failure::Crash { signal, text, .. } => {
            let access = text.rsplit_once("), ").map_or("", |(_, access)| access);
            let signal = raddle_linux::describe_status(*signal);
            let signal = signal.trim_start_matches("killed by ");
            finding.title = format!("crash: {signal}{place}");
            finding.why = if access.is_empty() {
                format!("{thread} was killed by {signal} in this order")
            } else {
                format!("{thread} was killed by {signal} while {access}, in this order")
            };
        }
        Failure::Assertion { message } => {
            finding.title = format!("assertion failed: {message}");
            finding.why = format!("in this order {thread} gives up{place}");
        }
        Failure::WrongExit { status, expected } => {
            finding.title = format!("exit status {status} instead of {expected}");
            finding.why = format!(
                "in this order the program ends with status {status}; without interruptions it ends with {expected}"
            );
        }
        Failure::Deadlock { .. } | Failure::Hang { .. } => {}
    }
    if let Some(line) = own {
        let at = line.place.clone();
        finding.steps.push(Step {
            context: thread.clone(),
            action: match failure {
                Failure::Crash { .. } => "crashes".into(),
                Failure::Assertion { .. } => "gives up".into(),
                _ => "ends the program".into(),
            },
            excerpt: stack::excerpt(&at),
            place: short_file(at),
            locks: Vec::new(),
        });
    }
    finding.notes.extend(stack_note(&thread, &lines));
}

fn stack_note(thread: &str, lines: &[stack::Line]) -> Option<String> {
    let frames: Vec<String> = lines
        .iter()
        .take(FRAMES_SHOWN)
        .map(|line| describe(&line.place))
        .collect();
    (!frames.is_empty()).then(|| format!("stack of {thread}: {}", frames.join(" < ")))
}

/// A run that cannot go on: who waits for what, and who has it.
fn describe_waits(
    session: &mut Session,
    failure: &Failure,
    outcome: &Outcome,
    rules: Rules,
    finding: &mut Finding,
) {
    follow(session, &outcome.drive.schedule, rules);
    let live: Vec<ContextId> = session
        .world
        .contexts()
        .iter()
        .filter(|(_, context)| context.liveness != Liveness::Done)
        .map(|(id, _)| id)
        .collect();
    let mut wanted: BTreeMap<ContextId, u64> = BTreeMap::new();
    let mut waits_for_condition = false;
    for who in live.iter().copied() {
        let Some(symbols) = session.world.symbols(who) else {
            continue;
        };
        let lines = stack::stack(&mut session.world, who);
        let own = lines.iter().find(|line| !session.is_library(line.pc));
        let call = session.world.pending_call(who);
        let is_blocked = matches!(
            session.world.contexts().get(who).liveness,
            Liveness::Blocked(_)
        );
        let action = match call {
            Some(call) if is_blocked && call.effect == Effect::Acquire => {
                wanted.insert(who, call.object);
                format!("waits for {}", name_of(&symbols, call.object))
            }
            Some(call) if is_blocked && call.effect == Effect::ConditionWait => {
                waits_for_condition = true;
                format!(
                    "waits to be signalled on {}",
                    name_of(&symbols, call.object)
                )
            }
            Some(call) if is_blocked && call.effect == Effect::JoinThread => {
                "waits for a thread to end".into()
            }
            Some(call) if is_blocked => format!("waits for {}", name_of(&symbols, call.object)),
            _ if is_blocked => "waits".into(),
            _ => "runs on and on".into(),
        };
        let place = own.or(lines.first()).map(|line| line.place.clone());
        let place = place.unwrap_or_default();
        finding.steps.push(Step {
            context: label(&session.world, who),
            action,
            excerpt: stack::excerpt(&place),
            place: short_file(place),
            locks: lock_names(session, &symbols, who),
        });
        let thread = label(&session.world, who);
        finding.notes.extend(stack_note(&thread, &lines));
    }
    let cycle = cycle(session, &wanted);
    let is_deadlock = matches!(failure, Failure::Deadlock { .. });
    finding.title = match (is_deadlock, cycle.is_empty()) {
        (true, false) => format!("deadlock: {} wait for each other", names(session, &cycle)),
        (true, true) if waits_for_condition => {
            "deadlock: a thread waits for a signal that nobody is left to send".into()
        }
        (true, true) => "deadlock: no thread can ever go on".into(),
        (false, _) => "hang: the program does not end although every thread gets its turn".into(),
    };
    finding.why = why_stuck(session, &wanted, &cycle, is_deadlock, waits_for_condition);
}

fn why_stuck(
    session: &mut Session,
    wanted: &BTreeMap<ContextId, u64>,
    cycle: &[ContextId],
    is_deadlock: bool,
    waits_for_condition: bool,
) -> String {
    if !cycle.is_empty() {
        let symbols = session.world.symbols(cycle[0]).unwrap_or_default();
        let parts: Vec<String> = cycle
            .iter()
            .map(|who| {
                let lock = wanted[who];
                let holder = holder(session, lock, *who);
                format!(
                    "{} wants {}, which {} holds",
                    label(&session.world, *who),
                    name_of(&symbols, lock),
                    holder.map_or_else(|| "nobody".into(), |id| label(&session.world, id))
                )
            })
            .collect();
        return parts.join("; ");
    }
    match (is_deadlock, waits_for_condition) {
        (true, true) => {
            "the signal was sent before the waiting began, or never: a lost wake-up".into()
        }
        (true, false) => "every thread waits for something that no other thread will do".into(),
        (false, _) => {
            "the step limit was reached while all threads were scheduled fairly: a livelock, or a loop that waits for something that no longer happens".into()
        }
    }
}

fn names(session: &Session, who: &[ContextId]) -> String {
    let names: Vec<String> = who.iter().map(|id| label(&session.world, *id)).collect();
    names.join(" and ")
}

fn lock_names(session: &Session, symbols: &SymbolSpace, who: ContextId) -> Vec<String> {
    session
        .world
        .held_locks(who)
        .iter()
        .map(|(lock, _)| name_of(symbols, *lock))
        .collect()
}

fn holder(session: &Session, lock: u64, except: ContextId) -> Option<ContextId> {
    let table = session.world.contexts();
    let holds = |id: ContextId| {
        session
            .world
            .held_locks(id)
            .iter()
            .any(|(held, _)| *held == lock)
    };
    let others = table.iter().map(|(id, _)| id).filter(|id| *id != except);
    others.chain([except]).find(|id| holds(*id))
}

/// The contexts of a cycle of waiting, if there is one.
fn cycle(session: &Session, wanted: &BTreeMap<ContextId, u64>) -> Vec<ContextId> {
    for start in wanted.keys() {
        let mut path = vec![*start];
        let mut at = *start;
        while let Some(lock) = wanted.get(&at)
            && let Some(next) = holder(session, *lock, at)
        {
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

/// Data races as findings, one for each pair of source lines.
pub(crate) fn races(
    session: &mut Session,
    races: &BTreeMap<(u64, u64), (Race, Outcome)>,
    _rules: Rules,
) -> Vec<Finding> {
    session.restore();
    let Some(symbols) = session.world.symbols(ContextId(0)) else {
        return Vec::new();
    };
    let mut by_lines: BTreeMap<String, Finding> = BTreeMap::new();
    for (race, outcome) in races.values() {
        let data = symbols.data_at(race.addr);
        if data.as_ref().is_some_and(|data| data.is_atomic) {
            continue;
        }
        let object = name_of(&symbols, race.addr);
        let sides = [race.first, race.second];
        let steps: Vec<Step> = sides
            .iter()
            .map(|side| {
                let place = place_of(&symbols, side.pc);
                Step {
                    context: format!("thread {}", side.context.0 + 1),
                    action: format!("{} {object}", if side.writes { "writes" } else { "reads" }),
                    excerpt: stack::excerpt(&place),
                    place: short_file(place),
                    locks: Vec::new(),
                }
            })
            .collect();
        // Plain moves may be atomic operations of Rust; without a type they prove nothing.
        let is_rust = steps.iter().any(|step| step.place.file.ends_with(".rs"));
        let key = format!(
            "{} {} {}",
            describe(&steps[0].place),
            describe(&steps[1].place),
            data.map_or_else(String::new, |data| data.path)
        );
        let mut digest = Digest::default();
        digest.bytes(key.as_bytes());
        by_lines.entry(key).or_insert_with(|| Finding {
            kind: "data-race".into(),
            severity: Severity::Warning,
            confidence: if is_rust {
                Confidence::Predicted
            } else {
                Confidence::Confirmed
            },
            title: format!(
                "data race on {object} between {} and {}",
                describe(&steps[0].place),
                describe(&steps[1].place)
            ),
            objects: vec![object],
            steps,
            why: "no lock, creation, join or atomic operation orders these two accesses".into(),
            notes: vec![format!("seen in schedule {}", outcome.index)],
            fingerprint: format!("{:016x}", digest.value()),
            replay: None,
        });
    }
    by_lines.into_values().collect()
}
