//! What serial orders give: each is run once, in a world of its own, and remembered with all its beginnings.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use raddle_campaign::{Leave, Stage as _};
use raddle_explore::{About, Marked, Session, StartFailure};
use raddle_sched::End;
use raddle_trace::Limits;

use crate::history::{Client, History, Operation};
use crate::one_at_a_time::{OneAtATime, Turns};

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
    /// What the probes saw; none if the run did not come to its end as it should.
    pub probes: Option<Vec<Operation>>,
    /// Marks that stand in the wrong place.
    pub early_probes: u64,
    pub nested: u64,
    /// How it ended.
    pub status: Option<i32>,
}

/// Somebody who runs serial orders.
pub trait RunSerially {
    /// Runs an order that begins so; how it goes on is up to the runner.
    fn run(&mut self, beginning: &[Client]) -> SerialRun;
}

/// Serial orders that were run, as a tree of beginnings.
#[derive(Debug)]
pub struct Orders<R> {
    runner: R,
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    next: BTreeMap<Client, Next>,
    /// What the probes saw if nothing more is done.
    probes: Option<Option<Vec<Operation>>>,
}

#[derive(Debug)]
enum Next {
    Done(Box<(Operation, Node)>),
    /// It does not come to its end here.
    Never,
}

impl<R: RunSerially> Orders<R> {
    pub fn new(runner: R) -> Self {
        Self {
            runner,
            root: Node::default(),
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
            .is_some_and(|node| node.next.contains_key(client));
        if !is_known {
            let order: Vec<Client> = before.iter().chain([client]).cloned().collect();
            let run = self.runner.run(&order);
            self.learn(&order, run);
        }
        match self.node(before)?.next.get(client)? {
            Next::Done(done) => Some(&done.0),
            Next::Never => None,
        }
    }

    /// What the probes see after a whole order; none if the run does not come to its end.
    pub fn probes(&mut self, order: &[Client]) -> Option<&[Operation]> {
        if self.node(order)?.probes.is_none() {
            let run = self.runner.run(order);
            self.learn(order, run);
        }
        self.node(order)?.probes.as_ref()?.as_deref()
    }

    fn node(&self, order: &[Client]) -> Option<&Node> {
        let mut node = &self.root;
        for client in order {
            match node.next.get(client)? {
                Next::Done(done) => node = &done.1,
                Next::Never => return None,
            }
        }
        Some(node)
    }

    fn learn(&mut self, wanted: &[Client], run: SerialRun) {
        let mut node = &mut self.root;
        let done = run.operations.len();
        for operation in run.operations {
            let next = node.next.entry(Arc::clone(&operation.client));
            let next = next.or_insert_with(|| Next::Done(Box::new((operation, Node::default()))));
            match next {
                Next::Done(done) => node = &mut done.1,
                Next::Never => return,
            }
        }
        match wanted.get(done) {
            Some(client) => drop(node.next.insert(Arc::clone(client), Next::Never)),
            None => drop(node.probes.get_or_insert(run.probes)),
        }
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
    let drive = session.play(&mut scheduler, limits, &mut |world, events| {
        let mut turns = turns.borrow_mut();
        for event in events {
            turns.event(event);
            marks.extend(Marked::of(world, event));
        }
    });
    let status = match drive.end {
        End::Exited { status } => Some(status),
        _ => None,
    };
    let in_order = turns.borrow().over();
    let run = serial_run(History::of(&marks), in_order, status);
    (run, drive.steps)
}

/// What a run in a given order came to, so many operations of which were in that order.
pub(crate) fn serial_run(mut history: History, in_order: usize, status: Option<i32>) -> SerialRun {
    // Operations are told when somebody comes to them; that is not yet their turn.
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
    history.operations.truncate(in_order);
    SerialRun {
        operations: history.operations,
        probes: (is_whole && status.is_some_and(|status| status & 0x7F == 0))
            .then_some(history.probes),
        early_probes: history.early_probes,
        nested: history.nested,
        status,
    }
}
