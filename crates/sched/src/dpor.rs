//! Exhaustive search with dynamic partial-order reduction: every interleaving of a small program up to the order
//! of operations that do not concern each other.
//!
//! Source sets with sleep sets (Abdulla, Aronsson, Jonsson, Sagonas, "Optimal dynamic partial order reduction",
//! POPL 2014, algorithm 1), stateless: each run starts at the snapshot. A *transition* is what a context does
//! from one stop to the next; two transitions conflict if they touch the same object and one writes it.
//!
//! ```text
//!   run ──transitions──▶ races ──reversals──▶ backtrack sets of earlier nodes ──next plan──▶ run
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use raddle_trace::Path;
use raddle_world::ContextId;

use crate::operation::touch;
use crate::scheduler::{Scheduler, View};

/// The objects that a transition touched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    reads: BTreeSet<u64>,
    writes: BTreeSet<u64>,
}

impl Touched {
    pub fn read(&mut self, object: u64) {
        self.reads.insert(object);
    }

    pub fn write(&mut self, object: u64) {
        self.writes.insert(object);
    }

    fn conflicts(&self, other: &Self) -> bool {
        !self.writes.is_disjoint(&other.writes)
            || !self.writes.is_disjoint(&other.reads)
            || !self.reads.is_disjoint(&other.writes)
    }
}

/// One transition of a run.
#[derive(Debug, Clone)]
pub struct Transition {
    pub who: Path,
    /// Who could have been chosen.
    enabled: Vec<Path>,
    /// Who would only have repeated what was explored before.
    sleep: Vec<(Path, Touched)>,
    pub touched: Touched,
    /// Contexts that it created.
    pub created: Vec<Path>,
}

/// The transitions of a run, filled in by the scheduler and by the caller that sees the events.
#[derive(Debug, Default)]
pub struct RunLog {
    transitions: Vec<Transition>,
    /// From here on the run only repeated what was explored before.
    redundant_from: Option<usize>,
}

impl RunLog {
    /// The transition that is being made.
    pub fn current(&mut self) -> Option<&mut Transition> {
        self.transitions.last_mut()
    }
}

/// A log that scheduler and observer share.
pub type SharedLog = Rc<RefCell<RunLog>>;

/// A node of the tree of runs: a state, by the transitions that lead to it.
#[derive(Debug)]
struct Node {
    sleep: Vec<(Path, Touched)>,
    /// To be explored from here.
    backtrack: BTreeSet<Path>,
    /// Explored from here.
    done: Vec<(Path, Touched)>,
    chosen: Path,
}

/// The search.
#[derive(Debug, Default)]
pub struct Dpor {
    nodes: Vec<Node>,
    is_over: bool,
    runs: u64,
    redundant: u64,
    /// The share of the tree that has been seen, if all nodes have the branches known when they were left.
    explored: f64,
}

impl Dpor {
    /// Whether everything has been explored.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Interleavings explored, without those that turned out to repeat others.
    pub fn interleavings(&self) -> u64 {
        self.runs - self.redundant
    }

    /// How many interleavings there probably are (the weighted backtrack estimator of Kilby, Slaney,
    /// Thiébaux, Walsh, AAAI 2006).
    pub fn estimate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let runs = self.interleavings() as f64;
        if self.explored > 0.0 {
            (runs / self.explored).max(runs)
        } else {
            runs
        }
    }

    /// The scheduler of the next run and the log that the run has to fill.
    pub fn next_run(&self) -> (DporRun, SharedLog) {
        let log = SharedLog::default();
        let sleep = self.nodes.last().map_or_else(Vec::new, |node| {
            node.sleep.iter().chain(&node.done).cloned().collect()
        });
        let plan = self.nodes.iter().map(|node| node.chosen.clone()).collect();
        let run = DporRun {
            plan,
            sleep,
            depth: 0,
            log: Rc::clone(&log),
        };
        (run, log)
    }

    /// Takes a run into account and decides what comes next.
    pub fn note(&mut self, log: &RunLog) {
        let end = log.redundant_from.unwrap_or(log.transitions.len());
        let run = &log.transitions[..end];
        self.runs += 1;
        self.redundant += u64::from(log.redundant_from.is_some());
        for transition in &run[self.nodes.len().min(end)..] {
            self.nodes.push(Node {
                sleep: transition.sleep.clone(),
                backtrack: BTreeSet::from([transition.who.clone()]),
                done: Vec::new(),
                chosen: transition.who.clone(),
            });
        }
        for (node, who) in reversals(run, &self.nodes) {
            self.nodes[node].backtrack.insert(who);
        }
        if log.redundant_from.is_none() {
            self.explored += self.weight();
        }
        self.step_back(run);
    }

    /// The share of the tree that the present leaf stands for.
    fn weight(&self) -> f64 {
        let mut weight = 1.0;
        for node in &self.nodes {
            let branches = u32::try_from(node.backtrack.len()).unwrap_or(u32::MAX);
            weight /= f64::from(branches.max(1));
        }
        weight
    }

    /// Goes back to the last node where something is left to be explored.
    fn step_back(&mut self, run: &[Transition]) {
        while let Some(mut node) = self.nodes.pop() {
            let touched = run
                .get(self.nodes.len())
                .map(|transition| transition.touched.clone())
                .unwrap_or_default();
            let chosen = std::mem::take(&mut node.chosen);
            node.done.push((chosen, touched));
            let is_known = |who: &&Path| {
                let mut known = node.done.iter().chain(&node.sleep);
                !known.any(|(path, _)| path == *who)
            };
            if let Some(next) = node.backtrack.iter().find(is_known).cloned() {
                node.chosen = next;
                self.nodes.push(node);
                return;
            }
        }
        self.is_over = true;
    }
}

/// For each race of a run: the node before its first transition, and a context that must be tried there.
fn reversals(run: &[Transition], nodes: &[Node]) -> Vec<(usize, Path)> {
    let order = Order::of(run);
    let mut found = Vec::new();
    let mut added: BTreeMap<usize, BTreeSet<Path>> = BTreeMap::new();
    for (first, second) in &order.races {
        // What came after the first and does not need it, then the second's context.
        let rest = first + 1..*second;
        let mut sequence: Vec<usize> = rest
            .filter(|later| !order.happens_before(*first, *later))
            .collect();
        sequence.push(*second);
        let initials: Vec<&Path> = sequence
            .iter()
            .enumerate()
            .filter(|(number, at)| {
                let mut before = sequence[..*number].iter();
                !before.any(|earlier| order.happens_before(*earlier, **at))
            })
            .map(|(_, at)| &run[*at].who)
            .collect();
        let extra = added.entry(*first).or_default();
        let is_planned = initials
            .iter()
            .any(|who| nodes[*first].backtrack.contains(*who) || extra.contains(*who));
        if is_planned {
            continue;
        }
        let enabled = &run[*first].enabled;
        let racer = &run[*second].who;
        let chosen = initials
            .iter()
            .find(|who| **who == racer && enabled.contains(**who))
            .or_else(|| initials.iter().find(|who| enabled.contains(**who)));
        // If none of them could run there (a loop that was set aside), everybody is tried.
        let choices: Vec<Path> = match chosen {
            Some(who) => vec![(*who).clone()],
            None => enabled.clone(),
        };
        for who in choices {
            extra.insert(who.clone());
            found.push((*first, who));
        }
    }
    found
}

/// The happens-before order of a run: program order, creation, conflicts.
struct Order {
    /// For each transition: its context's number and its number in that context, from 1.
    places: Vec<(usize, u32)>,
    clocks: Vec<Vec<u32>>,
    races: Vec<(usize, usize)>,
}

impl Order {
    fn of(run: &[Transition]) -> Self {
        let mut numbers: BTreeMap<&Path, usize> = BTreeMap::new();
        for transition in run {
            let next = numbers.len();
            numbers.entry(&transition.who).or_insert(next);
        }
        let count = numbers.len();
        let mut order = Self {
            places: Vec::new(),
            clocks: Vec::new(),
            races: Vec::new(),
        };
        let mut contexts = vec![vec![0; count]; count];
        let mut objects: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, transition) in run.iter().enumerate() {
            let me = numbers[&transition.who];
            let mut clock = contexts[me].clone();
            order.races_of(at, transition, run, &objects, &mut clock, me);
            clock[me] += 1;
            order.places.push((me, clock[me]));
            order.clocks.push(clock.clone());
            for object in transition.touched.reads.union(&transition.touched.writes) {
                objects.entry(*object).or_default().push(at);
            }
            for child in &transition.created {
                if let Some(child) = numbers.get(child) {
                    join(&mut contexts[*child], &clock);
                }
            }
            contexts[me] = clock;
        }
        order
    }

    /// Joins the clocks of conflicting earlier transitions; those that nothing else orders are races.
    fn races_of(
        &mut self,
        at: usize,
        transition: &Transition,
        run: &[Transition],
        objects: &BTreeMap<u64, Vec<usize>>,
        clock: &mut [u32],
        me: usize,
    ) {
        let touched = &transition.touched;
        let candidates: BTreeSet<usize> = touched
            .reads
            .union(&touched.writes)
            .filter_map(|object| objects.get(object))
            .flatten()
            .copied()
            .collect();
        for earlier in candidates.into_iter().rev() {
            let (context, number) = self.places[earlier];
            if context == me || clock[context] >= number {
                continue;
            }
            if run[earlier].touched.conflicts(touched) {
                self.races.push((earlier, at));
                join(clock, &self.clocks[earlier]);
            }
        }
    }

    fn happens_before(&self, first: usize, second: usize) -> bool {
        let (context, number) = self.places[first];
        first != second && self.clocks[second][context] >= number
    }
}

fn join(mine: &mut [u32], theirs: &[u32]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(*theirs);
    }
}

/// The scheduler of one run.
#[derive(Debug)]
pub struct DporRun {
    plan: Vec<Path>,
    /// From the last node of the plan on.
    sleep: Vec<(Path, Touched)>,
    depth: usize,
    log: SharedLog,
}

impl DporRun {
    /// Those that sleep on: what they would do has nothing to do with the last transition.
    fn wake(&mut self) {
        let log = self.log.borrow();
        let Some(last) = log.transitions.last() else {
            return;
        };
        self.sleep
            .retain(|(who, touched)| *who != last.who && !touched.conflicts(&last.touched));
    }

    fn choose(&mut self, view: &View<'_>) -> ContextId {
        let path = |id: ContextId| &*view.contexts.get(id).path;
        if let Some(planned) = self.plan.get(self.depth) {
            let mut runnable = view.runnable.iter().copied();
            let found = runnable.find(|id| path(*id) == &planned[..]);
            debug_assert!(found.is_some(), "a run repeats its beginning");
            return found.unwrap_or(view.default);
        }
        let is_asleep = |id: &ContextId| self.sleep.iter().any(|(who, _)| who[..] == *path(*id));
        let default = view.sensible_default();
        let start = view.runnable.partition_point(|id| *id < default);
        let mut order = view.runnable[start..].iter().chain(&view.runnable[..start]);
        if let Some(awake) = order.find(|id| !is_asleep(id)) {
            return *awake;
        }
        let mut log = self.log.borrow_mut();
        let length = log.transitions.len();
        log.redundant_from.get_or_insert(length);
        default
    }
}

impl Scheduler for DporRun {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        if self.depth >= self.plan.len() {
            self.wake();
        }
        let chosen = self.choose(view);
        let path = |id: &ContextId| view.contexts.get(*id).path.to_vec();
        let mut touched = Touched::default();
        if let Some(next) = view.next_of(chosen).and_then(touch)
            && next.object != u64::MAX
        {
            if next.reads {
                touched.read(next.object);
            }
            if next.writes {
                touched.write(next.object);
            }
        }
        let is_new = self.depth >= self.plan.len();
        self.log.borrow_mut().transitions.push(Transition {
            who: path(&chosen),
            enabled: view.runnable.iter().map(path).collect(),
            sleep: if is_new {
                self.sleep.clone()
            } else {
                Vec::new()
            },
            touched,
            created: Vec::new(),
        });
        self.depth += 1;
        chosen
    }
}

#[cfg(test)]
mod tests;
