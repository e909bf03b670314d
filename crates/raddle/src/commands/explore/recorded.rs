//! A recorded ordinary run in place of a program: schedules begin at a moment of it.

use std::io::Read;
use std::path::Path;

use anyhow::anyhow;
use raddle_campaign::Leave;
use raddle_explore::{SnapshotAt, changed_files, step_of};
use raddle_report::words::counted;
use raddle_stdx::regular_file;
use raddle_stdx::width::to_u64;
use raddle_trace::{Enveloped as _, Recording};

use super::start::failed;
use super::{ExploreOptions, ToExplore};
use crate::commands::replay;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::keep::shell_word;
use crate::message;
use crate::watch::{Budget, watched};

/// Whether a file is a recording, of whatever.
pub(super) fn is_one(path: &Path) -> bool {
    let mut start = Vec::new();
    let wanted = to_u64(Recording::MAGIC.len()) + 1;
    regular_file::open(path).is_ok_and(|file| file.take(wanted).read_to_end(&mut start).is_ok())
        && Recording::is_kind_of(&String::from_utf8_lossy(&start))
}

/// What to explore of a recorded run. Where schedules begin becomes a step of it.
pub(super) fn case(
    path: &Path,
    options: &mut ExploreOptions,
    interrupt: &Interrupt,
) -> Result<ToExplore, Failure> {
    let recording = replay::read(path)?;
    let Some(ordinary) = recording.ordinary else {
        return Err(anyhow!(
            "{} is the recording of a failure, which `raddle replay {}` has again; only ordinary runs, recorded by `raddle run --record`, can be explored from",
            path.display(),
            shell_word(path)
        )
        .into());
    };
    replay::check_files(path, &recording, &changed_files(&recording))?;
    let Ok(place) = options.snapshot_at.parse::<SnapshotAt>();
    let step = watched(interrupt, Budget::ENDLESS, |cancel, _| {
        let leave = Leave::to_explore(cancel);
        step_of(&recording.inputs, &place, &leave).map_err(|failure| failed(failure, interrupt))
    })?;
    if step >= ordinary.steps {
        return Err(anyhow!(
            "the recorded run ends after {}, so nothing comes after its step {step}: begin earlier",
            counted(ordinary.steps, "instruction")
        )
        .into());
    }
    message::note(&format!(
        "schedules begin after {step} of the {} of the recorded run",
        counted(ordinary.steps, "instruction")
    ));
    options.snapshot_at = SnapshotAt::Step(step).to_string();
    let program = Path::new(&recording.inputs.program);
    let name = program.file_name().unwrap_or(program.as_os_str());
    Ok(ToExplore {
        name: name.to_string_lossy().into_owned(),
        test: None,
        inputs: recording.inputs,
    })
}
