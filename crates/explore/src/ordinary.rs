//! Ordinary runs: a program from its first instruction to its end, in the plain order and watched by no detector.
//!
//! Their order follows from the seed, so a recording of one says only what was given to the program, what came from
//! outside while it ran, and how it went: it does not grow with the run.

use raddle_linux::LinuxWorld;
use raddle_sched::{End, Plain, Reaction};
use raddle_stdx::Digest;
use raddle_trace::recording::{ORDINARY_RUNS, PROGRAM_START, SEMANTICS};
use raddle_trace::{
    Checks, Ending, Expected, Inputs, Limits, Ordinary, Outside, Recording, Schedule,
};
use raddle_world::{Event, EventKind, World};

use crate::checkpoint::files;

/// Steps of a run that has no limit of its own.
pub const STEPS_MAX: u64 = u64::MAX / 2;

/// Takes in what a program writes to standard output and standard error.
#[derive(Debug, Default)]
pub struct Written(Digest);

impl Written {
    pub fn events(&mut self, events: &[Event]) {
        for event in events {
            if let EventKind::Output { descriptor, bytes } = &event.kind {
                self.0.word(u64::from(descriptor.unsigned_abs()));
                self.0.bytes(bytes);
            }
        }
    }
}

/// An ordinary run that is over: all that two runs are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    pub ordinary: Ordinary,
    pub run_digest: u64,
    pub state_digest: u64,
}

impl Past {
    /// What a world has behind it that was run to this end.
    pub fn of(world: &mut LinuxWorld, plain: &Plain, end: &End, written: &Written) -> Self {
        Self {
            ordinary: Ordinary {
                ending: match end {
                    End::Exited { status } => Ending::Exited(*status),
                    End::Stuck => Ending::Deadlock,
                    End::Unsupported(_) => Ending::Unsupported,
                    End::Hanging => Ending::OutOfSteps,
                    End::Abandoned => Ending::Interrupted,
                },
                steps: plain.steps(),
                output_digest: written.0.value(),
            },
            run_digest: world.run_digest(),
            state_digest: world.state_digest(),
        }
    }

    /// What a recording says; none if it is not of an ordinary run.
    pub fn recorded(recording: &Recording) -> Option<Self> {
        Some(Self {
            ordinary: recording.ordinary?,
            run_digest: recording.run_digest,
            state_digest: recording.state_digest,
        })
    }
}

/// The recording of a run that is over.
///
/// # Errors
/// The host files that have changed while the program ran: no replay could have the run again.
pub fn recording(
    world: &LinuxWorld,
    inputs: Inputs,
    outside: &Outside,
    (past, steps_max): (Past, u64),
) -> Result<Recording, Vec<String>> {
    let pinned = world.host_files().into_iter();
    let changed: Vec<String> = pinned
        .filter(|file| file.changed || file.digest.is_none() || file.path.to_str().is_none())
        .map(|file| file.path.display().to_string())
        .collect();
    if !changed.is_empty() {
        return Err(changed);
    }
    Ok(Recording {
        semantics: SEMANTICS,
        needs: vec![ORDINARY_RUNS.to_owned()],
        snapshot_at: PROGRAM_START.to_owned(),
        inputs: Inputs {
            outside: outside.clone(),
            ..inputs
        },
        limits: Limits {
            patience: steps_max,
            steps: steps_max,
        },
        // An ordinary run goes on whatever goes wrong.
        checks: Checks {
            heap: false,
            red_zones: false,
        },
        expected: Expected::default(),
        snapshot_digest: 0,
        files: files(world),
        checkpoints: Vec::new(),
        run_digest: past.run_digest,
        state_digest: past.state_digest,
        failure: String::new(),
        preemptions: 0,
        fingerprint: String::new(),
        kind: String::new(),
        schedule: Schedule::default(),
        landmarks: Vec::new(),
        ordinary: Some(past.ordinary),
    })
}

/// Has a recorded run again in a world that stands where its program begins. `sink` gets the events; it may end the run.
pub fn follow(
    world: &mut LinuxWorld,
    recording: &Recording,
    sink: &mut dyn FnMut(&mut LinuxWorld, &[Event]) -> Reaction,
) -> (End, Past) {
    let mut plain = Plain::following(recording.inputs.outside.clone());
    let mut written = Written::default();
    let end = plain.run(world, recording.limits.steps, &mut |world, events| {
        written.events(events);
        sink(world, events)
    });
    let past = Past::of(world, &plain, &end, &written);
    (end, past)
}
