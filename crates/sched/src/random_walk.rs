//! Random walk with sampled run lengths: at each decision the current context goes on with a probability that
//! is drawn once per run, so that short and long stretches both occur.
//!
//! A uniform choice at every decision makes long undisturbed stretches exponentially rare; see Thomson,
//! Donaldson, Betts, "Concurrency testing using controlled schedulers" (TOPC 2016), for how well plain random
//! scheduling does otherwise. In half of the runs the choice is first among *kinds* of contexts (those that did
//! the same in earlier runs) and then within a kind, so that one checker among a hundred workers has its chance.

use std::cell::RefCell;
use std::collections::BTreeMap;

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_trace::Path;
use raddle_world::{ContextId, Site};

use crate::scheduler::{Passing, Profile, Reason, Scheduler, View};

/// Decisions that are looked ahead at most.
const AHEAD_MAX: u64 = 4096;
/// One switch in this many decisions of a context that yields.
const MEAN_YIELDS: u64 = 2;

/// A random walk.
#[derive(Debug, Clone)]
pub struct RandomWalk {
    prng: Prng,
    /// One switch in this many decisions.
    mean_run: u64,
    /// Kinds of contexts by path, if choices are among them.
    kinds: Option<BTreeMap<Path, u64>>,
    /// How often it stays from here on, and the generator after that, if the driver has asked.
    ahead: RefCell<Option<(u64, Prng)>>,
}

impl RandomWalk {
    pub fn new(seed: u64, profile: &Profile) -> Self {
        let mut prng = Prng::new(seed);
        let mean_run = 1 << (1 + prng.below(8));
        let kinds = prng.chance(1, 2).then(|| profile.kinds.clone());
        Self {
            prng,
            mean_run,
            kinds,
            ahead: RefCell::new(None),
        }
    }
}

impl Scheduler for RandomWalk {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        // Who yields is likelier to be left, but not certain to be.
        let mean_run = if view.reason == Reason::Yielded {
            MEAN_YIELDS
        } else {
            self.mean_run
        };
        if view.can_stay() && !self.prng.chance(1, mean_run) {
            return view.current;
        }
        match &self.kinds {
            Some(kinds) if view.runnable.len() > 2 => {
                another_kind(&mut self.prng, view, kinds).unwrap_or(view.current)
            }
            _ => another(&mut self.prng, view),
        }
    }

    fn passing(&mut self) -> Option<&mut dyn Passing> {
        Some(self)
    }
}

impl Passing for RandomWalk {
    fn passes(&mut self, _candidates: usize) -> u64 {
        let (mut stays, mut after) = (0, self.prng.clone());
        while stays < AHEAD_MAX {
            let mut next = after.clone();
            if next.chance(1, self.mean_run) {
                break;
            }
            (stays, after) = (stays + 1, next);
        }
        *self.ahead.borrow_mut() = Some((stays, after));
        stays
    }

    fn passed(&mut self, _candidates: usize, points: u64) {
        match self.ahead.get_mut().take() {
            Some((stays, after)) if stays == points => self.prng = after,
            _ => (0..points).for_each(|_| {
                self.prng.chance(1, self.mean_run);
            }),
        }
    }

    fn interest(&mut self) -> &[Site] {
        &[]
    }
}

/// A uniform choice among those that are not the current one, if there are others.
pub(crate) fn another(prng: &mut Prng, view: &View<'_>) -> ContextId {
    let others = view.runnable.iter().filter(|id| **id != view.current);
    let count = others.clone().count();
    if count == 0 {
        return view.current;
    }
    let index = to_usize(prng.below(to_u64(count)));
    let mut others = others.copied();
    others.nth(index).expect("the index is below their number")
}

/// A uniform choice among the kinds of those that are not the current one, then within the kind.
fn another_kind(
    prng: &mut Prng,
    view: &View<'_>,
    kinds: &BTreeMap<Path, u64>,
) -> Option<ContextId> {
    let mut by_kind: BTreeMap<u64, Vec<ContextId>> = BTreeMap::new();
    for who in view.runnable.iter().filter(|id| **id != view.current) {
        let path = &*view.contexts.get(*who).path;
        let kind = kinds.get(path).copied().unwrap_or(u64::from(who.0));
        by_kind.entry(kind).or_default().push(*who);
    }
    if by_kind.is_empty() {
        return None;
    }
    let kind = to_usize(prng.below(to_u64(by_kind.len())));
    let members = by_kind.into_values().nth(kind)?;
    let member = to_usize(prng.below(to_u64(members.len())));
    members.get(member).copied()
}
