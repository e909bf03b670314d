//! `raddle kernel explore`: finds the interleavings of a test case that make a kernel fail.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::{Args, Parser};
use raddle_campaign::{Cancel, Leave, News, Options, Report};
use raddle_config::kernel::Known;
use raddle_kernel::campaign::{
    ContextSet, HABITS, KernelReport, KernelTest, KnownFunctions, LOOP_WINDOW, LivenessRule,
    Origin, PATIENCE, PAUSE_WINDOW, RaceMode, RaceRules, StartFailure, Target, explore,
};
use raddle_kernel::recording::{KernelRecording, ModuleInput};
use raddle_kernel::test_case::TestCase;
use raddle_linearize::LinearizeKernel;
use raddle_report::render::{Case, Format, Results, terminal};
use raddle_report::{Finding, RecordingFile};
use raddle_stdx::regular_file;

use super::guest_options::GuestOptions;
use super::kinds::KINDS;
use super::modules::Modules;
use super::prepare::{ConsoleTo, SymbolSources, prepare};
use super::summary::{compared_words, figures, summary};
use crate::commands::campaign::progress::{Bounds, Line};
use crate::commands::campaign::{CampaignOptions, Log, LogOption, Verdict};
use crate::commands::explore::COLUMNS;
use crate::commands::kind;
use crate::commands::linearize::{self, cannot_judge, read_rules};
use crate::exit::{Code, Failure};
use crate::hub::{self, HubOptions, Remote};
use crate::interrupt::Interrupt;
use crate::keep::{Keeper, shell_word};
use crate::message;
use crate::project;
use crate::report_options::{self, ReportOptions};
use crate::watch::watched;

/// Find the interleavings of a test case that make a kernel fail.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle kernel explore --kernel /boot/vmlinuz pipe.ktest\n  raddle kernel explore --kernel bzImage --races --schedules 5000 inotify.ktest\n  raddle kernel explore --kernel bzImage --agent-program ./mytest"
)]
pub(crate) struct Explore {
    /// Test cases.
    #[arg(value_name = "TEST", required_unless_present = "agent_program")]
    tests: Vec<PathBuf>,
    #[command(flatten)]
    campaign: CampaignOptions,
    #[command(flatten)]
    log: LogOption,
    /// Explore all interleavings of a small test (at communication points) instead of sampling; says when all were
    /// explored, or what else there may be.
    #[arg(long, conflicts_with_all = ["scheduler", "races"])]
    exhaustive: bool,
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
    /// How it is known that a processor makes no progress: by trying out whether its loop can end without another one's
    /// write (`rehearsed`), or by SKI's heuristics H1 to H4 for comparison (`ski`, slower).
    #[arg(long, value_name = "RULE", default_value = "rehearsed", value_parser = ["rehearsed", "ski"])]
    liveness: String,
    /// Instructions of a processor in a row before another one gets its turn (SKI's h4).
    #[arg(long, value_name = "N", default_value_t = PATIENCE)]
    patience: u64,
    /// Compare what the calls give with all serial orders of them, too: return values, buffers, and the calls of `check:`.
    #[arg(long, conflicts_with_all = ["agent_program", "exhaustive"])]
    linearize: bool,
    /// A file with rules for deliberate deviations from serial orders (`[[rule]]`, `[[mask]]`).
    #[arg(long, value_name = "FILE", requires = "linearize")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    report: ReportOptions,
    #[command(flatten)]
    guest: GuestOptions,
    // Last: its heading would also hold what follows.
    #[command(flatten)]
    hub: HubOptions,
}

/// Bytes of a test case at most.
const TEST_BYTES_MAX: u64 = 16 << 20;
/// What all tests gave.
#[derive(Debug, Default)]
struct Total {
    cases: Vec<Case>,
    summaries: Vec<serde_json::Value>,
    verdict: Verdict,
    /// Schedules of which two workers told different things.
    disagreements: usize,
}

/// What all tests have in common.
struct How<'a> {
    keeper: Keeper,
    interrupt: &'a Interrupt,
    sources: SymbolSources,
    hub: Option<Remote>,
}

/// Each finding gets a file, named after the test and the finding; it replaces the one that was written when the
/// failure was first seen.
fn write_recordings(keeper: &Keeper, report: &mut KernelReport) {
    let Report {
        findings, races, ..
    } = &mut report.campaign;
    let failures = findings.iter_mut();
    let failures = failures.map(|found| (&mut found.finding, &found.recording));
    let races = races.iter_mut();
    let races = races.filter_map(|race| Some((&mut race.finding, race.recording.as_ref()?)));
    for (finding, recording) in failures.chain(races) {
        finding.test = recording.test.clone().unwrap_or_default();
        match keep_recording(keeper, finding, recording) {
            Ok(recording) => finding.recording = Some(recording),
            Err(error) => finding.notes.push(format!(
                "its recording could not be written: {error:#}; explore again with `--output DIR`"
            )),
        }
    }
}

/// Keeps a recording and gives the command that replays it.
pub(crate) fn keep_recording(
    keeper: &Keeper,
    finding: &Finding,
    recording: &KernelRecording,
) -> anyhow::Result<RecordingFile> {
    let program = recording.machine.program.as_deref();
    let program = program.filter(|_| recording.test.is_none());
    let named_after = Path::new(program.unwrap_or(&recording.test_path));
    let stem = named_after.file_stem().unwrap_or_default();
    let path = keeper.keep(&stem.to_string_lossy(), &finding.short_id(), recording)?;
    Ok(RecordingFile {
        file: path.display().to_string(),
        command: format!("raddle kernel replay {}", shell_word(&path)),
    })
}

/// For the defaults of all options.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    explore: Explore,
}

impl Explore {
    /// Compares tests with serial orders, on a machine as it is by default.
    pub(crate) fn to_linearize(
        kernel: &Path,
        tests: Vec<PathBuf>,
        rules: Option<PathBuf>,
        (campaign, report, hub): (CampaignOptions, ReportOptions, HubOptions),
    ) -> anyhow::Result<Self> {
        let words = ["raddle", "--linearize", "--kernel"].map(OsString::from);
        let words = words.into_iter().chain([kernel.as_os_str().to_owned()]);
        let words = words.chain(tests.iter().map(|test| test.as_os_str().to_owned()));
        let Alone { explore } = Alone::try_parse_from(words)?;
        Ok(Self {
            rules,
            campaign,
            report,
            hub,
            ..explore
        })
    }

    pub(crate) fn run(mut self) -> Result<Code, Failure> {
        self.log.measure(&mut self.campaign);
        let mut log = self.log.open()?;
        let prepared = prepare(&self.guest, ConsoleTo::Nowhere)?;
        let symbols = Arc::new(prepared.symbols);
        let race_rules = race_rules(self.config.as_deref())?;
        let interrupt = Interrupt::listen()?.ending_with(self.log.round_of());
        let how = How {
            keeper: Keeper::open(&self.campaign.output)?,
            interrupt: &interrupt,
            sources: prepared.sources,
            hub: self.hub.connect()?,
        };
        let mut total = Total::default();
        let tests: Vec<Option<&Path>> = if self.guest.agent_program.is_some() {
            vec![None]
        } else {
            self.tests.iter().map(|test| Some(test.as_path())).collect()
        };
        for test in tests {
            if interrupt.is_requested() {
                total.verdict.interrupted();
                break;
            }
            let (test, modules) = match test {
                Some(path) => {
                    let (test, modules) = read_test(path, &self.guest)?;
                    (Some(test), modules)
                }
                None => (None, Vec::new()),
            };
            let target = Target {
                boot: Arc::clone(&prepared.boot),
                test,
                symbols: Arc::clone(&symbols),
                modules: prepared.modules.clone(),
                race_rules: race_rules.clone(),
                contexts: self.contexts.clone(),
                time_max: self.guest_time * 1_000_000,
                judge: None,
                origin: Origin {
                    machine: prepared.inputs.clone(),
                    modules,
                },
            };
            self.explore_one(target, &how, (&mut total, &mut log))?;
        }
        self.tell_all(&total)?;
        hub::agreed(total.disagreements)?;
        total.verdict.code()
    }

    fn explore_one(
        &self,
        mut target: Target,
        how: &How<'_>,
        (total, log): (&mut Total, &mut Log),
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let keeper = &how.keeper;
        let mut log = log.begin(target.test_path(), self.campaign.seed);
        let budget = self.campaign.budget();
        let mut line = Line::new(Bounds {
            schedules: self.schedules(),
            time: budget.time,
        });
        let mut oracle = None;
        let result = watched(how.interrupt, budget, |cancel, stage| {
            oracle = self.serial_orders(&target, cancel)?;
            target.judge = oracle.as_ref().map(LinearizeKernel::judge);
            let test = self.test(&target, cancel)?;
            let mut hear = |news: News<'_, KernelRecording>| {
                log.hear(&news);
                line.hear(news, stage, |finding, recording| {
                    keep_recording(keeper, finding, recording)
                });
            };
            let explored = match &how.hub {
                None => (explore(&test, &mut hear), raddle_hub::Figures::default()),
                Some(hub) => hub.explore_kernel(&test, &how.sources, &mut hear)?,
            };
            Ok::<_, Failure>(explored)
        });
        drop(line);
        let elapsed = begun.elapsed();
        let (result, cost) = result?;
        let mut report = result.map_err(start_failure)?;
        total.disagreements += cost.differences.len();
        write_recordings(keeper, &mut report);
        let name = target.test_path();
        let mut words = summary(&report, self.liveness(), elapsed);
        let compared = oracle.as_ref().map(LinearizeKernel::figures);
        if let Some(compared) = compared {
            words.push_str(&compared_words(compared));
        }
        let campaign = &report.campaign;
        let failures = campaign.findings.iter().map(|found| &found.finding);
        let races = campaign.races.iter().map(|race| &race.finding);
        let findings: Vec<Finding> = failures.chain(races).cloned().collect();
        log.end(campaign, &findings, &words);
        if self.report.is_for_people() {
            self.print_text(&findings, &format!("{name}: {words}\n"))?;
        }
        let mut counts = figures(&target, &report, elapsed);
        if let Some(compared) = compared {
            counts["histories"] = compared.histories.into();
            counts["deviating"] = compared.deviating.into();
            counts["undecided"] = compared.undecided.into();
        }
        total.summaries.push(counts);
        let is_vacuous = campaign.decisions == 0;
        let counts_races = !self.campaign.no_fail_on_races;
        total.verdict.add(campaign, counts_races, is_vacuous);
        total.cases.push(Case {
            name: name.to_owned(),
            milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            findings,
            skipped: None,
            summary: words,
        });
        Ok(())
    }

    /// What serial orders of the calls give, if they are asked for.
    fn serial_orders(
        &self,
        target: &Target,
        cancel: &Cancel,
    ) -> Result<Option<LinearizeKernel>, Failure> {
        if !self.linearize {
            return Ok(None);
        }
        let rules = self.rules.as_deref().map(read_rules).transpose()?;
        let leave = Leave::to_explore(cancel);
        let oracle = LinearizeKernel::start(target.clone(), &rules.unwrap_or_default(), leave);
        oracle.map(Some).map_err(cannot_judge)
    }

    /// To explore everything takes as many as it takes.
    fn schedules(&self) -> u64 {
        match self.campaign.schedules {
            None if self.exhaustive => u64::MAX,
            _ => self.campaign.schedules(),
        }
    }

    fn liveness(&self) -> LivenessRule {
        match self.liveness.as_str() {
            "ski" => LivenessRule::Ski,
            _ => LivenessRule::Rehearsed,
        }
    }

    /// What to do with one test.
    fn test<'a>(&self, target: &'a Target, cancel: &Cancel) -> anyhow::Result<KernelTest<'a>> {
        Ok(KernelTest {
            options: Options {
                schedules: self.schedules(),
                races: self.races.is_some(),
                ..self.campaign.campaign(&HABITS, cancel)?
            },
            target,
            races: self.races.as_deref().map(|mode| match mode {
                "close" => RaceMode::Close,
                _ => RaceMode::HappensBefore,
            }),
            patience: self.patience,
            pause_window: self.pause_window,
            loop_window: self.loop_window,
            liveness: self.liveness(),
            exhaustive: self.exhaustive,
            interrupts: !self.plain_interrupts,
            focus: self.campaign.focus()?,
        })
    }

    /// Tells people of one test as soon as it is over.
    fn print_text(&self, findings: &[Finding], closing: &str) -> anyhow::Result<()> {
        let text = match self.report.format() {
            Format::Concise => findings.iter().map(terminal::concise).collect(),
            _ => terminal::findings(findings, style()),
        };
        message::result(&(text + closing))
    }

    /// What programs read comes when all is over.
    fn tell_all(&self, total: &Total) -> anyhow::Result<()> {
        let results = Results {
            suite: "raddle kernel".to_owned(),
            cases: total.cases.clone(),
            rules: [kind::rules(&KINDS), kind::rules(&linearize::KINDS)].concat(),
            counts: total.summaries.clone().into(),
            closing: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: report_options::project()?,
        };
        if self.report.is_for_people() {
            self.report.write_files(&results)
        } else {
            self.report.tell(&results, style())
        }
    }
}

/// What the project says about its kernel's functions.
pub(crate) fn race_rules(path: Option<&Path>) -> anyhow::Result<RaceRules> {
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
pub(crate) fn style() -> terminal::Style {
    report_options::style(COLUMNS)
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
