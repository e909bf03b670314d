//! Whose turn it is: the budget goes where new behaviour still appears.
//!
//! A subject has the more energy, the more new reads-from classes and communication points its last rounds had for what
//! they cost (AFL's power schedules and Böhme's entropic do the same with coverage of code). Each round halves what the
//! rounds before it count, so that a subject that has nothing new any more falls behind within some rounds. Equals take
//! turns, and one round in [`PATIENCE`] goes to the subject that has waited longest: a class that is met once in a million
//! schedules is met some day.

use serde::{Deserialize, Serialize};

use super::state::{State, SubjectState};

/// One round in so many goes to the subject that has waited longest.
const PATIENCE: u64 = 8;
/// A new communication point counts as much as so many new classes: it is where further classes come from.
const POINT_WORTH: u64 = 4;
/// New behaviour is counted in thousandths, so that halves of it are not lost.
const UNIT: u64 = 1000;

/// What the last rounds had, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Energy {
    novelty: u64,
    /// Milliseconds, or millions of instructions.
    cost: u64,
}

impl Energy {
    /// A round is over.
    pub(super) fn spend(&mut self, classes: u64, points: u64, cost: u64) {
        let new = classes.saturating_add(points.saturating_mul(POINT_WORTH));
        let novelty = new.saturating_mul(UNIT);
        self.novelty = (self.novelty / 2).saturating_add(novelty);
        self.cost = (self.cost / 2).saturating_add(cost.max(1));
    }

    /// New behaviour for a thousand of what it costs, in thousandths, as users see it.
    pub(super) fn per_thousand(self) -> u64 {
        self.novelty.saturating_mul(1000) / self.cost.max(1)
    }

    /// More new behaviour for the same cost.
    fn is_more_than(self, other: Self) -> bool {
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        product(self.novelty, other.cost) > product(other.novelty, self.cost)
    }
}

/// The number of the subject whose turn it is; none if none can be explored.
pub(super) fn next(state: &State) -> Option<usize> {
    let ready = |(_, subject): &(usize, &SubjectState)| subject.trouble.is_none();
    let ready = state.subjects.iter().enumerate().filter(ready);
    let ready: Vec<(usize, &SubjectState)> = ready.collect();
    // A subject without rounds has waited longest of all.
    let waiting = ready.iter().min_by_key(|(_, subject)| subject.last_round);
    let (waiting, longest) = waiting?;
    if longest.rounds == 0 || (state.rounds + 1).is_multiple_of(PATIENCE) {
        return Some(*waiting);
    }
    let mut best: Option<(usize, &SubjectState)> = None;
    for (number, subject) in ready {
        let is_better = best.is_none_or(|(_, known)| {
            let is_equal = !subject.energy.is_more_than(known.energy)
                && !known.energy.is_more_than(subject.energy);
            subject.energy.is_more_than(known.energy)
                || (is_equal && subject.last_round < known.last_round)
        });
        if is_better {
            best = Some((number, subject));
        }
    }
    best.map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::super::state::{Cost, VERSION};
    use super::*;

    /// The new classes of a subject's rounds, by their numbers, and what each costs.
    type Subject = (fn(u64) -> u64, u64);

    /// Lets subjects have so many new classes in each of their rounds, for so much; says how many rounds each got.
    fn shares(subjects: &[Subject], rounds: u64) -> Vec<u64> {
        let mut state = State {
            version: VERSION,
            name: "c".into(),
            seed: 0,
            round_schedules: 1,
            round_time: 1,
            cost: Cost::Time,
            rounds: 0,
            subjects: vec![SubjectState::default(); subjects.len()],
        };
        for round in 1..=rounds {
            let number = next(&state).unwrap();
            let (classes, cost) = subjects[number];
            let subject = &mut state.subjects[number];
            subject.energy.spend(classes(subject.rounds), 0, cost);
            subject.rounds += 1;
            subject.last_round = round;
            state.rounds = round;
        }
        state
            .subjects
            .iter()
            .map(|subject| subject.rounds)
            .collect()
    }

    #[test]
    fn rounds_go_where_new_behaviour_appears_and_none_is_forgotten() {
        let shares = shares(
            &[
                (|_| 0, 1000),
                (|_| 50, 1000),
                (|round| 400 >> round.min(20), 1000),
            ],
            800,
        );
        assert!(shares[1] > 550, "{shares:?}");
        assert!(shares[0] >= 30 && shares[2] >= 30, "{shares:?}");
        assert_eq!(shares.iter().sum::<u64>(), 800);
    }

    #[test]
    fn cheap_behaviour_is_preferred_and_equals_take_turns() {
        let by_cost = shares(&[(|_| 10, 10_000), (|_| 10, 500)], 100);
        assert!(by_cost[1] > 80, "{by_cost:?}");
        let equal = shares(&[(|_| 1, 1000), (|_| 1, 1000), (|_| 1, 1000)], 99);
        assert!(
            equal.iter().all(|share| (30..=36).contains(share)),
            "{equal:?}"
        );
    }
}
