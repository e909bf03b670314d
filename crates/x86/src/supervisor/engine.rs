//! The loop of a paged machine's processor.
#![expect(
    unsafe_code,
    reason = "calls handlers and hands them pointers that live as long as the call"
)]

use std::collections::BTreeSet;

use raddle_mem::{Frames, GuestAddr};
use raddle_stdx::width::{as_u64, low_u8};

use super::memory::{self, Ram};
use super::{Devices, Processor, Request, SystemRun, fetch, group};
use crate::access::append;
use crate::bus::RunBus;
use crate::cache::{CodeCache, Found, GroupKey};
use crate::cpu::Cpu;
use crate::engine::{Observe, link};
use crate::exit::Fault;
use crate::fast::{self, vector};
use crate::flags::rflags;
use crate::generic::{self, Flow, Origin, Shutdown};
use crate::log::Log;
use crate::lower::{self, STEPS_MAX};
use crate::op::{LogKind, Meta};
use crate::paging::{self, Controls};
use crate::peek::{NextAccess, Peek};
use crate::run::{INTEREST_WORDS, Leave, Run, interest_bit};
use crate::stub::StubCache;
use crate::system::{cr0, cr4, efer};

/// Where processors begin after a reset, as they see it in real mode.
const FIRMWARE_ENTRY: u64 = 0xF_FFF0;

/// Bounds and inputs of one run of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemSlice {
    /// Number of steps after which to stop exactly.
    pub steps: u64,
    /// The time-stamp counter at the first instruction; it grows by one per step.
    pub tsc: u64,
    /// Do not stop at a program point on the very first instruction.
    pub skip_point: bool,
    /// Program points that may be passed without a stop.
    pub pass_points: u64,
    /// Stop as soon as the processor admits interrupts.
    pub wants_window: bool,
    /// Stop behind PAUSE.
    pub stop_at_pause: bool,
    /// Stop when the interrupt whose frame is at this address is over.
    pub interrupt_frame: Option<u64>,
}

/// Why a run of a processor ended. RIP is the next instruction to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemExit {
    /// As many steps as asked for were made.
    StepsDone,
    /// HLT was executed.
    Halt,
    /// PAUSE was executed and the slice asked to stop there.
    Pause,
    /// A device was touched.
    Device,
    /// Interrupts are admitted now, as the slice asked to be told.
    Window,
    /// RIP stands at a flagged program point that has not been executed yet.
    Point(GuestAddr),
    /// The interrupt that the slice names is over: IRET has taken its frame, or user mode goes on.
    InterruptDone,
    /// CPUID with [`super::HYPERCALL_LEAF`] was executed.
    Hypercall,
    /// The observation log is full: drain it and run on.
    LogFull,
    /// A third fault in a row: the processor has given up.
    Shutdown,
    /// The processor stands, in real mode, at the firmware's first instruction: the guest asks to be started anew.
    Firmware,
    /// RIP is at an instruction we do not implement.
    Unsupported { bytes: Vec<u8> },
}

/// How a run ended and how many steps it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemOutcome {
    pub exit: SystemExit,
    pub steps: u64,
    /// Program points that were passed without a stop.
    pub passed: u64,
}

/// The interpreter of a paged machine, with the code cache, the software TLBs and the observation log of all its
/// processors.
#[derive(Debug)]
pub struct SystemEngine {
    observe: Observe,
    cache: CodeCache,
    stubs: StubCache,
    log: Log,
    processors: Vec<Processor>,
    ram_pages: u64,
    plain: bool,
    peek: Peek,
    /// See [`Self::set_interest`].
    interest: Box<[u64; INTEREST_WORDS]>,
}

/// One run: the processor's registers and what is valid during it.
struct Live<'a> {
    engine: &'a mut SystemEngine,
    cpu: &'a mut Cpu,
    system: SystemRun,
    /// The privilege level whose TLB is in use.
    level: usize,
    /// The group of the block that was entered last.
    last_group: Option<GroupKey>,
}

impl SystemEngine {
    /// An engine for so many processors over `ram_pages` frames of memory from frame one on.
    pub fn new(processors: usize, ram_pages: u64) -> Self {
        Self {
            observe: Observe::None,
            cache: CodeCache::default(),
            stubs: StubCache::default(),
            log: Log::default(),
            processors: (0..processors).map(|_| Processor::new()).collect(),
            ram_pages,
            plain: false,
            peek: Peek::default(),
            interest: Box::new([0; INTEREST_WORDS]),
        }
    }

    /// Runs everything in the generic interpreter, without blocks: slow, and the same in every observable way.
    pub fn set_plain(&mut self, plain: bool) {
        self.plain = plain;
    }

    /// What is observed.
    pub fn observe(&self) -> Observe {
        self.observe
    }

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

    /// Flags exactly these instruction addresses: every run stops before executing one.
    pub fn set_points(&mut self, points: BTreeSet<u64>) {
        self.cache.replace_points(points);
    }

    /// Names the program points that a run never passes, however many others it may pass. A few others may be taken
    /// for them.
    pub fn set_interest(&mut self, points: &[u64]) {
        self.interest.fill(0);
        for pc in points {
            let (word, bit) = interest_bit(*pc);
            self.interest[word] |= bit;
        }
    }

    /// The physical address that the page tables give a linear one, without any effect on the machine.
    pub fn physical(&self, cpu: &Cpu, frames: &mut Frames, addr: u64) -> Option<u64> {
        let mut ram = Ram {
            frames,
            pages: self.ram_pages,
        };
        paging::look_up(Controls::from(&*cpu.system), addr, &mut ram)
    }

    /// The first memory access that the next instruction of a processor would make.
    pub fn next_access(&mut self, cpu: &Cpu, frames: &mut Frames) -> Option<NextAccess> {
        let mut ram = Ram {
            frames,
            pages: self.ram_pages,
        };
        let bytes = fetch::bytes(cpu, &mut ram)?;
        self.peek.first_access(cpu, bytes, || {
            let (instruction, _) = fetch::single(cpu, &mut ram).ok()?;
            Some(instruction)
        })
    }

    /// Runs processor `number` until the slice is used up or something needs the machine.
    pub fn run(
        &mut self,
        number: usize,
        cpu: &mut Cpu,
        frames: &mut Frames,
        devices: &mut (dyn Devices + 'static),
        slice: SystemSlice,
    ) -> SystemOutcome {
        let room = self.log.begin(self.observe);
        let steps = slice.steps.min(room);
        let budget = i64::try_from(steps).unwrap_or(i64::MAX);
        let mut live = self.live(number, cpu, frames, devices, slice, budget);
        vector::clear_exceptions();
        let exit = live.run_blocks();
        vector::collect_exceptions(live.cpu);
        let run = live.run();
        let (left, log, points_left) = (run.budget, run.log, run.points_left);
        if !live.has_shadow() {
            live.cpu.system.interrupt_shadow = false;
        }
        self.log.end(log, budget);
        let exit = if exit == SystemExit::StepsDone && steps < slice.steps {
            SystemExit::LogFull
        } else {
            exit
        };
        SystemOutcome {
            exit,
            steps: as_u64(budget - left),
            passed: slice.pass_points - points_left,
        }
    }

    /// Lets processor `number` take an interrupt now; the caller has made sure that it admits one.
    ///
    /// # Errors
    /// If the processor has given up.
    pub fn interrupt(
        &mut self,
        number: usize,
        cpu: &mut Cpu,
        frames: &mut Frames,
        devices: &mut (dyn Devices + 'static),
        vector: u8,
    ) -> Result<(), Shutdown> {
        let slice = SystemSlice {
            steps: 0,
            tsc: 0,
            skip_point: false,
            pass_points: 0,
            wants_window: false,
            stop_at_pause: false,
            interrupt_frame: None,
        };
        let mut live = self.live(number, cpu, frames, devices, slice, 0);
        live.deliver(vector)
    }

    fn live<'a>(
        &'a mut self,
        number: usize,
        cpu: &'a mut Cpu,
        frames: &mut Frames,
        devices: &mut (dyn Devices + 'static),
        slice: SystemSlice,
        budget: i64,
    ) -> Live<'a> {
        self.cache.prepare(frames);
        let system = SystemRun {
            controls: Controls::from(&*cpu.system),
            ram_pages: self.ram_pages,
            cpu: number,
            now: slice.tsc,
            request: Request::default(),
            may_touch_devices: false,
            wants_window: slice.wants_window,
            stop_at_pause: slice.stop_at_pause,
            interrupt_frame: slice.interrupt_frame.unwrap_or(u64::MAX),
            shadow_budget: budget,
            processors: std::ptr::from_mut(self.processors.as_mut_slice()),
            devices: std::ptr::from_mut(devices),
        };
        let (cache, stubs) = (&raw mut self.cache, &raw mut self.stubs);
        let interest = self.interest.as_ptr();
        for run in &mut self.processors[number].levels {
            run.validate_epoch(frames);
            run.slice_steps = budget;
            run.budget = budget;
            run.log = self.log.position();
            run.tsc = slice.tsc;
            run.skip_point = if slice.skip_point { cpu.rip } else { u64::MAX };
            run.points_left = slice.pass_points;
            run.interest = interest;
            run.observe = self.observe;
            run.patch = std::ptr::null_mut();
            run.frames = std::ptr::from_mut(frames);
            run.cache = cache;
            run.stubs = stubs;
        }
        let level = usize::from(cpu.system.cpl == 3);
        Live {
            engine: self,
            cpu,
            system,
            level,
            last_group: None,
        }
    }
}

impl Live<'_> {
    fn run(&mut self) -> &mut Run {
        let number = self.system.cpu;
        let system = &raw mut self.system;
        let run = &mut self.engine.processors[number].levels[self.level];
        run.system = system;
        run
    }

    /// Whether the last instruction holds interrupts off for one more.
    fn has_shadow(&mut self) -> bool {
        let left = self.run().budget;
        self.cpu.system.interrupt_shadow && self.system.shadow_budget == left
    }

    fn run_blocks(&mut self) -> SystemExit {
        memory::refresh_code(self.run());
        loop {
            self.follow_mode();
            if self.run().budget <= 0 {
                return SystemExit::StepsDone;
            }
            let mut limit = None;
            if self.system.wants_window && self.cpu.system_flags & rflags::IF != 0 {
                if !self.has_shadow() {
                    return SystemExit::Window;
                }
                limit = Some(1);
            }
            let leave = if self.is_plain() {
                if self.is_at_firmware() {
                    return SystemExit::Firmware;
                }
                self.step(false)
            } else {
                self.execute(limit)
            };
            if let Some(exit) = self.attend(leave) {
                return exit;
            }
        }
    }

    /// Code that no block is made for: real mode, 32-bit code, no paging.
    fn is_plain(&self) -> bool {
        self.engine.plain
            || self.cpu.system.code_bits() != 64
            || self.system.controls.cr0 & cr0::PG == 0
    }

    /// Whether the next instruction is the first one of the firmware, of which there is none: kernels jump there as their
    /// last way to restart (SDM vol. 3, 10.1.4, in its shadow below 1 MiB).
    fn is_at_firmware(&self) -> bool {
        self.system.controls.cr0 & cr0::PE == 0
            && self.cpu.system.code_base().wrapping_add(self.cpu.rip) == FIRMWARE_ENTRY
    }

    /// Takes the TLB of the current privilege level.
    fn follow_mode(&mut self) {
        let level = usize::from(self.cpu.system.cpl == 3);
        if level == self.level {
            return;
        }
        let run = self.run();
        let (budget, log) = (run.budget, run.log);
        let (skip_point, points_left) = (run.skip_point, run.points_left);
        run.patch = std::ptr::null_mut();
        self.level = level;
        let run = self.run();
        run.budget = budget;
        run.log = log;
        run.skip_point = skip_point;
        run.points_left = points_left;
        run.patch = std::ptr::null_mut();
    }

    /// Enters the block at RIP.
    fn execute(&mut self, limit: Option<u8>) -> Leave {
        let found = match self.block_at(self.cpu.rip, limit) {
            Ok(found) => found,
            Err(fault) => return Leave::Fault(fault),
        };
        let run = self.run();
        run.budget -= found.steps;
        let run: *mut Run = run;
        // SAFETY: `found` points to ops that live in the cache; the pointers in `run` were set by `live` and
        // outlive this call; handlers touch nothing else.
        unsafe {
            ((*found.op).handler)(
                std::ptr::from_mut(self.cpu),
                found.op,
                run,
                (*run).log,
                (*run).budget,
            );
            (*run).leave
        }
    }

    /// The block to execute at `pc`: decoded now if need be, cut if it is longer than the rest of the slice.
    fn block_at(&mut self, pc: u64, limit: Option<u8>) -> Result<Found, Fault> {
        let observe = self.engine.observe;
        let key = group::of(self.system.controls, pc, self.level == 1, observe);
        let may_link = self.last_group.replace(key) == Some(key);
        if limit.is_some() {
            self.run().patch = std::ptr::null_mut();
            return self.find_or_build(key, pc, limit);
        }
        let found = self.find_or_build(key, pc, None)?;
        let jumps = self.engine.cache.jumps(key);
        let run = self.run();
        run.jumps = jumps;
        let patch = std::mem::replace(&mut run.patch, std::ptr::null_mut());
        if found.steps <= run.budget {
            if may_link {
                link(&mut self.engine.cache, patch, pc, found);
            }
            return Ok(found);
        }
        let limit = low_u8(as_u64(run.budget));
        self.find_or_build(key, pc, Some(limit))
    }

    fn find_or_build(&mut self, key: GroupKey, pc: u64, limit: Option<u8>) -> Result<Found, Fault> {
        if let Some(found) = self.engine.cache.find(key, pc, limit) {
            return Ok(found);
        }
        let fetched = fetch::instructions(self.run(), key, pc, limit.unwrap_or(STEPS_MAX))?;
        let engine = &mut *self.engine;
        let instructions = fetched.instructions.into_boxed_slice();
        let source = lower::Source {
            pc,
            instructions: &instructions,
            points: engine.cache.points(),
            observe: engine.observe,
            limit,
        };
        let mut block = lower::lower(&source, &mut engine.stubs);
        block.frames = fetched.frames;
        block.instructions = instructions;
        Ok(engine.cache.insert(key, block))
    }

    /// Does what a return to the loop asks for; gives the reason to end the run, if it is one.
    fn attend(&mut self, leave: Leave) -> Option<SystemExit> {
        match leave {
            Leave::Budget => self.run().patch = std::ptr::null_mut(),
            Leave::NeedBlock => {}
            Leave::Attend => return self.serve(),
            Leave::Halt => return Some(self.serve().unwrap_or(SystemExit::Halt)),
            Leave::Pause => return Some(SystemExit::Pause),
            Leave::Hypercall => return Some(SystemExit::Hypercall),
            Leave::Point => return Some(SystemExit::Point(GuestAddr(self.cpu.rip))),
            Leave::Fault(fault) => return self.fault(fault),
            Leave::Syscall | Leave::Interrupt(_) | Leave::NotCanonical => {
                unreachable!("a paged machine delivers these itself")
            }
            Leave::Unsupported => {
                let mut ram = self.ram();
                let bytes =
                    fetch::single(self.cpu, &mut ram).map_or_else(|_| Vec::new(), |it| it.1);
                return Some(SystemExit::Unsupported { bytes });
            }
        }
        None
    }

    fn ram<'r>(&mut self) -> Ram<'r> {
        let pages = self.system.ram_pages;
        // SAFETY: `frames` was set by `live` and nothing else refers to it now.
        let frames = unsafe { &mut *self.run().frames };
        Ram { frames, pages }
    }

    /// Serves the requests of an instruction.
    fn serve(&mut self) -> Option<SystemExit> {
        let request = std::mem::take(&mut self.system.request);
        self.run().patch = std::ptr::null_mut();
        let number = self.system.cpu;
        if request.flush {
            let old = self.system.controls;
            let new = Controls::from(&*self.cpu.system);
            self.system.controls = new;
            let keeps_code = (old.cr0 ^ new.cr0) & cr0::PG == 0
                && (old.cr4 ^ new.cr4) & cr4::PAE == 0
                && (old.efer ^ new.efer) & (efer::NXE | efer::LMA) == 0;
            if !keeps_code {
                self.engine.cache.clear();
            }
            for level in &mut self.engine.processors[number].levels {
                level.flush(!request.flush_global);
            }
        }
        if let Some(addr) = request.page {
            for level in &mut self.engine.processors[number].levels {
                level.flush_page(addr);
            }
        }
        if request.interrupt_done {
            return Some(SystemExit::InterruptDone);
        }
        request.device.then_some(SystemExit::Device)
    }

    fn fault(&mut self, fault: Fault) -> Option<SystemExit> {
        if let Fault::Memory(memory) = fault
            && memory.cause == memory::DEVICE
        {
            let leave = self.step(true);
            if matches!(leave, Leave::Fault(Fault::Memory(memory)) if memory.cause == memory::DEVICE)
            {
                // No device register is that wide.
                return self.attend(Leave::Unsupported);
            }
            return self.attend(leave).or(Some(SystemExit::Device));
        }
        let shutdown = {
            let mut bus = self.bus();
            // SAFETY: the bus refers to the run, not to the registers.
            let cpu = unsafe { &mut *bus.cpu };
            generic::raise(cpu, fault, &mut bus.bus)
        };
        self.run().budget -= 1;
        self.cpu.system.interrupt_shadow = false;
        match shutdown {
            Ok(()) => None,
            Err(Shutdown) => Some(SystemExit::Shutdown),
        }
    }

    fn deliver(&mut self, vector: u8) -> Result<(), Shutdown> {
        let mut bus = self.bus();
        // SAFETY: the bus refers to the run, not to the registers.
        let cpu = unsafe { &mut *bus.cpu };
        cpu.system.interrupt_shadow = false;
        match generic::deliver(cpu, vector, None, Origin::Hardware, &mut bus.bus) {
            Ok(()) => Ok(()),
            Err(fault) => generic::raise(cpu, fault, &mut bus.bus),
        }
    }

    fn bus(&mut self) -> CpuBus<'_> {
        let cpu = std::ptr::from_mut(self.cpu);
        let rip = self.cpu.rip;
        let run = self.run();
        let (log, tsc) = (run.log, run.tsc_now());
        CpuBus {
            cpu,
            bus: RunBus {
                run,
                log,
                meta: Meta::new(rip, 0),
                tsc,
            },
        }
    }

    /// One instruction in the generic interpreter, in any mode; memory may be a device if `may_touch_devices`.
    fn step(&mut self, may_touch_devices: bool) -> Leave {
        let mut ram = self.ram();
        let instruction = match fetch::single(self.cpu, &mut ram) {
            Ok((instruction, _)) => instruction,
            Err(fault) => return Leave::Fault(fault),
        };
        let pc = self.cpu.rip;
        // An instruction that has come to a device has passed its point already.
        let is_begun = may_touch_devices || self.run().skip_point == pc;
        let is_flagged = !is_begun && self.engine.cache.points().contains(&pc);
        // SAFETY: `live` has set the table of the run.
        if is_flagged && !unsafe { fast::passes(self.run(), pc) } {
            return Leave::Point;
        }
        self.run().skip_point = u64::MAX;
        if super::is_hypercall(self.cpu, &instruction) {
            self.cpu.rip = instruction.next_ip();
            self.run().budget -= 1;
            return Leave::Hypercall;
        }
        self.system.may_touch_devices = may_touch_devices;
        let before = super::before_step(self.cpu);
        vector::collect_exceptions(self.cpu);
        let stubs = &raw mut self.engine.stubs;
        let result = {
            let mut bus = self.bus();
            bus.bus.begin_step(pc);
            // SAFETY: the bus refers to the run, not to the registers or the stubs.
            let (cpu, stubs) = unsafe { (&mut *bus.cpu, &mut *stubs) };
            let result = generic::step(cpu, &instruction, stubs, &mut bus.bus);
            let log = bus.bus.log;
            if result.is_ok() {
                self.run().log = log;
            }
            result
        };
        self.system.may_touch_devices = false;
        let left = self.run().budget - 1;
        let flow = match &result {
            Err(fault) => return Leave::Fault(*fault),
            Ok(Flow::Unsupported) => return Leave::Unsupported,
            Ok(flow) => *flow,
        };
        let cpu = std::ptr::from_mut(self.cpu);
        let run = self.run();
        run.budget = left;
        // SAFETY: the run does not refer to the registers.
        let cpu = unsafe { &mut *cpu };
        let reason = super::after_step(cpu, &instruction, run, before, &result, left);
        match flow {
            Flow::Next => self.cpu.rip = instruction.next_ip(),
            Flow::Halt => return Leave::Halt,
            _ => {}
        }
        reason.unwrap_or(Leave::Budget)
    }
}

/// A bus beside the registers it does not refer to.
struct CpuBus<'a> {
    cpu: *mut Cpu,
    bus: RunBus<'a>,
}

impl RunBus<'_> {
    /// Notes the beginning of a step outside blocks.
    fn begin_step(&mut self, pc: u64) {
        let left = self.run.budget.cast_unsigned();
        let meta = Meta::new(pc, 0).with_access(LogKind::Block, 1);
        append(self.run.observe, &mut self.log, left, meta, 0);
        self.meta = Meta::new(pc, 0);
    }
}

impl Run {
    /// The time-stamp counter at the current instruction, outside blocks.
    fn tsc_now(&self) -> u64 {
        let done = self.slice_steps - self.budget;
        self.tsc.wrapping_add(done.cast_unsigned())
    }
}
