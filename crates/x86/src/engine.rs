//! The engine: runs one context for an exact number of steps.
#![expect(
    unsafe_code,
    reason = "calls handlers and hands them pointers that live as long as the call"
)]

use std::collections::BTreeSet;

use raddle_mem::{AddressSpace, Frames};
use raddle_stdx::width::{as_u64, low_u8};

use crate::cache::{CodeCache, Found, GroupKey};
use crate::cpu::Cpu;
use crate::exit::{Exit, Fault};
use crate::fast::vector;
use crate::fetch;
use crate::log::Log;
use crate::lower::{self, STEPS_MAX};
use crate::op::Op;
use crate::run::{Leave, Run};
use crate::stub::StubCache;

/// What the engine writes down of memory accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
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
#[derive(Debug)]
pub struct Engine {
    observe: Observe,
    cache: CodeCache,
    stubs: StubCache,
    log: Log,
    run: Box<Run>,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            observe: Observe::None,
            cache: CodeCache::default(),
            stubs: StubCache::default(),
            log: Log::default(),
            run: Run::new(),
        }
    }
}

impl Engine {
    /// Chooses what is observed from the next run on.
    pub fn set_observe(&mut self, observe: Observe) {
        self.observe = observe;
    }

    /// What was observed since [`Self::clear_log`].
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Forgets what was observed.
    pub fn clear_log(&mut self) {
        self.log.clear();
    }

    /// Flags an instruction address: every run stops before executing it.
    pub fn add_point(&mut self, pc: u64) {
        self.cache.set_point(pc, true);
    }

    /// Removes the flag.
    pub fn remove_point(&mut self, pc: u64) {
        self.cache.set_point(pc, false);
    }

    /// Flags exactly these addresses.
    pub fn set_points(&mut self, points: BTreeSet<u64>) {
        self.cache.replace_points(points);
    }

    /// Runs `cpu` until the slice is used up or something needs the world.
    pub fn run(&mut self, cpu: &mut Cpu, memory: Memory<'_>, slice: Slice) -> Outcome {
        let Memory { frames, space } = memory;
        self.cache.prepare(frames);
        self.run.validate_tlb(space, frames);
        let room = self.log.begin(self.observe);
        let steps = slice.steps.min(room);
        let budget = i64::try_from(steps).unwrap_or(i64::MAX);
        self.run.slice_steps = budget;
        self.run.budget = budget;
        self.run.log = self.log.position();
        self.run.tsc = slice.tsc;
        self.run.skip_point = if slice.skip_point { cpu.rip } else { u64::MAX };
        self.run.observe = self.observe;
        self.run.patch = std::ptr::null_mut();
        self.run.frames = std::ptr::from_mut(frames);
        self.run.space = std::ptr::from_mut(space);
        self.run.cache = std::ptr::from_mut(&mut self.cache);
        self.run.stubs = std::ptr::from_mut(&mut self.stubs);
        vector::clear_exceptions();
        let exit = self.run_blocks(cpu);
        vector::collect_exceptions(cpu);
        self.log.end(self.run.log, budget);
        let done = as_u64(budget - self.run.budget);
        let exit = if exit == Exit::StepsDone && steps < slice.steps {
            Exit::LogFull
        } else {
            exit
        };
        Outcome { exit, steps: done }
    }

    fn run_blocks(&mut self, cpu: &mut Cpu) -> Exit {
        let run: *mut Run = &raw mut *self.run;
        loop {
            if self.run.budget <= 0 {
                return Exit::StepsDone;
            }
            let found = match self.block_at(cpu.rip) {
                Ok(found) => found,
                Err(fault) => return Exit::Fault(fault),
            };
            self.run.budget -= found.steps;
            // SAFETY: `found` points to ops that live in the cache; the pointers in `run` were set by `run` and
            // outlive this call; handlers touch nothing else.
            unsafe {
                ((*found.op).handler)(
                    std::ptr::from_mut(cpu),
                    found.op,
                    run,
                    (*run).log,
                    (*run).budget,
                )
            };
            match self.run.leave {
                Leave::Budget => self.run.patch = std::ptr::null_mut(),
                Leave::NeedBlock => {}
                Leave::Syscall => return Exit::Syscall,
                Leave::Interrupt(number) => return Exit::SoftwareInterrupt(number),
                Leave::Halt => return Exit::Halt,
                Leave::Fault(fault) => return Exit::Fault(fault),
                Leave::NotCanonical | Leave::Attend | Leave::Pause | Leave::Hypercall => {
                    unreachable!(
                        "handlers name the exception before they leave, and this is no paged machine"
                    )
                }
                Leave::Point => return Exit::Point(raddle_mem::GuestAddr(cpu.rip)),
                Leave::Unsupported => {
                    return Exit::Unsupported {
                        bytes: self.bytes_at(cpu.rip),
                    };
                }
            }
        }
    }

    /// The block to execute at `pc`: decoded now if need be, cut if it is longer than the rest of the slice.
    fn block_at(&mut self, pc: u64) -> Result<Found, Fault> {
        // SAFETY: `space` was set by `run` and nothing else refers to it now.
        let layout = unsafe { (*self.run.space).code_layout() };
        let key = GroupKey {
            layout,
            observe: self.observe,
        };
        let found = self.find_or_build(key, pc, None)?;
        self.run.jumps = self.cache.jumps(key);
        let patch = std::mem::replace(&mut self.run.patch, std::ptr::null_mut());
        if found.steps <= self.run.budget {
            link(&mut self.cache, patch, pc, found);
            return Ok(found);
        }
        let limit = low_u8(as_u64(self.run.budget));
        self.find_or_build(key, pc, Some(limit))
    }

    fn find_or_build(&mut self, key: GroupKey, pc: u64, limit: Option<u8>) -> Result<Found, Fault> {
        if let Some(found) = self.cache.find(key, pc, limit) {
            return Ok(found);
        }
        // SAFETY: `frames` and `space` were set by `run` and nothing else refers to them now.
        let (frames, space) = unsafe { (&mut *self.run.frames, &mut *self.run.space) };
        let fetched = fetch::instructions(frames, space, pc, limit.unwrap_or(STEPS_MAX))?;
        let instructions = fetched.instructions.into_boxed_slice();
        let source = lower::Source {
            pc,
            instructions: &instructions,
            points: self.cache.points(),
            observe: self.observe,
            limit,
        };
        let mut block = lower::lower(&source, &mut self.stubs);
        block.frames = fetched.frames;
        block.instructions = instructions;
        for frame in fetched.frames.into_iter().flatten() {
            self.run.protect_code(frame);
        }
        self.run.adopt_version(space.version());
        Ok(self.cache.insert(key, block))
    }

    fn bytes_at(&mut self, pc: u64) -> Vec<u8> {
        // SAFETY: as in `find_or_build`.
        let (frames, space) = unsafe { (&mut *self.run.frames, &mut *self.run.space) };
        fetch::bytes(frames, space, pc)
    }
}

/// Lets the exit of a finished block lead straight to the block that was found for it.
pub(crate) fn link(cache: &mut CodeCache, patch: *mut Op, pc: u64, found: Found) {
    if patch.is_null() {
        return;
    }
    // SAFETY: `patch` is the last op of a block in the cache, followed by its two `unlinked` ops, and blocks
    // are freed only between runs.
    let (end, not_taken, taken) = unsafe { (&mut *patch, &*patch.add(1), &*patch.add(2)) };
    cache.link(end, [not_taken, taken], pc, found);
}

#[cfg(test)]
mod tests;
