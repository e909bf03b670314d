//! Evaluates the conditions of a pattern on a partial match.

use super::facts::contains_call;
use super::{Bound, Engine, Partial};
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::paths::PathFactKind;
use crate::analyse::program::{EventId, FnId};
use crate::front::ast::{E, Expr};
use crate::front::event::{ATOMIC, Event, IDEMPOTENT, IN_CONDITION, Kind, TOP};
use crate::front::lex::at;
use crate::idioms::{Start, glob_matches};
use crate::pdl::ast::{Arg, Compare, Condition, Predicate, Test};

impl Engine<'_> {
    /// Whether the condition holds; nothing if it speaks of what is not bound yet.
    pub(super) fn check(&self, condition: &Condition, partial: &Partial) -> Option<bool> {
        match condition {
            Condition::Not(inner) => self.check(inner, partial).map(|holds| !holds),
            Condition::And(parts) => self.all(parts, partial),
            Condition::Or(parts) => {
                let mut undecided = false;
                for part in parts {
                    match self.check(part, partial) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => undecided = true,
                    }
                }
                if undecided { None } else { Some(false) }
            }
            Condition::Test(test) => self.test(test, partial),
        }
    }

    /// Whether no condition is violated; undecided ones count as `None`.
    fn all(&self, parts: &[Condition], partial: &Partial) -> Option<bool> {
        let mut undecided = false;
        for part in parts {
            match self.check(part, partial) {
                Some(false) => return Some(false),
                Some(true) => {}
                None => undecided = true,
            }
        }
        if undecided { None } else { Some(true) }
    }

    /// Whether nothing decided so far speaks against the match.
    pub(super) fn admits(&self, conditions: &[Condition], partial: &Partial) -> bool {
        conditions
            .iter()
            .all(|condition| self.check(condition, partial) != Some(false))
    }

    fn test(&self, test: &Test, partial: &Partial) -> Option<bool> {
        // Unbound arguments leave the test open.
        for arg in &test.args {
            match arg {
                Arg::Label(label) if partial.labels[*label].is_none() => return None,
                Arg::Variable(number) | Arg::Element(number, _)
                    if partial.variables[*number].is_none() =>
                {
                    return None;
                }
                _ => {}
            }
        }
        if self.is_switched_off(test.predicate) {
            return None;
        }
        let ask = Ask {
            engine: self,
            partial,
            args: &test.args,
        };
        if let Some((compare, value)) = &test.compare {
            return Some(ask.compared(test.predicate, *compare, value));
        }
        Some(ask.holds(test.predicate).unwrap_or(false))
    }

    /// The value that a test compares, if its arguments are bound.
    pub(super) fn value_of(&self, test: &Test, partial: &Partial) -> Option<String> {
        let ask = Ask {
            engine: self,
            partial,
            args: &test.args,
        };
        ask.value(test.predicate)
    }

    fn is_switched_off(&self, predicate: Predicate) -> bool {
        let needs_locks = matches!(
            predicate,
            Predicate::DisjointLocks
                | Predicate::NoGate
                | Predicate::ReachableFromThread
                | Predicate::Holds
                | Predicate::AtomicContext
                | Predicate::Guarded
                | Predicate::GuardedWrites
                | Predicate::Unguarded
                | Predicate::UsualLock
                | Predicate::ReadLocked
                | Predicate::HoldsAny
                | Predicate::CommonLock
                | Predicate::ReturnsHolding
                | Predicate::ReleasedElsewhere
                | Predicate::Leaks
                | Predicate::Relocks
                | Predicate::Reunlocks
                | Predicate::UsesFreed
                | Predicate::UsesAfterRcu
                | Predicate::UsesAfterUnlock
                | Predicate::LacksUsual
                | Predicate::UnmetCall
                | Predicate::OutsideSection
                | Predicate::UsuallyIrqOff
                | Predicate::Unheld
                | Predicate::Interruptible
                | Predicate::InInterrupt
                | Predicate::CalledUnlocked
        );
        let needs_alias = matches!(predicate, Predicate::Published | Predicate::Passed);
        (needs_locks && !self.level.locks) || (needs_alias && !self.level.alias)
    }
}

pub(super) struct Ask<'a, 'e, 'p> {
    pub(super) engine: &'e Engine<'p>,
    partial: &'a Partial,
    pub(super) args: &'a [Arg],
}

impl Ask<'_, '_, '_> {
    pub(super) fn place(&self, number: usize) -> Option<EventId> {
        match self.args.get(number)? {
            Arg::Label(label) => self.partial.labels[*label],
            Arg::Variable(_) | Arg::Element(..) => match self.bound(number)? {
                Bound::Object { place, .. }
                | Bound::Condition { place, .. }
                | Bound::Args { place, .. }
                | Bound::Lock { place, .. } => Some(place),
                Bound::Function(_) => None,
            },
            _ => None,
        }
    }

    pub(super) fn bound(&self, number: usize) -> Option<Bound> {
        match self.args.get(number)? {
            Arg::Variable(variable) => self.partial.variables[*variable].clone(),
            Arg::Element(variable, element) => {
                let Bound::Args { place, call } = self.partial.variables[*variable].clone()? else {
                    return None;
                };
                let view = View::new(self.engine.program, place.function);
                let Expr::Call { args, .. } = view.expr(call) else {
                    return None;
                };
                let expr = *view.unit.exprs.parts(args).get(*element)?;
                Some(Bound::Object {
                    place,
                    expr,
                    key: view.key(expr),
                })
            }
            _ => None,
        }
    }

    fn class(&self, number: usize) -> u128 {
        match self.args.get(number) {
            Some(Arg::Class(name)) => self.engine.program.table.class(name).unwrap_or(0),
            _ => 0,
        }
    }

    pub(super) fn function(&self, number: usize) -> Option<FnId> {
        match self.bound(number)? {
            Bound::Function(id) => Some(id),
            Bound::Object { place, expr, .. } => self.named_function(place, expr),
            _ => None,
        }
    }

    fn named_function(&self, place: EventId, expr: E) -> Option<FnId> {
        self.engine.functions_given(place, expr).first().copied()
    }

    pub(super) fn key(&self, number: usize) -> Key {
        match self.bound(number) {
            Some(Bound::Object { key, .. }) => key,
            Some(Bound::Lock { lock, .. }) => self.engine.flows.locks.key(lock),
            Some(Bound::Condition { objects, .. }) => {
                objects.first().map_or(Key::UNKNOWN, |(_, key)| *key)
            }
            _ => Key::UNKNOWN,
        }
    }

    pub(super) fn event(&self, number: usize) -> Option<Event> {
        Some(self.engine.program.event(self.place(number)?))
    }

    pub(super) fn expr(&self, number: usize) -> Option<(EventId, E)> {
        match self.bound(number)? {
            Bound::Object { place, expr, .. } | Bound::Condition { place, expr, .. } => {
                Some((place, expr))
            }
            Bound::Args { place, call } => Some((place, call)),
            _ => None,
        }
    }

    fn holds(&self, predicate: Predicate) -> Option<bool> {
        Some(match predicate {
            Predicate::DisjointLocks => self
                .engine
                .concurrent(self.place(0)?, self.place(1)?)
                .is_some(),
            Predicate::NoGate => self.no_gate()?,
            Predicate::CommonLock => {
                let one = self.engine.held(self.place(0)?).always;
                let other = self.engine.held(self.place(1)?).always;
                one.iter().any(|lock| {
                    self.is_excluding(*lock) && other.iter().any(|held| held.is_same_object(*lock))
                })
            }
            Predicate::Writes => {
                let (place, key) = (self.place(0)?, self.key(1));
                let writes = self.engine.accesses.writes(key);
                writes.iter().any(|write| write.function == place.function)
            }
            Predicate::Shared => self.shared()?,
            Predicate::Alias => self.alias()?,
            Predicate::Mentions => self.mentions()?,
            Predicate::Same => {
                let ((a, x), (b, y)) = (self.expr(0)?, self.expr(1)?);
                a.function == b.function && x == y
            }
            Predicate::SameBase => self.same_base()?,
            Predicate::SameLock => self.same_lock()?,
            Predicate::SameFunction => self.function(0)? == self.function(1)?,
            Predicate::DifferentFunction => self.function(0)? != self.function(1)?,
            Predicate::Starts => self.starts()?,
            Predicate::Passed => self.passed()?,
            Predicate::ReachableFromThread => {
                let id = self.function(0)?;
                let contexts = self.engine.contexts.of(id);
                contexts
                    .iter()
                    .any(|context| !matches!(context.start, Start::Unknown | Start::Init))
            }
            Predicate::InitOnly => self.engine.contexts.is_init_only(self.function(0)?),
            Predicate::Before | Predicate::Dominates | Predicate::SameBranch => {
                self.order(predicate)?
            }
            Predicate::Calls => self.calls()?,
            Predicate::ByCall => self.by_call()?,
            _ => return self.holds_more(predicate),
        })
    }

    fn holds_more(&self, predicate: Predicate) -> Option<bool> {
        Some(match predicate {
            Predicate::Holds => self.holds_lock()?,
            Predicate::HoldsAny => self
                .engine
                .held(self.place(0)?)
                .always
                .iter()
                .any(|lock| self.is_excluding(*lock)),
            Predicate::AtomicContext => self.atomic_context()?,
            Predicate::MaySleep => {
                let engine = self.engine;
                engine
                    .sleepers
                    .sleeps(engine.program, &engine.calls, self.place(0)?)
            }
            Predicate::Unguarded => self.unguarded()?,
            Predicate::UsualLock => self.usual_lock()?,
            Predicate::Atomic => self.event(0)?.flags & ATOMIC != 0,
            Predicate::InLoop => self
                .ancestors(0)?
                .iter()
                .any(|event| event.kind == Kind::Loop),
            Predicate::InCondition => self.event(0)?.flags & IN_CONDITION != 0,
            Predicate::ErrorExit => self.error_exit()?,
            Predicate::ReturnsNothing => {
                let event = self.event(0)?;
                event.kind == Kind::Return && event.expr == E::NONE
            }
            Predicate::ReturnsHolding => self.returns_holding()?,
            Predicate::ReleasedElsewhere => self.released_elsewhere()?,
            Predicate::Published => self.published()?,
            Predicate::Pointer => {
                let (place, expr) = self.expr(0)?;
                let view = View::new(self.engine.program, place.function);
                let ty = self.engine.program.types.canonical(view.ty(expr));
                ty.pointers > 0 || ty.function
            }
            Predicate::Dereferenced => self.dereferenced()?,
            Predicate::SetsNull => {
                let (place, event) = (self.place(0)?, self.event(0)?);
                let view = View::new(self.engine.program, place.function);
                event.kind == Kind::Write
                    && event.aux != 0
                    && self.engine.is_nothing(&view, E(event.aux))
            }
            Predicate::LockFree => self.lock_free()?,
            Predicate::Global => matches!(self.key(0).parts(), KeyParts::Global(..)),
            Predicate::Diagnostic => self.diagnostic()?,
            Predicate::Near => {
                let (one, other) = (self.place(0)?, self.place(1)?);
                one.function == other.function
                    && (one.event..one.event + NEAR).contains(&other.event)
            }
            _ => return self.holds_at_last(predicate),
        })
    }

    fn holds_at_last(&self, predicate: Predicate) -> Option<bool> {
        Some(match predicate {
            Predicate::Idempotent => self.event(0)?.flags & IDEMPOTENT != 0,
            Predicate::Lifecycle => {
                let name = self.engine.program.function_name(self.function(0)?);
                crate::results::is_lifecycle(&name)
            }
            Predicate::SameDirectory => {
                let program = self.engine.program;
                let folder = |id| program.directory(program.unit_of(id));
                folder(self.function(0)?) == folder(self.function(1)?)
            }
            Predicate::SetsUp => self.sets_up()?,
            Predicate::Teardown => {
                const PARTS: &[&str] = &["put", "free", "destroy", "release", "uninit", "delete"];
                let name = self.engine.program.function_name(self.function(0)?);
                let name = name.to_lowercase();
                PARTS.iter().any(|part| name.contains(part))
            }
            Predicate::ErrorPath => self.error_path()?,
            Predicate::Negated => self.negated()?,
            Predicate::AnyLocks => true,
            Predicate::FollowedIn => self.followed_in()?,
            Predicate::Limits => {
                let (place, expr) = self.expr(0)?;
                let view = View::new(self.engine.program, place.function);
                super::facts::compares(&view, expr, 0)
            }
            Predicate::Leaks => self.leaks()?,
            Predicate::Relocks => self.on_one_path(PathFactKind::Relocks)?.is_some(),
            Predicate::Reunlocks => self.on_one_path(PathFactKind::Reunlocks)?.is_some(),
            Predicate::UsesFreed => self.on_one_path(PathFactKind::UsesFreed)?.is_some(),
            Predicate::UsesAfterUnlock => {
                self.on_one_path(PathFactKind::UsesAfterUnlock)?.is_some()
            }
            Predicate::UsesAfterRcu => self.on_one_path(PathFactKind::UsesAfterRcu)?.is_some(),
            Predicate::Awaits => {
                let function = self.function(1)?;
                self.engine
                    .awaited(self.place(0)?)
                    .binary_search(&function)
                    .is_ok()
            }
            Predicate::Called => {
                let (place, function) = (self.place(0)?, self.function(1)?);
                let mut callees = self.engine.calls.callees_at(place.function, place.event);
                callees.any(|call| !call.indirect && call.callee == function)
            }
            Predicate::Unheld => self.unheld()?,
            Predicate::Interruptible => self.interruptible()?,
            Predicate::InInterrupt => self.in_interrupt()?,
            Predicate::LeavesArmed => self.leaves_armed()?,
            Predicate::ArmedIn => {
                let function = self.function(1)?;
                let armed = self.engine.left_armed(self.place(0)?);
                armed.iter().any(|place| place.function == function)
            }
            Predicate::CalledUnlocked => self.called_unlocked()?,
            Predicate::RemoveRoot => self.removes()?,
            Predicate::FoundByRcu => self.found_by_rcu()?,
            Predicate::ReadLocked => self.read_locked()?,
            Predicate::Guarded | Predicate::GuardedWrites | Predicate::Type | Predicate::NameOf => {
                !self.value(predicate)?.is_empty()
            }
            Predicate::LacksUsual
            | Predicate::UnmetCall
            | Predicate::FewCaller
            | Predicate::OutsideSection
            | Predicate::UsuallyIrqOff => self.suspect(predicate)?,
            _ => return self.holds_by_habit(predicate),
        })
    }

    fn compared(&self, predicate: Predicate, compare: Compare, wanted: &str) -> bool {
        let Some(value) = self.value(predicate) else {
            return false;
        };
        match compare {
            Compare::Equal => glob_matches(wanted.as_bytes(), value.as_bytes()),
            Compare::Different => !glob_matches(wanted.as_bytes(), value.as_bytes()),
            _ => {
                let (Ok(value), Ok(wanted)) = (value.parse::<i64>(), wanted.parse::<i64>()) else {
                    return false;
                };
                match compare {
                    Compare::Less => value < wanted,
                    Compare::LessEqual => value <= wanted,
                    Compare::Greater => value > wanted,
                    _ => value >= wanted,
                }
            }
        }
    }

    fn value(&self, predicate: Predicate) -> Option<String> {
        let names = &self.engine.program.names;
        match predicate {
            Predicate::Type => {
                let (place, expr) = self.expr(0)?;
                let view = View::new(self.engine.program, place.function);
                Some(names.text(view.ty(expr).base).into_owned())
            }
            Predicate::NameOf => match self.key(0).parts() {
                KeyParts::Field(_, name)
                | KeyParts::Global(name, _)
                | KeyParts::Local(_, name)
                | KeyParts::Vague(name, _) => Some(names.text(name).into_owned()),
                _ => self.bound(0).map(|bound| self.engine.show(&bound)),
            },
            Predicate::GuardedWrites => {
                let guard = self.guard_of_others();
                Some(guard.percent_of_writes().to_string())
            }
            Predicate::Guarded => {
                let guard = self.guard_of_others();
                // Too few accesses say nothing.
                if self.engine.guard(self.key(0), self.place(0)?).all < self.accesses_min()
                    || guard.writes_under == 0
                {
                    return Some("0".to_owned());
                }
                Some(guard.percent().to_string())
            }
            _ => None,
        }
    }

    fn shared(&self) -> Option<bool> {
        match self.bound(0)? {
            Bound::Object { place, expr, key } => {
                if !key.is_shared() {
                    return Some(false);
                }
                if !self.engine.level.alias {
                    return Some(true);
                }
                let view = View::new(self.engine.program, place.function);
                if view.is_record(expr) {
                    return Some(false);
                }
                let is_fresh = view.root(expr).is_some_and(|root| {
                    self.engine
                        .flows
                        .is_fresh(place.function, place.event, root)
                });
                Some(!is_fresh)
            }
            Bound::Condition { objects, place, .. } => Some(objects.iter().any(|(expr, key)| {
                let view = View::new(self.engine.program, place.function);
                key.is_shared()
                    && !view.root(*expr).is_some_and(|root| {
                        self.engine
                            .flows
                            .is_fresh(place.function, place.event, root)
                    })
            })),
            _ => Some(false),
        }
    }

    fn alias(&self) -> Option<bool> {
        let (one, other) = (self.bound(0)?, self.bound(1)?);
        if !self.engine.level.alias {
            let (one, other) = (self.last_names(&one), self.last_names(&other));
            return Some(one.iter().any(|name| other.contains(name)));
        }
        Some(self.engine.is_equal(&one, &other))
    }

    /// Without types, objects are told apart by the last part of their name.
    fn last_names(&self, bound: &Bound) -> Vec<Key> {
        bound.keys().into_iter().map(Key::without_type).collect()
    }

    fn mentions(&self) -> Option<bool> {
        let (_, wanted) = self.expr(1)?;
        let place = self.place(1)?;
        let key = self.key(1);
        let view = View::new(self.engine.program, place.function);
        // A small function looks at the object for the condition.
        let is_asked = |expr: E, of: Key| {
            let asked = view.unit.named_call(expr);
            of == key
                && key.is_shared()
                && asked.is_some_and(|(_, args)| {
                    args.iter().any(|arg| view.root(*arg) == view.root(wanted))
                })
        };
        match self.bound(0)? {
            Bound::Condition {
                place: here,
                objects,
                ..
            } => Some(
                here.function == place.function
                    && objects
                        .iter()
                        .any(|(expr, of)| *expr == wanted || is_asked(*expr, *of)),
            ),
            _ => Some(false),
        }
    }

    fn same_base(&self) -> Option<bool> {
        let ((a, x), (b, y)) = (self.expr(0)?, self.expr(1)?);
        if a.function != b.function {
            return Some(false);
        }
        let view = View::new(self.engine.program, a.function);
        Some(view.root(x)? == view.root(y)?)
    }

    fn same_lock(&self) -> Option<bool> {
        match (self.bound(0)?, self.bound(1)?) {
            (Bound::Lock { lock: a, .. }, Bound::Lock { lock: b, .. }) => Some(a.is_same_object(b)),
            (one, other) => Some(self.engine.is_equal(&one, &other)),
        }
    }

    fn starts(&self) -> Option<bool> {
        let (place, wanted) = (self.place(0)?, self.function(1)?);
        let view = View::new(self.engine.program, place.function);
        let (name, args) = view.unit.named_call(self.event(0)?.expr)?;
        let starts = &self.engine.program.idiom(view.name(name)).starts;
        Some(starts.iter().any(|start| {
            args.get(start.function)
                .is_some_and(|arg| self.engine.functions_given(place, *arg).contains(&wanted))
        }))
    }

    fn passed(&self) -> Option<bool> {
        let place = self.place(0)?;
        let (_, object) = self.expr(1)?;
        if matches!(self.key(1).parts(), KeyParts::Global(..)) {
            return Some(true);
        }
        let view = View::new(self.engine.program, place.function);
        let (name, args) = view.unit.named_call(self.event(0)?.expr)?;
        let starts = &self.engine.program.idiom(view.name(name)).starts;
        let root = view.root(object)?;
        Some(starts.iter().any(|start| {
            start
                .argument
                .and_then(|number| args.get(number))
                .is_some_and(|arg| view.root(*arg) == Some(root))
        }))
    }

    fn order(&self, predicate: Predicate) -> Option<bool> {
        let (one, other) = (self.place(0)?, self.place(1)?);
        if one.function != other.function {
            return Some(false);
        }
        let events = self.engine.program.events(one.function);
        let cfg = Cfg::new(events);
        Some(match predicate {
            Predicate::Before => cfg.reaches(one.event, other.event),
            Predicate::Dominates => cfg.dominates(one.event, other.event),
            _ => {
                let parent = events[at(other.event)].parent;
                let mut around = vec![TOP];
                let mut here = events[at(one.event)].parent;
                while here != TOP {
                    around.push(here);
                    here = events[at(here)].parent;
                }
                around.contains(&parent) && cfg.reaches(one.event, other.event)
            }
        })
    }

    /// Events around the statement, innermost first.
    pub(super) fn ancestors(&self, number: usize) -> Option<Vec<Event>> {
        let place = self.place(number)?;
        let events = self.engine.program.events(place.function);
        let mut out = Vec::new();
        let mut here = events[at(place.event)].parent;
        while here != TOP {
            out.push(events[at(here)]);
            here = events[at(here)].parent;
        }
        Some(out)
    }

    fn calls(&self) -> Option<bool> {
        let (place, expr) = self.expr(0)?;
        let wanted = self.class(1);
        let view = View::new(self.engine.program, place.function);
        let matcher = super::syntax::Matcher::new(self.engine, place.function, 0);
        let mut sources = matcher.sources(place.event, expr).into_iter();
        Some(sources.any(|source| {
            contains_call(&view, source, wanted, 0)
                || self.asks_by_small_call(&view, source, wanted, 0)
        }))
    }

    /// Whether a small function that is called in the expression makes a call of the class for it.
    fn asks_by_small_call(&self, view: &View<'_>, expr: E, wanted: u128, depth: u32) -> bool {
        if depth > 8 {
            return false;
        }
        let callee = view
            .unit
            .named_call(expr)
            .and_then(|(name, _)| view.program.resolve(view.name(name), view.unit_number));
        let asks = callee.is_some_and(|callee| {
            view.program.events(callee).len() <= super::spellings::SMALL
                && self.engine.calls.classes[at(callee.0)] & wanted != 0
        });
        asks || super::facts::children(view, expr)
            .into_iter()
            .any(|child| self.asks_by_small_call(view, child, wanted, depth + 1))
    }

    fn by_call(&self) -> Option<bool> {
        let (mut place, mut event) = (self.place(0)?, self.event(0)?);
        if event.kind == Kind::Call
            && let Some((inner, _)) = self.engine.wrapped_access(place)
        {
            (place, event) = (inner, self.engine.program.event(inner));
        }
        let view = View::new(self.engine.program, place.function);
        if event.flags & crate::front::event::BY_CALL == 0 {
            return Some(false);
        }
        let (name, _) = view.unit.named_call(E(event.aux))?;
        Some(self.engine.program.idiom(view.name(name)).classes & self.class(1) != 0)
    }
}

/// Events between two statements that still belong together.
const NEAR: u32 = 10;
