//! Faults of the system as a choice: wraps any scheduler and lets contexts meet a few of them.
//!
//! How likely a fault is wherever one is possible is drawn once per run, so that runs with one among a hundred
//! possibilities and runs with one among three both occur.

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::Fault;

use crate::scheduler::{Faults, Passing, Scheduler, View};
use crate::wrap::Wrap;

/// Faults in one run at most.
const FAULTS_MAX: u64 = 3;
/// The least likely case is one among two to this power.
const RARITY_MAX: u64 = 6;

/// A scheduler with faults.
#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    prng: Prng,
    /// The kinds that are wanted.
    kinds: Vec<Fault>,
    /// One possibility in so many is taken.
    rarity: u64,
    left: u64,
}

impl<S: Scheduler> Faulty<S> {
    pub fn new(inner: S, seed: u64, kinds: Vec<Fault>) -> Self {
        let mut prng = Prng::new(seed);
        Self {
            inner,
            kinds,
            rarity: 1 << prng.below(RARITY_MAX + 1),
            left: 1 + prng.below(FAULTS_MAX),
            prng,
        }
    }
}

impl<S: Scheduler> Wrap for Faulty<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Faults are possible at calls and known functions, where every scheduler is asked.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        self.inner.passing()
    }

    fn faults(&mut self) -> Option<&mut dyn Faults> {
        Some(self)
    }
}

impl<S> Faults for Faulty<S> {
    fn fault(&mut self, _view: &View<'_>, possible: &[Fault]) -> Option<Fault> {
        let wanted: Vec<Fault> = possible
            .iter()
            .copied()
            .filter(|fault| self.kinds.contains(fault))
            .collect();
        if wanted.is_empty() || self.left == 0 || !self.prng.chance(1, self.rarity) {
            return None;
        }
        self.left -= 1;
        Some(wanted[to_usize(self.prng.below(to_u64(wanted.len())))])
    }
}
