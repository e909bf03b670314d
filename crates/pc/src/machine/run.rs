//! Running one processor.

use raddle_mem::GuestAddr;
use raddle_x86::{Cpu, Shutdown, SystemExit, SystemOutcome, SystemSlice, rflags};

use super::{Machine, Power};
use crate::devices::Request;

/// The vector of a non-maskable interrupt.
const NMI: u8 = 2;

/// Why a processor stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineStop {
    /// The steps asked for were made.
    Steps,
    /// It waits for an interrupt, or was never started.
    Idle,
    /// It made a PAUSE.
    Pause,
    /// It stands before a flagged program point.
    Point(GuestAddr),
    /// It called its host; the registers hold the arguments, RIP is behind the call.
    Hypercall,
    /// The observation log is full.
    LogFull,
    /// The guest asked for a reset of the machine.
    Reset,
    /// A fault while a double fault was delivered.
    Shutdown,
    /// The engine does not know this instruction.
    Unsupported { rip: u64, bytes: Vec<u8> },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub stop: MachineStop,
    pub steps: u64,
}

/// What a run of a processor may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub steps: u64,
    pub stop_at_pause: bool,
    pub skip_point: bool,
}

/// Whether a processor takes interrupts now.
fn admits_interrupts(cpu: &Cpu) -> bool {
    cpu.system_flags & rflags::IF != 0 && !cpu.system.interrupt_shadow
}

impl Machine {
    /// Runs a processor for at most so many steps, taking interrupts as soon as it admits them.
    pub fn run(&mut self, cpu: usize, bounds: Bounds) -> Ran {
        let mut left = bounds.steps;
        let mut skip_point = bounds.skip_point;
        let stop = loop {
            if self.serve_requests() {
                break MachineStop::Reset;
            }
            self.bus.advance(self.now);
            if self.take_interrupt(cpu).is_err() {
                break MachineStop::Shutdown;
            }
            if self.cores[cpu].power != Power::Running {
                break MachineStop::Idle;
            }
            if left == 0 {
                break MachineStop::Steps;
            }
            let outcome = self.slice(cpu, left, bounds.stop_at_pause, skip_point);
            skip_point &= outcome.steps == 0;
            left -= outcome.steps;
            if let Some(stop) = self.stop_of(cpu, outcome.exit) {
                break stop;
            }
        };
        // What the last instruction asked of the machine is done before somebody else runs.
        if stop != MachineStop::Reset && self.serve_requests() {
            return Ran {
                stop: MachineStop::Reset,
                steps: bounds.steps - left,
            };
        }
        Ran {
            stop,
            steps: bounds.steps - left,
        }
    }

    /// One run of the engine, which ends before the next timer.
    fn slice(
        &mut self,
        cpu: usize,
        left: u64,
        stop_at_pause: bool,
        skip_point: bool,
    ) -> SystemOutcome {
        let until_timer = self
            .bus
            .next_event()
            .map_or(u64::MAX, |at| at.saturating_sub(self.now).max(1));
        let core = &mut self.cores[cpu];
        let slice = SystemSlice {
            steps: left.min(until_timer),
            tsc: self.now,
            skip_point,
            wants_window: self.bus.pending_interrupt(cpu).is_some(),
            stop_at_pause,
        };
        let outcome = self
            .engine
            .run(cpu, &mut core.cpu, &mut self.frames, &mut self.bus, slice);
        core.steps += outcome.steps;
        self.now += outcome.steps;
        outcome
    }

    fn stop_of(&mut self, cpu: usize, exit: SystemExit) -> Option<MachineStop> {
        match exit {
            SystemExit::StepsDone | SystemExit::Device | SystemExit::Window => None,
            SystemExit::Halt => {
                self.cores[cpu].power = Power::Halted;
                None
            }
            SystemExit::Pause => Some(MachineStop::Pause),
            SystemExit::Point(pc) => Some(MachineStop::Point(pc)),
            SystemExit::Hypercall => Some(MachineStop::Hypercall),
            SystemExit::LogFull => Some(MachineStop::LogFull),
            SystemExit::Shutdown => Some(MachineStop::Shutdown),
            SystemExit::Unsupported { bytes } => Some(MachineStop::Unsupported {
                rip: self.cores[cpu].cpu.rip,
                bytes,
            }),
        }
    }

    /// Lets a processor take what waits for it, if it admits it; this also ends HLT.
    fn take_interrupt(&mut self, cpu: usize) -> Result<(), Shutdown> {
        let core = &self.cores[cpu];
        if core.power == Power::Off {
            return Ok(());
        }
        let vector = if core.nmi {
            self.cores[cpu].nmi = false;
            NMI
        } else if self.bus.pending_interrupt(cpu).is_some() && admits_interrupts(&core.cpu) {
            match self.bus.acknowledge(cpu) {
                Some(vector) => vector,
                None => return Ok(()),
            }
        } else {
            return Ok(());
        };
        let core = &mut self.cores[cpu];
        core.power = Power::Running;
        self.engine
            .interrupt(cpu, &mut core.cpu, &mut self.frames, &mut self.bus, vector)
    }

    /// Does what devices asked of the machine; true if it is to be reset.
    fn serve_requests(&mut self) -> bool {
        if !self.bus.has_requests() {
            return false;
        }
        let mut resets = false;
        for request in self.bus.take_requests() {
            match request {
                Request::Init { cpu } => self.cores[cpu].power = Power::Off,
                Request::Startup { cpu, page } if self.cores[cpu].power == Power::Off => {
                    self.cores[cpu].start(cpu, page);
                }
                Request::Startup { .. } => {}
                Request::Nmi { cpu } => self.cores[cpu].nmi = true,
                Request::Reset => resets = true,
            }
        }
        resets
    }

    /// Whether a processor could make a step now, or after taking what is pending.
    pub fn is_runnable(&self, cpu: usize) -> bool {
        let core = &self.cores[cpu];
        match core.power {
            Power::Off => false,
            Power::Running => true,
            Power::Halted => {
                core.nmi
                    || self.bus.pending_interrupt(cpu).is_some() && admits_interrupts(&core.cpu)
            }
        }
    }
}
