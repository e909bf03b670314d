//! Finds the instances of patterns: statements by syntax, then threads, locks and aliases by the analyses.

mod armed;
mod awaits;
pub(crate) mod bound;
mod claims;
mod conditions;
mod endings;
mod equal;
mod facts;
mod guards;
mod habits;
mod handlers;
mod irq_off;
mod join;
mod lives;
mod locked;
mod paths;
mod spellings;
mod suspects;
mod syntax;
mod wakeups;
mod why;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analyse::accesses::Accesses;
use crate::analyse::calls::Calls;
use crate::analyse::contexts::{Context, Contexts};
use crate::analyse::flow::Flows;
use crate::analyse::keys::{Key, View};
use crate::analyse::locks::{Lock, LockSet};
use crate::analyse::program::{EventId, FnId, Program};
use crate::analyse::sleep::Sleepers;
use crate::analyse::types::Def;
use crate::front::event::{BY_CALL, Kind, TOP, UPDATE};
use crate::front::lex::at;
use crate::idioms::Start;

pub(crate) use bound::{Bound, Partial};
pub(crate) use join::Instance;

/// Which analyses take part; less than all is for measuring what each brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Match all sub-patterns, not only the first.
    pub all_subs: bool,
    /// Path and lock analysis.
    pub locks: bool,
    /// Alias analysis by type and field, and freshness; without it names are compared.
    pub alias: bool,
    /// The function-and-lockset cache.
    pub cache: bool,
}

impl Level {
    /// Everything.
    pub const FULL: Level = Level {
        all_subs: true,
        locks: true,
        alias: true,
        cache: true,
    };
}

/// What was computed once.
type Memo<K, V> = RefCell<FxHashMap<K, V>>;
type Lists<K, V> = Memo<K, Rc<Vec<V>>>;

/// The program with all analyses.
#[derive(Debug)]
pub(crate) struct Engine<'p> {
    pub(crate) program: &'p Program<'p>,
    pub(crate) calls: Calls,
    pub(crate) flows: Flows,
    pub(crate) contexts: Contexts,
    pub(crate) accesses: Accesses,
    pub(crate) sleepers: Sleepers,
    pub(crate) level: Level,
    guards: RefCell<FxHashMap<(Key, Option<u32>), guards::Guard>>,
    /// The folder of each unit, by number.
    folders: Vec<u32>,
    sets: RefCell<FxHashMap<EventId, Held>>,
    handlers: OnceCell<handlers::Handlers>,
    caller_locks: RefCell<FxHashMap<FnId, Option<Lock>>>,
    mostly_held: RefCell<FxHashMap<FnId, bool>>,
    awaited: Lists<awaits::Awaited, FnId>,
    left_armed: Lists<FnId, EventId>,
    freed_later: OnceCell<Vec<(Def, FnId)>>,
    released_only: OnceCell<Vec<(Lock, FnId)>>,
    released_anywhere: OnceCell<Vec<(Lock, FnId)>>,
    rcu_pointers: Memo<Key, bool>,
    odd_callers: OnceCell<Vec<EventId>>,
    few_callers: OnceCell<Vec<EventId>>,
    unmet_calls: OnceCell<Vec<EventId>>,
    outside_sections: OnceCell<Vec<EventId>>,
    irq_counts: OnceCell<FxHashMap<Key, [u32; 3]>>,
    usuals: Lists<(Key, Option<u32>), suspects::Usual>,
    needs: Lists<FnId, suspects::Need>,
    waiters: OnceCell<wakeups::Waiters>,
}

/// Locks at an event over all contexts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    /// Held in every context on all ways.
    pub(crate) always: Vec<Lock>,
    /// Held in some context on some way.
    pub(crate) ever: Vec<Lock>,
}

impl<'p> Engine<'p> {
    pub(crate) fn new(program: &'p Program<'p>, level: Level) -> Self {
        let calls = Calls::new(program);
        let mut flows = Flows::new(program, &calls);
        let contexts = if level.locks {
            Contexts::new(program, &calls, &mut flows, level.cache)
        } else {
            Contexts::none(program)
        };
        let sleepers = Sleepers::new(program, &calls, &flows);
        let accesses = Accesses::new(program);
        Self {
            program,
            calls,
            flows,
            contexts,
            accesses,
            sleepers,
            level,
            guards: RefCell::default(),
            folders: folders(program),
            sets: RefCell::default(),
            handlers: OnceCell::new(),
            caller_locks: RefCell::default(),
            mostly_held: RefCell::default(),
            awaited: RefCell::default(),
            left_armed: RefCell::default(),
            freed_later: OnceCell::new(),
            released_only: OnceCell::new(),
            released_anywhere: OnceCell::new(),
            rcu_pointers: RefCell::default(),
            odd_callers: OnceCell::new(),
            few_callers: OnceCell::new(),
            unmet_calls: OnceCell::new(),
            outside_sections: OnceCell::new(),
            irq_counts: OnceCell::new(),
            usuals: RefCell::default(),
            needs: RefCell::default(),
            waiters: OnceCell::new(),
        }
    }

    /// Must and may locks at an event in one context.
    fn locks_in(&self, place: EventId, must: LockSet, may: LockSet) -> (Vec<Lock>, Vec<Lock>) {
        let state = self.flows.at(place.function, place.event);
        let locks = &self.flows.locks;
        let kept = |from: LockSet, gone: LockSet| {
            let gone = locks.members(gone);
            locks
                .members(from)
                .iter()
                .copied()
                .filter(|held| !gone.iter().any(|other| other.is_same_object(*held)))
                .collect::<Vec<_>>()
        };
        let mut always = kept(must, state.freed_may);
        always.extend_from_slice(locks.members(state.must));
        let mut ever = kept(may, state.freed_must);
        ever.extend_from_slice(locks.members(state.may));
        let asserted = self.asserted(place.function);
        always.extend_from_slice(&asserted);
        ever.extend_from_slice(&asserted);
        (always, ever)
    }

    /// Locks that the function asserts to be held by its caller.
    fn asserted(&self, id: FnId) -> Vec<Lock> {
        let wanted = self.program.table.class("lock_asserts").unwrap_or(0);
        if self.calls.classes[at(id.0)] & wanted == 0 {
            return Vec::new();
        }
        let view = View::new(self.program, id);
        let mut locks = Vec::new();
        for event in self.program.events(id) {
            if event.kind != Kind::Call {
                continue;
            }
            if let Some((name, args)) = view.unit.named_call(event.expr)
                && self.program.idiom(view.name(name)).classes & wanted != 0
            {
                let key = match args.first() {
                    Some(arg) => view.key(*arg),
                    None => self.named_family("rtnl"),
                };
                locks.extend_from_slice(self.flows.locks.at_key(key));
            }
        }
        // A lock taken here is held from there on only.
        locks.retain(|lock| !self.flows.acquires(id, *lock));
        locks
    }

    fn named_family(&self, name: &str) -> Key {
        let families = &self.program.table.families;
        let family = families.iter().position(|family| family.name == name);
        family
            .and_then(|family| u16::try_from(family).ok())
            .map_or(Key::UNKNOWN, |family| {
                crate::analyse::operations::class_key(self.program, family)
            })
    }

    /// Locks at an event over all contexts.
    pub(crate) fn held(&self, place: EventId) -> Held {
        if let Some(held) = self.sets.borrow().get(&place) {
            return held.clone();
        }
        let mut result: Option<Held> = None;
        for context in self.contexts.of(place.function) {
            if context.start == Start::Init && result.is_some() {
                continue;
            }
            let (always, ever) = self.locks_in(place, context.must, context.may);
            result = Some(match result {
                None => Held { always, ever },
                Some(mut held) => {
                    held.always.retain(|lock| always.contains(lock));
                    held.ever.extend(ever);
                    held
                }
            });
        }
        let mut held = result.unwrap_or_else(|| {
            let (always, ever) = self.locks_in(place, LockSet::EMPTY, LockSet::EMPTY);
            Held { always, ever }
        });
        held.ever.sort_unstable();
        held.ever.dedup();
        self.sets.borrow_mut().insert(place, held.clone());
        held
    }

    /// A pair of contexts in which no lock keeps the two places from running at the same time.
    pub(crate) fn concurrent(&self, one: EventId, other: EventId) -> Option<(u32, u32)> {
        let (ones, others) = (
            self.contexts.of(one.function),
            self.contexts.of(other.function),
        );
        for (i, a) in ones.iter().enumerate() {
            if a.start == Start::Init && ones.len() > 1 {
                continue;
            }
            let (_, may_a) = self.locks_in(one, a.must, a.may);
            for (j, b) in others.iter().enumerate() {
                if b.start == Start::Init
                    || (a.start == Start::Init && one.function == other.function)
                {
                    continue;
                }
                if is_one_thread(a, b) {
                    continue;
                }
                let (_, may_b) = self.locks_in(other, b.must, b.may);
                if !self.exclude(&may_a, &may_b) {
                    return Some((crate::front::lex::index(i), crate::front::lex::index(j)));
                }
            }
        }
        None
    }

    fn exclude(&self, one: &[Lock], other: &[Lock]) -> bool {
        let locks = &self.flows.locks;
        one.iter().any(|a| {
            other
                .iter()
                .any(|b| locks.exclude_each_other(self.program, *a, *b))
        })
    }

    /// The one atomic update that the small function called at `place` makes on a field of a parameter, and
    /// the number of the parameter.
    pub(crate) fn wrapped_access(&self, place: EventId) -> Option<(EventId, usize)> {
        const EVENTS_MAX: usize = 6;
        let call = self
            .calls
            .callees_at(place.function, place.event)
            .find(|call| !call.indirect)?;
        let events = self.program.events(call.callee);
        if events.len() > EVENTS_MAX {
            return None;
        }
        let view = View::new(self.program, call.callee);
        let mut updates = events.iter().enumerate().filter(|(_, event)| {
            event.kind == Kind::Write && event.flags & UPDATE != 0 && event.flags & BY_CALL != 0
        });
        let (number, update) = updates.next()?;
        if updates.next().is_some() || update.parent != TOP {
            return None;
        }
        let param = view.param(view.root(update.expr)?)?;
        let inner = EventId {
            function: call.callee,
            event: crate::front::lex::index(number),
        };
        Some((inner, param))
    }

    /// The idiom classes of the function called at `place`.
    pub(crate) fn classes_at(&self, place: EventId) -> u128 {
        let (unit, _) = self.program.function(place.function);
        let event = self.program.event(place);
        match unit.named_call(event.expr) {
            Some((name, _)) => {
                let name = crate::analyse::program::Name(unit.global(name));
                self.program.idiom(name).classes
            }
            None => 0,
        }
    }

    /// Whether `to` is `from` or called from it, within a few calls.
    pub(crate) fn called_from(&self, from: FnId) -> Vec<FnId> {
        let mut all = vec![from];
        let mut start = 0;
        for _ in 0..3 {
            let end = all.len();
            for position in start..end {
                for call in self.calls.of(all[position]) {
                    if !call.indirect && !all.contains(&call.callee) && all.len() < 96 {
                        all.push(call.callee);
                    }
                }
            }
            start = end;
        }
        all
    }

    pub(crate) fn is_wanted(&self, id: FnId) -> bool {
        let unit = self.program.unit_of(id);
        self.program.sources[at(unit)].wanted
    }
}

/// Numbers the folders, in the order of the units.
fn folders(program: &Program<'_>) -> Vec<u32> {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let units = 0..crate::front::lex::index(program.units.len());
    units
        .map(|unit| {
            let next = crate::front::lex::index(numbers.len());
            *numbers.entry(program.directory(unit)).or_insert(next)
        })
        .collect()
}

/// A work item, timer or interrupt handler does not run at the same time as itself.
fn is_one_thread(one: &Context, other: &Context) -> bool {
    one.root.is_some()
        && one.root == other.root
        && matches!(one.start, Start::Work | Start::SoftIrq | Start::HardIrq)
}
