//! `raddle predict`: from runs in which nothing goes wrong to confirmed concurrency bugs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use raddle_campaign::{Found, News, Phase};
use raddle_explore::Program;
use raddle_predict::{Kind, Outcome, Predicted, Prediction, Predictions, predict};
use raddle_report::render::{Case, Results};
use raddle_report::words::counted;
use raddle_stdx::width::to_u64;

use super::campaign::progress::{Bounds, Line};
use super::campaign::summary::ending;
use super::campaign::verdict::Verdict;
use super::explore::{COLUMNS, ExploreOptions, kinds, replay_command, start_failure};
use super::kind;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::keep::Keeper;
use crate::program_options::ProgramOptions;
use crate::report_options;
use crate::watch::{Stage, watched};

/// Predict what other interleavings could do, from runs in which nothing goes wrong, and force them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle predict -- ./program arg\n  raddle predict --only conmem --predicted -- ./program\n  raddle predict --no-validate --predicted --json -- ./program"
)]
pub(crate) struct Predict {
    /// Runs of the profile.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Only one analysis: `ctrigger` or `conmem`.
    #[arg(long, value_name = "NAME", value_parser = ["ctrigger", "conmem"])]
    only: Option<String>,
    /// Do not force what was predicted.
    #[arg(long)]
    no_validate: bool,
    /// List what was predicted and not confirmed, too; it never makes the exit status 1.
    #[arg(long)]
    predicted: bool,
    #[command(flatten)]
    options: ExploreOptions,
    #[command(flatten)]
    program: ProgramOptions,
}

impl Predict {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        let inputs = self.program.inputs(self.options.seed())?;
        let name = self.program.name();
        let interrupt = Interrupt::listen()?;
        let keeper = Keeper::open(&self.options.campaign.output)?;
        let budget = self.options.campaign.budget();
        let begun = Instant::now();
        let mut line = Line::new(Bounds {
            schedules: u64::MAX,
            time: budget.time,
        });
        let what = self.what();
        let result = watched(&interrupt, budget, |cancel, stage| {
            let program = self.options.program(inputs, cancel)?;
            anyhow::Ok(predict(&program, &what, &mut |news| match news {
                News::Progress(progress) => {
                    line.show(progress);
                    if let Phase::Explaining { number, of } = progress.phase {
                        stage.set(Stage::Explaining { number, of });
                    }
                }
                News::Failing(Found { finding, recording }) => {
                    stage.set(Stage::Failing);
                    let kept = replay_command(&keeper, &name, finding, recording);
                    let kept = kept.as_ref().map(|kept| &kept.command);
                    line.found(&finding.title, kept);
                }
            }))
        });
        drop(line);
        let mut predictions = result?.map_err(start_failure)?;
        for found in &mut predictions.report.findings {
            let notes = reasons(&predictions.predicted, &found.recording.fingerprint);
            found.finding.notes.extend(notes);
            match replay_command(&keeper, &name, &found.finding, &found.recording) {
                Ok(recording) => found.finding.recording = Some(recording),
                Err(error) => found.finding.notes.push(format!(
                    "its recording could not be written: {error:#}; predict again with `--output DIR`"
                )),
            }
        }
        self.print(&name, &predictions, begun.elapsed())?;
        let mut verdict = Verdict::default();
        let is_vacuous = predictions.report.contexts < 2 || predictions.report.schedules == 0;
        verdict.add(&predictions.report, false, is_vacuous);
        verdict.code()
    }

    fn what(&self) -> Prediction {
        let only: &[&'static str] = match self.only.as_deref() {
            Some("ctrigger") => &["ctrigger"],
            Some(_) => &["con-null", "con-dangling", "con-uninit"],
            None => &[],
        };
        Prediction {
            runs: self.runs,
            validates: !self.no_validate,
            only: only.to_vec(),
        }
    }

    fn print(
        &self,
        name: &str,
        predictions: &Predictions<Program>,
        elapsed: Duration,
    ) -> anyhow::Result<()> {
        let findings = predictions.report.findings.iter();
        let findings = findings.map(|found| found.finding.clone()).collect();
        let summary = summary(predictions, elapsed);
        let mut closing = String::new();
        if self.predicted {
            let open = predictions.predicted.iter();
            let open = open.filter(|predicted| predicted.outcome != Outcome::Confirmed);
            for predicted in open {
                closing.push_str(&format!("{}\n", told(predicted)));
            }
        }
        closing.push_str(&format!("{summary}\n"));
        let results = Results {
            suite: "raddle predict".to_owned(),
            cases: vec![Case {
                name: name.to_owned(),
                milliseconds: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                findings,
                skipped: None,
                summary,
            }],
            rules: kind::rules(&kinds::KINDS),
            counts: self.figures(predictions, elapsed),
            closing,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: report_options::project()?,
        };
        let style = report_options::style(COLUMNS);
        self.options.report.tell(&results, style)
    }

    fn figures(&self, predictions: &Predictions<Program>, elapsed: Duration) -> serde_json::Value {
        let targets: Vec<serde_json::Value> = predictions
            .predicted
            .iter()
            .filter(|predicted| self.predicted || predicted.outcome == Outcome::Confirmed)
            .map(|predicted| {
                let places = predicted.places.iter();
                let places =
                    places.map(|(place, role)| serde_json::json!({ "role": role, "place": place }));
                serde_json::json!({
                    "kind": predicted.target.kind.name(),
                    "outcome": word(predicted.outcome),
                    "attempts": predicted.attempts,
                    "local_gap": predicted.target.gap,
                    "places": places.collect::<Vec<_>>(),
                    "fingerprint": predicted.fingerprint,
                })
            })
            .collect();
        serde_json::json!({
            "accesses": predictions.accesses,
            "profile_runs": predictions.profiled,
            "forced_runs": predictions.forced,
            "targets": outcomes(predictions),
            "listed": targets,
            "seconds": elapsed.as_secs_f64(),
        })
    }
}

/// What was predicted that led to a failure.
fn reasons(predicted: &[Predicted], fingerprint: &str) -> Option<String> {
    let led = predicted
        .iter()
        .find(|predicted| predicted.fingerprint.as_deref() == Some(fingerprint))?;
    Some(format!("predicted: {}", told(led)))
}

/// A prediction in a line.
fn told(predicted: &Predicted) -> String {
    let places = predicted.places.iter();
    let places = places.map(|(place, role)| format!("{role} {place}"));
    let kind = predicted.target.kind;
    let case = match kind {
        Kind::Unserializable(case) => format!(" {}", case.letters()),
        _ => String::new(),
    };
    format!(
        "{}{case}, {}: {} in {}",
        kind.name(),
        places.collect::<Vec<_>>().join(", "),
        word(predicted.outcome),
        counted(predicted.attempts, "attempt")
    )
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Confirmed => "confirmed",
        Outcome::Benign => "benign",
        Outcome::Blocked => "blocked",
        Outcome::NotReached => "not reached",
        Outcome::Untried => "untried",
    }
}

/// How many targets came to what.
fn outcomes(predictions: &Predictions<Program>) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for predicted in &predictions.predicted {
        *counts.entry(word(predicted.outcome)).or_default() += 1;
    }
    counts
}

/// What was looked at and what was not.
fn summary(predictions: &Predictions<Program>, elapsed: Duration) -> String {
    let report = &predictions.report;
    let outcomes = outcomes(predictions);
    let outcomes: Vec<String> = outcomes
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let mut text = format!(
        "looked at {} accesses of {} contexts in {}; {}{}{}; {} in {:.1} s",
        predictions.accesses,
        report.contexts,
        counted(predictions.profiled, "run"),
        counted(to_u64(predictions.predicted.len()), "prediction"),
        if outcomes.is_empty() { "" } else { ": " },
        outcomes.join(", "),
        counted(to_u64(report.findings.len()), "finding"),
        elapsed.as_secs_f64(),
    );
    ending(report, &mut text);
    text
}
