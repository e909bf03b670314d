//! Lock sets at the entry of each function, one per distinct set that a caller brings.
//!
//! This is the paper's function-and-lockset cache (Fig. 4): a function is entered again only with a
//! set it has not seen. Each context remembers who brought it, which gives a call path to show.

use std::collections::VecDeque;

use super::calls::Calls;
use super::flow::Flows;
use super::locks::LockSet;
use super::operations::class_key;
use super::program::{EventId, FnId, Program};
use crate::front::lex::{at, index};
use crate::idioms::Start;

/// One way to come into a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    /// Locks held on all ways of this kind, on some.
    pub(crate) must: LockSet,
    pub(crate) may: LockSet,
    pub(crate) start: Start,
    /// The function where the thread starts, if it is the same for all ways of this kind.
    pub(crate) root: Option<FnId>,
    /// The call, and the caller's context; none for a root.
    pub(crate) from: Option<(EventId, u32)>,
}

/// All contexts.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    all: Vec<Vec<Context>>,
    /// Functions whose contexts were too many to keep.
    pub(crate) overflowed: u64,
    /// Functions entered, cache hits not counted.
    pub(crate) visits: u64,
    pub(crate) hits: u64,
}

/// Contexts kept per function.
const CONTEXTS_MAX: usize = 12;
/// Entries at which an uncached analysis stops.
const VISITS_MAX: u64 = 20_000_000;

impl Contexts {
    /// No path analysis: functions without any context.
    pub(crate) fn none(program: &Program<'_>) -> Self {
        Self {
            all: vec![Vec::new(); program.functions.len()],
            ..Self::default()
        }
    }

    /// Explores from all roots. Without `cache`, as an experiment, contexts are entered again.
    pub(crate) fn new(
        program: &Program<'_>,
        calls: &Calls,
        flows: &mut Flows,
        cache: bool,
    ) -> Self {
        let mut contexts = Self {
            all: vec![Vec::new(); program.functions.len()],
            ..Self::default()
        };
        let irq = interrupt_sets(program, flows);
        let tables = table_sets(program, flows);
        let mut queue = VecDeque::new();
        for id in program.function_ids() {
            let Some(root) = calls.roots[at(id.0)] else {
                continue;
            };
            let held = match root.start {
                Start::HardIrq => irq.0,
                Start::SoftIrq => irq.1,
                _ => root
                    .table
                    .map_or(LockSet::EMPTY, |table| tables[usize::from(table)]),
            };
            contexts.all[at(id.0)].push(Context {
                must: held,
                may: held,
                start: root.start,
                root: Some(id),
                from: None,
            });
            queue.push_back((id, 0_u32));
        }
        while let Some((id, number)) = queue.pop_front() {
            contexts.visits += 1;
            if contexts.visits > VISITS_MAX {
                break;
            }
            contexts.enter(calls, flows, id, number, cache, &mut queue);
        }
        contexts
    }

    fn enter(
        &mut self,
        calls: &Calls,
        flows: &mut Flows,
        id: FnId,
        number: u32,
        cache: bool,
        queue: &mut VecDeque<(FnId, u32)>,
    ) {
        let context = self.all[at(id.0)][at(number)];
        for call in calls.of(id) {
            let state = flows.at(id, call.event);
            let locks = &mut flows.locks;
            let kept = locks.difference(context.must, state.freed_may);
            let must = locks.union(kept, state.must);
            let kept = locks.difference(context.may, state.freed_must);
            let may = locks.union(kept, state.may);
            let list = &mut self.all[at(call.callee.0)];
            let known = list
                .iter_mut()
                .find(|known| known.must == must && group(known.start) == group(context.start));
            if let Some(known) = known {
                self.hits += 1;
                known.may = locks.union(known.may, may);
                let several = known.root.is_some() && known.root != context.root;
                if several {
                    known.root = None;
                    let number = list.iter().position(|other| {
                        other.must == must && group(other.start) == group(context.start)
                    });
                    queue.extend(number.map(|number| (call.callee, index(number))));
                }
                if cache || list.len() > CONTEXTS_MAX {
                    continue;
                }
            } else if list.len() >= CONTEXTS_MAX {
                self.overflowed += u64::from(list.len() == CONTEXTS_MAX);
                continue;
            }
            let from = EventId {
                function: id,
                event: call.event,
            };
            list.push(Context {
                must,
                may,
                start: context.start,
                root: context.root,
                from: Some((from, number)),
            });
            queue.push_back((call.callee, index(list.len() - 1)));
        }
    }

    pub(crate) fn of(&self, id: FnId) -> &[Context] {
        &self.all[at(id.0)]
    }

    /// Whether every way into the function starts with the initialisation of a module or device.
    pub(crate) fn is_init_only(&self, id: FnId) -> bool {
        let contexts = self.of(id);
        !contexts.is_empty() && contexts.iter().all(|context| context.start == Start::Init)
    }

    /// The calls from a root to the function, outermost first.
    pub(crate) fn path(&self, id: FnId, number: u32) -> Vec<EventId> {
        let mut path = Vec::new();
        let mut here = self.of(id).get(at(number)).copied();
        while let Some(context) = here
            && let Some((from, outer)) = context.from
        {
            path.push(from);
            if path.len() > 64 {
                break;
            }
            here = self.of(from.function).get(at(outer)).copied();
        }
        path.reverse();
        path
    }
}

/// Contexts of one group are not told apart.
fn group(start: Start) -> u8 {
    match start {
        Start::Init => 1,
        Start::Unknown => 2,
        _ => 0,
    }
}

/// What is held where functions of each operation table are called.
fn table_sets(program: &Program<'_>, flows: &mut Flows) -> Vec<LockSet> {
    let families = &program.table.families;
    let mut sets = Vec::new();
    for start in &program.table.table_starts {
        let mut held = Vec::new();
        for (number, family) in families.iter().enumerate() {
            let first = families.iter().position(|other| other.name == family.name);
            if first != Some(number) || !start.holds.contains(&family.name) {
                continue;
            }
            let Ok(number) = u16::try_from(number) else {
                continue;
            };
            let key = if family.has_object {
                super::keys::Key::UNKNOWN
            } else {
                class_key(program, number)
            };
            held.push(flows.locks.lock(program, key, number));
        }
        sets.push(flows.locks.set(held));
    }
    sets
}

/// What is held in an interrupt handler and in a soft interrupt.
fn interrupt_sets(program: &Program<'_>, flows: &mut Flows) -> (LockSet, LockSet) {
    let mut one = |name: &str| {
        let family = program
            .table
            .families
            .iter()
            .position(|family| family.name == name);
        let Some(family) = family.and_then(|family| u16::try_from(family).ok()) else {
            return LockSet::EMPTY;
        };
        let lock = flows
            .locks
            .lock(program, class_key(program, family), family);
        flows.locks.set(vec![lock])
    };
    (one("irq-off"), one("preempt-off"))
}
