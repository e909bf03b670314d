//! Locks held at each event of a function, relative to its entry, and locals that nobody else knows yet.
//!
//! One ascending pass per function (see [`super::cfg`]); what a callee does to locks flows back to its
//! callers if it does so on every way to its end. The *must* set holds on all ways, the *may* set on some.

use rustc_hash::FxHashMap;

use super::calls::Calls;
use super::cfg::Cfg;
use super::keys::{KeyParts, View};
use super::locks::{Lock, LockSet, Locks};
use super::operations::{Operation, class_key, is_unconditional, lock_key, operation, substitute};
use super::program::{FnId, Program};
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind};
use crate::front::lex::{Sym, at, index, op};
use crate::idioms::LockAction;

/// What happened to locks since the entry of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct State {
    /// Taken on all ways, taken on some.
    pub(crate) must: LockSet,
    pub(crate) may: LockSet,
    /// Locks of the caller released on some way, on all ways.
    pub(crate) freed_may: LockSet,
    pub(crate) freed_must: LockSet,
}

/// What a call of a function does on all ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    pub(crate) takes: LockSet,
    pub(crate) frees: LockSet,
    /// Released on some way at least.
    pub(crate) may_free: LockSet,
    /// The result is an object that nobody else knows.
    pub(crate) returns_fresh: bool,
}

/// The analysis of one function; empty vectors mean "nothing anywhere".
#[derive(Debug, Clone, Default)]
pub(crate) struct FnFlow {
    states: Vec<u32>,
    fresh: Vec<u64>,
    fresh_names: Vec<Sym>,
    /// Lock operations, own and of callees, by event.
    operations: Vec<(u32, Operation)>,
}

/// The analysis of all functions.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub(crate) locks: Locks,
    states: Vec<State>,
    state_ids: FxHashMap<State, u32>,
    flows: Vec<FnFlow>,
    pub(crate) effects: Vec<Effect>,
    /// Bit set of parameters that every caller gives a fresh object.
    fresh_params: Vec<u64>,
}

/// Rounds in which effects travel from callees to callers.
const ROUNDS: usize = 4;

impl Flows {
    pub(crate) fn new(program: &Program<'_>, calls: &Calls) -> Self {
        let count = program.functions.len();
        let mut flows = Self {
            flows: vec![FnFlow::default(); count],
            effects: vec![Effect::default(); count],
            fresh_params: vec![0; count],
            ..Self::default()
        };
        flows.state(State::default());
        let allocates = program.table.class("allocates").unwrap_or(0);
        let mut dirty: Vec<FnId> = program
            .function_ids()
            .filter(|id| has_locks(program, *id) || calls.classes[at(id.0)] & allocates != 0)
            .collect();
        for _ in 0..ROUNDS {
            let mut next = Vec::new();
            for id in dirty {
                if flows.analyse(program, calls, id) {
                    next.extend_from_slice(&calls.callers[at(id.0)]);
                }
            }
            next.sort_unstable();
            next.dedup();
            dirty = next;
        }
        flows.pass_fresh_arguments(program, calls);
        flows
    }

    fn state(&mut self, state: State) -> u32 {
        let next = index(self.states.len());
        let id = *self.state_ids.entry(state).or_insert(next);
        if id == next {
            self.states.push(state);
        }
        id
    }

    /// The state just before `event`.
    pub(crate) fn at(&self, id: FnId, event: u32) -> State {
        let flow = &self.flows[at(id.0)];
        flow.states
            .get(at(event))
            .map_or(State::default(), |state| self.states[at(*state)])
    }

    /// Whether `name` holds an object just before `event` that nobody else knows.
    pub(crate) fn is_fresh(&self, id: FnId, event: u32, name: Sym) -> bool {
        let flow = &self.flows[at(id.0)];
        let Some(bit) = flow.fresh_names.iter().position(|known| *known == name) else {
            return false;
        };
        flow.fresh
            .get(at(event))
            .is_some_and(|bits| bits & 1 << bit != 0)
    }

    /// Lock operations at `event`, own and of callees.
    pub(crate) fn operations_at(&self, id: FnId, event: u32) -> impl Iterator<Item = Operation> {
        let all = &self.flows[at(id.0)].operations;
        let start = all.partition_point(|(place, _)| *place < event);
        all[start..]
            .iter()
            .take_while(move |(place, _)| *place == event)
            .map(|(_, operation)| *operation)
    }

    /// Whether the function itself takes `lock` somewhere.
    pub(crate) fn acquires(&self, id: FnId, lock: Lock) -> bool {
        self.flows[at(id.0)]
            .operations
            .iter()
            .any(|(_, operation)| {
                operation.lock.is_same_object(lock) && operation.action != LockAction::Release
            })
    }

    pub(crate) fn has_operations(&self, id: FnId) -> bool {
        !self.flows[at(id.0)].operations.is_empty()
    }

    /// Analyses one function; true if its effect on callers changed.
    fn analyse(&mut self, program: &Program<'_>, calls: &Calls, id: FnId) -> bool {
        let view = View::new(program, id);
        let events = program.events(id);
        if events.is_empty() {
            return false;
        }
        let cfg = Cfg::new(events);
        let fresh_names = self.fresh_names(&view, calls, events);
        let mut run = Run {
            flows: self,
            calls,
            view,
            events,
            cfg: &cfg,
            fresh_names,
            defs: single_definitions(events, &view),
            operations: Vec::new(),
        };
        let (flow, effect) = run.run();
        let changed = self.effects[at(id.0)] != effect;
        self.effects[at(id.0)] = effect;
        self.flows[at(id.0)] = flow;
        changed
    }

    /// Locals that ever hold a fresh object.
    fn fresh_names(&self, view: &View<'_>, calls: &Calls, events: &[Event]) -> Vec<Sym> {
        let mut names = Vec::new();
        let params = self.fresh_params[at(view.id.0)];
        let locals = view.unit.locals_of(view.function);
        for (number, local) in locals[..at(view.function.params)].iter().enumerate() {
            if number < 64 && params & 1 << number != 0 {
                names.push(local.name);
            }
        }
        for (position, event) in events.iter().enumerate() {
            let Some(target) = plain_local(view, event) else {
                continue;
            };
            let value = view.unit.exprs.peel(E(event.aux));
            let is_source = match view.expr(value) {
                Expr::Name(from) => names.contains(&from),
                _ => self.gives_fresh(view, calls, index(position), value),
            };
            if is_source && !names.contains(&target) && names.len() < 63 {
                names.push(target);
            }
        }
        names
    }

    /// Whether `value` is a call whose result nobody else knows.
    fn gives_fresh(&self, view: &View<'_>, calls: &Calls, before: u32, value: E) -> bool {
        let value = match view.expr(value) {
            // `p = a ?: b` and `(p = alloc())` are rare; plain calls are the rule.
            Expr::Assign { from, .. } => view.unit.exprs.peel(from),
            _ => value,
        };
        let Some((name, _)) = view.unit.named_call(value) else {
            return false;
        };
        let allocates = view.program.table.class("allocates").unwrap_or(0);
        if view.program.idiom(view.name(name)).classes & allocates != 0 {
            return true;
        }
        // The call event stands just before the write.
        (before.saturating_sub(3)..before).any(|event| {
            view.unit.events_of(view.function)[at(event)].expr == value
                && calls
                    .callees_at(view.id, event)
                    .any(|call| !call.indirect && self.effects[at(call.callee.0)].returns_fresh)
        })
    }

    /// Parameters of private functions that every caller gives a fresh object are fresh at entry.
    fn pass_fresh_arguments(&mut self, program: &Program<'_>, calls: &Calls) {
        let count = program.functions.len();
        for _ in 0..2 {
            let mut given = vec![u64::MAX; count];
            let mut called = vec![false; count];
            for id in program.function_ids() {
                let view = View::new(program, id);
                let has_fresh = !self.flows[at(id.0)].fresh_names.is_empty();
                for call in calls.of(id) {
                    let slot = at(call.callee.0);
                    called[slot] = true;
                    given[slot] &= if has_fresh && !call.indirect {
                        self.fresh_arguments(&view, call.event)
                    } else {
                        0
                    };
                }
            }
            let mut dirty = Vec::new();
            for id in program.function_ids() {
                let slot = at(id.0);
                let (_, function) = program.function(id);
                let is_private = function.is_static && !calls.address_taken[slot];
                if called[slot]
                    && is_private
                    && given[slot] != 0
                    && self.fresh_params[slot] != given[slot]
                {
                    self.fresh_params[slot] = given[slot];
                    dirty.push(id);
                }
            }
            for id in dirty {
                self.analyse(program, calls, id);
            }
        }
    }

    fn fresh_arguments(&self, view: &View<'_>, event: u32) -> u64 {
        let call = view.unit.events_of(view.function)[at(event)].expr;
        let Expr::Call { args, .. } = view.expr(call) else {
            return 0;
        };
        let mut bits = 0;
        for (number, arg) in view.unit.exprs.parts(args).iter().take(64).enumerate() {
            let arg = view.unit.exprs.peel(*arg);
            if let Expr::Name(name) = view.expr(arg)
                && self.is_fresh(view.id, event, name)
            {
                bits |= 1 << number;
            }
        }
        bits
    }
}

fn has_locks(program: &Program<'_>, id: FnId) -> bool {
    let view = View::new(program, id);
    program.events(id).iter().any(|event| {
        event.kind == Kind::Call
            && (view.unit.named_call(event.expr).is_none_or(|(name, _)| {
                let name = view.name(name);
                program.idiom(name).lock.is_some() || program.names.bytes(name) == b"scoped_guard"
            }))
    })
}

/// The local that a plain assignment sets.
fn plain_local(view: &View<'_>, event: &Event) -> Option<Sym> {
    if event.kind != Kind::Write || event.aux == 0 {
        return None;
    }
    match view.expr(event.expr) {
        Expr::Name(name) if view.is_local(name) => Some(name),
        _ => None,
    }
}

/// Locals that are set exactly once, with the value.
fn single_definitions(events: &[Event], view: &View<'_>) -> Vec<(Sym, E)> {
    let mut defs: Vec<(Sym, E)> = Vec::new();
    let mut several: Vec<Sym> = Vec::new();
    for event in events {
        let Some(name) = plain_local(view, event) else {
            continue;
        };
        if defs.iter().any(|(known, _)| *known == name) {
            several.push(name);
        } else {
            defs.push((name, E(event.aux)));
        }
    }
    defs.retain(|(name, _)| !several.contains(name));
    defs
}

struct Run<'r, 'p> {
    flows: &'r mut Flows,
    calls: &'r Calls,
    view: View<'p>,
    events: &'r [Event],
    cfg: &'r Cfg,
    fresh_names: Vec<Sym>,
    defs: Vec<(Sym, E)>,
    operations: Vec<(u32, Operation)>,
}

#[derive(Debug, Clone, Copy)]
struct Here {
    state: State,
    fresh: u64,
}

impl Run<'_, '_> {
    fn run(&mut self) -> (FnFlow, Effect) {
        let count = self.events.len();
        let mut inputs: Vec<Option<Here>> = vec![None; count + 1];
        let params = self.flows.fresh_params[at(self.view.id.0)];
        let known = u64::from(params.count_ones());
        inputs[0] = Some(Here {
            state: State::default(),
            fresh: if known >= 64 {
                u64::MAX
            } else {
                (1 << known) - 1
            },
        });
        let mut fresh_result: Option<bool> = None;
        for position in 0..count {
            let Some(here) = inputs[position] else {
                continue;
            };
            if self.events[position].kind == Kind::Return {
                self.judge_result(position, here, &mut fresh_result);
            }
            let after = self.transfer(position, here);
            let here_id = index(position);
            for next in self.cfg.successors(here_id).collect::<Vec<_>>() {
                let edge = self.edge(here_id, next, after);
                let joined = match inputs[at(next)] {
                    None => edge,
                    Some(other) => self.join(other, edge),
                };
                inputs[at(next)] = Some(joined);
            }
        }
        let exit = inputs[count].map_or(State::default(), |here| here.state);
        let effect = Effect {
            takes: exit.must,
            frees: exit.freed_must,
            may_free: exit.freed_may,
            returns_fresh: fresh_result == Some(true),
        };
        (self.collect(&inputs[..count]), effect)
    }

    fn collect(&mut self, inputs: &[Option<Here>]) -> FnFlow {
        let states: Vec<u32> = inputs
            .iter()
            .map(|here| {
                self.flows
                    .state(here.map_or(State::default(), |here| here.state))
            })
            .collect();
        let fresh: Vec<u64> = inputs
            .iter()
            .map(|here| here.map_or(0, |here| here.fresh))
            .collect();
        FnFlow {
            states: if states.iter().all(|state| *state == 0) {
                Vec::new()
            } else {
                states
            },
            fresh: if fresh.iter().all(|bits| *bits == 0) {
                Vec::new()
            } else {
                fresh
            },
            fresh_names: std::mem::take(&mut self.fresh_names),
            operations: std::mem::take(&mut self.operations),
        }
    }

    fn judge_result(&self, position: usize, here: Here, result: &mut Option<bool>) {
        let value = self.view.unit.exprs.peel(self.events[position].expr);
        let is_fresh = match self.view.expr(value) {
            Expr::Name(name) if self.view.is_local(name) => self.is_fresh(here, name),
            // `return NULL` and `return ERR_PTR(..)` give no object.
            Expr::Name(_) | Expr::Number(_) => return,
            Expr::Call { .. } => {
                let is_error = self.view.unit.named_call(value).is_some_and(|(name, _)| {
                    self.view
                        .program
                        .names
                        .bytes(self.view.name(name))
                        .starts_with(b"ERR_")
                });
                if is_error {
                    return;
                }
                self.flows
                    .gives_fresh(&self.view, self.calls, index(position), value)
            }
            _ => false,
        };
        *result = Some(result.unwrap_or(true) && is_fresh);
    }

    fn is_fresh(&self, here: Here, name: Sym) -> bool {
        self.fresh_names
            .iter()
            .position(|known| *known == name)
            .is_some_and(|bit| here.fresh & 1 << bit != 0)
    }

    fn join(&mut self, one: Here, other: Here) -> Here {
        let locks = &mut self.flows.locks;
        Here {
            state: State {
                must: locks.intersection(one.state.must, other.state.must),
                may: locks.union(one.state.may, other.state.may),
                freed_may: locks.union(one.state.freed_may, other.state.freed_may),
                freed_must: locks.intersection(one.state.freed_must, other.state.freed_must),
            },
            fresh: one.fresh & other.fresh,
        }
    }

    fn transfer(&mut self, position: usize, mut here: Here) -> Here {
        let event = self.events[position];
        match event.kind {
            Kind::Call => {
                here.state = self.call(index(position), event, here.state);
                here.fresh = self.escape_by_call(event, here.fresh);
            }
            Kind::ScopeEnd => {
                if let Some(operation) =
                    operation(self.view, &mut self.flows.locks, &self.defs, event.expr)
                {
                    let action = LockAction::Release;
                    self.operations.push((
                        index(position),
                        Operation {
                            action,
                            ..operation
                        },
                    ));
                    here.state = self.release(here.state, operation.lock);
                }
            }
            Kind::Write if !self.fresh_names.is_empty() => {
                here.fresh = self.assign(index(position), event, here.fresh);
            }
            _ => {}
        }
        here
    }

    fn call(&mut self, position: u32, event: Event, state: State) -> State {
        if let Some(operation) = operation(self.view, &mut self.flows.locks, &self.defs, event.expr)
        {
            self.operations.push((position, operation));
            return match operation.action {
                LockAction::Acquire | LockAction::AcquireOrError => {
                    self.acquire(state, operation.lock)
                }
                LockAction::Release => self.release(state, operation.lock),
                LockAction::Try => state,
            };
        }
        let direct = self
            .calls
            .callees_at(self.view.id, position)
            .find(|call| !call.indirect);
        match direct {
            Some(call) => self.apply(position, call.callee, event.expr, state),
            None => state,
        }
    }

    /// The effect of calling `callee`.
    fn apply(&mut self, position: u32, callee: FnId, call: E, mut state: State) -> State {
        let inner = View::new(self.view.program, callee);
        if inner.function.from_macro {
            for event in inner.unit.events_of(inner.function) {
                if event.kind == Kind::Call
                    && is_unconditional(inner.unit.events_of(inner.function), event)
                    && let Some((lock, action)) = self.macro_operation(&inner, event.expr, call)
                {
                    self.operations.push((position, Operation { lock, action }));
                    state = match action {
                        LockAction::Acquire => self.acquire(state, lock),
                        LockAction::Release => self.release(state, lock),
                        _ => state,
                    };
                }
            }
            return state;
        }
        let effect = self.flows.effects[at(callee.0)];
        for lock in self.flows.locks.members(effect.frees).to_vec() {
            if let Some(lock) = self.in_callers_terms(&inner, lock, call) {
                let action = LockAction::Release;
                self.operations.push((position, Operation { lock, action }));
                state = self.release(state, lock);
            }
        }
        for lock in self.flows.locks.members(effect.takes).to_vec() {
            if let Some(lock) = self.in_callers_terms(&inner, lock, call) {
                let action = LockAction::Acquire;
                self.operations.push((position, Operation { lock, action }));
                state = self.acquire(state, lock);
            }
        }
        state
    }

    /// A lock of the callee in terms of the caller: parameters become arguments.
    fn in_callers_terms(&mut self, inner: &View<'_>, lock: Lock, call: E) -> Option<Lock> {
        let KeyParts::Local(_, name) = self.flows.locks.key(lock).parts() else {
            return Some(lock);
        };
        let locals = inner.unit.locals_of(inner.function);
        let number = locals[..at(inner.function.params)]
            .iter()
            .position(|local| inner.name(local.name) == name)?;
        let Expr::Call { args, .. } = self.view.expr(call) else {
            return None;
        };
        let arg = *self.view.unit.exprs.parts(args).get(number)?;
        let key = lock_key(&self.view, &self.defs, arg);
        let family = self.flows.locks.family(lock);
        Some(self.flows.locks.lock(self.view.program, key, family))
    }

    /// A lock operation in a macro's body, with the arguments put in.
    fn macro_operation(&mut self, inner: &View<'_>, id: E, call: E) -> Option<(Lock, LockAction)> {
        let (name, args) = inner.unit.named_call(id)?;
        let op = inner.program.idiom(inner.name(name)).lock?;
        let key = match op.argument {
            None => class_key(inner.program, op.family),
            Some(number) => {
                let given = *args.get(number)?;
                let Expr::Call { args: outer, .. } = self.view.expr(call) else {
                    return None;
                };
                let outer = self.view.unit.exprs.parts(outer);
                substitute(inner, &self.view, &self.defs, outer, given)
            }
        };
        let lock = self.flows.locks.lock(inner.program, key, op.family);
        Some((lock, op.action))
    }

    fn acquire(&mut self, state: State, lock: Lock) -> State {
        let locks = &mut self.flows.locks;
        State {
            must: locks.insert(state.must, lock),
            may: locks.insert(state.may, lock),
            ..state
        }
    }

    fn release(&mut self, state: State, lock: Lock) -> State {
        let locks = &mut self.flows.locks;
        let is_own = locks
            .members(state.may)
            .iter()
            .any(|held| held.is_same_object(lock));
        if is_own {
            return State {
                must: locks.remove(state.must, lock),
                may: locks.remove(state.may, lock),
                ..state
            };
        }
        State {
            freed_may: locks.insert(state.freed_may, lock),
            freed_must: locks.insert(state.freed_must, lock),
            ..state
        }
    }

    /// Conditional acquisition: `if (trylock(l))`, `if (lock_interruptible(l))`.
    fn edge(&mut self, from: u32, to: u32, here: Here) -> Here {
        let event = self.events[at(from)];
        let is_condition = matches!(event.kind, Kind::If | Kind::Loop);
        if !is_condition || event.expr == E::NONE {
            return here;
        }
        let is_true_edge = to == from + 1;
        let mut found = Vec::new();
        self.conditional(event.expr, true, &mut found, 0);
        let mut here = here;
        for (operation, succeeds_if_true) in found {
            let has_it = succeeds_if_true == is_true_edge;
            here.state = match (operation.action, has_it) {
                (LockAction::Try, true) => self.acquire(here.state, operation.lock),
                (LockAction::AcquireOrError, false) => self.release(here.state, operation.lock),
                _ => here.state,
            };
        }
        here
    }

    /// Lock operations whose success the condition tells, each with the outcome that means success.
    fn conditional(&mut self, id: E, sense: bool, out: &mut Vec<(Operation, bool)>, depth: u32) {
        if depth > 8 {
            return;
        }
        match self.view.expr(id) {
            Expr::Unary { op: code, of } if code == op("!") => {
                self.conditional(of, !sense, out, depth + 1);
            }
            Expr::Cast { of, .. } => self.conditional(of, sense, out, depth + 1),
            Expr::Assign { from, .. } => self.conditional(from, sense, out, depth + 1),
            Expr::Binary {
                op: code,
                left,
                right,
            } => {
                let is_zero = matches!(self.view.expr(right), Expr::Number(_) | Expr::Name(_));
                if code == op("==") && is_zero {
                    self.conditional(left, !sense, out, depth + 1);
                } else if code == op("!=") || code == op("<") {
                    self.conditional(left, sense, out, depth + 1);
                } else if (code == op("&&") && sense) || (code == op("||") && !sense) {
                    self.conditional(left, sense, out, depth + 1);
                    self.conditional(right, sense, out, depth + 1);
                }
            }
            Expr::Name(name) => {
                // `ret = mutex_lock_interruptible(..); if (ret) ..`
                let value = self.last_value(name);
                if let Some(value) = value {
                    self.conditional(value, sense, out, depth + 4);
                }
            }
            Expr::Call { .. } => {
                let wrapped = self.view.unit.named_call(id).and_then(|(name, args)| {
                    let text = self.view.program.names.bytes(self.view.name(name));
                    matches!(text, b"likely" | b"unlikely" | b"WARN_ON" | b"WARN_ON_ONCE")
                        .then(|| args.first().copied())
                        .flatten()
                });
                if let Some(inner) = wrapped {
                    return self.conditional(inner, sense, out, depth + 1);
                }
                let found = operation(self.view, &mut self.flows.locks, &self.defs, id);
                if let Some(found) = found {
                    let success = match found.action {
                        LockAction::Try => sense,
                        _ => !sense,
                    };
                    out.push((found, success));
                }
            }
            _ => {}
        }
    }

    /// The value of a local that is set by conditional lock calls only, if there is one such call.
    fn last_value(&self, name: Sym) -> Option<E> {
        let mut values = self
            .events
            .iter()
            .filter(|event| plain_local(&self.view, event) == Some(name))
            .map(|event| E(event.aux));
        let is_lock = |value: &E| {
            self.view
                .unit
                .named_call(*value)
                .is_some_and(|(callee, _)| {
                    self.view
                        .program
                        .idiom(self.view.name(callee))
                        .lock
                        .is_some_and(|op| {
                            matches!(op.action, LockAction::Try | LockAction::AcquireOrError)
                        })
                })
        };
        values.find(is_lock)
    }

    fn bit(&self, name: Sym) -> Option<u64> {
        let bit = self.fresh_names.iter().position(|known| *known == name)?;
        Some(1 << bit)
    }

    fn assign(&self, position: u32, event: Event, fresh: u64) -> u64 {
        let value = self.view.unit.exprs.peel(E(event.aux));
        if let Some(target) = plain_local(&self.view, &event) {
            let Some(bit) = self.bit(target) else {
                return fresh;
            };
            let becomes = match self.view.expr(value) {
                Expr::Name(from) => self.bit(from).is_some_and(|from| fresh & from != 0),
                _ => self
                    .flows
                    .gives_fresh(&self.view, self.calls, position, value),
            };
            return if becomes { fresh | bit } else { fresh & !bit };
        }
        // Storing the pointer somewhere shares it, unless that place is itself unknown to others.
        let holder_is_fresh = self
            .view
            .root(event.expr)
            .and_then(|root| self.bit(root))
            .is_some_and(|bit| fresh & bit != 0);
        if holder_is_fresh {
            return fresh;
        }
        match self.view.root(value).and_then(|root| self.bit(root)) {
            Some(bit) if self.is_pointer_to_root(value) => fresh & !bit,
            _ => fresh,
        }
    }

    /// `p` or `&p->field`, but not `p->field`.
    fn is_pointer_to_root(&self, value: E) -> bool {
        match self.view.expr(value) {
            Expr::Name(_) => true,
            Expr::Unary { op: code, of } if code == op("&") => self.view.is_direct(of),
            _ => false,
        }
    }

    fn escape_by_call(&self, event: Event, fresh: u64) -> u64 {
        if fresh == 0 {
            return 0;
        }
        let Some((name, args)) = self.view.unit.named_call(event.expr) else {
            return fresh;
        };
        let publishes = self.view.program.table.class("publishes").unwrap_or(0);
        if self.view.program.idiom(self.view.name(name)).classes & publishes == 0 {
            return fresh;
        }
        // Adding to a list shares the entry, if the list itself is shared; the head is no entry.
        let list_add = self.view.program.table.class("list_add").unwrap_or(0);
        let classes = self.view.program.idiom(self.view.name(name)).classes;
        let args = match args {
            [entry, head, ..] if classes & list_add != 0 => {
                let is_private = !self.view.key(*head).is_shared()
                    || self.view.root(*head) == self.view.root(*entry)
                    || self
                        .view
                        .root(*head)
                        .and_then(|root| self.bit(root))
                        .is_some_and(|bit| fresh & bit != 0);
                if is_private {
                    return fresh;
                }
                std::slice::from_ref(entry)
            }
            // Storing a pointer shares what it points to, not the place it is stored in.
            [_, stored]
                if classes & self.view.program.table.class("stores_pointer").unwrap_or(0) != 0 =>
            {
                std::slice::from_ref(stored)
            }
            _ => args,
        };
        let mut fresh = fresh;
        for arg in args {
            let arg = self.view.unit.exprs.peel(*arg);
            if self.is_pointer_to_root(arg)
                && let Some(bit) = self.view.root(arg).and_then(|root| self.bit(root))
            {
                fresh &= !bit;
            }
        }
        fresh
    }
}
