//! Running one processor.

use raddle_mem::GuestAddr;
use raddle_x86::{Cpu, Reg, SystemExit, SystemOutcome, SystemSlice, rflags};

use super::{ActiveInterrupt, Machine, Power};
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
    /// With [`Interrupts::Hold`]: an interrupt has arrived at some processor.
    Arrival,
    /// With [`Interrupts::Hold`]: the processor admits the interrupt that waits for it.
    Window,
    /// With [`Interrupts::Hold`]: the innermost interrupt in progress is over.
    InterruptDone,
    /// With [`Bounds::stop_at_line`]: the guest has just ended a line of its console.
    Line,
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
    /// Program points that were passed without a stop.
    pub passed: u64,
}

/// Who decides when a pending interrupt is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interrupts {
    /// The processor, as soon as it admits it.
    #[default]
    Take,
    /// The caller, with [`Machine::dispatch`]; runs stop where something changes for that decision.
    Hold,
}

/// What a run of a processor may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub steps: u64,
    pub stop_at_pause: bool,
    /// Stop when the guest ends a line of its console, and before it does anything else.
    pub stop_at_line: bool,
    /// Do not stop at a program point on the very first instruction.
    pub skip_point: bool,
    /// Program points that may be passed without a stop.
    pub pass_points: u64,
    pub interrupts: Interrupts,
}

impl Bounds {
    /// At most so many steps, interrupts as they come, no stop at PAUSE.
    pub fn steps(steps: u64) -> Self {
        Self {
            steps,
            stop_at_pause: false,
            stop_at_line: false,
            skip_point: false,
            pass_points: 0,
            interrupts: Interrupts::Take,
        }
    }
}

/// Whether a processor takes interrupts now.
fn admits_interrupts(cpu: &Cpu) -> bool {
    cpu.system_flags & rflags::IF != 0 && !cpu.system.interrupt_shadow
}

impl Machine {
    /// Runs a processor for at most so many steps.
    pub fn run(&mut self, cpu: usize, bounds: Bounds) -> Ran {
        let mut left = bounds;
        let stop = self.run_slices(cpu, &mut left);
        // What the last instruction asked of the machine is done before another processor runs.
        let resets = stop != MachineStop::Reset && self.serve_requests();
        Ran {
            stop: if resets { MachineStop::Reset } else { stop },
            steps: bounds.steps - left.steps,
            passed: bounds.pass_points - left.pass_points,
        }
    }

    /// Runs until something stops the processor; `left` is what remains of the bounds.
    fn run_slices(&mut self, cpu: usize, left: &mut Bounds) -> MachineStop {
        let holds = left.interrupts == Interrupts::Hold;
        let mut arrived = if holds { self.arrived() } else { 0 };
        // A window that was open before the run is no news.
        let mut was_open = self.dispatchable(cpu).is_some();
        loop {
            if self.serve_requests() {
                return MachineStop::Reset;
            }
            self.bus.advance(self.now);
            if self.cores[cpu].nmi {
                self.dispatch(cpu);
            }
            if holds {
                let now = self.arrived();
                if now > arrived {
                    return MachineStop::Arrival;
                }
                arrived = now;
                let is_open = self.dispatchable(cpu).is_some();
                if is_open && !was_open {
                    return MachineStop::Window;
                }
                was_open = is_open;
            } else if self.dispatchable(cpu).is_some() {
                self.dispatch(cpu);
            }
            if self.is_shut_down(cpu) {
                return MachineStop::Shutdown;
            }
            if self.cores[cpu].power != Power::Running {
                return MachineStop::Idle;
            }
            if left.steps == 0 {
                return MachineStop::Steps;
            }
            let wants_window = self.bus.pending_interrupt(cpu).is_some() && !was_open;
            let outcome = self.slice(cpu, wants_window, *left);
            left.skip_point &= outcome.steps == 0;
            left.steps -= outcome.steps;
            left.pass_points -= outcome.passed;
            if let Some(stop) = self.stop_of(cpu, outcome.exit, holds) {
                return stop;
            }
            if left.stop_at_line && self.bus.ends_a_line() {
                return MachineStop::Line;
            }
        }
    }

    /// Interrupts that have arrived anywhere and were not taken yet.
    fn arrived(&self) -> usize {
        (0..self.cpus())
            .map(|cpu| {
                usize::from(self.cores[cpu].nmi) + self.bus.local_apic(cpu).requested_count()
            })
            .sum()
    }

    /// One run of the engine, which ends before the next timer.
    fn slice(&mut self, cpu: usize, wants_window: bool, bounds: Bounds) -> SystemOutcome {
        let until_timer = self
            .bus
            .next_event()
            .map_or(u64::MAX, |at| at.saturating_sub(self.now).max(1));
        let core = &mut self.cores[cpu];
        let slice = SystemSlice {
            steps: bounds.steps.min(until_timer),
            tsc: self.now,
            skip_point: bounds.skip_point,
            pass_points: bounds.pass_points,
            wants_window,
            stop_at_pause: bounds.stop_at_pause,
            interrupt_frame: core.interrupts.last().map(|active| active.frame),
        };
        let first_step = core.steps;
        let outcome = self
            .engine
            .run(cpu, &mut core.cpu, &mut self.frames, &mut self.bus, slice);
        core.steps += outcome.steps;
        self.now += outcome.steps;
        self.collect_accesses(cpu, first_step);
        outcome
    }

    fn stop_of(&mut self, cpu: usize, exit: SystemExit, holds: bool) -> Option<MachineStop> {
        match exit {
            SystemExit::StepsDone
            | SystemExit::Device
            | SystemExit::Window
            | SystemExit::LogFull => None,
            SystemExit::Halt => {
                let core = &mut self.cores[cpu];
                core.power = Power::Halted;
                // A processor that waits is in no handler: what was in progress has switched to another stack.
                core.interrupts.clear();
                None
            }
            SystemExit::InterruptDone => {
                let core = &mut self.cores[cpu];
                if core.cpu.system.cpl == 3 {
                    core.interrupts.clear();
                } else {
                    core.interrupts.pop();
                }
                holds.then_some(MachineStop::InterruptDone)
            }
            SystemExit::Pause => Some(MachineStop::Pause),
            SystemExit::Point(pc) => Some(MachineStop::Point(pc)),
            SystemExit::Hypercall => Some(MachineStop::Hypercall),
            SystemExit::Shutdown => Some(MachineStop::Shutdown),
            SystemExit::Firmware => Some(MachineStop::Reset),
            SystemExit::Unsupported { bytes } => Some(MachineStop::Unsupported {
                rip: self.cores[cpu].cpu.rip,
                bytes,
            }),
        }
    }

    /// The vector that [`Self::dispatch`] would take now: pending, of sufficient priority, and admitted.
    pub fn dispatchable(&self, cpu: usize) -> Option<u8> {
        let core = &self.cores[cpu];
        if core.power == Power::Off || !admits_interrupts(&core.cpu) {
            return None;
        }
        self.bus.pending_interrupt(cpu)
    }

    /// Lets a processor take what waits for it and is admitted; this also ends HLT. Gives the vector.
    pub fn dispatch(&mut self, cpu: usize) -> Option<u8> {
        let vector = if self.cores[cpu].nmi {
            self.cores[cpu].nmi = false;
            NMI
        } else {
            self.dispatchable(cpu)?;
            self.bus.acknowledge(cpu)?
        };
        let core = &mut self.cores[cpu];
        core.power = Power::Running;
        let delivered =
            self.engine
                .interrupt(cpu, &mut core.cpu, &mut self.frames, &mut self.bus, vector);
        core.is_shut_down = delivered.is_err();
        // A frame at the same place or above means that an older one was left by a switch to another stack.
        let frame = core.cpu.reg(Reg::Rsp);
        core.interrupts.retain(|active| active.frame != frame);
        core.interrupts.push(ActiveInterrupt {
            vector,
            frame,
            since: core.steps,
        });
        Some(vector)
    }

    /// The interrupts in progress on a processor, the innermost last. A handler that ends by switching to another
    /// stack is in progress until user mode goes on.
    pub fn interrupts(&self, cpu: usize) -> &[ActiveInterrupt] {
        &self.cores[cpu].interrupts
    }

    fn is_shut_down(&self, cpu: usize) -> bool {
        self.cores[cpu].is_shut_down
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
            Power::Halted => core.nmi || self.dispatchable(cpu).is_some(),
        }
    }
}
