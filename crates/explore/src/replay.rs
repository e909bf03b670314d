//! Replay: runs a recording again and checks that it is the same run.

use raddle_linux::LinuxWorld;
use raddle_report::Finding;
use raddle_sched::{Follow, drive};
use raddle_trace::Recording;
use raddle_world::{Event, World};

use crate::explain;
use crate::minimise::follow;
use crate::schedule_run::Rules;
use crate::session::{Session, SnapshotAt, StartFailure};

/// What a replay showed.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The failure, explained; none if the run did not fail.
    pub finding: Option<Finding>,
    /// Whether the run up to the snapshot was the same.
    pub same_start: bool,
    /// Whether the whole run and the memory at its end were the same, bit for bit.
    pub same_run: bool,
    /// Whether it is the same failure.
    pub same_failure: bool,
    pub run_digest: u64,
    pub steps: u64,
    pub switches: u64,
    /// Deviations of the schedule that could not be applied.
    pub missed: u64,
}

/// Takes the events of a run, slice by slice.
pub type EventSink<'a> = &'a mut dyn FnMut(&mut LinuxWorld, &[Event]);

/// Replays a recording. `trace` gets all events of the run, if given.
pub fn replay(
    recording: &Recording,
    trace: Option<EventSink<'_>>,
) -> Result<Replayed, StartFailure> {
    let Ok(at) = recording.snapshot_at.parse::<SnapshotAt>();
    let mut session = Session::start(&recording.inputs, &at)?;
    let same_start = session.digest == recording.snapshot_digest;
    let rules = Rules {
        limits: recording.limits,
        expected_exit: recording.expected_exit,
    };
    let outcome = follow(&mut session, &recording.schedule, rules);
    let (run_digest, state_digest) = (session.world.run_digest(), session.world.state_digest());
    let same_run = run_digest == recording.run_digest && state_digest == recording.state_digest;
    let finding = outcome
        .failure
        .as_ref()
        .map(|failure| explain::describe_failure(&mut session, failure, &outcome, rules));
    session.restore();
    let mut scheduler = Follow::new(&recording.schedule);
    if let Some(trace) = trace {
        session.world.set_tracing(true);
        drive(&mut session.world, &mut scheduler, rules.limits, trace);
    } else {
        drive(
            &mut session.world,
            &mut scheduler,
            rules.limits,
            &mut |_, _| {},
        );
    }
    Ok(Replayed {
        same_failure: finding
            .as_ref()
            .is_some_and(|finding| finding.fingerprint == recording.fingerprint),
        finding,
        same_start,
        same_run,
        run_digest,
        steps: outcome.drive.steps,
        switches: outcome.drive.switches,
        missed: scheduler.missed(),
    })
}
