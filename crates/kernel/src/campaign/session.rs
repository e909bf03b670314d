//! A guest at the start line of a test, ready to be run again and again.

use std::sync::Arc;

use raddle_campaign::{Clock, Digests, Leave};
use raddle_pc::machine::LoadError;
use raddle_report::Finding;
use raddle_sched::{Drive, Policy, Scheduler, drive_while};
use raddle_stdx::width::to_usize;
use raddle_trace::Schedule;
use raddle_trace::recording::SERIAL_ORDERS;
use raddle_world::{Event, Site, Snapshot, World};
use serde::{Deserialize, Serialize};

use super::allowed::ContextSet;
use super::judge::{Judge, told_calls};
use super::race_rules::{LockCode, RaceRules};
use super::run::Rules;
use super::serial::SerialRuns;
use crate::program::{Program, ResultKind, TooLarge};
use crate::recording::{KernelRecording, MachineInputs, ModuleInput, SEMANTICS};
use crate::store::BootSnapshot;
use crate::symbols::Symbols;
use crate::test_case::TestCase;
use crate::world::{KernelWorld, TestFailure};

/// What is explored: a booted kernel and a test.
#[derive(Debug, Clone)]
pub struct Target {
    pub boot: Arc<BootSnapshot>,
    /// The test; none if the guest's own program brings it.
    pub test: Option<TestCase>,
    pub symbols: Arc<Symbols>,
    /// Which functions synchronise, and which race on purpose.
    pub race_rules: RaceRules,
    /// Content of the modules that were loaded before the boot snapshot.
    pub modules: Vec<Vec<u8>>,
    /// The contexts that may run during a test; none for all of them.
    pub contexts: Option<ContextSet>,
    /// Virtual nanoseconds of a test at most.
    pub time_max: u64,
    /// Has the last word on runs in which nothing fails.
    pub judge: Option<Judge>,
    /// What recordings say of where all of it came from.
    pub origin: Origin,
}

/// What recordings say of a test and its machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Origin {
    pub machine: MachineInputs,
    /// Modules that the test loads.
    pub modules: Vec<ModuleInput>,
}

impl Target {
    /// The test, as it is named.
    pub fn test_path(&self) -> &str {
        let test = self.test.as_ref();
        test.map_or("agent-program", |test| test.path.as_str())
    }

    /// The recording of a run.
    pub(super) fn recording(&self, finding: &Finding, run: Recordable<'_>) -> KernelRecording {
        KernelRecording {
            semantics: SEMANTICS,
            needs: self
                .judge
                .iter()
                .map(|_| SERIAL_ORDERS.to_owned())
                .collect(),
            serial: self.judge.as_ref().map(|judge| judge.rules.clone()),
            failure: finding.title.clone(),
            fingerprint: finding.fingerprint.clone(),
            machine: self.origin.machine.clone(),
            test_path: self.test_path().to_owned(),
            test: self.test.as_ref().map(|test| test.text.clone()),
            modules: self.origin.modules.clone(),
            time_max: self.time_max,
            rules: run.rules,
            schedule: run.schedule.clone(),
            start_digest: run.start_digest,
            run_digest: run.digests.run,
            state_digest: run.digests.state,
        }
    }
}

/// What only the run itself tells of its recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recordable<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) rules: Rules,
    pub(super) start_digest: u64,
    pub(super) digests: Digests,
}

/// Why a test cannot be explored.
#[derive(Debug, thiserror::Error)]
pub enum StartFailure {
    #[error("the boot snapshot cannot be loaded: {0}")]
    Load(#[from] LoadError),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(
        "{0}: the guest ran out of memory, without any interleaving: give it more with --memory, or let the test take less"
    )]
    OutOfMemory(String),
    #[error(
        "none of the places to focus on has code: {0}; name functions of the kernel or of a module, or FILE:LINE where there is debug information"
    )]
    NoFocus(String),
    #[error("{0}")]
    Test(String),
    #[error("{0}")]
    Unsupported(String),
}

/// How the kernel's panic begins when there is no memory left.
pub(super) const OUT_OF_MEMORY: &str = "Kernel panic - not syncing: Out of memory";

/// A guest at the start line.
#[derive(Debug)]
pub struct Session<'a> {
    pub world: KernelWorld,
    pub target: &'a Target,
    pub(super) lock_code: LockCode,
    /// Decision points, as they were asked for last.
    pub(super) points: Vec<Site>,
    start: Snapshot,
    /// Pages that restores had copied back before the last one.
    pages: u64,
    /// How long runs may go on.
    pub(super) leave: Leave,
    /// Measures where the time goes, if the caller lends one.
    pub(super) clock: Option<Clock>,
    start_digest: Option<u64>,
    serial: Option<SerialRuns>,
}

impl<'a> Session<'a> {
    /// Makes a guest from the boot snapshot and brings the test to its start line.
    pub fn start(target: &'a Target) -> Result<Self, StartFailure> {
        Self::begin(target, false)
    }

    /// The same for runs of calls one after the other: they stop before each call.
    pub fn start_serial(target: &'a Target) -> Result<Self, StartFailure> {
        Self::begin(target, true)
    }

    fn begin(target: &'a Target, stops: bool) -> Result<Self, StartFailure> {
        let mut world = target.boot.world()?;
        // In user space only the agent runs a test case, and its own bookkeeping is no decision; a program that brings its
        // own test has threads of its own.
        world.tell_user(target.test.is_none());
        let cpus = world.machine().cpus();
        let input = match &target.test {
            Some(test) => input(test, cpus)?,
            None => Program::external(),
        };
        world
            .begin_test(&input, target.time_max)
            .map_err(|failure| explain(&failure, target.test.as_ref()))?;
        if let Some(test) = target
            .test
            .as_ref()
            .filter(|_| stops || target.judge.is_some())
        {
            world.tell_calls(Some(told_calls(test, stops)));
        }
        let start = world.snapshot();
        Ok(Self {
            world,
            target,
            lock_code: LockCode::default(),
            points: Vec::new(),
            start,
            pages: 0,
            leave: Leave::endless(),
            clock: None,
            start_digest: None,
            serial: None,
        })
    }

    /// Digest of the guest at the start line, to which it goes back if that was not asked for before: all of its memory
    /// is read.
    pub fn start_digest(&mut self) -> u64 {
        if let Some(digest) = self.start_digest {
            return digest;
        }
        self.restore();
        *self.start_digest.insert(self.world.machine().digest())
    }

    /// Runs a schedule from where the guest stands; `sink` gets the events after each slice. All runs are made here.
    pub(super) fn drive(
        &mut self,
        scheduler: &mut dyn Scheduler,
        policy: Policy,
        sink: &mut dyn FnMut(&mut KernelWorld, &[Event]),
    ) -> Drive {
        let leave = &self.leave;
        drive_while(&mut self.world, scheduler, policy, sink, &|| {
            !leave.is_over()
        })
    }

    /// Runs a schedule from the start line, without a judgement.
    pub fn play(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: Rules,
        sink: &mut dyn FnMut(&mut KernelWorld, &[Event]),
    ) -> Drive {
        self.restore();
        rules.apply(&mut self.world);
        self.drive(scheduler, rules.policy(), sink)
    }

    pub fn restore(&mut self) {
        self.pages = self.world.machine().restored_pages();
        self.world.restore(self.start);
    }

    /// A processor and the thread of the test that runs on it.
    pub(super) fn label(&self, cpu: usize) -> String {
        match self.thread_on(cpu) {
            Some(name) => format!("CPU {cpu} `{name}`"),
            None => format!("CPU {cpu}"),
        }
    }

    /// The thread of the test that runs on a processor, or else the processor.
    pub(super) fn thread_name(&self, cpu: usize) -> String {
        let name = self.thread_on(cpu);
        name.map_or_else(|| format!("CPU {cpu}"), str::to_owned)
    }

    fn thread_on(&self, cpu: usize) -> Option<&str> {
        let threads = self.world.thread_cpus();
        let found = threads.iter().find(|(_, at)| *at == cpu)?;
        let test = self.target.test.as_ref()?;
        test.threads.get(to_usize(found.0)).map(String::as_str)
    }

    /// What was seen of the serial orders, which are run when that is first asked for; nothing if there is no time.
    pub(super) fn serial_runs(&mut self, rules: &Rules) -> Option<&SerialRuns> {
        if self.serial.is_none() {
            self.serial = SerialRuns::of(self, rules);
        }
        self.serial.as_ref()
    }

    /// Right after [`Self::restore`]: the pages that it copied back, and the instructions made up to the start line.
    pub(super) fn restored(&self) -> (u64, u64) {
        let pages = self.world.machine().restored_pages() - self.pages;
        (pages, self.world.instructions())
    }
}

/// The test as the agent of a machine with so many processors gets it.
pub fn input(test: &TestCase, cpus: usize) -> Result<Vec<u8>, StartFailure> {
    let threads = test.threads.len();
    if threads > cpus {
        return Err(StartFailure::Test(format!(
            "{}: the test has {threads} threads, the machine has {cpus} processors: give it more with --cpus {threads}",
            test.path
        )));
    }
    // Everything else goes to a processor without a test thread, or to the first one.
    let housekeeping = if cpus > threads { cpus - 1 } else { 0 };
    let housekeeping = u32::try_from(housekeeping).unwrap_or(0);
    Ok(test.program.encode(housekeeping)?)
}

fn explain(failure: &TestFailure, test: Option<&TestCase>) -> StartFailure {
    match failure {
        TestFailure::Unsupported(what) => StartFailure::Unsupported(format!(
            "the kernel executed an instruction that is not supported: {what}"
        )),
        TestFailure::Setup { results } => {
            let Some(test) = test else {
                return StartFailure::Test(failure.to_string());
            };
            let wrong = results
                .iter()
                .find(|result| result.kind == ResultKind::NotAsExpected);
            let text = wrong.and_then(|result| {
                let statement = test.statements.get(result.statement)?;
                Some(format!(
                    "{}:{}: the set-up failed: `{}` gave {}",
                    test.path,
                    statement.line,
                    statement.text,
                    TestCase::show_result(result.value)
                ))
            });
            StartFailure::Test(text.unwrap_or_else(|| failure.to_string()))
        }
        TestFailure::Crashed { console } if console.contains(OUT_OF_MEMORY) => {
            StartFailure::OutOfMemory(test.map_or("the program", |test| &test.path).to_owned())
        }
        _ => StartFailure::Test(match test {
            Some(test) => format!("{}: {failure}", test.path),
            None => failure.to_string(),
        }),
    }
}
