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

/// Jumps of one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jumps {
    /// One to so many, whatever waits.
    pub most: u64,
    /// How long a thread waits at most before it asks the one whose turn it is for a turn of its own. Languages with one
    /// lock for all threads know no other switches, so each stop may end such a wait.
    pub turn_wait: Option<Duration>,
}

/// A scheduler with jumps of the clock at given stops.
#[derive(Debug)]
pub struct Timed<S> {
    inner: S,
    prng: Prng,
    /// Numbers of stops with a running timer, ascending, each with one jump.
    jumps: Vec<u64>,
    /// Waits for a turn are no longer than this, and one in so many stops ends one.
    turn_wait: Option<Duration>,
    turn_odds: u64,
    /// Such stops so far, and whether the present one is among them.
    stops: u64,
    is_counted: bool,
    /// Who could run before the clock jumped, since the last choice.
    before: Option<Vec<ContextId>>,
    /// The last jump ended a wait for a turn.
    is_turn: bool,
}

impl<S: Scheduler> Timed<S> {
    /// Draws jumps among the stops that had a running timer in earlier runs.
    pub fn new(inner: S, seed: u64, wanted: Jumps, profile: &Profile) -> Self {
        // How many stops there are while a thread waits depends on the schedule: often and seldom are tried alike.
        const ODDS_LOG: u64 = 9;
        let mut prng = Prng::new(seed);
        let stops = profile.timed_stops.max(1);
        let count = match wanted.most {
            0 => 0,
            most => 1 + prng.below(most),
        };
        let mut jumps: Vec<u64> = (0..count).map(|_| prng.below(stops)).collect();
        jumps.sort_unstable();
        let turn_odds = match wanted.turn_wait {
            None => 1,
            Some(_) => 2 << prng.below(ODDS_LOG),
        };
        Self {
            inner,
            prng,
            jumps,
            turn_odds,
            turn_wait: wanted.turn_wait,
            is_turn: false,
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
        // The context that the timer woke is the one whose turn would change something.
        let woken = view.runnable.iter().find(|id| !before.contains(id));
        match woken {
            Some(woken) if self.is_turn || self.prng.chance(1, 2) => *woken,
            _ => chosen,
        }
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

impl<S> Clock for Timed<S> {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        let is_new = !std::mem::replace(&mut self.is_counted, true);
        self.stops += u64::from(is_new);
        let is_due = self.jumps.first().is_some_and(|first| *first < self.stops);
        let Some(wait) = view.until_timer else {
            return false;
        };
        let may_be_turn = is_new && self.turn_wait.is_some_and(|most| wait <= most);
        if may_be_turn && self.prng.chance(1, self.turn_odds) {
            self.is_turn = true;
        } else if is_due && wait <= WAIT_MAX {
            self.jumps.remove(0);
            self.is_turn = false;
        } else {
            return false;
        }
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

    const SECOND: u64 = 1_000_000_000;

    /// Asks at one stop whether the clock jumps, where the next timer is so many nanoseconds away.
    fn asked(timed: &mut Timed<RandomWalk>, wait: u64) -> bool {
        let mut contexts = ContextTable::default();
        let who = contexts.create(None, Arc::from("server"));
        let at = Position {
            steps: 0,
            phase: Phase::Plain,
        };
        timed.jumps(&View {
            current: who,
            at,
            reason: Reason::Bound,
            site: Site::NOWHERE,
            runnable: &[who],
            default: who,
            contexts: &contexts,
            next: &[],
            stops: &[],
            until_timer: Some(Duration(wait)),
        })
    }

    fn timed(seed: u64, wanted: Jumps) -> Timed<RandomWalk> {
        let profile = Profile::default();
        Timed::new(RandomWalk::new(1, &profile), seed, wanted, &profile)
    }

    #[test]
    fn a_wait_that_outlasts_any_stall_is_not_cut_short() {
        let wanted = Jumps {
            most: 1,
            turn_wait: None,
        };
        let mut timed = timed(1, wanted);
        assert!(!asked(&mut timed, 8 * 60 * 60 * SECOND));
        assert!(
            asked(&mut timed, SECOND),
            "the jump is kept for a timer that is near"
        );
        assert!(!asked(&mut timed, SECOND), "there is one jump");
    }

    #[test]
    fn turns_end_no_wait_that_is_longer_than_one_for_a_turn() {
        let wanted = Jumps {
            most: 0,
            turn_wait: Some(Duration(5)),
        };
        let mut seldom = 0;
        for seed in 0..64 {
            let mut timed = timed(seed, wanted);
            let mut often = |wait| {
                let stops = (0..100).filter(|_| {
                    timed.is_counted = false;
                    asked(&mut timed, wait)
                });
                stops.count()
            };
            assert_eq!(often(6), 0);
            let turns = often(5);
            assert!(turns < 90, "some stops are no turns");
            seldom += usize::from(turns < 10);
        }
        assert!(
            (16..60).contains(&seldom),
            "{seldom} schedules have few turns"
        );
    }
}
