//! Going to and fro in a recorded run, for debuggers.
//!
//! A moment is a number of steps after the snapshot. To go to a moment is to replay up to it, so that the past
//! costs as much as the future; to look for breakpoints is to replay the whole run once and to choose.

use std::collections::{BTreeMap, BTreeSet};

use raddle_trace::{Limits, Schedule};
use raddle_world::{ContextId, EventKind, Inspect, Liveness, World};

use crate::driver::{End, drive};
use crate::follow::Follow;
use crate::scheduler::{Passing, Scheduler, View};
use crate::wrap::Wrap;

/// A recorded run that can be begun again as often as one likes.
pub trait Rerun {
    type World: Inspect;
    /// Who runs when, and for how long at most.
    fn order(&self) -> (Schedule, Limits);
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

#[derive(Debug, Clone, Copy)]
struct Hit {
    at: u64,
    why: Halted,
}

impl Hit {
    /// The moment to stop at on the way back: a watched value has its old content before the access.
    fn before(self) -> u64 {
        match self.why {
            Halted::Watch { .. } => self.at.saturating_sub(1),
            _ => self.at,
        }
    }
}

/// A recorded run and a moment in it.
#[derive(Debug)]
pub struct Travel<R> {
    run: R,
    schedule: Schedule,
    limits: Limits,
    now: u64,
    end: u64,
    current: ContextId,
    /// Which thread runs from when on.
    turns: Vec<(u64, ContextId)>,
    breakpoints: BTreeSet<u64>,
    watched: BTreeSet<Watched>,
}

impl<R: Rerun> Travel<R> {
    /// Begins at the snapshot.
    pub fn new(run: R) -> Self {
        let (schedule, limits) = run.order();
        let mut travel = Self {
            run,
            schedule,
            limits,
            now: 0,
            end: 0,
            current: ContextId(0),
            turns: Vec::new(),
            breakpoints: BTreeSet::new(),
            watched: BTreeSet::new(),
        };
        travel.survey();
        travel.go_to(0);
        travel
    }

    /// The thread that runs now.
    pub fn current(&self) -> ContextId {
        self.current
    }

    /// Threads that have not ended, each with words for who it is.
    pub fn threads(&self) -> Vec<(ContextId, String)> {
        let world = self.world();
        let live = world.contexts().iter();
        live.filter(|(_, context)| *context.liveness() != Liveness::Done)
            .filter(|(id, _)| world.thread_of(*id) == *id)
            .map(|(id, _)| (id, self.run.label(id)))
            .collect()
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
            self.breakpoints.insert(pc);
        } else {
            self.breakpoints.remove(&pc);
        }
    }

    pub fn set_watched(&mut self, watched: Watched, is_set: bool) {
        if is_set {
            self.watched.insert(watched);
        } else {
            self.watched.remove(&watched);
        }
    }

    /// Goes on to the next breakpoint or watched access, or to the end of the run in that direction.
    pub fn proceed(&mut self, direction: Direction) -> Halted {
        let hits = self.survey();
        let now = self.now;
        let found = match direction {
            Direction::Forward => hits.iter().find(|hit| hit.at > now),
            Direction::Backward => hits.iter().rev().find(|hit| hit.before() < now),
        };
        match (found, direction) {
            (Some(hit), Direction::Forward) => {
                self.go_to(hit.at);
                hit.why
            }
            (Some(hit), Direction::Backward) => {
                self.go_to(hit.before());
                hit.why
            }
            (None, Direction::Forward) => {
                self.go_to(self.end);
                Halted::End
            }
            (None, Direction::Backward) => {
                self.go_to(0);
                Halted::Begin
            }
        }
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
        // Somebody else may meet a breakpoint on the way.
        let is_far = target.abs_diff(self.now) > 1;
        let has_stops = !self.breakpoints.is_empty() || !self.watched.is_empty();
        if is_far && has_stops {
            let range = target.min(self.now) + 1..target.max(self.now);
            let hits = self.survey();
            let mut between = hits.iter().filter(|hit| range.contains(&hit.at));
            let first = match direction {
                Direction::Forward => between.next(),
                Direction::Backward => between.next_back(),
            };
            if let Some(hit) = first {
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
            let from = start.max(self.now);
            (runs == who && from < end).then_some(from + 1)
        })
    }

    fn step_before(&self, who: ContextId) -> Option<u64> {
        let mut turns = self.turns().rev();
        turns.find_map(|(start, end, runs)| {
            let to = end.min(self.now);
            (runs == who && start < to).then(|| to - 1)
        })
    }

    /// Goes to a moment.
    fn go_to(&mut self, moment: u64) {
        let limits = Limits {
            steps: moment,
            ..self.limits
        };
        self.run.rewind();
        let world = self.run.world_mut();
        self.current = ContextId(0);
        if moment > 0 {
            let mut follow = Follow::new(&self.schedule);
            let driven = drive(world, &mut follow, limits, &mut |_, _| {});
            self.current = world.thread_of(driven.last.0);
        }
        let is_gone = world.cpu(self.current).is_none();
        if is_gone && let Some((id, _)) = self.threads().first() {
            self.current = *id;
        }
        self.now = moment;
    }

    /// Runs through everything once and notes turns, breakpoints and watched accesses.
    fn survey(&mut self) -> Vec<Hit> {
        let watched: Vec<Watched> = self.watched.iter().copied().collect();
        self.run.rewind();
        let world = self.run.world_mut();
        let base = steps_of(world);
        world.set_breakpoints(&self.breakpoints, true);
        if !watched.is_empty() {
            world.observe_memory(true);
        }
        let mut surveyor = Surveyor {
            follow: Follow::new(&self.schedule),
            base,
            breakpoints: &self.breakpoints,
            turns: Vec::new(),
            hits: Vec::new(),
            seen: BTreeMap::new(),
        };
        let mut accesses: Vec<Hit> = Vec::new();
        let driven = drive(world, &mut surveyor, self.limits, &mut |world, events| {
            for event in events {
                let EventKind::Access(access) = &event.kind else {
                    continue;
                };
                let touches = |watched: &&Watched| {
                    let is_near = access.addr < watched.addr + watched.len
                        && watched.addr < access.addr + u64::from(access.size);
                    is_near && (watched.writes && access.how.writes() || watched.reads)
                };
                if let Some(found) = watched.iter().find(touches) {
                    let behind = world.contexts().get(event.context).steps - event.step;
                    accesses.push(Hit {
                        // The moment after the instruction.
                        at: steps_of(world) - base - behind + 1,
                        why: Halted::Watch {
                            context: world.thread_of(event.context),
                            watched: *found,
                        },
                    });
                }
            }
        });
        world.observe_memory(false);
        world.set_breakpoints(&self.breakpoints, false);
        let turns = surveyor.turns.into_iter();
        self.turns = turns.map(|(at, who)| (at, world.thread_of(who))).collect();
        let hits = surveyor.hits.into_iter();
        let mut hits: Vec<Hit> = hits
            .map(|(at, who)| Hit {
                at,
                why: Halted::Breakpoint(world.thread_of(who)),
            })
            .collect();
        self.end = driven.steps;
        // The last instruction of a program ends it: stop before, where there is still something to see.
        if matches!(driven.end, End::Exited { .. }) {
            self.end = driven.steps.saturating_sub(1);
        }
        hits.append(&mut accesses);
        hits.sort_by_key(|hit| hit.at);
        hits.retain(|hit| hit.at <= self.end);
        hits
    }
}

/// Steps of all contexts.
fn steps_of(world: &impl World) -> u64 {
    let contexts = world.contexts().iter();
    contexts.map(|(_, context)| context.steps).sum()
}

/// Follows a schedule and notes who runs when, and who comes by breakpoints.
struct Surveyor<'a> {
    follow: Follow,
    base: u64,
    breakpoints: &'a BTreeSet<u64>,
    turns: Vec<(u64, ContextId)>,
    hits: Vec<(u64, ContextId)>,
    /// How far each context was when it last came by a breakpoint: it may stand there for a while.
    seen: BTreeMap<ContextId, u64>,
}

impl Wrap for Surveyor<'_> {
    type Inner = Follow;

    fn inner(&self) -> &Follow {
        &self.follow
    }

    fn inner_mut(&mut self) -> &mut Follow {
        &mut self.follow
    }

    /// Breakpoints are stops.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let steps: u64 = view.contexts.iter().map(|(_, context)| context.steps).sum();
        let at = steps - self.base;
        if self.breakpoints.contains(&view.site.pc()) {
            let seen = self.seen.insert(view.current, view.at.steps);
            if seen != Some(view.at.steps) {
                self.hits.push((at, view.current));
            }
        }
        let next = self.follow.pick(view);
        if self.turns.last().is_none_or(|(_, who)| *who != next) {
            self.turns.push((at, next));
        }
        next
    }
}
