//! Locks held at each event of a function, relative to its entry, and locals that no other context knows yet.
//!
//! Each function is walked path by path (see [`super::paths`]); what a callee does to locks flows back to its
//! callers. The *must* set holds on all ways, the *may* set on some.

use rustc_hash::FxHashMap;

use super::calls::Calls;
use super::cfg::Cfg;
use super::fresh::{Fresh, Freshness, plain_local};
use super::keys::View;
use super::locks::{Lock, LockSet, Locks};
use super::operations::Operation;
use super::paths::summary::Summary;
use super::paths::{PathFact, Sets, Walk};
use super::program::{FnId, Program};
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind};
use crate::front::lex::{Sym, at, index};
use crate::idioms::LockAction;

/// What happened to locks since the entry of the function.
pub(crate) type State = Sets;

/// The analysis of one function; empty vectors mean "nothing anywhere".
#[derive(Debug, Clone, Default)]
pub(crate) struct FnFlow {
    states: Vec<u32>,
    fresh: Freshness,
    /// Lock operations, own and of callees, by event.
    operations: Vec<(u32, Operation)>,
    facts: Vec<PathFact>,
}

/// The analysis of all functions.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub(crate) locks: Locks,
    states: Vec<State>,
    state_ids: FxHashMap<State, u32>,
    flows: Vec<FnFlow>,
    pub(crate) summaries: Vec<Summary>,
    /// Locks of the caller that each function releases on some way at least.
    pub(crate) may_free: Vec<LockSet>,
    /// Bit set of parameters that every caller gives a fresh object.
    fresh_params: Vec<u64>,
    /// Functions with more paths than are kept.
    pub(crate) cut: Vec<FnId>,
}

/// Rounds in which effects travel from callees to callers.
const ROUNDS: usize = 4;

impl Flows {
    pub(crate) fn new(program: &Program<'_>, calls: &Calls) -> Self {
        let count = program.functions.len();
        let mut flows = Self {
            flows: vec![FnFlow::default(); count],
            summaries: vec![Summary::default(); count],
            may_free: vec![LockSet::EMPTY; count],
            fresh_params: vec![0; count],
            ..Self::default()
        };
        flows.state(State::default());
        let allocates = program.table.class("allocates").unwrap_or(0);
        let mut dirty: Vec<FnId> = program
            .function_ids()
            .filter(|id| has_locks(program, calls, *id) || calls.classes[at(id.0)] & allocates != 0)
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
        flows.cut.sort_unstable();
        flows.cut.dedup();
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

    pub(super) fn fresh_params(&self, id: FnId) -> u64 {
        self.fresh_params[at(id.0)]
    }

    /// Whether `name` holds an object just before `event` that no other context knows.
    pub(crate) fn is_fresh(&self, id: FnId, event: u32, name: Sym) -> bool {
        let fresh = &self.flows[at(id.0)].fresh;
        let Some(bit) = fresh.names.iter().position(|known| *known == name) else {
            return false;
        };
        fresh
            .by_event
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

    /// All lock operations of a function, own and of callees.
    pub(crate) fn operations(&self, id: FnId) -> &[(u32, Operation)] {
        &self.flows[at(id.0)].operations
    }

    /// What was found on single paths of the function.
    pub(crate) fn facts(&self, id: FnId) -> &[PathFact] {
        &self.flows[at(id.0)].facts
    }

    /// Whether the function itself takes `lock` somewhere.
    pub(crate) fn acquires(&self, id: FnId, lock: Lock) -> bool {
        self.operations(id).iter().any(|(_, operation)| {
            operation.lock.is_same_object(lock) && operation.action != LockAction::Release
        })
    }

    pub(crate) fn has_operations(&self, id: FnId) -> bool {
        !self.operations(id).is_empty()
    }

    /// Analyses one function; true if its effect on callers changed.
    fn analyse(&mut self, program: &Program<'_>, calls: &Calls, id: FnId) -> bool {
        let view = View::new(program, id);
        let events = program.events(id);
        if events.is_empty() {
            return false;
        }
        let cfg = Cfg::new(events);
        let names = self.fresh_names(&view, calls, events);
        let fresh = Fresh {
            flows: self,
            calls,
            view,
            events,
            cfg: &cfg,
            names,
        }
        .run();
        let mut changed = self.flows[at(id.0)].fresh.result != fresh.result;
        let mut flow = FnFlow {
            fresh,
            ..FnFlow::default()
        };
        if self.may_change_locks(program, calls, id) {
            changed |= self.walk(&view, calls, events, &cfg, &mut flow);
        }
        self.flows[at(id.0)] = flow;
        changed
    }

    fn walk(
        &mut self,
        view: &View<'_>,
        calls: &Calls,
        events: &[Event],
        cfg: &Cfg,
        flow: &mut FnFlow,
    ) -> bool {
        let walk = Walk::new(*view, events, cfg, calls, &mut self.locks, &self.summaries);
        let walked = walk.run();
        if walked.is_cut {
            self.cut.push(view.id);
        }
        flow.operations = walked.operations;
        flow.facts = walked.facts;
        if walked.sets.iter().any(|sets| *sets != State::default()) {
            flow.states = walked
                .sets
                .into_iter()
                .map(|sets| self.state(sets))
                .collect();
        }
        let slot = at(view.id.0);
        let changed =
            self.summaries[slot] != walked.summary || self.may_free[slot] != walked.may_free;
        self.summaries[slot] = walked.summary;
        self.may_free[slot] = walked.may_free;
        changed
    }

    /// Whether the function or something it calls touches a lock.
    fn may_change_locks(&self, program: &Program<'_>, calls: &Calls, id: FnId) -> bool {
        has_locks(program, calls, id)
            || calls.of(id).iter().any(|call| {
                let summary = &self.summaries[at(call.callee.0)];
                !call.indirect
                    && (!summary.is_plain()
                        || !summary.passes.is_empty()
                        || !summary.doubts.is_empty())
            })
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

    /// Whether `value` is a call whose result no other context knows.
    pub(super) fn gives_fresh(
        &self,
        view: &View<'_>,
        calls: &Calls,
        before: u32,
        value: E,
    ) -> bool {
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
                    .any(|call| !call.indirect && self.flows[at(call.callee.0)].fresh.result)
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
                let has_fresh = !self.flows[at(id.0)].fresh.names.is_empty();
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

fn has_locks(program: &Program<'_>, calls: &Calls, id: FnId) -> bool {
    let view = View::new(program, id);
    program.events(id).iter().any(|event| {
        event.kind == Kind::Call
            && (view.unit.named_call(event.expr).is_none_or(|(name, _)| {
                let name = view.name(name);
                program.idiom(name).lock.is_some()
                    || program.names.bytes(name) == b"scoped_guard"
                    || calls.named_lock(name).is_some()
            }))
    })
}
