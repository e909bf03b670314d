//! Preemption-bounded search (iterative context bounding: Musuvathi and Qadeer, PLDI 2007): the default order,
//! except that at a few decisions another context goes on, and every one of them is tried.
//!
//! Two things keep the number of schedules small. Contexts that did the same so far in earlier runs and have
//! come equally far stand for each other (a hundred workers are two or three candidates, not a hundred). And
//! decisions are tried in the order of novelty: the first visit of every site before the second visit of any.

use std::collections::{BTreeMap, BTreeSet};

use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::{ContextId, Site};

use crate::scheduler::{Profile, Scheduler, View};

/// Different candidates that are told apart at one decision.
const CANDIDATES_MAX: u64 = 4;

/// One preemption: at this decision, this candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Preemption {
    decision: u64,
    candidate: u64,
}

/// The default order with preemptions at given decisions.
#[derive(Debug, Clone)]
pub struct PreemptionBounded {
    preemptions: Vec<Preemption>,
    kinds: BTreeMap<raddle_trace::Path, u64>,
    decisions: u64,
}

impl PreemptionBounded {
    /// The `index`-th set of at most two preemptions; `None` when all were given.
    pub fn nth(index: u64, profile: &Profile) -> Option<Self> {
        let order = by_novelty(&profile.trail);
        let decisions = to_u64(order.len());
        let candidates = candidates(profile);
        let singles = decisions.saturating_mul(candidates);
        let at = |number: u64| Preemption {
            decision: to_u64(order[to_usize(number / candidates)]),
            candidate: number % candidates,
        };
        let mut preemptions = if index < singles {
            vec![at(index)]
        } else {
            // The pairs whose later member (by novelty) is m are numbers m(m-1)/2 to m(m+1)/2 - 1.
            let pair = index - singles;
            if singles < 2 || pair >= singles.saturating_mul(singles - 1) / 2 {
                return None;
            }
            let mut later = (2 * pair).isqrt();
            while later * (later + 1) / 2 <= pair {
                later += 1;
            }
            vec![at(pair - later * (later - 1) / 2), at(later)]
        };
        preemptions.sort_unstable();
        Some(Self {
            preemptions,
            kinds: profile.kinds.clone(),
            decisions: 0,
        })
    }

    /// How many sets of one preemption there are.
    pub fn singles(profile: &Profile) -> u64 {
        to_u64(profile.trail.len()).saturating_mul(candidates(profile))
    }
}

/// Candidates at one decision at most: all kinds of contexts but the one that is running.
fn candidates(profile: &Profile) -> u64 {
    let kinds: BTreeSet<u64> = profile.kinds.values().copied().collect();
    to_u64(kinds.len()).clamp(1, CANDIDATES_MAX)
}

/// Numbers of decisions: first visits of sites, then second ones, and so on.
fn by_novelty(trail: &[Site]) -> Vec<usize> {
    let mut visits: BTreeMap<Site, u64> = BTreeMap::new();
    let mut order: Vec<(u64, usize)> = trail
        .iter()
        .enumerate()
        .map(|(number, site)| {
            let visit = visits.entry(*site).or_default();
            *visit += 1;
            (*visit, number)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, number)| number).collect()
}

impl Scheduler for PreemptionBounded {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let default = view.sensible_default();
        if view.runnable.len() < 2 {
            return default;
        }
        let now = self.decisions;
        self.decisions += 1;
        let planned = self.preemptions.iter().find(|p| p.decision == now);
        match planned {
            Some(preemption) => others(view, default, &self.kinds, preemption.candidate),
            None => default,
        }
    }
}

/// The n-th kind of context other than the default one, round the circle.
fn others(
    view: &View<'_>,
    default: ContextId,
    kinds: &BTreeMap<raddle_trace::Path, u64>,
    number: u64,
) -> ContextId {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let start = view.runnable.partition_point(|id| *id <= default);
    for who in view.runnable[start..].iter().chain(&view.runnable[..start]) {
        let path = &*view.contexts.get(*who).path;
        let kind = kinds.get(path).copied().unwrap_or(u64::from(who.0));
        if *who != default && seen.insert((kind, view.stops_of(*who))) {
            found.push(*who);
        }
    }
    match found.len() {
        0 => default,
        count => found[to_usize(number % to_u64(count))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_comes_once_and_new_places_come_first() {
        assert_eq!(
            by_novelty(&[7, 7, 8, 7, 9].map(Site::first)),
            [0, 2, 4, 1, 3]
        );
        let profile = Profile {
            trail: [7, 7, 8].map(Site::first).to_vec(),
            kinds: [(vec![0], 1), (vec![0, 0], 2)].into(),
            ..Profile::default()
        };
        let all: Vec<Vec<Preemption>> = (0..)
            .map_while(|index| PreemptionBounded::nth(index, &profile))
            .map(|scheduler| scheduler.preemptions)
            .collect();
        assert_eq!(all.len(), 6 + 15);
        let distinct: BTreeSet<_> = all.iter().cloned().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(to_u64(6), PreemptionBounded::singles(&profile));
    }
}
