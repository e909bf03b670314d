//! `raddle linearize`: runs whose results or state no serial order of their operations explains.

mod import;
mod kinds;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use raddle_campaign::{Leave, News};
use raddle_explore::{About, Program, ProgramReport, SnapshotAt, explore};
use raddle_linearize::{CannotJudge, Figures, Linearize as Oracle, ServerTest, Varying};
use raddle_report::render::{Case, Results};
use raddle_report::words::counted;
use raddle_stdx::regular_file;
use raddle_trace::{Inputs, Recording, SerialRules};

use super::campaign::progress::{Bounds, Line};
use super::campaign::summary::{ending, timing};
use super::campaign::verdict::Verdict;
use super::explore::{COLUMNS, ExploreOptions, replay_command, start_failure};
use super::{kernel, kind};
use crate::exit::{Code, Failure};
use crate::hub::serial::Histories;
use crate::hub::{HubOptions, Remote, agreed};
use crate::interrupt::Interrupt;
use crate::keep::Keeper;
use crate::message;
use crate::program_options::ProgramOptions;
use crate::report_options;
use crate::watch::watched;
pub(crate) use kinds::KINDS;

/// Bytes of a test or of rules at most.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Find runs whose results or state no serial order of their operations explains.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle linearize test.toml\n  raddle linearize --schedules 400 tests/*.toml\n  raddle linearize -- ./harness\n  raddle linearize --rules cache.toml --schedules 2000 -- ./harness\n  raddle linearize --kernel /boot/vmlinuz rename.ktest\n  raddle linearize import --template redis.toml --to tests script.redis\n\nA harness marks its operations with raddle.h or the crate raddle-annotations. The test of a server is a file that ends in .toml, that of a kernel one that ends in .ktest."
)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Linearize {
    #[command(subcommand)]
    command: Option<LinearizeCommand>,
    /// A file with rules for deliberate deviations (`[[rule]]`, `[[mask]]`).
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    options: ExploreOptions,
    /// For tests of a kernel (files that end in .ktest): the kernel to boot. `raddle kernel explore --linearize` is the same
    /// with all options of the machine.
    #[arg(long, value_name = "IMAGE")]
    kernel: Option<PathBuf>,
    #[command(flatten)]
    program: ProgramOptions,
    // Last: its heading would also hold what follows.
    #[command(flatten)]
    hub: HubOptions,
}

#[derive(Debug, Subcommand)]
enum LinearizeCommand {
    Import(Box<import::Import>),
}

/// What was explored and compared.
struct Compared {
    report: ProgramReport,
    figures: Figures,
    elapsed: Duration,
}

impl Linearize {
    pub(crate) fn run(mut self) -> Result<Code, Failure> {
        if let Some(LinearizeCommand::Import(import)) = self.command.take() {
            return import.run();
        }
        if let Some(tests) = self.program.only_files("ktest") {
            return self.run_kernel(tests);
        }
        if self.kernel.is_some() {
            return Err(
                anyhow!("`--kernel` is for tests of a kernel: files that end in .ktest").into(),
            );
        }
        let tests = self.tests()?;
        let hub = self.hub.connect()?;
        let interrupt = Interrupt::listen()?;
        let keeper = Keeper::open(&self.options.campaign.output)?;
        let count = tests.len();
        let mut verdict = Verdict::default();
        let mut all = Vec::new();
        for (test, number) in tests.iter().zip(1..) {
            if interrupt.is_requested() {
                verdict.interrupted();
                break;
            }
            if count > 1 {
                message::note(&format!("test {number} of {count}: {}", test.name));
            }
            let mut compared = match self.compare(test, hub.as_ref(), (&keeper, &interrupt)) {
                Ok(compared) => compared,
                // What the tests before it have shown is told all the same.
                Err(failure) if !all.is_empty() => {
                    self.print(&all, false)?;
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            };
            verdict.add(&compared.report, false, compared.report.decisions == 0);
            if count > 1 {
                for found in &mut compared.report.findings {
                    let title = &mut found.finding.title;
                    *title = format!("test `{}`: {title}", test.name);
                }
            }
            all.push((test.name.as_str(), compared));
        }
        self.print(&all, count == 1)?;
        verdict.code()
    }

    /// Explores one test and compares its runs with serial orders.
    fn compare(
        &self,
        test: &Test,
        hub: Option<&Remote>,
        (keeper, interrupt): (&Keeper, &Interrupt),
    ) -> Result<Compared, Failure> {
        let budget = self.options.campaign.budget();
        let begun = Instant::now();
        let mut line = Line::new(Bounds {
            schedules: self.options.schedules(),
            time: budget.time,
        });
        let result = watched(interrupt, budget, |cancel, stage| {
            let mut program = self.options.program(test.inputs.clone(), cancel)?;
            let oracle = prepare(&mut program, test)?;
            let mut hear = |news: News<'_, Recording>| {
                line.hear(news, stage, |finding, recording| {
                    replay_command(keeper, &test.name, finding, recording)
                });
            };
            let Some(hub) = hub else {
                let report = explore(&program, &mut hear);
                return Ok((report.map_err(start_failure)?, oracle.figures(), 0));
            };
            let histories = Histories::of(oracle);
            let about = Arc::make_mut(&mut program.about);
            about.judge = Some(histories.judge());
            let (report, cost) = hub.linearize(&program, &test.name, &histories, &mut hear)?;
            let report = report.map_err(start_failure)?;
            Ok::<_, Failure>((report, histories.figures(), cost.differences.len()))
        });
        drop(line);
        let (mut report, figures, disagreements) = result?;
        agreed(disagreements)?;
        for found in &mut report.findings {
            match replay_command(keeper, &test.name, &found.finding, &found.recording) {
                Ok(recording) => found.finding.recording = Some(recording),
                Err(error) => found.finding.notes.push(format!(
                    "its recording could not be written: {error:#}; run again with `--output DIR`"
                )),
            }
        }
        Ok(Compared {
            report,
            figures,
            elapsed: begun.elapsed(),
        })
    }

    /// Tests of a kernel, on the machine that `raddle kernel explore` has by default.
    fn run_kernel(self, tests: Vec<PathBuf>) -> Result<Code, Failure> {
        let Some(kernel) = self.kernel else {
            return Err(anyhow!(
                "{} is a test of a kernel: say with `--kernel IMAGE` which one to boot",
                tests[0].display()
            )
            .into());
        };
        let ExploreOptions {
            campaign, report, ..
        } = self.options;
        let options = (campaign, report, self.hub);
        kernel::explore::Explore::to_linearize(&kernel, tests, self.rules, options)?.run()
    }

    /// What is tested: a harness, or servers with their clients.
    fn tests(&self) -> anyhow::Result<Vec<Test>> {
        let Some(paths) = self.program.only_files("toml") else {
            let rules = self.rules.as_deref().map(read_rules).transpose()?;
            return Ok(vec![Test {
                name: self.program.name(),
                inputs: self.program.inputs(self.options.seed())?,
                rules: rules.unwrap_or_default(),
                pure_probes: None,
            }]);
        };
        // All of them before the first one runs: a slip in the last is told at once.
        paths.iter().map(|path| self.server_test(path)).collect()
    }

    fn server_test(&self, path: &Path) -> anyhow::Result<Test> {
        let shown = path.display();
        if self.rules.is_some() {
            bail!("`--rules` is for harnesses: the rules of a server's test stand in {shown}");
        }
        let text = read(path, "test")?;
        let test = ServerTest::parse(&text)
            .map_err(|error| anyhow!("cannot use the test {shown}: {error}"))?;
        let command = self.program.of_command(&test.server);
        let inputs = command.inputs(self.options.seed())?;
        let name = path.file_stem().unwrap_or_default();
        Ok(Test {
            name: name.to_string_lossy().into_owned(),
            inputs: Inputs {
                scripts: Some(test.scripts),
                ..inputs
            },
            rules: test.rules,
            pure_probes: Some(test.pure_probes),
        })
    }

    fn print(&self, all: &[(&str, Compared)], is_single: bool) -> anyhow::Result<()> {
        let mut closing = String::new();
        let mut cases = Vec::new();
        for (name, compared) in all {
            let summary = summary(compared);
            if !is_single {
                closing.push_str(&format!("test {name} ... "));
            }
            closing.push_str(&format!("{summary}\n"));
            let findings = compared.report.findings.iter();
            cases.push(Case {
                name: (*name).to_owned(),
                milliseconds: u64::try_from(compared.elapsed.as_millis()).unwrap_or(u64::MAX),
                findings: findings.map(|found| found.finding.clone()).collect(),
                skipped: None,
                summary,
            });
        }
        let counts = all.iter().map(|(name, compared)| counts(name, compared));
        let counts: Vec<serde_json::Value> = counts.collect();
        let results = Results {
            suite: "raddle linearize".to_owned(),
            cases,
            rules: [
                kind::rules(&super::explore::kinds::KINDS),
                kind::rules(&KINDS),
            ]
            .concat(),
            counts: match counts.as_slice() {
                [one] if is_single => one.clone(),
                all => serde_json::json!({ "tests": all }),
            },
            closing,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: report_options::project()?,
        };
        let style = report_options::style(COLUMNS);
        self.options.report.tell(&results, style)
    }
}

/// The figures of one test, for programs.
fn counts(name: &str, compared: &Compared) -> serde_json::Value {
    let Compared {
        report, figures, ..
    } = compared;
    serde_json::json!({
        "name": name,
        "schedules": report.schedules,
        "distinct": report.distinct,
        "failing": report.failing,
        "histories": figures.histories,
        "deviating": figures.deviating,
        "undecided": figures.undecided,
        "contexts": report.contexts,
        "decisions": report.decisions,
        "interrupted": report.was_cancelled,
    })
}

/// A test that was read.
struct Test {
    name: String,
    inputs: Inputs,
    rules: SerialRules,
    /// How many probes of a server must not change anything.
    pure_probes: Option<usize>,
}

/// Reads rules for deliberate deviations.
pub(super) fn read_rules(path: &Path) -> anyhow::Result<SerialRules> {
    let text = read(path, "rules")?;
    toml::from_str(&text)
        .map_err(|error| anyhow!("cannot use the rules {}: {error}", path.display()))
}

fn read(path: &Path, what: &str) -> anyhow::Result<String> {
    let bytes = regular_file::read(path, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read the {what} {}", path.display()))?;
    String::from_utf8(bytes).map_err(|_| anyhow!("the {what} {} is not UTF-8", path.display()))
}

/// Makes serial orders the judge of a program's runs.
fn prepare(program: &mut Program, test: &Test) -> Result<Oracle, Failure> {
    let mut about = About::clone(&program.about);
    if about.judge.is_some() {
        return Err(anyhow!(
            "`--expect-output` and `--oracle` are for `raddle explore`: here serial orders say what is right"
        )
        .into());
    }
    about.serial = Some(test.rules.clone());
    let leave = || Leave::to_explore(&program.options.cancel);
    if let Some(pure) = test.pure_probes {
        about.snapshot_at = SnapshotAt::Clients;
        let varying = Oracle::varying(&about, &test.rules, &leave()).map_err(cannot_judge)?;
        Oracle::check_probes(&about, &test.rules, (pure, &varying), leave())
            .map_err(cannot_judge)?;
        for Varying { name, one, other } in varying {
            message::note(&format!(
                "`{name}` gives {one}, and with another seed {other}, in one and the same serial order: a `[[mask]]` or a `[[rule]]` in the test says what does not matter"
            ));
        }
    }
    let oracle = Oracle::start(&about, &test.rules, leave()).map_err(cannot_judge)?;
    about.judge = Some(oracle.judge());
    program.about = Arc::new(about);
    Ok(oracle)
}

/// A test that cannot be compared, with the exit code of its kind.
pub(super) fn cannot_judge(why: CannotJudge) -> Failure {
    match why {
        CannotJudge::Start(failure) => start_failure(failure),
        CannotJudge::Kernel(failure) => kernel::explore::start_failure(failure),
        other => anyhow!("{other}").into(),
    }
}

/// What was compared and what was not, in one line.
fn summary(compared: &Compared) -> String {
    let Compared {
        report,
        figures,
        elapsed,
    } = compared;
    let rate = u128::from(report.schedules) * 1000 / elapsed.as_millis().max(1);
    let mut text = format!(
        "compared {} schedules ({} distinct, {rate}/s) of {} contexts with serial orders: {} histories, {} of which no serial order explains; {} schedules failed",
        report.schedules,
        report.distinct,
        report.contexts,
        figures.histories,
        figures.deviating,
        report.failing,
    );
    if figures.undecided > 0 {
        text.push_str(&format!(
            "; {} have too many serial orders to be decided",
            counted(figures.undecided, "history")
        ));
    }
    ending(report, &mut text);
    timing(&report.spent, &mut text);
    text
}
