//! A guest at the start line of a test, ready to be run again and again.

use std::sync::Arc;

use raddle_campaign::Leave;
use raddle_pc::machine::LoadError;
use raddle_stdx::width::to_usize;
use raddle_world::{Snapshot, World};

use super::allowed::ContextSet;
use super::race_rules::{LockCode, RaceRules};
use crate::program::{Program, ResultKind, TooLarge};
use crate::store::BootSnapshot;
use crate::symbols::Symbols;
use crate::test_case::TestCase;
use crate::world::{KernelWorld, TestFailure};

/// What is explored: a booted kernel and a test.
#[derive(Debug)]
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
    start: Snapshot,
    /// Pages that restores had copied back before the last one.
    pages: u64,
    /// How long runs may go on.
    pub(super) leave: Leave,
}

impl<'a> Session<'a> {
    /// Makes a guest from the boot snapshot and brings the test to its start line.
    pub fn start(target: &'a Target) -> Result<Self, StartFailure> {
        let mut world = target.boot.world()?;
        let cpus = world.machine().cpus();
        let input = match &target.test {
            Some(test) => input(test, cpus)?,
            None => Program::external(),
        };
        world
            .begin_test(&input, target.time_max)
            .map_err(|failure| explain(&failure, target.test.as_ref()))?;
        let start = world.snapshot();
        Ok(Self {
            world,
            target,
            lock_code: LockCode::default(),
            start,
            pages: 0,
            leave: Leave::endless(),
        })
    }

    /// Digest of the guest at the start line. Reads all of its memory.
    pub fn start_digest(&mut self) -> u64 {
        self.restore();
        self.world.machine().digest()
    }

    pub fn restore(&mut self) {
        self.pages = self.world.machine().restored_pages();
        self.world.restore(self.start);
    }

    /// A processor and the thread of the test that runs on it.
    pub(super) fn label(&self, cpu: usize) -> String {
        let threads = self.world.thread_cpus();
        let name = threads.iter().find(|(_, at)| *at == cpu).and_then(|found| {
            let test = self.target.test.as_ref()?;
            test.threads.get(to_usize(found.0))
        });
        match name {
            Some(name) => format!("CPU {cpu} `{name}`"),
            None => format!("CPU {cpu}"),
        }
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
