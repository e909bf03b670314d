//! `raddle replay`: has a recorded failure again, bit for bit.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_explore::{Replayed, replay};
use raddle_report::render::terminal;
use raddle_trace::Recording;

use super::explore::{out, start_failure};
use crate::event_text::EventText;
use crate::exit::{Code, Failure};
use crate::message;

/// Replay a recording of `raddle explore`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle replay bank-A-1c9e.raddle\n  raddle replay --trace bank-A-1c9e.raddle\n  raddle replay --times 100 bank-A-1c9e.raddle"
)]
pub(crate) struct Replay {
    /// The recording.
    recording: PathBuf,
    /// Print every event of the run on standard error.
    #[arg(long)]
    trace: bool,
    /// Replay this many times; all must be the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
}

impl Replay {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let path = self.recording.display();
        let text = std::fs::read_to_string(&self.recording)
            .with_context(|| format!("cannot read the recording {path}"))?;
        let recording =
            Recording::parse(&text).map_err(|error| anyhow!("cannot replay {path}: {error}"))?;
        let mut last = None;
        for _ in 0..self.times {
            let replayed = self.once(&recording)?;
            check(&recording, &replayed)?;
            last = Some(replayed);
        }
        let replayed = last.expect("there is at least one replay");
        if let Some(finding) = &replayed.finding {
            out(&terminal::finding(finding, 1, 1, terminal::Style::PLAIN))?;
        }
        out(&format!(
            "replayed {} time{} bit for bit: {} instructions, {} context switches, digest {:016x}\n",
            self.times,
            if self.times == 1 { "" } else { "s" },
            replayed.steps,
            replayed.switches,
            replayed.run_digest,
        ))?;
        Ok(Code::Findings)
    }

    fn once(&self, recording: &Recording) -> Result<Replayed, Failure> {
        let result = if self.trace {
            let mut lines = EventText::default();
            replay(
                recording,
                Some(&mut |_, events| {
                    for event in events {
                        message::trace(&lines.line(event));
                    }
                }),
            )
        } else {
            replay(recording, None)
        };
        result.map_err(start_failure)
    }
}

fn check(recording: &Recording, replayed: &Replayed) -> Result<(), Failure> {
    if replayed.same_run && replayed.same_failure {
        return Ok(());
    }
    let what = if !replayed.same_start {
        format!(
            "the run differs already before the first thread: the program `{}`, a library or an input file has changed since the recording; explore again",
            recording.inputs.program
        )
    } else if replayed.missed > 0 {
        format!(
            "{} of {} switches could not be made where they were recorded",
            replayed.missed,
            recording.schedule.len()
        )
    } else {
        "the run ends in another state".into()
    };
    Err(anyhow!(
        "the replay diverges: {what} (recorded failure: {})",
        recording.failure
    )
    .into())
}
