//! From a failing schedule to a finding: minimised, replayed twice, told in steps.
//!
//! Reading order: [`finding`] and [`describe_failure`] here, then one file for each way to fail: [`ending`],
//! [`heap`], [`waits`]; `races` are seen, not failed at; [`kept`] is what is left if there is no time for any of it.

mod ending;
mod heap;
mod kept;
mod races;
mod waits;

use raddle_detect::Failure;
use raddle_linux::Halt;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;
use raddle_trace::recording::SEMANTICS;
use raddle_trace::{Expected, Recording};

use crate::campaign::Options;
use crate::checkpoint;
use crate::judge::Rules;
use crate::landmark::landmarks;
use crate::minimise::{follow, impatient, minimise};
use crate::schedule_run::{Digests, Outcome};
use crate::session::{Session, Stacks};
use crate::stack::{self, describe};
use crate::steps;

pub(crate) use kept::keep_new;
pub(crate) use races::races;

/// Frames of a stack in a note.
const FRAMES_SHOWN: usize = 8;

/// Explains a failing run; nothing if the time for it is used up.
pub(crate) fn finding(
    session: &mut Session,
    failing: &Outcome,
    rules: &Rules,
    options: &Options,
) -> Option<(Finding, Recording)> {
    session.leave.still()?;
    let minimised = minimise(session, failing, rules);
    session.leave.still()?;
    let is_reproduced = minimised.is_some();
    let is_minimal = minimised.as_ref().is_some_and(|m| m.is_minimal);
    let preemptions = minimised.as_ref().map_or(0, |m| m.preemptions);
    let outcome = minimised.map_or_else(|| failing.clone(), |m| m.outcome);
    let digests: Vec<Digests> = (0..2)
        .map(|_| {
            follow(session, &outcome.drive.schedule, rules);
            Digests::of(&mut session.world)
        })
        .collect();
    let is_confirmed = is_reproduced && digests[0] == digests[1];
    let failure = failing.failure.as_ref()?;
    let mut finding = describe_failure(session, failure, &outcome, rules)?;
    finding.confidence = if is_confirmed {
        Confidence::Confirmed
    } else {
        Confidence::Predicted
    };
    finding.notes.push(if is_confirmed {
        size_note(failing.index, &outcome, preemptions, is_minimal)
    } else {
        "the replay of this run did not fail in the same way".into()
    });
    finding.notes.extend(special_notes(&outcome));
    let recording = Recording {
        checkpoints: checkpoint::checkpoints(session, &outcome.drive, rules),
        preemptions,
        landmarks: landmarks(session, &outcome.drive.schedule, rules),
        ..recording(session, &finding, &outcome, digests[0], rules, options)
    };
    session.leave.still()?;
    Some((finding, recording))
}

/// What is needed to have a run again, without what helps to find out why it could not be had.
fn recording(
    session: &Session,
    finding: &Finding,
    outcome: &Outcome,
    digests: Digests,
    rules: &Rules,
    options: &Options,
) -> Recording {
    Recording {
        semantics: SEMANTICS,
        needs: Vec::new(),
        snapshot_at: options.snapshot_at.to_string(),
        inputs: options.inputs.clone(),
        limits: rules.limits,
        checks: options.checks,
        expected: Expected {
            exit: rules.expected_exit.unwrap_or(0),
            output: options.expected_output.clone(),
            oracle: options.oracle.clone(),
        },
        snapshot_digest: session.digest,
        files: checkpoint::files(session),
        checkpoints: Vec::new(),
        run_digest: digests.run,
        state_digest: digests.state,
        failure: finding.title.clone(),
        preemptions: outcome.drive.switches,
        fingerprint: finding.fingerprint.clone(),
        kind: finding.kind.clone(),
        landmarks: Vec::new(),
        schedule: outcome.drive.schedule.clone(),
    }
}

/// What is unusual about the order.
fn special_notes(outcome: &Outcome) -> Vec<String> {
    let schedule = &outcome.drive.schedule;
    let (torn, jumps) = (to_u64(schedule.torn()), to_u64(schedule.clock_jumps()));
    let mut notes = Vec::new();
    if torn > 0 {
        notes.push(format!(
            "{torn} of the switches come{} between the read and the write of one instruction without LOCK, which is not atomic on a machine with several processors",
            if torn == 1 { "s" } else { "" }
        ));
    }
    if jumps > 0 {
        notes.push(format!(
            "needs {} of the clock: a timer or time-out comes while others could still run, as on a machine that is busy for that long",
            counted(jumps, "jump")
        ));
    }
    notes
}

/// How big the order is that is left.
fn size_note(schedule: u64, outcome: &Outcome, preemptions: u64, is_minimal: bool) -> String {
    let left = if is_minimal {
        "minimal"
    } else {
        "not yet minimal, since the search was cut short"
    };
    format!(
        "{left}: {}, {} in all; found in schedule {schedule}, reproduced in 2 of 2 replays",
        counted(preemptions, "preemption"),
        counted(outcome.drive.switches, "context switch"),
    )
}

/// The finding of a failing run, without what minimisation knows; nothing if the time for it is used up.
pub(crate) fn describe_failure(
    session: &mut Session,
    failure: &Failure,
    outcome: &Outcome,
    rules: &Rules,
) -> Option<Finding> {
    session.keep_stacks(Stacks::Whole);
    let described = told(session, failure, outcome, rules);
    session.keep_stacks(Stacks::Callers);
    described
}

fn told(
    session: &mut Session,
    failure: &Failure,
    outcome: &Outcome,
    rules: &Rules,
) -> Option<Finding> {
    follow(session, &outcome.drive.schedule, rules);
    let halt = session.world.halt().cloned();
    let block = match &halt {
        Some(Halt::Heap(error)) => error.block.as_ref().map(|block| block.addr),
        _ => None,
    };
    // To tell every round of a loop until it counts as hanging takes long and tells nothing more.
    let impatient =
        matches!(failure, Failure::Hang { .. }).then(|| impatient(session, outcome, rules));
    let telling = impatient.as_ref().unwrap_or(rules);
    let story = steps::tell(session, &outcome.drive.schedule, telling, block);
    // Where a run was broken off, the world does not stand where it failed.
    session.leave.still()?;
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
            "{} left out; `raddle replay --trace` shows all",
            match story.left_out {
                1 => "1 more step is".into(),
                count => format!("{count} more steps are"),
            }
        ));
    }
    // The telling has run the schedule to its end: the world stands where it failed.
    match (failure, halt) {
        (_, Some(Halt::Heap(error))) => heap::describe_error(session, &error, &mut finding),
        (Failure::Deadlock { .. } | Failure::Hang { .. }, _) => {
            waits::describe_waits(session, failure, &story.history, &mut finding);
        }
        _ => {
            let complaint = story.complaint;
            ending::describe_end(session, failure, complaint, (outcome, rules), &mut finding);
        }
    }
    finding.notes.extend(story.creations);
    session.leave.still()?;
    Some(finding)
}

/// `stack of thread 2: a < b < c`.
fn stack_note(what: &str, lines: &[stack::Line]) -> Option<String> {
    // What a library does deep inside, and how a thread gets started, is of no interest.
    let own = lines.iter().position(|line| !line.is_library);
    let from = own.map_or(0, |own| own.saturating_sub(2));
    let last = lines.iter().rposition(|line| !line.is_library);
    let to = last.map_or(lines.len(), |last| last + 1);
    let frames: Vec<String> = lines[from..to]
        .iter()
        .take(FRAMES_SHOWN)
        .map(|line| describe(&line.place))
        .collect();
    (!frames.is_empty()).then(|| format!("{what}: {}", frames.join(" < ")))
}
