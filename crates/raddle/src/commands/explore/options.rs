//! The options of exploring, whatever is explored.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_campaign::Cancel;
use raddle_explore::{Clock, Focus, Options, PORTFOLIO};
use raddle_trace::{Checks, Inputs};

use super::oracle;
use crate::diff_lines;
use crate::watch::Budget;

/// How to explore and how to tell about it.
#[derive(Debug, Args)]
pub(crate) struct ExploreOptions {
    /// Schedules to run at most. Default: 10000, or as many as fit if --time or --until-found is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    schedules: Option<u64>,
    /// Seconds at most, explanations included [default: 60]; the generation of schedules that is under way then does not
    /// count, but what it found is reported.
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// Seconds of --time that are kept for making findings small and explaining them; default: a quarter. A finding for
    /// which no time is left is reported as it was found, with a recording.
    #[arg(long, value_name = "SECONDS")]
    explain_time: Option<u64>,
    /// Stop after the first generation of schedules that has a failure.
    #[arg(long)]
    until_found: bool,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Workers; results do not depend on it. Default: one per core.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// `portfolio`, or one algorithm: delay, preemption, pct2, pct3, pct5, random, pos, urw, surw, reads-from.
    #[arg(long, value_name = "NAME", default_value = "portfolio")]
    scheduler: String,
    /// Where schedules begin: `first-thread`; `hint` for where the program calls `raddle_snapshot()` of raddle.h; or the
    /// name of a function, such as `main`.
    #[arg(long, value_name = "PLACE", default_value = "first-thread")]
    snapshot_at: String,
    /// Look for data races in every schedule, not only in a sample of them, and list those that look harmless.
    #[arg(long)]
    pub(super) races: bool,
    /// Do not watch the heap: by default a double or invalid free and an access to freed memory are findings.
    #[arg(long)]
    no_heap_checks: bool,
    /// Report accesses to the bytes just behind a block of the heap, too (glibc's allocator only).
    #[arg(long, conflicts_with = "no_heap_checks")]
    red_zones: bool,
    /// Switch threads only in this function or line; may be given several times.
    #[arg(long, value_name = "FUNCTION|FILE:LINE")]
    focus: Vec<String>,
    /// Switch threads only in lines that changed since this revision (as in `git diff REV`).
    #[arg(long, value_name = "REV")]
    diff: Option<String>,
    /// Explore all interleavings of a small program (at system calls, synchronisation and communication points)
    /// instead of sampling; says when all were explored, or how many there probably are.
    #[arg(long, conflicts_with_all = ["scheduler", "focus", "diff"])]
    exhaustive: bool,
    /// Switch threads before any instruction, not only at system calls, synchronisation and communication points:
    /// slow, for bugs that other means of seeing memory show, such as system calls.
    #[arg(long, conflicts_with = "exhaustive")]
    every_instruction: bool,
    /// Never let a timer or time-out come while some thread could still run.
    #[arg(long)]
    no_time_jumps: bool,
    /// The exit status that is right; default: that of the run without interruptions.
    #[arg(long, value_name = "STATUS")]
    expect_exit: Option<u8>,
    /// A file with the only right standard output.
    #[arg(long, value_name = "FILE")]
    expect_output: Option<PathBuf>,
    /// A shell command that reads the standard output and ends with 0 if it is right; the exit status is in
    /// RADDLE_STATUS.
    #[arg(long, value_name = "COMMAND")]
    oracle: Option<String>,
    /// Instructions of one schedule before it counts as hanging; default: a multiple of a plain run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    max_steps: Option<u64>,
    /// Measure how the time of the schedules divides between restoring the snapshot, running, detectors and planning.
    #[arg(long)]
    pub(super) timing: bool,
    /// Folder for recordings.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) output: PathBuf,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["sarif", "concise"])]
    pub(super) json: bool,
    /// Print SARIF 2.1.0.
    #[arg(long, conflicts_with = "concise")]
    pub(super) sarif: bool,
    /// Print one line per finding.
    #[arg(long)]
    pub(super) concise: bool,
    /// Write JUnit XML to a file, too.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
}

const SCHEDULES_DEFAULT: u64 = 10_000;
/// Seconds.
const TIME_DEFAULT: u64 = 60;
/// Different failures that are minimised and explained.
const FINDINGS_MAX: usize = 10;

impl ExploreOptions {
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The options of one campaign.
    pub(super) fn campaign(&self, inputs: Inputs, cancel: &Cancel) -> anyhow::Result<Options> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let Ok(snapshot_at) = self.snapshot_at.parse();
        let schedules = self.schedules();
        let expected_output = self.expected_output()?;
        if let Some(command) = &self.oracle {
            oracle::check(command)?;
        }
        Ok(Options {
            inputs,
            snapshot_at,
            schedules,
            until_found: self.until_found,
            workers: raddle_explore::campaign::useful_workers(
                self.jobs.unwrap_or(cores),
                schedules,
            ),
            seed: self.seed,
            algorithm: PORTFOLIO.by_name(&self.scheduler)?,
            races: self.races,
            checks: Checks {
                heap: !self.no_heap_checks,
                red_zones: self.red_zones,
            },
            expected_exit: self.expect_exit.map(i32::from),
            judge: oracle::judge(expected_output.as_deref(), self.oracle.as_deref()),
            expected_output,
            oracle: self.oracle.clone(),
            steps_max: self.max_steps,
            findings_max: FINDINGS_MAX,
            exhaustive: self.exhaustive,
            varies_time: !self.no_time_jumps,
            focus: self.focus()?,
            every_instruction: self.every_instruction,
            cancel: cancel.clone(),
            clock: self.timing.then_some(Instant::now as Clock),
        })
    }

    pub(super) fn schedules(&self) -> u64 {
        let is_timed = self.time.is_some() || self.until_found || self.exhaustive;
        match self.schedules {
            Some(schedules) => schedules,
            None if is_timed => u64::MAX,
            None => SCHEDULES_DEFAULT,
        }
    }

    /// The time of one campaign.
    pub(super) fn budget(&self) -> Budget {
        Budget::of_seconds(self.time.unwrap_or(TIME_DEFAULT), self.explain_time)
    }

    fn expected_output(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.expect_output else {
            return Ok(None);
        };
        let bytes = std::fs::read(path)
            .with_context(|| format!("cannot read the expected output {}", path.display()))?;
        String::from_utf8(bytes).map(Some).map_err(|_| {
            anyhow!(
                "the expected output {} is not UTF-8; use `--oracle 'cmp - {}'`",
                path.display(),
                path.display()
            )
        })
    }

    fn focus(&self) -> anyhow::Result<Vec<Focus>> {
        let mut focus: Vec<Focus> = Vec::new();
        for text in &self.focus {
            let Ok(place) = text.parse();
            focus.push(place);
        }
        if let Some(revision) = &self.diff {
            focus.extend(diff_lines::changed_since(revision)?);
        }
        Ok(focus)
    }
}
