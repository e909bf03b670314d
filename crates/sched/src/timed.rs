//! Moments of timers and time-outs as a choice: wraps any scheduler and lets the clock jump at a few stops.
//!
//! A timer never fires before the time it asked for: the clock jumps there, as if everybody had been kept from
//! running for that long. Without it, a sleep of 200 ms always outlasts a hundred instructions.

use raddle_stdx::Prng;
use raddle_world::{ContextId, Duration};

use crate::scheduler::{Clock, Passing, Profile, Scheduler, View};
use crate::wrap::Wrap;

/// The longest wait that a jump cuts short, a minute. No machine is busy for longer, but servers give up on clients that
/// say nothing for hours.
const WAIT_MAX: Duration = Duration(60_000_000_000);

/// A scheduler with jumps of the clock at given stops.
#[derive(Debug)]
pub struct Timed<S> {
    inner: S,
    prng: Prng,
    /// Numbers of stops with a running timer, ascending, each with one jump.
    jumps: Vec<u64>,
    /// Such stops so far, and whether the present one is among them.
    stops: u64,
    is_counted: bool,
    /// Who could run before the clock jumped, since the last choice.
    before: Option<Vec<ContextId>>,
}

impl<S: Scheduler> Timed<S> {
    /// Draws one to `jumps_max` jumps among the stops that had a running timer in earlier runs.
    pub fn new(inner: S, seed: u64, jumps_max: u64, profile: &Profile) -> Self {
        let mut prng = Prng::new(seed);
        let count = 1 + prng.below(jumps_max.max(1));
        let stops = profile.timed_stops.max(1);
        let mut jumps: Vec<u64> = (0..count).map(|_| prng.below(stops)).collect();
        jumps.sort_unstable();
        Self {
            inner,
            prng,
            jumps,
            stops: 0,
            is_counted: false,
            before: None,
        }
    }
}

impl<S: Scheduler> Wrap for Timed<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Stops are counted.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.is_counted = false;
        let chosen = self.inner.pick(view);
        let Some(before) = self.before.take() else {
            return chosen;
        };
        // Whoever the timer woke is the one whose turn would change something.
        let woken = view.runnable.iter().find(|id| !before.contains(id));
        match woken {
            Some(woken) if self.prng.chance(1, 2) => *woken,
            _ => chosen,
        }
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

impl<S> Clock for Timed<S> {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        if !self.is_counted {
            self.is_counted = true;
            self.stops += 1;
        }
        let is_due = self.jumps.first().is_some_and(|first| *first < self.stops);
        if !is_due || view.until_timer.is_none_or(|wait| wait > WAIT_MAX) {
            return false;
        }
        self.jumps.remove(0);
        self.before.get_or_insert_with(|| view.runnable.to_vec());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raddle_trace::{Phase, Position};
    use raddle_world::{ContextTable, Site};

    use super::*;
    use crate::random_walk::RandomWalk;
    use crate::scheduler::Reason;

    #[test]
    fn a_wait_that_outlasts_any_stall_is_not_cut_short() {
        let mut contexts = ContextTable::default();
        let who = contexts.create(None, Arc::from("server"));
        let runnable = [who];
        let at = Position {
            steps: 0,
            phase: Phase::Plain,
        };
        let mut timed = Timed::new(
            RandomWalk::new(1, &Profile::default()),
            1,
            1,
            &Profile::default(),
        );
        let mut jumps = |seconds: u64| {
            timed.jumps(&View {
                current: who,
                at,
                reason: Reason::Bound,
                site: Site::NOWHERE,
                runnable: &runnable,
                default: who,
                contexts: &contexts,
                next: &[],
                stops: &[],
                until_timer: Some(Duration(seconds * 1_000_000_000)),
            })
        };
        assert!(!jumps(8 * 60 * 60));
        assert!(jumps(1), "the jump is kept for a timer that is near");
        assert!(!jumps(1), "there is one jump");
    }
}
