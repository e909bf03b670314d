//! The plain scheduler: processors in turn. For booting, and for whatever need not be explored.

use super::run::Bounds;
use super::{Machine, MachineStop};

/// Steps of one turn.
const TURN: u64 = 20_000;

impl Machine {
    /// Runs all processors in turn until one of them stops for something that the caller must see, or until
    /// `steps_max` steps were made in all. Gives who stopped and why.
    pub fn run_all(&mut self, first: usize, steps_max: u64) -> (usize, MachineStop) {
        let mut left = steps_max;
        let mut cpu = first;
        while left > 0 {
            let Some(next) = self.next_runnable(cpu) else {
                if self.skip_to_timer() {
                    continue;
                }
                return (cpu, MachineStop::Idle);
            };
            cpu = next;
            let bounds = Bounds {
                stop_at_pause: self.others_can_run(cpu),
                ..Bounds::steps(TURN.min(left))
            };
            let ran = self.run(cpu, bounds);
            left -= ran.steps;
            match ran.stop {
                MachineStop::Steps | MachineStop::Idle | MachineStop::Pause => {
                    cpu = (cpu + 1) % self.cpus();
                }
                stop => return (cpu, stop),
            }
        }
        (cpu, MachineStop::Steps)
    }

    fn others_can_run(&self, cpu: usize) -> bool {
        (0..self.cpus()).any(|other| other != cpu && self.is_runnable(other))
    }

    /// The first processor from `cpu` on that can make a step.
    fn next_runnable(&self, cpu: usize) -> Option<usize> {
        (0..self.cpus())
            .map(|offset| (cpu + offset) % self.cpus())
            .find(|cpu| self.is_runnable(*cpu))
    }

    /// Lets time jump to the next timer; false if there is none.
    pub fn skip_to_timer(&mut self) -> bool {
        let Some(at) = self.bus.next_event() else {
            return false;
        };
        self.now = self.now.max(at);
        self.bus.advance(self.now);
        true
    }
}
