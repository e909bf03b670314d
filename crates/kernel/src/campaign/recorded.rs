//! A recorded run of a kernel, for debuggers.

use raddle_pc::machine::Power;
use raddle_sched::Order;
use raddle_sched::travel::Rerun;
use raddle_trace::Schedule;
use raddle_world::ContextId;

use super::names::Names;
use super::run::Rules;
use super::session::Session;
use crate::world::KernelWorld;

/// A recorded run.
#[derive(Debug)]
pub struct Recorded<'a> {
    session: Session<'a>,
    schedule: &'a Schedule,
    rules: Rules,
}

impl<'a> Recorded<'a> {
    pub fn new(session: Session<'a>, schedule: &'a Schedule, rules: Rules) -> Self {
        Self {
            session,
            schedule,
            rules,
        }
    }

    /// The names of its functions.
    pub fn names(&self) -> Names<'a> {
        Names::of(&self.session)
    }
}

impl Rerun for Recorded<'_> {
    type World = KernelWorld;

    fn order(&self) -> Order {
        Order::Schedule(self.schedule.clone(), self.rules.limits())
    }

    fn world(&self) -> &KernelWorld {
        &self.session.world
    }

    fn world_mut(&mut self) -> &mut KernelWorld {
        &mut self.session.world
    }

    fn rewind(&mut self) {
        self.session.restore();
        self.rules.apply(&mut self.session.world);
    }

    /// The processor, its thread of the test, and what keeps it from going on there.
    fn label(&self, thread: ContextId) -> String {
        let world = &self.session.world;
        let cpu = world.processor(thread);
        let machine = world.machine();
        let mut label = self.session.label(cpu);
        if let Some(active) = machine.interrupts(cpu).last() {
            label.push_str(&format!(", interrupt {:#x}", active.vector));
        }
        if machine.power(cpu) != Power::Running {
            label.push_str(", halted");
        }
        label
    }
}
