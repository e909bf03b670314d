//! What counts as wrong: how a run ended, and what the user says about what it wrote.

use std::fmt;
use std::sync::Arc;

use raddle_detect::{Failure, HeapFault, assertion_message};
use raddle_linux::{Halt, HeapErrorKind, LinuxWorld};
use raddle_sched::{Drive, End};
use raddle_trace::{Limits, Recording};
use raddle_world::{ContextId, Event, EventKind, Liveness, Mark, Site, World};
use serde::{Deserialize, Serialize};

/// Bytes of standard error that are kept for a judgement.
const WORDS_MAX: usize = 16 << 10;
/// Bytes of standard output that are kept for a judgement.
const OUTPUT_MAX: usize = 16 << 20;

/// What a run that ended by itself left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Result<'a> {
    pub status: i32,
    pub stdout: &'a [u8],
    /// What operations were marked, in the order in which that happened; only if the judge reads marks.
    pub marks: &'a [Marked],
}

/// A mark, and who has made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    pub context: Arc<[u32]>,
    /// Its own steps before.
    pub steps: u64,
    /// Everybody's steps before, if it has no code of its own: others work for it.
    pub shared_steps: Option<u64>,
    pub mark: Mark,
}

impl Marked {
    /// The mark that an event is, if it is one.
    pub fn of(world: &LinuxWorld, event: &Event) -> Option<Self> {
        let EventKind::Mark(mark) = &event.kind else {
            return None;
        };
        Some(Self {
            context: Arc::clone(&world.contexts().get(event.context).path),
            steps: event.step,
            shared_steps: (event.site == Site::NOWHERE)
                .then(|| world.contexts().iter().map(|(_, one)| one.steps).sum()),
            mark: Mark::clone(mark),
        })
    }
}

/// Says what is wrong with a result, if anything is.
type Verdict = dyn Fn(Result<'_>) -> Option<Failure> + Send + Sync;

/// An idea of right and wrong beyond not crashing; it must give the same answer to the same result.
#[derive(Clone)]
pub struct Judge {
    verdict: Arc<Verdict>,
    reads_marks: bool,
}

impl Judge {
    /// One who looks at the status and the output, and says what is wrong.
    pub fn new(verdict: impl Fn(Result<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        let failure = move |result: Result<'_>| {
            let reason = verdict(result)?;
            Some(Failure::WrongOutput { reason })
        };
        Self {
            verdict: Arc::new(failure),
            reads_marks: false,
        }
    }

    /// One who looks at the operations that the program marks.
    pub fn of_marks(
        verdict: impl Fn(Result<'_>) -> Option<Failure> + Send + Sync + 'static,
    ) -> Self {
        Self {
            verdict: Arc::new(verdict),
            reads_marks: true,
        }
    }

    /// What is wrong with a result, if anything is.
    pub fn verdict(&self, result: Result<'_>) -> Option<Failure> {
        (self.verdict)(result)
    }

    pub(crate) fn reads_marks(&self) -> bool {
        self.reads_marks
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

/// How to run and to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    pub limits: Limits,
    /// The right exit status; none if any will do.
    pub expected_exit: Option<i32>,
    /// Only the first part of a long run is looked at: to come to the limit is no failure.
    #[serde(default)]
    pub is_cut: bool,
}

impl Rules {
    /// Those of a recording.
    pub(crate) fn recorded(recording: &Recording) -> Self {
        Self {
            limits: recording.limits,
            expected_exit: Some(recording.expected.exit),
            is_cut: false,
        }
    }
}

/// What a program writes, as far as a judgement needs it.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    errors: Vec<u8>,
    output: Vec<u8>,
    marks: Vec<Marked>,
}

impl Writing {
    pub(crate) fn event(&mut self, world: &LinuxWorld, event: &Event) {
        self.marks.extend(Marked::of(world, event));
        if let EventKind::Output { descriptor, bytes } = &event.kind {
            let (kept, most) = match descriptor {
                1 => (&mut self.output, OUTPUT_MAX),
                2 => (&mut self.errors, WORDS_MAX),
                _ => return,
            };
            let room = most.saturating_sub(kept.len()).min(bytes.len());
            kept.extend_from_slice(&bytes[..room]);
        }
    }
}

/// What is wrong with a run that was driven to its end.
pub(crate) fn judge(
    world: &LinuxWorld,
    drive: &Drive,
    (rules, judge): (&Rules, Option<&Judge>),
    writing: &Writing,
) -> Option<Failure> {
    match (&drive.end, world.halt()) {
        (End::Exited { .. }, Some(Halt::Heap(error))) => Some(Failure::Heap {
            fault: heap_fault(error.kind),
            site: Site::new(world.image(error.context), error.pc),
        }),
        (End::Exited { .. }, Some(Halt::Cycle(contexts))) => Some(Failure::Deadlock {
            calls: sites(world, contexts.iter().copied()),
        }),
        (End::Exited { status }, None) => judge_status(world, *status, (rules, judge), writing),
        (End::Stuck, _) => Some(Failure::Deadlock {
            calls: sites(world, live(world)),
        }),
        (End::Hanging, _) if rules.is_cut => None,
        (End::Hanging, _) => Some(Failure::Hang {
            sites: sites(world, live(world)),
        }),
        (End::Unsupported(_) | End::Abandoned, _) => None,
    }
}

fn judge_status(
    world: &LinuxWorld,
    status: i32,
    (rules, judge): (&Rules, Option<&Judge>),
    writing: &Writing,
) -> Option<Failure> {
    let code = status >> 8 & 0xFF;
    let words = String::from_utf8_lossy(&writing.errors);
    // Any status may be right, but not that of a panic.
    let any = if assertion_message(&words).is_some() {
        0
    } else {
        code
    };
    let failure = Failure::of_status(
        status,
        rules.expected_exit.unwrap_or(any),
        &words,
        world.crash(),
    );
    failure.or_else(|| {
        judge?.verdict(Result {
            status: code,
            stdout: &writing.output,
            marks: &writing.marks,
        })
    })
}

/// The kind of finding that an error of the heap is.
fn heap_fault(kind: HeapErrorKind) -> HeapFault {
    match kind {
        HeapErrorKind::UseAfterFree { .. } => HeapFault::UseAfterFree,
        HeapErrorKind::DoubleFree => HeapFault::DoubleFree,
        HeapErrorKind::InvalidFree => HeapFault::InvalidFree,
        HeapErrorKind::Overflow { .. } => HeapFault::Overflow,
    }
}

fn live(world: &LinuxWorld) -> impl Iterator<Item = ContextId> {
    world
        .contexts()
        .iter()
        .filter(|(_, context)| *context.liveness() != Liveness::Done)
        .map(|(id, _)| id)
}

/// Where contexts stand: the return address of the known function they are in, or their own place.
fn sites(world: &LinuxWorld, contexts: impl Iterator<Item = ContextId>) -> Vec<Site> {
    let mut sites: Vec<Site> = contexts.filter_map(|id| site(world, id)).collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

fn site(world: &LinuxWorld, who: ContextId) -> Option<Site> {
    let pc = match world.pending_call(who) {
        Some(call) => call.return_pc,
        None => world.registers(who)?.pc()?,
    };
    Some(Site::new(world.image(who), pc))
}
