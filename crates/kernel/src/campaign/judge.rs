//! Judges that look at what the calls of a run gave, beyond what the kernel and the test complain about.

use std::fmt;
use std::sync::Arc;

use raddle_detect::NotSerial;
use raddle_trace::SerialRules;
use raddle_world::{Event, EventKind, Mark, World};

use crate::program::StatementResult;
use crate::test_case::TestCase;
use crate::world::{KernelWorld, ToldCalls};

/// Where a call of a thread begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallMark {
    /// The processor of the thread, by its path.
    pub context: Arc<[u32]>,
    pub steps: u64,
    pub mark: Mark,
}

impl CallMark {
    /// The mark that an event is, if it is one.
    pub fn of(world: &KernelWorld, event: &Event) -> Option<Self> {
        let EventKind::Mark(mark) = &event.kind else {
            return None;
        };
        Some(Self {
            context: Arc::clone(&world.contexts().get(event.context).path),
            steps: event.step,
            mark: Mark::clone(mark),
        })
    }
}

/// What a run that came to its end left behind.
#[derive(Debug, Clone, Copy)]
pub struct Gave<'a> {
    pub marks: &'a [CallMark],
    pub results: &'a [StatementResult],
    /// What the buffers of the test held at the end, in the order of [`TestCase::buffers`].
    pub buffers: &'a [Vec<u8>],
}

type Verdict = dyn Fn(Gave<'_>) -> Option<NotSerial> + Send + Sync;

/// Has the last word on a run in which nothing failed; gives the same answer to the same run.
#[derive(Clone)]
pub struct Judge {
    verdict: Arc<Verdict>,
    /// What recordings say of how it compares.
    pub rules: SerialRules,
}

impl Judge {
    pub fn new(
        rules: SerialRules,
        verdict: impl Fn(Gave<'_>) -> Option<NotSerial> + Send + Sync + 'static,
    ) -> Self {
        Self {
            verdict: Arc::new(verdict),
            rules,
        }
    }

    pub(super) fn verdict(&self, gave: Gave<'_>) -> Option<NotSerial> {
        (self.verdict)(gave)
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

/// What a world needs to tell of the calls of a test.
pub(super) fn told_calls(test: &TestCase, stops: bool) -> ToldCalls {
    let buffers = test.buffers.iter();
    ToldCalls {
        threads: Arc::new(test.calls()),
        stops,
        buffers: Arc::new(buffers.map(|one| (one.offset, one.size)).collect()),
    }
}
