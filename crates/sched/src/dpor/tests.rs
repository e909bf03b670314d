//! The reduced search sees every outcome that trying all orders sees.

use std::collections::BTreeSet;

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_trace::Limits;
use raddle_world::{ContextId, Stop, Until, World};

use super::Dpor;
use crate::toy::{Do, Toy};
use crate::{End, Scheduler, View, drive};

const LIMITS: Limits = Limits {
    patience: 1000,
    steps: 10_000,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Over,
    Stuck,
    Hanging,
}

impl Ending {
    fn of(end: &End) -> Self {
        match end {
            End::Stuck => Self::Stuck,
            End::Hanging => Self::Hanging,
            _ => Self::Over,
        }
    }
}

/// How the run ended and what the cells hold.
type Outcome = (Ending, [u64; 2]);

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

/// Every outcome that can be reached, by trying everything in every state. Independent of the driver: a loop comes back to
/// a state that was seen.
fn by_brute_force(toy: &Toy) -> BTreeSet<Outcome> {
    let mut outcomes = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![toy.clone()];
    while let Some(state) = open.pop() {
        if !seen.insert(state.key()) {
            continue;
        }
        let runnable = state.contexts().runnable().to_vec();
        if runnable.is_empty() {
            outcomes.insert((Ending::Stuck, state.cells));
        }
        let mut goes_on = false;
        for who in &runnable {
            let mut next = state.clone();
            let stop = next.run(*who, Until::Sync { steps_max: 1 });
            goes_on |= next.key() != state.key();
            match stop {
                Stop::WorldDone { .. } => {
                    outcomes.insert((Ending::Over, next.cells));
                }
                _ => open.push(next),
            }
        }
        if !goes_on && !runnable.is_empty() {
            outcomes.insert((Ending::Hanging, state.cells));
        }
    }
    outcomes
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
        outcomes.insert((Ending::of(&driven.end), world.cells));
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
    let mut runs = 0;
    while !dpor.is_over() {
        let (mut run, log) = dpor.next_run();
        let mut world = toy.clone();
        let driven = drive(&mut world, &mut run, LIMITS, &mut |_, _| {});
        outcomes.insert((Ending::of(&driven.end), world.cells));
        dpor.note(&log.borrow());
        runs += 1;
        assert!(runs < 100_000, "the search does not end: {toy:?}");
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
    assert!(outcomes.iter().any(|(end, _)| *end == Ending::Stuck));
    assert!(interleavings * 4 < orders, "{interleavings} of {orders}");
}

/// A program of so many operations at most, drawn from some. Locks are taken and given up in pairs.
fn random_program(prng: &mut Prng, operations: &[Do], length: u64) -> Vec<Do> {
    let mut program = Vec::new();
    for _ in 0..1 + prng.below(length) {
        let operation = operations[to_usize(prng.below(to_u64(operations.len())))];
        program.push(operation);
        if let Do::Lock(lock) = operation {
            program.extend((0..prng.below(2)).map(|_| operations[0]));
            program.push(Do::Unlock(lock));
        }
    }
    program
}

#[track_caller]
fn check_random(operations: &[Do], seeds: u64, length: u64) {
    for seed in 0..seeds {
        let mut prng = Prng::new(seed);
        let contexts = 2 + prng.below(2);
        let programs: Vec<Vec<Do>> = (0..contexts)
            .map(|_| random_program(&mut prng, operations, length))
            .collect();
        let programs: Vec<&[Do]> = programs.iter().map(Vec::as_slice).collect();
        let toy = toy(&programs);
        let all = by_brute_force(&toy);
        // Runs that do not end have no last transition: no search of this kind comes to an end.
        if all.iter().any(|(end, _)| *end == Ending::Hanging) {
            continue;
        }
        let (outcomes, _) = reduced(&toy);
        assert_eq!(outcomes, all, "seed {seed}: {programs:?}");
    }
}

#[test]
fn random_programs_have_all_outcomes() {
    use Do::{Advance, Load, Set, StoreNext, Work};
    let operations = [Work, Load(0), Load(1), StoreNext(0), StoreNext(1), Set(0)];
    check_random(&operations, 300, 3);
    check_random(
        &[Advance(0, 0), Advance(0, 1), Set(1), Load(0), StoreNext(1)],
        300,
        3,
    );
}

#[test]
fn random_programs_with_locks_have_all_outcomes() {
    use Do::{Load, Lock, Set, StoreNext};
    check_random(&[StoreNext(0), Lock(0), Lock(1), Load(0), Set(1)], 200, 3);
}

#[test]
fn random_programs_with_loops_have_all_outcomes() {
    use Do::{Load, Poll, Set, SpinOn, StoreNext, YieldOn};
    check_random(&[Set(0), SpinOn(1), Set(1), Load(0), StoreNext(1)], 200, 3);
    check_random(
        &[Set(0), Poll(0, 3), Poll(1, 2), Load(0), StoreNext(1)],
        200,
        3,
    );
    check_random(&[Set(0), YieldOn(0), Set(1), Load(0), StoreNext(1)], 200, 3);
}
