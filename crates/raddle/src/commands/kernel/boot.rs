//! `raddle kernel boot`: boots a kernel, shows its console, keeps the booted state.

use clap::Args;
use serde_json::json;

use super::guest_options::GuestOptions;
use super::prepare::{ConsoleTo, prepare};
use crate::exit::{Code, Failure};
use crate::message;

/// Boot a kernel, show its console, and keep the booted state for later commands.
#[derive(Debug, Args)]
pub(crate) struct Boot {
    #[command(flatten)]
    guest: GuestOptions,
    /// Do not show the console.
    #[arg(long)]
    quiet: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Boot {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let console = if self.quiet || self.json {
            ConsoleTo::Nowhere
        } else {
            ConsoleTo::Stdout
        };
        let prepared = prepare(&self.guest, console)?;
        let world = prepared.boot.world()?;
        let steps: u64 = (0..world.machine().cpus())
            .map(|cpu| world.machine().steps(cpu))
            .sum();
        let size = std::fs::metadata(&prepared.snapshot).map_or(0, |file| file.len());
        let info = world.info();
        if self.json {
            let facts = json!({
                "schema": 1,
                "release": info.release,
                "version": info.version,
                "online": info.online,
                "instructions": steps,
                "seconds": prepared.elapsed.as_secs_f64(),
                "from_snapshot": prepared.was_cached,
                "snapshot": prepared.snapshot,
                "snapshot_bytes": size,
                "fixed_threads": info.fixed_threads,
            });
            message::result(&format!("{facts}\n"))?;
            return Ok(Code::Clean);
        }
        if prepared.was_cached && !self.quiet {
            message::result(&world.console().text())?;
        }
        message::note(&format!(
            "Linux {} is up on processors {} after {} million instructions; {} in {:.2} s; snapshot {} ({:.1} MB)",
            info.release,
            info.online,
            steps / 1_000_000,
            if prepared.was_cached {
                "loaded from its snapshot"
            } else {
                "booted"
            },
            prepared.elapsed.as_secs_f64(),
            prepared.snapshot.display(),
            size as f64 / 1e6
        ));
        message::note(&format!(
            "{} threads of the kernel cannot be moved between processors",
            info.fixed_threads.len()
        ));
        Ok(Code::Clean)
    }
}
