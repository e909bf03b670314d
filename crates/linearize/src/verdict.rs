//! What to tell of a run that no serial order explains.

use std::collections::BTreeMap;

use raddle_detect::NotSerial;
use raddle_report::serial::{Compared, Effect, SerialOrder, SerialOrders};

use crate::compare::Comparison;
use crate::history::{Client, History, Operation};
use crate::orders::{Orders, RunSerially};
use crate::search::{Outcome, Todo, are_same};

/// Serial orders that a table shows at most.
pub(crate) const ORDERS_SHOWN: usize = 24;
/// Characters of a result that a title shows.
const TITLE_MAX: usize = 40;

/// A search that found no order, in words.
pub fn not_serial<R: RunSerially>(
    history: &History,
    outcome: &Outcome,
    orders: &mut Orders<R>,
    comparison: &Comparison,
) -> Option<NotSerial> {
    let labels = Labels::of(history);
    let mut teller = Teller {
        history,
        orders,
        comparison,
        labels,
    };
    match outcome {
        Outcome::Serial(_) | Outcome::GaveUp => None,
        Outcome::StateDiffers(order) => Some(teller.latent(order)),
        Outcome::ResultsDiffer(nearest) => Some(teller.visible(nearest)),
    }
}

struct Teller<'a, R> {
    history: &'a History,
    orders: &'a mut Orders<R>,
    comparison: &'a Comparison,
    labels: Labels,
}

impl<R: RunSerially> Teller<'_, R> {
    /// Results as of a serial order, and another state than after any.
    fn latent(&mut self, order: &[Client]) -> NotSerial {
        let serial: Vec<Operation> = self.orders.probes(order).unwrap_or_default().to_vec();
        let pairs = || self.history.probes.iter().zip(&serial);
        let differing = pairs().find(|(ours, theirs)| !self.comparison.is_same(ours, theirs));
        let names = self.labels.order(order);
        let title = match differing {
            Some((ours, theirs)) => format!(
                "latent error: all results are those of the serial order {names}, but afterwards {} gives {} instead of {}",
                ours.asked(),
                shortened(&ours.given()),
                shortened(&theirs.given())
            ),
            None => format!(
                "latent error: all results are those of the serial order {names}, but afterwards {} probes run instead of {}",
                self.history.probes.len(),
                serial.len()
            ),
        };
        let what = differing.map_or("probes", |(ours, _)| &ours.call.name);
        // What a later request shows: a wrong answer, or an error.
        let is_error = differing.is_some_and(|(ours, _)| ours.is_error());
        let differences = pairs().map(|(ours, theirs)| self.compared(None, ours, Some(theirs)));
        NotSerial {
            what: format!("state {what}"),
            title,
            why: "no serial order with these results leaves this state: what was damaged shows only when somebody asks for it later".into(),
            serial: SerialOrders {
                effect: effect(is_error),
                is_latent: Some(true),
                differences: differences.collect(),
                nearest: names,
                ..self.table()
            },
        }
    }

    /// Results as of no serial order.
    fn visible(&mut self, nearest: &[Client]) -> NotSerial {
        let (first, is_error) = self.culprit(nearest);
        let label = self.labels.client(&first.client);
        let title = if is_error {
            format!(
                "unexpected error: {} of client {label} gives {}, which it does in no serial order",
                first.asked(),
                shortened(&first.given())
            )
        } else {
            format!(
                "not linearizable: {} of client {label} gives {}; no serial order gives all results of this run",
                first.asked(),
                shortened(&first.given())
            )
        };
        let what = format!("{} {}", label, first.call.name);
        let serial = SerialOrders {
            effect: effect(is_error),
            differences: self.differences(nearest),
            nearest: self.labels.order(&self.whole(nearest)),
            ..self.table()
        };
        NotSerial {
            what,
            title,
            why: "run one after the other, in any order that agrees with which operations were over before others began, these operations never give these results together".into(),
            serial,
        }
    }

    /// The operation whose result does not fit: the first one after the longest beginning that fits, or an error that no
    /// serial order shows.
    fn culprit(&mut self, nearest: &[Client]) -> (Operation, bool) {
        let orders = Todo::new(self.history).all_orders(ORDERS_SHOWN);
        let errors: Vec<Operation> = self
            .numbered()
            .into_iter()
            .filter(|(_, operation)| operation.is_error())
            .filter(|((client, number), operation)| {
                let mut all = orders.iter().flatten();
                !all.any(|order| {
                    let serial = operation_in(self.orders, order, client, *number);
                    serial.is_some_and(|serial| self.comparison.is_same(operation, &serial))
                })
            })
            .map(|(_, operation)| operation)
            .collect();
        if let (Some(error), true) = (errors.first(), orders.is_some()) {
            return (error.clone(), true);
        }
        let mut done: BTreeMap<&Client, usize> = BTreeMap::new();
        for client in nearest {
            *done.entry(client).or_default() += 1;
        }
        let mut next: Vec<((Client, usize), Operation)> = self.numbered();
        next.retain(|((client, number), _)| *number == done.get(client).copied().unwrap_or(0));
        // Not by who began first: the same bug has one name.
        next.sort_by(|one, other| one.0.cmp(&other.0));
        let may_come = |operation: &&Operation| {
            let mut others = next.iter();
            !others.any(|(_, other)| other.is_before(operation))
        };
        let mut operations = next.iter().map(|(_, operation)| operation);
        let first = operations.find(may_come).cloned();
        // Something is left, or the search would have come to its end.
        let first = first.or_else(|| self.history.operations.first().cloned());
        let first = first.expect("a run without operations is serial");
        (first, false)
    }

    /// The finished operations, with whose they are and the so-manieth, in the order in which they began.
    fn numbered(&self) -> Vec<((Client, usize), Operation)> {
        let mut counts: BTreeMap<Client, usize> = BTreeMap::new();
        let ended = self.history.operations.iter().filter(|o| o.ended.is_some());
        ended
            .map(|operation| {
                let count = counts.entry(operation.client.clone()).or_default();
                *count += 1;
                ((operation.client.clone(), *count - 1), operation.clone())
            })
            .collect()
    }

    /// A beginning, gone on with in the order in which the rest began.
    fn whole(&self, nearest: &[Client]) -> Vec<Client> {
        let mut order = nearest.to_vec();
        let mut done: BTreeMap<Client, usize> = BTreeMap::new();
        for client in nearest {
            *done.entry(client.clone()).or_default() += 1;
        }
        for ((client, number), _) in self.numbered() {
            if number >= done.get(&client).copied().unwrap_or(0) {
                order.push(client);
            }
        }
        order
    }

    fn differences(&mut self, nearest: &[Client]) -> Vec<Compared> {
        let order = self.whole(nearest);
        let mut all = Vec::new();
        for ((client, number), seen) in self.numbered() {
            let serial = operation_in(self.orders, &order, &client, number);
            let who = self.labels.client(&client);
            all.push(self.compared(Some(who), &seen, serial.as_ref()));
        }
        let serial: Option<Vec<Operation>> = self.orders.probes(&order).map(<[_]>::to_vec);
        for (ours, theirs) in self.history.probes.iter().zip(serial.iter().flatten()) {
            all.push(self.compared(None, ours, Some(theirs)));
        }
        all
    }

    fn compared(
        &self,
        client: Option<String>,
        seen: &Operation,
        serial: Option<&Operation>,
    ) -> Compared {
        Compared {
            client,
            operation: seen.asked(),
            seen: seen.given(),
            expected: serial.map(Operation::given),
            is_same: serial.is_some_and(|serial| self.comparison.is_same(seen, serial)),
        }
    }

    /// Which serial orders give these results, and which this state.
    fn table(&mut self) -> SerialOrders {
        let orders = Todo::new(self.history).all_orders(ORDERS_SHOWN);
        let row = |order: &Vec<Client>| {
            let (same_results, same_state) = self.fits(order);
            SerialOrder {
                order: self.labels.order(order),
                same_results,
                same_state,
            }
        };
        SerialOrders {
            has_more_orders: orders.is_none(),
            orders: orders.iter().flatten().map(row).collect(),
            ..SerialOrders::broken_off(Effect::Semantic, Some(false))
        }
    }

    /// Whether an order gives all results, and the state; nothing if it does not come to its end.
    fn fits(&mut self, order: &[Client]) -> (Option<bool>, Option<bool>) {
        let mut outputs = true;
        for ((client, number), seen) in self.numbered() {
            let Some(serial) = operation_in(self.orders, order, &client, number) else {
                return (None, None);
            };
            outputs &= self.comparison.is_same(&seen, &serial);
        }
        let state = self
            .orders
            .probes(order)
            .map(|probes| are_same(self.comparison, &self.history.probes, probes));
        (Some(outputs), state)
    }
}

fn effect(is_error: bool) -> Effect {
    if is_error {
        Effect::Error
    } else {
        Effect::Semantic
    }
}

/// A result as a title can hold it.
fn shortened(text: &str) -> String {
    if text.chars().count() <= TITLE_MAX {
        return text.to_owned();
    }
    text.chars().take(TITLE_MAX).chain("..".chars()).collect()
}

/// What the so-manieth operation of a client does in an order.
pub(crate) fn operation_in<R: RunSerially>(
    orders: &mut Orders<R>,
    order: &[Client],
    client: &Client,
    number: usize,
) -> Option<Operation> {
    let mut visits = order.iter().enumerate().filter(|(_, who)| *who == client);
    let (at, _) = visits.nth(number)?;
    // All before it must come to their end, too.
    for before in 0..at {
        orders.step(&order[..before], &order[before])?;
    }
    orders.step(&order[..at], client).cloned()
}

/// Names of clients: A, B, ... in the order of their paths.
pub(crate) struct Labels {
    clients: Vec<Client>,
    /// Whether no client does more than one operation.
    is_plain: bool,
}

impl Labels {
    pub(crate) fn of(history: &History) -> Self {
        let clients = history.clients();
        Self {
            is_plain: history.operations.len() == clients.len(),
            clients,
        }
    }

    pub(crate) fn client(&self, client: &Client) -> String {
        let number = self.clients.iter().position(|known| known == client);
        let number = number.unwrap_or(self.clients.len());
        match u8::try_from(number) {
            Ok(number @ 0..26) => char::from(b'A' + number).to_string(),
            _ => format!("C{}", number + 1),
        }
    }

    /// `A1 B1 A2`, or `A B` if each does one thing only.
    fn order(&self, order: &[Client]) -> String {
        let mut counts: BTreeMap<&Client, usize> = BTreeMap::new();
        let words = order.iter().map(|client| {
            let count = counts.entry(client).or_default();
            *count += 1;
            match self.is_plain {
                true => self.client(client),
                false => format!("{}{count}", self.client(client)),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::search;
    use crate::search::tests::{Counter, history};

    fn told(results: [i64; 4], state: i64) -> NotSerial {
        let mut orders = Orders::new(Counter(0));
        let comparison = Comparison::default();
        let history = history(results, state);
        let outcome = search(&history, &mut orders, &comparison);
        let told = not_serial(&history, &outcome, &mut orders, &comparison);
        told.expect("no serial order gives this")
    }

    #[test]
    fn a_lost_update_is_told_with_all_orders_and_the_difference() {
        let told = told([0, 0, 1, 2], 3);
        assert_eq!(told.kind(), "not-linearizable");
        assert!(told.title.contains("client B gives 0"), "{}", told.title);
        assert_eq!(
            told.serial.lines(),
            [
                "serial order A1 B1 A2 B2: same results: no, same state: no",
                "serial order A1 B1 B2 A2: same results: no, same state: no",
                "serial order B1 A1 A2 B2: same results: no, same state: no",
                "serial order B1 A1 B2 A2: same results: no, same state: no",
                "seen (+, = for the same) beside the nearest serial order A1 B1 A2 B2 (-):",
                "= A: add() = 0",
                "- B: add() = 1",
                "+ B: add() = 0",
                "- A: add() = 2",
                "+ A: add() = 1",
                "- B: add() = 3",
                "+ B: add() = 2",
                "- probe() = 4",
                "+ probe() = 3",
            ]
        );
    }

    #[test]
    fn a_wrong_state_is_latent() {
        let told = told([0, 1, 2, 3], 3);
        assert_eq!(told.kind(), "latent-error");
        assert_eq!(told.serial.effect, Effect::Semantic);
        assert!(
            told.title.contains("probe() gives 3 instead of 4"),
            "{}",
            told.title
        );
        let row = &told.serial.orders[0];
        assert_eq!(
            (row.same_results, row.same_state),
            (Some(true), Some(false))
        );
    }
}
