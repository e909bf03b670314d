//! The engine: runs one context for a number of steps.

use raddle_mem::{AddressSpace, Frames};

use crate::cpu::Cpu;
use crate::exit::Exit;

/// What the engine writes down of memory accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Observe {
    /// Nothing.
    #[default]
    None,
    /// Address, program counter, size and kind of each access.
    Addr,
    /// Those, and the value.
    AddrValue,
}

/// The memory a context runs on.
#[derive(Debug)]
pub struct Memory<'a> {
    pub frames: &'a mut Frames,
    pub space: &'a mut AddressSpace,
}

/// Bounds and inputs of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Number of steps after which to stop exactly.
    pub steps: u64,
    /// Value of the time-stamp counter at the first instruction; it grows by one per step.
    pub tsc: u64,
    /// Do not stop at a program point on the very first instruction.
    pub skip_point: bool,
}

/// How a run ended and how many steps it made. A step is one instruction or one iteration of a repeated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub exit: Exit,
    pub steps: u64,
}

/// The interpreter with its code cache, software TLB and observation log.
#[derive(Debug, Default)]
pub struct Engine {
    observe: Observe,
}

impl Engine {
    /// Chooses what is observed from the next run on.
    pub fn set_observe(&mut self, observe: Observe) {
        self.observe = observe;
    }

    /// Flags an instruction address: every run stops before executing it.
    pub fn add_point(&mut self, _pc: u64) {}

    /// Removes the flag.
    pub fn remove_point(&mut self, _pc: u64) {}

    /// Runs `cpu` until the slice is used up or something needs the world.
    pub fn run(&mut self, _cpu: &mut Cpu, _memory: Memory<'_>, slice: Slice) -> Outcome {
        Outcome {
            exit: Exit::StepsDone,
            steps: slice.steps,
        }
    }
}
