//! One schedule, from the start line to its end and to a judgement.

use raddle_campaign::{Learned, NoteTransitions, Noted, Spent, Stopwatch, Watch};
use raddle_detect::{Communication, Races};
use raddle_sched::dpor::SharedLog;
use raddle_sched::{Drive, End, Passing, Policy, Reason, Scheduler, View, Wrap};
use raddle_stdx::width::to_u64;
use raddle_trace::{Facts, Limits, Observer};
use raddle_world::{ContextId, Event, EventKind, Site, World};
use serde::{Deserialize, Serialize};

use super::allowed::Eligible;
use super::failure::Failure;
use super::judge::{CallMark, Gave};
use super::race_rules::LockCode;
use super::session::{Session, Target};
use super::ski_race::{RacePair, SkiRaces};
use crate::world::{Heuristic, Heuristics, KERNEL_HALF, KernelWorld, SyncCalls};

/// How data races are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceMode {
    /// Conflicting accesses that lie close together, whatever synchronisation there is (SKI).
    Close,
    /// Conflicting accesses that nothing orders.
    HappensBefore,
}

/// How it is known that a processor makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LivenessRule {
    /// It is tried out: only a loop that cannot end without another one's write is set aside.
    #[default]
    Rehearsed,
    /// SKI's heuristics, for comparison.
    Ski,
}

/// How to run and to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Steps of a processor in a row before the default order goes on to the next.
    pub patience: u64,
    /// Steps of a schedule at most.
    pub steps: u64,
    pub races: Option<RaceMode>,
    /// Whether interrupts are contexts of their own, or taken as soon as a processor admits them.
    pub interrupts: bool,
    /// Two pauses of a processor within so many instructions mean that it waits.
    pub pause_window: u64,
    /// Instructions of a loop without PAUSE that means the same at most.
    pub loop_window: u64,
    #[serde(default)]
    pub liveness: LivenessRule,
}

impl Rules {
    /// Tells a world what depends on them.
    pub(super) fn apply(self, world: &mut KernelWorld) {
        world.schedule_interrupts(self.interrupts);
        world.set_pause_window(self.pause_window);
        world.set_long_pause_loops(self.liveness == LivenessRule::Rehearsed);
    }

    /// The windows of SKI's heuristics, if they are to be used.
    fn ski_windows(self) -> Option<[u64; 3]> {
        let windows = [self.pause_window, self.loop_window, self.patience];
        (self.liveness == LivenessRule::Ski).then_some(windows)
    }

    /// How to drive a world under them.
    pub(super) fn policy(self) -> Policy {
        Policy {
            limits: self.limits(),
            has_classes: false,
            loop_window: Some(self.loop_window),
        }
    }

    pub(super) fn limits(self) -> Limits {
        Limits {
            patience: self.patience,
            steps: self.steps,
        }
    }
}

/// A schedule that was run.
pub(super) type Run = raddle_campaign::Run<Failure, RacePair, Heuristics>;
/// What a worker tells of one.
pub type Outcome = raddle_campaign::Outcome<Failure, RacePair, Heuristics>;

/// Lets a scheduler choose from those who may run, and counts why processors were passed over.
struct Counting<'a> {
    inner: &'a mut dyn Scheduler,
    eligible: Eligible<'a>,
    heuristics: Heuristics,
    /// Whether every point is to be a stop.
    stops_everywhere: bool,
    /// Whether loops and starvation are counted here, and not by the world.
    counts: bool,
}

impl<'a> Wrap for Counting<'a> {
    type Inner = dyn Scheduler + 'a;

    fn inner(&self) -> &Self::Inner {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        self.inner
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        let is_foreseen = !self.stops_everywhere && self.inner.passing().is_some();
        is_foreseen.then_some(self)
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let which = match view.reason {
            _ if !self.counts => None,
            Reason::Spinning => Some(Heuristic::Looping),
            Reason::Starving => Some(Heuristic::Starving),
            _ => None,
        };
        if let Some(which) = which {
            self.heuristics.note(which, view.site.pc());
        }
        self.inner.pick(&self.eligible.narrow(view))
    }
}

/// What the inner scheduler foresees, told by the number of those it may choose from.
impl Passing for Counting<'_> {
    fn passes(&mut self, candidates: usize) -> u64 {
        let eligible = self.eligible.count(candidates);
        let inner = self.inner.passing();
        inner.map_or(0, |inner| inner.passes(eligible))
    }

    fn passed(&mut self, candidates: usize, points: u64) {
        let eligible = self.eligible.count(candidates);
        if let Some(inner) = self.inner.passing() {
            inner.passed(eligible, points);
        }
    }

    fn interest(&mut self) -> &[Site] {
        self.inner.passing().map_or(&[], |inner| inner.interest())
    }
}

/// What looks at the memory accesses of a run.
struct Detectors<'a> {
    communication: Communication,
    facts: Facts,
    ordered: Races,
    close: SkiRaces,
    mode: Option<RaceMode>,
    lock_code: LockCode,
    target: &'a Target,
}

impl Detectors<'_> {
    fn event(&mut self, world: &KernelWorld, event: &Event) {
        self.communication.event(event);
        let Some(mode) = self.mode else {
            return;
        };
        // A race of the test's own program is none of the kernel's.
        if let EventKind::Access(access) | EventKind::Aside(access) = &event.kind
            && access.addr < KERNEL_HALF
        {
            return;
        }
        // A processor's own code and its interrupts never run at the same time.
        let event = Event {
            context: world.processor_context(event.context),
            ..event.clone()
        };
        if mode == RaceMode::Close {
            self.close.event(&event);
            return;
        }
        // What a lock function touches orders, whatever instructions it is made of.
        let (rules, symbols) = (&self.target.race_rules, &self.target.symbols);
        if let EventKind::Access(access) | EventKind::Aside(access) = &event.kind
            && self.lock_code.contains(event.pc(), rules, symbols)
        {
            self.facts.mark_atomic(access);
        }
        self.facts.event(&event);
        self.ordered.event(&event, &self.facts);
    }

    fn learned(self) -> Learned<RacePair> {
        Learned {
            meetings: self.communication.meetings(&mut |_| true),
            writers: self.communication.writers(),
            shared_places: self.communication.shared_places(),
            races: match self.mode {
                Some(RaceMode::HappensBefore) => self.ordered.found().map(RacePair::of).collect(),
                Some(RaceMode::Close) => self.close.found(),
                None => Vec::new(),
            },
            covered: None,
        }
    }
}

/// Runs one schedule.
pub(super) fn run_schedule(
    session: &mut Session<'_>,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    watch: Watch,
) -> Run {
    run_watched(session, scheduler, rules, watch, &mut |_, _| {})
}

/// Runs one schedule and shows its events, with values, to observers. Conditions exclude, since an observer asks for
/// other schedules.
pub(super) fn run_observed(
    session: &mut Session<'_>,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    observers: &mut [&mut dyn Observer],
) -> Run {
    let calls = SyncCalls::new(&session.target.symbols);
    session.world.tell_synchronisation(Some(calls));
    session.world.tell_values(true);
    // To begin or to end telling synchronisation takes the points away.
    session.world.set_points(&session.points);
    let mut facts = Facts::default().with_conditions_that_exclude();
    let watch = Watch::MEMORY;
    let run = run_watched(session, scheduler, rules, watch, &mut |_, events| {
        for event in events {
            facts.event(event);
            for observer in observers.iter_mut() {
                observer.event(event, &facts);
            }
        }
    });
    session.world.tell_synchronisation(None);
    session.world.tell_values(false);
    session.world.set_points(&session.points);
    run
}

/// Runs one schedule and writes down what its transitions touch.
fn run_noted(
    session: &mut Session<'_>,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    log: &SharedLog,
) -> Run {
    session.world.tell_copies(true);
    let watch = Watch::MEMORY;
    let run = run_watched(session, scheduler, rules, watch, &mut |_, events| {
        let mut log = log.borrow_mut();
        let Some(transition) = log.current() else {
            return;
        };
        for event in events {
            if let EventKind::Access(access) = &event.kind {
                for piece in access.pieces() {
                    let granule = piece.location.granule().number();
                    if access.how.writes() {
                        transition.touched.write(granule);
                    } else {
                        transition.touched.read(granule);
                    }
                }
            }
        }
    });
    session.world.tell_copies(false);
    run
}

impl NoteTransitions for Session<'_> {
    fn run_noted(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Rules,
        log: &SharedLog,
    ) -> Noted<Run> {
        let run = run_noted(self, scheduler, *rules, log);
        Noted {
            run,
            bound: self.world.unvaried(),
        }
    }
}

/// What failed in a run, or what the judge has against it.
fn judged(session: &mut Session<'_>, drive: &Drive, marks: &[CallMark]) -> Option<Failure> {
    let failure = Failure::of_run(&mut session.world);
    if failure.is_some() || !matches!(drive.end, End::Exited { .. }) {
        return failure;
    }
    let judge = session.target.judge.as_ref()?;
    let gave = Gave {
        marks,
        results: session.world.results(),
        buffers: session.world.buffers(),
    };
    let verdict = judge.verdict(gave)?;
    Some(Failure::NotSerial(Box::new(verdict)))
}

/// Runs one schedule; `also` sees the events, too.
fn run_watched(
    session: &mut Session<'_>,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    watch: Watch,
    also: &mut dyn FnMut(&KernelWorld, &[Event]),
) -> Run {
    let mut stopwatch = Stopwatch::start(session.clock);
    let mut spent = Spent::default();
    session.restore();
    spent.restore = stopwatch.lap();
    let (pages, instructions) = session.restored();
    // In a schedule that is given, a context that was passed over is a deviation like any other.
    let windows = rules.ski_windows().filter(|_| scheduler.given().is_none());
    let is_judged = windows.is_some();
    session.world.infer_as_ski(windows);
    session.world.set_observe(watch.memory);
    let races = rules.races.filter(|_| watch.memory);
    let has_order = races == Some(RaceMode::HappensBefore);
    session.world.tell_asides(has_order);
    rules.apply(&mut session.world);
    let mut detectors = Detectors {
        communication: Communication::default(),
        facts: Facts::default(),
        ordered: Races::default(),
        close: SkiRaces::default(),
        mode: races,
        lock_code: std::mem::take(&mut session.lock_code),
        target: session.target,
    };
    // A schedule that is given was made under the user's rules, or under none.
    let allowed = session.target.contexts.as_ref();
    let allowed = allowed.filter(|_| scheduler.given().is_none());
    let mut counting = Counting {
        inner: scheduler,
        eligible: Eligible::new(allowed),
        heuristics: Heuristics::default(),
        stops_everywhere: watch.points,
        counts: !is_judged,
    };
    let clock = session.clock;
    // Who reads from whom is known where the run stops at every point, which most schedulers of kernels do not.
    let policy = Policy {
        has_classes: counting.inner.passing().is_none() && counting.inner.given().is_none(),
        ..rules.policy()
    };
    let mut marks = Vec::new();
    let drive = session.drive(&mut counting, policy, &mut |world, events| {
        let mut inside = Stopwatch::start(clock);
        marks.extend(events.iter().filter_map(|event| CallMark::of(world, event)));
        also(world, events);
        for event in events {
            detectors.event(world, event);
        }
        spent.detect += inside.lap();
    });
    let mut heuristics = counting.heuristics;
    heuristics.outside = counting.eligible.outside;
    heuristics.add(&session.world.take_heuristics());
    spent.run = stopwatch.lap().saturating_sub(spent.detect);
    session.world.infer_as_ski(None);
    session.world.set_observe(false);
    session.lock_code = std::mem::take(&mut detectors.lock_code);
    let learned = watch.memory.then(|| detectors.learned());
    // Where it was broken off tells nothing.
    let failure = (drive.end != End::Abandoned)
        .then(|| judged(session, &drive, &marks))
        .flatten();
    spent.detect += stopwatch.lap();
    spent.instructions = session.world.instructions() - instructions;
    spent.pages = pages;
    Run {
        failure,
        profile: watch.points.then(|| drive.profile(&session.world)),
        contexts: to_u64(session.world.contexts().iter().count()),
        drive,
        learned,
        tally: heuristics,
        spent,
    }
}
