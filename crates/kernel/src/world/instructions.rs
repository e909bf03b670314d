//! Every instruction of a run, one by one.

use std::ops::Range;

use raddle_pc::machine::{Bounds, MachineStop, Ran};
use raddle_world::{ContextId, Inspect};

use super::KernelWorld;

/// Bytes of an instruction at most.
pub(crate) const INSTRUCTION_MAX: usize = 15;

/// One instruction, or one iteration of a repeated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Instructions of all processors since the start line.
    pub at: u64,
    pub context: ContextId,
    /// Steps of the context before it.
    pub step: u64,
    pub pc: u64,
    /// The code at its address; zeros behind a page that is not there.
    pub bytes: [u8; INSTRUCTION_MAX],
    /// General registers (by their numbers) that it changed, with their new values.
    pub changed: Vec<(usize, u64)>,
}

/// Which instructions to write down, and those that were.
#[derive(Debug, Clone)]
pub(super) struct Instructions {
    wanted: Range<u64>,
    made: u64,
    noted: Vec<Executed>,
}

impl KernelWorld {
    /// Writes down these instructions of the next run, counted from the start line over all processors. Such a run is
    /// the same as any other, and many times slower.
    pub fn note_instructions(&mut self, wanted: Range<u64>) {
        self.instructions = Some(Instructions {
            wanted,
            made: 0,
            noted: Vec::new(),
        });
    }

    /// The instructions that were written down.
    pub fn take_instructions(&mut self) -> Vec<Executed> {
        let taken = self.instructions.take();
        taken.map_or_else(Vec::new, |taken| taken.noted)
    }

    /// Runs a processor as the machine does, instruction by instruction if they are wanted.
    pub(super) fn run_machine(&mut self, who: ContextId, cpu: usize, bounds: Bounds) -> Ran {
        if self.instructions.is_none() {
            return self.machine.run(cpu, bounds);
        }
        let mut all = Ran {
            stop: MachineStop::Steps,
            steps: 0,
            passed: 0,
        };
        let mut left = bounds;
        loop {
            // What happens before an instruction, such as taking an interrupt, is done first.
            let ready = self.machine.run(cpu, Bounds { steps: 0, ..left });
            if ready.stop != MachineStop::Steps || left.steps == 0 {
                return Ran {
                    stop: ready.stop,
                    ..all
                };
            }
            let step = self.state.contexts.get(who).steps + all.steps;
            let ran = self.note_step(who, step, cpu, Bounds { steps: 1, ..left });
            all.steps += ran.steps;
            all.passed += ran.passed;
            left.steps -= ran.steps;
            left.pass_points -= ran.passed;
            left.skip_point &= ran.steps == 0;
            if ran.stop != MachineStop::Steps {
                return Ran {
                    stop: ran.stop,
                    ..all
                };
            }
        }
    }

    /// Makes one step and writes it down.
    fn note_step(&mut self, who: ContextId, step: u64, cpu: usize, bounds: Bounds) -> Ran {
        let is_wanted =
            (self.instructions.as_ref()).is_some_and(|notes| notes.wanted.contains(&notes.made));
        let before = is_wanted.then(|| {
            let registers = self.machine.cpu(cpu).general().to_vec();
            let pc = self.machine.cpu(cpu).rip;
            (pc, self.code_at(who, pc), registers)
        });
        let ran = self.machine.run(cpu, bounds);
        let Some(notes) = &mut self.instructions else {
            return ran;
        };
        if let Some((pc, bytes, registers)) = before.filter(|_| ran.steps > 0) {
            let after = self.machine.cpu(cpu).general();
            let both = registers.iter().zip(after).enumerate();
            let changed = both.filter(|(_, (old, new))| old != new);
            notes.noted.push(Executed {
                at: notes.made,
                context: who,
                step,
                pc,
                bytes,
                changed: changed.map(|(number, (_, new))| (number, *new)).collect(),
            });
        }
        notes.made += ran.steps;
        ran
    }

    /// The bytes of the instruction at an address, as a context sees it.
    pub(crate) fn code_at(&mut self, who: ContextId, pc: u64) -> [u8; INSTRUCTION_MAX] {
        let mut bytes = [0; INSTRUCTION_MAX];
        self.read_bytes(who, pc, &mut bytes);
        bytes
    }
}
