//! Random walk with sampled run lengths: at each decision the current context goes on with a probability that
//! is drawn once per run, so that short and long stretches both occur.
//!
//! A uniform choice at every decision makes long undisturbed stretches exponentially rare; see Thomson,
//! Donaldson, Betts, "Concurrency testing using controlled schedulers" (TOPC 2016), for how well plain random
//! scheduling does otherwise.

use raddle_stdx::Prng;
use raddle_world::ContextId;

use crate::scheduler::{Scheduler, View};

/// A random walk.
#[derive(Debug, Clone)]
pub struct RandomWalk {
    prng: Prng,
    /// One switch in this many decisions.
    mean_run: u64,
}

impl RandomWalk {
    pub fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let mean_run = 1 << (1 + prng.below(6));
        Self { prng, mean_run }
    }
}

impl Scheduler for RandomWalk {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        if view.can_stay() && !self.prng.chance(1, self.mean_run) {
            return view.current;
        }
        another(&mut self.prng, view)
    }
}

/// A uniform choice among those that are not the current one, if there are others.
pub(crate) fn another(prng: &mut Prng, view: &View<'_>) -> ContextId {
    let others = view.runnable.iter().filter(|id| **id != view.current);
    let count = others.clone().count();
    if count == 0 {
        return view.current;
    }
    let index = prng.below(raddle_stdx::width::to_u64(count));
    let mut others = others.copied();
    others
        .nth(raddle_stdx::width::to_usize(index))
        .expect("the index is below their number")
}
