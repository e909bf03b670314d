//! From a failing schedule to a finding: minimised, replayed twice, told in steps.
//!
//! Reading order: [`finding`] and [`describe_failure`] here, then one file for each way to fail: [`ending`],
//! [`heap`], [`waits`]; `races` are seen, not failed at; [`kept`] is what is left if there is no time for any of it.

mod ending;
mod heap;
mod kept;
mod races;
mod waits;

use raddle_campaign::minimise::impatient;
use raddle_campaign::{Confirmed, Digests, Found, follow};
use raddle_detect::{Failure, Race};
use raddle_linux::Halt;
use raddle_report::Finding;
use raddle_report::finding::{Confidence, Severity};
use raddle_trace::recording::SEMANTICS;
use raddle_trace::{Expected, Recording, Schedule};

use crate::checkpoint;
use crate::judge::Rules;
use crate::landmark::landmarks;
use crate::schedule_run::{Outcome, Run};
use crate::session::{About, Session, Stacks};
use crate::stack::{self, describe};
use crate::steps;

pub(crate) use kept::as_found;
pub(crate) use races::{DATA_RACE, race_again, races};

/// Frames of a stack in a note.
const FRAMES_SHOWN: usize = 8;

/// Explains a failing run; nothing if the time for it is used up.
pub(crate) fn finding(
    session: &mut Session,
    failing: &Outcome,
    confirmed: Confirmed<Failure, Race, ()>,
    rules: &Rules,
) -> Option<Found<Recording>> {
    let failure = failing.failure.as_ref()?;
    let run = confirmed.run;
    let finding = describe_failure(session, failure, &run, rules)?;
    let recording = Recording {
        checkpoints: checkpoint::checkpoints(session, &run.drive, rules),
        preemptions: confirmed.preemptions,
        landmarks: landmarks(session, &run.drive.schedule, rules),
        ..recording(
            session,
            &finding,
            &run.drive.schedule,
            confirmed.digests,
            rules,
        )
    };
    session.leave.still()?;
    Some(Found { finding, recording })
}

/// What is needed to have a run again, without what helps to find out why it could not be had.
fn recording(
    session: &Session,
    finding: &Finding,
    schedule: &Schedule,
    digests: Digests,
    rules: &Rules,
) -> Recording {
    let About {
        inputs,
        snapshot_at,
        checks,
        expected_output,
        oracle,
        ..
    } = &*session.about;
    Recording {
        semantics: SEMANTICS,
        needs: Vec::new(),
        snapshot_at: snapshot_at.to_string(),
        inputs: inputs.clone(),
        limits: rules.limits,
        checks: *checks,
        expected: Expected {
            exit: rules.expected_exit.unwrap_or(0),
            output: expected_output.clone(),
            oracle: oracle.clone(),
        },
        snapshot_digest: session.digest,
        files: checkpoint::files(session),
        checkpoints: Vec::new(),
        run_digest: digests.run,
        state_digest: digests.state,
        failure: finding.title.clone(),
        preemptions: 0,
        fingerprint: finding.fingerprint.clone(),
        kind: finding.kind.clone(),
        landmarks: Vec::new(),
        schedule: schedule.clone(),
    }
}

/// The finding of a failing run, without what minimisation knows; nothing if the time for it is used up.
pub(crate) fn describe_failure(
    session: &mut Session,
    failure: &Failure,
    run: &Run,
    rules: &Rules,
) -> Option<Finding> {
    session.keep_stacks(Stacks::Whole);
    let described = told(session, failure, run, rules);
    session.keep_stacks(Stacks::Callers);
    described
}

fn told(session: &mut Session, failure: &Failure, run: &Run, rules: &Rules) -> Option<Finding> {
    follow(session, &run.drive.schedule, rules);
    let halt = session.world.halt().cloned();
    let block = match &halt {
        Some(Halt::Heap(error)) => error.block.as_ref().map(|block| block.addr),
        _ => None,
    };
    // To tell every round of a loop until it counts as hanging takes long and tells nothing more.
    let impatient =
        matches!(failure, Failure::Hang { .. }).then(|| impatient(session, run.contexts, rules));
    let telling = impatient.as_ref().unwrap_or(rules);
    let story = steps::tell(session, &run.drive.schedule, telling, block);
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
            let told = (&story.history, &story.facts);
            waits::describe_waits(session, failure, told, &mut finding);
        }
        _ => {
            let complaint = story.complaint;
            ending::describe_end(session, failure, complaint, (run, rules), &mut finding);
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
