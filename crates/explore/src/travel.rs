//! Going to and fro in a recorded run, for debuggers.
//!
//! A moment is a number of steps after the snapshot. To go to a moment is to replay up to it, so that the past
//! costs as much as the future; to look for breakpoints is to replay the whole run once and to choose.

use std::collections::BTreeSet;

use raddle_linux::{LinuxWorld, Machine, Observe};
use raddle_sched::scheduler::{Scheduler, View};
use raddle_sched::{End, Follow, drive};
use raddle_trace::{Limits, Schedule};
use raddle_world::{Context, ContextId, EventKind, Liveness, World};

use crate::names::label;
use crate::replay::Replayer;

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
pub struct Travel<'r> {
    replayer: Replayer<'r>,
    schedule: Schedule,
    limits: Limits,
    now: u64,
    end: u64,
    current: ContextId,
    /// Who runs from when on.
    turns: Vec<(u64, ContextId)>,
    breakpoints: BTreeSet<u64>,
    watched: BTreeSet<Watched>,
}

impl<'r> Travel<'r> {
    /// Begins at the snapshot.
    pub fn new(replayer: Replayer<'r>) -> Self {
        let (schedule, limits) = replayer.order();
        let mut travel = Self {
            replayer,
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

    /// The context that runs now.
    pub fn current(&self) -> ContextId {
        self.current
    }

    /// Contexts that have not ended, each with words for who it is.
    pub fn contexts(&self) -> Vec<(ContextId, String)> {
        let world = self.world();
        let live = world.contexts().iter();
        live.filter(|(_, context)| context.liveness != Liveness::Done)
            .map(|(id, _)| (id, label(world, id)))
            .collect()
    }

    pub fn machine(&self, who: ContextId) -> Option<Machine> {
        self.world().machine(who)
    }

    /// Copies memory of a context; how many bytes could be read.
    pub fn read(&mut self, who: ContextId, addr: u64, into: &mut [u8]) -> usize {
        self.replayer.world_mut().read_bytes(who, addr, into)
    }

    /// Where the program's first segment was loaded.
    pub fn loaded_at(&mut self) -> u64 {
        let symbols = self.replayer.world_mut().symbols(ContextId(0));
        symbols
            .and_then(|symbols| symbols.mappings().next().map(|(range, _)| range.start))
            .unwrap_or(0)
    }

    /// The auxiliary vector of the program.
    pub fn auxv(&self) -> Vec<u8> {
        self.world().auxv(ContextId(0))
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

    /// One step of one context, in either direction; others may run in between.
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

    /// Turns as (first step, end, context).
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
        let world = self.replayer.rewound();
        self.current = ContextId(0);
        if moment > 0 {
            let mut follow = Follow::new(&self.schedule);
            let driven = drive(world, &mut follow, limits, &mut |_, _| {});
            self.current = driven.last.0;
        }
        let is_gone = world.machine(self.current).is_none();
        if is_gone && let Some((id, _)) = self.contexts().first() {
            self.current = *id;
        }
        self.now = moment;
    }

    /// Runs through everything once and notes turns, breakpoints and watched accesses.
    fn survey(&mut self) -> Vec<Hit> {
        let watched: Vec<Watched> = self.watched.iter().copied().collect();
        let world = self.replayer.rewound();
        let base = steps_of(world);
        for pc in &self.breakpoints {
            world.add_point(*pc);
        }
        if !watched.is_empty() {
            world.set_observe(Observe::Addr);
        }
        let mut surveyor = Surveyor {
            follow: Follow::new(&self.schedule),
            base,
            breakpoints: &self.breakpoints,
            turns: Vec::new(),
            hits: Vec::new(),
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
                            context: event.context,
                            watched: *found,
                        },
                    });
                }
            }
        });
        world.set_observe(Observe::None);
        for pc in &self.breakpoints {
            world.remove_point(*pc);
        }
        let mut hits = surveyor.hits;
        self.turns = surveyor.turns;
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

    fn world(&self) -> &LinuxWorld {
        self.replayer.world()
    }
}

/// Steps of all contexts.
fn steps_of(world: &LinuxWorld) -> u64 {
    world
        .contexts()
        .iter()
        .map(|(_, context)| context.steps)
        .sum()
}

/// Follows a schedule and notes who runs when, and who comes by breakpoints.
struct Surveyor<'a> {
    follow: Follow,
    base: u64,
    breakpoints: &'a BTreeSet<u64>,
    turns: Vec<(u64, ContextId)>,
    hits: Vec<Hit>,
}

impl Scheduler for Surveyor<'_> {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let steps: u64 = view.contexts.iter().map(|(_, context)| context.steps).sum();
        let at = steps - self.base;
        let is_known = self.hits.last().is_some_and(|hit| hit.at == at);
        if self.breakpoints.contains(&view.place) && !is_known {
            let why = Halted::Breakpoint(view.current);
            self.hits.push(Hit { at, why });
        }
        let next = self.follow.pick(view);
        if self.turns.last().is_none_or(|(_, who)| *who != next) {
            self.turns.push((at, next));
        }
        next
    }

    fn jumps(&mut self, view: &View<'_>) -> bool {
        self.follow.jumps(view)
    }

    fn tears(&mut self, who: &Context) -> bool {
        self.follow.tears(who)
    }

    fn is_replay(&self) -> bool {
        true
    }

    fn bound(&self, who: &Context) -> u64 {
        self.follow.bound(who)
    }
}
