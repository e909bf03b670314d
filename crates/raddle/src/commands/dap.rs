//! `raddle dap`: serves a recording to an editor over the Debug Adapter Protocol.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_debug::dap::{self, Launch, Wire};

use super::{kernel, replay};
use crate::exit::{Code, Failure};

/// Serve a recording to an editor, forwards and backwards, over the Debug Adapter Protocol on standard input and output.
#[derive(Debug, Args)]
#[command(
    after_help = "Editors start this command themselves; docs/src/commands/dap.md has settings for VS Code and Neovim.\nThe recording is what the editor names as `recording` in its launch request, or the one given here.\n\nExamples:\n  raddle dap\n  raddle dap bank-A-1c9e.raddle"
)]
pub(crate) struct Dap {
    /// The recording, if the editor does not name one.
    recording: Option<PathBuf>,
}

type StandardWire<'a> = Wire<io::StdinLock<'a>, io::StdoutLock<'a>>;

impl Dap {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let mut wire = Wire::new(io::stdin().lock(), io::stdout().lock());
        let greeted = dap::greet(&mut wire).context(BROKEN)?;
        let Some(launch) = greeted else {
            return Ok(Code::Clean);
        };
        let served = self.serve(&mut wire, &launch);
        if let Err(failure) = &served {
            let why = format!("{:#}", failure.error);
            dap::refuse(&mut wire, &launch, &why).context(BROKEN)?;
        }
        served
    }

    fn serve(&self, wire: &mut StandardWire<'_>, launch: &Launch) -> Result<Code, Failure> {
        let named = launch.recording.as_deref().map(Path::new);
        let path = named.or(self.recording.as_deref()).ok_or_else(|| {
            anyhow!("the launch request names no `recording`: set it to the file that `raddle explore` wrote")
        })?;
        if kernel::is_recording(path) {
            return Err(anyhow!(
                "{} is a recording of a kernel: debug it with `raddle kernel replay --gdb 1234`",
                path.display()
            )
            .into());
        }
        let recording = replay::read(path)?;
        let debugger = replay::debugger(path, &recording)?;
        dap::serve(wire, launch, debugger).context(BROKEN)?;
        Ok(Code::Clean)
    }
}

const BROKEN: &str = "the conversation with the editor broke off";
