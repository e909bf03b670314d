//! What a scheduler is asked and what it may know.

use std::collections::BTreeMap;

use raddle_trace::{Path, Position};
use raddle_world::{Context, ContextId, ContextTable};

/// Why somebody has to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The schedule begins.
    Start,
    /// The current context stands before a system call or synchronisation operation.
    Sync,
    /// It stands before a flagged program point.
    Point { pc: u64 },
    /// It came back to the same place with the same registers: it waits for somebody else's write.
    Spinning,
    /// It asked to be scheduled later.
    Yielded,
    /// It used up its patience.
    Starving,
    /// The step bound of the scheduler was reached.
    Bound,
    /// It cannot go on.
    Blocked,
}

impl Reason {
    /// Whether going on with the current context makes no sense while others can run.
    pub fn asks_for_another(self) -> bool {
        matches!(self, Self::Spinning | Self::Yielded | Self::Starving)
    }
}

/// The situation in which a choice is made.
#[derive(Debug)]
pub struct View<'a> {
    /// Who ran last.
    pub current: ContextId,
    /// How far it has come.
    pub at: Position,
    pub reason: Reason,
    /// Who can be chosen; never empty, ascending.
    pub runnable: &'a [ContextId],
    /// Who would be next in the default order.
    pub default: ContextId,
    pub contexts: &'a ContextTable,
}

impl View<'_> {
    /// Whether the current context may be chosen again and it makes sense to.
    pub fn can_stay(&self) -> bool {
        self.runnable.contains(&self.current)
            && (self.runnable.len() == 1 || !self.reason.asks_for_another())
    }
}

/// Chooses who runs next.
pub trait Scheduler {
    /// One of `view.runnable`. Called at every stop, even if there is only one to choose.
    fn pick(&mut self, view: &View<'_>) -> ContextId;
    /// Whether the schedule is given: then nobody else may interfere, not even for fairness.
    fn is_replay(&self) -> bool {
        false
    }
    /// Steps after which the context is to stop, whatever it does.
    fn bound(&self, _who: &Context) -> u64 {
        u64::MAX
    }
}

/// What earlier runs of the same program told about its size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Decisions in a run: PCT's k.
    pub decisions: u64,
    /// Stops of each context.
    pub stops: BTreeMap<Path, u64>,
}

impl Profile {
    /// Takes a run into account: the largest counts seen so far are kept.
    pub fn note(&mut self, decisions: u64, stops: impl IntoIterator<Item = (Path, u64)>) {
        self.decisions = self.decisions.max(decisions);
        for (path, count) in stops {
            let known = self.stops.entry(path).or_default();
            *known = (*known).max(count);
        }
    }
}
