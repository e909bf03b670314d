//! The plain scheduler: round robin with a quantum that the seed chooses.

use raddle_world::{Choice, ContextId, Event, Stop, Unsupported, Until, World, successor};

use crate::world::LinuxWorld;

/// Longest slice in steps.
const QUANTUM_MAX: u64 = 100_000;
/// Time jumps in a row that wake nobody: only periodic timers that nobody hears are left.
const IDLE_JUMPS_MAX: u32 = 100_000;

/// When to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Instructions of all threads together.
    pub instructions: Option<u64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The first process ended with this wait status.
    Exited { status: i32 },
    /// Nobody can ever run again; for each thread what it waits for and its stack.
    Deadlock { threads: Vec<String> },
    /// The program needs something that we do not have; or a limit of memory or processes was hit.
    Unsupported(Box<Unsupported>),
    /// The limit of instructions was reached.
    OutOfInstructions { limit: u64 },
    /// The caller wanted to stop.
    Stopped,
}

/// What the one who hears of the events of a slice wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    GoOn,
    Stop,
    /// Nobody reads this output of the program any more: 1 or 2.
    CloseOutput(i32),
}

/// Round robin over runnable contexts.
#[derive(Debug, Clone, Default)]
pub struct Plain {
    last: Option<ContextId>,
}

impl Plain {
    /// Runs until the world ends. After each slice `sink` gets the events.
    pub fn run(
        &mut self,
        world: &mut LinuxWorld,
        limits: Limits,
        sink: &mut dyn FnMut(&[Event]) -> Reaction,
    ) -> End {
        self.run_watched(world, limits, &mut |_, events| sink(events))
    }

    /// The same; `sink` can look at the world, too.
    pub fn run_watched(
        &mut self,
        world: &mut LinuxWorld,
        limits: Limits,
        sink: &mut dyn FnMut(&mut LinuxWorld, &[Event]) -> Reaction,
    ) -> End {
        let mut idle_jumps = 0;
        loop {
            let Some(next) = self.next(world) else {
                idle_jumps += 1;
                if idle_jumps > IDLE_JUMPS_MAX || !world.advance_time() {
                    return End::Deadlock {
                        threads: world.describe_stacks(),
                    };
                }
                continue;
            };
            idle_jumps = 0;
            self.last = Some(next);
            let mut steps_max = 1 + world.choose(Choice::Quantum {
                steps_max: QUANTUM_MAX,
            });
            if let Some(limit) = limits.instructions {
                let made = world.statistics().steps;
                if made >= limit {
                    return End::OutOfInstructions { limit };
                }
                steps_max = steps_max.min(limit - made);
            }
            let stop = world.run(next, Until::Steps(steps_max));
            let events = world.take_events();
            let reaction = sink(world, &events);
            world.recycle_events(events);
            if let Reaction::CloseOutput(descriptor) = reaction {
                world.close_output(descriptor);
            }
            match stop {
                Stop::WorldDone { status } => return End::Exited { status },
                Stop::Unsupported(what) => return End::Unsupported(what),
                _ if reaction == Reaction::Stop => return End::Stopped,
                _ => {}
            }
        }
    }

    /// The runnable context that follows the last one in the order of creation.
    fn next(&self, world: &LinuxWorld) -> Option<ContextId> {
        successor(world.contexts().runnable(), self.last)
    }
}
