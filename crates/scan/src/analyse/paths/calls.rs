//! What calls do to the locks of a path: lock functions, callees, and functions known by name only.

use super::state::{Held, State};
use super::summary::{Outcome, Term, Touched};
use super::value::{ANY, NEGATIVE, Node, POSITIVE, Signs, Value, ZERO};
use super::walk::Walk;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::locks::Lock;
use crate::analyse::operations::{Operation, lock_key, operation};
use crate::analyse::program::FnId;
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, IN_CONDITION, Kind};
use crate::front::lex::{Sym, at, index, op};
use crate::idioms::LockAction;

/// What a call does to one lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effect {
    pub(super) action: LockAction,
    pub(super) lock: Lock,
    pub(super) instance: Value,
}

impl<'p> Walk<'_, 'p> {
    /// The paths on from a call.
    pub(super) fn call(&mut self, position: u32, event: Event, state: State) -> Vec<State> {
        let mut state = state;
        let classes = self.classes_of(event.expr);
        if classes & self.classes.never_returns != 0 {
            return Vec::new();
        }
        for (class, truth) in [
            (self.classes.stops_if, false),
            (self.classes.stops_unless, true),
        ] {
            if classes & class != 0
                && let Some((_, [condition, ..])) = self.view().unit.named_call(event.expr)
            {
                return self.eval.assume(state, *condition, truth);
            }
        }
        if let Some((found, instance)) = self.operation(&state, event.expr) {
            let effect = Effect {
                action: found.action,
                lock: found.lock,
                instance,
            };
            return self.guarded(position, event, state, &mut |walk, state| {
                walk.one_effect(position, event, effect, state)
            });
        }
        let callee = self
            .calls
            .callees_at(self.view().id, position)
            .find(|call| !call.indirect)
            .map(|call| call.callee);
        if let Some(callee) = callee {
            let inner = View::new(self.view().program, callee);
            if inner.function.from_macro {
                return self.macro_call(position, event, &inner, state);
            }
            // A callee that sleeps leaves locks as they were.
            let by_name =
                self.is_known_by_name_only(event.expr) || classes & self.classes.sleeps != 0;
            self.doubt_what_callee_doubts(&inner, event.expr, &mut state);
            if !by_name && !self.summaries[at(callee.0)].is_plain() {
                return self.guarded(position, event, state, &mut |walk, state| {
                    walk.known_call(position, event, callee, state)
                });
            }
            self.check_passes(position, event, callee, &state);
            self.doubt_what_is_told_by_pointer(callee, event.expr, &mut state);
        }
        if let Some(effect) = self.named_lock(position, event, &state) {
            return self.guarded(position, event, state, &mut |walk, state| {
                walk.one_effect(position, event, effect, state)
            });
        }
        if callee.is_none() {
            self.may_release(event.expr, &mut state);
        }
        self.finish(position, event, &mut state);
        vec![state]
    }

    fn classes_of(&self, call: E) -> u128 {
        let view = self.view();
        view.unit
            .named_call(call)
            .map_or(0, |(name, _)| view.program.idiom(view.name(name)).classes)
    }

    /// The lock operation that the call `id` is, and the lock's address.
    pub(super) fn operation(&mut self, state: &State, id: E) -> Option<(Operation, Value)> {
        let view = self.view();
        if !may_be_operation(&view, id) {
            return None;
        }
        let defs: Vec<(Sym, E)> = state
            .locals
            .iter()
            .filter(|slot| slot.source != E::NONE)
            .map(|slot| (slot.local, slot.source))
            .collect();
        let found = operation(view, self.locks, &defs, id)?;
        let instance = match lock_argument(&view, id) {
            Some(arg) => self.eval.value(state, arg),
            None => {
                let family = u32::from(view.program.table.canonical(self.locks.family(found.lock)));
                self.eval.values.add(Node::Result(u32::MAX, family))
            }
        };
        Some((found, instance))
    }

    /// Runs a call that stands in a condition only on paths on which its part of the condition is reached.
    pub(super) fn guarded(
        &mut self,
        position: u32,
        event: Event,
        state: State,
        run: &mut dyn FnMut(&mut Self, State) -> Vec<State>,
    ) -> Vec<State> {
        let mut reached = vec![state];
        let mut out = Vec::new();
        if event.flags & IN_CONDITION != 0
            && let Some(condition) = self.condition_around(position, event)
        {
            let mut guards = Vec::new();
            guards_of(&self.view(), condition, event.expr, &mut guards, 0);
            for (guard, truth) in guards {
                let mut next = Vec::new();
                for state in reached {
                    out.extend(self.eval.assume(state.clone(), guard, !truth));
                    next.extend(self.eval.assume(state, guard, truth));
                }
                reached = next;
            }
        }
        for state in reached {
            out.extend(run(self, state));
        }
        out
    }

    /// The condition that the call at `position` is a part of.
    fn condition_around(&self, position: u32, event: Event) -> Option<E> {
        let parent = self.events.get(at(event.parent));
        if let Some(head) = parent
            && head.kind == Kind::Loop
            && event.arm == 0
        {
            return Some(head.expr);
        }
        self.events[at(position)..]
            .iter()
            .find(|later| {
                later.parent == event.parent && matches!(later.kind, Kind::If | Kind::Switch)
            })
            .map(|head| head.expr)
    }

    pub(super) fn one_effect(
        &mut self,
        position: u32,
        event: Event,
        effect: Effect,
        mut state: State,
    ) -> Vec<State> {
        self.note(position, effect.lock, effect.action);
        let success: Signs = match effect.action {
            LockAction::Release => {
                self.release(position, effect.lock, effect.instance, &mut state);
                self.finish(position, event, &mut state);
                return vec![state];
            }
            LockAction::Acquire => ANY,
            LockAction::AcquireOrError if !self.is_result_used(position, event) => ANY,
            LockAction::AcquireOrError => ZERO,
            LockAction::Try => NEGATIVE | POSITIVE,
        };
        if success == ANY {
            self.acquire(position, effect.lock, effect.instance, &mut state);
            self.finish(position, event, &mut state);
            return vec![state];
        }
        let failed = state.clone();
        // A try that fails because the lock is held here is no deadlock.
        self.take(position, effect.lock, effect.instance, &mut state);
        let mut out = Vec::new();
        let failure = if success == ZERO { NEGATIVE } else { ZERO };
        for (mut state, signs) in [(state, success), (failed, failure)] {
            let value = self.finish(position, event, &mut state);
            if state.narrow(value, signs, event.expr) {
                out.push(state);
            }
        }
        out
    }

    fn is_result_used(&self, position: u32, event: Event) -> bool {
        if event.flags & IN_CONDITION != 0 {
            return true;
        }
        self.events
            .get(at(position) + 1)
            .is_some_and(|next| match next.kind {
                Kind::Write => next.aux != 0 && self.contains(E(next.aux), event.expr, 0),
                Kind::Return => self.contains(next.expr, event.expr, 0),
                _ => false,
            })
    }

    /// Whether `expr` is `part` or has it somewhere inside.
    fn contains(&self, expr: E, part: E, depth: u32) -> bool {
        const DEPTH_MAX: u32 = 8;
        if expr == part || expr == E::NONE || depth > DEPTH_MAX {
            return expr == part;
        }
        let mut found = false;
        self.view().each_part(expr, |inner| {
            found = found || self.contains(inner, part, depth + 1);
        });
        found
    }

    /// A call of a function whose effect on locks is known.
    fn known_call(
        &mut self,
        position: u32,
        event: Event,
        callee: FnId,
        state: State,
    ) -> Vec<State> {
        let mut state = state;
        self.check_passes(position, event, callee, &state);
        self.doubt_what_is_told_by_pointer(callee, event.expr, &mut state);
        let inner = View::new(self.view().program, callee);
        let args = self.argument_values(&state, event.expr);
        let summary = &self.summaries[at(callee.0)];
        let (outcomes, maybe) = if summary.is_told_by_result() {
            (summary.outcomes.clone(), None)
        } else {
            let (always, sometimes) = summary.split();
            (vec![always], Some(sometimes))
        };
        let several = outcomes.len() > 1;
        let mut out = Vec::new();
        for outcome in outcomes {
            let mut state = state.clone();
            let from = (&inner, event.expr, args.as_slice());
            self.apply(position, from, &outcome, true, &mut state);
            if let Some(maybe) = &maybe {
                self.apply(position, from, maybe, false, &mut state);
            }
            if self.gives_address(event.expr) {
                for held in state.held.iter_mut().filter(|held| held.by == position) {
                    held.unsure = true;
                }
                self.refresh(&mut state);
            }
            let value = self.finish(position, event, &mut state);
            if !several || state.narrow(value, outcome.signs, event.expr) {
                out.push(state);
            }
        }
        out
    }

    /// Whether an argument is the address of a local.
    fn gives_address(&self, call: E) -> bool {
        let view = self.view();
        let Expr::Call { args, .. } = view.expr(call) else {
            return false;
        };
        view.unit.exprs.parts(args).iter().any(|arg| {
            matches!(view.expr(*arg), Expr::Unary { op: code, of }
                if code == op("&") && matches!(view.expr(of), Expr::Name(_)))
        })
    }

    /// A callee that releases a lock somewhere inside and is given the address of a local may tell by it.
    fn doubt_what_is_told_by_pointer(&mut self, callee: FnId, call: E, state: &mut State) {
        if !self.gives_address(call) {
            return;
        }
        for lock in self.summaries[at(callee.0)].releases.clone() {
            self.doubt(lock, state);
        }
    }

    /// Does to the path what one way through a callee does, for sure or perhaps.
    fn apply(
        &mut self,
        position: u32,
        (inner, call, args): (&View<'_>, E, &[Value]),
        outcome: &Outcome,
        is_sure: bool,
        state: &mut State,
    ) {
        for touched in &outcome.frees {
            let Some((lock, instance)) = self.translate(inner, touched, call, args, None, state)
            else {
                continue;
            };
            if is_sure {
                self.note(position, lock, LockAction::Release);
                self.release(position, lock, instance, state);
            } else {
                let locks = &self.locks;
                let mut alike = state.held.iter_mut();
                if let Some(held) = alike.find(|held| locks.is_alike(held.lock, lock)) {
                    held.unsure = true;
                }
                self.doubt(lock, state);
            }
        }
        // As [`Self::finish`] names the result of a call that does something to a lock.
        let result = self.eval.values.add(Node::Result(position, 0));
        for touched in &outcome.takes {
            let result = is_sure.then_some(result);
            let Some((lock, instance)) = self.translate(inner, touched, call, args, result, state)
            else {
                continue;
            };
            if is_sure {
                self.note(position, lock, LockAction::Acquire);
            }
            self.take(position, lock, instance, state);
            let is_returned = touched.term.as_ref().is_some_and(Term::is_of_result);
            if is_returned && let Some(held) = state.held.last_mut() {
                held.handed = true;
            }
            // A lock of something that only the callee knows may come back as part of the result.
            let is_sure = is_sure && touched.term.is_some();
            if !is_sure {
                state.done.retain(|done| !done.lock.is_same_object(lock));
            }
            if !is_sure && let Some(held) = state.held.last_mut() {
                held.unsure = true;
                self.refresh(state);
            }
        }
    }

    /// The lock may be released from now on.
    pub(super) fn doubt(&mut self, lock: Lock, state: &mut State) {
        let mut is_own = false;
        for held in &mut state.held {
            if held.lock.is_same_object(lock) {
                held.unsure = true;
                is_own = true;
            }
        }
        if !is_own && !self.doubts.contains(&lock) && self.doubts.len() < 8 {
            self.doubts.push(lock);
        }
        self.refresh(state);
    }

    /// A callee that may release a lock of its caller's caller.
    fn doubt_what_callee_doubts(&mut self, inner: &View<'_>, call: E, state: &mut State) {
        for lock in self.summaries[at(inner.id.0)].doubts.clone() {
            if let Some(lock) = self.lock_in_callers_terms(inner, lock, call, state) {
                self.doubt(lock, state);
            }
        }
    }

    pub(super) fn argument_values(&mut self, state: &State, call: E) -> Vec<Value> {
        let view = self.view();
        let Expr::Call { args, .. } = view.expr(call) else {
            return Vec::new();
        };
        let args = view.unit.exprs.parts(args);
        args.iter()
            .map(|arg| self.eval.value(state, *arg))
            .collect()
    }

    /// A lock of the callee in terms of the caller.
    fn translate(
        &mut self,
        inner: &View<'_>,
        touched: &Touched,
        call: E,
        args: &[Value],
        result: Option<Value>,
        state: &State,
    ) -> Option<(Lock, Value)> {
        let lock = self.lock_in_callers_terms(inner, touched.lock, call, state)?;
        let instance = touched
            .term
            .as_ref()
            .and_then(|term| term.value(&mut self.eval.values, args, result));
        let instance = instance.unwrap_or_else(|| self.eval.values.add(Node::Other(call)));
        Some((lock, instance))
    }

    fn lock_in_callers_terms(
        &mut self,
        inner: &View<'_>,
        lock: Lock,
        call: E,
        state: &State,
    ) -> Option<Lock> {
        let KeyParts::Local(_, name) = self.locks.key(lock).parts() else {
            return Some(lock);
        };
        let locals = inner.unit.locals_of(inner.function);
        let number = locals[..at(inner.function.params)]
            .iter()
            .position(|local| inner.name(local.name) == name)?;
        let view = self.view();
        let Expr::Call { args, .. } = view.expr(call) else {
            return None;
        };
        let arg = *view.unit.exprs.parts(args).get(number)?;
        let defs: Vec<(Sym, E)> = state
            .locals
            .iter()
            .filter(|slot| slot.source != E::NONE)
            .map(|slot| (slot.local, slot.source))
            .collect();
        let key = lock_key(&view, &defs, arg);
        let family = self.locks.family(lock);
        Some(self.locks.lock(view.program, key, family))
    }

    /// Reports a callee that takes a lock which is held here.
    fn check_passes(&mut self, position: u32, event: Event, callee: FnId, state: &State) {
        let passes = self.summaries[at(callee.0)].passes.clone();
        if passes.is_empty() {
            return;
        }
        let inner = View::new(self.view().program, callee);
        let args = self.argument_values(state, event.expr);
        for touched in &passes {
            let Some(term) = &touched.term else { continue };
            let Some(instance) = term.value(&mut self.eval.values, &args, None) else {
                continue;
            };
            let Some(lock) = self.lock_in_callers_terms(&inner, touched.lock, event.expr, state)
            else {
                continue;
            };
            self.check_relock(position, lock, instance, state);
            self.pass(position, lock, instance, state);
        }
    }

    /// `foo_lock(x)` of which no body is known, or none that takes a lock, if there is a `foo_unlock`.
    fn named_lock(&mut self, position: u32, event: Event, state: &State) -> Option<Effect> {
        let view = self.view();
        let (name, args) = view.unit.named_call(event.expr)?;
        let name = view.name(name);
        let (action, release) = self.calls.named_lock(name)?;
        let action = match action {
            LockAction::Acquire if self.is_result_used(position, event) => {
                LockAction::AcquireOrError
            }
            action => action,
        };
        let family = view.program.table.named_family()?;
        let key = match args.first() {
            Some(arg) => {
                let defs: Vec<(Sym, E)> = Vec::new();
                lock_key(&view, &defs, *arg)
            }
            // Without an argument it is one lock for all: known by the name of its release.
            None => Key::new(KeyParts::Global(release, None)),
        };
        let object = match args.first() {
            Some(arg) => self.eval.value(state, *arg),
            None => self.eval.values.add(Node::Number(0)),
        };
        Some(Effect {
            action,
            lock: self.locks.lock(view.program, key, family),
            instance: self.eval.values.add(Node::Pure(release, object)),
        })
    }

    /// Whether one function of a pair `foo_lock`, `foo_unlock` has a body that shows no lock: then the names
    /// are followed for both.
    fn is_known_by_name_only(&self, call: E) -> bool {
        let view = self.view();
        let Some((name, _)) = view.unit.named_call(call) else {
            return false;
        };
        self.calls.partners(view.name(name)).iter().any(|partner| {
            let found = view.program.resolve(*partner, view.unit_number);
            found.is_none_or(|id| {
                let (_, function) = view.program.function(id);
                !function.from_macro && self.summaries[at(id.0)].is_plain()
            })
        })
    }

    /// Something unknown whose name says that it unlocks may release what it is given.
    fn may_release(&mut self, call: E, state: &mut State) {
        if state.held.is_empty() {
            return;
        }
        let view = self.view();
        let text = match view.expr(call) {
            Expr::Call { callee, .. } => match view.expr(callee) {
                Expr::Name(name) | Expr::Member { field: name, .. } => {
                    view.program.names.bytes(view.name(name))
                }
                _ => return,
            },
            _ => return,
        };
        if !text.windows(6).any(|part| part == b"unlock") {
            return;
        }
        let args = self.argument_values(state, call);
        let values = &self.eval.values;
        let is_given = |held: &Held| {
            args.iter().any(|arg| {
                values.bases(held.instance).any(|base| base == *arg)
                    || values.bases(*arg).any(|base| base == held.instance)
            })
        };
        let any_given = state.held.iter().any(is_given);
        for held in &mut state.held {
            if !any_given || is_given(held) {
                held.unsure = true;
            }
        }
        self.refresh(state);
    }

    /// The result of the call is a new value; what it got the address of is unknown from now on.
    pub(super) fn finish(&mut self, position: u32, event: Event, state: &mut State) -> Value {
        let view = self.view();
        self.lives_after_call(position, event.expr, state);
        let is_lock = self
            .operations
            .last()
            .is_some_and(|last| last.0 == position);
        let node = if !is_lock && self.uses.is_asked_again(event.expr) {
            Node::Other(event.expr)
        } else {
            Node::Result(position, 0)
        };
        let value = self.eval.values.add(node);
        state.set_result(event.expr, value);
        self.borrow_result(event.expr, value, state);
        let Expr::Call { args, .. } = view.expr(event.expr) else {
            return value;
        };
        for (number, arg) in view.unit.exprs.parts(args).iter().enumerate() {
            if let Expr::Unary { op: code, of } = view.expr(view.unit.exprs.peel(*arg))
                && code == op("&")
                && let Expr::Name(name) = view.expr(of)
                && view.is_local(name)
            {
                self.set_unknown(position, index(number) + 1, name, state);
            }
        }
        value
    }
}

/// A quick look whether the call can be a lock operation at all.
fn may_be_operation(view: &View<'_>, call: E) -> bool {
    match view.unit.named_call(call) {
        Some((name, _)) => {
            let name = view.name(name);
            view.program.idiom(name).lock.is_some()
                || view.program.names.bytes(name) == b"scoped_guard"
        }
        None => matches!(view.expr(call), Expr::Call { callee, .. }
            if matches!(view.expr(callee), Expr::Call { .. })),
    }
}

/// The argument that is the lock, if there is one.
fn lock_argument(view: &View<'_>, call: E) -> Option<E> {
    let Expr::Call { callee, args } = view.expr(call) else {
        return None;
    };
    let args = view.unit.exprs.parts(args);
    match view.expr(callee) {
        Expr::Name(name) => {
            let name = view.name(name);
            if view.program.names.bytes(name) == b"scoped_guard" {
                return args.get(1).copied();
            }
            let number = view.program.idiom(name).lock?.argument?;
            args.get(number).copied()
        }
        _ => args.first().copied(),
    }
}

/// What must hold for `call` to be reached inside `condition`.
fn guards_of(view: &View<'_>, condition: E, call: E, out: &mut Vec<(E, bool)>, depth: u32) -> bool {
    if condition == call {
        return true;
    }
    if depth > 16 {
        return false;
    }
    match view.expr(condition) {
        Expr::Binary {
            op: code,
            left,
            right,
        } if code == op("&&") || code == op("||") => {
            if guards_of(view, left, call, out, depth + 1) {
                return true;
            }
            if guards_of(view, right, call, out, depth + 1) {
                out.insert(0, (left, code == op("&&")));
                return true;
            }
            false
        }
        Expr::Choice { parts } => {
            let parts = view.unit.exprs.parts(parts).to_vec();
            for (number, part) in parts.iter().enumerate() {
                if guards_of(view, *part, call, out, depth + 1) {
                    if number > 0 {
                        out.insert(0, (parts[0], number == 1));
                    }
                    return true;
                }
            }
            false
        }
        _ => {
            let mut found = false;
            view.each_part(condition, |part| {
                found = found || guards_of(view, part, call, out, depth + 1);
            });
            found
        }
    }
}
