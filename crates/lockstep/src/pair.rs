//! Both sides together.

use anyhow::{Context, bail};
use iced_x86::{Instruction, Mnemonic};
use nix::sys::signal::Signal;
use raddle_linux::{LinuxWorld, describe_status};
use raddle_mem::{Backing, GuestAddr, PAGE_SIZE, Vma};
use raddle_world::{ContextId, EventKind, Inspect as _, Stop, Until, World, successor};
use raddle_x86::Reg;

use crate::compare::{differences, load_float, load_general};
use crate::instruction::{self, Turn, turn};
use crate::native::Native;

/// Steps that a thread makes before the next one has its turn.
const QUANTUM: u64 = 2_000;
const INSTRUCTION_MAX: usize = 15;
const MADVISE: u64 = raddle_calls::number("madvise") as u64;

/// What was compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Instructions that both sides executed with equal results.
    pub compared: u64,
    /// Instructions whose results the host was given.
    pub given: u64,
    /// Instructions of processes other than the first, which only our side ran.
    pub alone: u64,
    /// Times that all memory was compared.
    pub memory_checks: u64,
    pub signals: u64,
    /// How the program ended, or why the comparison did.
    pub end: String,
}

/// Our world and the host process beside it.
#[derive(Debug)]
pub struct Pair {
    world: LinuxWorld,
    native: Native,
    /// The process that is compared.
    process: u32,
    /// Whose registers the host holds; none if it must be given everything anew.
    loaded: Option<ContextId>,
    /// Memory of the host is to be made equal before it goes on.
    is_stale: bool,
    areas: Vec<Vma>,
    output: Vec<u8>,
    report: Report,
}

impl Pair {
    pub fn new(mut world: LinuxWorld) -> anyhow::Result<Self> {
        world.set_tracing(true);
        let first = world.contexts().runnable().first().copied();
        let process = first.and_then(|who| world.process_id(who));
        Ok(Self {
            world,
            native: Native::start()?,
            process: process.context("the program has no thread")?,
            loaded: None,
            is_stale: true,
            areas: Vec::new(),
            output: Vec::new(),
            report: Report::default(),
        })
    }

    /// What the program wrote to its standard output so far.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Runs to the end or for `steps_max` steps; a difference is an error that tells all about it.
    pub fn run(&mut self, steps_max: u64) -> anyhow::Result<Report> {
        let mut last = None;
        while self.report.compared + self.report.given + self.report.alone < steps_max {
            let Some(next) = self.next(last) else {
                if !self.world.advance_time() {
                    bail!(
                        "deadlock: no thread can run\n{}",
                        self.world.describe_waits().join("\n")
                    );
                }
                continue;
            };
            last = Some(next);
            let stop = if self.world.process_id(next) == Some(self.process) {
                self.run_compared(next)?
            } else {
                self.run_alone(next)
            };
            match stop {
                Stop::WorldDone { status } => {
                    self.report.end = describe_status(status);
                    return Ok(self.report.clone());
                }
                Stop::Unsupported(text) => bail!("the run cannot go on: {text}"),
                _ => {}
            }
        }
        self.report.end = format!("stopped after {steps_max} instructions");
        Ok(self.report.clone())
    }

    fn next(&self, last: Option<ContextId>) -> Option<ContextId> {
        successor(self.world.contexts().runnable(), last)
    }

    /// Other processes have other memory: only our side runs them.
    fn run_alone(&mut self, who: ContextId) -> Stop {
        let before = self.world.statistics().steps;
        let stop = self.world.run(who, Until::Steps(QUANTUM));
        self.report.alone += self.world.statistics().steps - before;
        self.take_events();
        self.is_stale = true;
        stop
    }

    fn run_compared(&mut self, who: ContextId) -> anyhow::Result<Stop> {
        for _ in 0..QUANTUM {
            // Signals and what a blocked call still has to do come before the instruction.
            let stop = self.world.run(who, Until::Steps(0));
            self.take_events();
            if stop != Stop::Steps {
                self.loaded = None;
                return Ok(stop);
            }
            let insn = self.fetch(who)?;
            let stop = match turn(&insn) {
                Turn::Ours => self.give(who, &insn)?,
                Turn::Both => self.step_both(who, &insn)?,
            };
            if stop != Stop::Steps {
                self.loaded = None;
                return Ok(stop);
            }
        }
        Ok(Stop::Steps)
    }

    fn fetch(&mut self, who: ContextId) -> anyhow::Result<Instruction> {
        let pc = self.world.cpu(who).context("the thread lives")?.rip;
        let mut bytes = [0; INSTRUCTION_MAX];
        let count = self.world.read_bytes(who, pc, &mut bytes);
        Ok(instruction::decode(pc, &bytes[..count]))
    }

    /// Our side executes; the host gets the results before its next instruction.
    fn give(&mut self, who: ContextId, insn: &Instruction) -> anyhow::Result<Stop> {
        let is_call = insn.mnemonic() == Mnemonic::Syscall;
        if is_call && !self.is_stale {
            self.compare_memory(who)?;
        }
        let number = self.world.cpu(who).map_or(0, |cpu| cpu.reg(Reg::Rax));
        let stop = self.world.run(who, Until::Steps(1));
        self.take_events();
        self.report.given += 1;
        self.loaded = None;
        self.is_stale = true;
        if is_call && number == MADVISE {
            // Pages may be zero again although the areas are the same.
            self.areas.clear();
        }
        Ok(stop)
    }

    fn step_both(&mut self, who: ContextId, insn: &Instruction) -> anyhow::Result<Stop> {
        if self.is_stale {
            self.copy_memory(who)?;
        }
        if self.loaded != Some(who) {
            self.load(who)?;
        }
        let stop = self.world.run(who, Until::Steps(1));
        let signals = self.take_events();
        let raised = self.native.step()?;
        if let Some(signal) = raised {
            if signals.contains(&(signal as u32)) || matches!(stop, Stop::WorldDone { .. }) {
                // Our kernel has made a signal of it; the handler's first instruction is already behind us.
                self.loaded = None;
                self.is_stale = true;
                return Ok(stop);
            }
            if self.areas != self.current_areas(who) {
                // The stack grew.
                self.loaded = None;
                self.is_stale = true;
                return Ok(stop);
            }
            bail!("{}: only the host raised {signal}", self.place(who, insn));
        }
        if signals.contains(&(Signal::SIGBUS as u32)) {
            // Beyond the end of a file; the host has zero pages there instead of files.
            return Ok(stop);
        }
        if !signals.is_empty() {
            bail!(
                "{}: only our side raised signal {}",
                self.place(who, insn),
                signals[0]
            );
        }
        self.compare_registers(who, insn)?;
        self.report.compared += 1;
        Ok(stop)
    }

    fn compare_registers(&mut self, who: ContextId, insn: &Instruction) -> anyhow::Result<()> {
        let cpu = self.world.cpu(who).context("the thread lives")?;
        let registers = self.native.registers()?;
        let found = differences(insn, cpu, &registers, &self.native.float_registers()?);
        if !found.is_empty() {
            bail!("{}\n  {}", self.place(who, insn), found.join("\n  "));
        }
        if (cpu.rflags() ^ registers.eflags) & instruction::undefined_flags(insn) != 0 {
            // Both are right; later instructions must not see a difference.
            self.load(who)?;
        }
        Ok(())
    }

    fn place(&mut self, who: ContextId, insn: &Instruction) -> String {
        let pc = insn.ip();
        let function = self
            .world
            .symbols(who)
            .and_then(|symbols| symbols.symbolise(pc)?.function.map(|name| name.to_string()))
            .unwrap_or_else(|| "unknown function".into());
        format!(
            "difference after {} equal instructions, thread {}: {pc:#x} `{}` in {function}",
            self.report.compared,
            self.world.contexts().get(who),
            instruction::text(insn)
        )
    }

    fn load(&mut self, who: ContextId) -> anyhow::Result<()> {
        let cpu = self.world.cpu(who).context("the thread lives")?;
        let mut registers = self.native.registers()?;
        load_general(cpu, &mut registers);
        self.native.set_registers(registers)?;
        let mut float = self.native.float_registers()?;
        load_float(cpu, &mut float);
        self.native.set_float_registers(float)?;
        self.loaded = Some(who);
        Ok(())
    }

    fn current_areas(&self, who: ContextId) -> Vec<Vma> {
        self.world
            .memory(who)
            .map_or_else(Vec::new, |(space, _)| space.vmas().to_vec())
    }

    /// Makes the host's memory equal to ours.
    fn copy_memory(&mut self, who: ContextId) -> anyhow::Result<()> {
        let areas = self.current_areas(who);
        if areas != self.areas {
            self.native.clear()?;
            for area in &areas {
                let perm = area.perm;
                let prot = u64::from(perm.read)
                    | u64::from(perm.write) << 1
                    | u64::from(perm.execute) << 2;
                self.native
                    .map(area.start.start().0, area.pages() << 12, prot)?;
                if area.backing != Backing::Anonymous {
                    self.copy_object(who, area)?;
                }
            }
            self.areas = areas;
            self.loaded = None;
        }
        let (space, frames) = self.world.memory(who).context("the process lives")?;
        for (page, pte) in space.present_pages() {
            self.native
                .write(page.start().0, frames.bytes(pte.frame).as_slice())?;
        }
        self.is_stale = false;
        Ok(())
    }

    /// Pages of files come in when our side first touches them; the host needs them before.
    fn copy_object(&mut self, who: ContextId, area: &Vma) -> anyhow::Result<()> {
        let mut bytes = [0; PAGE_SIZE];
        for page in area.start.0..area.end.0 {
            let addr = GuestAddr(page << 12);
            // Beyond the end of the file there is nothing to copy.
            if self.world.read_bytes(who, addr.0, &mut bytes) == PAGE_SIZE {
                self.native.write(addr.0, &bytes)?;
            }
        }
        Ok(())
    }

    /// All memory that the program can write must be the same on both sides.
    fn compare_memory(&mut self, who: ContextId) -> anyhow::Result<()> {
        let mut host = [0; PAGE_SIZE];
        let (space, frames) = self.world.memory(who).context("the process lives")?;
        for (page, pte) in space.present_pages() {
            if !space.vma_at(page).is_some_and(|area| area.perm.write) {
                continue;
            }
            let start = page.start().0;
            self.native.read(start, &mut host)?;
            let ours = frames.bytes(pte.frame);
            if let Some(at) = (0..PAGE_SIZE).find(|at| ours[*at] != host[*at]) {
                bail!(
                    "difference after {} equal instructions: byte at {:#x} is {:#x} on our side, {:#x} on the host",
                    self.report.compared,
                    start + at as u64,
                    ours[at],
                    host[at]
                );
            }
        }
        self.report.memory_checks += 1;
        Ok(())
    }

    /// Keeps output; gives the signals whose handlers were entered.
    fn take_events(&mut self) -> Vec<u32> {
        let mut signals = Vec::new();
        for event in self.world.take_events() {
            match event.kind {
                EventKind::Output { bytes, .. } => self.output.extend(bytes),
                EventKind::SignalEnter { number } => {
                    signals.push(number);
                    self.report.signals += 1;
                    self.loaded = None;
                    self.is_stale = true;
                }
                EventKind::SignalLeave => {
                    self.loaded = None;
                    self.is_stale = true;
                }
                _ => {}
            }
        }
        signals
    }
}
