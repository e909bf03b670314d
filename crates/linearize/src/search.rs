//! Is there a serial order that gives what a run gave? Depth first, over beginnings whose results fit so far.
//!
//! Beginnings that go on alike (the same operations, the same state) are looked at once, so that operations that commute
//! cost no factorials. Operations that ended early are tried early: most runs are serial in the order of their ends.

use std::collections::{BTreeMap, BTreeSet};

use raddle_stdx::width::to_u64;

use crate::compare::Comparison;
use crate::history::{Client, History, Operation};
use crate::orders::{NodeId, Orders, RunSerially};

/// Beginnings that are looked at for one run at most.
const STEPS_MAX: u64 = 20_000;

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This order gives the same results and the same state.
    Serial(Vec<Client>),
    /// This order gives the same results, but none that does gives the same state.
    StateDiffers(Vec<Client>),
    /// No order gives the same results; this beginning gives most of them.
    ResultsDiffer(Vec<Client>),
    /// There are too many orders to say.
    GaveUp,
}

/// Looks for the order.
pub fn search<R: RunSerially>(
    history: &History,
    orders: &mut Orders<R>,
    comparison: &Comparison,
) -> Outcome {
    let mut quick = Search::new(history, comparison, First::Ended);
    let mut order = Vec::new();
    match quick.go_on(orders, &mut order) {
        Some(true) => return Outcome::Serial(order),
        None => return Outcome::GaveUp,
        Some(false) => {}
    }
    // There is none. What is nearest must not depend on who was first: the same bug has one name.
    let mut search = Search::new(history, comparison, First::Client);
    match search.go_on(orders, &mut order) {
        Some(true) => Outcome::Serial(order),
        None => Outcome::GaveUp,
        Some(false) => match search.with_results {
            Some(order) => Outcome::StateDiffers(order),
            None => Outcome::ResultsDiffer(search.nearest),
        },
    }
}

/// Who is tried first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// Whose operation was over first.
    Ended,
    /// Whose path is the lowest.
    Client,
}

struct Search<'h> {
    todo: Todo<'h>,
    comparison: &'h Comparison,
    probes: &'h [Operation],
    steps: u64,
    /// The longest beginning with the same results.
    nearest: Vec<Client>,
    /// The first whole order with the same results.
    with_results: Option<Vec<Client>>,
    first: First,
    /// What leads nowhere, however it is reached.
    failed: BTreeSet<NodeId>,
}

impl<'h> Search<'h> {
    fn new(history: &'h History, comparison: &'h Comparison, first: First) -> Self {
        Self {
            todo: Todo::new(history),
            comparison,
            probes: &history.probes,
            steps: 0,
            nearest: Vec::new(),
            with_results: None,
            first,
            failed: BTreeSet::new(),
        }
    }

    /// Tries all ways to go on; nothing if it takes too long.
    fn go_on<R: RunSerially>(
        &mut self,
        orders: &mut Orders<R>,
        order: &mut Vec<Client>,
    ) -> Option<bool> {
        let node = orders.node(order);
        if node.is_some_and(|node| self.failed.contains(&node)) {
            return Some(false);
        }
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return None;
        }
        if order.len() > self.nearest.len() {
            self.nearest.clone_from(order);
        }
        if self.todo.is_empty() {
            let probes = orders.probes(order);
            if probes.is_some_and(|probes| are_same(self.comparison, self.probes, probes)) {
                return Some(true);
            }
            // An order that does not come to its end gives no results.
            if probes.is_some() {
                self.with_results.get_or_insert_with(|| order.clone());
            }
            self.failed.extend(node);
            return Some(false);
        }
        let mut possible = self.todo.possible();
        if self.first == First::Ended {
            // The sort is stable: of those that ended between the same beginnings the lowest path comes first.
            possible.sort_by_key(|client| self.todo.begun_before_end(client));
        }
        for client in possible {
            let seen = self.todo.next(&client)?;
            let serial = orders.step(order, &client);
            if !serial.is_some_and(|serial| self.comparison.is_same(seen, serial)) {
                continue;
            }
            self.todo.done(&client);
            order.push(client.clone());
            if self.go_on(orders, order)? {
                return Some(true);
            }
            order.pop();
            self.todo.undone(&client);
        }
        self.failed.extend(node);
        Some(false)
    }
}

/// Whether a serial order ends in the same state.
pub(crate) fn are_same(comparison: &Comparison, ours: &[Operation], theirs: &[Operation]) -> bool {
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(ours, theirs)| comparison.is_same(ours, theirs))
}

/// The operations of a run that are not yet in an order.
#[derive(Debug)]
pub(crate) struct Todo<'h> {
    clients: BTreeMap<Client, (Vec<&'h Operation>, usize)>,
    history: &'h History,
}

impl<'h> Todo<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        let mut clients: BTreeMap<Client, (Vec<&'h Operation>, usize)> = BTreeMap::new();
        // What never ended need not have happened.
        for operation in history.operations.iter().filter(|o| o.ended.is_some()) {
            let of_client = clients.entry(operation.client.clone()).or_default();
            of_client.0.push(operation);
        }
        Self { clients, history }
    }

    /// How many operations had begun when a client's next one was over: no more is known of histories that are the same.
    fn begun_before_end(&self, client: &Client) -> usize {
        let ended = self.next(client).and_then(|next| next.ended);
        let begun = |operation: &Operation| ended.is_none_or(|ended| operation.begun < ended);
        // They stand in the order in which they began.
        self.history.operations.partition_point(begun)
    }

    fn is_empty(&self) -> bool {
        self.clients.values().all(|(all, done)| *done == all.len())
    }

    fn next(&self, client: &Client) -> Option<&'h Operation> {
        let (all, done) = self.clients.get(client)?;
        all.get(*done).copied()
    }

    /// The clients whose next operation may come now: no other client's was over before it began.
    fn possible(&self) -> Vec<Client> {
        let left = || {
            self.clients
                .values()
                .filter_map(|(all, done)| all.get(*done))
        };
        let may_come = |client: &&Client| {
            let next = self.next(client);
            next.is_some_and(|next| !left().any(|other| other.is_before(next)))
        };
        self.clients.keys().filter(may_come).cloned().collect()
    }

    fn done(&mut self, client: &Client) {
        if let Some((_, done)) = self.clients.get_mut(client) {
            *done += 1;
        }
    }

    fn undone(&mut self, client: &Client) {
        if let Some((_, done)) = self.clients.get_mut(client) {
            *done -= 1;
        }
    }

    /// All orders that real time allows; nothing if there are more than so many.
    pub(crate) fn all_orders(&mut self, most: usize) -> Option<Vec<Vec<Client>>> {
        let mut all = Vec::new();
        self.add_orders(&mut Vec::new(), &mut all, most)?;
        Some(all)
    }

    fn add_orders(
        &mut self,
        begun: &mut Vec<Client>,
        all: &mut Vec<Vec<Client>>,
        most: usize,
    ) -> Option<()> {
        if self.is_empty() {
            all.push(begun.clone());
            return (to_u64(all.len()) <= to_u64(most)).then_some(());
        }
        for client in self.possible() {
            self.done(&client);
            begun.push(client.clone());
            self.add_orders(begun, all, most)?;
            begun.pop();
            self.undone(&client);
        }
        Some(())
    }
}

#[cfg(test)]
mod pruning_tests;

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use raddle_explore::Marked;
    use raddle_world::Value;

    use super::*;
    use crate::history::Call;
    use crate::history::tests::{begin, end, probe};
    use crate::orders::SerialRun;

    /// A counter: client 1 and 2 each add one, twice, and get the old value; the probe sees the sum.
    pub(crate) struct Counter(pub(crate) u64);

    impl RunSerially for Counter {
        fn run(&mut self, beginning: &[Client]) -> SerialRun {
            self.0 += 1;
            let mut left = [2, 2];
            let mut order: Vec<Client> = beginning.to_vec();
            for client in beginning {
                left[client[0] as usize - 1] -= 1;
            }
            for client in [1, 2] {
                let client: Client = Arc::from([client]);
                order.extend(std::iter::repeat_n(
                    client.clone(),
                    left[client[0] as usize - 1],
                ));
            }
            let operation = |(client, value): (Client, i64), name: &str| Operation {
                client,
                call: Call {
                    name: name.into(),
                    arguments: vec![],
                },
                results: vec![Value::Number(value)],
                begun: 0,
                ended: Some(1),
                effort: crate::history::Effort::default(),
            };
            let added = order.into_iter().zip(0..);
            SerialRun {
                operations: added.map(|added| operation(added, "add")).collect(),
                clients: Vec::new(),
                states: Vec::new(),
                probes: Some(vec![operation((Arc::from([9]), 4), "probe")]),
                early_probes: 0,
                nested: 0,
                status: Some(0),
            }
        }
    }

    pub(crate) fn history(results: [i64; 4], state: i64) -> History {
        let overlapping = |first: i64, second: i64| {
            let begins = vec![begin(1, "add"), begin(2, "add")];
            [begins, end(1, first).to_vec(), end(2, second).to_vec()].concat()
        };
        let [a, b, c, d] = results;
        let marks: Vec<Marked> = [overlapping(a, b), overlapping(c, d), probe(state)].concat();
        History::of(&marks)
    }

    fn outcome(results: [i64; 4], state: i64) -> Outcome {
        let mut orders = Orders::new(Counter(0));
        search(
            &history(results, state),
            &mut orders,
            &Comparison::default(),
        )
    }

    fn order(clients: [u32; 4]) -> Vec<Client> {
        clients.map(|client| Arc::from([client])).to_vec()
    }

    #[test]
    fn a_run_is_serial_if_some_order_gives_the_same() {
        assert_eq!(
            outcome([1, 0, 2, 3], 4),
            Outcome::Serial(order([2, 1, 1, 2]))
        );
    }

    #[test]
    fn real_time_forbids_orders_that_would_do() {
        // The second round came after the first.
        let differ = outcome([2, 3, 0, 1], 4);
        assert_eq!(differ, Outcome::ResultsDiffer(vec![]));
    }

    #[test]
    fn a_lost_update_fits_no_order() {
        let Outcome::ResultsDiffer(nearest) = outcome([0, 0, 1, 2], 3) else {
            panic!("no order gives this");
        };
        assert_eq!(nearest.len(), 1);
    }

    #[test]
    fn a_wrong_state_behind_right_results_is_seen() {
        let differs = outcome([0, 1, 2, 3], 3);
        assert_eq!(differs, Outcome::StateDiffers(order([1, 2, 1, 2])));
    }

    #[test]
    fn each_order_is_run_once() {
        let mut orders = Orders::new(Counter(0));
        let client: Client = Arc::from([1]);
        for _ in 0..3 {
            assert!(orders.step(&[], &client).is_some());
            assert!(
                orders
                    .step(std::slice::from_ref(&client), &client)
                    .is_some()
            );
            assert!(orders.probes(&order([1, 1, 2, 2])).is_some());
        }
        assert_eq!(orders.runner().0, 1);
    }

    #[test]
    fn all_orders_are_those_that_real_time_allows() {
        let history = history([0, 0, 0, 0], 0);
        assert_eq!(
            Todo::new(&history).all_orders(100).map(|all| all.len()),
            Some(4)
        );
        assert_eq!(Todo::new(&history).all_orders(3), None);
    }
}
