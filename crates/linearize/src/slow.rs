//! Operations that take many times the steps that they take in any serial order.

use raddle_detect::NotSerial;
use raddle_report::SerialOrders;
use raddle_report::serial::Effect;

use crate::history::{Client, History, Operation};
use crate::orders::{Orders, RunSerially};
use crate::search::Todo;
use crate::verdict::{Labels, ORDERS_SHOWN, operation_in};

/// The steps that each operation of a history takes in its slowest serial order, in the order of the history; nothing if
/// there are too many orders to run them all.
pub(crate) fn slowest<R: RunSerially>(
    history: &History,
    orders: &mut Orders<R>,
) -> Option<Vec<u64>> {
    let all = Todo::new(history).all_orders(ORDERS_SHOWN)?;
    let steps = numbered(history).map(|(client, number, _)| {
        let steps = all.iter().filter_map(|order| {
            let operation = operation_in(orders, order, client, number)?;
            Some(operation.effort.steps())
        });
        steps.max().unwrap_or(u64::MAX)
    });
    Some(steps.collect())
}

/// The operation that exceeds its slowest serial run most, if one does so more than `factor` times.
///
/// A client without code lets the server work, which meanwhile works for other clients, too: its request may take as
/// long as all those together that were not over before it began, and did not begin after it was over.
pub(crate) fn too_slow(history: &History, slowest: &[u64], factor: u64) -> Option<NotSerial> {
    let labels = Labels::of(history);
    let slow = numbered(history).zip(slowest).filter_map(|(told, own)| {
        let (client, _, operation) = told;
        let with_it = |(other, _): &(&Operation, &u64)| {
            !operation.is_before(other) && !other.is_before(operation)
        };
        let expected = if operation.effort.is_shared {
            let together = history.operations.iter().zip(slowest).filter(with_it);
            together.fold(0_u64, |sum, (_, steps)| sum.saturating_add(*steps))
        } else {
            *own
        };
        let times = operation.effort.steps() / expected.max(1);
        let is_slow = operation.ended.is_some() && times > factor;
        is_slow.then_some((times, expected, client, operation))
    });
    let (times, expected, client, operation) = slow.max_by_key(|(times, ..)| *times)?;
    let label = labels.client(client);
    let meanwhile = if operation.effort.is_shared {
        "with all requests that overlap it "
    } else {
        ""
    };
    Some(NotSerial {
        what: format!("slow {label} {}", operation.call.name),
        title: format!(
            "slow operation: {} of client {label} takes {} steps, {times} times those of its slowest serial order",
            operation.asked(),
            operation.effort.steps(),
        ),
        why: format!(
            "in no serial order it takes {meanwhile}more than {expected} steps; the rest of the work is done only because of the order"
        ),
        serial: SerialOrders::broken_off(Effect::Performance, Some(false)),
    })
}

/// The operations with whose they are and the so-manieth.
fn numbered(history: &History) -> impl Iterator<Item = (&Client, usize, &Operation)> {
    history
        .operations
        .iter()
        .enumerate()
        .map(|(at, operation)| {
            let before = history.operations[..at].iter();
            let number = before
                .filter(|other| other.client == operation.client)
                .count();
            (&operation.client, number, operation)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Effort;
    use crate::search::tests::history;

    fn with_steps(steps: [u64; 4], is_shared: bool) -> History {
        let mut history = history([0, 1, 2, 3], 4);
        for (operation, steps) in history.operations.iter_mut().zip(steps) {
            operation.effort = Effort {
                from: 100,
                to: 100 + steps,
                is_shared,
            };
        }
        history
    }

    #[test]
    fn own_steps_are_held_beside_the_slowest_serial_run() {
        let told = |steps| too_slow(&with_steps(steps, false), &[10, 10, 10, 20], 10);
        assert_eq!(told([100, 100, 100, 200]), None);
        let slow = told([120, 100, 100, 900]).expect("two are too slow");
        assert_eq!(slow.kind(), "slow-operation");
        assert!(slow.title.contains("900 steps, 45 times"), "{}", slow.title);
    }

    #[test]
    fn requests_that_overlap_share_what_servers_do() {
        // The first two overlap, and the last two.
        let told = |steps| too_slow(&with_steps(steps, true), &[10, 30, 10, 10], 2);
        assert_eq!(told([100, 100, 40, 40]), None);
        let slow = told([100, 100, 40, 100]).expect("the last one is too slow");
        assert!(slow.why.contains("more than 20 steps"), "{}", slow.why);
    }
}
