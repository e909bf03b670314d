//! The whole machine: processors, RAM, devices, and one clock.
//!
//! All processors share one host thread. Time is the number of instructions that all of them have made, in
//! nanoseconds, plus the jumps over times when no processor had anything to do. Interrupts are taken between slices;
//! a slice ends before the next timer, after each access to a device, and when a processor that has an interrupt
//! pending opens itself to it.

mod access;
mod bus;
mod digest;
mod image;
mod memory;
mod rehearsal;
mod run;
mod schedule;
mod snapshot;
#[cfg(test)]
mod tests;

use raddle_mem::{FrameId, Frames, OutOfFrames, PAGE_SIZE};
use raddle_stdx::width::{low_u8, to_u64};
use raddle_x86::{Cpu, DescriptorTable, Reg, SystemEngine, SystemState, rflags};

use crate::boot::BootImage;
use crate::devices::Bus;
pub use access::{CpuAccess, Keep};
pub use image::LoadError;
pub use rehearsal::Rehearsed;
pub use run::{Bounds, Interrupts, MachineStop, Ran};
pub use snapshot::MachineSnapshot;

/// What a processor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Waits for a start-up message.
    Off,
    Running,
    /// Waits for an interrupt after HLT.
    Halted,
}

/// One processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Core {
    pub(crate) cpu: Cpu,
    pub(crate) power: Power,
    /// A non-maskable interrupt waits.
    pub(crate) nmi: bool,
    /// Steps this processor has made.
    pub(crate) steps: u64,
    /// It has given up after a third fault in a row.
    pub(crate) is_shut_down: bool,
    /// Interrupts in progress, the innermost last.
    pub(crate) interrupts: Vec<ActiveInterrupt>,
}

/// An interrupt whose handler has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveInterrupt {
    pub vector: u8,
    /// Address of its frame on the stack.
    pub frame: u64,
    /// Steps of the processor when it was taken.
    pub since: u64,
}

/// Why a machine cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("the host has no address space for the machine's RAM: {0}")]
    Reserve(#[from] std::io::Error),
    #[error("the machine's RAM is larger than its reservation")]
    Frames(#[from] OutOfFrames),
}

/// A PC.
#[derive(Debug)]
pub struct Machine {
    frames: Frames,
    cores: Vec<Core>,
    bus: Bus,
    engine: SystemEngine,
    /// The time-stamp counter.
    now: u64,
    ram_pages: u64,
    /// Observed accesses that were not taken yet, and which ones to keep.
    accesses: Vec<CpuAccess>,
    keep: Keep,
    /// Snapshots that can still be restored, oldest first.
    saved: Vec<snapshot::Saved>,
}

impl Machine {
    /// A machine that stands before the first instruction of a boot image.
    pub fn new(image: &BootImage, cpus: usize, memory: u64) -> Result<Self, MachineError> {
        let ram_pages = memory / to_u64(PAGE_SIZE);
        let mut frames = Frames::new(memory + 64 * to_u64(PAGE_SIZE))?;
        for page in 0..ram_pages {
            let frame = frames.alloc()?;
            debug_assert_eq!(
                u64::from(frame.0),
                page + 1,
                "frames are handed out in order"
            );
        }
        let entry = image.entry;
        let gdt = DescriptorTable {
            base: entry.gdt_base,
            limit: entry.gdt_limit,
        };
        let boot =
            SystemState::kernel_entry(entry.cr3, gdt, entry.code_selector, entry.data_selector);
        let cores = (0..cpus)
            .map(|number| {
                let system = if number == 0 {
                    boot.clone()
                } else {
                    SystemState::startup(0)
                };
                Core::new(number, system)
            })
            .collect();
        let mut machine = Self {
            frames,
            cores,
            bus: Bus::new(cpus),
            engine: SystemEngine::new(cpus, ram_pages),
            now: 0,
            ram_pages,
            accesses: Vec::new(),
            keep: Keep::All,
            saved: Vec::new(),
        };
        for write in &image.writes {
            machine.write_physical(write.physical, &write.bytes);
        }
        let first = &mut machine.cores[0];
        first.power = Power::Running;
        first.cpu.rip = entry.rip;
        first.cpu.set_reg(Reg::Rsp, entry.rsp);
        first.cpu.set_reg(Reg::Rsi, entry.rsi);
        Ok(machine)
    }

    /// Number of processors.
    pub fn cpus(&self) -> usize {
        self.cores.len()
    }

    /// Bytes of RAM.
    pub fn memory(&self) -> u64 {
        self.ram_pages * to_u64(PAGE_SIZE)
    }

    /// The time-stamp counter.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn power(&self, cpu: usize) -> Power {
        self.cores[cpu].power
    }

    /// The registers of a processor.
    pub fn cpu(&self, cpu: usize) -> &Cpu {
        &self.cores[cpu].cpu
    }

    /// The registers of a processor, to answer a call of the guest.
    pub fn cpu_mut(&mut self, cpu: usize) -> &mut Cpu {
        &mut self.cores[cpu].cpu
    }

    /// Steps that a processor has made.
    pub fn steps(&self, cpu: usize) -> u64 {
        self.cores[cpu].steps
    }

    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    pub fn bus_mut(&mut self) -> &mut Bus {
        &mut self.bus
    }

    pub fn engine_mut(&mut self) -> &mut SystemEngine {
        &mut self.engine
    }

    /// The frame of a physical address, if there is RAM.
    fn frame(&self, physical: u64) -> Option<FrameId> {
        let page = physical / to_u64(PAGE_SIZE);
        (page < self.ram_pages)
            .then(|| u32::try_from(page + 1).ok().map(FrameId))
            .flatten()
    }
}

impl Core {
    fn new(number: usize, system: SystemState) -> Self {
        let mut cpu = Cpu::default();
        cpu.system_flags = rflags::FIXED;
        *cpu.system = system;
        cpu.system.apic_id = low_u8(to_u64(number));
        if number == 0 {
            // The boot processor says so.
            cpu.system.apic_base |= 1 << 8;
        }
        Self {
            cpu,
            power: Power::Off,
            nmi: false,
            steps: 0,
            is_shut_down: false,
            interrupts: Vec::new(),
        }
    }

    /// INIT, then a start-up message.
    fn start(&mut self, number: usize, page: u8) {
        let steps = self.steps;
        *self = Self::new(number, SystemState::startup(page));
        self.steps = steps;
        self.power = Power::Running;
    }
}
