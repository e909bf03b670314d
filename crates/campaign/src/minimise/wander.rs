//! Random changes of an order, for bugs that need many preemptions.
//!
//! Where neither taking one or two things away nor a search from below helps, the way to a smaller order leads
//! through others of the same size: a random walk over orders that fail in the same way and are hardly bigger.

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};

use super::stretches::{self, Line, Stretch, Until};

/// Changes at once.
const CHANGES_MAX: u64 = 3;

/// A list of stretches that differs from that of a run in a few random places.
pub(super) fn changed(line: &Line, prng: &mut Prng) -> Vec<Stretch> {
    let mut list = line.stretches.clone();
    for _ in 0..=prng.below(CHANGES_MAX) {
        if list.len() < 2 {
            break;
        }
        change(&mut list, line, prng);
    }
    list
}

/// One random change.
fn change(list: &mut Vec<Stretch>, line: &Line, prng: &mut Prng) {
    let index = below(prng, list.len());
    match prng.below(8) {
        0 => {
            list.remove(index);
        }
        1 => {
            let other = (index + 1) % list.len();
            list.swap(index, other);
        }
        2 | 3 => {
            let ends = line.shifts(&list[index]);
            if let Some(end) = any(prng, ends.iter()) {
                list[index].until = *end;
            }
        }
        4 => {
            let stops = line.stops.get(&list[index].context);
            if let Some(end) = stops.and_then(|stops| any(prng, stops.iter())) {
                list[index].until = Until::Preempted(*end);
            }
        }
        5 => {
            if let Some((context, stops)) = any(prng, line.stops.iter())
                && let Some(end) = any(prng, stops.iter())
            {
                let context = context.clone();
                let until = Until::Preempted(*end);
                list.insert(index, Stretch { context, until });
            }
        }
        6 => *list = stretches::joined(list, index),
        _ => {
            if let Some(context) = any(prng, line.stops.keys()) {
                list[index].context.clone_from(context);
            }
        }
    }
}

fn any<T>(prng: &mut Prng, mut all: impl ExactSizeIterator<Item = T>) -> Option<T> {
    match all.len() {
        0 => None,
        count => all.nth(below(prng, count)),
    }
}

fn below(prng: &mut Prng, bound: usize) -> usize {
    to_usize(prng.below(to_u64(bound)))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use raddle_trace::{Phase, Position};

    use super::*;

    #[test]
    fn changes_are_small_and_depend_on_nothing_but_the_seed() {
        let at = |steps| Position {
            steps,
            phase: Phase::Plain,
        };
        let stretch = |context: u32, steps: u64| Stretch {
            context: vec![context],
            until: Until::Preempted(at(steps)),
        };
        let line = Line {
            stretches: (0..8).map(|n| stretch(n % 3, u64::from(n))).collect(),
            stops: BTreeMap::from([(vec![1], BTreeSet::from([at(3), at(5)]))]),
            ..Line::default()
        };
        let walk = |seed| {
            let mut prng = Prng::new(seed);
            (0..50)
                .map(|_| changed(&line, &mut prng))
                .collect::<Vec<_>>()
        };
        assert_eq!(walk(1), walk(1));
        assert_ne!(walk(1), walk(2));
        assert!(walk(1).iter().any(|list| list.len() > line.stretches.len()));
        let shortest = line.stretches.len() - to_usize(CHANGES_MAX);
        let lengths: Vec<usize> = walk(1).iter().map(Vec::len).collect();
        assert!(lengths.iter().all(|length| *length >= shortest));
        assert!(walk(1).iter().any(|list| *list != line.stretches));
    }
}
