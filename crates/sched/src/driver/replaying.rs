//! A replay that can be stopped after any step and gone on with, and whose place can be kept.

use std::ops::ControlFlow;

use raddle_trace::{Limits, Outside, Schedule};
use raddle_world::{ContextId, Event, Site, Stop, Until, World};

use super::{Driving, End, Policy};
use crate::follow::Follow;
use crate::plain::{Plain, end_of};

/// What decides who runs when in a recorded run.
#[derive(Debug, Clone)]
pub enum Order {
    /// A schedule, and the default order where it says nothing.
    Schedule(Schedule, Limits),
    /// The plain order of an ordinary run, to which this happened from outside. It makes so many steps at most.
    Plain { outside: Outside, steps_max: u64 },
}

impl Order {
    /// Steps of the run at most.
    pub fn steps_max(&self) -> u64 {
        match self {
            Self::Schedule(_, limits) => limits.steps,
            Self::Plain { steps_max, .. } => *steps_max,
        }
    }
}

/// How far a replay has come. A copy of it belongs to the state that the world had when it was taken: both together
/// are a place in the run from which it goes on.
#[derive(Debug, Clone)]
pub struct Replaying {
    way: Way,
}

#[derive(Debug, Clone)]
enum Way {
    Scheduled(Box<Scheduled>),
    Plain(Plain),
}

#[derive(Debug, Clone)]
struct Scheduled {
    driving: Driving,
    follow: Follow,
}

/// What one context did until it was stopped.
#[derive(Debug)]
pub struct Slice<'a> {
    pub context: ContextId,
    /// Steps of the whole run when it began, and now.
    pub began: u64,
    pub steps: u64,
    /// Where the context stands, if it does.
    pub site: Site,
    pub events: &'a [Event],
}

impl Replaying {
    /// Of a world that stands where its order begins.
    pub fn new<W: World>(world: &W, order: &Order) -> Self {
        let way = match order {
            Order::Schedule(schedule, limits) => {
                Way::Scheduled(Box::new(Scheduled::new(world, schedule, *limits)))
            }
            Order::Plain { outside, .. } => Way::Plain(Plain::following(outside.clone())),
        };
        Self { way }
    }

    /// Steps of the run so far.
    pub fn steps(&self) -> u64 {
        match &self.way {
            Way::Scheduled(scheduled) => scheduled.driving.drive.steps,
            Way::Plain(plain) => plain.steps(),
        }
    }

    /// Who ran last.
    pub fn last(&self) -> ContextId {
        match &self.way {
            Way::Scheduled(scheduled) => scheduled.driving.drive.last.0,
            Way::Plain(plain) => plain.last(),
        }
    }

    /// Goes on until the run has made so many steps, it ends, or `look` breaks it off; it is asked after each slice.
    /// Gives how the run ended, if it did.
    pub fn go_on<W: World>(
        &mut self,
        world: &mut W,
        to: u64,
        look: &mut dyn FnMut(&mut W, Slice<'_>) -> ControlFlow<()>,
    ) -> Option<End> {
        while self.steps() < to {
            let began = self.steps();
            let slice = match &mut self.way {
                Way::Scheduled(scheduled) => scheduled.slice(world, to),
                Way::Plain(plain) => plain.slice(world, to, |steps_max| Until::Point { steps_max }),
            };
            let (context, stop) = match slice {
                Ok(slice) => slice,
                Err(end) => return Some(end),
            };
            let is_standing = matches!(stop, Stop::Point { .. } | Stop::Sync | Stop::Steps);
            let end = end_of(stop);
            let events = world.take_events();
            let slice = Slice {
                context,
                began,
                steps: self.steps(),
                site: match is_standing {
                    true => world.site(context),
                    false => Site::NOWHERE,
                },
                events: &events,
            };
            let flow = look(world, slice);
            world.recycle_events(events);
            if end.is_some() {
                return end;
            }
            if matches!(&self.way, Way::Plain(plain) if plain.is_ended()) {
                return Some(End::Abandoned);
            }
            if flow.is_break() {
                return None;
            }
        }
        None
    }
}

impl Scheduled {
    fn new<W: World>(world: &W, schedule: &Schedule, limits: Limits) -> Self {
        let policy = Policy {
            has_classes: false,
            ..Policy::from(limits)
        };
        Self {
            driving: Driving::new(world, policy, true),
            follow: Follow::new(schedule),
        }
    }

    /// Runs one context on, as far as its order lets it.
    fn slice<W: World>(&mut self, world: &mut W, to: u64) -> Result<(ContextId, Stop), End> {
        let driving = &mut self.driving;
        driving.limits.steps = to;
        if !driving.refresh(world) {
            return Err(End::Stuck);
        }
        let next = driving.choose(world, &mut self.follow);
        let stop = driving.run(world, &mut self.follow, next);
        // Nothing of this is asked for in a replay, and each checkpoint would keep a copy.
        driving.drive.trail.clear();
        driving.drive.interrupted.clear();
        driving.drive.schedule.deviations.clear();
        driving.left.fill(None);
        Ok((next, stop))
    }
}
