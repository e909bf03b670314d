//! `--record FILE`: what is needed to have an ordinary run again.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use raddle_explore::ordinary::{self, Past, Written};
use raddle_linux::{LinuxWorld, Setup};
use raddle_report::words::counted;
use raddle_sched::{End, Plain};
use raddle_trace::{Enveloped as _, Inputs};
use raddle_world::Event;

use crate::keep::{self, shell_word};
use crate::message;

/// Bytes of standard input that a recording holds.
const STDIN_MAX: usize = 16 << 20;

/// A run that is being recorded.
pub(super) struct Recorder {
    path: PathBuf,
    inputs: Inputs,
    written: Written,
}

impl Recorder {
    /// Tries the file before the program begins.
    pub(super) fn open(path: &Path, inputs: Inputs) -> anyhow::Result<Self> {
        ensure!(
            inputs.stdin.len() <= STDIN_MAX,
            "cannot record a run with {} bytes of standard input: a recording holds it, and at most {STDIN_MAX} bytes of it; let the program read a file by its name instead, of which a recording holds the digest",
            inputs.stdin.len()
        );
        keep::try_place(path)?;
        Ok(Self {
            path: path.to_owned(),
            inputs,
            written: Written::default(),
        })
    }

    /// What makes the world that is recorded.
    pub(super) fn setup(&self) -> Setup {
        raddle_explore::setup(&self.inputs)
    }

    pub(super) fn events(&mut self, events: &[Event]) {
        self.written.events(events);
    }

    /// Writes the recording of a run that is over.
    pub(super) fn finish(
        self,
        world: &mut LinuxWorld,
        plain: &Plain,
        (end, steps_max): (&End, u64),
    ) -> anyhow::Result<()> {
        let shown = self.path.display();
        let past = Past::of(world, plain, end, &self.written);
        let outside = plain.outside();
        let recording = ordinary::recording(world, self.inputs, outside, (past, steps_max));
        let recording = match recording {
            Ok(recording) => recording,
            Err(changed) => bail!(
                "cannot record this run in {shown}: while it went on, {} changed on this machine, so nobody could have it again; run it again when nobody writes there",
                changed.join(", ")
            ),
        };
        keep::write(&self.path, recording.to_text().as_bytes())?;
        message::note(&format!(
            "recorded {} in {shown}; to have them again: raddle replay {}",
            counted(past.ordinary.steps, "instruction"),
            shell_word(&self.path)
        ));
        Ok(())
    }
}
