//! Exhaustive mode: all interleavings of a small subject, up to the order of what does not concern each other.
//!
//! Granularity: contexts are switched where their world always stops, and at communication points. The points are
//! learned while searching; a new one begins the search anew, so that at the end the set of points is complete for
//! everything that was explored.

use std::collections::BTreeSet;
use std::ops::Range;

use raddle_sched::dpor::SharedLog;
use raddle_sched::{Dpor, End, Scheduler};
use raddle_stdx::width::to_u64;
use raddle_world::Site;

use crate::cancel::Urgency;
use crate::explore::{Begun, ReportOf};
use crate::findings::Findings;
use crate::options::{Listener, News, Phase, Progress, Report};
use crate::outcome::Outcome;
use crate::subject::{OutcomeOf, Rules as _, RunOf, Stage, Subject, Tally as _};

/// How far such a search came.
#[derive(Debug, Clone, PartialEq)]
pub struct Exhaustive {
    pub interleavings: u64,
    /// How many there probably are.
    pub estimate: f64,
    /// Whether all were explored.
    pub is_complete: bool,
    /// Runs that were not explored to their end, because they did not end.
    pub cut_short: u64,
    /// Why more interleavings may exist than the search knows of, in words; empty if there is no such reason.
    pub bounds: Vec<&'static str>,
}

/// A run whose transitions were written down.
#[derive(Debug)]
pub struct Noted<R> {
    pub run: R,
    /// What happened in it that the search does not vary, as the end of "all interleavings, but ...".
    pub bound: Option<&'static str>,
}

/// A stage that can tell what each transition of a run touches.
pub trait NoteTransitions: Stage {
    /// As [`Stage::run`], with all memory watched; writes down what each transition touches.
    fn run_noted(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Self::Rules,
        log: &SharedLog,
    ) -> Noted<RunOf<Self>>;
}

/// Why a search that is concentrated on some code is no proof.
const FOCUSED: &str = "contexts were switched only in the code that was named";

/// Searches until everything is explored, the schedules are used up, or an end is asked for.
///
/// # Errors
/// If there is no code at the places to concentrate on.
pub fn search<S>(
    subject: &S,
    begun: Begun<S>,
    news: &mut Listener<'_, <S::Stage as Stage>::Recording>,
) -> Result<ReportOf<S>, S::StartFailure>
where
    S: Subject,
    S::Stage: NoteTransitions,
{
    let options = subject.options();
    let mut report = begun.report();
    let Begun {
        mut stage, rules, ..
    } = begun;
    let mut search = Search::<S::Stage>::new(subject.focus(&mut stage)?);
    let mut has_enough = false;
    while !search.dpor.is_over() && report.schedules < options.schedules && !has_enough {
        search.run(&mut stage, &rules, &mut report);
        search.findings.keep_new(&mut stage, &rules, options, news);
        news(News::Progress(search.progress(Phase::Exploring, &report)));
        let is_found = options.until_found && !search.findings.is_empty();
        has_enough = is_found || options.cancel.is_asked(Urgency::TimeIsUp);
    }
    report.note_end(&options.cancel);
    report.interrupted = search.points_interrupted();
    report.points = to_u64(search.points.len());
    report.classes = to_u64(search.classes.len());
    report.distinct = search.dpor.interleavings();
    report.exhaustive = Some(search.says());
    let progress = search.progress(Phase::Exploring, &report);
    search.findings.explain(
        &mut stage,
        &rules,
        (options, &subject.habits().effort),
        &mut report,
        &mut |number, of| {
            news(News::Progress(Progress {
                phase: Phase::Explaining { number, of },
                ..progress
            }));
        },
    );
    Ok(report)
}

struct Search<S: Stage> {
    /// The code in which contexts are switched; empty for all of it.
    focus: Vec<Range<Site>>,
    points: BTreeSet<Site>,
    findings: Findings<S>,
    dpor: Dpor,
    cut_short: u64,
    bounds: BTreeSet<&'static str>,
    classes: BTreeSet<u64>,
    interrupted: BTreeSet<Site>,
}

type StageReport<S> = Report<<S as Stage>::Recording, <S as Stage>::Tally>;

impl<S: NoteTransitions> Search<S> {
    fn new(focus: Vec<Range<Site>>) -> Self {
        let is_everywhere = focus.is_empty();
        Self {
            focus,
            points: BTreeSet::new(),
            findings: Findings::default(),
            dpor: Dpor::default(),
            cut_short: 0,
            bounds: (!is_everywhere).then_some(FOCUSED).into_iter().collect(),
            classes: BTreeSet::new(),
            interrupted: BTreeSet::new(),
        }
    }

    fn says(&self) -> Exhaustive {
        Exhaustive {
            interleavings: self.dpor.interleavings(),
            estimate: self.dpor.estimate(),
            is_complete: self.dpor.is_over() && self.cut_short == 0 && self.bounds.is_empty(),
            cut_short: self.cut_short,
            bounds: self.bounds.iter().copied().collect(),
        }
    }

    fn progress(&self, phase: Phase, report: &StageReport<S>) -> Progress {
        Progress {
            phase,
            generations: report.schedules / 16,
            schedules: report.schedules,
            distinct: self.dpor.interleavings(),
            failures: to_u64(self.findings.len()),
            first_failing: report.first_failing,
            points: to_u64(self.points.len()),
            interrupted: self.points_interrupted(),
            classes: to_u64(self.classes.len()),
        }
    }

    fn points_interrupted(&self) -> u64 {
        to_u64(self.interrupted.intersection(&self.points).count())
    }

    /// One run, and what follows from it.
    fn run(&mut self, stage: &mut S, rules: &S::Rules, report: &mut StageReport<S>) {
        let (mut scheduler, log) = self.dpor.next_run();
        let Noted { run, bound } = stage.run_noted(&mut scheduler, rules, &log);
        if run.drive.end == End::Abandoned {
            return;
        }
        // In the second half of its steps a run gives turns to everybody, whatever was planned.
        let is_given_turns = run.drive.steps >= rules.limits().steps / 2;
        let is_cut_short = is_given_turns || matches!(run.drive.end, End::Unsupported(_));
        let timed_stops = run.drive.timed_stops;
        let mut outcome = Outcome::new(report.schedules, run);
        report.schedules += 1;
        report.steps += outcome.steps;
        report.contexts = report.contexts.max(outcome.contexts);
        report.decisions = report.decisions.max(outcome.decisions);
        report.timed_stops += timed_stops;
        report.tally.add(&outcome.tally);
        report.spent += outcome.spent;
        self.classes.insert(outcome.class);
        self.interrupted.extend(&outcome.interrupted);
        self.cut_short += u64::from(is_cut_short);
        self.bounds.extend(bound);
        if let Some(what) = &outcome.unsupported {
            let entry = report.unsupported.get_or_insert((what.clone(), 0));
            entry.1 += 1;
        }
        if outcome.failure.is_some() {
            report.failing += 1;
            report.first_failing.get_or_insert(outcome.index);
            outcome.digests = Some(stage.digests());
        }
        self.findings.note(&outcome);
        if self.learn(stage, &outcome, report) {
            self.dpor = Dpor::default();
        } else {
            self.dpor.note(&log.borrow());
        }
    }

    /// Whether there are new communication points.
    fn learn(
        &mut self,
        stage: &mut S,
        outcome: &OutcomeOf<S>,
        report: &mut StageReport<S>,
    ) -> bool {
        let Some(learned) = &outcome.learned else {
            return false;
        };
        report.shared_places = report.shared_places.max(learned.shared_places);
        let before = self.points.len();
        let focus = &self.focus;
        let is_wanted =
            |site: &&Site| focus.is_empty() || focus.iter().any(|code| code.contains(*site));
        let sites = learned.meetings.iter().flatten().filter(is_wanted);
        self.points.extend(sites);
        let has_new = self.points.len() != before;
        if has_new {
            let points: Vec<Site> = self.points.iter().copied().collect();
            stage.add_points(&points);
        }
        has_new
    }
}
