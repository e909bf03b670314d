//! `raddle explore`: finds the failing interleavings of an unmodified program.

mod explored;
pub(crate) mod kinds;
mod options;
pub(crate) mod oracle;
mod recorded;
mod start;
mod summary;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use raddle_campaign::{Cancel, News, Phase, Report};
use raddle_explore::{
    About, Cut, Program, ProgramReport, SnapshotAt, StartFailure, explore, libtest,
};
use raddle_hub::Figures;
use raddle_report::{Finding, RecordingFile};
use raddle_trace::{Inputs, Recording};

use super::campaign::progress::{Bounds, Line};
use super::campaign::verdict::{self, Verdict};
use super::campaign::{Log, LogOption};
use crate::exit::{Code, Failure};
use crate::hub::{self, HubOptions, Remote};
use crate::interrupt::Interrupt;
use crate::keep::{Keeper, shell_quoted, shell_word};
use crate::message;
use crate::program_options::ProgramOptions;
use crate::report_options;
use crate::suppressed::Suppressions;
use crate::watch::{Budget, watched};
use explored::{Explored, Limit, Vacuous, proves_nothing};
pub(crate) use options::ExploreOptions;
use start::failed;
pub(super) use start::start_failure;
use told::results;

/// Columns of what is told of runs, where no terminal says how many there are.
pub(crate) const COLUMNS: usize = 110;

/// Instructions of a test that is explored as a whole.
const LONG_TEST: u64 = 200_000_000;
/// Instructions of each schedule of a longer one.
const CUT_TEST: u64 = 5_000_000;

/// Find the interleavings that make a program fail.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle explore -- ./program arg\n  raddle explore --until-found --schedules 100000 -- ./program\n  raddle explore --races --json -- ./program\n\nA test program of Rust without arguments is explored test by test.\nA recording of `raddle run --record` in place of the program: what can go wrong from a moment of that run on.\n  raddle explore --snapshot-at step:3000000 server.raddle"
)]
pub(crate) struct Explore {
    #[command(flatten)]
    options: ExploreOptions,
    #[command(flatten)]
    log: LogOption,
    #[command(flatten)]
    program: ProgramOptions,
    // Last: its heading would also hold what follows.
    #[command(flatten)]
    hub: HubOptions,
}

impl Explore {
    pub(crate) fn run(mut self) -> Result<Code, Failure> {
        self.log.measure(&mut self.options.campaign);
        let interrupt = Interrupt::listen()?.ending_with(self.log.round_of());
        let recording = self.program.single().filter(|path| recorded::is_one(path));
        let (program, cases) = match recording {
            Some(path) => {
                self.program.refuse_surroundings()?;
                let case = recorded::case(&path, &mut self.options, &interrupt)?;
                (case.name.clone(), vec![case])
            }
            None => {
                let inputs = self.program.inputs(self.options.seed())?;
                let cases = ToExplore::of_program(&self.program, inputs, &interrupt)?;
                (self.program.name(), cases)
            }
        };
        let batch = Batch {
            cases,
            suppressions: self.program.suppressions()?,
            total_time: None,
            log: self.log.open()?,
        };
        run_cases((&self.options, &self.hub), &program, batch, &interrupt)
    }
}

/// The tests of a test program of Rust.
pub(crate) fn tests(
    inputs: &Inputs,
    interrupt: &Interrupt,
) -> Result<Option<Vec<String>>, Failure> {
    watched(interrupt, Budget::ENDLESS, |cancel, _| {
        libtest::tests(inputs, cancel).map_err(|failure| failed(failure, interrupt))
    })
}

/// Something to explore by itself: a program, or one of its tests.
#[derive(Debug)]
pub(crate) struct ToExplore {
    /// Names the recordings.
    pub(super) name: String,
    pub(super) test: Option<String>,
    pub(super) inputs: Inputs,
}

impl ToExplore {
    /// A program as a whole, or each test of a test program of Rust without arguments.
    pub(crate) fn of_program(
        program: &ProgramOptions,
        inputs: Inputs,
        interrupt: &Interrupt,
    ) -> Result<Vec<Self>, Failure> {
        let name = program.name();
        let tests = match program.has_arguments() {
            true => None,
            false => tests(&inputs, interrupt)?,
        };
        Ok(match tests {
            None => vec![Self {
                name,
                test: None,
                inputs,
            }],
            Some(tests) => Self::of_tests(&name, &inputs, &tests),
        })
    }

    pub(crate) fn of_tests(program: &str, inputs: &Inputs, tests: &[String]) -> Vec<Self> {
        let case = |test: &String| Self {
            name: format!("{program}-{}", test.replace("::", "-")),
            test: Some(test.clone()),
            inputs: libtest::alone(inputs, test),
        };
        tests.iter().map(case).collect()
    }

    pub(super) fn shown_name(&self) -> &str {
        self.test.as_deref().unwrap_or(&self.name)
    }
}

/// What is explored one after the other and told as one.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) cases: Vec<ToExplore>,
    pub(crate) suppressions: Suppressions,
    /// For all cases together; each gets its share of what is left, but no more than `--time`.
    pub(crate) total_time: Option<Duration>,
    pub(crate) log: Log,
}

/// Explores one case after the other and tells about all of them.
pub(crate) fn run_cases(
    (options, hub): (&ExploreOptions, &HubOptions),
    program: &str,
    batch: Batch,
    interrupt: &Interrupt,
) -> Result<Code, Failure> {
    let Batch {
        cases,
        mut suppressions,
        total_time,
        mut log,
    } = batch;
    let is_single = cases.len() == 1 && cases[0].test.is_none();
    let keeper = Keeper::open(&options.campaign.output)?;
    options.check_coverage()?;
    let hub = hub.connect()?;
    let mut explored = Vec::new();
    let count = cases.len();
    let begun = Instant::now();
    for (case, number) in cases.into_iter().zip(1..) {
        if interrupt.is_requested() {
            break;
        }
        if !is_single {
            message::note(&format!("test {number} of {count}: {}", case.shown_name()));
        }
        let left = count + 1 - number;
        let share = total_time.map(|total| share(total, begun.elapsed(), left));
        if share == Some(Duration::ZERO) {
            message::note(&format!(
                "--total-time is used up: {left} of {count} tests were not explored"
            ));
            break;
        }
        let by = (options, hub.as_ref());
        let mut case = explore_case(by, &case, share, &keeper, (interrupt, &mut log))?;
        case.leave_out(&mut suppressions);
        explored.push(case);
    }
    let mut results = results(options, program, &explored, is_single)?;
    for line in suppressions.account() {
        results.closing.push_str(&line);
        results.closing.push('\n');
    }
    options
        .report
        .tell(&results, report_options::style(COLUMNS))?;
    code(options, &explored, interrupt.is_requested())
}

/// The time of one case of those that are left; none if less than a second would be left for it.
fn share(total: Duration, spent: Duration, left: usize) -> Duration {
    const LEAST: Duration = Duration::from_secs(1);
    let rest = total.saturating_sub(spent);
    if rest < LEAST {
        return Duration::ZERO;
    }
    let left = u32::try_from(left).unwrap_or(u32::MAX).max(1);
    (rest / left).max(LEAST)
}

fn explore_case(
    (options, hub): (&ExploreOptions, Option<&Remote>),
    case: &ToExplore,
    share: Option<Duration>,
    keeper: &Keeper,
    (interrupt, log): (&Interrupt, &mut Log),
) -> Result<Explored, Failure> {
    let begun = Instant::now();
    let mut log = log.begin(case.shown_name(), options.campaign.seed);
    let budget = match share {
        Some(share) => options.campaign.budget().at_most(share),
        None => options.campaign.budget(),
    };
    let mut line = Line::new(Bounds {
        schedules: options.schedules(),
        time: budget.time,
    });
    let mut as_found = Vec::new();
    let mut cut = options.cut;
    let result = watched(interrupt, budget, |cancel, stage| {
        let mut program = program_of(options, case, cancel)?;
        let may_cut = case.test.is_some() && options.may_cut();
        if may_cut {
            program.cut = Cut::Refuse(LONG_TEST);
        }
        let mut hear = |news: News<'_, Recording>| {
            let explains = matches!(&news, News::Progress(progress) if matches!(progress.phase, Phase::Explaining { .. }));
            log.hear(&news);
            line.hear(news, stage, |finding, recording| {
                let kept = replay_command(keeper, &case.name, finding, recording)?;
                as_found.push((recording.fingerprint.clone(), kept.file.clone()));
                Ok(kept)
            });
            if explains && interrupt.is_requested() {
                line.interrupted();
            }
        };
        let mut explored = explore_by(hub, &program, &case.name, &mut hear)?;
        if matches!(explored.0, Err(StartFailure::Long { .. })) && may_cut {
            program.cut = Cut::At(CUT_TEST);
            cut = Some(CUT_TEST);
            explored = explore_by(hub, &program, &case.name, &mut hear)?;
        }
        anyhow::Ok(explored)
    });
    drop(line);
    let elapsed = begun.elapsed();
    let mut vacuous = None;
    let (result, figures) = result?;
    let mut report = match result {
        // One of several tests is no reason to give up on the others.
        Err(StartFailure::EndedAlone { .. }) if case.test.is_some() => {
            vacuous = Some(Vacuous::NoThreads);
            Report::default()
        }
        Err(StartFailure::Cancelled) if case.test.is_some() => Report {
            was_cancelled: interrupt.is_requested(),
            ..Report::default()
        },
        result => result.map_err(|failure| failed(failure, interrupt))?,
    };
    write_recordings(keeper, &case.name, &mut report, &as_found);
    options.add_coverage(&case.name, &mut report)?;
    let findings = findings_of(options, case, &report);
    let limit = Limit::of(cut, options.campaign.has_focus());
    let vacuous = vacuous.or_else(|| proves_nothing(&report, findings.is_empty(), limit));
    let explored = Explored {
        name: case.shown_name().to_owned(),
        report,
        findings,
        vacuous,
        cut,
        elapsed,
        disagreements: figures.differences.len(),
    };
    log.end(&explored.report, &explored.findings, &explored.summary());
    Ok(explored)
}

/// The program of a case; schedules of a test begin in its thread.
fn program_of(
    options: &ExploreOptions,
    case: &ToExplore,
    cancel: &Cancel,
) -> anyhow::Result<Program> {
    let mut program = options.program(case.inputs.clone(), cancel)?;
    if case.test.is_some() && program.about.snapshot_at == SnapshotAt::FirstThread {
        program.about = Arc::new(About {
            snapshot_at: SnapshotAt::TestThread,
            ..About::clone(&program.about)
        });
    }
    Ok(program)
}

/// Explores with local threads, or with the workers of a hub.
fn explore_by(
    hub: Option<&Remote>,
    program: &Program,
    name: &str,
    hear: &mut dyn FnMut(News<'_, Recording>),
) -> anyhow::Result<hub::ExploredProgram> {
    match hub {
        None => Ok((explore(program, hear), Figures::default())),
        Some(hub) => hub.explore(program, name, hear),
    }
}

/// The findings of a case, with the name of the test in front.
fn findings_of(options: &ExploreOptions, case: &ToExplore, report: &ProgramReport) -> Vec<Finding> {
    let mut findings = findings(options, report);
    if let Some(test) = &case.test {
        for finding in &mut findings {
            finding.title = format!("test `{test}`: {}", finding.title);
        }
    }
    findings
}

/// Each finding gets a file, named after the program and the finding; it replaces the one that was written when the
/// failure was first seen.
fn write_recordings(
    keeper: &Keeper,
    name: &str,
    report: &mut ProgramReport,
    as_found: &[(String, String)],
) {
    let failures = report.findings.iter_mut();
    let failures = failures.map(|found| (&mut found.finding, &found.recording));
    let races = report.races.iter_mut();
    let races = races.filter_map(|race| Some((&mut race.finding, race.recording.as_ref()?)));
    let worth = races.filter(|(race, _)| verdict::is_shown(race, true));
    for (finding, recording) in failures.chain(worth) {
        match replay_command(keeper, name, finding, recording) {
            Ok(kept) => {
                // An explanation may have given it another name.
                let old = as_found.iter().filter(|(fingerprint, file)| {
                    *fingerprint == recording.fingerprint && *file != kept.file
                });
                old.for_each(|(_, file)| drop(std::fs::remove_file(file)));
                finding.recording = Some(kept);
            }
            Err(error) => finding.notes.push(format!(
                "its recording could not be written: {error:#}; explore again with `--output DIR`"
            )),
        }
    }
}

/// Keeps a recording and gives the command that replays it. An oracle is part of the command: replay runs none that
/// only the file names.
pub(super) fn replay_command(
    keeper: &Keeper,
    name: &str,
    finding: &Finding,
    recording: &Recording,
) -> anyhow::Result<RecordingFile> {
    let path = keeper.keep(name, &finding.short_id(), recording)?;
    let oracle = recording.expected.oracle.as_deref();
    let oracle = oracle.map_or_else(String::new, |command| {
        format!(" --oracle {}", shell_quoted(command))
    });
    Ok(RecordingFile {
        file: path.display().to_string(),
        command: format!("raddle replay {}{oracle}", shell_word(&path)),
    })
}

/// What is told: failures, and data races that are certain and do not look harmless.
fn findings(options: &ExploreOptions, report: &ProgramReport) -> Vec<Finding> {
    let failures = report.findings.iter().map(|found| &found.finding);
    let races = report.races.iter().map(|race| &race.finding);
    let races = races.filter(|race| verdict::is_shown(race, options.races));
    failures.chain(races).cloned().collect()
}

fn code(
    options: &ExploreOptions,
    explored: &[Explored],
    is_interrupted: bool,
) -> Result<Code, Failure> {
    let disagreements: usize = explored.iter().map(|case| case.disagreements).sum();
    hub::agreed(disagreements)?;
    let mut verdict = Verdict::default();
    for case in explored {
        let counts_races = !options.campaign.no_fail_on_races;
        verdict.add(&case.report, counts_races, case.vacuous.is_some());
    }
    if explored.is_empty() && is_interrupted {
        verdict.interrupted();
    }
    verdict.code()
}
