//! A machine with an agent inside, as a world of processors.
//!
//! ```text
//!   boot ──Input──▶ set-up ──all Start──▶ test (explored) ──all End──▶ checks ──Finish──▶ done
//!          │                      │
//!          boot snapshot          schedules begin here
//! ```
//! Before the start line and after the end, processors take turns; in between a scheduler decides.

mod call;
mod console;
mod explored;
mod heuristics;
mod inspect;
mod instructions;
mod interrupt;
mod observed;
mod phases;
mod saved;
mod ski_liveness;
mod splat;
mod splat_words;
mod sync_calls;
mod sync_functions;
mod told_calls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use raddle_pc::machine::{Machine, MachineSnapshot};
use raddle_world::{ContextId, ContextTable, Event, Site, Unsupported};

use crate::program::StatementResult;
pub use console::Console;
pub use heuristics::{Heuristic, Heuristics};
use heuristics::{PAUSE_LOOP, Pause};
pub use instructions::Executed;
use interrupt::Told;
pub(crate) use interrupt::processor_and_vector;
pub use phases::{BootFailure, BootProgress, TestFailure};
use ski_liveness::SkiLiveness;
pub use splat::{Splat, SplatKind};
pub(crate) use sync_calls::RCU;
pub use sync_calls::SyncCalls;
use told_calls::Called;
pub use told_calls::ToldCalls;

/// First address of the kernel's half; what it links below are offsets of per-CPU variables.
pub(crate) const KERNEL_HALF: u64 = 1 << 63;

/// What the agent told about the guest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuestInfo {
    pub release: String,
    pub version: String,
    /// Processors that the kernel uses, as it lists them.
    pub online: String,
    /// Threads of the kernel that cannot be moved to another processor: number and name.
    pub fixed_threads: Vec<String>,
    /// Loaded modules with the address of their text.
    pub modules: BTreeMap<String, u64>,
}

/// Where the guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Boot,
    Setup,
    Test,
    Check,
    Done,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The test came to its end with this status of the agent.
    Finished { status: u64 },
    /// The kernel said that it has failed, and stopped or killed a thread of the test.
    Crashed,
    /// A test thread did not come to its end within the time.
    Stuck,
    /// The guest reset the machine or a processor gave up.
    Reset,
    /// The agent could not go on.
    Fatal(String),
    /// The engine does not know an instruction.
    Unsupported(Box<Unsupported>),
}

/// Everything about a run but the machine; restored by cloning.
#[derive(Debug, Clone)]
struct State {
    phase: Phase,
    contexts: ContextTable,
    /// Threads that will come to the start line.
    threads: u64,
    /// Processor and progress word of each thread at or behind the start line.
    started: BTreeMap<u64, Started>,
    ended: BTreeSet<u64>,
    results: Vec<StatementResult>,
    failed_checks: Vec<String>,
    console: Console,
    end: Option<RunEnd>,
    info: Arc<GuestInfo>,
    /// The interrupts that have their own contexts: processor and vector.
    interrupts: BTreeMap<(usize, u8), ContextId>,
    /// Interrupts that could be taken when the last slice began.
    could_dispatch: usize,
    /// Program point that each processor stands at, already told.
    at_point: Vec<Option<u64>>,
    /// Whether a test thread of each processor has ended.
    is_through: Vec<bool>,
    /// Whether a processor with a thread of the test slept since the start line.
    has_slept: bool,
    /// What the liveness of each processor's contexts was last made of.
    told: Vec<Option<Told>>,
    /// The last pause of each processor.
    paused: Vec<Option<Pause>>,
    /// When the test began.
    test_began: u64,
    /// Processor and buffer of the agent's call for input.
    input: Option<Input>,
    /// Processor to go on with when taking turns.
    turn: usize,
    /// Processor that ran last.
    running: usize,
    /// All switches since the start line, if they are wanted.
    switches: Vec<Switch>,
    /// Of all switches since the start line.
    run_digest: raddle_stdx::Digest,
    synchronisation: sync_calls::SyncState,
    /// How far each thread is with its calls, if they are told.
    called: Vec<Called>,
    /// Where the data area of the test lies.
    data_area: Option<u64>,
    /// What the wanted buffers held when the test was over.
    buffers: Vec<Vec<u8>>,
}

/// A processor stopped and another one, or an interrupt, went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    pub from: usize,
    /// The interrupt that it takes there; none if another processor goes on.
    pub interrupt: Option<u8>,
    /// Where it stands.
    pub pc: u64,
    /// Whether it waits for an interrupt there.
    pub is_idle: bool,
    /// Statement that each thread is at.
    pub progress: Vec<Option<usize>>,
    /// Locks that are held there, if synchronisation was told.
    pub locks: Option<Vec<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Started {
    cpu: usize,
    progress: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Input {
    cpu: usize,
    buffer: u64,
    size: u64,
}

/// A guest.
#[derive(Debug)]
pub struct KernelWorld {
    machine: Machine,
    state: State,
    saved: Vec<(MachineSnapshot, State)>,
    events: Vec<Event>,
    /// Whether a scheduler decides when an interrupt is taken.
    schedules_interrupts: bool,
    /// Instructions between two pauses of a processor that waits.
    pause_window: u64,
    /// The same for two pauses at one place, which SKI does not know.
    pause_loop: u64,
    /// Liveness as SKI infers it, if that is wanted instead of trying out.
    ski: Option<SkiLiveness>,
    /// Whether accesses are told, and not only seen.
    tells_accesses: bool,
    notes_switches: bool,
    heuristics: Heuristics,
    /// Digest and number of all memory accesses, if they are wanted.
    trace: Option<(raddle_stdx::Digest, u64)>,
    /// Points that are never passed.
    interest: Vec<Site>,
    /// The instructions of a run, if they are wanted.
    instructions: Option<instructions::Instructions>,
    /// Whether a debugger looks on: what belongs to no test counts too, and stopping changes nothing.
    is_debugged: bool,
    /// Whether accesses of processors whose threads have ended are told.
    tells_asides: bool,
    /// Whether accesses of code outside of the kernel, and to memory outside of it, are told.
    tells_user: bool,
    /// Whether accesses of the kernel to memory outside of it are told.
    tells_copies: bool,
    /// Whether accesses are told with their values.
    tells_values: bool,
    /// Functions that synchronise, if their calls are told.
    synchronisation: Option<Box<SyncCalls>>,
    /// Virtual nanoseconds that a test may take.
    time_max: u64,
    /// The calls of the test, if they are told.
    told_calls: Option<ToldCalls>,
}

impl KernelWorld {
    fn new(machine: Machine) -> Self {
        let cpus = machine.cpus();
        let mut contexts = ContextTable::default();
        for cpu in 0..cpus {
            contexts.create(None, format!("CPU {cpu}").into());
        }
        Self {
            machine,
            state: State {
                phase: Phase::Boot,
                contexts,
                threads: 0,
                started: BTreeMap::new(),
                ended: BTreeSet::new(),
                results: Vec::new(),
                failed_checks: Vec::new(),
                console: Console::default(),
                end: None,
                info: Arc::default(),
                interrupts: BTreeMap::new(),
                could_dispatch: 0,
                at_point: vec![None; cpus],
                is_through: vec![false; cpus],
                has_slept: false,
                told: vec![None; cpus],
                paused: vec![None; cpus],
                test_began: 0,
                input: None,
                turn: 0,
                running: 0,
                switches: Vec::new(),
                run_digest: raddle_stdx::Digest::default(),
                synchronisation: sync_calls::SyncState::default(),
                called: Vec::new(),
                data_area: None,
                buffers: Vec::new(),
            },
            saved: Vec::new(),
            events: Vec::new(),
            schedules_interrupts: false,
            pause_window: 0,
            pause_loop: PAUSE_LOOP,
            ski: None,
            tells_accesses: false,
            notes_switches: false,
            heuristics: Heuristics::default(),
            trace: None,
            interest: Vec::new(),
            instructions: None,
            is_debugged: false,
            tells_asides: false,
            tells_user: false,
            tells_copies: false,
            tells_values: false,
            synchronisation: None,
            time_max: u64::MAX,
            told_calls: None,
        }
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    pub fn info(&self) -> &GuestInfo {
        &self.state.info
    }

    /// Where each processor has its own variables: its GS base while it is in the kernel.
    pub fn per_cpu(&self) -> Vec<u64> {
        let processors = (0..self.machine.cpus()).map(|cpu| self.machine.cpu(cpu));
        processors
            .map(|cpu| cpu.gs_base().max(cpu.system.kernel_gs_base))
            .collect()
    }

    pub fn console(&self) -> &Console {
        &self.state.console
    }

    /// How the run ended; none while it goes on.
    pub fn end(&self) -> Option<&RunEnd> {
        self.state.end.as_ref()
    }

    pub fn results(&self) -> &[StatementResult] {
        &self.state.results
    }

    /// What a program that brings its own test found wrong.
    pub fn failed_checks(&self) -> &[String] {
        &self.state.failed_checks
    }

    /// Digest of all switches since the start line, of how far each processor came, and of the time.
    pub fn run_digest(&self) -> u64 {
        let mut digest = self.state.run_digest;
        for cpu in 0..self.machine.cpus() {
            digest.word(self.machine.steps(cpu));
            digest.word(self.machine.register_digest(cpu));
        }
        digest.word(self.machine.now());
        digest.value()
    }

    /// Number of the statement that each thread is at, as its progress word tells; none if it is through or was
    /// never there.
    pub fn progress(&mut self) -> Vec<Option<usize>> {
        let started: Vec<Started> = self.state.started.values().copied().collect();
        started
            .into_iter()
            .map(|thread| {
                let mut word = [0; 8];
                let is_there = thread.progress != 0
                    && self
                        .machine
                        .read_virtual(thread.cpu, thread.progress, &mut word);
                let word = u64::from_le_bytes(word);
                (is_there && word != 0 && word != u64::MAX)
                    .then(|| raddle_stdx::width::to_usize(word - 1))
            })
            .collect()
    }

    /// Why processors were passed over since the last call, as far as the world knows: halts and pauses.
    pub fn take_heuristics(&mut self) -> Heuristics {
        std::mem::take(&mut self.heuristics)
    }

    /// Instructions that all processors have made.
    pub fn instructions(&self) -> u64 {
        (0..self.machine.cpus())
            .map(|cpu| self.machine.steps(cpu))
            .sum()
    }

    /// Whether switches are written down from now on.
    pub fn note_switches(&mut self, wanted: bool) {
        self.notes_switches = wanted;
    }

    /// The switches of the last run, if they were wanted.
    pub fn switches(&self) -> &[Switch] {
        &self.state.switches
    }

    /// The processor that each thread of the test runs on.
    pub fn thread_cpus(&self) -> Vec<(u64, usize)> {
        let started = self.state.started.iter();
        started.map(|(thread, at)| (*thread, at.cpu)).collect()
    }

    /// Threads of the test that have not come to their end.
    pub fn unfinished(&self) -> Vec<u64> {
        (0..self.state.threads)
            .filter(|thread| !self.state.ended.contains(thread))
            .collect()
    }
}

/// What a processor does outside of interrupts.
pub fn context_of(cpu: usize) -> ContextId {
    ContextId(raddle_stdx::width::low_u32(raddle_stdx::width::to_u64(cpu)))
}
