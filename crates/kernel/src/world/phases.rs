//! Boot, set-up and checks: the parts of a run in which processors just take turns.

use raddle_pc::boot::BootImage;
use raddle_pc::machine::{Bounds, Machine, MachineError, MachineStop};
use raddle_stdx::width::to_u64;
use raddle_world::Unsupported;

use super::call::Answered;
use super::{KernelWorld, Phase, RunEnd, context_of};
use crate::program::{Program, StatementResult};

/// Steps of one turn.
const TURN: u64 = 20_000;
/// Steps between two reports of progress.
const CHUNK: u64 = 5_000_000;
/// Steps of a boot at most: several times what the largest distribution kernel takes.
const BOOT_STEPS_MAX: u64 = 12_000_000_000;
/// Steps of a set-up at most.
const SETUP_STEPS_MAX: u64 = 3_000_000_000;
/// Virtual time of a set-up, and of the checks, at most: sleeping costs no steps.
const SETUP_TIME_MAX: u64 = 120_000_000_000;
/// Steps of the checks at most: they are part of every schedule.
const CHECK_STEPS_MAX: u64 = 500_000_000;

/// How far a boot is.
#[derive(Debug)]
pub struct BootProgress<'a> {
    pub steps: u64,
    /// Console output since the last report.
    pub console: &'a [u8],
}

/// Why a kernel did not boot.
#[derive(Debug, thiserror::Error)]
pub enum BootFailure {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("the kernel panicked while booting: {reason}")]
    Panic { reason: String, console: String },
    #[error("the kernel reset the machine while booting; the end of the console says why")]
    Reset { console: String },
    #[error(
        "the kernel executed an instruction that is not supported: {what}; please report it with the kernel's version"
    )]
    Unsupported {
        what: Box<Unsupported>,
        console: String,
    },
    #[error(
        "the kernel did not reach its first process within {} million instructions; the end of the console says where it is",
        steps / 1_000_000
    )]
    NoEnd { steps: u64, console: String },
    #[error(
        "all processors sleep and no timer is set; the end of the console says where the kernel is"
    )]
    Asleep { console: String },
    #[error("the agent could not prepare the guest: {text}")]
    Agent { text: String, console: String },
    #[error(
        "the kernel uses only processors {online} of {wanted}: it was built without SMP (CONFIG_SMP) or told `nosmp`, \
         and one processor interleaves nothing"
    )]
    NoSmp { online: String, wanted: usize },
}

impl BootFailure {
    /// What the kernel had printed, if it got so far.
    pub fn console(&self) -> Option<&str> {
        match self {
            Self::Panic { console, .. }
            | Self::Reset { console }
            | Self::Unsupported { console, .. }
            | Self::NoEnd { console, .. }
            | Self::Asleep { console }
            | Self::Agent { console, .. } => Some(console),
            Self::Machine(_) | Self::NoSmp { .. } => None,
        }
    }
}

/// Why a test could not be brought to its start line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestFailure {
    #[error("the test takes {size} bytes, the agent has room for {room}")]
    TooLarge { size: u64, room: u64 },
    #[error("the set-up failed")]
    Setup { results: Vec<StatementResult> },
    #[error("the kernel failed during the set-up; its own words:\n{console}")]
    Crashed { console: String },
    #[error("the agent could not go on: {text}")]
    Agent { text: String },
    #[error(
        "the test does not come to its start line: {threads} threads were announced, {started} arrived, and nothing \
         more happened for {} seconds of the guest's time; a set-up call that blocks for ever is the usual reason",
        SETUP_TIME_MAX / 1_000_000_000
    )]
    NeverStarts { threads: u64, started: u64 },
    #[error("{0}")]
    Unsupported(Box<Unsupported>),
    #[error("the guest's memory was not where the agent said")]
    Memory,
    #[error(
        "the test ended before its threads started: a program given with --agent-program calls raddle_threads, and \
         raddle_start in each thread, before raddle_finish"
    )]
    EndedEarly,
}

/// Why taking turns ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TurnEnd {
    /// The step bound was reached.
    Steps,
    /// Input is asked for, or all threads are at the start line.
    Waits,
    Over,
    Asleep,
}

impl KernelWorld {
    /// Boots to the agent's call for input.
    pub fn boot(
        image: &BootImage,
        cpus: usize,
        memory: u64,
        progress: &mut dyn FnMut(BootProgress<'_>),
    ) -> Result<Self, BootFailure> {
        let machine = Machine::new(image, cpus, memory)?;
        let mut world = Self::new(machine);
        let mut steps = 0;
        loop {
            let mut shown = world.state.console.text().len();
            let end = world.take_turns(CHUNK, u64::MAX);
            steps += CHUNK;
            let text = world.state.console.text();
            shown = shown.min(text.len());
            progress(BootProgress {
                steps,
                console: &text.as_bytes()[shown..],
            });
            let panic = text
                .lines()
                .find_map(|line| line.split_once("Kernel panic - not syncing: "));
            if let Some((_, reason)) = panic {
                return Err(BootFailure::Panic {
                    reason: reason.to_owned(),
                    console: text,
                });
            }
            match end {
                TurnEnd::Waits => break,
                TurnEnd::Steps if steps >= BOOT_STEPS_MAX => {
                    return Err(BootFailure::NoEnd {
                        steps,
                        console: text,
                    });
                }
                TurnEnd::Steps => {}
                TurnEnd::Asleep => return Err(BootFailure::Asleep { console: text }),
                TurnEnd::Over => return Err(world.boot_failure(text)),
            }
        }
        let is_single = matches!(world.info().online.as_str(), "0" | "?");
        if cpus > 1 && is_single {
            return Err(BootFailure::NoSmp {
                online: world.info().online.clone(),
                wanted: cpus,
            });
        }
        Ok(world)
    }

    fn boot_failure(&self, console: String) -> BootFailure {
        match &self.state.end {
            Some(RunEnd::Unsupported(what)) => BootFailure::Unsupported {
                what: what.clone(),
                console,
            },
            Some(RunEnd::Fatal(text)) => BootFailure::Agent {
                text: text.clone(),
                console,
            },
            _ => BootFailure::Reset { console },
        }
    }

    /// Gives the agent its test and lets it set up until all threads stand at the start line.
    pub fn begin_test(&mut self, input: &[u8], time_max: u64) -> Result<(), TestFailure> {
        let Some(asked) = self.state.input.take() else {
            return Err(TestFailure::Memory);
        };
        let size = to_u64(input.len());
        if size > asked.size {
            return Err(TestFailure::TooLarge {
                size,
                room: asked.size,
            });
        }
        if !self.machine.write_virtual(asked.cpu, asked.buffer, input) {
            return Err(TestFailure::Memory);
        }
        self.state.data_area = Program::data_offset(input).map(|offset| asked.buffer + offset);
        self.machine
            .cpu_mut(asked.cpu)
            .set_reg(raddle_x86::Reg::Rax, size);
        self.state.phase = Phase::Setup;
        self.state.turn = asked.cpu;
        self.state.console.begin_test();
        let began = self.machine.now();
        let end = self.take_turns(SETUP_STEPS_MAX, began + SETUP_TIME_MAX);
        match (end, self.state.end.clone()) {
            (TurnEnd::Waits, _) => {}
            (_, Some(RunEnd::Finished { .. })) if self.state.results.is_empty() => {
                return Err(TestFailure::EndedEarly);
            }
            (_, Some(RunEnd::Finished { .. })) => {
                return Err(TestFailure::Setup {
                    results: self.state.results.clone(),
                });
            }
            (_, Some(RunEnd::Fatal(text))) => return Err(TestFailure::Agent { text }),
            (_, Some(RunEnd::Unsupported(what))) => return Err(TestFailure::Unsupported(what)),
            (_, Some(_)) => {
                return Err(TestFailure::Crashed {
                    console: self.state.console.test_text(),
                });
            }
            (_, None) => {
                return Err(TestFailure::NeverStarts {
                    threads: self.state.threads,
                    started: to_u64(self.state.started.len()),
                });
            }
        }
        self.state.phase = Phase::Test;
        self.state.test_began = self.machine.now();
        self.time_max = time_max;
        for cpu in 0..self.machine.cpus() {
            self.state.contexts.get_mut(context_of(cpu)).steps = self.machine.steps(cpu);
        }
        self.refresh_liveness();
        Ok(())
    }

    /// After the last thread's end: lets the agent check and finish.
    pub(super) fn run_checks(&mut self) {
        self.state.phase = Phase::Check;
        self.set_interest(&[]);
        if self.trace.is_none() {
            // The checks run when the test is over and race with no thread.
            self.set_observe(false);
        }
        let began = self.machine.now();
        let end = self.take_turns(CHECK_STEPS_MAX, began + SETUP_TIME_MAX);
        if end != TurnEnd::Over {
            self.finish(RunEnd::Stuck);
        }
    }

    /// Processors in turn, until the bound is reached or something waits for the host.
    fn take_turns(&mut self, steps_max: u64, time_max: u64) -> TurnEnd {
        let mut left = steps_max;
        // A turn is so many steps, however often flagged points interrupt it: a replay has no points.
        let mut turn_left = TURN;
        while left > 0 && self.machine.now() < time_max {
            let Some(cpu) = self.next_in_turn() else {
                if self.is_everybody_waiting() {
                    return TurnEnd::Waits;
                }
                if self.machine.skip_to_timer() {
                    continue;
                }
                return TurnEnd::Asleep;
            };
            if self.state.turn != cpu || turn_left == 0 {
                turn_left = TURN;
            }
            self.state.turn = cpu;
            let ran = self.machine.run(
                cpu,
                Bounds {
                    stop_at_pause: true,
                    stop_at_line: false,
                    skip_point: true,
                    pass_points: u64::MAX,
                    ..Bounds::steps(turn_left.min(left))
                },
            );
            left -= ran.steps;
            turn_left -= ran.steps;
            self.digest_accesses();
            self.drain_console();
            if self.state.phase != Phase::Boot && self.state.console.tells_death() {
                self.finish(RunEnd::Crashed);
                return TurnEnd::Over;
            }
            let stop = match ran.stop {
                MachineStop::Point(_) if turn_left == 0 => MachineStop::Steps,
                stop => stop,
            };
            if matches!(stop, MachineStop::Idle | MachineStop::Pause) {
                turn_left = 0;
            }
            match self.turn_stop(cpu, stop) {
                Some(TurnEnd::Waits) if self.is_everybody_waiting() => return TurnEnd::Waits,
                Some(TurnEnd::Waits) | None => {}
                Some(end) => return end,
            }
        }
        TurnEnd::Steps
    }

    fn turn_stop(&mut self, cpu: usize, stop: MachineStop) -> Option<TurnEnd> {
        match stop {
            MachineStop::Steps | MachineStop::Idle | MachineStop::Pause => {
                self.state.turn = (cpu + 1) % self.machine.cpus();
                None
            }
            MachineStop::Point(_)
            | MachineStop::LogFull
            | MachineStop::Line
            | MachineStop::Arrival
            | MachineStop::Window
            | MachineStop::InterruptDone => None,
            MachineStop::Hypercall => match self.answer(cpu) {
                Answered::GoesOn | Answered::ThreadEnded => None,
                Answered::Waits => Some(TurnEnd::Waits),
                Answered::Over => Some(TurnEnd::Over),
            },
            MachineStop::Reset | MachineStop::Shutdown => {
                self.finish(RunEnd::Reset);
                Some(TurnEnd::Over)
            }
            MachineStop::Unsupported { rip, bytes } => {
                self.finish(RunEnd::Unsupported(unsupported(rip, &bytes)));
                Some(TurnEnd::Over)
            }
        }
    }

    /// The next processor that can run and does not wait at the start line.
    fn next_in_turn(&self) -> Option<usize> {
        if self.state.input.is_some() {
            return None;
        }
        let cpus = self.machine.cpus();
        (0..cpus)
            .map(|offset| (self.state.turn + offset) % cpus)
            .find(|cpu| self.machine.is_runnable(*cpu) && !self.is_held(*cpu))
    }

    /// Whether a processor stands at the start line.
    fn is_held(&self, cpu: usize) -> bool {
        self.state.phase == Phase::Setup
            && self
                .state
                .started
                .values()
                .any(|started| started.cpu == cpu)
    }

    fn is_everybody_waiting(&self) -> bool {
        self.state.input.is_some()
            || self.state.phase == Phase::Setup
                && self.state.threads > 0
                && to_u64(self.state.started.len()) == self.state.threads
    }

    pub(super) fn drain_console(&mut self) {
        let printed = self.machine.bus_mut().take_console();
        if !printed.is_empty() {
            self.state.console.append(&printed);
        }
    }
}

pub(super) fn unsupported(pc: u64, bytes: &[u8]) -> Box<Unsupported> {
    Box::new(Unsupported::ProcessorInstruction {
        pc,
        bytes: bytes.to_vec(),
    })
}
