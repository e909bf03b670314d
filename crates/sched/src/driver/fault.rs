//! Faults that the current context meets before it goes on.

use raddle_trace::{Deviation, Turn};
use raddle_world::World;

use super::Driving;
use crate::scheduler::Scheduler;

impl Driving {
    /// Lets the current context meet a fault in what it is about to do, if the scheduler wants one.
    pub(super) fn fault<W: World>(&mut self, world: &mut W, scheduler: &mut dyn Scheduler) {
        let (current, at) = self.drive.last;
        let Some(faults) = scheduler.faults() else {
            return;
        };
        let possible = world.faulting().map(|world| world.possible(current));
        let Some(possible) = possible.filter(|possible| !possible.is_empty()) else {
            return;
        };
        let default = self.default_next(current);
        let Some(fault) = faults.fault(&self.view(world, default), &possible) else {
            return;
        };
        if world
            .faulting()
            .is_some_and(|world| world.meet(current, fault))
        {
            self.drive.schedule.deviations.push(Deviation {
                context: world.contexts().get(current).path.to_vec(),
                at,
                turn: Turn::Fault(fault),
            });
        }
    }
}
