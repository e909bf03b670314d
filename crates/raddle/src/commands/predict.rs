//! `raddle predict`: from runs in which nothing goes wrong to confirmed concurrency bugs.

mod cargo;
mod invariants;
mod kernel;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use raddle_explore::{About, Program, Session, SnapshotAt, StartFailure};
use raddle_predict::{
    CriticalReads, Indices, Loaded, Prediction, Predictions, ProgramCode, SiteKind, SiteNames,
    predict,
};
use raddle_report::render::{Case, Results};

use super::campaign::progress::{Bounds, Line};
use super::campaign::verdict::Verdict;
use super::explore::{COLUMNS, ExploreOptions, ToExplore, kinds, replay_command, start_failure};
use super::kind;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::keep::Keeper;
use crate::message;
use crate::program_options::ProgramOptions;
use crate::project::Project;
use crate::report_options;
use crate::watch::watched;
pub(crate) use cargo::CargoPredict;
pub(crate) use kernel::KernelPredict;

/// Predict what other interleavings could do, from runs in which nothing goes wrong, and force them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle predict -- ./program arg\n  raddle predict --only conmem --predicted -- ./program\n  raddle predict --no-validate --predicted --json -- ./program\n\nTests of kernels: `raddle kernel predict`. Tests of Rust workspaces: `cargo raddle predict`."
)]
pub(crate) struct Predict {
    #[command(flatten)]
    analyses: Analyses,
    #[command(flatten)]
    options: ExploreOptions,
    #[command(flatten)]
    program: ProgramOptions,
}

/// What to look for, and what to do with it.
#[derive(Debug, Args)]
pub(crate) struct Analyses {
    /// Runs of the profile that end well; a run that fails is a finding, and another one is tried.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Only one analysis: `ctrigger`, `conmem` or `conseq`.
    #[arg(long, value_name = "NAME", value_parser = ["ctrigger", "conmem", "conseq"])]
    only: Option<String>,
    /// Steps of dependence at most between a read and the failure that it decides (ConSeq's MaxDistance).
    #[arg(long, value_name = "N", default_value_t = raddle_predict::DISTANCE_MAX)]
    distance: u32,
    /// Do not force what was predicted.
    #[arg(long)]
    no_validate: bool,
    /// Propose what held in all runs that ended well, and was broken by those that failed, as `[[invariant]]` entries in
    /// this file.
    #[arg(long, value_name = "FILE")]
    invariants: Option<PathBuf>,
    /// List what was predicted and not confirmed, too; it never makes the exit status 1.
    #[arg(long)]
    predicted: bool,
    /// Known only to say why there is none.
    #[arg(long, value_name = "URL", hide = true)]
    hub: Option<String>,
}

impl Analyses {
    /// Predictions are made on one machine.
    fn refuse_hub(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.hub.is_none(),
            "`--hub` is for campaigns, whose schedules are drawn by number; predictions hold threads at chosen instructions, and how a target is forced next depends on the run before: predict on one machine, and explore with `raddle explore --hub`"
        );
        Ok(())
    }

    fn what(&self) -> Prediction {
        let only: &[&'static str] = match self.only.as_deref() {
            Some("ctrigger") => &["ctrigger"],
            Some("conseq") => &["conseq", "conseq-invariant"],
            Some(_) => &["con-null", "con-dangling", "con-uninit", "con-overflow"],
            None => &[],
        };
        Prediction {
            runs: self.runs,
            validates: !self.no_validate,
            only: only.to_vec(),
        }
    }

    /// Overflows that do no other harm show only in red zones.
    fn watch_overflows(&self, program: &mut Program) {
        let is_wanted = self.only.as_deref().is_none_or(|only| only == "conmem");
        let about = Arc::make_mut(&mut program.about);
        about.checks.red_zones |= is_wanted && about.checks.heap;
    }

    /// The reads that decide about failures, and those that become addresses, in the program's own code.
    fn code(&self, session: &mut Session, sites: &SiteNames) -> ProgramCode {
        let is_wanted = |name: &str| self.only.as_deref().is_none_or(|only| only == name);
        let (image, modules) = session.own_modules();
        let loaded = modules.into_iter().map(|(bias, module)| Loaded {
            image,
            bias,
            module,
        });
        let loaded: Vec<Loaded> = loaded.collect();
        let mut code = ProgramCode::default();
        if is_wanted("conmem") {
            code.indices = Indices::of(&loaded);
        }
        if is_wanted("conseq") {
            code.critical = CriticalReads::of(loaded, sites, self.distance);
        }
        code
    }
}

impl Predict {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        self.analyses.refuse_hub()?;
        let inputs = self.program.inputs(self.options.seed())?;
        let interrupt = Interrupt::listen()?;
        let cases = ToExplore::of_program(&self.program, inputs, &interrupt)?;
        let how = How {
            sites: site_names(&self.program.project()?),
            analyses: &self.analyses,
            options: &self.options,
        };
        predict_cases(&how, "raddle predict", cases, &interrupt)
    }
}

/// What to look for, with which options.
struct How<'a> {
    analyses: &'a Analyses,
    options: &'a ExploreOptions,
    sites: SiteNames,
}

/// The functions that show failures besides those of the standard libraries: the ones that hardening knows, too.
fn site_names(project: &Project) -> SiteNames {
    let harden = &project.config.harden;
    let assertions = harden
        .assertions
        .iter()
        .map(|name| (name, SiteKind::Assertion));
    let outputs = harden.outputs.iter().map(|name| (name, SiteKind::Output));
    let own = assertions.chain(outputs);
    SiteNames {
        own: own.map(|(name, kind)| (name.clone(), kind)).collect(),
    }
}

/// What was predicted of one case.
struct Told {
    case: Case,
    figures: serde_json::Value,
    closing: String,
}

/// Predicts for one case after the other and tells about all of them.
fn predict_cases(
    how: &How<'_>,
    suite: &str,
    cases: Vec<ToExplore>,
    interrupt: &Interrupt,
) -> Result<Code, Failure> {
    let (analyses, options) = (how.analyses, how.options);
    let keeper = Keeper::open(&options.campaign.output)?;
    options.check_coverage()?;
    let is_single = cases.len() == 1 && cases[0].test.is_none();
    let mut verdict = Verdict::default();
    let mut all = Vec::new();
    let mut proposed = invariants::Proposals::default();
    let count = cases.len();
    for (case, number) in cases.into_iter().zip(1..) {
        if interrupt.is_requested() {
            verdict.interrupted();
            break;
        }
        if !is_single {
            message::note(&format!("test {number} of {count}: {}", case.shown_name()));
        }
        let begun = Instant::now();
        let Some(predictions) = predict_case(how, &case, &keeper, interrupt)? else {
            all.push(skipped(&case, begun.elapsed()));
            continue;
        };
        let is_vacuous = predictions.report.contexts < 2 || predictions.report.schedules == 0;
        verdict.add(&predictions.report, false, is_vacuous);
        proposed.add(&predictions.invariants);
        all.push(told(analyses, &case, &predictions, begun.elapsed()));
    }
    if let Some(path) = &analyses.invariants {
        proposed.write(path)?;
    }
    let figures: Vec<serde_json::Value> = all.iter().map(|told| told.figures.clone()).collect();
    let results = Results {
        suite: suite.to_owned(),
        closing: all.iter().map(|told| told.closing.as_str()).collect(),
        cases: all.into_iter().map(|told| told.case).collect(),
        rules: kind::rules(&kinds::KINDS),
        counts: match figures.as_slice() {
            [one] if is_single => one.clone(),
            all => serde_json::json!({ "tests": all }),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: report_options::project()?,
    };
    options
        .report
        .tell(&results, report_options::style(COLUMNS))?;
    verdict.code()
}

/// Nothing if it is one of several tests and creates no threads.
fn predict_case(
    how: &How<'_>,
    case: &ToExplore,
    keeper: &Keeper,
    interrupt: &Interrupt,
) -> Result<Option<Predictions<Program>>, Failure> {
    let (analyses, options) = (how.analyses, how.options);
    let budget = options.campaign.budget();
    let mut line = Line::new(Bounds {
        schedules: u64::MAX,
        time: budget.time,
    });
    let what = analyses.what();
    let result = watched(interrupt, budget, |cancel, stage| {
        let mut program = options.program(case.inputs.clone(), cancel)?;
        analyses.watch_overflows(&mut program);
        if case.test.is_some() && program.about.snapshot_at == SnapshotAt::FirstThread {
            program.about = Arc::new(About {
                snapshot_at: SnapshotAt::TestThread,
                ..About::clone(&program.about)
            });
        }
        let code = &mut |session: &mut Session| analyses.code(session, &how.sites);
        anyhow::Ok(predict(&program, &what, code, &mut |news| {
            line.hear(news, stage, |finding, recording| {
                replay_command(keeper, &case.name, finding, recording)
            });
        }))
    });
    drop(line);
    let mut predictions = match result? {
        // One of several tests is no reason to give up on the others.
        Err(StartFailure::EndedAlone { .. }) if case.test.is_some() => return Ok(None),
        result => result.map_err(start_failure)?,
    };
    options.add_coverage(&case.name, &mut predictions.report)?;
    for found in &mut predictions.report.findings {
        let reason = words::reason(&predictions.predicted, &found.recording.fingerprint);
        found.finding.notes.extend(reason);
        match replay_command(keeper, &case.name, &found.finding, &found.recording) {
            Ok(recording) => found.finding.recording = Some(recording),
            Err(error) => found.finding.notes.push(format!(
                "its recording could not be written: {error:#}; predict again with `--output DIR`"
            )),
        }
        if let Some(test) = &case.test {
            found.finding.title = format!("test `{test}`: {}", found.finding.title);
        }
    }
    Ok(Some(predictions))
}

fn milliseconds(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

fn skipped(case: &ToExplore, elapsed: Duration) -> Told {
    let summary = "creates no threads: nothing was tested".to_owned();
    Told {
        closing: format!("test {} ... {summary}\n", case.shown_name()),
        figures: serde_json::json!({ "name": case.shown_name(), "vacuous": true }),
        case: Case {
            name: case.shown_name().to_owned(),
            milliseconds: milliseconds(elapsed),
            findings: Vec::new(),
            skipped: Some(summary.clone()),
            summary,
        },
    }
}

fn told(
    analyses: &Analyses,
    case: &ToExplore,
    predictions: &Predictions<Program>,
    elapsed: Duration,
) -> Told {
    let findings = predictions.report.findings.iter();
    let findings = findings.map(|found| found.finding.clone()).collect();
    let summary = words::summary(predictions, elapsed);
    let mut closing = if analyses.predicted {
        words::synchronisation(predictions) + &words::open(&predictions.predicted)
    } else {
        String::new()
    };
    if case.test.is_some() {
        closing.push_str(&format!("test {} ... ", case.shown_name()));
    }
    closing.push_str(&format!("{summary}\n"));
    let mut figures = words::figures(predictions, analyses.predicted, elapsed);
    figures["name"] = case.shown_name().into();
    Told {
        case: Case {
            name: case.shown_name().to_owned(),
            milliseconds: milliseconds(elapsed),
            findings,
            skipped: None,
            summary,
        },
        figures,
        closing,
    }
}
