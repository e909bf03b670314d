//! Handlers by what starts them: work items, timers, tasklets and interrupts; and which locks they need.

use rustc_hash::FxHashMap;

use super::Engine;
use super::conditions::Ask;
use super::join::function_name;
use crate::analyse::calls::handler_of;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::locks::Lock;
use crate::analyse::program::{EventId, FnId, Name};
use crate::analyse::types::Def;
use crate::front::ast::E;
use crate::front::event::Kind;
use crate::front::lex::{at, index};
use crate::idioms::{LockAction, Start};

/// Callers of one function that are looked at.
pub(super) const CALLERS_MAX: usize = 200;

/// What is known of one work item, timer or the like, over the whole program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Item {
    pub(crate) handlers: Vec<FnId>,
    /// Functions that set it up.
    pub(crate) makers: Vec<FnId>,
    /// Calls that start it.
    pub(crate) armed: Vec<EventId>,
    /// Functions that cancel, flush or delete it.
    pub(crate) ended: Vec<FnId>,
}

impl Item {
    /// Whether it is ended elsewhere than where it was made: what its maker undoes after an error is not the end of
    /// its object.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
            .iter()
            .any(|function| !self.makers.contains(function))
    }
}

/// Whether a function of this name stops things for a while only.
fn is_for_a_while(name: &str) -> bool {
    let name = name.to_lowercase();
    ["suspend", "freeze", "resume"]
        .iter()
        .any(|part| name.contains(part))
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    pub(super) items: FxHashMap<Key, Item>,
    /// Items embedded in a struct.
    pub(super) by_struct: FxHashMap<Def, Vec<Key>>,
    /// Items by the function that sets them up.
    pub(super) by_maker: FxHashMap<FnId, Vec<Key>>,
    /// Functions that set up items, by file.
    pub(super) makers: FxHashMap<u32, Vec<FnId>>,
    /// Interrupt handlers by the file that requests the interrupt.
    pub(super) interrupts: FxHashMap<u32, Vec<FnId>>,
    /// What is called at the end of transfers, by the file that fills them in.
    pub(super) transfers: FxHashMap<u32, Vec<FnId>>,
    /// Items by the queue that they are put on.
    pub(super) queues: FxHashMap<Key, Vec<Key>>,
}

impl Handlers {
    fn new(engine: &Engine<'_>) -> Self {
        let mut all = Self::default();
        let table = engine.program.table;
        let arms = table.class("arms").unwrap_or(0);
        let cancels = table.class("cancels").unwrap_or(0);
        let mut names: Vec<Name> = engine.calls.by_name.keys().copied().collect();
        names.sort_unstable();
        for name in names {
            let idiom = engine.program.idiom(name);
            if idiom.starts.is_empty() && idiom.classes & (arms | cancels) == 0 {
                continue;
            }
            for (caller, event) in &engine.calls.by_name[&name] {
                let place = EventId {
                    function: *caller,
                    event: *event,
                };
                all.add_starts(engine, place);
                if idiom.classes & arms != 0
                    && let Some(key) = engine.item_key(place)
                {
                    all.items.entry(key).or_default().armed.push(place);
                    all.add_to_queue(engine, place, key);
                }
                if idiom.classes & cancels != 0
                    && !is_for_a_while(&engine.program.function_name(place.function))
                    && let Some(item) = all.item_at(engine, place)
                {
                    item.ended.push(place.function);
                }
            }
        }
        all.add_declared(engine);
        all.add_assigned(engine);
        all.index(engine);
        all
    }

    fn add_starts(&mut self, engine: &Engine<'_>, place: EventId) {
        let view = View::new(engine.program, place.function);
        let Some((name, args)) = view.unit.named_call(engine.program.event(place).expr) else {
            return;
        };
        let fills = engine.program.table.class("fills_transfer").unwrap_or(0);
        for start in &engine.program.idiom(view.name(name)).starts {
            let Some(function) = args.get(start.function) else {
                continue;
            };
            let handlers = engine.functions_given(place, *function);
            if start.context == Start::HardIrq {
                let known = self.interrupts.entry(view.unit_number).or_default();
                known.extend(handlers.iter().copied());
            }
            if engine.classes_at(place) & fills != 0 {
                let known = self.transfers.entry(view.unit_number).or_default();
                known.extend(handlers.iter().copied());
            }
            // What a thread is told is not what it is stopped by: that is the result.
            let key = if start.context == Start::Thread {
                engine.key_of_result(&view, place)
            } else {
                let object = start.argument.and_then(|number| args.get(number));
                object.map(|object| view.key(*object))
            };
            if let Some(key) = key
                && key.is_shared()
            {
                let item = self.items.entry(key).or_default();
                item.handlers.extend(handlers);
                item.makers.push(place.function);
            }
        }
    }

    /// `DECLARE_WORK(item, handler)` at file level.
    fn add_declared(&mut self, engine: &Engine<'_>) {
        for (number, unit) in engine.program.units.iter().enumerate() {
            let number = index(number);
            for invocation in &unit.declared.invocations {
                let name = Name(unit.global(invocation.name));
                let [item, function, ..] = invocation.args.as_slice() else {
                    continue;
                };
                if engine.program.idiom(name).starts.is_empty() {
                    continue;
                }
                let item = Name(unit.global(*item));
                let home = engine.program.types.global(item, number);
                let key = Key::new(KeyParts::Global(item, home.and_then(|(_, home)| home)));
                let found = engine.program.resolve(Name(unit.global(*function)), number);
                self.items.entry(key).or_default().handlers.extend(found);
            }
        }
    }

    /// `x->timer.function = handler` inside a function.
    fn add_assigned(&mut self, engine: &Engine<'_>) {
        for id in engine.program.function_ids() {
            let view = View::new(engine.program, id);
            for event in engine.program.events(id) {
                if event.kind != Kind::Write || event.aux == 0 {
                    continue;
                }
                let Some(handler) = function_name(&view, E(event.aux)) else {
                    continue;
                };
                if view.is_local(handler) {
                    continue;
                }
                let program = engine.program;
                let handler = program.resolve(view.name(handler), view.unit_number);
                let object = handler_of(&view, event.expr).map(|(object, _)| view.key(object));
                if let (Some(handler), Some(key)) = (handler, object)
                    && key.is_shared()
                {
                    let item = self.items.entry(key).or_default();
                    item.handlers.push(handler);
                    item.makers.push(id);
                }
            }
        }
    }

    /// `queue_work(queue, item)`: a call that waits for the queue waits for the item.
    fn add_to_queue(&mut self, engine: &Engine<'_>, place: EventId, item: Key) {
        let view = View::new(engine.program, place.function);
        let Some((_, args)) = view.unit.named_call(engine.program.event(place).expr) else {
            return;
        };
        let before = args.iter().map(|arg| view.key(*arg));
        let before = before.take_while(|key| *key != item);
        for queue in before.filter(|key| key.is_shared()) {
            let known = self.queues.entry(queue).or_default();
            if !known.contains(&item) {
                known.push(item);
            }
        }
    }

    fn item_at(&mut self, engine: &Engine<'_>, place: EventId) -> Option<&mut Item> {
        let key = engine.item_key(place)?;
        Some(self.items.entry(key).or_default())
    }

    fn index(&mut self, engine: &Engine<'_>) {
        let mut keys: Vec<Key> = self.items.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            if let KeyParts::Field(def, _) = key.parts() {
                self.by_struct.entry(def).or_default().push(key);
            }
            for maker in &self.items[&key].makers {
                self.by_maker.entry(*maker).or_default().push(key);
            }
        }
        let mut makers: Vec<FnId> = self.by_maker.keys().copied().collect();
        makers.sort_unstable();
        for maker in makers {
            let unit = engine.program.unit_of(maker);
            self.makers.entry(unit).or_default().push(maker);
        }
    }
}

impl Engine<'_> {
    pub(crate) fn handlers(&self) -> &Handlers {
        self.handlers.get_or_init(|| Handlers::new(self))
    }

    /// Whether the handler of a work item or timer is known.
    pub(super) fn has_handlers(&self, key: Key) -> bool {
        let item = self.handlers().items.get(&key);
        item.is_some_and(|item| !item.handlers.is_empty())
    }

    /// The key of the work item or timer that a call is about: the first argument that is one.
    pub(super) fn item_key(&self, place: EventId) -> Option<Key> {
        let view = View::new(self.program, place.function);
        let (_, args) = view.unit.named_call(self.program.event(place).expr)?;
        let types = self.program.table.class("item_types").unwrap_or(0);
        args.iter().take(3).find_map(|arg| {
            let ty = self.program.types.canonical(view.ty(*arg));
            let key = view.key(*arg);
            (key.is_shared() && self.program.idiom(ty.base).classes & types != 0).then_some(key)
        })
    }

    /// The key of what the result of the call is assigned to.
    fn key_of_result(&self, view: &View<'_>, place: EventId) -> Option<Key> {
        /// Events between a call and the store of its result.
        const BETWEEN_MAX: usize = 3;
        let call = self.program.event(place).expr;
        let events = &self.program.events(place.function)[at(place.event)..];
        let later = events.iter().skip(1).take(BETWEEN_MAX);
        let mut stores = later.filter(|event| {
            event.kind == Kind::Write
                && event.aux != 0
                && view.unit.exprs.peel(E(event.aux)) == call
        });
        stores.next().map(|event| view.key(event.expr))
    }

    /// Calls of a class in a function.
    pub(super) fn calls_of_class(&self, id: FnId, class: &str) -> impl Iterator<Item = EventId> {
        let wanted = self.program.table.class(class).unwrap_or(0);
        let is_there = self.calls.classes[at(id.0)] & wanted != 0;
        let count = if is_there {
            index(self.program.events(id).len())
        } else {
            0
        };
        let places = (0..count).map(move |event| EventId {
            function: id,
            event,
        });
        places.filter(move |place| {
            self.program.event(*place).kind == Kind::Call && self.classes_at(*place) & wanted != 0
        })
    }

    /// Whether a held lock may be the wanted one: by object, or as the lock of the whole object.
    fn may_be_same(&self, held: Lock, wanted: Lock) -> bool {
        let locks = &self.flows.locks;
        let (one, other) = (locks.key(held), locks.key(wanted));
        let is_whole = matches!(
            (one.parts(), other.parts()),
            (KeyParts::Field(a, Name(0)), KeyParts::Field(b, _)) if a == b
        );
        held.is_same_object(wanted) || locks.is_vague(held) || one == other || is_whole
    }

    /// Whether most calls of the function are seen to hold one of the locks: else the lock is taken where
    /// the analysis does not look.
    fn is_mostly_held(&self, callee: FnId, wanted: &[Lock]) -> bool {
        if let Some(known) = self.mostly_held.borrow().get(&callee) {
            return *known;
        }
        let (under, all) = self.count_held(callee, wanted);
        let found = under >= 1 && under * 2 >= all;
        self.mostly_held.borrow_mut().insert(callee, found);
        found
    }

    /// Calls of the function that are seen to hold one of the locks, and all of them.
    pub(super) fn count_held(&self, callee: FnId, wanted: &[Lock]) -> (u32, u32) {
        let (mut all, mut under) = (0_u32, 0_u32);
        for caller in self.calls.callers[at(callee.0)].iter().take(CALLERS_MAX) {
            for call in self.calls.of(*caller) {
                if call.callee != callee || call.indirect {
                    continue;
                }
                let held = self.held(EventId {
                    function: *caller,
                    event: call.event,
                });
                all += 1;
                under += u32::from(
                    held.always
                        .iter()
                        .any(|lock| wanted.iter().any(|wanted| self.may_be_same(*lock, *wanted))),
                );
            }
        }
        (under, all)
    }

    /// Whether the plain lock operation at `place` takes back what a plain release gave away for a moment, in a
    /// function that took the lock by an operation that switches interrupts off: they are still off.
    fn is_taken_back(&self, place: EventId) -> bool {
        let class = |name: &str| self.program.table.class(name).unwrap_or(0);
        let (takes, gives) = (class("plain_spin_lock"), class("plain_spin_unlock"));
        let lock = |event: u32| self.flows.operations_at(place.function, event).next();
        let Some(wanted) = lock(place.event) else {
            return false;
        };
        let is_plain = |event: u32, class: u128| {
            let here = EventId {
                function: place.function,
                event,
            };
            self.classes_at(here) & class != 0
        };
        let of_lock = (0..place.event).rev().filter(|event| {
            lock(*event).is_some_and(|other| other.lock.is_same_object(wanted.lock))
        });
        let mut before = of_lock.peekable();
        before.peek().is_some_and(|event| is_plain(*event, gives))
            && before.any(|event| {
                let is_taken = lock(event).is_some_and(|own| own.action == LockAction::Acquire);
                is_taken && !is_plain(event, takes)
            })
    }

    /// Locks that an assertion at `place`, a call of a lock assertion, speaks of.
    pub(super) fn asserted_at(&self, place: EventId) -> Vec<Lock> {
        let view = View::new(self.program, place.function);
        let Some((_, args)) = view.unit.named_call(self.program.event(place).expr) else {
            return Vec::new();
        };
        let Some(arg) = args.first() else {
            return Vec::new();
        };
        self.flows.locks.at_key(view.key(*arg)).to_vec()
    }
}

impl Ask<'_, '_, '_> {
    /// Whether the lock asserted at the second statement is in no way held at the first.
    pub(super) fn unheld(&self) -> Option<bool> {
        let (place, assertion) = (self.place(0)?, self.place(1)?);
        let engine = self.engine;
        let asserted = engine.asserted_at(assertion);
        let locks = &engine.flows.locks;
        if asserted.is_empty() || asserted.iter().any(|lock| locks.is_vague(*lock)) {
            return Some(false);
        }
        // Taken inside the callee first, or on some way only: nothing is known.
        if asserted
            .iter()
            .any(|lock| engine.flows.acquires(assertion.function, *lock))
        {
            return Some(false);
        }
        let event = engine.program.event(assertion);
        if event.parent != crate::front::event::TOP {
            return Some(false);
        }
        let held = engine.held(place).ever;
        Some(
            !held.iter().any(|lock| {
                asserted
                    .iter()
                    .any(|wanted| engine.may_be_same(*lock, *wanted))
            }) && engine.is_mostly_held(assertion.function, &asserted),
        )
    }

    /// Whether the lock is taken at the statement with interrupts on, by a function that no interrupt runs.
    pub(super) fn interruptible(&self) -> Option<bool> {
        let place = self.place(0)?;
        let engine = self.engine;
        let view = View::new(engine.program, place.function);
        let (name, _) = view.unit.named_call(engine.program.event(place).expr)?;
        let plain = engine.program.table.class("plain_spin_lock").unwrap_or(0);
        if engine.program.idiom(view.name(name)).classes & plain == 0 {
            return Some(false);
        }
        if engine.is_taken_back(place) {
            return Some(false);
        }
        let own = engine.flows.at(place.function, place.event);
        let spins = |set| {
            engine.flows.locks.members(set).iter().any(|lock| {
                let family = engine.flows.locks.family(*lock);
                !engine.program.table.family(family).sleeps
            })
        };
        let contexts = engine.contexts.of(place.function);
        Some(
            !spins(own.may)
                && !contexts.is_empty()
                && contexts.iter().all(|context| {
                    !spins(context.may)
                        && matches!(
                            context.start,
                            Start::Thread | Start::Work | Start::Entry | Start::Init
                        )
                })
                && contexts.iter().any(|context| context.start != Start::Init),
        )
    }

    /// Whether an interrupt handler or timer of the same folder runs the statement.
    pub(super) fn in_interrupt(&self) -> Option<bool> {
        let place = self.place(0)?;
        let program = self.engine.program;
        let folder = |id| program.directory(program.unit_of(id));
        let contexts = self.engine.contexts.of(place.function);
        Some(contexts.iter().any(|context| {
            matches!(context.start, Start::HardIrq | Start::SoftIrq)
                && context.root.is_some_and(|root| {
                    folder(root) == folder(place.function)
                        && self.engine.calls.roots[at(root.0)].is_some_and(|root| {
                            matches!(root.start, Start::HardIrq | Start::SoftIrq)
                        })
                })
        }))
    }

    /// Whether the function is what a driver's table names for removal.
    pub(super) fn removes(&self) -> Option<bool> {
        let id = self.function(0)?;
        let root = self.engine.calls.roots[at(id.0)];
        let name = self.engine.program.function_name(id).to_lowercase();
        let is_removal = ["remove", "disconnect", "detach", "exit", "unbind"]
            .iter()
            .any(|part| name.contains(part));
        Some(is_removal && root.is_some_and(|root| root.start == Start::Init))
    }
}
