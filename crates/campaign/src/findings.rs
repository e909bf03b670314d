//! From failing schedules to findings: kept at once, made small, run twice more, told.

use std::collections::BTreeSet;

use raddle_report::evidence::Search;
use raddle_report::finding::Confidence;
use raddle_sched::Follow;
use raddle_stdx::width::to_u64;

use crate::cancel::Leave;
use crate::failures::{Failures, Kept, as_found_note};
use crate::minimise::{Effort, Smallest, minimise};
use crate::options::{News, Options, Report};
use crate::subject::{Explained, FoundOf, OutcomeOf, Run, Stage, Watch};
use crate::suspects::Suspects;

/// Times that a schedule is run again when its failure is explained.
const REPLAYS: u64 = 2;

/// The different failures of a campaign.
#[derive(Debug)]
pub struct Findings<S: Stage> {
    failures: Failures<OutcomeOf<S>>,
    suspects: Suspects,
    kept: Kept<FoundOf<S>>,
}

impl<S: Stage> Default for Findings<S> {
    fn default() -> Self {
        Self {
            failures: Failures::default(),
            suspects: Suspects::default(),
            kept: Kept::default(),
        }
    }
}

impl<S: Stage> Findings<S> {
    /// Kinds of failures.
    pub fn len(&self) -> usize {
        self.failures.len()
    }

    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// Takes a run into account: one that did not fail tells what is not to blame.
    pub fn note(&mut self, outcome: &OutcomeOf<S>) {
        match &outcome.failure {
            Some(failure) => {
                let name = self.suspects.name(failure, &outcome.pairs);
                self.failures.note(name, outcome);
            }
            None => self.suspects.clear(&outcome.pairs),
        }
    }

    /// Keeps the failures that came since the last time, and tells of them.
    pub fn keep_new(
        &mut self,
        stage: &mut S,
        rules: &S::Rules,
        options: &Options,
        news: &mut dyn FnMut(News<'_, S::Recording>),
    ) {
        self.kept.add_new(
            &self.failures,
            options.findings_max,
            &mut |outcome| {
                let mut found = stage.as_found(outcome, rules);
                let deviations = outcome.kept_schedule().len();
                let note = as_found_note(outcome.index, deviations, options.seed);
                found.finding.notes.push(note);
                found
            },
            &mut |found| news(News::Failing(found)),
        );
    }

    /// Explains them, telling of each before; those for which there is no time are reported as they were found.
    pub fn explain(
        &self,
        stage: &mut S,
        rules: &S::Rules,
        (options, effort): (&Options, &Effort),
        report: &mut Report<S::Recording, S::Tally>,
        tell: &mut dyn FnMut(u64, u64),
    ) {
        let of = to_u64(self.failures.len().min(options.findings_max));
        for ((number, failing), index) in (1..=of).zip(self.failures.iter()).zip(0..) {
            tell(number, of);
            stage.set_leave(Leave::to_explain(&options.cancel, number));
            let explained = explain_one(stage, failing, rules, effort);
            report.as_found += u64::from(explained.is_none());
            let found = explained.unwrap_or_else(|| self.kept.get(index).clone());
            report.findings.push(found);
        }
        // Failures that looked different and turned out to be one bug are told once.
        let mut told = BTreeSet::new();
        report
            .findings
            .retain(|found| told.insert(found.finding.fingerprint.clone()));
        report.unexplained = to_u64(self.failures.len()) - of;
        stage.set_leave(Leave::to_explain(&options.cancel, of + 1));
    }
}

fn explain_one<S: Stage>(
    stage: &mut S,
    failing: &OutcomeOf<S>,
    rules: &S::Rules,
    effort: &Effort,
) -> Option<FoundOf<S>> {
    stage.leave().still()?;
    let minimised = minimise(stage, failing, rules, effort);
    stage.leave().still()?;
    let is_reproduced = minimised.is_some();
    let smallest = minimised.unwrap_or_else(|| Smallest {
        run: follow(stage, failing.kept_schedule(), rules),
        preemptions: 0,
        is_minimal: false,
    });
    stage.leave().still()?;
    let Explained {
        mut found,
        is_repeated,
    } = stage.explain(failing, &smallest, rules)?;
    let is_confirmed = is_reproduced && is_repeated;
    found.finding.confidence = if is_confirmed {
        Confidence::Confirmed
    } else {
        Confidence::Predicted
    };
    found.finding.search = Some(search(failing.index, &smallest, is_confirmed));
    Some(found)
}

/// How big the order is that is left, and how it was found.
fn search<F, R, T>(schedule: u64, smallest: &Smallest<Run<F, R, T>>, is_confirmed: bool) -> Search {
    let drive = &smallest.run.drive;
    Search {
        schedule,
        preemptions: smallest.preemptions,
        switches: drive.switches,
        torn: to_u64(drive.schedule.torn()),
        clock_jumps: to_u64(drive.schedule.clock_jumps()),
        is_minimal: smallest.is_minimal,
        replays: REPLAYS,
        replays_same: if is_confirmed { REPLAYS } else { 0 },
    }
}

/// Replays a schedule.
pub fn follow<S: Stage>(
    stage: &mut S,
    schedule: &raddle_trace::Schedule,
    rules: &S::Rules,
) -> crate::subject::RunOf<S> {
    stage.run(&mut Follow::new(schedule), rules, Watch::NOTHING)
}
