//! The campaign: generations of schedules until something fails or the budget is used up, then the explanation of
//! what failed. The same for everything that is a [`Subject`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use raddle_detect::Covered;
use raddle_sched::{End, Profile, ReadsFromPair};
use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;
use raddle_world::Site;

use crate::algorithm::{Algorithm, Material, scheduler};
use crate::cancel::Urgency;
use crate::coverage::NamedCoverage;
use crate::feedback::{Feedback, Pool};
use crate::findings::Findings;
use crate::generation::{Crew, Director, Generation, run_generations, with_threads};
use crate::learning::Learning;
use crate::options::{Listener, News, Options, Phase, Progress, Report};
use crate::outcome::{Job, Outcome, Shared};
use crate::spent::Stopwatch;
use crate::subject::{
    Habits, OutcomeOf, Rules as _, RunOf, Sighting, Stage, Subject, Tally, Watch,
};
use crate::worker::Explorer;

type StageOf<S> = <S as Subject>::Stage;
type RecordingOf<S> = <StageOf<S> as Stage>::Recording;
type RulesOf<S> = <StageOf<S> as Stage>::Rules;
/// The report on a subject.
pub type ReportOf<S> = Report<RecordingOf<S>, <StageOf<S> as Stage>::Tally>;

/// A subject that stands where its schedules begin, with its default order known.
#[derive(Debug)]
pub struct Begun<S: Subject> {
    pub stage: StageOf<S>,
    pub rules: RulesOf<S>,
    baseline: OutcomeOf<StageOf<S>>,
}

/// Brings a subject to the place where its schedules begin, and runs it once without interruptions; `None` if that
/// was broken off.
pub fn begin<S: Subject>(
    subject: &S,
    news: &mut Listener<'_, RecordingOf<S>>,
) -> Result<Option<Begun<S>>, S::StartFailure> {
    news(News::Progress(Progress::default()));
    let mut stage = subject.start()?;
    news(News::Progress(Progress {
        phase: Phase::Alone,
        ..Progress::default()
    }));
    let first = subject.first_rules();
    let mut baseline = run_alone(&mut stage, subject.options(), &first);
    if baseline.drive.end == End::Abandoned {
        return Ok(None);
    }
    let rules = subject.rules(&mut stage, &baseline)?;
    // Schedules say how they differ from the default order, and that depends on patience: the run that all others are
    // compared with, and whose failure is recorded, must be one under the rules of the others.
    if rules.limits().patience != first.limits().patience {
        baseline = run_alone(&mut stage, subject.options(), &rules);
        if baseline.drive.end == End::Abandoned {
            return Ok(None);
        }
    }
    let digests = baseline.failure.is_some().then(|| stage.digests());
    let mut baseline = Outcome::new(0, baseline);
    baseline.digests = digests;
    Ok(Some(Begun {
        stage,
        rules,
        baseline,
    }))
}

/// The default order.
fn run_alone<S: Stage>(stage: &mut S, options: &Options, rules: &S::Rules) -> RunOf<S> {
    let material = Material {
        profile: &Profile::default(),
        groups: &[],
        wishes: &Vec::new(),
        focus: &[],
        is_timed: false,
        turn_wait: None,
        is_stepwise: options.every_instruction,
        faults: &[],
    };
    let mut scheduler = scheduler(Algorithm::Default, 0, material);
    stage.run(&mut *scheduler, rules, Watch::EVERYTHING)
}

impl<S: Subject> Begun<S> {
    /// A report that knows the default order only.
    pub fn report(&self) -> ReportOf<S> {
        Report {
            baseline_steps: self.baseline.steps,
            timed_stops: self.baseline.profile.as_ref().map_or(0, |p| p.timed_stops),
            ..Report::default()
        }
    }

    /// Contexts of the default order.
    pub fn contexts(&self) -> u64 {
        self.baseline.contexts
    }

    /// Where contexts met in the default order.
    pub fn points(&self) -> Vec<Site> {
        let learned = self.baseline.learned.as_ref();
        let meetings = learned.into_iter().flat_map(|learned| &learned.meetings);
        meetings.flatten().copied().collect()
    }

    /// What failed in the default order.
    pub fn findings(&self) -> Findings<StageOf<S>> {
        let mut findings = Findings::default();
        findings.note(&self.baseline);
        findings
    }
}

/// Explores a subject. `news` is told of each phase, of each generation, and of each new failure.
///
/// # Errors
/// If it cannot be brought to the place where its schedules begin.
pub fn explore<S: Subject>(
    subject: &S,
    news: &mut Listener<'_, RecordingOf<S>>,
) -> Result<ReportOf<S>, S::StartFailure> {
    let Some(begun) = begin(subject, news)? else {
        let mut report = Report::default();
        report.note_end(&subject.options().cancel);
        return Ok(report);
    };
    sample(subject, begun, news)
}

/// Explores schedules at random, and some systematically, from where a subject stands.
///
/// # Errors
/// If there is nothing where the user wants decisions to be made.
pub fn sample<S: Subject>(
    subject: &S,
    begun: Begun<S>,
    news: &mut Listener<'_, RecordingOf<S>>,
) -> Result<ReportOf<S>, S::StartFailure> {
    let workers = subject.options().workers;
    let mut sampling = Sampling::begin(subject, begun, news)?;
    with_threads(workers, &|| Explorer::start(subject), |crew| {
        sampling.go_on(crew, news);
    });
    Ok(sampling.end(news))
}

/// The same with a crew of the caller's.
///
/// # Errors
/// If there is nothing where the user wants decisions to be made.
pub fn sample_with<S: Subject>(
    subject: &S,
    begun: Begun<S>,
    crew: &mut dyn Crew<Explorer<S>>,
    news: &mut Listener<'_, RecordingOf<S>>,
) -> Result<ReportOf<S>, S::StartFailure> {
    let mut sampling = Sampling::begin(subject, begun, news)?;
    sampling.go_on(crew, news);
    Ok(sampling.end(news))
}

/// A campaign with its stage, which stands still while the crew works.
struct Sampling<'a, S: Subject> {
    campaign: Campaign<'a, S::Stage>,
    stage: S::Stage,
}

impl<'a, S: Subject> Sampling<'a, S> {
    fn begin(
        subject: &'a S,
        begun: Begun<S>,
        news: &mut Listener<'_, RecordingOf<S>>,
    ) -> Result<Self, S::StartFailure> {
        let Begun {
            mut stage,
            rules,
            baseline,
        } = begun;
        let mut campaign = Campaign {
            options: subject.options(),
            habits: subject.habits(),
            focus: subject.focus(&mut stage)?,
            rules,
            report: Report::default(),
            learning: Learning::default(),
            feedback: Feedback::default(),
            seen: BTreeSet::new(),
            classes: BTreeSet::new(),
            pairs: BTreeSet::new(),
            interrupted: BTreeSet::new(),
            findings: Findings::default(),
            races: BTreeMap::new(),
            covered: Covered::default(),
            generations: 0,
        };
        let alone = Job::alone(subject.options().coverage);
        campaign.merge(&[alone], vec![baseline]);
        let mut sampling = Self { campaign, stage };
        sampling.reporting(news).keep_new();
        Ok(sampling)
    }

    fn reporting<'s, 'n>(
        &'s mut self,
        news: &'s mut Listener<'n, RecordingOf<S>>,
    ) -> Reporting<'s, 'a, 'n, S> {
        Reporting {
            campaign: &mut self.campaign,
            stage: &mut self.stage,
            planned: Vec::new(),
            news,
        }
    }

    fn go_on(&mut self, crew: &mut dyn Crew<Explorer<S>>, news: &mut Listener<'_, RecordingOf<S>>) {
        run_generations(crew, &mut self.reporting(news));
    }

    fn end(mut self, news: &mut Listener<'_, RecordingOf<S>>) -> ReportOf<S> {
        let campaign = &mut self.campaign;
        campaign.report.note_end(&campaign.options.cancel);
        self.campaign.finish(&mut self.stage, news)
    }
}

/// A race, and the run that shows it best.
type Witnessed<S> = (<S as Stage>::Race, OutcomeOf<S>);

struct Campaign<'a, S: Stage> {
    options: &'a Options,
    habits: Habits,
    rules: S::Rules,
    report: Report<S::Recording, S::Tally>,
    learning: Learning,
    feedback: Feedback,
    focus: Vec<Range<Site>>,
    seen: BTreeSet<u64>,
    classes: BTreeSet<u64>,
    pairs: BTreeSet<ReadsFromPair>,
    /// Where some context was interrupted.
    interrupted: BTreeSet<Site>,
    findings: Findings<S>,
    races: BTreeMap<(Site, Site), Witnessed<S>>,
    covered: Covered,
    /// Generations that were taken in.
    generations: u64,
}

impl<S: Stage> Campaign<'_, S> {
    fn generation(&mut self, number: usize, size: u64) -> Generation<Shared<S::Rules>, Job> {
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
            is_stepwise: self.options.every_instruction,
            faults: self.options.faults.clone(),
            rules: self.rules.clone(),
        };
        Generation { shared, jobs }
    }

    fn job(&mut self, index: u64, is_first: bool, generation: usize, pool: &Pool) -> Job {
        let seed = Prng::derive_seed(self.options.seed, index);
        let is_learning = self.learning.is_going_on();
        let wanted = self.options.algorithm;
        let portfolio = self.habits.portfolio;
        let algorithm = self.learning.algorithm(index, is_first, wanted, portfolio);
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
            may_jump: self.options.varies_time,
            is_timed: has_timers && Prng::new(Prng::derive_seed(seed, 4)).chance(1, 2),
            covers: self.options.coverage,
            observes: self.options.races
                || self.options.coverage
                || generation == 0
                || index.is_multiple_of(self.habits.sample)
                || (is_learning && index.is_multiple_of(self.habits.learning_sample)),
        }
    }

    /// Takes what the runs of a generation taught, in the order of their numbers.
    fn merge(&mut self, jobs: &[Job], outcomes: Vec<OutcomeOf<S>>) {
        self.generations += 1;
        for (job, outcome) in jobs.iter().zip(outcomes) {
            self.report.schedules += 1;
            self.report.steps += outcome.steps;
            self.report.spent += outcome.spent;
            self.report.tally.add(&outcome.tally);
            self.report.contexts = self.report.contexts.max(outcome.contexts);
            self.report.decisions = self.report.decisions.max(outcome.decisions);
            self.seen.insert(outcome.schedule_digest);
            self.classes.insert(outcome.class);
            self.pairs.extend(&outcome.pairs);
            self.interrupted.extend(&outcome.interrupted);
            // What other algorithms stumble on would only hide what is new to this one.
            if job.algorithm == Algorithm::ReadsFrom {
                self.feedback.note(&outcome.pairs, &job.wishes);
            }
            // A world that failed may end in ways that are not supported: a kernel that panicked does.
            if let (Some(what), None) = (&outcome.unsupported, &outcome.failure) {
                let entry = self.report.unsupported.get_or_insert((what.clone(), 0));
                entry.1 += 1;
            }
            if outcome.failure.is_some() {
                self.report.failing += 1;
                self.report.first_failing.get_or_insert(outcome.index);
            }
            self.findings.note(&outcome);
            self.learn(outcome);
        }
        self.learning.end_generation();
        let points = self.learning.points();
        let interrupted = points.iter().filter(|site| self.interrupted.contains(site));
        self.report.interrupted = to_u64(interrupted.count());
        self.report.single_delays_done |= self.learning.single_delays_done();
    }

    /// Takes what a generation that was broken off has found, and nothing else: which of its schedules came to an
    /// end depends on the machine.
    fn drop_generation(&mut self, planned: usize, outcomes: &[OutcomeOf<S>]) {
        self.report.dropped = to_u64(planned);
        outcomes
            .iter()
            .for_each(|outcome| self.findings.note(outcome));
    }

    fn learn(&mut self, mut outcome: OutcomeOf<S>) {
        if let Some(profile) = outcome.profile.take() {
            self.report.baseline_steps = outcome.steps;
            self.report.timed_stops = profile.timed_stops;
            self.learning.profile = profile;
        }
        let Some(learned) = outcome.learned.take() else {
            return;
        };
        self.report.shared_places = self.report.shared_places.max(learned.shared_places);
        if let Some(covered) = learned.covered {
            self.covered.absorb(covered);
        }
        for group in &learned.meetings {
            self.learning.meet(group);
            self.feedback.learn(group, &learned.writers);
        }
        for race in learned.races {
            match self.races.get_mut(&race.pair()) {
                None => {
                    self.races.insert(race.pair(), (race, outcome.clone()));
                }
                Some((known, witness)) => {
                    if known.add(&race) {
                        witness.clone_from(&outcome);
                    }
                }
            }
        }
    }

    /// How far it is, with some schedules more that nothing was learned from yet.
    fn progress(&self, phase: Phase, more: u64) -> Progress {
        Progress {
            phase,
            generations: self.generations,
            schedules: self.report.schedules + more,
            distinct: to_u64(self.seen.len()),
            failures: to_u64(self.findings.len()),
            first_failing: self.report.first_failing,
            points: to_u64(self.learning.points_len()),
            interrupted: self.report.interrupted,
            classes: to_u64(self.classes.len()),
        }
    }

    fn finish(
        mut self,
        stage: &mut S,
        news: &mut dyn FnMut(News<'_, S::Recording>),
    ) -> Report<S::Recording, S::Tally> {
        self.report.distinct = to_u64(self.seen.len());
        self.report.points = to_u64(self.learning.points_len());
        self.report.classes = to_u64(self.classes.len());
        self.report.pairs = to_u64(self.pairs.len());
        // Where an order can be cut when it is made small.
        stage.add_points(&self.learning.points());
        let progress = self.progress(Phase::Exploring, 0);
        self.report.class_digests = std::mem::take(&mut self.classes);
        self.findings.explain(
            stage,
            &self.rules,
            (self.options, &self.habits.effort),
            &mut self.report,
            &mut |number, of| {
                news(News::Progress(Progress {
                    phase: Phase::Explaining { number, of },
                    ..progress
                }));
            },
        );
        if self.options.coverage {
            self.report.coverage = Some(NamedCoverage::of(stage, self.covered));
        }
        let races: Vec<Witnessed<S>> = self.races.into_values().collect();
        self.report.races = stage.explain_races(&races, &self.rules);
        self.report
    }
}

/// A campaign that tells how far it is.
struct Reporting<'a, 'b, 'n, S: Subject> {
    campaign: &'a mut Campaign<'b, S::Stage>,
    /// Stands still while the workers run.
    stage: &'a mut S::Stage,
    /// Schedules of the present generation.
    planned: Vec<Job>,
    news: &'a mut Listener<'n, RecordingOf<S>>,
}

impl<S: Subject> Reporting<'_, '_, '_, S> {
    fn keep_new(&mut self) {
        let Campaign {
            options,
            rules,
            findings,
            ..
        } = &mut *self.campaign;
        findings.keep_new(self.stage, rules, options, self.news);
    }

    fn tell(&mut self, begun: usize) {
        let progress = self.campaign.progress(Phase::Exploring, to_u64(begun));
        (self.news)(News::Progress(progress));
    }
}

impl<S: Subject> Director<Explorer<S>> for Reporting<'_, '_, '_, S> {
    fn plan(&mut self, number: usize, size: u64) -> Option<Generation<Shared<RulesOf<S>>, Job>> {
        let campaign = &mut *self.campaign;
        let is_wanted = campaign.report.schedules < campaign.options.schedules;
        let mut stopwatch = Stopwatch::start(campaign.options.clock);
        let generation = is_wanted.then(|| campaign.generation(number, size));
        campaign.report.spent.plan += stopwatch.lap();
        self.planned = generation
            .as_ref()
            .map_or_else(Vec::new, |next| next.jobs.clone());
        generation
    }

    fn watch(&mut self, begun: usize) {
        self.tell(begun);
    }

    fn take(&mut self, outcomes: Vec<OutcomeOf<S::Stage>>) -> bool {
        let campaign = &mut *self.campaign;
        let mut stopwatch = Stopwatch::start(campaign.options.clock);
        let is_complete = outcomes.len() == self.planned.len();
        if is_complete {
            campaign.merge(&self.planned, outcomes);
        } else {
            campaign.drop_generation(self.planned.len(), &outcomes);
        }
        campaign.report.spent.plan += stopwatch.lap();
        self.keep_new();
        self.tell(0);
        let campaign = &*self.campaign;
        let has_enough = campaign.options.until_found && !campaign.findings.is_empty();
        is_complete && !has_enough && !campaign.options.cancel.is_asked(Urgency::TimeIsUp)
    }
}
