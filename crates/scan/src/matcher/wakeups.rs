//! Who waits for what: the conditions of `wait_event()` calls, and the changes that should wake their queue.

use rustc_hash::FxHashMap;

use super::Engine;
use super::conditions::Ask;
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::{Key, View};
use crate::analyse::program::{EventId, FnId};
use crate::front::ast::{E, Expr};
use crate::front::event::{Kind, TOP};
use crate::front::lex::{at, op};

/// Changes of one object that are looked at.
const WRITES_MAX: usize = 60;
/// Other changes that must all be followed by a wake-up.
const OTHERS_MIN: usize = 2;
/// Events between a wake-up and the change that it announces.
const NEAR: u32 = 12;
/// How deep conditions are followed.
const DEPTH_MAX: u32 = 8;

/// One object in the condition of a sleeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Awaited {
    queue: Key,
    /// The sleeper goes on once the object is zero; nothing if the condition does not say.
    is_zero: Option<bool>,
    folder: u32,
    /// The sleeper tests under a lock: who changes and wakes under one is not too early.
    is_locked: bool,
}

/// What sleepers wait for, by object.
pub(crate) type Waiters = FxHashMap<Key, Vec<Awaited>>;

impl Ask<'_, '_, '_> {
    /// Whether the queue is woken at the first statement before the change at the second that its sleepers
    /// wait for.
    pub(super) fn wakes_too_early(&self) -> Option<bool> {
        let (woken, change) = (self.place(0)?, self.place(1)?);
        let is_near = woken.function == change.function
            && (woken.event..woken.event + NEAR).contains(&change.event);
        if !is_near {
            return Some(false);
        }
        let engine = self.engine;
        let cfg = Cfg::new(engine.program.events(woken.function));
        let queue = engine.woken_queue(woken);
        let mut awaited = engine.awaited_by(change);
        Some(
            cfg.reaches(woken.event, change.event)
                && awaited.any(|awaited| {
                    Some(awaited.queue) == queue
                        && !(awaited.is_locked && engine.is_one_section(woken, change))
                })
                && !engine.is_woken_after(change, queue)
                && !engine.is_woken_change_before(woken, change),
        )
    }

    /// Whether all other changes of what is changed at the statement are followed by a wake-up, and this one
    /// is not.
    pub(super) fn unannounced(&self) -> Option<bool> {
        let change = self.place(0)?;
        let engine = self.engine;
        if engine.contexts.is_init_only(change.function) || engine.is_fresh_at(change) {
            return Some(false);
        }
        let Some(awaited) = engine.awaited_by(change).next() else {
            return Some(false);
        };
        let queue = Some(awaited.queue);
        if engine.wakes_near(change, queue) {
            return Some(false);
        }
        let key = engine.accesses.key(change);
        let others = engine.accesses.writes(key).iter().filter(|other| {
            other.function != change.function && engine.awaited_by(**other).next().is_some()
        });
        let others: Vec<bool> = others
            .take(WRITES_MAX)
            .map(|other| engine.wakes_near(*other, queue))
            .collect();
        Some(others.len() >= OTHERS_MIN && others.iter().all(|wakes| *wakes))
    }
}

impl Engine<'_> {
    /// Whether one lock is held at both places.
    fn is_one_section(&self, one: EventId, other: EventId) -> bool {
        let held = self.held(other).always;
        let mut own = self.held(one).always.into_iter();
        own.any(|lock| held.iter().any(|other| other.is_same_object(lock)))
    }

    fn waiters(&self) -> &Waiters {
        self.waiters.get_or_init(|| self.find_waiters())
    }

    fn find_waiters(&self) -> Waiters {
        let mut found = Waiters::default();
        let waits = self.program.table.class("cond_wait").unwrap_or(0);
        let mut names: Vec<_> = self.calls.by_name.keys().copied().collect();
        names.sort_unstable();
        for name in names {
            let is_locked = self.program.idiom(name).classes & waits != 0;
            if !is_locked && !self.program.names.bytes(name).starts_with(b"wait_event") {
                continue;
            }
            for (function, event) in &self.calls.by_name[&name] {
                let place = EventId {
                    function: *function,
                    event: *event,
                };
                self.add_waiter(place, is_locked, &mut found);
            }
        }
        found
    }

    /// One sleeper: the condition is an argument, or that of the loop around a wait for a condition variable.
    fn add_waiter(&self, place: EventId, is_locked: bool, found: &mut Waiters) {
        let view = View::new(self.program, place.function);
        let event = self.program.event(place);
        let Some((_, [queue, second, ..])) = view.unit.named_call(event.expr) else {
            return;
        };
        let queue = view.key(*queue);
        let condition = if is_locked {
            self.condition_of_loop(place)
        } else {
            Some((*second, Some(false)))
        };
        let (true, Some((condition, is_zero))) = (queue.is_shared(), condition) else {
            return;
        };
        let mut objects = Vec::new();
        awaited_objects(self, &view, condition, is_zero, &mut objects, 0);
        let folder = self.folders[at(view.unit_number)];
        for (key, is_zero) in objects {
            let known = found.entry(key).or_default();
            let awaited = Awaited {
                queue,
                is_zero,
                folder,
                is_locked,
            };
            if !known.contains(&awaited) {
                known.push(awaited);
            }
        }
    }

    /// The condition of the loop around a wait: the sleeper goes on once it is false.
    fn condition_of_loop(&self, place: EventId) -> Option<(E, Option<bool>)> {
        let events = self.program.events(place.function);
        let mut parent = events[at(place.event)].parent;
        while parent != TOP {
            let head = events[at(parent)];
            if head.kind == Kind::Loop {
                return (head.expr != E::NONE).then_some((head.expr, Some(true)));
            }
            parent = head.parent;
        }
        None
    }

    /// Sleepers of the same folder that may go on because of the change at `place`.
    fn awaited_by(&self, place: EventId) -> impl Iterator<Item = Awaited> {
        let event = self.program.event(place);
        let view = View::new(self.program, place.function);
        let folder = self.folders[at(view.unit_number)];
        let all = self.waiters().get(&self.accesses.key(place));
        let is_zero = (event.kind == Kind::Write && event.aux != 0)
            .then(|| self.constant(&view, E(event.aux)))
            .flatten();
        let all = all.map_or(&[][..], Vec::as_slice).iter().copied();
        all.filter(move |awaited| {
            let fits = match (awaited.is_zero, is_zero) {
                (Some(wanted), Some(given)) => wanted == given,
                _ => true,
            };
            awaited.folder == folder && fits
        })
    }

    /// Whether a value is zero for certain, or not zero for certain.
    fn constant(&self, view: &View<'_>, value: E) -> Option<bool> {
        if self.is_nothing(view, value) {
            return Some(true);
        }
        match view.expr(view.unit.exprs.peel(value)) {
            Expr::Number(_) => Some(false),
            Expr::Name(name) if self.program.names.bytes(view.name(name)) == b"true" => Some(false),
            _ => None,
        }
    }

    /// The queue that the call at `place` wakes.
    fn woken_queue(&self, place: EventId) -> Option<Key> {
        let view = View::new(self.program, place.function);
        let (_, args) = view.unit.named_call(self.program.event(place).expr)?;
        let key = view.key(*args.first()?);
        key.is_shared().then_some(key)
    }

    fn wakes_in(&self, id: FnId, queue: Option<Key>, from: u32) -> bool {
        self.calls_of_class(id, "wakes")
            .any(|place| place.event > from && self.woken_queue(place) == queue)
    }

    /// Whether the queue is woken behind the change, by the function or what it calls there.
    fn is_woken_after(&self, change: EventId, queue: Option<Key>) -> bool {
        let wakes = self.program.table.class("wakes").unwrap_or(0);
        let by_callee = self.calls.of(change.function).iter().any(|call| {
            call.event > change.event
                && self
                    .called_from(call.callee)
                    .iter()
                    .any(|id| self.calls.classes[at(id.0)] & wakes != 0)
        });
        by_callee || self.wakes_in(change.function, queue, change.event)
    }

    /// Whether a change that sleepers of the same queue wait for stands before the wake-up: it is what is announced.
    fn is_woken_change_before(&self, woken: EventId, change: EventId) -> bool {
        let queue = self.woken_queue(woken);
        (woken.event.saturating_sub(NEAR)..woken.event).any(|event| {
            let place = EventId {
                function: woken.function,
                event,
            };
            self.program.event(place).kind == Kind::Write
                && self.accesses.key(place) != self.accesses.key(change)
                && self
                    .awaited_by(place)
                    .any(|awaited| Some(awaited.queue) == queue)
        })
    }

    /// Whether the function of the change, its callees or a caller wake anything after it.
    fn wakes_near(&self, change: EventId, queue: Option<Key>) -> bool {
        let wakes = self.program.table.class("wakes").unwrap_or(0);
        let has_wake = |id: FnId| {
            let called = self.called_from(id);
            let mut called = called.iter();
            called.any(|id| self.calls.classes[at(id.0)] & wakes != 0)
        };
        self.wakes_in(change.function, queue, change.event)
            || self
                .calls
                .of(change.function)
                .iter()
                .any(|call| call.event > change.event && has_wake(call.callee))
            || self.calls.callers[at(change.function.0)]
                .iter()
                .take(WRITES_MAX)
                .any(|caller| self.calls.classes[at(caller.0)] & wakes != 0)
    }
}

/// The objects of a sleeper's condition, and whether it goes on once they are zero.
fn awaited_objects(
    engine: &Engine<'_>,
    view: &View<'_>,
    condition: E,
    is_zero: Option<bool>,
    out: &mut Vec<(Key, Option<bool>)>,
    depth: u32,
) {
    if depth > DEPTH_MAX || out.len() > 16 {
        return;
    }
    let mut inner = |part: E, is_zero: Option<bool>| {
        awaited_objects(engine, view, part, is_zero, out, depth + 1);
    };
    match view.expr(condition) {
        Expr::Unary { op: code, of } if code == op("!") => inner(of, is_zero.map(|zero| !zero)),
        Expr::Cast { of, .. } => inner(of, is_zero),
        Expr::Binary {
            op: code,
            left,
            right,
        } if code == op("&&") || code == op("||") => {
            inner(left, is_zero);
            inner(right, is_zero);
        }
        Expr::Binary {
            op: code,
            left,
            right,
        } => {
            let compared = (engine.is_nothing(view, right)).then_some(code);
            let side = match compared {
                Some(code) if code == op("==") => is_zero.map(|zero| !zero),
                Some(code) if code == op("!=") => is_zero,
                _ => None,
            };
            inner(left, side);
        }
        Expr::Name(_) | Expr::Member { .. } | Expr::Index { .. } => {
            let key = view.key(condition);
            if key.is_shared() {
                out.push((key, is_zero));
            }
        }
        Expr::Call { .. } => {
            let mut objects = Vec::new();
            view.objects(condition, &mut objects);
            out.extend(objects.into_iter().map(|(_, key)| (key, None)));
        }
        _ => {}
    }
}
