//! The campaign on a kernel: schedules in generations, on several workers, with results that do not depend on how
//! many (Fonseca, Rodrigues, Brandenburg: SKI, OSDI 2014).
//!
//! A generation is a list of jobs that is fixed before it begins; what its runs teach is merged in the order of
//! their numbers after it has ended. Each worker makes its own guest from the shared boot snapshot.

mod algorithm;
mod explain;
mod failure;
mod instruction_trace;
mod known_functions;
mod minimise;
mod names;
mod race_rules;
mod recorded;
mod repeat;
mod run;
mod session;
mod ski_race;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use raddle_report::Finding;
use raddle_sched::{End, Profile};
use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;
use raddle_trace::Schedule;

use crate::world::Heuristics;

pub use algorithm::Algorithm;
pub use explain::{Explainer, Replayed, replay};
pub use failure::Failure;
pub use instruction_trace::{InstructionOptions, trace_instructions};
pub use known_functions::KnownFunctions;
pub use names::Names;
pub use race_rules::{RaceRules, Rank};
pub use recorded::Recorded;
pub use repeat::{Trace, repeat};
pub use run::{Clock, Cost, Outcome, RaceMode, Rules};
pub use session::{Session, StartFailure, Target};
pub use ski_race::{RaceGroup, RacePair};
pub use trace::{FunctionTrace, TraceOptions, trace_functions};

/// Steps in a row before the default order goes on to the next processor (SKI's h4).
pub const PATIENCE: u64 = 500_000;
/// Schedules of the first generations; the last number holds for all later ones.
const GENERATIONS: [u64; 3] = [8, 24, 64];
/// One schedule in this many is observed once the set of points is stable.
const SAMPLE: u64 = 64;
/// Points beyond this number are not used.
const POINTS_MAX: usize = 20_000;
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
    /// Whether the scheduler decides when an interrupt is taken.
    pub interrupts: bool,
    /// For what schedules cost.
    pub clock: Clock,
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
    pub failure: Failure,
    /// Digests of the run and of the memory at its end.
    pub run_digest: u64,
    pub state_digest: u64,
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
    pub unsupported: Option<(String, u64)>,
    pub was_stopped: bool,
    /// Why processors were passed over.
    pub heuristics: Heuristics,
    pub cost: Cost,
    /// Threads of the kernel that could not be moved away from the test's processors.
    pub fixed_threads: Vec<String>,
}

/// Explores. `progress` is told after each generation; false from it ends the campaign.
pub fn explore(
    options: &Options,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Report, StartFailure> {
    let mut session = Session::start(&options.target)?;
    let first = Rules {
        patience: options.patience,
        steps: 2_000_000_000,
        races: options.races,
        interrupts: options.interrupts,
    };
    let mut scheduler = algorithm::scheduler(Algorithm::Default, 0, &Profile::default(), &[]);
    let watch = run::Watch {
        memory: true,
        points: true,
    };
    let mut baseline =
        run::run_schedule(&mut session, &mut *scheduler, first, watch, options.clock);
    baseline.is_default = true;
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
    campaign.merge(&mut [baseline]);
    campaign.run_generations(progress);
    Ok(campaign.finish(&mut session))
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

/// What all workers of a generation share.
#[derive(Debug)]
struct Generation {
    jobs: Vec<Job>,
    next: AtomicUsize,
    points: Vec<u64>,
    groups: Vec<Vec<u64>>,
    profile: Profile,
    rules: Rules,
}

struct Campaign<'a> {
    options: &'a Options,
    rules: Rules,
    report: Report,
    profile: Profile,
    points: BTreeSet<u64>,
    groups: BTreeSet<Vec<u64>>,
    is_learning: bool,
    /// Number of the next set of delays.
    delays: u64,
    seen: BTreeSet<u64>,
    /// First failing outcome of each kind, by fingerprint.
    failures: BTreeMap<String, Outcome>,
    order: Vec<String>,
    races: BTreeMap<(u64, u64), RacePair>,
}

impl<'a> Campaign<'a> {
    fn new(options: &'a Options, rules: Rules) -> Self {
        Self {
            options,
            rules,
            report: Report::default(),
            profile: Profile::default(),
            points: BTreeSet::new(),
            groups: BTreeSet::new(),
            is_learning: true,
            delays: 0,
            seen: BTreeSet::new(),
            failures: BTreeMap::new(),
            order: Vec::new(),
            races: BTreeMap::new(),
        }
    }

    fn run_generations(&mut self, progress: &mut dyn FnMut(Progress) -> bool) {
        std::thread::scope(|scope| {
            let (outcomes_in, outcomes) = mpsc::channel();
            let mut queues = Vec::new();
            for _ in 0..self.options.workers.max(1) {
                let (queue, jobs) = mpsc::channel::<Arc<Generation>>();
                let outcomes_in = outcomes_in.clone();
                let target = Arc::clone(&self.options.target);
                let clock = self.options.clock;
                scope.spawn(move || work(&target, &jobs, &outcomes_in, clock));
                queues.push(queue);
            }
            drop(outcomes_in);
            let mut number = 0;
            while self.report.schedules < self.options.schedules {
                let generation = Arc::new(self.generation(number));
                number += 1;
                for queue in &queues {
                    // A worker that could not start has gone; the others do its share.
                    drop(queue.send(Arc::clone(&generation)));
                }
                let mut done: Vec<Outcome> = outcomes.iter().take(generation.jobs.len()).collect();
                if done.is_empty() {
                    break;
                }
                done.sort_by_key(|outcome| outcome.index);
                self.merge(&mut done);
                let goes_on = progress(Progress {
                    schedules: self.report.schedules,
                    distinct: to_u64(self.seen.len()),
                    failures: to_u64(self.order.len()),
                    points: to_u64(self.points.len()),
                });
                if !goes_on {
                    self.report.was_stopped = true;
                    break;
                }
                if self.options.until_found && !self.order.is_empty() {
                    break;
                }
            }
        });
    }

    fn generation(&mut self, number: usize) -> Generation {
        let size = GENERATIONS[number.min(GENERATIONS.len() - 1)];
        let size = size.min(self.options.schedules - self.report.schedules);
        let first = self.report.schedules;
        let jobs = (first..first + size)
            .map(|index| self.job(index, index == first, number))
            .collect();
        Generation {
            jobs,
            next: AtomicUsize::new(0),
            points: self.points.iter().copied().take(POINTS_MAX).collect(),
            groups: self.groups.iter().cloned().collect(),
            profile: self.profile.clone(),
            rules: self.rules,
        }
    }

    fn job(&mut self, index: u64, is_first: bool, generation: usize) -> Job {
        let mut algorithm = match self.options.algorithm {
            _ if is_first && self.is_learning => Algorithm::Default,
            Some(algorithm) => algorithm,
            None => Algorithm::of_turn(index),
        };
        if let Algorithm::Delay { number } = &mut algorithm {
            *number = self.delays;
            self.delays += 1;
        }
        Job {
            index,
            seed: Prng::derive_seed(self.options.seed, index),
            algorithm,
            observes: self.options.races.is_some()
                || generation == 0
                || index.is_multiple_of(SAMPLE)
                || (self.is_learning && index.is_multiple_of(8)),
        }
    }

    /// Takes what the runs of a generation taught, in the order of their numbers.
    fn merge(&mut self, outcomes: &mut [Outcome]) {
        let points_before = self.points.len();
        for outcome in outcomes {
            self.report.schedules += 1;
            self.report.steps += outcome.drive.steps;
            self.report.decisions = self.report.decisions.max(outcome.drive.decisions);
            self.report.heuristics.add(&outcome.heuristics);
            self.report.cost.add(&outcome.cost);
            self.seen.insert(outcome.drive.schedule.digest());
            if let End::Unsupported(text) = &outcome.drive.end {
                let entry = self.report.unsupported.get_or_insert((text.clone(), 0));
                entry.1 += 1;
            }
            if let Some(failure) = &outcome.failure {
                self.report.failing += 1;
                self.report.first_failing.get_or_insert(outcome.index);
                let fingerprint = failure.fingerprint();
                if !self.failures.contains_key(&fingerprint) {
                    self.order.push(fingerprint.clone());
                    self.failures.insert(fingerprint, outcome.clone());
                }
            }
            self.learn(outcome);
        }
        self.is_learning = self.points.len() != points_before;
        if self.is_learning {
            // Numbers of decisions mean other places now.
            self.delays = 0;
        }
    }

    fn learn(&mut self, outcome: &Outcome) {
        if outcome.is_default {
            self.report.baseline_steps = outcome.drive.steps;
        }
        if let Some(profile) = &outcome.profile {
            self.profile.clone_from(profile);
        }
        let Some(learned) = &outcome.learned else {
            return;
        };
        self.report.shared_places = self.report.shared_places.max(learned.shared_places);
        for group in &learned.meetings {
            self.points.extend(group.iter().copied());
            self.groups.insert(group.clone());
        }
        for race in &learned.races {
            self.races
                .entry(race.key())
                .and_modify(|known| known.count += race.count)
                .or_insert_with(|| race.clone());
        }
    }

    fn finish(mut self, session: &mut Session<'_>) -> Report {
        self.report.distinct = to_u64(self.seen.len());
        self.report.points = to_u64(self.points.len());
        let mut explainer = Explainer::new(session, self.options.seed);
        for fingerprint in self.order.iter().take(self.options.findings_max) {
            let outcome = &self.failures[fingerprint];
            self.report
                .findings
                .push(explainer.found(outcome, self.rules));
        }
        let explained = self.order.len().min(self.options.findings_max);
        self.report.unexplained = to_u64(self.order.len() - explained);
        let pairs: Vec<RacePair> = self.races.into_values().collect();
        self.report.races = explainer.races(&pairs);
        self.report
    }
}

/// A worker: its own guest, job after job.
fn work(
    target: &Target,
    generations: &mpsc::Receiver<Arc<Generation>>,
    outcomes: &mpsc::Sender<Outcome>,
    clock: Clock,
) {
    // The first guest started, and starting is deterministic.
    let Ok(mut session) = Session::start(target) else {
        return;
    };
    let mut points = 0;
    for generation in generations {
        if points != generation.points.len() {
            points = generation.points.len();
            session.world.set_points(&generation.points);
        }
        loop {
            let taken = generation.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = generation.jobs.get(taken) else {
                break;
            };
            let mut scheduler = algorithm::scheduler(
                job.algorithm,
                job.seed,
                &generation.profile,
                &generation.groups,
            );
            let is_default = job.algorithm == Algorithm::Default;
            let watch = run::Watch {
                memory: job.observes,
                points: is_default,
            };
            let mut outcome = run::run_schedule(
                &mut session,
                &mut *scheduler,
                generation.rules,
                watch,
                clock,
            );
            outcome.index = job.index;
            outcome.is_default = is_default;
            if outcomes.send(outcome).is_err() {
                return;
            }
        }
    }
}

/// Workers that make sense for a budget: a worker's start costs as much as some schedules.
pub fn useful_workers(wanted: usize, schedules: u64) -> usize {
    let useful = raddle_stdx::width::to_usize(schedules.div_ceil(200));
    wanted.clamp(1, useful.max(1))
}
