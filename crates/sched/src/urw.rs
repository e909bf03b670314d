//! URW and SURW: (selectively) uniform random walk (Zhao, Wolff, Mathur, Roychoudhury, ASPLOS 2025).
//!
//! Choosing among contexts with weights that are the numbers of operations they still have to make gives every
//! interleaving the same probability. The numbers come from earlier runs; operations of contexts that do not
//! exist yet count for the context that will create them.
//! The selective form draws a set of interesting program points per run and weighs only those: a draw says
//! whose interesting operation comes next, and that context runs until it has made it.

use std::collections::BTreeMap;

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_trace::Path;
use raddle_world::{ContextId, Site};

use crate::random_walk::another;
use crate::scheduler::{Passing, Profile, Reason, Scheduler, View};

/// The uniform random walk.
#[derive(Debug, Clone)]
pub struct Urw {
    prng: Prng,
    /// Interesting operations that a context and all its descendants are expected to make, by path.
    expected: BTreeMap<Path, u64>,
    /// Those that are still to come, by context number; of descendants, only those that do not exist yet.
    remaining: Vec<u64>,
    /// Only stops at these points count; empty for all.
    interest: Vec<Site>,
    /// Whose interesting operation comes next, and whether it stands before it.
    turn: Option<(ContextId, bool)>,
}

impl Urw {
    /// `interest` must be sorted; empty means every stop.
    pub fn new(seed: u64, profile: &Profile, interest: Vec<Site>) -> Self {
        debug_assert!(interest.is_sorted());
        let mut expected: BTreeMap<Path, u64> = BTreeMap::new();
        for (path, stops) in &profile.stops {
            let count = if interest.is_empty() {
                *stops
            } else {
                let visits = profile.visits.get(path);
                let at = |site| visits.and_then(|visits| visits.get(site)).copied();
                interest.iter().filter_map(at).sum()
            };
            for length in 1..=path.len() {
                *expected.entry(path[..length].to_vec()).or_default() += count;
            }
        }
        Self {
            prng: Prng::new(seed),
            expected,
            remaining: Vec::new(),
            interest,
            turn: None,
        }
    }

    fn counts(&self, reason: Reason) -> bool {
        match reason {
            _ if self.interest.is_empty() => true,
            Reason::Point { site } => self.interest.binary_search(&site).is_ok(),
            _ => false,
        }
    }

    /// Takes note of contexts that are new: what they will do is no longer their parents' business.
    fn welcome(&mut self, view: &View<'_>) {
        let known = self.remaining.len();
        for (_, context) in view.contexts.iter().skip(known) {
            let expected = self.expected.get(&*context.path).copied().unwrap_or(0);
            if let Some(parent) = context.parent
                && let Some(of_parent) = self.remaining.get_mut(parent.0 as usize)
            {
                *of_parent = of_parent.saturating_sub(expected);
            }
            self.remaining.push(expected);
        }
    }

    fn draw(&mut self, view: &View<'_>) -> ContextId {
        let weight = |who: &ContextId| self.remaining[who.0 as usize].max(1);
        let total = view.runnable.iter().map(weight).sum();
        let mut drawn = self.prng.below(total);
        for who in view.runnable {
            let weight = weight(who);
            if drawn < weight {
                return *who;
            }
            drawn -= weight;
        }
        view.runnable[view.runnable.len() - 1]
    }
}

impl Scheduler for Urw {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.welcome(view);
        if let Some((who, true)) = self.turn
            && who == view.current
        {
            // It has made its operation.
            let remaining = &mut self.remaining[who.0 as usize];
            *remaining = remaining.saturating_sub(1);
            self.turn = None;
        }
        if view.reason.asks_for_another() {
            self.turn = None;
            return another(&mut self.prng, view);
        }
        let chosen = match self.turn {
            Some((who, _)) if view.runnable.contains(&who) => who,
            _ => self.draw(view),
        };
        let stands_before_it = chosen == view.current && self.counts(view.reason);
        // Another than the current one may stand before its operation, too: then its next stop is after it.
        let is_standing = stands_before_it
            || chosen != view.current
                && (self.interest.is_empty()
                    || view
                        .next_of(chosen)
                        .is_some_and(|next| self.interest.binary_search(&next.site).is_ok()));
        self.turn = Some((chosen, is_standing));
        chosen
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        Some(self)
    }
}

impl Passing for Urw {
    fn passes(&mut self, _candidates: usize) -> u64 {
        match self.turn {
            // It runs to its next interesting operation.
            Some((_, false)) if !self.interest.is_empty() => u64::MAX,
            _ => 0,
        }
    }

    fn passed(&mut self, _candidates: usize, _points: u64) {}

    fn interest(&mut self) -> &[Site] {
        &self.interest
    }
}

/// Draws the points of one to three of the places where contexts meet.
pub fn sample_interest(prng: &mut Prng, groups: &[Vec<Site>]) -> Vec<Site> {
    if groups.is_empty() {
        return Vec::new();
    }
    let count = 1 + prng.below(3);
    let mut points: Vec<Site> = (0..count)
        .flat_map(|_| {
            let index = prng.below(to_u64(groups.len()));
            groups[to_usize(index)].iter().copied()
        })
        .collect();
    points.sort_unstable();
    points.dedup();
    points
}
