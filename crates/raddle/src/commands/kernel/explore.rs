//! `raddle kernel explore`: finds the interleavings of a test case that make a kernel fail.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_campaign::{Algorithm, Cancel};
use raddle_config::kernel::Known;
use raddle_kernel::campaign::{
    ContextSet, Found, KnownFunctions, LOOP_WINDOW, News, Options, PATIENCE, PAUSE_WINDOW,
    PORTFOLIO, Progress, RaceMode, RaceRules, Report, StartFailure, Target, explore,
    useful_workers,
};
use raddle_kernel::recording::{KernelRecording, ModuleInput, SEMANTICS};
use raddle_kernel::test_case::TestCase;
use raddle_report::Finding;
use raddle_report::render::{json, sarif, terminal};
use raddle_report::words::counted;
use raddle_stdx::regular_file;
use raddle_stdx::width::to_u64;

use super::guest_options::GuestOptions;
use super::kinds::KINDS;
use super::modules::Modules;
use super::prepare::{ConsoleTo, Prepared, prepare};
use crate::commands::kind;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::keep::{Keeper, shell_word};
use crate::message;
use crate::project;
use crate::watch::{Budget, Stage, cut_short, watched};

/// Find the interleavings of a test case that make a kernel fail.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle kernel explore --kernel /boot/vmlinuz pipe.ktest\n  raddle kernel explore --kernel bzImage --races --schedules 5000 inotify.ktest\n  raddle kernel explore --kernel bzImage --agent-program ./mytest"
)]
pub(crate) struct Explore {
    /// Test cases.
    #[arg(value_name = "TEST", required_unless_present = "agent_program")]
    tests: Vec<PathBuf>,
    /// Schedules to run at most, for each test.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Seconds at most for each test, explanations included; the generation of schedules that is under way then does not
    /// count, but what it found is reported.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time: u64,
    /// Seconds of --time that are kept for making findings small and explaining them; default: a quarter. A finding for
    /// which no time is left is reported as it was found, with a recording.
    #[arg(long, value_name = "SECONDS")]
    explain_time: Option<u64>,
    /// Stop after the first generation of schedules that has a failure.
    #[arg(long)]
    until_found: bool,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Workers; results do not depend on it. Default: one per core.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// `portfolio`, or one algorithm: ski, delay, pct2, pct3, random, pos, urw, surw.
    #[arg(long, value_name = "NAME", default_value = "portfolio")]
    scheduler: String,
    /// Let processors take interrupts as soon as they can, instead of choosing when.
    #[arg(long)]
    plain_interrupts: bool,
    /// Let only these processors and interrupts run while they can: `cpus`, `interrupts`, processors (`0`), vectors
    /// (`0xfb`), vectors of a processor (`1:0xfb`), with commas. Default: all.
    #[arg(long, value_name = "LIST")]
    contexts: Option<ContextSet>,
    /// Look for data races too: `order` (what nothing orders) or `close` (SKI: what lies close together).
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "order", value_parser = ["order", "close"])]
    races: Option<String>,
    /// Configuration of the project: lock functions and races on purpose of its `[kernel]` table.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Milliseconds of the guest's time before a test counts as stuck.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    guest_time: u64,
    /// Two PAUSE instructions of a processor within so many instructions mean that it waits for another one (SKI's h2).
    #[arg(long, value_name = "N", default_value_t = PAUSE_WINDOW)]
    pause_window: u64,
    /// A loop of at most so many instructions that reads the same values again means that, too (SKI's h3); at most 10000,
    /// and 0 for none.
    #[arg(long, value_name = "N", default_value_t = LOOP_WINDOW, value_parser = clap::value_parser!(u64).range(..=10_000))]
    loop_window: u64,
    /// Instructions of a processor in a row before another one gets its turn (SKI's h4).
    #[arg(long, value_name = "N", default_value_t = PATIENCE)]
    patience: u64,
    /// Folder for recordings.
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["sarif", "concise"])]
    json: bool,
    /// Print SARIF 2.1.0.
    #[arg(long, conflicts_with = "concise")]
    sarif: bool,
    /// Print one line per finding.
    #[arg(long)]
    concise: bool,
    #[command(flatten)]
    guest: GuestOptions,
}

/// Bytes of a test case at most.
const TEST_BYTES_MAX: u64 = 16 << 20;
/// Different failures of one test that are minimised and explained.
const FINDINGS_MAX: usize = 5;

/// What all tests gave.
#[derive(Debug, Default)]
struct Total {
    findings: Vec<Finding>,
    summaries: Vec<serde_json::Value>,
    has_failures: bool,
    is_interrupted: bool,
    is_vacuous: bool,
    is_unsupported: bool,
}

/// A test that is explored, with what its recordings say of it.
struct Subject<'a> {
    prepared: &'a Prepared,
    target: Arc<Target>,
    modules: Vec<ModuleInput>,
    keeper: &'a Keeper,
}

impl Subject<'_> {
    /// Each finding gets a file, named after the test and the finding; it replaces the one that was written when the
    /// failure was first seen.
    fn write_recordings(&self, report: &mut Report) {
        for found in &mut report.findings {
            match self.keep(found) {
                Ok(command) => found.finding.replay = Some(command),
                Err(error) => found.finding.notes.push(format!(
                    "its recording could not be written: {error:#}; explore again with `--output DIR`"
                )),
            }
        }
    }

    /// Keeps a recording and gives the command that replays it.
    fn keep(&self, found: &Found) -> anyhow::Result<String> {
        let machine = &self.prepared.inputs;
        let test = self.target.test.as_ref();
        let test_path = test.map_or("agent-program", |test| &test.path);
        let program = machine.program.as_deref();
        let named_after = Path::new(program.filter(|_| test.is_none()).unwrap_or(test_path));
        let stem = named_after.file_stem().unwrap_or_default();
        let recording = KernelRecording {
            semantics: SEMANTICS,
            needs: Vec::new(),
            failure: found.finding.title.clone(),
            fingerprint: found.finding.fingerprint.clone(),
            machine: machine.clone(),
            test_path: test_path.to_owned(),
            test: test.map(|test| test.text.clone()),
            modules: self.modules.clone(),
            time_max: self.target.time_max,
            rules: found.rules,
            schedule: found.schedule.clone(),
            start_digest: found.start_digest,
            run_digest: found.digests.run,
            state_digest: found.digests.state,
        };
        let id = found.finding.short_id();
        let path = self.keeper.keep(&stem.to_string_lossy(), &id, &recording)?;
        Ok(format!("raddle kernel replay {}", shell_word(&path)))
    }
}

impl Explore {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let algorithm = PORTFOLIO
            .by_name(&self.scheduler)
            .map_err(anyhow::Error::from)?;
        let prepared = prepare(&self.guest, ConsoleTo::Nowhere)?;
        let symbols = Arc::new(prepared.symbols);
        let prepared = Prepared {
            symbols: raddle_kernel::symbols::Symbols::default(),
            ..prepared
        };
        let race_rules = race_rules(self.config.as_deref())?;
        let keeper = Keeper::open(&self.output)?;
        let interrupt = Interrupt::listen()?;
        let mut total = Total::default();
        let tests: Vec<Option<&Path>> = if self.guest.agent_program.is_some() {
            vec![None]
        } else {
            self.tests.iter().map(|test| Some(test.as_path())).collect()
        };
        for test in tests {
            if interrupt.is_requested() {
                total.is_interrupted = true;
                break;
            }
            let (test, modules) = match test {
                Some(path) => {
                    let (test, modules) = read_test(path, &self.guest)?;
                    (Some(test), modules)
                }
                None => (None, Vec::new()),
            };
            let target = Arc::new(Target {
                boot: Arc::clone(&prepared.boot),
                test,
                symbols: Arc::clone(&symbols),
                modules: prepared.modules.clone(),
                race_rules: race_rules.clone(),
                contexts: self.contexts.clone(),
                time_max: self.guest_time * 1_000_000,
            });
            let subject = Subject {
                prepared: &prepared,
                target: Arc::clone(&target),
                modules,
                keeper: &keeper,
            };
            self.explore_one(&subject, algorithm, &interrupt, &mut total)?;
        }
        self.print_machine_form(&total)?;
        Ok(if total.has_failures {
            Code::Findings
        } else if total.is_interrupted {
            Code::Interrupted
        } else if total.is_unsupported {
            Code::Unsupported
        } else if total.is_vacuous {
            Code::Vacuous
        } else {
            Code::Clean
        })
    }

    fn explore_one(
        &self,
        subject: &Subject<'_>,
        algorithm: Option<Algorithm>,
        interrupt: &Interrupt,
        total: &mut Total,
    ) -> Result<(), Failure> {
        let target = &subject.target;
        let begun = Instant::now();
        let bar = progress_bar(self.schedules);
        let budget = Budget::of_seconds(self.time, self.explain_time);
        let result = watched(interrupt, budget, |cancel, stage| {
            let options = self.options(target, algorithm, cancel);
            explore(&options, &mut |news| match news {
                News::Progress(progress) => show(&bar, progress),
                News::Failing(found) => {
                    stage.set(Stage::Failing);
                    let title = &found.finding.title;
                    let kept = subject.keep(found);
                    bar.suspend(|| message::found(title, kept.as_ref()));
                }
                News::Explaining { number, of } => {
                    stage.set(Stage::Explaining { number, of });
                    bar.set_message(format!("explaining failure {number} of {of}"));
                }
            })
        });
        bar.finish_and_clear();
        let elapsed = begun.elapsed();
        let mut report = result.map_err(start_failure)?;
        subject.write_recordings(&mut report);
        self.print_text(target, &report, elapsed)?;
        total.summaries.push(figures(target, &report, elapsed));
        total.has_failures |= !report.findings.is_empty();
        total.is_interrupted |= report.was_cancelled;
        total.is_unsupported |= report.unsupported.is_some();
        total.is_vacuous |= report.decisions == 0;
        total
            .findings
            .extend(report.findings.into_iter().map(|found| found.finding));
        total.findings.extend(report.races);
        Ok(())
    }

    /// The options of one campaign.
    fn options(
        &self,
        target: &Arc<Target>,
        algorithm: Option<Algorithm>,
        cancel: &Cancel,
    ) -> Options {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            target: Arc::clone(target),
            schedules: self.schedules,
            until_found: self.until_found,
            workers: useful_workers(self.jobs.unwrap_or(cores), self.schedules),
            seed: self.seed,
            algorithm,
            races: self.races.as_deref().map(|mode| match mode {
                "close" => RaceMode::Close,
                _ => RaceMode::HappensBefore,
            }),
            findings_max: FINDINGS_MAX,
            patience: self.patience,
            pause_window: self.pause_window,
            loop_window: self.loop_window,
            interrupts: !self.plain_interrupts,
            clock,
            cancel: cancel.clone(),
        }
    }

    fn print_text(
        &self,
        target: &Target,
        report: &Report,
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        if self.json || self.sarif {
            return Ok(());
        }
        let findings: Vec<&Finding> = report
            .findings
            .iter()
            .map(|found| &found.finding)
            .chain(&report.races)
            .collect();
        let mut text = String::new();
        for (finding, number) in findings.iter().zip(1..) {
            if self.concise {
                text.push_str(&terminal::concise(finding));
            } else {
                text.push_str(&terminal::finding(finding, number, findings.len(), style()));
            }
        }
        let name = target
            .test
            .as_ref()
            .map_or("agent program", |test| test.path.as_str());
        message::result(&format!("{text}{name}: {}\n", summary(report, elapsed)))
    }

    fn print_machine_form(&self, total: &Total) -> anyhow::Result<()> {
        if self.json {
            let text = json::document(&total.findings, &total.summaries)?;
            message::result(&format!("{text}\n"))
        } else if self.sarif {
            let text = sarif::document(
                &total.findings,
                &kind::rules(&KINDS),
                env!("CARGO_PKG_VERSION"),
            )?;
            message::result(&format!("{text}\n"))
        } else {
            Ok(())
        }
    }
}

/// What the project says about its kernel's functions.
fn race_rules(path: Option<&Path>) -> anyhow::Result<RaceRules> {
    let config = project::read(path)?.config.kernel;
    let pairs = |known: Vec<Known>| {
        let pairs = known.into_iter().map(|known| (known.function, known.why));
        pairs.collect()
    };
    Ok(RaceRules::new(&KnownFunctions {
        locks: config.locks,
        more_locks: config.more_locks,
        benign: pairs(config.benign),
        ordered: pairs(config.ordered),
    }))
}

/// How findings look on this terminal.
pub(super) fn style() -> terminal::Style {
    terminal::Style {
        colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        width: 110,
    }
}

/// Figures of one test for programs.
fn figures(target: &Target, report: &Report, elapsed: Duration) -> serde_json::Value {
    let total = report.cost.total.as_secs_f64().max(1e-9);
    let share = |part: Duration| part.as_secs_f64() / total;
    serde_json::json!({
        "test": target.test.as_ref().map(|test| &test.path),
        "schedules": report.schedules,
        "distinct": report.distinct,
        "failing": report.failing,
        "first_failing": report.first_failing,
        "decisions": report.decisions,
        "points": report.points,
        "shared_places": report.shared_places,
        "steps": report.steps,
        "baseline_steps": report.baseline_steps,
        "liveness": report.heuristics.counts,
        "outside": report.heuristics.outside,
        "liveness_places": report.heuristics.places.each_ref().map(BTreeSet::len),
        "instructions": report.cost.instructions,
        "restored_pages": report.cost.pages,
        "restore_share": share(report.cost.restore),
        "detector_share": share(report.cost.detectors),
        "race_groups": report.races.len(),
        "interrupted": report.was_cancelled,
        "schedules_dropped": report.dropped,
        "findings_as_found": report.as_found,
        "seconds": elapsed.as_secs_f64(),
        "fixed_threads": report.fixed_threads,
    })
}

/// Reads a test case with its modules.
pub(crate) fn read_test(
    path: &Path,
    guest: &GuestOptions,
) -> Result<(TestCase, Vec<ModuleInput>), Failure> {
    let text = regular_file::read(path, TEST_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8(text)
        .with_context(|| format!("cannot use {}: it is not UTF-8", path.display()))?;
    let mut modules = Modules::new(path, &guest.kernel, guest.modules.as_deref());
    modules.is_sealed = guest.sealed;
    let test = TestCase::parse(&path.display().to_string(), &text, &mut |name| {
        modules.load(name)
    })?;
    Ok((test, modules.found))
}

pub(crate) fn start_failure(failure: StartFailure) -> Failure {
    let code = match failure {
        StartFailure::Unsupported(_) => Code::Unsupported,
        _ => Code::Usage,
    };
    Failure {
        code,
        error: anyhow!(failure),
    }
}

/// Time since it was first asked for.
fn clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// What was explored and what was not.
fn summary(report: &Report, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let thousands = |count: u64| count as f64 / report.schedules.max(1) as f64 / 1000.0;
    let mut text = format!(
        "explored {} schedules ({} distinct) in {:.1} s ({:.0}/s), {} failing; {} communication points, up to {} decisions, {:.0} thousand instructions each ({:.0} with the checks); {}",
        report.schedules,
        report.distinct,
        elapsed.as_secs_f64(),
        report.schedules as f64 / seconds,
        report.failing,
        report.points,
        report.decisions,
        thousands(report.steps),
        thousands(report.cost.instructions),
        counted(to_u64(report.findings.len()), "finding"),
    );
    let [halted, paused, looping, starving] = report.heuristics.counts;
    text.push_str(&format!(
        "; passed over: {halted} halted, {paused} paused, {looping} looping, {starving} starving"
    ));
    if report.heuristics.outside > 0 {
        text.push_str(&format!(
            "; {} somebody outside of --contexts went on because nobody else could",
            counted(report.heuristics.outside, "time")
        ));
    }
    if !report.races.is_empty() {
        let groups = counted(to_u64(report.races.len()), "group");
        text.push_str(&format!(", {groups} of data races"));
    }
    if report.unexplained > 0 {
        text.push_str(&format!(
            "; {} further kinds of failures are not shown",
            report.unexplained
        ));
    }
    ending(report, &mut text);
    if let Some((what, count)) = &report.unsupported {
        text.push_str(&format!(
            "; {count} schedules ended at something not supported: {what}"
        ));
    }
    if report.decisions == 0 {
        text.push_str("; nothing was interleaved: the threads never met");
    }
    text
}

/// Why it ended before the schedules were used up, if it did.
fn ending(report: &Report, text: &mut String) {
    if report.was_cancelled {
        text.push_str("; interrupted before all schedules were run");
    } else if report.was_stopped {
        text.push_str("; stopped by --time before all schedules were run");
    }
    text.push_str(&cut_short(report.dropped, report.as_found));
}

fn progress_bar(schedules: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(schedules);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {pos}/{len} schedules {per_sec} {msg}")
    {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_position(progress.schedules);
    bar.set_message(format!(
        "{} distinct, {} kinds of failures, {} points",
        progress.distinct, progress.failures, progress.points
    ));
}
