//! What the runs teach for the next ones: where contexts meet, and how large a run is.

use std::collections::BTreeSet;

use raddle_sched::Profile;
use raddle_world::Site;

use crate::algorithm::Algorithm;
use crate::portfolio::Portfolio;

/// Points beyond this number are not used.
const POINTS_MAX: usize = 20_000;

/// What was learned so far.
#[derive(Debug)]
pub struct Learning {
    /// The size of a run in the default order.
    pub profile: Profile,
    points: BTreeSet<Site>,
    groups: BTreeSet<Vec<Site>>,
    /// Whether the last generation brought new points.
    is_going_on: bool,
    /// Points known before the present generation.
    points_before: usize,
    /// Number of the next set of delays, and of preemptions.
    delays: u64,
    preemptions: u64,
}

impl Default for Learning {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            points: BTreeSet::new(),
            groups: BTreeSet::new(),
            is_going_on: true,
            points_before: 0,
            delays: 0,
            preemptions: 0,
        }
    }
}

impl Learning {
    /// Whether the last generation brought new points.
    pub fn is_going_on(&self) -> bool {
        self.is_going_on
    }

    /// Takes the instructions of one place where contexts met.
    pub fn meet(&mut self, group: &[Site]) {
        self.points.extend(group);
        if !self.groups.contains(group) {
            self.groups.insert(group.to_vec());
        }
    }

    /// To be told when all runs of a generation have been taken into account.
    pub fn end_generation(&mut self) {
        self.is_going_on = self.points.len() != self.points_before;
        self.points_before = self.points.len();
        if self.is_going_on {
            // Numbers of decisions mean other places now.
            self.delays = 0;
            self.preemptions = 0;
        }
    }

    /// Number of points.
    pub fn points_len(&self) -> usize {
        self.points.len()
    }

    /// The points that are used.
    pub fn points(&self) -> Vec<Site> {
        self.points.iter().copied().take(POINTS_MAX).collect()
    }

    /// The points of each place where contexts meet.
    pub fn groups(&self) -> Vec<Vec<Site>> {
        self.groups.iter().cloned().collect()
    }

    /// Whether all sets of one delay have been handed out.
    pub fn single_delays_done(&self) -> bool {
        !self.is_going_on && self.delays >= self.profile.decisions
    }

    /// The algorithm of the schedule with this index: the one that the user wants, or else the portfolio's. As
    /// long as there are new points, the first schedule of a generation measures the default order with them.
    pub fn algorithm(
        &mut self,
        index: u64,
        is_first: bool,
        wanted: Option<Algorithm>,
        portfolio: &Portfolio,
    ) -> Algorithm {
        if is_first && self.is_going_on {
            return Algorithm::Default;
        }
        match wanted.unwrap_or_else(|| portfolio.of_turn(index)) {
            Algorithm::Delay { .. } => Algorithm::Delay {
                number: next(&mut self.delays),
            },
            Algorithm::Preemption { .. } => Algorithm::Preemption {
                number: next(&mut self.preemptions),
            },
            other => other,
        }
    }
}

fn next(counter: &mut u64) -> u64 {
    *counter += 1;
    *counter - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYS: Portfolio = Portfolio {
        turns: &[Algorithm::Delay { number: 0 }],
        deep: None,
    };

    #[test]
    fn delays_are_counted_anew_when_points_are_new() {
        let mut learning = Learning::default();
        let delay = |number| Algorithm::Delay { number };
        assert_eq!(
            learning.algorithm(0, true, None, &DELAYS),
            Algorithm::Default
        );
        assert_eq!(learning.algorithm(1, false, None, &DELAYS), delay(0));
        assert_eq!(learning.algorithm(2, false, None, &DELAYS), delay(1));
        learning.end_generation();
        assert_eq!(learning.algorithm(3, true, None, &DELAYS), delay(2));
        learning.meet(&[7, 9].map(Site::first));
        learning.end_generation();
        assert_eq!(learning.points(), [7, 9].map(Site::first));
        assert_eq!(
            learning.algorithm(4, true, None, &DELAYS),
            Algorithm::Default
        );
        assert_eq!(learning.algorithm(5, false, None, &DELAYS), delay(0));
    }

    #[test]
    fn single_delays_are_done_when_each_decision_had_one() {
        let mut learning = Learning::default();
        learning.profile.decisions = 2;
        learning.end_generation();
        for index in 0..2 {
            assert!(!learning.single_delays_done());
            learning.algorithm(index, false, None, &DELAYS);
        }
        assert!(learning.single_delays_done());
    }
}
