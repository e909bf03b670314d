//! Going to and fro in a recorded run, for debuggers.
//!
//! A moment is a number of steps after the snapshot. To go forward is to go on with the replay; to go back is to restore
//! the nearest checkpoint before the wanted moment and to replay from there. Checkpoints are made on the way, the closer
//! together the nearer they are to where the journey ends ([`checkpoints`]), so that the next steps back are short.
//! What is looked for in the past is looked for stretch by stretch, the latest one first.

pub mod checkpoints;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use raddle_world::{ContextId, Event, EventKind, Inspect, Liveness, World as _};

use crate::driver::{End, Order, Replaying, Slice};
use checkpoints::Checkpoints;

/// A recorded run that can be begun again as often as one likes.
pub trait Rerun {
    type World: Inspect;
    /// Who runs when, and for how long at most.
    fn order(&self) -> Order;
    fn world(&self) -> &Self::World;
    fn world_mut(&mut self) -> &mut Self::World;
    /// Brings the world back to where the schedule begins.
    fn rewind(&mut self);
    /// Words for who a thread is.
    fn label(&self, thread: ContextId) -> String;
}

/// Which way time runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// Memory that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    pub addr: u64,
    pub len: u64,
    pub reads: bool,
    pub writes: bool,
}

/// Why the run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halted {
    Breakpoint(ContextId),
    Watch {
        context: ContextId,
        watched: Watched,
    },
    Stepped(ContextId),
    /// The snapshot.
    Begin,
    /// The end of the recording.
    End,
}

/// What a run is to be stopped at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stops {
    /// Before these instructions, whichever context comes by.
    pub breakpoints: BTreeSet<u64>,
    /// After accesses to this memory.
    pub watched: BTreeSet<Watched>,
}

impl Stops {
    /// Nothing but instructions.
    pub fn before(instructions: impl IntoIterator<Item = u64>) -> Self {
        Self {
            breakpoints: instructions.into_iter().collect(),
            watched: BTreeSet::new(),
        }
    }
}

/// A place in the run at which it is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub at: u64,
    pub why: Halted,
}

impl Hit {
    /// The moment to stop at on the way back: a watched value has its old content before the access.
    pub fn before(self) -> u64 {
        match self.why {
            Halted::Watch { .. } => self.at.saturating_sub(1),
            _ => self.at,
        }
    }
}

/// Decides whether a hit counts. The world stands at it, or, for watched memory, a little behind it.
pub type Accept<'a, W> = &'a mut dyn FnMut(&mut W, &Hit) -> bool;

/// A recorded run and a moment in it.
#[derive(Debug)]
pub struct Travel<R> {
    run: R,
    order: Order,
    /// Where the world stands.
    replaying: Replaying,
    checkpoints: Checkpoints,
    end: u64,
    current: ContextId,
    /// Which thread runs from when on.
    turns: Vec<(u64, ContextId)>,
    /// Every thread of the run, by number, with words for who it is.
    threads: Vec<(ContextId, String)>,
    stops: Stops,
}

impl<R: Rerun> Travel<R> {
    /// Begins at the snapshot.
    pub fn new(mut run: R) -> Self {
        let order = run.order();
        run.rewind();
        let replaying = Replaying::new(run.world(), &order);
        let mut travel = Self {
            run,
            order,
            replaying,
            checkpoints: Checkpoints::default(),
            end: 0,
            current: ContextId(0),
            turns: Vec::new(),
            threads: Vec::new(),
            stops: Stops::default(),
        };
        travel.survey();
        travel.go_to(0);
        travel
    }

    /// The moment, and the last one.
    pub fn now(&self) -> u64 {
        self.replaying.steps()
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// The thread that runs now.
    pub fn current(&self) -> ContextId {
        self.current
    }

    /// Makes a thread that lives the one that is looked at.
    pub fn look_at(&mut self, thread: ContextId) {
        if self.is_live(thread) {
            self.current = thread;
        }
    }

    /// Threads that live at this moment, each with words for who it is.
    pub fn threads(&self) -> Vec<(ContextId, String)> {
        let all = self.threads.iter().map(|(id, _)| *id);
        let live = all.filter(|id| self.is_live(*id));
        live.map(|id| (id, self.run.label(id))).collect()
    }

    /// Every thread that lives at some moment of the run.
    pub fn all_threads(&self) -> &[(ContextId, String)] {
        &self.threads
    }

    /// Whether a thread has begun and not ended.
    pub fn is_live(&self, thread: ContextId) -> bool {
        let contexts = self.world().contexts();
        contexts
            .iter()
            .any(|(id, context)| id == thread && *context.liveness() != Liveness::Done)
    }

    /// Whether a thread was created before this moment; it may have ended since.
    pub fn has_begun(&self, thread: ContextId) -> bool {
        let mut contexts = self.world().contexts().iter();
        contexts.any(|(id, _)| id == thread)
    }

    /// The world at this moment.
    pub fn world(&self) -> &R::World {
        self.run.world()
    }

    /// The world at this moment, to be read only.
    pub fn world_mut(&mut self) -> &mut R::World {
        self.run.world_mut()
    }

    pub fn set_breakpoint(&mut self, pc: u64, is_set: bool) {
        if is_set {
            self.stops.breakpoints.insert(pc);
        } else {
            self.stops.breakpoints.remove(&pc);
        }
    }

    pub fn set_watched(&mut self, watched: Watched, is_set: bool) {
        if is_set {
            self.stops.watched.insert(watched);
        } else {
            self.stops.watched.remove(&watched);
        }
    }

    /// Goes on to the next breakpoint or watched access, or to the end of the run in that direction.
    pub fn proceed(&mut self, direction: Direction) -> Halted {
        let stops = self.stops.clone();
        let found = self.find(direction, &stops, &mut |_, _| true);
        self.arrive(found, direction)
    }

    /// Goes to what was found, or to the end of the run in that direction.
    pub fn arrive(&mut self, found: Option<Hit>, direction: Direction) -> Halted {
        let (moment, why) = match (found, direction) {
            (Some(hit), Direction::Forward) => (hit.at, hit.why),
            (Some(hit), Direction::Backward) => (hit.before(), hit.why),
            (None, Direction::Forward) => (self.end, Halted::End),
            (None, Direction::Backward) => (0, Halted::Begin),
        };
        self.go_to(moment);
        if let Halted::Breakpoint(who) | Halted::Watch { context: who, .. } = why {
            self.look_at(who);
        }
        why
    }

    /// The nearest hit that counts, after or before this moment. The world is left wherever the search ended: go to
    /// the hit, or back, before it is looked at.
    pub fn find(
        &mut self,
        direction: Direction,
        stops: &Stops,
        accept: Accept<'_, R::World>,
    ) -> Option<Hit> {
        if stops.breakpoints.is_empty() && stops.watched.is_empty() {
            return None;
        }
        match direction {
            Direction::Forward => self.find_after(stops, accept),
            Direction::Backward => self.find_before(stops, accept),
        }
    }

    fn find_after(&mut self, stops: &Stops, accept: Accept<'_, R::World>) -> Option<Hit> {
        let now = self.now();
        let mut found = None;
        self.look_out(self.end, stops, &mut |world, hit| {
            if hit.at > now && accept(world, &hit) {
                found = Some(hit);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        found
    }

    fn find_before(&mut self, stops: &Stops, accept: Accept<'_, R::World>) -> Option<Hit> {
        let now = self.now();
        let mut to = now;
        while to > 0 {
            let from = self.go_back(to - 1);
            let mut found: Option<Hit> = None;
            self.look_out(to, stops, &mut |world, hit| {
                if hit.at > from && hit.before() < now && accept(world, &hit) {
                    found = Some(hit);
                }
                ControlFlow::Continue(())
            });
            if found.is_some() {
                return found;
            }
            to = from;
        }
        None
    }

    /// One step of one thread, in either direction; others may run in between.
    pub fn step(&mut self, who: ContextId, direction: Direction) -> Halted {
        let target = match direction {
            Direction::Forward => self.step_after(who),
            Direction::Backward => self.step_before(who),
        };
        let Some(target) = target else {
            return self.proceed(direction);
        };
        // Another thread may meet a breakpoint on the way.
        let now = self.now();
        if target.abs_diff(now) > 1 {
            let range = target.min(now) + 1..target.max(now);
            let stops = self.stops.clone();
            let found = self.find(direction, &stops, &mut |_, hit| range.contains(&hit.at));
            if let Some(hit) = found {
                self.go_to(hit.at);
                return hit.why;
            }
        }
        self.go_to(target);
        self.current = who;
        Halted::Stepped(who)
    }

    /// Turns as (first step, end, thread).
    fn turns(&self) -> impl DoubleEndedIterator<Item = (u64, u64, ContextId)> {
        (0..self.turns.len()).map(|index| {
            let (start, who) = self.turns[index];
            let end = self
                .turns
                .get(index + 1)
                .map_or(self.end, |(start, _)| *start);
            (start, end, who)
        })
    }

    fn step_after(&self, who: ContextId) -> Option<u64> {
        let mut turns = self.turns();
        turns.find_map(|(start, end, runs)| {
            let from = start.max(self.now());
            (runs == who && from < end).then_some(from + 1)
        })
    }

    fn step_before(&self, who: ContextId) -> Option<u64> {
        let mut turns = self.turns().rev();
        turns.find_map(|(start, end, runs)| {
            let to = end.min(self.now());
            (runs == who && start < to).then(|| to - 1)
        })
    }

    /// Goes to a moment.
    pub fn go_to(&mut self, moment: u64) {
        let moment = moment.min(self.end);
        if moment < self.now() {
            self.go_back(moment);
        }
        self.go_on(moment, &mut |_, _| ControlFlow::Continue(()));
        let world = self.run.world();
        self.current = world.thread_of(self.replaying.last());
        let is_gone = world.cpu(self.current).is_none();
        if is_gone && let Some((id, _)) = self.threads().first() {
            self.current = *id;
        }
    }

    /// Restores the last checkpoint that is not after this moment, and gives its moment.
    fn go_back(&mut self, moment: u64) -> u64 {
        match self.checkpoints.before(moment) {
            Some(checkpoint) => {
                self.run.world_mut().restore(checkpoint.snapshot);
                self.replaying.clone_from(&checkpoint.replaying);
            }
            None => {
                self.run.rewind();
                self.replaying = Replaying::new(self.run.world(), &self.order);
            }
        }
        self.now()
    }

    /// Goes on to a moment, with checkpoints on the way.
    fn go_on(
        &mut self,
        to: u64,
        look: &mut dyn FnMut(&mut R::World, Slice<'_>) -> ControlFlow<()>,
    ) -> Option<End> {
        while self.now() < to {
            let world = self.run.world_mut();
            let now = self.replaying.steps();
            let stop = self.checkpoints.next(now, to);
            let mut is_broken_off = false;
            let end = self.replaying.go_on(world, stop, &mut |world, slice| {
                let flow = look(world, slice);
                is_broken_off = flow.is_break();
                flow
            });
            if end.is_some() || is_broken_off {
                return end;
            }
            if stop < to {
                self.checkpoints.make(world, &self.replaying);
            }
        }
        None
    }

    /// Goes on to a moment and tells all hits on the way.
    fn look_out(
        &mut self,
        to: u64,
        stops: &Stops,
        tell: &mut dyn FnMut(&mut R::World, Hit) -> ControlFlow<()>,
    ) {
        let watched: Vec<Watched> = stops.watched.iter().copied().collect();
        let world = self.run.world_mut();
        world.set_breakpoints(&stops.breakpoints, true);
        if !watched.is_empty() {
            world.observe_memory(true);
        }
        // How far each context was when it last came by a breakpoint: it may stand there for a while.
        let mut seen: BTreeMap<ContextId, u64> = BTreeMap::new();
        let last = self.end;
        self.go_on(to, &mut |world, slice| {
            let mut hits = watched_hits(world, &slice, &watched);
            let who = world.thread_of(slice.context);
            let pc = world.cpu(slice.context).map(|cpu| cpu.rip);
            if pc.is_some_and(|pc| stops.breakpoints.contains(&pc)) {
                let own = steps_of(world, slice.context);
                if seen.insert(slice.context, own) != Some(own) {
                    let why = Halted::Breakpoint(who);
                    hits.push(Hit {
                        at: slice.steps,
                        why,
                    });
                }
            }
            hits.sort_by_key(|hit| hit.at);
            for hit in hits.into_iter().filter(|hit| hit.at <= last) {
                tell(world, hit)?;
            }
            ControlFlow::Continue(())
        });
        let world = self.run.world_mut();
        world.observe_memory(false);
        world.set_breakpoints(&stops.breakpoints, false);
    }

    /// Runs through everything once and notes turns, threads and the end.
    fn survey(&mut self) {
        let mut turns: Vec<(u64, ContextId)> = Vec::new();
        let mut seen = BTreeSet::from([ContextId(0)]);
        let limit = self.order.steps_max();
        let world = self.run.world_mut();
        let end = self.replaying.go_on(world, limit, &mut |world, slice| {
            let who = world.thread_of(slice.context);
            if turns.last().is_none_or(|(_, last)| *last != who) {
                turns.push((slice.began, who));
                seen.insert(who);
            }
            ControlFlow::Continue(())
        });
        let contexts = world.contexts().iter();
        let live = contexts.filter(|(_, context)| *context.liveness() != Liveness::Done);
        seen.extend(live.map(|(id, _)| world.thread_of(id)));
        self.threads = seen
            .into_iter()
            .map(|id| (id, self.run.label(id)))
            .collect();
        self.turns = turns;
        self.end = self.now();
        // The last instruction of a program ends it: stop before, where there is still something to see.
        if matches!(end, Some(End::Exited { .. })) {
            self.end = self.end.saturating_sub(1);
        }
    }
}

/// Steps that a context has made.
fn steps_of(world: &impl Inspect, who: ContextId) -> u64 {
    world.contexts().get(who).steps
}

/// The accesses of a slice to watched memory, each with the moment after its instruction.
fn watched_hits<W: Inspect>(world: &W, slice: &Slice<'_>, watched: &[Watched]) -> Vec<Hit> {
    let found = |event: &Event| {
        let EventKind::Access(access) = &event.kind else {
            return None;
        };
        let touches = |watched: &&Watched| {
            let is_near = access.addr < watched.addr.saturating_add(watched.len)
                && watched.addr < access.addr.saturating_add(u64::from(access.size));
            is_near && (watched.writes && access.how.writes() || watched.reads)
        };
        let watched = watched.iter().find(touches)?;
        let behind = steps_of(world, event.context) - event.step;
        Some(Hit {
            at: slice.steps - behind + 1,
            why: Halted::Watch {
                context: world.thread_of(event.context),
                watched: *watched,
            },
        })
    };
    slice.events.iter().filter_map(found).collect()
}
