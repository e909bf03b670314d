//! What serial orders give: each is run once, in a world of its own, and remembered with all its beginnings.
//!
//! ```text
//!        A        B
//!   start ──▶ a ──▶ ab      two beginnings with the same operations that leave the same state are one: what comes
//!     └─B──▶ b ──A──▲       after them is the same, and is run once
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use raddle_campaign::{Leave, Stage as _};
use raddle_explore::{About, Marked, Session, StartFailure};
use raddle_sched::End;
use raddle_trace::Limits;
use raddle_world::World as _;

use crate::history::{Client, History, Operation};
use crate::one_at_a_time::{OneAtATime, Turns};
use crate::state::Inside;

/// Steps in a row before the default order goes on to the next context.
pub(crate) const PATIENCE: u64 = 100_000;
/// Steps of the first serial order at most.
const FIRST_STEPS: u64 = 2_000_000_000;
/// Steps of a serial order before it counts as hanging, if the first one took fewer.
const STEPS_MIN: u64 = 4_000_000;
/// How much longer than the first one a serial order may take.
const STEPS_FACTOR: u64 = 40;

/// Bytes of the stack on which programs are loaded: their debug information may be nested deeply.
const STACK_BYTES: usize = 64 << 20;

/// A serial order that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialRun {
    /// The operations in their order, up to one that could not come to its end there.
    pub operations: Vec<Operation>,
    /// Who did operations, also out of order.
    pub clients: Vec<Client>,
    /// Digests of the state after each of the first operations, as far as they are known.
    pub states: Vec<Option<u64>>,
    /// What the probes saw; none if the run did not come to its end as it should.
    pub probes: Option<Vec<Operation>>,
    /// Marks that stand in the wrong place.
    pub early_probes: u64,
    pub nested: u64,
    /// How it ended.
    pub status: Option<i32>,
}

/// A runner of serial orders.
pub trait RunSerially {
    /// Runs an order that begins so; how it goes on is up to the runner.
    fn run(&mut self, beginning: &[Client]) -> SerialRun;
}

/// Runs that look for a serial order that comes to its end, at most.
const ATTEMPTS: usize = 50;

/// A serial order that comes to its end, if the first one does not: there an operation waits for one that comes later.
pub(crate) fn whole_order(runner: &mut impl RunSerially, first: SerialRun) -> SerialRun {
    let done = |run: &SerialRun| -> Vec<Client> {
        let operations = run.operations.iter();
        operations
            .map(|operation| Arc::clone(&operation.client))
            .collect()
    };
    if first.status.is_some_and(|status| status & 0x7F != 0) {
        return first;
    }
    let clients = first.clients.clone();
    let mut tried: BTreeSet<Vec<Client>> = BTreeSet::new();
    // Beginnings that came to their end, the longest last.
    let mut beginnings: Vec<Vec<Client>> = vec![Vec::new()];
    let path = done(&first);
    beginnings.extend((1..=path.len()).map(|length| path[..length].to_vec()));
    while first.probes.is_none()
        && tried.len() < ATTEMPTS
        && let Some(beginning) = beginnings.pop()
    {
        for client in &clients {
            let order = [&beginning[..], std::slice::from_ref(client)].concat();
            if !tried.insert(order.clone()) {
                continue;
            }
            let run = runner.run(&order);
            if run.probes.is_some() {
                return run;
            }
            let path = done(&run);
            if path.starts_with(&order) {
                beginnings.extend((order.len()..=path.len()).map(|length| path[..length].to_vec()));
            }
        }
    }
    first
}

/// Serial orders that were run, as a graph of beginnings.
#[derive(Debug)]
pub struct Orders<R> {
    runner: R,
    nodes: Vec<Node>,
    /// Beginnings by what was done in them and what state they leave.
    known: BTreeMap<(Done, u64), NodeId>,
}

/// Beginnings that go on alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(usize);

impl NodeId {
    const START: Self = Self(0);
}

/// How many operations each client has done.
type Done = BTreeMap<Client, usize>;

#[derive(Debug, Default)]
struct Node {
    done: Done,
    next: BTreeMap<Client, Next>,
    /// What the probes saw if nothing more is done.
    probes: Option<Option<Vec<Operation>>>,
}

#[derive(Debug)]
enum Next {
    Done(Box<Operation>, NodeId),
    /// It does not come to its end here.
    Never,
}

impl<R: RunSerially> Orders<R> {
    pub fn new(runner: R) -> Self {
        Self {
            runner,
            nodes: vec![Node::default()],
            known: BTreeMap::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn runner(&self) -> &R {
        &self.runner
    }

    /// What a client's next operation does after some others; none if it does not come to its end there.
    pub fn step(&mut self, before: &[Client], client: &Client) -> Option<&Operation> {
        let is_known = self
            .node(before)
            .is_some_and(|node| self.nodes[node.0].next.contains_key(client));
        if !is_known {
            let order: Vec<Client> = before.iter().chain([client]).cloned().collect();
            let run = self.runner.run(&order);
            self.learn(&order, run);
        }
        let node = self.node(before)?;
        match self.nodes[node.0].next.get(client)? {
            Next::Done(operation, _) => Some(operation),
            Next::Never => None,
        }
    }

    /// What the probes see after a whole order; none if the run does not come to its end.
    pub fn probes(&mut self, order: &[Client]) -> Option<&[Operation]> {
        let node = self.node(order)?;
        if self.nodes[node.0].probes.is_none() {
            let run = self.runner.run(order);
            self.learn(order, run);
        }
        self.nodes[node.0].probes.as_ref()?.as_deref()
    }

    /// What a beginning that was run comes to: the same for all that go on alike.
    pub(crate) fn node(&self, order: &[Client]) -> Option<NodeId> {
        let mut node = NodeId::START;
        for client in order {
            match self.nodes[node.0].next.get(client)? {
                Next::Done(_, next) => node = *next,
                Next::Never => return None,
            }
        }
        Some(node)
    }

    fn learn(&mut self, wanted: &[Client], run: SerialRun) {
        let mut node = NodeId::START;
        let count = run.operations.len();
        let mut states = run.states.into_iter();
        for operation in run.operations {
            let state = states.next().flatten();
            node = match self.nodes[node.0].next.get(&operation.client) {
                Some(Next::Done(_, next)) => *next,
                Some(Next::Never) => return,
                None => self.add(node, operation, state),
            };
        }
        let node = &mut self.nodes[node.0];
        match wanted.get(count) {
            Some(client) => drop(node.next.insert(Arc::clone(client), Next::Never)),
            None => drop(node.probes.get_or_insert(run.probes)),
        }
    }

    /// Goes on from a node with an operation that leaves this state.
    fn add(&mut self, from: NodeId, operation: Operation, state: Option<u64>) -> NodeId {
        let mut done = self.nodes[from.0].done.clone();
        let client = Arc::clone(&operation.client);
        *done.entry(Arc::clone(&client)).or_default() += 1;
        let new = NodeId(self.nodes.len());
        let to = match state {
            Some(state) => *self.known.entry((done.clone(), state)).or_insert(new),
            None => new,
        };
        if to == new {
            self.nodes.push(Node {
                done,
                ..Node::default()
            });
        }
        let next = Next::Done(Box::new(operation), to);
        self.nodes[from.0].next.insert(client, next);
        to
    }
}

/// A world on a thread of its own, in which serial orders are run.
#[derive(Debug)]
pub struct SerialWorld {
    orders: Sender<Vec<Client>>,
    runs: Receiver<SerialRun>,
}

/// Where a thread that runs serial orders takes its questions from and puts its answers.
pub(crate) struct Desk<E> {
    started: Sender<Result<SerialRun, E>>,
    wanted: Receiver<Vec<Client>>,
    told: Sender<SerialRun>,
}

impl<E> Desk<E> {
    /// It cannot begin.
    pub(crate) fn refuse(self, why: E) {
        drop(self.started.send(Err(why)));
    }

    /// Tells of the first order and answers as long as questions can come.
    pub(crate) fn serve(self, first: SerialRun, mut run: impl FnMut(&[Client]) -> SerialRun) {
        if self.started.send(Ok(first)).is_err() {
            return;
        }
        for order in self.wanted {
            if self.told.send(run(&order)).is_err() {
                return;
            }
        }
    }
}

impl SerialWorld {
    /// Brings a program to where its schedules begin, and runs its first serial order.
    ///
    /// # Errors
    /// If the program does not come there.
    pub fn start(about: Arc<About>, leave: Leave) -> Result<(Self, SerialRun), StartFailure> {
        let thread = Self::on_thread(move |desk| {
            let mut session = match Session::start(&about, leave) {
                Ok(session) => session,
                Err(failure) => return desk.refuse(failure),
            };
            let (first, steps) = run(&mut session, &[], FIRST_STEPS);
            if session.leave().is_over() {
                return desk.refuse(StartFailure::Cancelled);
            }
            // Explanations ask when the time for exploring is up.
            session.set_leave(Leave::endless());
            desk.serve(first, |order| run(&mut session, order, steps_max(steps)).0);
        });
        thread.map_err(StartFailure::NoThread)?
    }

    /// Lets a thread of its own run serial orders.
    pub(crate) fn on_thread<E: Send + 'static>(
        serve: impl FnOnce(Desk<E>) + Send + 'static,
    ) -> io::Result<Result<(Self, SerialRun), E>> {
        let (orders, wanted) = channel::<Vec<Client>>();
        let (told, runs) = channel();
        let (started, start) = channel();
        let desk = Desk {
            started,
            wanted,
            told,
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn(move || serve(desk))?;
        let first = start.recv();
        let first = first.expect("the thread starts a world or says why not");
        Ok(first.map(|first| (Self { orders, runs }, first)))
    }
}

/// How long a serial order may take if the first one took so many steps.
pub(crate) fn steps_max(first: u64) -> u64 {
    first.saturating_mul(STEPS_FACTOR).max(STEPS_MIN)
}

impl RunSerially for SerialWorld {
    fn run(&mut self, beginning: &[Client]) -> SerialRun {
        let asked = self.orders.send(beginning.to_vec());
        asked.expect("the thread lives as long as somebody can ask");
        self.runs.recv().expect("each question is answered")
    }
}

/// Runs an order that begins so; gives its steps, too.
fn run(session: &mut Session, beginning: &[Client], steps_max: u64) -> (SerialRun, u64) {
    let turns = Turns::in_order(beginning);
    let mut scheduler = OneAtATime::new(&turns);
    // In the second half of its steps a run is fair to everybody, and no longer serial.
    let limits = Limits {
        patience: PATIENCE,
        steps: steps_max.saturating_mul(2),
    };
    let mut marks: Vec<Marked> = Vec::new();
    let mut inside = Inside::default();
    let mut states: Vec<Option<u64>> = Vec::new();
    let drive = session.play(&mut scheduler, limits, &mut |world, events| {
        let mut turns = turns.borrow_mut();
        for event in events {
            turns.event(event);
            inside.event(event);
            marks.extend(Marked::of(world, event));
        }
        if states.len() < turns.over() && turns.is_between(world.contexts()) {
            states.resize(turns.over(), None);
            if let Some(last) = states.last_mut() {
                *last = inside.digest(world);
            }
        }
    });
    let status = match drive.end {
        End::Exited { status } => Some(status),
        _ => None,
    };
    let in_order = turns.borrow().over();
    let run = SerialRun {
        states,
        ..serial_run(History::of(&marks), in_order, status)
    };
    (run, drive.steps)
}

/// What a run in a given order came to, so many operations of which were in that order.
pub(crate) fn serial_run(mut history: History, in_order: usize, status: Option<i32>) -> SerialRun {
    // Operations are told when their clients come to them; that is not yet their turn.
    history
        .operations
        .sort_by_key(|operation| operation.ended.unwrap_or(usize::MAX));
    let mut over = 0;
    for operation in &mut history.operations {
        if operation.effort.is_shared {
            operation.effort.from = operation.effort.from.max(over);
        }
        over = operation.effort.to;
    }
    let is_whole = in_order == history.operations.len();
    let clients = history.clients();
    history.operations.truncate(in_order);
    SerialRun {
        operations: history.operations,
        clients,
        states: Vec::new(),
        probes: (is_whole && status.is_some_and(|status| status & 0x7F == 0))
            .then_some(history.probes),
        early_probes: history.early_probes,
        nested: history.nested,
        status,
    }
}
