//! What the user asks of a campaign, and what it tells while it runs.

use std::collections::BTreeSet;

use crate::algorithm::Algorithm;
use crate::cancel::{Cancel, Urgency};
use crate::coverage::NamedCoverage;
use crate::exhaustive::Exhaustive;
use crate::spent::{Clock, Spent};
use crate::subject::Found;
use raddle_world::{Fault, Unsupported};

/// What to do, whatever is explored.
#[derive(Debug, Clone)]
pub struct Options {
    /// Schedules at most.
    pub schedules: u64,
    pub until_found: bool,
    pub workers: usize,
    /// Seed of the campaign.
    pub seed: u64,
    /// One algorithm for all schedules; none for the portfolio.
    pub algorithm: Option<Algorithm>,
    /// Look for data races in every schedule, not only in those that are observed anyway.
    pub races: bool,
    /// Different failures to minimise and explain at most.
    pub findings_max: usize,
    /// Whether timers and time-outs may come while others can still run.
    pub varies_time: bool,
    /// Whether every instruction is a decision point.
    pub every_instruction: bool,
    /// What contexts may meet in half of the schedules.
    pub faults: Vec<Fault>,
    /// Whether the coverage of interleavings is counted in every schedule.
    pub coverage: bool,
    /// Asks for an end: schedules under way are dropped.
    pub cancel: Cancel,
    /// Measures where the time of the schedules goes.
    pub clock: Option<Clock>,
}

/// What a campaign is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// The subject comes to the place where schedules begin.
    #[default]
    Starting,
    /// It runs once without interruptions.
    Alone,
    Exploring,
    /// The n-th of so many failures is made small and explained.
    Explaining {
        number: u64,
        of: u64,
    },
}

/// How far a campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub phase: Phase,
    /// Generations from which everything is learned; where each run follows from the one before, sixteen make one.
    pub generations: u64,
    pub schedules: u64,
    pub distinct: u64,
    pub failures: u64,
    /// Number of the first schedule that failed.
    pub first_failing: Option<u64>,
    /// Communication points, and those at which some context was interrupted.
    pub points: u64,
    pub interrupted: u64,
    /// Runs that differ in who read whose write.
    pub classes: u64,
}

/// What a campaign tells while it runs.
#[derive(Debug)]
pub enum News<'a, R> {
    /// At the begin of each phase, and now and then during it.
    Progress(Progress),
    /// A failure of a kind that was not seen before, with the schedule as it ran: to be kept now, since making it
    /// small and explaining it may never come to an end. The report has it again, under the same fingerprint.
    Failing(&'a Found<R>),
}

/// The caller's function that is told the news.
pub type Listener<'n, R> = dyn FnMut(News<'_, R>) + 'n;

/// What a campaign found out.
#[derive(Debug, Clone)]
pub struct Report<R, T> {
    /// Failures in the order in which they were found, with their recordings.
    pub findings: Vec<Found<R>>,
    /// Those of them that are as they were found, because the time for explanations was used up.
    pub as_found: u64,
    /// Data races, with recordings of runs that show them again.
    pub races: Vec<Found<Option<R>>>,
    pub schedules: u64,
    pub distinct: u64,
    /// Schedules that failed.
    pub failing: u64,
    /// Number of the first of them.
    pub first_failing: Option<u64>,
    /// Different failures beyond those explained.
    pub unexplained: u64,
    pub contexts: u64,
    pub decisions: u64,
    pub points: u64,
    /// Points at which some context was interrupted.
    pub interrupted: u64,
    pub shared_places: u64,
    /// Runs that differ in who read whose write.
    pub classes: u64,
    /// What is equal for runs that do not: the same in all campaigns of one subject.
    pub class_digests: BTreeSet<u64>,
    /// Pairs of a write and a read of another context.
    pub pairs: u64,
    pub steps: u64,
    /// Without the start and the explanation of findings.
    pub spent: Spent,
    /// The first thing that was not supported, and how many schedules ended there.
    pub unsupported: Option<(Box<Unsupported>, u64)>,
    /// Whether all sets of at most one delay were run.
    pub single_delays_done: bool,
    /// Schedules of the generation that was broken off: nothing was learned from them, and no count has them.
    pub dropped: u64,
    /// It was interrupted before the schedules were used up.
    pub was_cancelled: bool,
    /// The time was up before the schedules were used up.
    pub was_stopped: bool,
    pub baseline_steps: u64,
    /// Stops of the default order with a timer or time-out running.
    pub timed_stops: u64,
    /// Only if all interleavings were to be explored.
    pub exhaustive: Option<Exhaustive>,
    /// What was covered, if that was counted.
    pub coverage: Option<NamedCoverage>,
    /// What only this kind of subject counts.
    pub tally: T,
}

impl<R, T: Default> Default for Report<R, T> {
    fn default() -> Self {
        Self {
            findings: Vec::new(),
            as_found: 0,
            races: Vec::new(),
            schedules: 0,
            distinct: 0,
            failing: 0,
            first_failing: None,
            unexplained: 0,
            contexts: 0,
            decisions: 0,
            points: 0,
            interrupted: 0,
            shared_places: 0,
            classes: 0,
            class_digests: BTreeSet::new(),
            pairs: 0,
            steps: 0,
            spent: Spent::default(),
            unsupported: None,
            single_delays_done: false,
            dropped: 0,
            was_cancelled: false,
            was_stopped: false,
            baseline_steps: 0,
            timed_stops: 0,
            exhaustive: None,
            coverage: None,
            tally: T::default(),
        }
    }
}

impl<R, T> Report<R, T> {
    /// Takes note of why an end was asked for.
    pub fn note_end(&mut self, cancel: &Cancel) {
        self.was_cancelled = cancel.is_asked(Urgency::Interrupted);
        self.was_stopped = cancel.is_asked(Urgency::TimeIsUp) && !self.was_cancelled;
    }
}
