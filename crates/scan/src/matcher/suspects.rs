//! Weaker evidence for a missing lock or section: what some others hold, and what callees need.
//!
//! The patterns that ask for it are shown on request, or when a change brings a new finding.

use std::rc::Rc;

use super::Engine;
use super::conditions::Ask;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::locks::{Lock, LockSet};
use crate::analyse::program::{EventId, FnId};
use crate::front::ast::E;
use crate::front::event::{ATOMIC, BY_CALL, Kind};
use crate::front::lex::{at, index};
use crate::idioms::Start;
use crate::pdl::ast::Predicate;

/// The lock that is held most often at the accesses of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usual {
    lock: Lock,
    under: u32,
    all: u32,
    writes_under: u32,
    writes_all: u32,
    /// Functions that use the object under the lock.
    functions: u32,
}

/// What a function leaves to its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// [`Lock::NONE`] stands for an RCU section.
    lock: Lock,
}

/// Locks that may be the usual one of an object.
const CANDIDATES_MAX: usize = 3;
/// Accesses looked at per object.
const SAMPLE_MAX: usize = 300;
/// Writers looked at for one suspect.
const WRITERS_MAX: usize = 60;
/// Needs kept per function, and calls through which they travel.
const NEEDS_MAX: usize = 6;
const NEEDS_DEPTH: u32 = 3;
/// Functions that must agree, and their share in percent: of all accesses, or of the writes.
const FUNCTIONS_MIN: u32 = 2;
const ALL_PERCENT: u32 = 40;
const WRITES_PERCENT: u32 = 60;
/// Nothing but a lock makes a list safe, and a lock beside a field is there for it: one other function that takes
/// it is enough.
const CLEAR_FUNCTIONS_MIN: u32 = 1;
/// The share of callers that must hold what a function leaves to them.
const CALLERS_PERCENT: u32 = 34;

impl Usual {
    /// Whether the others agree enough to suspect one access that is not under the lock.
    fn speaks(self, is_write: bool, functions_min: u32) -> bool {
        let others = self.all.saturating_sub(1).max(self.under);
        let writes = self
            .writes_all
            .saturating_sub(u32::from(is_write))
            .max(self.writes_under);
        self.functions >= functions_min
            && self.writes_under >= 1
            && (self.under * 100 >= others * ALL_PERCENT
                || (self.writes_under >= 2 && self.writes_under * 100 >= writes * WRITES_PERCENT))
    }
}

impl Ask<'_, '_, '_> {
    pub(super) fn suspect(&self, predicate: Predicate) -> Option<bool> {
        let place = self.place(0)?;
        let engine = self.engine;
        let is_listed = |places: &[EventId]| places.binary_search(&place).is_ok();
        Some(match predicate {
            Predicate::LacksUsual => engine.lacks_usual(place, self.key(1)),
            Predicate::UnmetCall => is_listed(engine.unmet_calls()),
            Predicate::FewCaller => is_listed(engine.few_callers()),
            Predicate::OutsideSection => is_listed(engine.outside_sections()),
            Predicate::UsuallyIrqOff => engine.is_usually_irq_off(place),
            _ => false,
        })
    }
}

impl Engine<'_> {
    /// The locks that are held most often, best first.
    fn usual(&self, key: Key, place: EventId) -> Rc<Vec<Usual>> {
        let unit = self.program.unit_of(place.function);
        let folder = self.is_core(key).then(|| self.folders[at(unit)]);
        if let Some(known) = self.usuals.borrow().get(&(key, folder)) {
            return known.clone();
        }
        let found = Rc::new(self.count_usual(key, folder));
        self.usuals
            .borrow_mut()
            .insert((key, folder), found.clone());
        found
    }

    /// The usual lock of an object in words.
    pub(crate) fn usual_text(&self, key: Key, place: EventId) -> String {
        match self.usual(key, place).first() {
            Some(usual) => format!(
                "usually under {} ({} of {} accesses, {} of {} writes, {} functions)",
                self.show_lock(usual.lock),
                usual.under,
                usual.all,
                usual.writes_under,
                usual.writes_all,
                usual.functions
            ),
            None => "no usual lock".to_owned(),
        }
    }

    fn count_usual(&self, key: Key, folder: Option<u32>) -> Vec<Usual> {
        let mut counts: Vec<(Usual, FnId)> = Vec::new();
        let (mut all, mut writes_all) = (0, 0);
        let is_near = |place: &&EventId| {
            let unit = self.program.unit_of(place.function);
            folder.is_none_or(|folder| self.folders[at(unit)] == folder)
        };
        let writes = self.accesses.writes(key).iter().filter(is_near);
        let reads = self.accesses.reads(key).iter().filter(is_near);
        let writes = writes.take(SAMPLE_MAX).map(|place| (*place, 1));
        let reads = reads.take(SAMPLE_MAX).map(|place| (*place, 0));
        for (place, write) in writes.chain(reads) {
            if !self.counts_for_guard(place) {
                continue;
            }
            all += 1;
            writes_all += write;
            for lock in self.held_mostly(place) {
                let known = counts
                    .iter_mut()
                    .find(|(known, _)| known.lock.is_same_object(lock));
                match known {
                    Some((usual, last)) => {
                        usual.under += 1;
                        usual.writes_under += write;
                        usual.functions += u32::from(*last != place.function);
                        *last = place.function;
                    }
                    None => {
                        let usual = Usual {
                            lock,
                            under: 1,
                            all: 0,
                            writes_under: write,
                            writes_all: 0,
                            functions: 1,
                        };
                        counts.push((usual, place.function));
                    }
                }
            }
        }
        // The order of those that are held equally often is that of the first access.
        counts.sort_by_key(|(usual, _)| std::cmp::Reverse((usual.under, usual.writes_under)));
        counts.truncate(CANDIDATES_MAX);
        counts
            .into_iter()
            .map(|(usual, _)| Usual {
                all,
                writes_all,
                ..usual
            })
            .collect()
    }

    /// Locks of objects that are held at the place in at least half of the contexts: one caller that forgets a
    /// lock does not hide what the others do.
    fn held_mostly(&self, place: EventId) -> Vec<Lock> {
        let mut counts: Vec<(Lock, usize)> = Vec::new();
        let contexts = self.contexts.of(place.function);
        let later = contexts
            .iter()
            .filter(|context| context.start != Start::Init);
        let sets: Vec<LockSet> = later.map(|context| context.must).collect();
        let sets = if sets.is_empty() {
            vec![LockSet::EMPTY]
        } else {
            sets
        };
        for must in &sets {
            let (always, _) = self.locks_in(place, *must, *must);
            for (number, lock) in always.iter().enumerate() {
                if always[..number]
                    .iter()
                    .any(|other| other.is_same_object(*lock))
                {
                    continue;
                }
                let family = self.program.table.family(self.flows.locks.family(*lock));
                if family.rcu || family.context || self.flows.locks.is_vague(*lock) {
                    continue;
                }
                match counts
                    .iter_mut()
                    .find(|(known, _)| known.is_same_object(*lock))
                {
                    Some((_, count)) => *count += 1,
                    None => counts.push((*lock, 1)),
                }
            }
        }
        counts.retain(|(_, count)| count * 2 >= sets.len());
        counts.into_iter().map(|(lock, _)| lock).collect()
    }

    fn lacks_usual(&self, place: EventId, key: Key) -> bool {
        let is_write = self.program.event(place).kind == Kind::Write;
        let is_list = self.is_list(key);
        self.usual(key, place).iter().any(|usual| {
            let functions_min = if is_list || self.is_of_same_struct(usual.lock, key) {
                CLEAR_FUNCTIONS_MIN
            } else {
                FUNCTIONS_MIN
            };
            usual.speaks(is_write, functions_min)
                && !self.may_hold(place, usual.lock)
                && !self.is_fresh_at(place)
                && self.has_locked_writer(key, usual.lock, place)
        })
    }

    /// Whether the lock and the object are fields of one struct.
    fn is_of_same_struct(&self, lock: Lock, key: Key) -> bool {
        match (self.flows.locks.key(lock).parts(), key.parts()) {
            (KeyParts::Field(one, _), KeyParts::Field(other, _)) => one == other,
            _ => false,
        }
    }

    /// Whether the object is the head of a list.
    fn is_list(&self, key: Key) -> bool {
        let types = &self.program.types;
        let ty = match key.parts() {
            KeyParts::Field(def, name) => types.field(def, name),
            KeyParts::Global(name, unit) => {
                let found = types.global(name, unit.unwrap_or_default());
                found.map(|(ty, _)| ty)
            }
            _ => None,
        };
        ty.is_some_and(|ty| {
            let text = self.program.names.bytes(ty.base);
            matches!(
                text,
                b"list_head" | b"hlist_head" | b"sk_buff_head" | b"rb_root"
            )
        })
    }

    fn may_hold(&self, place: EventId, lock: Lock) -> bool {
        let locks = &self.flows.locks;
        self.held(place).ever.iter().any(|other| {
            other.is_same_object(lock)
                || locks.is_vague(*other)
                || locks.exclude_each_other(self.program, *other, lock)
        })
    }

    /// Whether another function writes the object under the lock and can run at the same time.
    fn has_locked_writer(&self, key: Key, lock: Lock, place: EventId) -> bool {
        let folder = |id: FnId| self.folders[at(self.program.unit_of(id))];
        let writes = self.accesses.writes(key).iter();
        let others = writes.filter(|write| {
            write.function != place.function && folder(write.function) == folder(place.function)
        });
        others.take(WRITERS_MAX).any(|write| {
            self.held_mostly(*write)
                .iter()
                .any(|held| held.is_same_object(lock))
                && self.concurrent(place, *write).is_some()
        })
    }

    /// What a function leaves to its callers: locks of the data it uses, or a section.
    fn needs(&self, id: FnId, depth: u32) -> Rc<Vec<Need>> {
        if let Some(known) = self.needs.borrow().get(&id) {
            return known.clone();
        }
        if depth > NEEDS_DEPTH {
            return Rc::default();
        }
        // Recursion ends here.
        self.needs.borrow_mut().insert(id, Rc::default());
        let found = Rc::new(self.find_needs(id, depth));
        self.needs.borrow_mut().insert(id, found.clone());
        found
    }

    fn find_needs(&self, id: FnId, depth: u32) -> Vec<Need> {
        let mut found = Vec::new();
        let brought = self.brought(id);
        if brought.is_empty() || self.program.function(id).1.from_macro {
            return found;
        }
        let in_rcu = |lock: &Lock| {
            self.program
                .table
                .family(self.flows.locks.family(*lock))
                .rcu
        };
        let is_brought = |lock: Lock| {
            if lock == Lock::NONE {
                brought.iter().any(in_rcu)
            } else {
                brought.iter().any(|other| other.is_same_object(lock))
            }
        };
        let add = |lock: Lock, event: u32, found: &mut Vec<Need>| {
            let own = self.flows.locks.members(self.flows.at(id, event).may);
            let is_own = if lock == Lock::NONE {
                !own.is_empty()
            } else {
                own.iter().any(|other| other.is_same_object(lock))
            };
            let need = Need { lock };
            if !is_own && is_brought(lock) && found.len() < NEEDS_MAX && !found.contains(&need) {
                found.push(need);
            }
        };
        for (event, kind) in self.program.events(id).iter().enumerate() {
            let place = EventId {
                function: id,
                event: index(event),
            };
            if !matches!(kind.kind, Kind::Read | Kind::Write) {
                continue;
            }
            if self.reads_under_rcu(place) {
                add(Lock::NONE, place.event, &mut found);
            }
            let key = self.accesses.key(place);
            if !key.is_shared() || kind.flags & ATOMIC != 0 || self.is_fresh_at(place) {
                continue;
            }
            for usual in self.usual(key, place).iter() {
                if is_brought(usual.lock) && usual.speaks(false, FUNCTIONS_MIN) {
                    add(usual.lock, place.event, &mut found);
                }
            }
        }
        for call in self.calls.of(id).iter().filter(|call| !call.indirect) {
            for need in self.needs(call.callee, depth + 1).iter() {
                add(need.lock, call.event, &mut found);
            }
        }
        found
    }

    /// Locks that some caller brings for certain.
    fn brought(&self, id: FnId) -> Vec<Lock> {
        let mut brought = Vec::new();
        for context in self.contexts.of(id) {
            brought.extend_from_slice(self.flows.locks.members(context.must));
        }
        brought.sort_unstable();
        brought.dedup();
        brought
    }

    /// Whether the read is one that is only right in an RCU section, or under the lock of the writers.
    fn reads_under_rcu(&self, place: EventId) -> bool {
        self.walks_by_rcu(place)
            || self
                .name_of_access(place)
                .is_some_and(|text| matches!(text, b"rcu_dereference" | b"rcu_dereference_sched"))
    }

    /// Whether the list read at `place` is walked by an RCU loop: the lock of its writers is not asked for.
    pub(super) fn walks_by_rcu(&self, place: EventId) -> bool {
        self.name_of_access(place)
            .is_some_and(|text| text.ends_with(b"_rcu") && self.program.table.is_loop(text))
    }

    /// The name of the call that makes a read.
    fn name_of_access(&self, place: EventId) -> Option<&[u8]> {
        let event = self.program.event(place);
        if event.kind != Kind::Read || event.flags & BY_CALL == 0 {
            return None;
        }
        let view = View::new(self.program, place.function);
        let (name, _) = view.unit.named_call(E(event.aux))?;
        Some(self.program.names.bytes(view.name(name)))
    }

    /// Calls without a lock that the callee needs and other callers hold, in order.
    pub(super) fn unmet_calls(&self) -> &[EventId] {
        self.unmet_calls.get_or_init(|| {
            let mut found = Vec::new();
            for callee in self.program.function_ids() {
                for need in self.needs(callee, 0).iter() {
                    if need.lock != Lock::NONE
                        && !self.flows.acquires(callee, need.lock)
                        && self.is_often_held(callee, need.lock)
                    {
                        let without = self.calls_to(callee);
                        found.extend(without.filter(|place| !self.may_hold(*place, need.lock)));
                    }
                }
            }
            found.retain(|place| self.can_be_suspect(*place));
            found.sort_unstable();
            found.dedup();
            found
        })
    }

    /// Whether a good part of the calls of the function is made under the lock.
    fn is_often_held(&self, callee: FnId, lock: Lock) -> bool {
        let (under, all) = self.count_held(callee, &[lock]);
        under >= 1 && under * 100 >= all * CALLERS_PERCENT
    }

    /// Reads of RCU pointers and calls of functions that make them, without section or lock, in order.
    pub(super) fn outside_sections(&self) -> &[EventId] {
        self.outside_sections.get_or_init(|| {
            let mut found = Vec::new();
            for id in self.program.function_ids() {
                if self.needs(id, 0).iter().any(|need| need.lock == Lock::NONE) {
                    found.extend(self.calls_to(id));
                }
                let events = 0..index(self.program.events(id).len());
                let places = events.map(|event| EventId {
                    function: id,
                    event,
                });
                found.extend(places.filter(|place| self.reads_under_rcu(*place)));
            }
            found.retain(|place| {
                self.held(*place).ever.is_empty()
                    && self.runs_freely(place.function)
                    && self.can_be_suspect(*place)
            });
            found.sort_unstable();
            found.dedup();
            found
        })
    }

    /// A thread, work item or entry runs the function, and no interrupt does.
    fn runs_freely(&self, id: FnId) -> bool {
        let contexts = self.contexts.of(id);
        !contexts.is_empty()
            && contexts.iter().all(|context| {
                matches!(
                    context.start,
                    Start::Thread | Start::Work | Start::Entry | Start::Init | Start::Unknown
                )
            })
            && contexts.iter().any(|context| context.start != Start::Init)
    }

    fn can_be_suspect(&self, place: EventId) -> bool {
        let name = self.program.function_name(place.function);
        !self.contexts.is_init_only(place.function)
            && !crate::results::is_construction(&name)
            && !self.is_fresh_call(place)
            && !self.program.function(place.function).1.from_macro
    }

    /// Direct calls of a function.
    fn calls_to(&self, callee: FnId) -> impl Iterator<Item = EventId> {
        let callers = &self.calls.callers[at(callee.0)];
        callers.iter().flat_map(move |caller| {
            let calls = self.calls.of(*caller).iter();
            calls
                .filter(move |call| call.callee == callee && !call.indirect)
                .map(|call| EventId {
                    function: *caller,
                    event: call.event,
                })
        })
    }
}
