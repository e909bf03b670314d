//! The campaign on a kernel (Fonseca, Rodrigues, Brandenburg: SKI, OSDI 2014). Each worker makes its own guest from
//! the shared boot snapshot.

mod allowed;
mod explain;
mod failure;
mod instruction_trace;
mod kept;
mod known_functions;
mod minimise;
mod names;
mod portfolio;
mod race_rules;
mod recorded;
mod repeat;
mod run;
mod session;
mod ski_race;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use raddle_campaign::{
    Algorithm, Cancel, Director, Failures, Generation, Kept, Learning, Leave, Material, Urgency,
    Worker, algorithm, run_generations, scheduler,
};
use raddle_report::Finding;
use raddle_sched::{End, Profile};
use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;
use raddle_trace::Schedule;
use raddle_world::{Site, Unsupported};

use crate::world::Heuristics;

pub use allowed::{ContextSet, NoContextSet};
pub use explain::{Explainer, Replayed, replay};
pub use failure::Failure;
pub use instruction_trace::{InstructionOptions, trace_instructions};
pub use known_functions::KnownFunctions;
pub use names::Names;
pub use portfolio::PORTFOLIO;
pub use race_rules::{RaceRules, Rank};
pub use recorded::Recorded;
pub use repeat::{Trace, repeat};
pub use run::{Clock, Cost, Digests, Outcome, RaceMode, Rules};
pub use session::{Session, StartFailure, Target, input};
pub use ski_race::{RaceGroup, RacePair};
pub use trace::{FunctionTrace, TraceOptions, trace_functions};

/// Steps in a row before the default order goes on to the next processor (SKI's h4).
pub const PATIENCE: u64 = 500_000;
/// Instructions between two pauses of a processor that waits (SKI's h2).
pub const PAUSE_WINDOW: u64 = 30;
/// Instructions of a loop without PAUSE that waits (SKI's h3).
pub const LOOP_WINDOW: u64 = 20;
/// One schedule in this many is observed once the set of points is stable.
const SAMPLE: u64 = 64;
/// Steps of a schedule at most, if the default order took fewer.
const STEPS_MIN: u64 = 50_000_000;
/// How much longer than the default order a schedule may take.
const STEPS_FACTOR: u64 = 60;

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    pub target: Arc<Target>,
    /// Schedules at most.
    pub schedules: u64,
    pub until_found: bool,
    pub workers: usize,
    pub seed: u64,
    /// One algorithm for all schedules; none for the portfolio.
    pub algorithm: Option<Algorithm>,
    /// Look for data races in every schedule.
    pub races: Option<RaceMode>,
    /// Different failures to minimise and explain at most.
    pub findings_max: usize,
    pub patience: u64,
    pub pause_window: u64,
    pub loop_window: u64,
    /// Whether the scheduler decides when an interrupt is taken.
    pub interrupts: bool,
    /// For what schedules cost.
    pub clock: Clock,
    /// Asks for an end: schedules under way are dropped.
    pub cancel: Cancel,
}

/// What a campaign tells while it runs.
#[derive(Debug)]
pub enum News<'a> {
    /// After each generation, and now and then during it.
    Progress(Progress),
    /// A failure of a kind that was not seen before, with the schedule as it ran: to be kept now. The report has it
    /// again, under the same fingerprint.
    Failing(&'a Found),
    /// The n-th of so many failures is made small and explained.
    Explaining { number: u64, of: u64 },
}

/// How far a campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub schedules: u64,
    pub distinct: u64,
    pub failures: u64,
    pub points: u64,
}

/// A finding with what is needed to have it again.
#[derive(Debug, Clone)]
pub struct Found {
    pub finding: Finding,
    pub schedule: Schedule,
    pub rules: Rules,
    /// Digest of the guest at the start line.
    pub start_digest: u64,
    pub digests: Digests,
}

/// What a campaign found out.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub findings: Vec<Found>,
    pub races: Vec<Finding>,
    pub schedules: u64,
    pub distinct: u64,
    pub failing: u64,
    /// Number of the first failing schedule.
    pub first_failing: Option<u64>,
    pub unexplained: u64,
    pub decisions: u64,
    pub points: u64,
    pub shared_places: u64,
    pub steps: u64,
    pub baseline_steps: u64,
    pub unsupported: Option<(Box<Unsupported>, u64)>,
    /// Findings that are as they were found, because the time for explanations was used up.
    pub as_found: u64,
    /// Schedules of the generation that was broken off: nothing was learned from them, and no count has them.
    pub dropped: u64,
    /// The time was up before the schedules were used up.
    pub was_stopped: bool,
    /// It was interrupted before the schedules were used up.
    pub was_cancelled: bool,
    /// Why processors were passed over.
    pub heuristics: Heuristics,
    pub cost: Cost,
    /// Threads of the kernel that could not be moved away from the test's processors.
    pub fixed_threads: Vec<String>,
}

impl Report {
    /// Takes note of why an end was asked for.
    fn note_end(&mut self, cancel: &Cancel) {
        self.was_cancelled = cancel.is_asked(Urgency::Interrupted);
        self.was_stopped = cancel.is_asked(Urgency::TimeIsUp) && !self.was_cancelled;
    }
}

/// Explores. `news` is told of each generation and of each new failure.
pub fn explore(options: &Options, news: &mut dyn FnMut(News<'_>)) -> Result<Report, StartFailure> {
    let mut session = Session::start(&options.target)?;
    session.leave = Leave::to_explore(&options.cancel);
    let first = Rules {
        patience: options.patience,
        steps: 2_000_000_000,
        races: options.races,
        interrupts: options.interrupts,
        pause_window: options.pause_window,
        loop_window: options.loop_window,
    };
    let mut scheduler = algorithm::default_order();
    let watch = run::Watch {
        memory: true,
        points: true,
    };
    let mut baseline = run::run_schedule(&mut session, &mut scheduler, first, watch, options.clock);
    baseline.is_default = true;
    if baseline.drive.end == End::Abandoned {
        let mut report = Report::default();
        report.note_end(&options.cancel);
        return Ok(report);
    }
    if baseline.failure.is_some() {
        baseline.digests = Some(Digests::of(&mut session.world));
    }
    if let Some(Failure::Stuck { statements }) = &baseline.failure {
        return Err(never_ends(&options.target, statements));
    }
    if session
        .world
        .console()
        .test_text()
        .contains(session::OUT_OF_MEMORY)
    {
        let path = options.target.test.as_ref().map(|test| test.path.clone());
        return Err(StartFailure::OutOfMemory(
            path.unwrap_or_else(|| "the program".to_owned()),
        ));
    }
    let rules = Rules {
        steps: baseline
            .drive
            .steps
            .saturating_mul(STEPS_FACTOR)
            .max(STEPS_MIN),
        ..first
    };
    let mut campaign = Campaign::new(options, rules);
    campaign.report.fixed_threads = session.world.info().fixed_threads.clone();
    campaign.merge(&[baseline]);
    let start = || Explorer::start(options);
    let mut reporting = Reporting {
        campaign: &mut campaign,
        session: &mut session,
        planned: 0,
        news,
    };
    reporting.keep_new();
    run_generations(options.workers, &start, &mut reporting);
    campaign.report.note_end(&options.cancel);
    Ok(campaign.finish(&mut session, news))
}

/// A test that does not end although everybody got their turn is no test.
fn never_ends(target: &Target, statements: &[usize]) -> StartFailure {
    let test = target.test.as_ref();
    let (path, at) = match test {
        Some(test) => {
            let texts: Vec<String> = statements
                .iter()
                .filter_map(|number| test.statements.get(*number))
                .map(|statement| format!("`{}`", statement.text))
                .collect();
            (test.path.as_str(), texts.join(" and "))
        }
        None => ("the agent program", String::new()),
    };
    let who = if at.is_empty() {
        "it does not come to its end".to_owned()
    } else {
        format!("{at} does not return")
    };
    StartFailure::Test(format!(
        "{path}: the test never ends: {who} within {} ms of the guest's time, even if nobody is interrupted; give \
         calls that wait a time-out, or the test more time with --guest-time",
        target.time_max / 1_000_000
    ))
}

/// One schedule to run.
#[derive(Debug, Clone, Copy)]
struct Job {
    index: u64,
    seed: u64,
    algorithm: Algorithm,
    observes: bool,
}

/// What all jobs of a generation share.
#[derive(Debug)]
struct Shared {
    points: Vec<Site>,
    groups: Vec<Vec<Site>>,
    profile: Profile,
    rules: Rules,
}

struct Campaign<'a> {
    options: &'a Options,
    rules: Rules,
    report: Report,
    learning: Learning,
    seen: BTreeSet<u64>,
    failures: Failures<Outcome>,
    kept: Kept<Found>,
    races: BTreeMap<(u64, u64), RacePair>,
}

impl<'a> Campaign<'a> {
    fn new(options: &'a Options, rules: Rules) -> Self {
        Self {
            options,
            rules,
            report: Report::default(),
            learning: Learning::default(),
            seen: BTreeSet::new(),
            failures: Failures::default(),
            kept: Kept::default(),
            races: BTreeMap::new(),
        }
    }

    fn generation(&mut self, number: usize, size: u64) -> Generation<Shared, Job> {
        let size = size.min(self.options.schedules - self.report.schedules);
        let first = self.report.schedules;
        let jobs = (first..first + size)
            .map(|index| self.job(index, index == first, number))
            .collect();
        let shared = Shared {
            points: self.learning.points(),
            groups: self.learning.groups(),
            profile: self.learning.profile.clone(),
            rules: self.rules,
        };
        Generation { shared, jobs }
    }

    fn job(&mut self, index: u64, is_first: bool, generation: usize) -> Job {
        let is_learning = self.learning.is_going_on();
        let wanted = self.options.algorithm;
        let algorithm = self.learning.algorithm(index, is_first, wanted, &PORTFOLIO);
        Job {
            index,
            seed: Prng::derive_seed(self.options.seed, index),
            algorithm,
            observes: self.options.races.is_some()
                || generation == 0
                || index.is_multiple_of(SAMPLE)
                || (is_learning && index.is_multiple_of(8)),
        }
    }

    /// Takes what the runs of a generation taught, in the order of their numbers.
    fn merge(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            self.report.schedules += 1;
            self.report.steps += outcome.drive.steps;
            self.report.decisions = self.report.decisions.max(outcome.drive.decisions);
            self.report.heuristics.add(&outcome.heuristics);
            self.report.cost.add(&outcome.cost);
            self.seen.insert(outcome.drive.schedule.digest());
            // A kernel that panicked restarts the machine in ways that are not supported.
            if let (End::Unsupported(what), None) = (&outcome.drive.end, &outcome.failure) {
                let entry = self.report.unsupported.get_or_insert((what.clone(), 0));
                entry.1 += 1;
            }
            if outcome.failure.is_some() {
                self.report.failing += 1;
                self.report.first_failing.get_or_insert(outcome.index);
            }
            self.note_failure(outcome);
            self.learn(outcome);
        }
        self.learning.end_generation();
    }

    fn note_failure(&mut self, outcome: &Outcome) {
        if let Some(failure) = &outcome.failure {
            self.failures.note(failure.fingerprint(), outcome);
        }
    }

    /// Takes what a generation that was broken off has found, and nothing else: which of its schedules came to an
    /// end depends on the machine.
    fn drop_generation(&mut self, planned: usize, outcomes: &[Outcome]) {
        self.report.dropped = to_u64(planned);
        outcomes
            .iter()
            .for_each(|outcome| self.note_failure(outcome));
    }

    fn progress(&self) -> Progress {
        Progress {
            schedules: self.report.schedules,
            distinct: to_u64(self.seen.len()),
            failures: to_u64(self.failures.len()),
            points: to_u64(self.learning.points_len()),
        }
    }

    fn learn(&mut self, outcome: &Outcome) {
        if outcome.is_default {
            self.report.baseline_steps = outcome.drive.steps;
        }
        if let Some(profile) = &outcome.profile {
            self.learning.profile.clone_from(profile);
        }
        let Some(learned) = &outcome.learned else {
            return;
        };
        self.report.shared_places = self.report.shared_places.max(learned.shared_places);
        for group in &learned.meetings {
            self.learning.meet(group);
        }
        for race in &learned.races {
            self.races
                .entry(race.key())
                .and_modify(|known| known.add(race))
                .or_insert_with(|| race.clone());
        }
    }

    fn finish(mut self, session: &mut Session<'_>, news: &mut dyn FnMut(News<'_>)) -> Report {
        self.report.distinct = to_u64(self.seen.len());
        self.report.points = to_u64(self.learning.points_len());
        let mut explainer = Explainer::new(session, self.options.seed);
        let of = to_u64(self.failures.len().min(self.options.findings_max));
        for (number, outcome) in (1..=of).zip(self.failures.iter()) {
            news(News::Explaining { number, of });
            let kept = self.kept.get(self.report.findings.len());
            let found = explainer.found(number, outcome, self.options, kept);
            self.report.as_found += u64::from(found.is_none());
            let found = found.unwrap_or_else(|| kept.clone());
            self.report.findings.push(found);
        }
        self.report.unexplained = to_u64(self.failures.len()) - of;
        let pairs: Vec<RacePair> = self.races.into_values().collect();
        self.report.races = explainer.races(&pairs);
        self.report
    }
}

/// A campaign that tells how far it is.
struct Reporting<'a, 'b, 'c> {
    campaign: &'a mut Campaign<'b>,
    /// Stands still while the workers run.
    session: &'a mut Session<'c>,
    /// Schedules of the present generation.
    planned: usize,
    news: &'a mut dyn FnMut(News<'_>),
}

impl Reporting<'_, '_, '_> {
    fn keep_new(&mut self) {
        let Campaign {
            options,
            rules,
            failures,
            kept,
            ..
        } = &mut *self.campaign;
        kept.add_new(
            failures,
            options.findings_max,
            &mut |outcome| kept::as_found(self.session, outcome, *rules, options.seed),
            &mut |found| (self.news)(News::Failing(found)),
        );
    }
}

impl Director<Explorer<'_>> for Reporting<'_, '_, '_> {
    fn plan(&mut self, number: usize, size: u64) -> Option<Generation<Shared, Job>> {
        let campaign = &mut *self.campaign;
        let is_wanted = campaign.report.schedules < campaign.options.schedules;
        let generation = is_wanted.then(|| campaign.generation(number, size));
        self.planned = generation.as_ref().map_or(0, |next| next.jobs.len());
        generation
    }

    fn watch(&mut self, begun: usize) {
        let progress = self.campaign.progress();
        (self.news)(News::Progress(Progress {
            schedules: progress.schedules + to_u64(begun),
            ..progress
        }));
    }

    fn take(&mut self, outcomes: Vec<Outcome>) -> bool {
        let campaign = &mut *self.campaign;
        let is_complete = outcomes.len() == self.planned;
        if is_complete {
            campaign.merge(&outcomes);
        } else {
            campaign.drop_generation(self.planned, &outcomes);
        }
        self.keep_new();
        let campaign = &*self.campaign;
        (self.news)(News::Progress(campaign.progress()));
        let has_enough = campaign.options.until_found && !campaign.failures.is_empty();
        is_complete && !has_enough && !campaign.options.cancel.is_asked(Urgency::TimeIsUp)
    }
}

/// A worker with its own guest.
struct Explorer<'a> {
    session: Session<'a>,
    clock: Clock,
    /// Points that the guest knows.
    points: usize,
    /// Fingerprints of the failures that this worker has seen.
    seen: BTreeSet<String>,
}

impl<'a> Explorer<'a> {
    /// The first guest started, and starting is deterministic.
    fn start(options: &'a Options) -> Option<Self> {
        let mut session = Session::start(&options.target).ok()?;
        session.leave = Leave::to_explore(&options.cancel);
        Some(Self {
            session,
            clock: options.clock,
            points: 0,
            seen: BTreeSet::new(),
        })
    }
}

impl Worker for Explorer<'_> {
    type Shared = Shared;
    type Job = Job;
    type Outcome = Outcome;

    fn begin(&mut self, shared: &Shared) {
        if self.points != shared.points.len() {
            self.points = shared.points.len();
            self.session.world.set_points(&shared.points);
        }
    }

    fn run(&mut self, shared: &Shared, job: &Job) -> Option<Outcome> {
        let material = Material {
            profile: &shared.profile,
            groups: &shared.groups,
            wishes: &Vec::new(),
            focus: &[],
            is_timed: false,
            is_stepwise: false,
        };
        let mut scheduler = scheduler(job.algorithm, job.seed, material);
        let is_default = job.algorithm == Algorithm::Default;
        let watch = run::Watch {
            memory: job.observes,
            points: is_default,
        };
        let mut outcome = run::run_schedule(
            &mut self.session,
            &mut *scheduler,
            shared.rules,
            watch,
            self.clock,
        );
        outcome.index = job.index;
        outcome.is_default = is_default;
        // A worker's jobs come in the order of their numbers: the first schedule of all that fails in some way is also
        // the first of its worker.
        if let Some(failure) = &outcome.failure
            && self.seen.insert(failure.fingerprint())
        {
            outcome.digests = Some(Digests::of(&mut self.session.world));
        }
        (outcome.drive.end != End::Abandoned).then_some(outcome)
    }
}

/// Workers that make sense for a budget: a worker's start costs as much as some schedules.
pub fn useful_workers(wanted: usize, schedules: u64) -> usize {
    let useful = raddle_stdx::width::to_usize(schedules.div_ceil(200));
    wanted.clamp(1, useful.max(1))
}
