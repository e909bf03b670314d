//! Makes every instruction a decision point: wraps any scheduler and lets nobody make more than one step at a time.

use raddle_world::{Context, ContextId};

use crate::scheduler::{Scheduler, View};

/// A scheduler that is asked before every instruction.
#[derive(Debug)]
pub struct Stepwise<S>(pub S);

impl<S: Scheduler> Scheduler for Stepwise<S> {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.0.pick(view)
    }

    fn jumps(&mut self, view: &View<'_>) -> bool {
        self.0.jumps(view)
    }

    fn tears(&mut self, who: &Context) -> bool {
        self.0.tears(who)
    }

    fn is_replay(&self) -> bool {
        self.0.is_replay()
    }

    fn bound(&self, who: &Context) -> u64 {
        self.0.bound(who).min(1)
    }
}
