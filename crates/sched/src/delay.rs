//! Delay-bounded search (Emmi, Qadeer, Rakamaric, POPL 2011): the default order, except that at a few
//! decisions the context that would go on is delayed and the next one runs.
//!
//! With one delay there are k schedules, with two k(k-1)/2, and so on: small numbers of delays can be searched
//! one by one. Most real bugs need few (the small-scope observation of Musuvathi and Qadeer, PLDI 2007).

use raddle_world::{ContextId, Site};

use crate::scheduler::{Passing, Scheduler, View};

/// The default order with delays at given decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayBounded {
    /// Numbers of decisions, ascending.
    delays: Vec<u64>,
    decisions: u64,
}

impl DelayBounded {
    pub fn new(mut delays: Vec<u64>) -> Self {
        delays.sort_unstable();
        Self {
            delays,
            decisions: 0,
        }
    }

    /// The `index`-th set of at most two delays among the first `decisions` ones: all single ones first, then
    /// pairs by the later of the two. `None` when all were given.
    pub fn nth(index: u64, decisions: u64) -> Option<Self> {
        if index < decisions {
            return Some(Self::new(vec![index]));
        }
        let pair = index - decisions;
        if pair >= decisions.saturating_mul(decisions.saturating_sub(1)) / 2 {
            return None;
        }
        // The pairs whose later member is m are numbers m(m-1)/2 to m(m+1)/2 - 1.
        let mut later = (2 * pair).isqrt();
        while later * (later + 1) / 2 <= pair {
            later += 1;
        }
        Some(Self::new(vec![pair - later * (later - 1) / 2, later]))
    }
}

impl Scheduler for DelayBounded {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let default = view.sensible_default();
        if view.runnable.len() < 2 {
            return default;
        }
        let now = self.decisions;
        self.decisions += 1;
        if self.delays.binary_search(&now).is_ok() {
            view.successor(default)
        } else {
            default
        }
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        Some(self)
    }
}

impl Passing for DelayBounded {
    fn passes(&mut self, candidates: usize) -> u64 {
        let next = self.delays.iter().find(|delay| **delay >= self.decisions);
        match next {
            Some(next) if candidates > 1 => next - self.decisions,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_one_or_two_delays_comes_once() {
        let all: Vec<Vec<u64>> = (0..)
            .map_while(|index| DelayBounded::nth(index, 5))
            .map(|scheduler| scheduler.delays)
            .collect();
        assert_eq!(all.len(), 5 + 10);
        let mut sorted = all.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), all.len());
        assert!(
            all.iter()
                .all(|delays| delays.is_sorted() && delays.iter().all(|d| *d < 5))
        );
    }
}
