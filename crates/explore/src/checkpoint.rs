//! States on the way of a run, and the files it depends on: what tells where and why a replay goes another way.

use std::path::Path;

use raddle_campaign::follow;
use raddle_linux::LinuxWorld;
use raddle_sched::{Drive, Follow, Passing, Scheduler as _, View, Wrap};
use raddle_stdx::{Digest, regular_file};
use raddle_trace::{Checkpoint, HostFile, Limits, Recording, Schedule};
use raddle_world::{Context, ContextId, World};

use crate::judge::Rules;
use crate::session::{Look, Session};

/// Checkpoints of one recording.
const CHECKPOINTS: u64 = 8;

/// The host files that a world has read so far.
pub(crate) fn files(world: &LinuxWorld) -> Vec<HostFile> {
    let pinned = world.host_files();
    pinned
        .into_iter()
        .filter_map(|file| {
            Some(HostFile {
                path: file.path.to_str()?.to_owned(),
                size: file.size,
                digest: file.digest?,
            })
        })
        .collect()
}

/// Files that are not what they were when a recording was made, each with what happened to it. The names are the
/// recording's: nothing but a regular file of the recorded size is read.
pub fn changed_files(recording: &Recording) -> Vec<String> {
    recording
        .files
        .iter()
        .filter_map(|file| Some(format!("{} {}", file.path, change(file)?)))
        .collect()
}

fn change(file: &HostFile) -> Option<String> {
    let opened = regular_file::open(Path::new(&file.path)).and_then(|file| file.metadata());
    let size = match opened {
        Ok(metadata) => metadata.len(),
        Err(error) => return Some(format!("cannot be read ({error})")),
    };
    if size != file.size {
        return Some(format!("has {size} bytes instead of {}", file.size));
    }
    match regular_file::read(Path::new(&file.path), file.size) {
        Ok(bytes) if Digest::of(&bytes) == file.digest => None,
        Ok(_) => Some("has another content".to_owned()),
        Err(error) => Some(format!("cannot be read ({error})")),
    }
}

/// Stops a context that has run for long, so that its state can be looked at.
struct Pausing {
    follow: Follow,
    steps: u64,
}

impl Wrap for Pausing {
    type Inner = Follow;

    fn inner(&self) -> &Follow {
        &self.follow
    }

    fn inner_mut(&mut self) -> &mut Follow {
        &mut self.follow
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.follow.pick(view)
    }

    /// Points are passed as they are when the schedule is followed.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        self.follow.passing()
    }

    fn bound(&self, who: &Context) -> u64 {
        self.follow.bound(who).min(self.steps)
    }
}

/// Runs a schedule again; the states after equal parts of its steps, or soon behind them. The world stands where the run
/// has ended.
pub(crate) fn run_with_checkpoints(
    session: &mut Session,
    drive: &Drive,
    rules: &Rules,
) -> Vec<Checkpoint> {
    let part = (drive.steps / CHECKPOINTS).max(1);
    let mut pausing = Pausing {
        follow: Follow::new(&drive.schedule),
        steps: part,
    };
    session.restore();
    let made = |world: &LinuxWorld| -> u64 {
        let contexts = world.contexts().iter();
        contexts.map(|(_, context)| context.steps).sum()
    };
    let begun = made(&session.world);
    let mut checkpoints: Vec<Checkpoint> = Vec::new();
    session.drive(
        &mut pausing,
        rules.limits,
        Look::NOTHING,
        &mut |world, _| {
            let steps = made(world) - begun;
            let last = checkpoints.last().map_or(0, |last| last.steps);
            if steps >= last + part && steps < drive.steps {
                checkpoints.push(Checkpoint {
                    steps,
                    run_digest: world.run_digest(),
                    state_digest: world.state_digest(),
                });
            }
        },
    );
    checkpoints
}

/// The state of a schedule after some steps.
fn state_at(session: &mut Session, schedule: &Schedule, rules: &Rules, steps: u64) -> Checkpoint {
    let limits = Limits {
        steps,
        ..rules.limits
    };
    let cut = Rules { limits, ..*rules };
    follow(session, schedule, &cut);
    Checkpoint {
        steps,
        run_digest: session.world.run_digest(),
        state_digest: session.world.state_digest(),
    }
}

/// The last checkpoint that a replay reaches in the recorded state, and the first that it does not.
pub(crate) fn divergence(
    session: &mut Session,
    recording: &Recording,
    rules: &Rules,
) -> (u64, Option<u64>) {
    let mut last = 0;
    for checkpoint in &recording.checkpoints {
        let now = state_at(session, &recording.schedule, rules, checkpoint.steps);
        if now != *checkpoint {
            return (last, Some(checkpoint.steps));
        }
        last = checkpoint.steps;
    }
    (last, None)
}
