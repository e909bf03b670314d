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
use raddle_linux::{Halt, LinuxWorld};
use raddle_report::evidence::Held;
use raddle_report::finding::{Confidence, Severity};
use raddle_report::order::set_clocks;
use raddle_report::{Finding, Locks, Place, Word};
use raddle_trace::recording::SEMANTICS;
use raddle_trace::{Expected, Recording, Schedule};
use raddle_world::{ContextId, LockMode};

use crate::checkpoint;
use crate::judge::Rules;
use crate::landmark::landmarks;
use crate::names::name_of;
use crate::schedule_run::{Outcome, Run};
use crate::session::{About, Session, Stacks};
use crate::stack::source_line;
use crate::steps;

pub(crate) use kept::as_found;
pub(crate) use races::{DATA_RACE, race_again, races};

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
    let mut story = steps::tell(session, &run.drive.schedule, telling, block);
    // Where a run was broken off, the world does not stand where it failed.
    session.leave.still()?;
    let mut finding = Finding {
        fingerprint: failure.fingerprint(),
        ..Finding::new(failure.kind(), Severity::Error, Confidence::Confirmed)
    };
    story.put_into(&mut finding);
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
    set_clocks(&mut finding);
    session.leave.still()?;
    Some(finding)
}

/// Keeps the source line of a place.
fn quote(finding: &mut Finding, place: &Place) {
    finding.quote(place, source_line);
}

/// The locks that a context holds where the world stands.
fn held(world: &mut LinuxWorld, who: ContextId) -> Locks {
    let symbols = world.symbols(who).unwrap_or_default();
    let held = world.held_locks(who);
    let held = held.into_iter().map(|section| Held {
        name: name_of(world, &symbols, section.lock),
        address: Some(Word(section.lock)),
        is_shared: section.mode == LockMode::Shared,
        section: Some(section.serial),
    });
    Locks::Known(held.collect())
}
