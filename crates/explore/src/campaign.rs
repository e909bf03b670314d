//! The campaign on a program: generations of schedules until something fails or the budget is used up, then the
//! explanation of what failed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use raddle_campaign::{
    Algorithm, Cancel, Director, Failures, Generation, Kept, Learning, Leave, Material, Urgency,
    Worker, run_generations, scheduler,
};
use raddle_detect::Race;
use raddle_report::Finding;
use raddle_sched::{AbstractSchedule, End, Profile, ReadsFromPair};
use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_trace::{Checks, Inputs, Limits, Recording};
use raddle_world::{Site, Unsupported};

use crate::exhaustive::{self, Exhaustive};
use crate::explain;
use crate::feedback::{Feedback, Pool};
use crate::judge::{Judge, Rules};
use crate::portfolio::PORTFOLIO;
use crate::schedule_run::{Outcome, run_schedule};
use crate::session::{Focus, Session, StartFailure};
use crate::snapshot::SnapshotAt;
use crate::timing::{Clock, Spent, Stopwatch};

/// Steps in a row before the default order goes on to the next context.
const PATIENCE: u64 = 100_000;
/// One schedule in this many is observed once the set of points is stable.
const SAMPLE: u64 = 32;
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
    /// What ends a run at the moment it goes wrong.
    pub checks: Checks,
    /// Status that counts as right; none for that of the default order.
    pub expected_exit: Option<i32>,
    /// The right standard output and the command that judges it, for the recording; `judge` acts on them.
    pub expected_output: Option<String>,
    pub oracle: Option<String>,
    /// The user's own idea of a right result.
    pub judge: Option<Judge>,
    /// Steps of one schedule at most; none for a multiple of the default order's.
    pub steps_max: Option<u64>,
    /// Different failures to minimise and explain at most.
    pub findings_max: usize,
    /// Explore all interleavings instead of sampling them.
    pub exhaustive: bool,
    /// Whether timers and time-outs may come while others can still run.
    pub varies_time: bool,
    /// Decide only inside these functions and lines; empty for everywhere.
    pub focus: Vec<Focus>,
    /// Whether every instruction is a decision point.
    pub every_instruction: bool,
    /// Asks for an end: schedules under way are dropped.
    pub cancel: Cancel,
    /// Measures where the time of the schedules goes.
    pub clock: Option<Clock>,
}

/// What a campaign is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// The program runs to its snapshot.
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

/// What a campaign tells while it runs.
#[derive(Debug)]
pub enum News<'a> {
    /// At the begin of each phase, and now and then during it.
    Progress(Progress),
    /// A failure of a kind that was not seen before, with the schedule as it ran: to be kept now, since making it
    /// small and explaining it may never come to an end. The report has it again, under the same fingerprint.
    Failing {
        finding: &'a Finding,
        recording: &'a Recording,
    },
}

/// How far a campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub phase: Phase,
    pub schedules: u64,
    pub distinct: u64,
    pub failures: u64,
    /// Communication points, and those at which somebody was interrupted.
    pub points: u64,
    pub interrupted: u64,
    /// Runs that differ in who read whose write.
    pub classes: u64,
}

/// What a campaign found out.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Findings in the order in which they were found, with their recordings.
    pub findings: Vec<(Finding, Recording)>,
    /// Those that are as they were found, because the time for explanations was used up.
    pub as_found: u64,
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
    /// Points at which somebody was interrupted.
    pub interrupted: u64,
    pub shared_places: u64,
    /// Runs that differ in who read whose write.
    pub classes: u64,
    /// Pairs of a write and a read of another context.
    pub pairs: u64,
    pub steps: u64,
    /// Only if there was a clock; without the start and the explanation of findings.
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
    /// Only in exhaustive mode.
    pub exhaustive: Option<Exhaustive>,
}

impl Report {
    /// Takes note of why an end was asked for.
    pub(crate) fn note_end(&mut self, cancel: &Cancel) {
        self.was_cancelled = cancel.is_asked(Urgency::Interrupted);
        self.was_stopped = cancel.is_asked(Urgency::TimeIsUp) && !self.was_cancelled;
    }

    /// Takes a finding: as it was explained, or as it was found if there was no time.
    pub(crate) fn note_finding(
        &mut self,
        explained: Option<(Finding, Recording)>,
        kept: &Kept<(Finding, Recording)>,
    ) {
        self.as_found += u64::from(explained.is_none());
        let finding = explained.unwrap_or_else(|| kept.get(self.findings.len()).clone());
        self.findings.push(finding);
    }
}

/// Explores. `news` is told of each phase, of each generation, and of each new failure.
pub fn explore(options: &Options, news: &mut dyn FnMut(News<'_>)) -> Result<Report, StartFailure> {
    news(News::Progress(Progress::default()));
    let mut session = start(options)?;
    news(News::Progress(Progress {
        phase: Phase::Alone,
        ..Progress::default()
    }));
    let rules = first_rules(options);
    let baseline = run_alone(&mut session, options, &rules);
    if baseline.drive.end == End::Abandoned {
        let mut report = Report::default();
        report.note_end(&options.cancel);
        return Ok(report);
    }
    let rules = final_rules(options, rules, &baseline);
    if options.exhaustive {
        let mut report = Report {
            baseline_steps: baseline.drive.steps,
            timed_stops: baseline.drive.timed_stops,
            ..Report::default()
        };
        exhaustive::search(&mut session, options, &rules, &mut report, news);
        return Ok(report);
    }
    let mut campaign = Campaign::new(options, rules);
    campaign.focus = session.focus(&options.focus)?;
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

fn start(options: &Options) -> Result<Session, StartFailure> {
    let leave = Leave::to_explore(&options.cancel);
    Session::start(&options.inputs, &options.snapshot_at, options.checks, leave)
}

/// The default order.
fn run_alone(session: &mut Session, options: &Options, rules: &Rules) -> Outcome {
    let material = Material {
        profile: &Profile::default(),
        groups: &[],
        wishes: &Vec::new(),
        focus: &[],
        is_timed: false,
        is_stepwise: options.every_instruction,
    };
    let mut scheduler = scheduler(Algorithm::Default, 0, material);
    let mut outcome = run_schedule(session, &mut *scheduler, rules, true);
    outcome.is_default = true;
    outcome.profile = Some(outcome.drive.profile(&session.world));
    if outcome.failure.is_some() {
        outcome.note_digests(&mut session.world);
    }
    outcome
}

fn first_rules(options: &Options) -> Rules {
    Rules {
        limits: Limits {
            patience: PATIENCE,
            steps: options.steps_max.unwrap_or(2_000_000_000),
        },
        expected_exit: options.expected_exit,
        judge: options.judge.clone(),
    }
}

/// The default order says which exit status is right and how long a run takes.
fn final_rules(options: &Options, first: Rules, baseline: &Outcome) -> Rules {
    let status = match baseline.drive.end {
        End::Exited { status } if status & 0x7F == 0 && baseline.failure.is_none() => {
            status >> 8 & 0xFF
        }
        _ => 0,
    };
    let steps = baseline.drive.steps.saturating_mul(HANG_FACTOR);
    Rules {
        limits: Limits {
            steps: options.steps_max.unwrap_or(steps.max(HANG_STEPS_MIN)),
            ..first.limits
        },
        expected_exit: Some(options.expected_exit.unwrap_or(status)),
        judge: first.judge,
    }
}

/// One schedule to run.
#[derive(Debug, Clone)]
struct Job {
    index: u64,
    seed: u64,
    algorithm: Algorithm,
    /// For reads-from guidance.
    wishes: AbstractSchedule,
    is_timed: bool,
    observes: bool,
}

/// What all jobs of a generation share.
#[derive(Debug)]
struct Shared {
    points: Vec<Site>,
    groups: Vec<Vec<Site>>,
    profile: Profile,
    focus: Vec<Range<Site>>,
    rules: Rules,
}

struct Campaign<'a> {
    options: &'a Options,
    rules: Rules,
    report: Report,
    learning: Learning,
    feedback: Feedback,
    focus: Vec<Range<Site>>,
    seen: BTreeSet<u64>,
    classes: BTreeSet<u64>,
    pairs: BTreeSet<ReadsFromPair>,
    /// Where somebody was interrupted.
    interrupted: BTreeSet<Site>,
    failures: Failures<Outcome>,
    kept: Kept<(Finding, Recording)>,
    races: BTreeMap<(Site, Site), (Race, Outcome)>,
}

impl<'a> Campaign<'a> {
    fn new(options: &'a Options, rules: Rules) -> Self {
        Self {
            options,
            rules,
            report: Report::default(),
            learning: Learning::default(),
            feedback: Feedback::default(),
            focus: Vec::new(),
            seen: BTreeSet::new(),
            classes: BTreeSet::new(),
            pairs: BTreeSet::new(),
            interrupted: BTreeSet::new(),
            failures: Failures::default(),
            kept: Kept::default(),
            races: BTreeMap::new(),
        }
    }

    fn generation(&mut self, number: usize, size: u64) -> Generation<Shared, Job> {
        let size = size.min(self.options.schedules - self.report.schedules);
        let first = self.report.schedules;
        let pool = self.feedback.pool();
        let jobs = (first..first + size)
            .map(|index| self.job(index, index == first, number, &pool))
            .collect();
        let shared = Shared {
            points: self.learning.points(),
            groups: self.learning.groups(),
            profile: self.learning.profile.clone(),
            focus: self.focus.clone(),
            rules: self.rules.clone(),
        };
        Generation { shared, jobs }
    }

    fn job(&mut self, index: u64, is_first: bool, generation: usize, pool: &Pool) -> Job {
        let seed = Prng::derive_seed(self.options.seed, index);
        let is_learning = self.learning.is_going_on();
        let wanted = self.options.algorithm;
        let algorithm = self.learning.algorithm(index, is_first, wanted, &PORTFOLIO);
        let wishes = if algorithm == Algorithm::ReadsFrom {
            self.feedback.wishes(seed, pool)
        } else {
            Vec::new()
        };
        let has_timers = self.options.varies_time && self.learning.profile.timed_stops > 0;
        Job {
            index,
            seed,
            algorithm,
            wishes,
            is_timed: has_timers && Prng::new(Prng::derive_seed(seed, 4)).chance(1, 2),
            observes: self.options.races
                || generation == 0
                || index.is_multiple_of(SAMPLE)
                || (is_learning && index.is_multiple_of(4)),
        }
    }

    /// Takes what the runs of a generation taught, in the order of their numbers.
    fn merge(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            self.report.schedules += 1;
            self.report.steps += outcome.drive.steps;
            self.report.spent += outcome.spent;
            self.report.contexts = self.report.contexts.max(outcome.contexts);
            self.report.decisions = self.report.decisions.max(outcome.drive.decisions);
            self.seen.insert(outcome.drive.schedule.digest());
            self.classes.insert(outcome.drive.class);
            self.pairs.extend(&outcome.drive.pairs);
            self.interrupted.extend(&outcome.drive.interrupted);
            // What other algorithms stumble on would only hide what is new to this one.
            if outcome.is_guided {
                self.feedback.note(&outcome.drive.pairs, &outcome.wishes);
            }
            if let End::Unsupported(what) = &outcome.drive.end {
                let entry = self.report.unsupported.get_or_insert((what.clone(), 0));
                entry.1 += 1;
            }
            self.report.failing += u64::from(outcome.failure.is_some());
            self.note_failure(outcome);
            self.learn(outcome);
        }
        self.learning.end_generation();
        let points = self.learning.points();
        let interrupted = points.iter().filter(|site| self.interrupted.contains(site));
        self.report.interrupted = to_u64(interrupted.count());
        self.report.single_delays_done |= self.learning.single_delays_done();
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

    fn learn(&mut self, outcome: &Outcome) {
        if let Some(profile) = &outcome.profile {
            self.report.baseline_steps = outcome.drive.steps;
            self.report.timed_stops = profile.timed_stops;
            self.learning.profile.clone_from(profile);
        }
        let Some(learned) = &outcome.learned else {
            return;
        };
        self.report.shared_places = self.report.shared_places.max(learned.shared_places);
        for group in &learned.meetings {
            self.learning.meet(group);
            self.feedback.learn(group, &learned.writers);
        }
        for race in &learned.races {
            let pair = (
                race.first.site.min(race.second.site),
                race.first.site.max(race.second.site),
            );
            // One that nothing orders at all says more than one that is handed over.
            let is_news = self
                .races
                .get(&pair)
                .is_none_or(|(known, _)| known.handed_over.is_some() && race.handed_over.is_none());
            if is_news {
                self.races.insert(pair, (*race, outcome.clone()));
            }
        }
    }

    /// How far it is, with some schedules more that nothing was learned from yet.
    fn progress(&self, phase: Phase, more: u64) -> Progress {
        Progress {
            phase,
            schedules: self.report.schedules + more,
            distinct: to_u64(self.seen.len()),
            failures: to_u64(self.failures.len()),
            points: to_u64(self.learning.points_len()),
            interrupted: self.report.interrupted,
            classes: to_u64(self.classes.len()),
        }
    }

    fn finish(mut self, session: &mut Session, news: &mut dyn FnMut(News<'_>)) -> Report {
        self.report.distinct = to_u64(self.seen.len());
        self.report.points = to_u64(self.learning.points_len());
        self.report.classes = to_u64(self.classes.len());
        self.report.pairs = to_u64(self.pairs.len());
        // Where an order can be cut when it is made small.
        session.add_points(&self.learning.points());
        let of = to_u64(self.failures.len().min(self.options.findings_max));
        for (number, outcome) in (1..=of).zip(self.failures.iter()) {
            news(News::Progress(
                self.progress(Phase::Explaining { number, of }, 0),
            ));
            session.leave = Leave::to_explain(&self.options.cancel, number);
            let explained = explain::finding(session, outcome, &self.rules, self.options);
            self.report.note_finding(explained, &self.kept);
        }
        self.report.unexplained = to_u64(self.failures.len()) - of;
        session.leave = Leave::to_explain(&self.options.cancel, of + 1);
        self.report.races = explain::races(session, &self.races, &self.rules);
        self.report
    }
}

/// A campaign that tells how far it is.
struct Reporting<'a, 'b> {
    campaign: &'a mut Campaign<'b>,
    /// Stands still while the workers run.
    session: &'a mut Session,
    /// Schedules of the present generation.
    planned: usize,
    news: &'a mut dyn FnMut(News<'_>),
}

impl Reporting<'_, '_> {
    fn keep_new(&mut self) {
        let Campaign {
            options,
            rules,
            failures,
            kept,
            ..
        } = &mut *self.campaign;
        explain::keep_new(kept, failures, self.session, (rules, options), self.news);
    }

    fn tell(&mut self, begun: usize) {
        let progress = self.campaign.progress(Phase::Exploring, to_u64(begun));
        (self.news)(News::Progress(progress));
    }
}

impl Director<Explorer<'_>> for Reporting<'_, '_> {
    fn plan(&mut self, number: usize, size: u64) -> Option<Generation<Shared, Job>> {
        let campaign = &mut *self.campaign;
        let is_wanted = campaign.report.schedules < campaign.options.schedules;
        let mut stopwatch = Stopwatch::start(campaign.options.clock);
        let generation = is_wanted.then(|| campaign.generation(number, size));
        campaign.report.spent.plan += stopwatch.lap();
        self.planned = generation.as_ref().map_or(0, |next| next.jobs.len());
        generation
    }

    fn watch(&mut self, begun: usize) {
        self.tell(begun);
    }

    fn take(&mut self, outcomes: Vec<Outcome>) -> bool {
        let campaign = &mut *self.campaign;
        let mut stopwatch = Stopwatch::start(campaign.options.clock);
        let is_complete = outcomes.len() == self.planned;
        if is_complete {
            campaign.merge(&outcomes);
        } else {
            campaign.drop_generation(self.planned, &outcomes);
        }
        campaign.report.spent.plan += stopwatch.lap();
        self.keep_new();
        self.tell(0);
        let campaign = &*self.campaign;
        let has_enough = campaign.options.until_found && !campaign.failures.is_empty();
        is_complete && !has_enough && !campaign.options.cancel.is_asked(Urgency::TimeIsUp)
    }
}

/// A worker with its own world.
struct Explorer<'a> {
    options: &'a Options,
    session: Session,
    /// Points that the world knows.
    points: usize,
    /// Fingerprints of the failures that this worker has seen.
    seen: BTreeSet<String>,
}

impl<'a> Explorer<'a> {
    /// The first world started, and starting is deterministic.
    fn start(options: &'a Options) -> Option<Self> {
        let mut session = start(options).ok()?;
        session.clock = options.clock;
        Some(Self {
            options,
            session,
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
            self.session.add_points(&shared.points);
        }
    }

    fn run(&mut self, shared: &Shared, job: &Job) -> Option<Outcome> {
        let mut stopwatch = Stopwatch::start(self.options.clock);
        let material = Material {
            profile: &shared.profile,
            groups: &shared.groups,
            wishes: &job.wishes,
            focus: &shared.focus,
            is_timed: job.is_timed,
            is_stepwise: self.options.every_instruction,
        };
        let mut scheduler = scheduler(job.algorithm, job.seed, material);
        let making = stopwatch.lap();
        let mut outcome = run_schedule(
            &mut self.session,
            &mut *scheduler,
            &shared.rules,
            job.observes,
        );
        outcome.spent.plan += making;
        outcome.index = job.index;
        outcome.is_default = job.algorithm == Algorithm::Default;
        outcome.wishes.clone_from(&job.wishes);
        outcome.is_guided = job.algorithm == Algorithm::ReadsFrom;
        if outcome.is_default {
            outcome.profile = Some(outcome.drive.profile(&self.session.world));
        }
        // A worker's jobs come in the order of their numbers: the first schedule of all that fails in some way is also
        // the first of its worker.
        if let Some(failure) = &outcome.failure
            && self.seen.insert(failure.fingerprint())
        {
            outcome.note_digests(&mut self.session.world);
        }
        (outcome.drive.end != End::Abandoned).then_some(outcome)
    }
}

/// Workers that make sense for a budget: a worker's start costs as much as some schedules.
pub fn useful_workers(available: usize, schedules: u64) -> usize {
    available.min(to_usize(schedules.div_ceil(16))).max(1)
}
