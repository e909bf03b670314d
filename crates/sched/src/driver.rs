//! The loop: asks the scheduler, runs the chosen context to its next stop, writes down every deviation from
//! the default order.
//!
//! What the default order does must not depend on how a run is cut into slices, since a replay cuts it
//! differently: it depends only on blocking, yielding and on the steps since the last switch.

use raddle_stdx::width::to_u64;
use raddle_trace::{Deviation, Limits, Position, Schedule};
use raddle_world::{ContextId, Event, Liveness, Stop, Until, World};

use crate::scheduler::{Reason, Scheduler, View};

/// Time jumps in a row that wake nobody: only periodic timers that nobody hears are left.
const IDLE_JUMPS_MAX: u32 = 10_000;
/// Register states remembered to notice a loop without progress.
const SPIN_MEMORY: usize = 8;
/// Length of a turn in the fair phase.
const FAIR_TURN: u64 = 5_000;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The first process ended with this wait status.
    Exited { status: i32 },
    /// Nobody can ever run again.
    Stuck,
    /// It did not end within the limit, although everybody got their turn in the last half.
    Hanging,
    /// The program needs something that the world does not have.
    Unsupported(String),
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
    /// Stops of each context, by its number.
    pub stops: Vec<u64>,
    pub steps: u64,
}

/// Runs a world to its end. `limits.steps` is split: in its second half everybody gets turns, so that a run
/// that still does not end hangs for no fault of the scheduler. `sink` gets the events after each slice.
pub fn drive<W: World>(
    world: &mut W,
    scheduler: &mut dyn Scheduler,
    limits: Limits,
    sink: &mut dyn FnMut(&mut W, &[Event]),
) -> Drive {
    let mut state = Driving::new(world, limits);
    let end = loop {
        if !state.refresh(world) {
            break End::Stuck;
        }
        let next = state.choose(world, scheduler);
        match state.run(world, scheduler, next) {
            Stop::WorldDone { status } => {
                pass_events(world, sink);
                break End::Exited { status };
            }
            Stop::Unsupported(text) => break End::Unsupported(text),
            _ => {}
        }
        pass_events(world, sink);
        if state.drive.steps >= limits.steps {
            break End::Hanging;
        }
    };
    Drive { end, ..state.drive }
}

fn pass_events<W: World>(world: &mut W, sink: &mut dyn FnMut(&mut W, &[Event])) {
    let events = world.take_events();
    if !events.is_empty() {
        sink(world, &events);
    }
    world.recycle_events(events);
}

struct Driving {
    drive: Drive,
    limits: Limits,
    reason: Reason,
    since_switch: u64,
    runnable: Vec<ContextId>,
    /// For each context: step count at which it last blocked, and how often there.
    blocks: Vec<(u64, u32)>,
    /// Register states of the current context since it was switched to.
    seen: Vec<u64>,
}

impl Driving {
    fn new<W: World>(world: &W, limits: Limits) -> Self {
        let current = world.contexts().runnable().next().unwrap_or(ContextId(0));
        let steps = world.contexts().get(current).steps;
        let phase = if world.is_entering_call(current) {
            0
        } else {
            Position::PLAIN
        };
        Self {
            drive: Drive {
                end: End::Stuck,
                schedule: Schedule::default(),
                last: (current, Position { steps, phase }),
                decisions: 0,
                switches: 0,
                stops: Vec::new(),
                steps: 0,
            },
            limits,
            reason: Reason::Start,
            since_switch: 0,
            runnable: Vec::new(),
            blocks: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Finds out who can run, letting time pass if nobody can; false if nobody ever can.
    fn refresh<W: World>(&mut self, world: &mut W) -> bool {
        for _ in 0..IDLE_JUMPS_MAX {
            self.runnable.clear();
            self.runnable.extend(world.contexts().runnable());
            if !self.runnable.is_empty() {
                return true;
            }
            if !world.advance_time() {
                return false;
            }
        }
        false
    }

    fn choose<W: World>(&mut self, world: &W, scheduler: &mut dyn Scheduler) -> ContextId {
        let (current, at) = self.drive.last;
        let default = self.default_next(current);
        let view = View {
            current,
            at,
            reason: self.reason,
            runnable: &self.runnable,
            default,
            contexts: world.contexts(),
        };
        let mut next = scheduler.pick(&view);
        if self.is_fair_phase(scheduler) {
            next = self.fair_next(current);
        }
        assert!(
            self.runnable.contains(&next),
            "a scheduler picks somebody who can run"
        );
        if self.runnable.len() > 1 {
            self.drive.decisions += 1;
        }
        if next != default {
            let path = |id| world.contexts().get(id).path.to_vec();
            self.drive.schedule.deviations.push(Deviation {
                context: path(current),
                at,
                to: path(next),
            });
        }
        if next != current || self.reason == Reason::Starving {
            self.since_switch = 0;
        }
        if next != current {
            self.drive.switches += 1;
            self.seen.clear();
        }
        next
    }

    fn is_fair_phase(&self, scheduler: &dyn Scheduler) -> bool {
        !scheduler.is_replay() && self.drive.steps >= self.limits.steps / 2
    }

    fn fair_next(&self, current: ContextId) -> ContextId {
        let is_over = self.since_switch >= FAIR_TURN || self.reason.asks_for_another();
        if self.runnable.contains(&current) && !is_over {
            current
        } else {
            self.successor(current)
        }
    }

    /// Who goes on if nobody interferes.
    fn default_next(&self, current: ContextId) -> ContextId {
        let must_leave = matches!(self.reason, Reason::Yielded | Reason::Starving);
        if self.runnable.contains(&current) && !must_leave && self.reason != Reason::Blocked {
            current
        } else {
            self.successor(current)
        }
    }

    /// The runnable context after this one in the order of creation, round the circle.
    fn successor(&self, current: ContextId) -> ContextId {
        let next = self.runnable.iter().find(|id| **id > current);
        *next.unwrap_or(&self.runnable[0])
    }

    fn run<W: World>(&mut self, world: &mut W, scheduler: &dyn Scheduler, next: ContextId) -> Stop {
        let before = world.contexts().get(next).steps;
        let patience = self.limits.patience - self.since_switch;
        let bound = scheduler.bound(world.contexts().get(next));
        let fair = if self.is_fair_phase(scheduler) {
            FAIR_TURN
        } else {
            u64::MAX
        };
        let left = self.limits.steps - self.drive.steps;
        let steps_max = patience.min(bound).min(left).min(fair);
        let stop = world.run(next, Until::Sync { steps_max });
        let context = world.contexts().get(next);
        let steps = context.steps;
        let made = steps - before;
        self.since_switch += made;
        self.drive.steps += made;
        let index = next.0 as usize;
        if self.drive.stops.len() <= index {
            self.drive.stops.resize(index + 1, 0);
            self.blocks.resize(index + 1, (0, 0));
        }
        self.drive.stops[index] += 1;
        let is_blocked = matches!(context.liveness, Liveness::Blocked(_));
        let phase = if is_blocked {
            let block = &mut self.blocks[index];
            let count = if block.0 == steps { block.1 + 1 } else { 1 };
            *block = (steps, count);
            count
        } else if world.is_entering_call(next) {
            0
        } else {
            Position::PLAIN
        };
        self.drive.last = (next, Position { steps, phase });
        self.reason = self.reason_of(&stop, world, next);
        stop
    }

    fn reason_of<W: World>(&mut self, stop: &Stop, world: &W, who: ContextId) -> Reason {
        if self.since_switch >= self.limits.patience && !matches!(stop, Stop::Blocked | Stop::Done)
        {
            return Reason::Starving;
        }
        match *stop {
            Stop::Yielded => Reason::Yielded,
            Stop::Steps => Reason::Bound,
            Stop::Point { pc } => {
                if self.repeats(world.register_digest(who)) {
                    Reason::Spinning
                } else {
                    Reason::Point { pc }
                }
            }
            Stop::Sync => Reason::Sync,
            _ => Reason::Blocked,
        }
    }

    /// Whether this register state was seen a short while ago.
    fn repeats(&mut self, digest: u64) -> bool {
        if self.seen.contains(&digest) {
            self.seen.clear();
            return true;
        }
        if self.seen.len() == SPIN_MEMORY {
            self.seen.remove(0);
        }
        self.seen.push(digest);
        false
    }
}

/// Stops of a run by the paths of its contexts, for a profile.
impl Drive {
    pub fn stops_by_path<W: World>(&self, world: &W) -> Vec<(raddle_trace::Path, u64)> {
        let table = world.contexts();
        self.stops
            .iter()
            .zip(0..)
            .filter(|(count, _)| **count > 0)
            .map(|(count, id)| (table.get(ContextId(id)).path.to_vec(), *count))
            .collect()
    }

    /// Decisions that were not the default.
    pub fn deviations(&self) -> u64 {
        to_u64(self.schedule.len())
    }
}

#[cfg(test)]
mod tests;
