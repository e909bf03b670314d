//! The options of exploring programs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use raddle_campaign::{Cancel, Options, Report};
use raddle_explore::{About, Cut, HABITS, Program};
use raddle_symbols::ModuleStore;
use raddle_trace::{Checks, Inputs};
use raddle_world::Fault;

use super::oracle;
use crate::commands::campaign::CampaignOptions;
use crate::coverage;
use crate::report_options::ReportOptions;

/// What a word of `--faults` names.
#[derive(Debug, Clone)]
struct Faults(Vec<Fault>);

fn faults(word: &str) -> Result<Faults, String> {
    let chosen = Fault::ALL
        .iter()
        .filter(|(name, _)| word == "all" || *name == word);
    let chosen: Vec<Fault> = chosen.map(|(_, fault)| *fault).collect();
    if chosen.is_empty() {
        let names = Fault::ALL.map(|(name, _)| name).join(", ");
        return Err(format!(
            "there is no such fault; choose `all` or some of {names}"
        ));
    }
    Ok(Faults(chosen))
}

/// How to explore and how to tell about it.
#[derive(Debug, Args)]
pub(crate) struct ExploreOptions {
    #[command(flatten)]
    pub(crate) campaign: CampaignOptions,
    /// Where schedules begin: `first-thread`; `hint` for where the program calls `raddle_snapshot()` of raddle.h;
    /// `listen` for the first time that a process waits for a client; the name of a function, such as `main`; or `step:N`
    /// for where `raddle run` has made N instructions. In a recorded run, all of them are places of that run.
    #[arg(long, value_name = "PLACE", default_value = "first-thread")]
    pub(super) snapshot_at: String,
    /// Look for data races in every schedule, not only in a sample of them, and list those that look harmless.
    #[arg(long)]
    pub(crate) races: bool,
    /// Do not watch the heap: by default a double or invalid free and an access to freed memory are findings.
    #[arg(long)]
    no_heap_checks: bool,
    /// Report accesses to the bytes just behind a block of the heap, too (glibc's allocator only).
    #[arg(long, conflicts_with = "no_heap_checks")]
    red_zones: bool,
    /// Explore all interleavings of a small program (at system calls, synchronisation and communication points)
    /// instead of sampling; says when all were explored, or how many there probably are.
    #[arg(long, conflicts_with_all = ["scheduler", "focus", "site", "diff"])]
    exhaustive: bool,
    /// Switch threads before any instruction, not only at system calls, synchronisation and communication points:
    /// slow, for bugs that other means of seeing memory show, such as system calls.
    #[arg(long, conflicts_with = "exhaustive")]
    every_instruction: bool,
    /// Never let a timer or time-out come while some thread could still run.
    #[arg(long)]
    no_time_jumps: bool,
    /// Let threads meet what the system may do to them: `wake-up` (a wait for a condition ends for nothing),
    /// `wake-order`, `short` (pipes and sockets move one byte), `interrupt` (EINTR, with handlers only), `memory` (malloc
    /// gives NULL); several with commas, or `all`.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = faults, conflicts_with = "exhaustive")]
    faults: Vec<Faults>,
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
    /// Count which unserializable interleavings happen, in every schedule, and add that to this file; `raddle coverage`
    /// shows it.
    #[arg(long, value_name = "FILE", conflicts_with = "exhaustive")]
    coverage: Option<PathBuf>,
    /// Explore only the first part of a long run: every schedule ends after this many instructions. Crashes, data races,
    /// heap errors and deadlocks up to there are found; hangs, exit statuses and outputs are not judged. Tests that are
    /// longer than 200 million instructions are cut by themselves.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1000..), conflicts_with_all = ["max_steps", "exhaustive"])]
    pub(crate) cut: Option<u64>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
    /// Symbols that were read: tests of one program have them in common.
    #[arg(skip)]
    modules: Arc<ModuleStore>,
}

impl ExploreOptions {
    pub(crate) fn seed(&self) -> u64 {
        self.campaign.seed
    }

    /// What to do with one program.
    pub(crate) fn program(&self, inputs: Inputs, cancel: &Cancel) -> anyhow::Result<Program> {
        let Ok(snapshot_at) = self.snapshot_at.parse();
        let expected_output = self.expected_output()?;
        if let Some(command) = &self.oracle {
            oracle::check(command)?;
        }
        Ok(Program {
            options: Options {
                schedules: self.schedules(),
                races: self.races,
                varies_time: !self.no_time_jumps,
                every_instruction: self.every_instruction,
                faults: self.fault_kinds(),
                coverage: self.coverage.is_some(),
                ..self.campaign.campaign(&HABITS, cancel)?
            },
            about: Arc::new(About {
                inputs,
                snapshot_at,
                checks: Checks {
                    heap: !self.no_heap_checks,
                    red_zones: self.red_zones,
                },
                judge: oracle::judge(expected_output.as_deref(), self.oracle.as_deref()),
                expected_output,
                oracle: self.oracle.clone(),
                serial: None,
                is_ordinary: false,
                modules: Arc::clone(&self.modules),
                elsewhere: None,
            }),
            expected_exit: self.expect_exit.map(i32::from),
            steps_max: self.max_steps,
            cut: self.cut.map_or(Cut::Never, Cut::At),
            exhaustive: self.exhaustive,
            focus: self.campaign.focus()?,
        })
    }

    /// The faults that are asked for, each once.
    fn fault_kinds(&self) -> Vec<Fault> {
        let kinds: BTreeSet<Fault> = self
            .faults
            .iter()
            .flat_map(|faults| &faults.0)
            .copied()
            .collect();
        kinds.into_iter().collect()
    }

    /// Tries the file of coverage before anything else is done.
    ///
    /// # Errors
    /// If there is a file that has no coverage.
    pub(crate) fn check_coverage(&self) -> anyhow::Result<()> {
        self.coverage.as_deref().map_or(Ok(()), coverage::check)
    }

    /// Adds what a campaign has covered to the file.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(crate) fn add_coverage<R, T>(
        &self,
        program: &str,
        report: &mut Report<R, T>,
    ) -> anyhow::Result<()> {
        match (&self.coverage, report.coverage.take()) {
            (Some(path), Some(covered)) => coverage::add(path, program, report.schedules, covered),
            _ => Ok(()),
        }
    }

    /// Whether a test may be cut because it is long.
    pub(crate) fn may_cut(&self) -> bool {
        self.cut.is_none() && self.max_steps.is_none() && !self.exhaustive
    }

    /// To explore everything takes as many as it takes.
    pub(crate) fn schedules(&self) -> u64 {
        match self.campaign.schedules {
            None if self.exhaustive => u64::MAX,
            _ => self.campaign.schedules(),
        }
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
}
