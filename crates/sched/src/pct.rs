//! PCT: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010).
//!
//! Every context gets a random priority; always the runnable one with the highest runs. At d-1 decisions, drawn
//! uniformly from the k of a run, the current context's priority falls below all initial ones. A bug of depth d
//! in a program with n contexts is hit with a probability of at least 1/(n k^(d-1)).
//!
//! Deviation from the paper: a context that spins, yields or starves falls to the very bottom (SKI's H2 to H4,
//! Fonseca, Rodrigues, Brandenburg, OSDI 2014), since otherwise a spin loop at high priority never ends.

use raddle_stdx::Prng;
use raddle_stdx::width::{low_u32, to_u64};
use raddle_world::{ContextId, Site};

use crate::scheduler::{Passing, Profile, Reason, Scheduler, View};

/// The PCT scheduler.
#[derive(Debug, Clone)]
pub struct Pct {
    prng: Prng,
    /// By context number; higher runs first. Initial ones are positive.
    priorities: Vec<i64>,
    /// Decisions at which the current context falls, ascending.
    change_points: Vec<u64>,
    decisions: u64,
    /// The lowest priority given so far.
    floor: i64,
}

impl Pct {
    /// A scheduler for bugs of depth up to `depth` (at least 1).
    pub fn new(seed: u64, depth: u64, profile: &Profile) -> Self {
        let mut prng = Prng::new(seed);
        let k = profile.decisions.max(1);
        let mut change_points: Vec<u64> = (1..depth).map(|_| prng.below(k)).collect();
        change_points.sort_unstable();
        Self {
            prng,
            priorities: Vec::new(),
            change_points,
            decisions: 0,
            floor: 0,
        }
    }

    fn priority(&mut self, who: ContextId) -> i64 {
        let index = who.0 as usize;
        while self.priorities.len() <= index {
            let tie_break = i64::from(low_u32(to_u64(self.priorities.len())));
            let drawn = i64::from(low_u32(self.prng.next_u64() >> 33));
            self.priorities
                .push(1 + (drawn << 20) + (tie_break & 0xF_FFFF));
        }
        self.priorities[index]
    }

    pub(crate) fn drop_to_bottom(&mut self, who: ContextId) {
        self.priority(who);
        self.floor -= 1;
        self.priorities[who.0 as usize] = self.floor;
    }
}

impl Scheduler for Pct {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        if view.runnable.len() > 1 {
            let now = self.decisions;
            self.decisions += 1;
            while self.change_points.first() == Some(&now) {
                self.change_points.remove(0);
                self.drop_to_bottom(view.current);
            }
            if view.reason == Reason::Yielded || view.reason.asks_for_another() {
                self.drop_to_bottom(view.current);
            }
        }
        let mut best = (i64::MIN, view.runnable[0]);
        for who in view.runnable {
            let priority = self.priority(*who);
            if priority > best.0 {
                best = (priority, *who);
            }
        }
        best.1
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        Some(self)
    }
}

impl Passing for Pct {
    fn passes(&mut self, candidates: usize) -> u64 {
        match self.change_points.first() {
            Some(next) if candidates > 1 => next.saturating_sub(self.decisions),
            _ => u64::MAX,
        }
    }

    fn passed(&mut self, candidates: usize, points: u64) {
        if candidates > 1 {
            self.decisions += points;
        }
    }

    fn interest(&mut self) -> &[Site] {
        &[]
    }
}
