//! The reduced search sees every outcome that trying all orders sees.

use std::collections::BTreeSet;

use raddle_stdx::Prng;
use raddle_trace::Limits;
use raddle_world::ContextId;

use super::Dpor;
use crate::toy::{Do, Toy};
use crate::{End, Scheduler, View, drive};

const LIMITS: Limits = Limits {
    patience: 1000,
    steps: 10_000,
};

/// An outcome: how the run ended and what the cells hold.
type Outcome = (bool, [u64; 2]);

/// Chooses as told, then the first, and notes how many there were to choose from.
struct Told {
    choices: Vec<usize>,
    widths: Vec<usize>,
}

impl Scheduler for Told {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let choice = self.choices.get(self.widths.len()).copied().unwrap_or(0);
        self.widths.push(view.runnable.len());
        view.runnable[choice]
    }
}

/// Every order there is.
fn all_orders(toy: &Toy) -> (BTreeSet<Outcome>, u64) {
    let mut outcomes = BTreeSet::new();
    let mut choices: Vec<usize> = Vec::new();
    let mut runs = 0;
    loop {
        let mut world = toy.clone();
        let mut told = Told {
            choices: choices.clone(),
            widths: Vec::new(),
        };
        let driven = drive(&mut world, &mut told, LIMITS, &mut |_, _| {});
        outcomes.insert((driven.end == End::Stuck, world.cells));
        runs += 1;
        choices.resize(told.widths.len(), 0);
        while let Some(last) = choices.pop() {
            if last + 1 < told.widths[choices.len()] {
                choices.push(last + 1);
                break;
            }
        }
        if choices.is_empty() {
            return (outcomes, runs);
        }
    }
}

fn reduced(toy: &Toy) -> (BTreeSet<Outcome>, u64) {
    let mut outcomes = BTreeSet::new();
    let mut dpor = Dpor::default();
    while !dpor.is_over() {
        let (mut run, log) = dpor.next_run();
        let mut world = toy.clone();
        let driven = drive(&mut world, &mut run, LIMITS, &mut |_, _| {});
        outcomes.insert((driven.end == End::Stuck, world.cells));
        dpor.note(&log.borrow());
    }
    (outcomes, dpor.interleavings())
}

/// Programs begin with work of their own: what a context does before its first stop is not known beforehand.
fn toy(programs: &[&[Do]]) -> Toy {
    let with_start = |program: &&[Do]| [&[Do::Work], *program].concat();
    Toy::new(programs.iter().map(with_start).collect())
}

#[test]
fn independent_writes_have_one_interleaving_and_conflicting_ones_two() {
    let (_, apart) = reduced(&toy(&[&[Do::Set(0)], &[Do::Set(1)]]));
    assert_eq!(apart, 1);
    let (_, together) = reduced(&toy(&[&[Do::Set(0)], &[Do::Set(0)]]));
    assert_eq!(together, 2);
}

#[test]
fn a_deadlock_is_found_and_the_tree_is_smaller_than_all_orders() {
    let a: &[Do] = &[Do::Lock(0), Do::Lock(1), Do::Unlock(1), Do::Unlock(0)];
    let b: &[Do] = &[Do::Lock(1), Do::Lock(0), Do::Unlock(0), Do::Unlock(1)];
    let toy = toy(&[a, b]);
    let (outcomes, interleavings) = reduced(&toy);
    let (all, orders) = all_orders(&toy);
    assert_eq!(outcomes, all);
    assert!(outcomes.iter().any(|(is_stuck, _)| *is_stuck));
    assert!(interleavings * 4 < orders, "{interleavings} of {orders}");
}

#[test]
fn random_programs_have_the_same_outcomes_as_in_all_orders() {
    let operations = [
        Do::Work,
        Do::Load(0),
        Do::Load(1),
        Do::StoreNext(0),
        Do::StoreNext(1),
        Do::Set(0),
    ];
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let contexts = 2 + prng.below(2);
        let programs: Vec<Vec<Do>> = (0..contexts)
            .map(|_| {
                let length = 1 + prng.below(3);
                (0..length)
                    .map(|_| operations[usize::try_from(prng.below(6)).unwrap()])
                    .collect()
            })
            .collect();
        let programs: Vec<&[Do]> = programs.iter().map(Vec::as_slice).collect();
        let toy = toy(&programs);
        let (outcomes, interleavings) = reduced(&toy);
        let (all, orders) = all_orders(&toy);
        assert_eq!(outcomes, all, "seed {seed}: {programs:?}");
        assert!(interleavings <= orders);
    }
}
