//! From a failing schedule to a finding: minimised, replayed twice, told in steps.
//!
//! Reading order: [`finding`] and [`describe_failure`] here, then one file for each way to fail: [`ending`],
//! [`heap`], [`waits`]; `races` are seen, not failed at; [`kept`] is what is left if there is no time for any of it.

mod beside;
mod ending;
mod heap;
mod kept;
mod races;
mod waits;

use raddle_campaign::minimise::impatient;
use raddle_campaign::{Digests, Explained, Found, Smallest, Stage as _, follow};
use raddle_detect::Failure;
use raddle_linux::{Halt, LinuxWorld};
use raddle_report::evidence::Held;
use raddle_report::finding::{Confidence, Severity};
use raddle_report::order::set_clocks;
use raddle_report::{Finding, Locks, Place, Word};
use raddle_trace::recording::{CLIENTS, FAULTS, ORDINARY_RUNS, SEMANTICS, SERIAL_ORDERS};
use raddle_trace::{Expected, Recording, Schedule};
use raddle_world::{ContextId, LockMode};

use crate::checkpoint;
use crate::judge::Rules;
use crate::landmark::{Marked, landmarks};
use crate::libtest;
use crate::names::name_of;
use crate::schedule_run::{Outcome, Run};
use crate::session::{About, Session, Stacks};
use crate::snapshot::SnapshotAt;
use crate::stack::source_line;
use crate::steps;

pub(crate) use kept::as_found;
pub use races::DATA_RACE;
pub(crate) use races::{race_again, races};

/// Explains a failing run in four runs: two that must come to the same end, the second of which also tells where
/// contexts meet; the telling; and the last moment. Nothing if the time for it is used up.
pub(crate) fn finding(
    session: &mut Session,
    failing: &Outcome,
    smallest: &Smallest<Run>,
    rules: &Rules,
) -> Option<Explained<Recording>> {
    let failure = failing.failure.as_ref()?;
    let run = &smallest.run;
    let schedule = &run.drive.schedule;
    let checkpoints = checkpoint::run_with_checkpoints(session, &run.drive, rules);
    let digests = session.digests();
    let (finding, marks, again) = tell_whole(session, failure, run, rules)?;
    // Under rules that end it earlier, the second run tells nothing about the first.
    let again = again.unwrap_or_else(|| {
        follow(session, schedule, rules);
        session.digests()
    });
    let recording = Recording {
        checkpoints,
        preemptions: smallest.preemptions,
        // What a replay can compare without an explanation.
        fingerprint: failure.fingerprint(),
        landmarks: landmarks(session, marks),
        ..recording(session, &finding, schedule, digests, rules)
    };
    session.leave.still()?;
    Some(Explained {
        found: Found { finding, recording },
        is_repeated: digests == again,
    })
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
        serial,
        ..
    } = &*session.about;
    Recording {
        semantics: SEMANTICS,
        needs: needs(&session.about, schedule),
        snapshot_at: snapshot_at.to_string(),
        inputs: inputs.clone(),
        limits: rules.limits,
        checks: *checks,
        expected: Expected {
            exit: rules.expected_exit.unwrap_or(0),
            output: expected_output.clone(),
            oracle: oracle.clone(),
            serial: serial.clone(),
        },
        snapshot_digest: session.digest,
        files: checkpoint::files(&session.world),
        checkpoints: Vec::new(),
        run_digest: digests.run,
        state_digest: digests.state,
        failure: finding.title.clone(),
        preemptions: 0,
        fingerprint: finding.fingerprint.clone(),
        kind: finding.kind.clone(),
        landmarks: Vec::new(),
        schedule: schedule.clone(),
        ordinary: None,
    }
}

/// What only some recordings need.
fn needs(about: &About, schedule: &Schedule) -> Vec<String> {
    let serial = about.serial.is_some().then_some(SERIAL_ORDERS);
    let clients = about.inputs.scripts.is_some().then_some(CLIENTS);
    let faults = (!schedule.faults().is_empty()).then_some(FAULTS);
    let is_inside = matches!(about.snapshot_at, SnapshotAt::Step(_));
    let ordinary = is_inside.then_some(ORDINARY_RUNS);
    let needs = [serial, clients, faults, ordinary].into_iter().flatten();
    needs.map(str::to_owned).collect()
}

/// The finding of a failing run, without what minimisation knows; nothing if the time for it is used up.
pub(crate) fn describe_failure(
    session: &mut Session,
    failure: &Failure,
    run: &Run,
    rules: &Rules,
) -> Option<Finding> {
    let (finding, ..) = tell_whole(session, failure, run, rules)?;
    Some(finding)
}

/// A failure that was told, where its switches were, and what its observed run came to.
type Told = (Finding, Vec<Marked>, Option<Digests>);

/// The same, with whole stacks of where heap blocks come from.
fn tell_whole(session: &mut Session, failure: &Failure, run: &Run, rules: &Rules) -> Option<Told> {
    session.keep_stacks(Stacks::Whole);
    let told = told(session, failure, run, rules);
    session.keep_stacks(Stacks::Callers);
    told
}

fn told(session: &mut Session, failure: &Failure, run: &Run, rules: &Rules) -> Option<Told> {
    let schedule = &run.drive.schedule;
    // To tell every round of a loop until it counts as hanging takes long and tells nothing more.
    let impatient =
        matches!(failure, Failure::Hang { .. }).then(|| impatient(session, run.contexts, rules));
    let telling = impatient.as_ref().unwrap_or(rules);
    let observed = steps::observe(session, schedule, telling);
    let digests = impatient.is_none().then(|| session.digests());
    let halt = session.world.halt().cloned();
    let block = match &halt {
        Some(Halt::Heap(error)) => error.block.as_ref().map(|block| block.addr),
        _ => None,
    };
    let (mut story, marks) = steps::tell(session, schedule, telling, (&observed, block));
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
    if session.about.serial.is_some() && finding.serial.is_none() {
        finding.serial = Some(ending::broken_off(session, failure));
    }
    set_clocks(&mut finding);
    session.leave.still()?;
    // A run that goes on and on takes as long beside the failing one.
    if impatient.is_none() {
        beside::add_expected(session, schedule, rules, &mut finding);
        if let Some(fingerprint) = beside::fingerprint(failure, &finding) {
            finding.fingerprint = fingerprint;
        }
        finding.notes.extend(beside::early_read(&finding));
    }
    finding.fingerprint = libtest::named(&session.about.inputs.arguments, finding.fingerprint);
    session.leave.still()?;
    Some((finding, marks, digests))
}

/// Keeps the source line of a place.
fn quote(finding: &mut Finding, place: &Place) {
    finding.quote(place, source_line);
}

/// The locks that a context holds where the world stands.
fn held(world: &mut LinuxWorld, who: ContextId) -> Locks {
    let symbols = world.symbols(who).unwrap_or_default();
    let held = world.held_locks(who).to_vec();
    let held = held.iter().map(|section| Held {
        name: name_of(world, &symbols, who, section.lock),
        address: Some(Word(section.lock)),
        is_shared: section.mode == LockMode::Shared,
        section: Some(section.serial),
    });
    Locks::Known(held.collect())
}
