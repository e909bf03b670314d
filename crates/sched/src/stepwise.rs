//! Makes every instruction a decision point: wraps any scheduler and lets no context make more than one step at a time.

use raddle_world::Context;

use crate::scheduler::{Passing, Scheduler};
use crate::wrap::Wrap;

/// A scheduler that is asked before every instruction.
#[derive(Debug)]
pub struct Stepwise<S>(pub S);

impl<S: Scheduler> Wrap for Stepwise<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut S {
        &mut self.0
    }

    /// Every instruction is a stop.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn bound(&self, who: &Context) -> u64 {
        self.0.bound(who).min(1)
    }
}
