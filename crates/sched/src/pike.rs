//! The scheduler of PIKE (Fonseca, Li, Rodrigues, "Finding complex concurrency bugs in large multi-threaded applications",
//! EuroSys 2011): PCT whose reschedule points are drawn from the instructions of a run, not from its decisions.
//!
//! Its anti-starvation mechanism, a lower priority for who runs too long in a row, is the driver's patience: PCT lets a
//! context that starves others fall to the bottom.

use raddle_stdx::Prng;
use raddle_world::{Context, ContextId};

use crate::pct::Pct;
use crate::scheduler::{Profile, Scheduler, View};

/// PCT over instructions.
#[derive(Debug, Clone)]
pub struct Pike {
    priorities: Pct,
    /// Steps of all contexts, from the beginning of the schedule, at which the current one falls; the next one last.
    change_points: Vec<u64>,
    /// Steps before the schedule began.
    before: Option<u64>,
    done: u64,
}

impl Pike {
    /// A scheduler with so many reschedule points among the first `steps` instructions.
    pub fn new(seed: u64, points: u64, steps: u64) -> Self {
        let mut prng = Prng::new(Prng::derive_seed(seed, 4));
        let mut change_points: Vec<u64> = (0..points).map(|_| prng.below(steps.max(1))).collect();
        change_points.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            priorities: Pct::new(seed, 1, &Profile::default()),
            change_points,
            before: None,
            done: 0,
        }
    }
}

impl Scheduler for Pike {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let steps = view.contexts.iter().map(|(_, context)| context.steps).sum();
        self.done = steps - *self.before.get_or_insert(steps);
        while self
            .change_points
            .pop_if(|point| *point <= self.done)
            .is_some()
        {
            self.priorities.drop_to_bottom(view.current);
        }
        self.priorities.pick(view)
    }

    fn bound(&self, _: &Context) -> u64 {
        let next = self.change_points.last();
        next.map_or(u64::MAX, |point| point - self.done)
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::Limits;

    use super::*;
    use crate::drive;
    use crate::toy::{Do, Toy};

    /// A single reschedule point lies at every instruction as often as at any other.
    #[test]
    fn one_point_of_ten_is_drawn_evenly() {
        let limits = Limits {
            patience: 1_000,
            steps: 10_000,
        };
        let toy = Toy::new(vec![vec![Do::Work; 10], vec![Do::Work; 10]]);
        let mut hits = [0_u32; 10];
        for seed in 0..2_000 {
            let mut world = toy.clone();
            let mut scheduler = Pike::new(seed, 1, 10);
            let driven = drive(&mut world, &mut scheduler, limits, &mut |_, _| {});
            // At the first switch one of them has made as many steps as were drawn.
            let mut steps = driven.schedule.deviations.iter().map(|to| to.at.steps);
            let at = steps.find(|steps| (1..10).contains(steps)).unwrap_or(0);
            hits[usize::try_from(at).expect("few")] += 1;
        }
        // Each of 1 to 9 has a chance of 1/10: 200 of 2,000, give or take five standard deviations of 13.
        let is_even = hits[1..].iter().all(|count| (133..268).contains(count));
        assert!(is_even, "{hits:?}");
    }
}
