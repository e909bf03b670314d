//! `raddle kernel predict`: the same for tests of a kernel.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use raddle_campaign::{Cancel, News, Options};
use raddle_kernel::campaign::{HABITS, KernelTest, Origin, RaceRules, Target};
use raddle_kernel::recording::KernelRecording;
use raddle_predict::{Predictions, ProgramCode, predict};
use raddle_report::render::{Case, Results};

use super::{Analyses, Told, milliseconds, words};
use crate::commands::campaign::progress::{Bounds, Line};
use crate::commands::campaign::{CampaignOptions, Verdict};
use crate::commands::kernel::KINDS;
use crate::commands::kernel::explore::{
    keep_recording, race_rules, read_test, start_failure, style,
};
use crate::commands::kernel::guest_options::GuestOptions;
use crate::commands::kernel::prepare::{ConsoleTo, prepare};
use crate::commands::kind;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::keep::Keeper;
use crate::report_options::{self, ReportOptions};
use crate::watch::watched;

/// Predict what other interleavings of a test case could do to a kernel, from runs in which nothing goes wrong.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  raddle kernel predict --kernel /boot/vmlinuz pipe.ktest\n  raddle kernel predict --kernel bzImage --only conmem --predicted inotify.ktest"
)]
pub(crate) struct KernelPredict {
    /// Test cases.
    #[arg(value_name = "TEST", required = true)]
    tests: Vec<PathBuf>,
    #[command(flatten)]
    analyses: Analyses,
    #[command(flatten)]
    campaign: CampaignOptions,
    /// Milliseconds of the guest's time before a test counts as stuck.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    guest_time: u64,
    #[command(flatten)]
    report: ReportOptions,
    #[command(flatten)]
    guest: GuestOptions,
}

impl KernelPredict {
    pub(crate) fn run(self) -> Result<Code, Failure> {
        self.analyses.refuse_hub()?;
        let prepared = prepare(&self.guest, ConsoleTo::Nowhere)?;
        let symbols = Arc::new(prepared.symbols);
        let rules: RaceRules = race_rules(None)?;
        let keeper = Keeper::open(&self.campaign.output)?;
        let interrupt = Interrupt::listen()?;
        let mut verdict = Verdict::default();
        let mut all = Vec::new();
        for path in &self.tests {
            if interrupt.is_requested() {
                verdict.interrupted();
                break;
            }
            let (test, modules) = read_test(path, &self.guest)?;
            let target = Target {
                boot: Arc::clone(&prepared.boot),
                test: Some(test),
                symbols: Arc::clone(&symbols),
                modules: prepared.modules.clone(),
                race_rules: rules.clone(),
                contexts: None,
                time_max: self.guest_time * 1_000_000,
                judge: None,
                origin: Origin {
                    machine: prepared.inputs.clone(),
                    modules,
                },
            };
            all.push(self.predict_one(&target, &keeper, &interrupt, &mut verdict)?);
        }
        self.tell(all)?;
        verdict.code()
    }

    fn predict_one(
        &self,
        target: &Target,
        keeper: &Keeper,
        interrupt: &Interrupt,
        verdict: &mut Verdict,
    ) -> Result<Told, Failure> {
        let begun = Instant::now();
        let budget = self.campaign.budget();
        let mut line = Line::new(Bounds {
            schedules: u64::MAX,
            time: budget.time,
        });
        let what = self.analyses.what();
        let result = watched(interrupt, budget, |cancel, stage| {
            let test = self.test(target, cancel)?;
            let news = &mut |news: News<'_, KernelRecording>| {
                line.hear(news, stage, |finding, recording| {
                    keep_recording(keeper, finding, recording)
                });
            };
            anyhow::Ok(predict(&test, &what, &mut |_| ProgramCode::default(), news))
        });
        drop(line);
        let mut predictions = result?.map_err(start_failure)?;
        for found in &mut predictions.report.findings {
            let fingerprint = &found.recording.fingerprint;
            let reason = words::reason(&predictions.predicted, fingerprint);
            found.finding.notes.extend(reason);
            match keep_recording(keeper, &found.finding, &found.recording) {
                Ok(recording) => found.finding.recording = Some(recording),
                Err(error) => found.finding.notes.push(format!(
                    "its recording could not be written: {error:#}; predict again with `--output DIR`"
                )),
            }
        }
        let is_vacuous = predictions.report.schedules == 0;
        verdict.add(&predictions.report, false, is_vacuous);
        Ok(self.told(target, &predictions, begun.elapsed()))
    }

    fn test<'a>(&self, target: &'a Target, cancel: &Cancel) -> anyhow::Result<KernelTest<'a>> {
        let options = Options {
            races: false,
            ..self.campaign.campaign(&HABITS, cancel)?
        };
        Ok(KernelTest {
            focus: self.campaign.focus()?,
            ..KernelTest::new(target, options)
        })
    }

    fn told(
        &self,
        target: &Target,
        predictions: &Predictions<KernelTest<'_>>,
        elapsed: Duration,
    ) -> Told {
        let name = target.test_path().to_owned();
        let findings = predictions.report.findings.iter();
        let findings = findings.map(|found| found.finding.clone()).collect();
        let summary = words::summary(predictions, elapsed);
        let mut closing = if self.analyses.predicted {
            words::synchronisation(predictions) + &words::open(&predictions.predicted)
        } else {
            String::new()
        };
        closing.push_str(&format!("{name}: {summary}\n"));
        let mut figures = words::figures(predictions, self.analyses.predicted, elapsed);
        figures["name"] = name.as_str().into();
        Told {
            case: Case {
                name,
                milliseconds: milliseconds(elapsed),
                findings,
                skipped: None,
                summary,
            },
            figures,
            closing,
        }
    }

    fn tell(&self, all: Vec<Told>) -> anyhow::Result<()> {
        let figures: Vec<serde_json::Value> = all.iter().map(|told| told.figures.clone()).collect();
        let results = Results {
            suite: "raddle kernel predict".to_owned(),
            closing: all.iter().map(|told| told.closing.as_str()).collect(),
            cases: all.into_iter().map(|told| told.case).collect(),
            rules: kind::rules(&KINDS),
            counts: serde_json::json!({ "tests": figures }),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: report_options::project()?,
        };
        self.report.tell(&results, style())
    }
}
