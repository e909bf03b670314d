//! The loop: asks the scheduler, runs the chosen context to its next stop, writes down every deviation from
//! the default order.
//!
//! What the default order does must not depend on how a run is cut into slices, since a replay cuts it
//! differently: it depends only on blocking, yielding and on the steps since the last switch. Whom the driver
//! sets aside for spinning, and jumps of the clock, are deviations like any other.

mod fault;
mod profile;
mod replaying;

use raddle_stdx::Digest;
use raddle_trace::{Deviation, Limits, Phase, Position, Schedule, Turn};
use raddle_world::{
    ContextId, Duration, Event, Liveness, PassPoints, Passage, Pending, PendingKind, Site, Stop,
    Unsupported, Until, World, successor,
};

use crate::reads_from_trace::{ReadsFromPair, ReadsFromTrace};
use crate::scheduler::{Passing, Reason, Scheduler, View};
use crate::waiting::{Waiting, is_standstill};

pub use replaying::{Order, Replaying, Slice};

/// Time jumps in a row that wake no context: only periodic timers that no context hears are left.
const IDLE_JUMPS_MAX: u32 = 10_000;
/// Length of a turn in the fair phase on average. Turns differ, so that none falls into step with a loop of the program.
const FAIR_TURN: u64 = 5_000;
/// Stops that are remembered one by one.
const TRAIL_MAX: usize = 100_000;
/// Points that are passed without a look at whether a context loops, and stops of such a look.
const UNWATCHED_MAX: u64 = 4096;
const WATCHED: u64 = 16;
/// Jumps of the clock in a run while a context could run.
pub(crate) const JUMPS_MAX: u64 = 64;

/// How to drive a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub limits: Limits,
    /// Whether it is written down what contexts read from which writes.
    pub has_classes: bool,
    /// Instructions of a loop without progress at most; none if loops are told by the points they pass.
    pub loop_window: Option<u64>,
}

impl From<Limits> for Policy {
    fn from(limits: Limits) -> Self {
        Self {
            limits,
            has_classes: true,
            loop_window: None,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The first process ended with this wait status.
    Exited { status: i32 },
    /// No context can ever run again.
    Stuck,
    /// It did not end within the limit, although every context got its turn in the last half; or all contexts that
    /// can run go round for ever, and none is left to change that.
    Hanging,
    /// The program needs something that the world does not have.
    Unsupported(Box<Unsupported>),
    /// The caller did not want it to go on.
    Abandoned,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drive {
    pub end: End,
    pub schedule: Schedule,
    /// Who ran last and how far it came.
    pub last: (ContextId, Position),
    /// Choices among at least two.
    pub decisions: u64,
    /// Times another context went on than before.
    pub switches: u64,
    /// Stops while a timer or time-out was running.
    pub timed_stops: u64,
    /// Stops of each context, by its number.
    pub stops: Vec<u64>,
    pub steps: u64,
    /// Where the current context stood at each decision.
    pub trail: Vec<Site>,
    /// The stops at flagged points: who, and where.
    pub points: Vec<(ContextId, Site)>,
    /// What each context did, as a digest.
    pub kinds: Vec<u64>,
    /// Which places read from which; empty in a replay, and in a world without classes.
    pub pairs: Vec<ReadsFromPair>,
    /// Equal for runs in which everybody reads from the same writes.
    pub class: u64,
    /// Times a context was set aside because it waited in a loop.
    pub set_aside: u64,
    /// Flagged points at which a context that could have gone on was interrupted, ascending.
    pub interrupted: Vec<Site>,
}

impl Drive {
    fn at(last: (ContextId, Position)) -> Self {
        Self {
            end: End::Stuck,
            schedule: Schedule::default(),
            last,
            decisions: 0,
            switches: 0,
            timed_stops: 0,
            stops: Vec::new(),
            steps: 0,
            trail: Vec::new(),
            points: Vec::new(),
            kinds: Vec::new(),
            pairs: Vec::new(),
            class: 0,
            set_aside: 0,
            interrupted: Vec::new(),
        }
    }
}

/// Runs a world to its end. `policy.limits.steps` is split: in its second half everybody gets turns, so that a run
/// that still does not end hangs for no fault of the scheduler. `sink` gets the events after each slice.
pub fn drive<W: World>(
    world: &mut W,
    scheduler: &mut dyn Scheduler,
    policy: impl Into<Policy>,
    sink: &mut dyn FnMut(&mut W, &[Event]),
) -> Drive {
    drive_while(world, scheduler, policy, sink, &|| true)
}

/// As [`drive`], but gives up when `goes_on` says no; it is asked before each slice.
pub fn drive_while<W: World>(
    world: &mut W,
    scheduler: &mut dyn Scheduler,
    policy: impl Into<Policy>,
    sink: &mut dyn FnMut(&mut W, &[Event]),
    goes_on: &dyn Fn() -> bool,
) -> Drive {
    let policy = policy.into();
    let mut state = Driving::new(world, policy, scheduler.given().is_some());
    let end = loop {
        if !goes_on() {
            break End::Abandoned;
        }
        if !state.refresh(world) {
            break End::Stuck;
        }
        let next = state.choose(world, scheduler);
        match state.run(world, scheduler, next) {
            Stop::WorldDone { status } => {
                pass_events(world, sink);
                break End::Exited { status };
            }
            Stop::Unsupported(what) => break End::Unsupported(what),
            _ => {}
        }
        pass_events(world, sink);
        if state.drive.steps >= policy.limits.steps || state.waiting.is_at_an_end {
            break End::Hanging;
        }
    };
    state.finish(world, end)
}

fn pass_events<W: World>(world: &mut W, sink: &mut dyn FnMut(&mut W, &[Event])) {
    let events = world.take_events();
    if !events.is_empty() {
        sink(world, &events);
    }
    world.recycle_events(events);
}

/// How a context was left by the default order.
#[derive(Debug, Clone, Copy)]
struct Left {
    at: Position,
    to: ContextId,
    /// Deviations that were written down before.
    before: usize,
}

#[derive(Debug, Clone)]
struct Driving {
    drive: Drive,
    limits: Limits,
    has_classes: bool,
    is_replay: bool,
    reason: Reason,
    /// Where the current context stands.
    site: Site,
    since_switch: u64,
    runnable: Vec<ContextId>,
    /// Those that a scheduler may choose from.
    candidates: Vec<ContextId>,
    /// For each context: step count at which it last blocked, and how often there.
    blocks: Vec<(u64, u32)>,
    /// What each context would do next, by its number, and where it stands then.
    next: Vec<Option<Pending>>,
    sites: Vec<Site>,
    /// The step count at which each context was last stopped in the middle of an instruction.
    torn: Vec<Option<u64>>,
    /// The step count at which each context was last stopped before it had made a step.
    stalled: Vec<Option<u64>>,
    /// Where the default order last left each context.
    left: Vec<Option<Left>>,
    /// In the fair phase: who can run since the last stop, and how long the present turn is.
    woken: Option<ContextId>,
    fair_turn: u64,
    kinds: Vec<Digest>,
    waiting: Waiting,
    reads_from: ReadsFromTrace,
    /// How long it is until the next timer, as last asked.
    until_timer: Option<Duration>,
    jumps: u64,
    /// Points passed since a context was last watched, and stops for which the current context still is.
    unwatched: u64,
    watched: u64,
}

impl Driving {
    fn new<W: World>(world: &W, policy: Policy, is_replay: bool) -> Self {
        let current = *world.contexts().runnable().first().unwrap_or(&ContextId(0));
        let steps = world.contexts().get(current).steps;
        let phase = if world.is_entering_call(current) {
            Phase::Asked
        } else {
            Phase::Plain
        };
        Self {
            drive: Drive::at((current, Position { steps, phase })),
            limits: policy.limits,
            has_classes: policy.has_classes,
            is_replay,
            reason: Reason::Start,
            site: Site::NOWHERE,
            since_switch: 0,
            runnable: Vec::new(),
            candidates: Vec::new(),
            blocks: Vec::new(),
            next: Vec::new(),
            sites: Vec::new(),
            torn: Vec::new(),
            stalled: Vec::new(),
            left: Vec::new(),
            woken: None,
            fair_turn: FAIR_TURN,
            kinds: Vec::new(),
            waiting: Waiting::new(policy.loop_window),
            reads_from: ReadsFromTrace::default(),
            until_timer: None,
            jumps: 0,
            unwatched: 0,
            watched: 0,
        }
    }

    fn finish<W: World>(mut self, world: &W, end: End) -> Drive {
        self.drive.end = end;
        self.drive.class = self.reads_from.class(world.contexts());
        self.drive.pairs = self.reads_from.pairs();
        self.drive.kinds = self.kinds.iter().map(|kind| kind.value()).collect();
        self.drive.set_aside = self.waiting.times;
        self.drive.interrupted.sort_unstable();
        self.drive.interrupted.dedup();
        self.drive
    }

    /// Finds out which contexts can run, letting time pass if none can; false if none ever can.
    fn refresh<W: World>(&mut self, world: &mut W) -> bool {
        for _ in 0..IDLE_JUMPS_MAX {
            self.list_runnable(world);
            if !self.runnable.is_empty() {
                return true;
            }
            if !world.advance_time() {
                return false;
            }
        }
        false
    }

    fn list_runnable<W: World>(&mut self, world: &W) {
        if self.is_fair_phase() {
            let now = world.contexts().runnable().iter();
            self.woken = now.copied().find(|id| !self.runnable.contains(id));
        }
        self.runnable.clear();
        self.runnable.extend_from_slice(world.contexts().runnable());
    }

    /// Who may be chosen: contexts that wait in loops are left out as long as there are others.
    fn list_candidates<W: World>(&mut self, world: &mut W) {
        self.candidates.clear();
        self.candidates.extend_from_slice(&self.runnable);
        if self.is_replay {
            return;
        }
        self.waiting.leave_out(world, &mut self.candidates);
        if self.candidates.is_empty() {
            self.candidates.extend_from_slice(&self.runnable);
        }
    }

    fn view<'a, W: World>(&'a self, world: &'a W, default: ContextId) -> View<'a> {
        let (current, at) = self.drive.last;
        let default = if self.candidates.contains(&default) {
            default
        } else {
            after(&self.candidates, current)
        };
        View {
            current,
            at,
            reason: self.reason,
            site: self.site,
            runnable: &self.candidates,
            default,
            contexts: world.contexts(),
            next: &self.next,
            stops: &self.drive.stops,
            until_timer: self.until_timer,
        }
    }

    fn choose<W: World>(&mut self, world: &mut W, scheduler: &mut dyn Scheduler) -> ContextId {
        let (current, at) = self.drive.last;
        self.list_candidates(world);
        self.jump(world, scheduler);
        self.fault(world, scheduler);
        let default = self.default_next(current);
        let mut next = scheduler.pick(&self.view(world, default));
        assert!(
            self.candidates.contains(&next),
            "a scheduler picks somebody who can run"
        );
        if self.is_fair_phase() {
            next = self.fair_next(current);
        }
        if self.candidates.len() > 1 {
            self.drive.decisions += 1;
            if self.drive.trail.len() < TRAIL_MAX {
                self.drive.trail.push(self.site);
            }
        }
        if next != default {
            self.spell_out(world, current, at);
            let path = |id| world.contexts().get(id).path.to_vec();
            self.drive.schedule.deviations.push(Deviation {
                context: path(current),
                at,
                turn: Turn::Context(path(next)),
            });
        } else if next != current {
            self.grow(current);
            self.left[current.0 as usize] = Some(Left {
                at,
                to: next,
                before: self.drive.schedule.deviations.len(),
            });
        }
        if next != current || self.reason == Reason::Starving {
            self.since_switch = 0;
            self.fair_turn = fair_turn(self.drive.steps);
        }
        if next != current {
            self.drive.switches += 1;
            self.waiting.switch();
            if let Reason::Point { site } = self.reason
                && self.drive.interrupted.len() < TRAIL_MAX
            {
                self.drive.interrupted.push(site);
            }
        }
        next
    }

    /// A context deviates where the default order has already left it once, without a step in between: a replay would
    /// deviate the first time. So the first time is written down, too.
    fn spell_out<W: World>(&mut self, world: &W, who: ContextId, at: Position) {
        self.grow(who);
        let left = self.left[who.0 as usize].take_if(|left| left.at == at);
        let Some(left) = left else {
            return;
        };
        let path = |id| world.contexts().get(id).path.to_vec();
        let deviation = Deviation {
            context: path(who),
            at,
            turn: Turn::Context(path(left.to)),
        };
        self.drive
            .schedule
            .deviations
            .insert(left.before, deviation);
        for other in self.left.iter_mut().flatten() {
            other.before += usize::from(other.before > left.before);
        }
    }

    /// Lets the clock jump as often as the scheduler wants.
    fn jump<W: World>(&mut self, world: &mut W, scheduler: &mut dyn Scheduler) {
        let mut is_first = true;
        self.until_timer = world.until_deadline();
        while self.until_timer.is_some() {
            self.drive.timed_stops += u64::from(is_first);
            is_first = false;
            let (current, at) = self.drive.last;
            let default = self.default_next(current);
            let Some(clock) = scheduler.clock().filter(|_| self.jumps < JUMPS_MAX) else {
                return;
            };
            if !clock.jumps(&self.view(world, default)) {
                return;
            }
            self.jumps += 1;
            self.drive.schedule.deviations.push(Deviation {
                context: world.contexts().get(current).path.to_vec(),
                at,
                turn: Turn::Clock,
            });
            world.advance_time();
            self.until_timer = world.until_deadline();
            self.list_runnable(world);
            self.list_candidates(world);
        }
    }

    fn is_fair_phase(&self) -> bool {
        !self.is_replay && self.drive.steps >= self.limits.steps / 2
    }

    /// Who goes on in the fair phase. A context that was just woken comes first: a lock that it was woken for is free
    /// now, and would be taken again by the one who gave it up.
    fn fair_next(&self, current: ContextId) -> ContextId {
        if let Some(woken) = self.woken {
            return woken;
        }
        let is_over = self.since_switch >= self.fair_turn
            || self.reason == Reason::Yielded
            || self.reason.asks_for_another();
        if self.runnable.contains(&current) && !is_over {
            current
        } else {
            after(&self.runnable, current)
        }
    }

    /// Who goes on if no scheduler interferes.
    fn default_next(&self, current: ContextId) -> ContextId {
        let must_leave = matches!(self.reason, Reason::Yielded | Reason::Starving);
        if self.runnable.contains(&current) && !must_leave && self.reason != Reason::Blocked {
            current
        } else {
            after(&self.runnable, current)
        }
    }

    fn run<W: World>(
        &mut self,
        world: &mut W,
        scheduler: &mut dyn Scheduler,
        next: ContextId,
    ) -> Stop {
        let before = world.contexts().get(next).steps;
        let patience = self.limits.patience - self.since_switch;
        self.grow(next);
        let index = next.0 as usize;
        // No context is stopped twice at one place without a step: such a run would never meet its limit.
        let is_stalled = self.stalled[index] == Some(before);
        let bound = scheduler
            .bound(world.contexts().get(next))
            .max(u64::from(is_stalled));
        let fair = if self.is_fair_phase() {
            self.fair_turn
        } else {
            u64::MAX
        };
        let left = self.limits.steps - self.drive.steps;
        let steps_max = patience.min(bound).min(left).min(fair);
        if let Some(stop) = self.tear(world, scheduler, next) {
            return stop;
        }
        self.note_operation(world, next);
        let until = Until::Sync { steps_max };
        let stop = match (world.passing(), scheduler.passing()) {
            (Some(world), Some(scheduler)) => self.run_passing(world, scheduler, next, until),
            _ => world.run(next, until),
        };
        let context = world.contexts().get(next);
        let steps = context.steps;
        let made = steps - before;
        self.since_switch += made;
        self.drive.steps += made;
        self.stalled[index] = (made == 0 && matches!(stop, Stop::Steps)).then_some(steps);
        self.drive.stops[index] += 1;
        let is_blocked = matches!(context.liveness(), Liveness::Blocked(_));
        let phase = if is_blocked {
            let block = &mut self.blocks[index];
            let count = if block.0 == steps { block.1 + 1 } else { 1 };
            *block = (steps, count);
            Phase::Blocked(count)
        } else if world.is_entering_call(next) {
            Phase::Asked
        } else {
            Phase::Plain
        };
        self.drive.last = (next, Position { steps, phase });
        self.look(world, next, &stop);
        self.reason = self.reason_of(&stop, world, next);
        let may_be_over = self.reason == Reason::Starving && !self.is_replay;
        self.waiting.is_at_an_end |= may_be_over && is_standstill(world);
        stop
    }

    /// Runs the chosen context past the points at which it would be chosen again.
    fn run_passing(
        &mut self,
        world: &mut dyn PassPoints,
        scheduler: &mut dyn Passing,
        who: ContextId,
        until: Until,
    ) -> Stop {
        let points = self.points_to_pass(scheduler);
        let passage = Passage {
            points,
            never: if points == 0 {
                &[]
            } else {
                scheduler.interest()
            },
        };
        let (stop, passed) = world.run_passing(who, until, passage);
        debug_assert!(passed <= points, "no more points are passed than may be");
        self.note_passed(scheduler, who, passed);
        stop
    }

    /// Points that the chosen context may pass before the scheduler or the driver needs to know. A context that waits
    /// in a loop is woken by writes, which are seen at stops only.
    fn points_to_pass(&mut self, scheduler: &mut dyn Passing) -> u64 {
        if self.is_replay || self.is_fair_phase() || !self.waiting.is_empty() {
            return 0;
        }
        if self.watched > 0 {
            self.watched -= 1;
            return 0;
        }
        let left = UNWATCHED_MAX - self.unwatched;
        scheduler.passes(self.candidates.len()).min(left)
    }

    fn note_passed(&mut self, scheduler: &mut dyn Passing, who: ContextId, passed: u64) {
        if passed == 0 {
            return;
        }
        scheduler.passed(self.candidates.len(), passed);
        self.drive.stops[who.0 as usize] += passed;
        if self.candidates.len() > 1 {
            self.drive.decisions += passed;
        }
        self.waiting.switch();
        self.unwatched += passed;
        if self.unwatched >= UNWATCHED_MAX {
            self.unwatched = 0;
            self.watched = WATCHED;
        }
    }

    /// Stops a context in the middle of an instruction that reads and writes shared memory without a lock.
    fn tear<W: World>(
        &mut self,
        world: &mut W,
        scheduler: &mut dyn Scheduler,
        who: ContextId,
    ) -> Option<Stop> {
        let index = who.0 as usize;
        let steps = world.contexts().get(who).steps;
        if self.torn[index] == Some(steps) {
            return None;
        }
        let is_wanted = match scheduler.given() {
            Some(given) => given.tears(world.contexts().get(who)),
            None => self.next[index].as_ref().is_some_and(is_tearable),
        };
        if !is_wanted || !world.tearing()?.tear(who) {
            return None;
        }
        let next = self.next[index].take();
        self.torn[index] = Some(steps);
        self.drive.stops[index] += 1;
        self.site = world.site(who);
        let phase = Phase::Torn;
        self.drive.last = (who, Position { steps, phase });
        let site = next.as_ref().map_or(Site::NOWHERE, |next| next.site);
        if let Some(next) = next {
            self.next[index] = Some(half(&next, true));
            self.note_operation(world, who);
            self.next[index] = Some(half(&next, false));
        }
        self.reason = Reason::Point { site };
        Some(Stop::Point { site })
    }

    /// Makes room for what is known of a context.
    fn grow(&mut self, who: ContextId) {
        let needed = who.0 as usize + 1;
        if self.drive.stops.len() < needed {
            self.drive.stops.resize(needed, 0);
            self.blocks.resize(needed, (0, 0));
            self.next.resize(needed, None);
            self.sites.resize(needed, Site::NOWHERE);
            self.torn.resize(needed, None);
            self.stalled.resize(needed, None);
            self.left.resize(needed, None);
            self.kinds.resize(needed, Digest::default());
        }
    }

    /// The chosen context is about to do what it stands before.
    fn note_operation<W: World>(&mut self, world: &W, who: ContextId) {
        self.waiting.run(who);
        let Some(next) = self.next[who.0 as usize].take() else {
            return;
        };
        let site = self.sites[who.0 as usize];
        if self.has_classes {
            self.reads_from.note(who, site, &next, world.contexts());
        }
    }

    /// Looks at where a context has come to.
    fn look<W: World>(&mut self, world: &mut W, who: ContextId, stop: &Stop) {
        let is_standing = matches!(stop, Stop::Point { .. } | Stop::Sync | Stop::Steps);
        self.site = if is_standing {
            world.site(who)
        } else {
            Site::NOWHERE
        };
        if self.is_replay {
            return;
        }
        let index = who.0 as usize;
        if !is_standing {
            // A context that waits for a lock will try again; what else it waits for is the world's secret.
            let next = matches!(stop, Stop::Blocked).then(|| world.pending(who));
            self.next[index] = next.filter(|n| !matches!(n.kind, PendingKind::Syscall { .. }));
            self.sites[index] = world.site(who);
            return;
        }
        self.next[index] = Some(world.pending(who));
        self.sites[index] = self.site;
        if let Stop::Point { site } = *stop
            && self.drive.points.len() < TRAIL_MAX
        {
            self.drive.points.push((who, site));
        }
        if !world.is_entering_call(who) {
            self.kinds[index].word(self.site.number());
        }
    }

    fn reason_of<W: World>(&mut self, stop: &Stop, world: &mut W, who: ContextId) -> Reason {
        if self.since_switch >= self.limits.patience && !matches!(stop, Stop::Blocked | Stop::Done)
        {
            return Reason::Starving;
        }
        match *stop {
            Stop::Yielded => {
                // Set aside or not: the default order knows only that it yields.
                self.is_waiting(stop, world, who);
                Reason::Yielded
            }
            Stop::Steps => Reason::Bound,
            Stop::Point { .. } | Stop::Sync if self.is_waiting(stop, world, who) => {
                Reason::Spinning
            }
            Stop::Point { site } => Reason::Point { site },
            Stop::Sync => Reason::Sync,
            _ => Reason::Blocked,
        }
    }

    /// Whether a context that stands at a point, or has yielded, waits for another context's write.
    fn is_waiting<W: World>(&mut self, stop: &Stop, world: &mut W, who: ContextId) -> bool {
        if self.is_replay {
            return false;
        }
        if let Some(judge) = world.judging() {
            return judge.is_waiting(who);
        }
        if *stop == Stop::Sync {
            return false;
        }
        let site = world.site(who);
        let registers = world.register_digest(who);
        let suspicion = if *stop == Stop::Yielded {
            Some(self.waiting.yields(who, site, registers))
        } else {
            let steps = self.drive.last.1.steps;
            self.waiting.stop(who, site, registers, steps)
        };
        suspicion.is_some_and(|suspicion| self.waiting.look_into(suspicion, world.rehearsing()))
    }
}

/// The length of a turn that begins after so many steps.
fn fair_turn(steps: u64) -> u64 {
    let mut digest = Digest::default();
    digest.word(steps);
    FAIR_TURN / 2 + digest.value() % FAIR_TURN
}

/// Whether an operation reads and writes one place without a lock.
fn is_tearable(next: &Pending) -> bool {
    let PendingKind::Access {
        reads,
        writes,
        atomic,
        ..
    } = next.kind
    else {
        return false;
    };
    reads && writes && !atomic
}

/// The reading or the writing half of an operation.
fn half(next: &Pending, is_read: bool) -> Pending {
    let mut half = next.clone();
    if let PendingKind::Access { reads, writes, .. } = &mut half.kind {
        (*reads, *writes) = (is_read, !is_read);
    }
    half
}

/// The one after this one among some who can run.
fn after(among: &[ContextId], current: ContextId) -> ContextId {
    successor(among, Some(current)).expect("somebody can run")
}

#[cfg(test)]
mod tests;
