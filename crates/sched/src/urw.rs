//! URW and SURW: (selectively) uniform random walk (Zhao, Wolff, Mathur, Roychoudhury, ASPLOS 2025).
//!
//! Choosing among contexts with weights that are the numbers of operations they still have to make gives every
//! interleaving the same probability. The numbers come from earlier runs; operations of contexts that do not
//! exist yet count for the context that will create them.
//! The selective form draws a set of interesting program points per run and weighs only those; at other stops
//! the current context goes on.

use raddle_stdx::Prng;
use raddle_stdx::width::to_u64;
use raddle_trace::Path;
use raddle_world::{ContextId, ContextTable};

use crate::random_walk::another;
use crate::scheduler::{Profile, Reason, Scheduler, View};

/// The uniform random walk.
#[derive(Debug, Clone)]
pub struct Urw {
    prng: Prng,
    /// Stops that contexts are expected to make in all, by path.
    expected: Vec<(Path, u64)>,
    /// Stops made, by context number.
    made: Vec<u64>,
    /// Only stops at these points count; empty for all.
    interest: Vec<u64>,
}

impl Urw {
    /// `interest` must be sorted; empty means every stop.
    pub fn new(seed: u64, profile: &Profile, interest: Vec<u64>) -> Self {
        debug_assert!(interest.is_sorted());
        Self {
            prng: Prng::new(seed),
            expected: profile
                .stops
                .iter()
                .map(|(path, count)| (path.clone(), *count))
                .collect(),
            made: Vec::new(),
            interest,
        }
    }

    fn counts(&self, reason: Reason) -> bool {
        match reason {
            Reason::Point { pc } => {
                self.interest.is_empty() || self.interest.binary_search(&pc).is_ok()
            }
            _ => self.interest.is_empty(),
        }
    }

    /// Stops that are still to come from this context and from descendants that do not exist yet.
    fn remaining(&self, who: ContextId, contexts: &ContextTable) -> u64 {
        let path = &contexts.get(who).path;
        let children = contexts.get(who).children;
        let depth = path.len();
        let own: u64 = self
            .expected
            .iter()
            .filter(|(known, _)| {
                known.starts_with(path) && known.get(depth).is_none_or(|child| *child >= children)
            })
            .map(|(_, count)| *count)
            .sum();
        let made = self.made.get(who.0 as usize).copied().unwrap_or(0);
        own.saturating_sub(made).max(1)
    }
}

impl Scheduler for Urw {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let index = view.current.0 as usize;
        if self.made.len() <= index {
            self.made.resize(index + 1, 0);
        }
        self.made[index] += 1;
        if view.reason.asks_for_another() {
            return another(&mut self.prng, view);
        }
        if view.can_stay() && !self.counts(view.reason) {
            return view.current;
        }
        let weights: Vec<u64> = view
            .runnable
            .iter()
            .map(|who| self.remaining(*who, view.contexts))
            .collect();
        let mut drawn = self.prng.below(weights.iter().sum());
        for (who, weight) in view.runnable.iter().zip(&weights) {
            if drawn < *weight {
                return *who;
            }
            drawn -= weight;
        }
        view.runnable[view.runnable.len() - 1]
    }
}

/// How many interesting points a selective walk weighs: enough for one variable's accesses.
pub fn sample_interest(prng: &mut Prng, groups: &[Vec<u64>]) -> Vec<u64> {
    if groups.is_empty() {
        return Vec::new();
    }
    let index = prng.below(to_u64(groups.len()));
    let mut points = groups[raddle_stdx::width::to_usize(index)].clone();
    points.sort_unstable();
    points.dedup();
    points
}
