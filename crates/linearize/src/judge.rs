//! The whole as a judge of runs: a run whose operations no serial order explains is wrong.

use std::sync::{Arc, Mutex, PoisonError};

use raddle_campaign::Leave;
use raddle_detect::Failure;
use raddle_explore::{About, Judge, StartFailure};
use raddle_protocol::Scripts;
use raddle_stdx::width::to_u64;
use raddle_trace::SerialRules;
use thiserror::Error;

use crate::compare::{Comparison, RuleError};
use crate::history::{History, Operation};
use crate::orders::{SerialRun, SerialWorld, whole_order};
use crate::verdicts::{Figures, Verdicts};

/// Why runs cannot be compared with serial orders.
#[derive(Debug, Error)]
pub enum CannotJudge {
    #[error(transparent)]
    Start(#[from] StartFailure),
    #[error(transparent)]
    Kernel(#[from] raddle_kernel::campaign::StartFailure),
    #[error("no thread of the machine can be had for serial orders: {0}")]
    NoThread(std::io::Error),
    #[error(
        "only tests written as `.ktest` files can be compared: a program that brings its own test has no calls that raddle knows"
    )]
    NoTestCase,
    #[error(
        "`state-files` is for programs: what a kernel's files hold is asked by the calls of `check:`"
    )]
    KernelFiles,
    #[error(transparent)]
    Rules(#[from] RuleError),
    #[error(
        "the program marks no operation: put raddle_begin() and raddle_end_operation() of raddle.h (`raddle kernel new-test --template raddle.h raddle.h` writes it), or operation() of the crate raddle-annotations, around what its threads do to the shared object"
    )]
    NoOperations,
    #[error(
        "only one thread of the program marks operations ({0} of them): there is nothing that could be in another order"
    )]
    OneClient(usize),
    #[error(
        "an operation begins inside another one of the same thread: end each with raddle_end_operation() before the next begins"
    )]
    Nested,
    #[error(
        "a probe begins while an operation is not over: probes ask for the state at the end, after all threads were joined"
    )]
    EarlyProbe,
    #[error(
        "the probe `{probe}` gives {first}, and asked again {second}: probes must not change anything; requests that do may stand in `continuation`"
    )]
    ProbeChanges {
        probe: String,
        first: String,
        second: String,
    },
    #[error(
        "run one after the other, the operations do not come to their end ({0}): what is to be compared needs a serial order that works"
    )]
    SerialFails(String),
}

/// An operation that gives different results in one and the same serial order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varying {
    pub name: String,
    pub one: String,
    pub other: String,
}

/// Compares runs with serial orders.
#[derive(Debug, Clone)]
pub struct Linearize {
    shared: Arc<Mutex<Verdicts<SerialWorld>>>,
}

impl Linearize {
    /// Brings a world of its own to where schedules begin, and runs a first serial order.
    ///
    /// # Errors
    /// The program does not come there, marks nothing or in the wrong place, or fails serially.
    pub fn start(about: &About, rules: &SerialRules, leave: Leave) -> Result<Self, CannotJudge> {
        let comparison = Comparison::new(rules)?;
        let (mut world, first) = SerialWorld::start(reading_marks(about), leave)?;
        check(&whole_order(&mut world, first))?;
        Ok(Self {
            shared: Arc::new(Mutex::new(Verdicts::new(world, comparison, rules))),
        })
    }

    /// Asks the first so many probes of a server twice, except those that vary by themselves.
    ///
    /// # Errors
    /// The second time they give something else, or the server does not come so far.
    pub fn check_probes(
        about: &About,
        rules: &SerialRules,
        (pure, varying): (usize, &[Varying]),
        leave: Leave,
    ) -> Result<(), CannotJudge> {
        let comparison = Comparison::new(rules)?;
        let probes = |scripts: &mut Scripts| {
            scripts.probes.truncate(pure);
            scripts.probes.extend_from_within(..);
        };
        let twice = first_run(about, &probes, about.inputs.seed, leave)?;
        let probes = twice.probes.unwrap_or_default();
        let (first, second) = probes.split_at(pure.min(probes.len()));
        let varies = |probe: &Operation| varying.iter().any(|known| known.name == probe.call.name);
        let pairs = first.iter().zip(second);
        let mut pairs = pairs.filter(|(first, _)| !varies(first));
        match pairs.find(|(first, second)| !comparison.is_same(first, second)) {
            Some((first, second)) => Err(CannotJudge::ProbeChanges {
                probe: first.call.name.clone(),
                first: first.given(),
                second: second.given(),
            }),
            None => Ok(()),
        }
    }

    /// Operations and probes whose results depend on something else than their order: one serial order, run with
    /// another seed, gives something else.
    ///
    /// # Errors
    /// The program does not come so far.
    pub fn varying(
        about: &About,
        rules: &SerialRules,
        leave: &Leave,
    ) -> Result<Vec<Varying>, CannotJudge> {
        let comparison = Comparison::new(rules)?;
        let run = |seed| first_run(about, &|_| {}, seed, leave.clone());
        let seed = about.inputs.seed;
        let (one, other) = (run(seed)?, run(seed.wrapping_add(1))?);
        let all = |run: SerialRun| {
            let probes = run.probes.unwrap_or_default();
            run.operations.into_iter().chain(probes)
        };
        let pairs = all(one).zip(all(other));
        let differing = pairs.filter(|(one, other)| !comparison.is_same(one, other));
        Ok(differing
            .map(|(one, other)| Varying {
                name: one.call.name.clone(),
                one: one.given(),
                other: other.given(),
            })
            .collect())
    }

    /// The judge of a campaign or a replay.
    pub fn judge(&self) -> Judge {
        let shared = Arc::clone(&self.shared);
        Judge::of_marks(move |result| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared
                .verdict(&History::of(result.marks))
                .map(Failure::NotSerial)
        })
    }

    pub fn figures(&self) -> Figures {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.figures()
    }
}

/// The world tells of marks to those who read them.
fn reading_marks(about: &About) -> Arc<About> {
    Arc::new(About {
        judge: Some(Judge::of_marks(|_| None)),
        ..about.clone()
    })
}

/// The first serial order, with other scripts and another seed.
fn first_run(
    about: &About,
    change: &dyn Fn(&mut Scripts),
    seed: u64,
    leave: Leave,
) -> Result<SerialRun, CannotJudge> {
    let mut about = about.clone();
    about.inputs.seed = seed;
    about.inputs.scripts.as_mut().map(change);
    let (mut world, first) = SerialWorld::start(reading_marks(&about), leave)?;
    let whole = whole_order(&mut world, first);
    check(&whole)?;
    Ok(whole)
}

/// What can be said of a test from its first serial order.
pub(crate) fn check(first: &SerialRun) -> Result<(), CannotJudge> {
    if first.early_probes > 0 {
        return Err(CannotJudge::EarlyProbe);
    }
    if first.nested > 0 {
        return Err(CannotJudge::Nested);
    }
    let mut clients: Vec<_> = first.operations.iter().map(|o| &o.client).collect();
    clients.sort();
    clients.dedup();
    if first.probes.is_none() {
        let how = match first.status {
            Some(status) => raddle_linux::describe_status(status),
            None => "it waits for ever".to_owned(),
        };
        let done = to_u64(first.operations.len());
        return Err(CannotJudge::SerialFails(format!(
            "{how}, after {done} operations"
        )));
    }
    match clients.len() {
        0 => Err(CannotJudge::NoOperations),
        1 => Err(CannotJudge::OneClient(first.operations.len())),
        _ => Ok(()),
    }
}
