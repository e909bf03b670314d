//! Interrupts as contexts: one for each vector of each processor, from its arrival on.
//!
//! While a handler is in progress, the processor's own context waits for it; while an interrupt is pending, its
//! context can be chosen wherever the processor admits it. What the hardware's priorities hold back waits.

use raddle_pc::machine::{Interrupts, Power};
use raddle_world::{ContextId, ContextTable, Liveness, WaitReason};

use super::{KernelWorld, context_of};

/// What the liveness of a processor's contexts depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    is_running: bool,
    executing: ContextId,
    pending: Option<u8>,
    /// Interrupts of all processors that have contexts.
    known: usize,
}

impl KernelWorld {
    /// Whether a scheduler decides when an interrupt is taken; if not, processors take it as soon as they can.
    pub fn schedule_interrupts(&mut self, wanted: bool) {
        self.schedules_interrupts = wanted;
        self.refresh_liveness();
    }

    pub(super) fn interrupt_mode(&self) -> Interrupts {
        if self.schedules_interrupts {
            Interrupts::Hold
        } else {
            Interrupts::Take
        }
    }

    /// The own context of the processor that a context runs on.
    pub fn processor_context(&self, who: ContextId) -> ContextId {
        self.state.contexts.get(who).parent.unwrap_or(who)
    }

    /// The processor that a context runs on.
    pub fn processor(&self, who: ContextId) -> usize {
        processor_and_vector(&self.state.contexts, who).0
    }

    /// The vector of an interrupt's context; none for a processor.
    pub(super) fn vector(&self, who: ContextId) -> Option<u8> {
        processor_and_vector(&self.state.contexts, who).1
    }

    /// The context whose instructions a processor executes now.
    pub(super) fn executing(&mut self, cpu: usize) -> ContextId {
        if !self.schedules_interrupts {
            return context_of(cpu);
        }
        match self.machine.interrupts(cpu).last() {
            Some(active) => {
                let vector = active.vector;
                self.interrupt_context(cpu, vector)
            }
            None => context_of(cpu),
        }
    }

    fn interrupt_context(&mut self, cpu: usize, vector: u8) -> ContextId {
        let contexts = &mut self.state.contexts;
        *self
            .state
            .interrupts
            .entry((cpu, vector))
            .or_insert_with(|| {
                let name = format!("CPU {cpu} interrupt {vector:#x}");
                contexts.create_at(context_of(cpu), u32::from(vector), name.into())
            })
    }

    /// How many interrupts could be taken now, over all processors.
    pub(super) fn dispatchable(&self) -> usize {
        (0..self.machine.cpus())
            .filter(|cpu| self.machine.dispatchable(*cpu).is_some())
            .count()
    }

    /// Liveness of all contexts, as it follows from the machine.
    pub(super) fn refresh_liveness(&mut self) {
        for cpu in 0..self.machine.cpus() {
            let is_running = if self.schedules_interrupts {
                self.make_interrupt_contexts(cpu);
                self.machine.power(cpu) == Power::Running
            } else {
                self.machine.is_runnable(cpu)
            };
            let executing = self.executing(cpu);
            let pending = self.machine.dispatchable(cpu);
            let state = &mut self.state;
            let now = Told {
                is_running,
                executing,
                pending,
                known: state.interrupts.len(),
            };
            if state.told[cpu].replace(now) == Some(now) {
                continue;
            }
            let own = context_of(cpu);
            state
                .contexts
                .set_liveness(own, liveness(executing == own && is_running));
            for ((_, vector), id) in state.interrupts.range((cpu, 0)..=(cpu, u8::MAX)) {
                let can_run = executing == *id && is_running || pending == Some(*vector);
                state.contexts.set_liveness(*id, liveness(can_run));
            }
        }
    }

    /// Contexts for what has arrived at a processor.
    fn make_interrupt_contexts(&mut self, cpu: usize) {
        let apic = self.machine.bus().local_apic(cpu);
        if apic.requested_count() == 0 {
            return;
        }
        let requested: Vec<u8> = apic.requested().collect();
        for vector in requested {
            self.interrupt_context(cpu, vector);
        }
    }
}

/// The processor that a context runs on, and its vector if it is an interrupt.
pub(crate) fn processor_and_vector(contexts: &ContextTable, who: ContextId) -> (usize, Option<u8>) {
    let context = contexts.get(who);
    match context.parent {
        Some(cpu) => {
            let vector = context.path.last();
            let vector = vector.and_then(|element| u8::try_from(*element).ok());
            (cpu.0 as usize, vector)
        }
        None => (who.0 as usize, None),
    }
}

fn liveness(is_runnable: bool) -> Liveness {
    if is_runnable {
        Liveness::Runnable
    } else {
        Liveness::Blocked(WaitReason::Interrupt)
    }
}
