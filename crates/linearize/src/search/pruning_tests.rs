//! Searches that merge what goes on alike come to what all orders come to.

use std::sync::Arc;

use raddle_explore::Marked;
use raddle_stdx::{Digest, Prng};
use raddle_world::{Mark, Value};

use super::{Outcome, Todo, are_same, search};
use crate::compare::Comparison;
use crate::history::{Call, Client, Effort, History, Operation};
use crate::orders::{Orders, RunSerially, SerialRun};

/// What can be done to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// Puts a number in if it is not there; says whether it did.
    Insert(i64),
    /// Puts a number at the end; says nothing.
    Push(i64),
    /// Takes the first.
    Pop,
    Count,
}

impl Deed {
    fn any(random: &mut Prng) -> Self {
        let number = i64::try_from(random.below(3)).expect("small");
        match random.below(4) {
            0 => Self::Insert(number),
            1 => Self::Push(number),
            2 => Self::Pop,
            _ => Self::Count,
        }
    }

    fn act(self, list: &mut Vec<i64>) -> Vec<Value> {
        let number = match self {
            Self::Insert(number) => {
                let is_new = !list.contains(&number);
                if is_new {
                    list.push(number);
                    list.sort_unstable();
                }
                i64::from(is_new)
            }
            Self::Push(number) => {
                list.push(number);
                return Vec::new();
            }
            Self::Pop if list.is_empty() => -1,
            Self::Pop => list.remove(0),
            Self::Count => i64::try_from(list.len()).expect("few"),
        };
        vec![Value::Number(number)]
    }
}

/// What is known of states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum States {
    All,
    Some,
    None,
}

/// Clients that each do some deeds to one list.
struct Lists {
    scripts: Vec<Vec<Deed>>,
    states: States,
    runs: u64,
}

fn client(number: usize) -> Client {
    Arc::from([u32::try_from(number).expect("few")])
}

fn operation(client: Client, deed: Option<Deed>, results: Vec<Value>) -> Operation {
    Operation {
        client,
        call: Call {
            name: deed.map_or("list".to_owned(), |deed| format!("{deed:?}")),
            arguments: Vec::new(),
        },
        results,
        begun: 0,
        ended: Some(0),
        effort: Effort::default(),
    }
}

fn listed(list: &[i64]) -> Vec<Value> {
    list.iter().copied().map(Value::Number).collect()
}

impl RunSerially for Lists {
    fn run(&mut self, beginning: &[Client]) -> SerialRun {
        self.runs += 1;
        let mut done = vec![0; self.scripts.len()];
        let mut order: Vec<usize> = beginning.iter().map(|client| client[0] as usize).collect();
        order.iter().for_each(|who| done[*who] += 1);
        for (who, script) in self.scripts.iter().enumerate() {
            order.extend(std::iter::repeat_n(who, script.len() - done[who]));
        }
        let mut next = vec![0; self.scripts.len()];
        let mut list = Vec::new();
        let mut operations = Vec::new();
        let mut states = Vec::new();
        for (who, at) in order.into_iter().zip(0..) {
            let deed = self.scripts[who][next[who]];
            next[who] += 1;
            operations.push(operation(client(who), Some(deed), deed.act(&mut list)));
            let state = Digest::of(format!("{list:?}").as_bytes());
            let is_known = match self.states {
                States::All => true,
                States::Some => at % 2 == 0,
                States::None => false,
            };
            states.push(is_known.then_some(state));
        }
        SerialRun {
            operations,
            clients: Vec::new(),
            states,
            probes: Some(vec![operation(client(99), None, listed(&list))]),
            early_probes: 0,
            nested: 0,
            status: Some(0),
        }
    }
}

/// What a deed would have given at its beginning, and what it gave if it has taken effect.
type Doing = (Vec<Value>, Option<Vec<Value>>);

/// A run in which each deed takes effect at one moment, but some give what they would have given at their beginning.
fn history(scripts: &[Vec<Deed>], stale: u64, random: &mut Prng) -> History {
    let mut marks = Vec::new();
    let mut mark = |who: usize, mark: Mark| {
        marks.push(Marked {
            context: client(who),
            steps: 0,
            shared_steps: None,
            mark,
        });
    };
    let mut list = Vec::new();
    // For each client how many deeds it began, and the one that it does.
    let mut doing: Vec<(usize, Option<Doing>)> = vec![(0, None); scripts.len()];
    while let Some(who) = {
        let left = |who: &usize| doing[*who].0 < scripts[*who].len() || doing[*who].1.is_some();
        let able: Vec<usize> = (0..scripts.len()).filter(left).collect();
        let count = u64::try_from(able.len()).expect("few");
        (count > 0).then(|| able[usize::try_from(random.below(count)).expect("few")])
    } {
        let (begun, now) = doing[who].clone();
        doing[who] = match now {
            None => {
                let deed = scripts[who][begun];
                let (name, is_probe) = (format!("{deed:?}"), false);
                mark(who, Mark::Begin { name, is_probe });
                (begun + 1, Some((deed.act(&mut list.clone()), None)))
            }
            Some((early, None)) => {
                let right = scripts[who][begun - 1].act(&mut list);
                let is_stale = random.below(100) < stale;
                let given = if is_stale { early.clone() } else { right };
                (begun, Some((early, Some(given))))
            }
            Some((_, Some(given))) => {
                given
                    .into_iter()
                    .for_each(|value| mark(who, Mark::Result(value)));
                mark(who, Mark::End);
                (begun, None)
            }
        };
    }
    let (name, is_probe) = ("list".to_owned(), true);
    mark(99, Mark::Begin { name, is_probe });
    listed(&list)
        .into_iter()
        .for_each(|value| mark(99, Mark::Result(value)));
    mark(99, Mark::End);
    History::of(&marks)
}

/// What a search must come to: the kind of outcome, found by running all orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Serial,
    State,
    Results,
}

fn by_force(history: &History, lists: &mut Lists) -> Kind {
    let orders = Todo::new(history)
        .all_orders(usize::MAX)
        .expect("all of them");
    let comparison = Comparison::default();
    let mut kind = Kind::Results;
    for order in orders {
        let run = lists.run(&order);
        let mut next = vec![0; lists.scripts.len()];
        let fits = run.operations.iter().all(|serial| {
            let who = serial.client[0] as usize;
            next[who] += 1;
            let mut own = history
                .operations
                .iter()
                .filter(|o| o.client == serial.client);
            let seen = own.nth(next[who] - 1);
            seen.is_some_and(|seen| comparison.is_same(seen, serial))
        });
        if !fits {
            continue;
        }
        let probes = run.probes.expect("it ends");
        if are_same(&comparison, &history.probes, &probes) {
            return Kind::Serial;
        }
        kind = Kind::State;
    }
    kind
}

fn found(history: &History, scripts: &[Vec<Deed>], states: States) -> (Option<Kind>, u64) {
    let mut orders = Orders::new(Lists {
        scripts: scripts.to_vec(),
        states,
        runs: 0,
    });
    let kind = match search(history, &mut orders, &Comparison::default()) {
        Outcome::Serial(_) => Some(Kind::Serial),
        Outcome::StateDiffers(_) => Some(Kind::State),
        Outcome::ResultsDiffer(_) => Some(Kind::Results),
        Outcome::GaveUp => None,
    };
    (kind, orders.runner().runs)
}

/// 600 histories of up to eight deeds: the search with and without states says what all orders say.
#[test]
fn searches_agree_with_all_orders() {
    let mut random = Prng::new(20);
    let mut seen = [0; 3];
    for round in 0..600 {
        let clients = 2 + round % 2;
        let deeds = 2 + usize::try_from(random.below(2)).expect("few");
        let scripts: Vec<Vec<Deed>> = (0..clients)
            .map(|_| (0..deeds).map(|_| Deed::any(&mut random)).collect())
            .collect();
        let history = history(&scripts, 40, &mut random);
        let mut lists = Lists {
            scripts: scripts.clone(),
            states: States::None,
            runs: 0,
        };
        let expected = by_force(&history, &mut lists);
        seen[expected as usize] += 1;
        for states in [States::None, States::Some, States::All] {
            let (kind, _) = found(&history, &scripts, states);
            assert_eq!(kind, Some(expected), "{states:?} {history:#?}");
        }
    }
    assert!(seen.iter().all(|count| *count >= 5), "{seen:?}");
}

/// Four clients with six inserts each, all of which overlap, and a state that no order leaves: without states there are
/// too many orders.
#[test]
fn what_commutes_costs_no_factorials() {
    let scripts: Vec<Vec<Deed>> = (0..4)
        .map(|who| (0..6).map(|at| Deed::Insert(who * 6 + at)).collect())
        .collect();
    let mut random = Prng::new(1);
    let right = history(&scripts, 0, &mut random);
    assert_eq!(found(&right, &scripts, States::All).0, Some(Kind::Serial));
    let overlap = |mut history: History| {
        for operation in &mut history.operations {
            operation.begun = 0;
        }
        history.probes[0].results.pop();
        history
    };
    let damaged = overlap(right);
    let (kind, runs) = found(&damaged, &scripts, States::All);
    assert_eq!(kind, Some(Kind::State));
    // One for each edge of the graph at most, instead of 24! / 6!^4.
    assert!(runs <= 4 * 7_u64.pow(4), "{runs}");
    assert_eq!(found(&damaged, &scripts, States::None).0, None);
}
