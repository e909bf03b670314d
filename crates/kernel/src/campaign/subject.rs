//! What a campaign asks of a test of a kernel.

use std::ops::Range;

use raddle_campaign::focus::merged;
use raddle_campaign::{
    Budget, Digests, Effort, Explained, Focus, Found, Habits, Leave, News, Report, Sighting,
    Smallest, Stage, Subject, Symptom, Tally, Watch,
};
use raddle_sched::Scheduler;
use raddle_trace::{Limits, Observer};
use raddle_world::{Site, World};

use super::explain::Explainer;
use super::failure::Failure;
use super::kept;
use super::names::Names;
use super::portfolio::PORTFOLIO;
use super::run::{LivenessRule, Outcome, RaceMode, Rules, Run, run_observed, run_schedule};
use super::session::{OUT_OF_MEMORY, Session, StartFailure, Target};
use super::ski_race::RacePair;
use crate::recording::KernelRecording;
use crate::world::{Heuristics, KernelWorld};

/// Steps in a row before the default order goes on to the next processor (SKI's h4).
pub const PATIENCE: u64 = 500_000;
/// Instructions between two pauses of a processor that waits (SKI's h2).
pub const PAUSE_WINDOW: u64 = 30;
/// Instructions of a loop without PAUSE that waits (SKI's h3).
pub const LOOP_WINDOW: u64 = 20;
/// Steps of the default order at most.
const FIRST_STEPS: u64 = 2_000_000_000;
/// Steps of a schedule at most, if the default order took fewer.
const STEPS_MIN: u64 = 50_000_000;
/// How much longer than the default order a schedule may take.
const STEPS_FACTOR: u64 = 60;

/// How kernels are explored.
pub const HABITS: Habits = Habits {
    portfolio: &PORTFOLIO,
    sample: 64,
    learning_sample: 8,
    worker_schedules: 200,
    effort: Effort {
        shrink: Budget {
            replays: 1_000,
            steps: 1_000_000_000,
        },
        below: Budget {
            replays: 4_000,
            steps: 500_000_000,
        },
        wander: Budget {
            replays: 4_000,
            steps: 300_000_000,
        },
        stop_steps: 500,
    },
};

/// A test to explore.
#[derive(Debug, Clone)]
pub struct KernelTest<'a> {
    pub options: raddle_campaign::Options,
    pub target: &'a Target,
    /// How data races are looked for, if they are.
    pub races: Option<RaceMode>,
    pub patience: u64,
    pub pause_window: u64,
    pub loop_window: u64,
    pub liveness: LivenessRule,
    /// Explore all interleavings instead of sampling them.
    pub exhaustive: bool,
    /// Whether the scheduler decides when an interrupt is taken.
    pub interrupts: bool,
    /// Decide only inside these functions and lines; empty for everywhere.
    pub focus: Vec<Focus>,
}

impl<'a> KernelTest<'a> {
    /// A test with raddle's own judgement of who waits, in which any place may be decided.
    pub fn new(target: &'a Target, options: raddle_campaign::Options) -> Self {
        Self {
            options,
            target,
            races: None,
            patience: PATIENCE,
            pause_window: PAUSE_WINDOW,
            loop_window: LOOP_WINDOW,
            liveness: LivenessRule::default(),
            exhaustive: false,
            interrupts: true,
            focus: Vec::new(),
        }
    }
}

/// What a campaign on a kernel found out.
#[derive(Debug, Clone, Default)]
pub struct KernelReport {
    pub campaign: Report<KernelRecording, Heuristics>,
    /// Threads of the kernel that could not be moved away from the test's processors.
    pub fixed_threads: Vec<String>,
}

/// Explores. `news` is told of each phase, of each generation and of each new failure.
///
/// # Errors
/// If the test cannot be brought to its start line, or does not come to its end by itself.
pub fn explore(
    test: &KernelTest<'_>,
    news: &mut dyn FnMut(News<'_, KernelRecording>),
) -> Result<KernelReport, StartFailure> {
    let Some(begun) = raddle_campaign::begin(test, news)? else {
        let mut report = KernelReport::default();
        report.campaign.note_end(&test.options.cancel);
        return Ok(report);
    };
    Ok(KernelReport {
        fixed_threads: begun.stage.world.info().fixed_threads.clone(),
        campaign: if test.exhaustive {
            raddle_campaign::exhaustive::search(test, begun, news)?
        } else {
            raddle_campaign::sample(test, begun, news)?
        },
    })
}

impl<'a> Subject for KernelTest<'a> {
    type Stage = Session<'a>;
    type StartFailure = StartFailure;

    fn habits(&self) -> Habits {
        HABITS
    }

    fn options(&self) -> &raddle_campaign::Options {
        &self.options
    }

    fn start(&self) -> Result<Session<'a>, StartFailure> {
        let mut session = Session::start(self.target)?;
        session.leave = Leave::to_explore(&self.options.cancel);
        session.clock = self.options.clock;
        Ok(session)
    }

    fn first_rules(&self) -> Rules {
        Rules {
            patience: self.patience,
            steps: FIRST_STEPS,
            races: self.races,
            interrupts: self.interrupts,
            pause_window: self.pause_window,
            loop_window: self.loop_window,
            liveness: self.liveness,
        }
    }

    fn rules(&self, session: &mut Session<'a>, baseline: &Run) -> Result<Rules, StartFailure> {
        if let Some(Failure::Stuck { statements }) = &baseline.failure {
            return Err(never_ends(self.target, statements));
        }
        let said = session.world.console().test_text();
        if said.contains(OUT_OF_MEMORY) {
            let test = self.target.test.as_ref();
            let path = test.map_or("the program", |test| test.path.as_str());
            return Err(StartFailure::OutOfMemory(path.to_owned()));
        }
        let steps = baseline.drive.steps.saturating_mul(STEPS_FACTOR);
        Ok(Rules {
            steps: steps.max(STEPS_MIN),
            ..self.first_rules()
        })
    }

    fn focus(&self, session: &mut Session<'a>) -> Result<Vec<Range<Site>>, StartFailure> {
        if self.focus.is_empty() {
            return Ok(Vec::new());
        }
        session.restore();
        let names = Names::of(session);
        let code = self.focus.iter().flat_map(|place| names.code_of(place));
        let code = merged(code.collect());
        if code.is_empty() {
            let places: Vec<String> = self.focus.iter().take(5).map(Focus::to_string).collect();
            return Err(StartFailure::NoFocus(places.join(", ")));
        }
        let sites = |range: Range<u64>| Site::first(range.start)..Site::first(range.end);
        Ok(code.into_iter().map(sites).collect())
    }
}

impl Stage for Session<'_> {
    type World = KernelWorld;
    type Rules = Rules;
    type Symptom = Failure;
    type Race = RacePair;
    type Tally = Heuristics;
    type Recording = KernelRecording;

    fn world(&self) -> &KernelWorld {
        &self.world
    }

    fn leave(&self) -> &Leave {
        &self.leave
    }

    fn set_leave(&mut self, leave: Leave) {
        self.leave = leave;
    }

    fn add_points(&mut self, points: &[Site]) {
        self.points = points.to_vec();
        self.world.set_points(points);
    }

    fn run(&mut self, scheduler: &mut dyn Scheduler, rules: &Rules, watch: Watch) -> Run {
        run_schedule(self, scheduler, *rules, watch)
    }

    fn observe(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Rules,
        observers: &mut [&mut dyn Observer],
    ) -> Run {
        run_observed(self, scheduler, *rules, observers)
    }

    fn digests(&mut self) -> Digests {
        Digests {
            run: self.world.run_digest(),
            state: self.world.state_digest(),
        }
    }

    fn describe(&mut self, site: Site) -> String {
        Names::of(self).show(site.pc())
    }

    fn as_found(&mut self, failing: &Outcome, rules: &Rules) -> Found<KernelRecording> {
        kept::as_found(self, failing, *rules)
    }

    fn explain(
        &mut self,
        failing: &Outcome,
        smallest: &Smallest<Run>,
        rules: &Rules,
    ) -> Option<Explained<KernelRecording>> {
        Explainer::new(self).found(failing, smallest, *rules)
    }

    fn explain_races(
        &mut self,
        races: &[(RacePair, Outcome)],
        rules: &Rules,
    ) -> Vec<Found<Option<KernelRecording>>> {
        Explainer::new(self).races(races, *rules)
    }
}

impl raddle_campaign::Rules for Rules {
    fn limits(&self) -> Limits {
        Self::limits(*self)
    }

    fn with_limits(self, limits: Limits) -> Self {
        Self {
            patience: limits.patience,
            steps: limits.steps,
            ..self
        }
    }
}

impl Symptom for Failure {
    fn fingerprint(&self) -> String {
        Self::fingerprint(self)
    }

    /// Guests are bounded by their own time: a thread that waits for ever is told by name.
    fn is_hang(&self) -> bool {
        false
    }

    /// A statement of the test, or a function of the kernel, is always named.
    fn is_vague(&self) -> bool {
        false
    }
}

impl Sighting for RacePair {
    fn pair(&self) -> (Site, Site) {
        let (low, high) = self.key();
        (Site::first(low), Site::first(high))
    }

    fn add(&mut self, later: &Self) -> bool {
        let is_better = self.is_handed_over() && !later.is_handed_over();
        self.note(later);
        is_better
    }
}

impl Tally for Heuristics {
    fn add(&mut self, other: &Self) {
        self.add_schedule(other);
    }
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
