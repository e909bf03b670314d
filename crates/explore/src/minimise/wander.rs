//! Random changes of an order, for bugs that need many preemptions.
//!
//! Where neither taking one or two things away nor a search from below helps, the way to a smaller order leads
//! through others of the same size: a random walk over orders that fail in the same way and are no bigger.

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};

use super::stretches::{Line, Stretch};

/// Changes at once.
const CHANGES_MAX: u64 = 3;

/// A list of stretches that differs from that of a run in a few random places.
pub(super) fn changed(line: &Line, prng: &mut Prng) -> Vec<Stretch> {
    let mut list = line.stretches.clone();
    for _ in 0..=prng.below(CHANGES_MAX) {
        if list.len() < 2 {
            break;
        }
        let index = below(prng, list.len());
        match prng.below(4) {
            0 => {
                list.remove(index);
            }
            1 => {
                let other = (index + 1) % list.len();
                list.swap(index, other);
            }
            _ => {
                let ends = line.shifts(&list[index]);
                if !ends.is_empty() {
                    list[index].until = ends[below(prng, ends.len())];
                }
            }
        }
    }
    list
}

fn below(prng: &mut Prng, bound: usize) -> usize {
    to_usize(prng.below(to_u64(bound)))
}

#[cfg(test)]
mod tests {
    use raddle_trace::Position;

    use super::super::stretches::Until;
    use super::*;

    #[test]
    fn changes_are_small_and_depend_on_nothing_but_the_seed() {
        let stretch = |context: u32, steps: u64| Stretch {
            context: vec![context],
            until: Until::Preempted(Position {
                steps,
                phase: Position::PLAIN,
            }),
        };
        let line = Line {
            stretches: (0..8).map(|n| stretch(n % 3, u64::from(n))).collect(),
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
        let shortest = line.stretches.len() - to_usize(CHANGES_MAX);
        let lengths: Vec<usize> = walk(1).iter().map(Vec::len).collect();
        assert!(lengths.iter().all(|length| *length >= shortest));
        assert!(walk(1).iter().any(|list| *list != line.stretches));
    }
}
