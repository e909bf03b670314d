//! A replay that can be stopped after any step and gone on with, and whose place can be kept.

use std::ops::ControlFlow;

use raddle_trace::{Limits, Schedule};
use raddle_world::{ContextId, Event, Site, Stop, World};

use super::{Driving, End, Policy};
use crate::follow::Follow;

/// How far a replay has come. A copy of it belongs to the state that the world had when it was taken: both together
/// are a place in the run from which it goes on.
#[derive(Debug, Clone)]
pub struct Replaying {
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
    /// Of a world that stands where its schedule begins.
    pub fn new<W: World>(world: &W, schedule: &Schedule, limits: Limits) -> Self {
        let policy = Policy {
            has_classes: false,
            ..Policy::from(limits)
        };
        Self {
            driving: Driving::new(world, policy, true),
            follow: Follow::new(schedule),
        }
    }

    /// Steps of the run so far.
    pub fn steps(&self) -> u64 {
        self.driving.drive.steps
    }

    /// Who ran last.
    pub fn last(&self) -> ContextId {
        self.driving.drive.last.0
    }

    /// Goes on until the run has made so many steps, it ends, or `look` breaks it off; it is asked after each slice.
    /// Gives how the run ended, if it did.
    pub fn go_on<W: World>(
        &mut self,
        world: &mut W,
        to: u64,
        look: &mut dyn FnMut(&mut W, Slice<'_>) -> ControlFlow<()>,
    ) -> Option<End> {
        self.driving.limits.steps = to;
        while self.steps() < to {
            if !self.driving.refresh(world) {
                return Some(End::Stuck);
            }
            let began = self.steps();
            let next = self.driving.choose(world, &mut self.follow);
            let stop = self.driving.run(world, &mut self.follow, next);
            let end = match stop {
                Stop::WorldDone { status } => Some(End::Exited { status }),
                Stop::Unsupported(what) => Some(End::Unsupported(what)),
                _ => None,
            };
            let events = world.take_events();
            let slice = Slice {
                context: next,
                began,
                steps: self.steps(),
                site: self.driving.site,
                events: &events,
            };
            let flow = look(world, slice);
            world.recycle_events(events);
            // Nothing of this is asked for in a replay, and each checkpoint would keep a copy.
            self.driving.drive.trail.clear();
            self.driving.drive.interrupted.clear();
            self.driving.drive.schedule.deviations.clear();
            self.driving.left.fill(None);
            if end.is_some() {
                return end;
            }
            if flow.is_break() {
                return None;
            }
        }
        None
    }
}
