//! The campaign: schedules in generations, on several workers, with results that do not depend on how many.
//!
//! A generation is a list of jobs that is fixed before it begins; what its runs teach is merged in the order of
//! their numbers after it has ended. Each worker has a world of its own and takes the next job when it is free.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use raddle_detect::Race;
use raddle_report::Finding;
use raddle_sched::{End, Profile};
use raddle_stdx::width::{to_u64, to_usize};
use raddle_stdx::{Digest, Prng};
use raddle_trace::{Inputs, Limits, Recording};

use crate::explain;
use crate::portfolio::{Algorithm, scheduler};
use crate::schedule_run::{Outcome, Rules, run_schedule};
use crate::session::{Session, SnapshotAt, StartFailure};

/// Steps in a row before the default order goes on to the next context.
const PATIENCE: u64 = 100_000;
/// Schedules of the first generations; the last number holds for all later ones.
const GENERATIONS: [u64; 3] = [8, 24, 64];
/// One schedule in this many is observed once the set of points is stable.
const SAMPLE: u64 = 32;
/// Points beyond this number are not used.
const POINTS_MAX: usize = 20_000;
/// Steps of a schedule before it counts as hanging, if the default order took fewer.
const HANG_STEPS_MIN: u64 = 4_000_000;
/// How much longer than the default order a schedule may take.
const HANG_FACTOR: u64 = 40;

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    pub inputs: Inputs,
    pub snapshot_at: SnapshotAt,
    /// Schedules at most.
    pub schedules: u64,
    pub until_found: bool,
    pub workers: usize,
    /// Seed of the campaign.
    pub seed: u64,
    /// One algorithm for all schedules; none for the portfolio.
    pub algorithm: Option<Algorithm>,
    /// Look for data races in every schedule.
    pub races: bool,
    /// Status that counts as right; none for that of the default order.
    pub expected_exit: Option<i32>,
    /// Steps of one schedule at most; none for a multiple of the default order's.
    pub steps_max: Option<u64>,
    /// Different failures to minimise and explain at most.
    pub findings_max: usize,
    /// When it becomes true, no further schedule is begun; what was found is explained.
    pub cancel: Arc<AtomicBool>,
}

impl Options {
    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// How far a campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub schedules: u64,
    pub distinct: u64,
    pub failures: u64,
    pub points: u64,
}

/// What a campaign found out.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Findings with their recordings, in the order in which they were found.
    pub findings: Vec<(Finding, Recording)>,
    /// Data races: seen, but without a recording of a failure.
    pub races: Vec<Finding>,
    pub schedules: u64,
    pub distinct: u64,
    /// Schedules that failed.
    pub failing: u64,
    /// Different failures beyond those explained.
    pub unexplained: u64,
    pub contexts: u64,
    pub decisions: u64,
    pub points: u64,
    pub shared_places: u64,
    pub steps: u64,
    /// The first thing that was not supported, and how many schedules ended there.
    pub unsupported: Option<(String, u64)>,
    /// Whether all sets of at most one delay were run.
    pub single_delays_done: bool,
    /// It was cancelled: the last generation is not complete.
    pub was_cancelled: bool,
    /// The caller stopped it before the schedules were used up.
    pub was_stopped: bool,
    pub baseline_steps: u64,
}

/// Explores. `progress` is told after each generation; false from it ends the campaign.
pub fn explore(
    options: &Options,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Report, StartFailure> {
    let mut session = Session::start(&options.inputs, &options.snapshot_at)?;
    let rules = first_rules(options);
    let mut scheduler = scheduler(Algorithm::Default, 0, &Profile::default(), &[]);
    let mut baseline = run_schedule(&mut session, &mut *scheduler, rules, true);
    baseline.is_default = true;
    let rules = final_rules(options, rules, &baseline);
    let mut campaign = Campaign::new(options, rules);
    campaign.merge(&mut [judge_again(baseline, rules)]);
    campaign.run_generations(progress);
    Ok(campaign.finish(&mut session))
}

fn first_rules(options: &Options) -> Rules {
    Rules {
        limits: Limits {
            patience: PATIENCE,
            steps: options.steps_max.unwrap_or(2_000_000_000),
        },
        expected_exit: options.expected_exit.unwrap_or(-1),
    }
}

/// The default order says which exit status is right and how long a run takes.
fn final_rules(options: &Options, first: Rules, baseline: &Outcome) -> Rules {
    let status = match baseline.drive.end {
        End::Exited { status } if status & 0x7F == 0 => status >> 8 & 0xFF,
        _ => 0,
    };
    let steps = baseline.drive.steps.saturating_mul(HANG_FACTOR);
    Rules {
        limits: Limits {
            steps: options.steps_max.unwrap_or(steps.max(HANG_STEPS_MIN)),
            ..first.limits
        },
        expected_exit: options.expected_exit.unwrap_or(status),
    }
}

/// The first run was judged before the right exit status was known.
fn judge_again(mut baseline: Outcome, rules: Rules) -> Outcome {
    if let End::Exited { status } = baseline.drive.end
        && status & 0x7F == 0
        && status >> 8 & 0xFF == rules.expected_exit
    {
        baseline.failure = None;
    }
    baseline
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
    /// Points changed in the last generation.
    is_learning: bool,
    /// Number of the next set of delays.
    delays: u64,
    seen: BTreeSet<u64>,
    /// First failing outcome of each kind, by fingerprint.
    failures: BTreeMap<String, Outcome>,
    order: Vec<String>,
    races: BTreeMap<(u64, u64), (Race, Outcome)>,
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
        let workers = self.options.workers.max(1);
        std::thread::scope(|scope| {
            let (outcomes_in, outcomes) = mpsc::channel();
            let mut queues = Vec::new();
            for _ in 0..workers {
                let (queue, jobs) = mpsc::channel::<Arc<Generation>>();
                let outcomes_in = outcomes_in.clone();
                let options = self.options;
                scope.spawn(move || work(options, &jobs, &outcomes_in));
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
                let received = outcomes.iter().take(generation.jobs.len());
                let mut done: Vec<Outcome> = received.flatten().collect();
                self.report.was_cancelled = self.options.is_cancelled();
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
                let has_enough = self.options.until_found && !self.order.is_empty();
                if has_enough || self.report.was_cancelled {
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
            observes: self.options.races
                || generation == 0
                || index.is_multiple_of(SAMPLE)
                || (self.is_learning && index.is_multiple_of(4)),
        }
    }

    /// Takes what the runs of a generation taught, in the order of their numbers.
    fn merge(&mut self, outcomes: &mut [Outcome]) {
        let points_before = self.points.len();
        for outcome in outcomes {
            self.report.schedules += 1;
            self.report.steps += outcome.drive.steps;
            self.report.contexts = self.report.contexts.max(outcome.contexts);
            self.report.decisions = self.report.decisions.max(outcome.drive.decisions);
            self.seen.insert(identity(outcome));
            if let End::Unsupported(text) = &outcome.drive.end {
                let entry = self.report.unsupported.get_or_insert((text.clone(), 0));
                entry.1 += 1;
            }
            if let Some(failure) = &outcome.failure {
                self.report.failing += 1;
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
        } else if self.delays >= self.profile.decisions {
            self.report.single_delays_done = true;
        }
    }

    fn learn(&mut self, outcome: &Outcome) {
        if outcome.is_default {
            self.report.baseline_steps = outcome.drive.steps;
            self.profile = Profile::default();
            self.profile
                .note(outcome.drive.decisions, outcome.stops.clone());
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
            let pair = (
                race.first.pc.min(race.second.pc),
                race.first.pc.max(race.second.pc),
            );
            self.races
                .entry(pair)
                .or_insert_with(|| (*race, outcome.clone()));
        }
    }

    fn finish(mut self, session: &mut Session) -> Report {
        self.report.distinct = to_u64(self.seen.len());
        self.report.points = to_u64(self.points.len());
        for fingerprint in self.order.iter().take(self.options.findings_max) {
            let outcome = &self.failures[fingerprint];
            let explained = explain::finding(session, outcome, self.rules, self.options);
            self.report.findings.push(explained);
        }
        let explained = self.order.len().min(self.options.findings_max);
        self.report.unexplained = to_u64(self.order.len() - explained);
        self.report.races = explain::races(session, &self.races, self.rules);
        self.report
    }
}

/// Two runs with the same deviations are the same run.
fn identity(outcome: &Outcome) -> u64 {
    let mut digest = Digest::default();
    for deviation in &outcome.drive.schedule.deviations {
        for element in deviation.context.iter().chain(&deviation.to) {
            digest.word(u64::from(*element));
        }
        digest.word(deviation.at.steps);
        digest.word(u64::from(deviation.at.phase));
    }
    digest.value()
}

/// A worker: its own world, job after job. A job that is not done any more, because the campaign was cancelled,
/// has no outcome.
fn work(
    options: &Options,
    generations: &mpsc::Receiver<Arc<Generation>>,
    outcomes: &mpsc::Sender<Option<Outcome>>,
) {
    // The first world started, and starting is deterministic.
    let Ok(mut session) = Session::start(&options.inputs, &options.snapshot_at) else {
        return;
    };
    let mut points = 0;
    for generation in generations {
        if points != generation.points.len() {
            points = generation.points.len();
            generation
                .points
                .iter()
                .for_each(|pc| session.world.add_point(*pc));
        }
        loop {
            let taken = generation.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = generation.jobs.get(taken) else {
                break;
            };
            if options.is_cancelled() {
                if outcomes.send(None).is_err() {
                    return;
                }
                continue;
            }
            let mut scheduler = scheduler(
                job.algorithm,
                job.seed,
                &generation.profile,
                &generation.groups,
            );
            let mut outcome = run_schedule(
                &mut session,
                &mut *scheduler,
                generation.rules,
                job.observes,
            );
            outcome.index = job.index;
            outcome.is_default = job.algorithm == Algorithm::Default;
            if outcomes.send(Some(outcome)).is_err() {
                return;
            }
        }
    }
}

/// Workers that make sense for a budget: a worker's start costs as much as some schedules.
pub fn useful_workers(available: usize, schedules: u64) -> usize {
    available.min(to_usize(schedules.div_ceil(16))).max(1)
}
