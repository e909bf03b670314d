//! The walk itself: one ascending pass over the events, several paths at each of them.

use super::eval::Eval;
use super::judge::{self, Exit, Leaks, PathFact};
use super::state::{self, State};
use super::summary::{Summary, Touched};
use super::uses::Uses;
use super::value::{ANY, Node, Value};
use crate::analyse::calls::Calls;
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::View;
use crate::analyse::locks::{Lock, LockSet, Locks};
use crate::analyse::operations::Operation;
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind, TESTS_LAST, TOP, UPDATE};
use crate::front::lex::{Sym, at, index};
use crate::idioms::{LockAction, Table};

/// Locks released inside a function that callers are told about.
const RELEASES_MAX: usize = 16;

/// Locks on the ways to one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Sets {
    /// Held on all ways, on some.
    pub(crate) must: LockSet,
    pub(crate) may: LockSet,
    /// Locks of the caller released on some way, on all ways.
    pub(crate) freed_may: LockSet,
    pub(crate) freed_must: LockSet,
}

/// What the walk found out.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// One per event.
    pub(crate) sets: Vec<Sets>,
    /// Lock operations, own and of callees, by event.
    pub(crate) operations: Vec<(u32, Operation)>,
    pub(crate) summary: Summary,
    pub(crate) facts: Vec<PathFact>,
    /// Released on some way, among locks of the caller.
    pub(crate) may_free: LockSet,
    /// There were more paths than are kept.
    pub(crate) is_cut: bool,
}

/// Bits of the classes that every call is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classes {
    pub(super) never_returns: u128,
    pub(super) stops_if: u128,
    pub(super) stops_unless: u128,
    pub(super) sleeps: u128,
    pub(super) frees_now: u128,
    pub(super) rcu_lookup: u128,
    pub(super) lock_lookup: u128,
}

impl Classes {
    fn new(table: &Table) -> Self {
        let bit = |class: &str| table.class(class).unwrap_or(0);
        Self {
            never_returns: bit("never_returns"),
            stops_if: bit("stops_if"),
            stops_unless: bit("stops_unless"),
            sleeps: bit("sleeps"),
            frees_now: bit("frees_now"),
            rcu_lookup: bit("rcu_lookup"),
            lock_lookup: bit("lock_lookup"),
        }
    }
}

/// Walks one function.
#[derive(Debug)]
pub(crate) struct Walk<'r, 'p> {
    pub(super) eval: Eval<'p>,
    pub(super) events: &'r [Event],
    cfg: &'r Cfg,
    joins: Vec<bool>,
    pub(super) uses: Uses,
    pub(super) calls: &'r Calls,
    pub(super) locks: &'r mut Locks,
    pub(super) summaries: &'r [Summary],
    pub(super) classes: Classes,
    pub(super) operations: Vec<(u32, Operation)>,
    pub(super) facts: Vec<PathFact>,
    pub(super) passes: Vec<Touched>,
    pub(super) doubts: Vec<Lock>,
    /// Where each lock was taken and released again.
    pub(super) pairs: Vec<(u32, u32)>,
    /// The same, where the caller's lock was not given away before.
    pub(super) own_pairs: Vec<(u32, Lock, Value)>,
    /// Releases of a lock that was not taken on the path.
    pub(super) unheld: Vec<(u32, Lock, Value)>,
    exits: Vec<Exit>,
    is_cut: bool,
}

impl<'r, 'p> Walk<'r, 'p> {
    pub(crate) fn new(
        view: View<'p>,
        events: &'r [Event],
        cfg: &'r Cfg,
        calls: &'r Calls,
        locks: &'r mut Locks,
        summaries: &'r [Summary],
    ) -> Self {
        Self {
            eval: Eval::new(view),
            events,
            cfg,
            joins: cfg.joins(),
            uses: Uses::new(&view, events),
            calls,
            locks,
            summaries,
            classes: Classes::new(view.program.table),
            operations: Vec::new(),
            facts: Vec::new(),
            passes: Vec::new(),
            doubts: Vec::new(),
            pairs: Vec::new(),
            own_pairs: Vec::new(),
            unheld: Vec::new(),
            exits: Vec::new(),
            is_cut: false,
        }
    }

    pub(super) fn view(&self) -> View<'p> {
        self.eval.view
    }

    pub(crate) fn run(mut self) -> Walked {
        let count = self.events.len();
        let mut inputs: Vec<Vec<State>> = vec![Vec::new(); count + 1];
        inputs[0].push(State::new());
        let mut sets = Vec::with_capacity(count);
        for position in 0..count {
            let states = std::mem::take(&mut inputs[position]);
            let known = if states.is_empty() {
                self.unreached(position, &sets)
            } else {
                self.sets(&states)
            };
            sets.push(known);
            for state in states {
                self.step(index(position), state, &mut inputs);
            }
        }
        for state in std::mem::take(&mut inputs[count]) {
            self.leave(index(count), E::NONE, state);
        }
        self.operations
            .sort_by_key(|(event, operation)| (*event, operation.lock, operation.action));
        self.operations.dedup();
        let mut may_free = LockSet::EMPTY;
        for exit in &self.exits {
            may_free = self.locks.union(may_free, exit.freed_set);
        }
        let mut summary = judge::summary(
            &self.eval,
            self.locks,
            self.events,
            &self.exits,
            &self.passes,
        );
        summary.releases = self.released_locks();
        self.doubts.sort_unstable();
        summary.doubts = std::mem::take(&mut self.doubts);
        self.pairs.sort_unstable();
        self.pairs.dedup();
        let leaks = Leaks {
            eval: &self.eval,
            locks: self.locks,
            events: self.events,
            cfg: self.cfg,
            exits: &self.exits,
            pairs: &self.pairs,
        };
        self.facts.extend(leaks.find());
        self.facts.extend(judge::unheld_releases(
            self.events,
            &self.own_pairs,
            &self.unheld,
        ));
        self.facts.sort_unstable();
        self.facts.dedup();
        Walked {
            sets,
            operations: self.operations,
            summary,
            facts: self.facts,
            may_free,
            is_cut: self.is_cut,
        }
    }

    /// A place that no kept path reaches is taken to be like what stands before it on the same level, or around it.
    fn unreached(&self, position: usize, sets: &[Sets]) -> Sets {
        let here = self.events[position];
        let beside = (0..position).rev().find(|other| {
            let other = self.events[*other];
            other.parent == here.parent && other.arm == here.arm
        });
        let around = (here.parent != TOP).then(|| at(here.parent));
        beside
            .or(around)
            .and_then(|before| sets.get(before).copied())
            .unwrap_or_default()
    }

    fn released_locks(&self) -> Vec<Lock> {
        let released = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.action == LockAction::Release)
            .map(|(_, operation)| operation.lock);
        let mut released: Vec<Lock> = released.collect();
        released.sort_unstable();
        released.dedup();
        released.truncate(RELEASES_MAX);
        released
    }

    fn sets(&mut self, states: &[State]) -> Sets {
        let Some((first, rest)) = states.split_first() else {
            return Sets::default();
        };
        let mut sets = Sets {
            must: first.sure_set,
            may: first.held_set,
            freed_may: first.freed_set,
            freed_must: first.freed_set,
        };
        for state in rest {
            sets.must = self.locks.intersection(sets.must, state.sure_set);
            sets.may = self.locks.union(sets.may, state.held_set);
            sets.freed_may = self.locks.union(sets.freed_may, state.freed_set);
            sets.freed_must = self.locks.intersection(sets.freed_must, state.freed_set);
        }
        sets
    }

    fn step(&mut self, position: u32, state: State, inputs: &mut [Vec<State>]) {
        let event = self.events[at(position)];
        match event.kind {
            Kind::If => self.branch(position, event, state, inputs),
            Kind::Loop => self.enter_loop(position, event, state, inputs),
            Kind::Switch => self.switch(position, event, state, inputs),
            Kind::Return => self.leave(position, event.expr, state),
            _ => {
                for state in self.transfer(position, event, state) {
                    for state in self.end_of_condition(position, event, state) {
                        self.follow(position, state, inputs);
                    }
                }
            }
        }
    }

    /// Hands the path on to all successors.
    fn follow(&mut self, position: u32, state: State, inputs: &mut [Vec<State>]) {
        let mut next = self.cfg.successors(position).peekable();
        let mut targets = Vec::new();
        while let Some(target) = next.next() {
            targets.push((target, next.peek().is_none()));
        }
        let mut state = Some(state);
        for (target, is_last) in targets {
            let own = if is_last { state.take() } else { state.clone() };
            let Some(own) = own else { continue };
            if self.events[at(position)].parent == TOP {
                self.push(target, own, inputs);
                continue;
            }
            for own in self.leave_loops(position, target, own) {
                self.push(target, own, inputs);
            }
        }
    }

    /// Leaves the loops between `from` and `target`: their conditions are false, their variables unknown.
    fn leave_loops(&mut self, from: u32, target: u32, state: State) -> Vec<State> {
        let mut states = vec![state];
        if matches!(
            self.events[at(from)].kind,
            Kind::Break | Kind::Goto | Kind::Return
        ) {
            return states;
        }
        let mut parent = self.events[at(from)].parent;
        while parent != TOP {
            let head = self.events[at(parent)];
            if head.kind == Kind::Loop && target >= head.end {
                let mut next = Vec::new();
                for mut state in states {
                    self.set_loop_variable(head.end, head, &mut state);
                    next.extend(self.assume_loop(head, state, false));
                }
                states = next;
            }
            parent = head.parent;
        }
        states
    }

    fn push(&mut self, target: u32, mut state: State, inputs: &mut [Vec<State>]) {
        let states = &mut inputs[at(target)];
        if self.joins[at(target)] {
            state.forget(&self.uses, target);
        }
        if !state::add(states, state, &mut self.eval.values, target) {
            self.is_cut = true;
        }
    }

    fn branch(&mut self, position: u32, event: Event, state: State, inputs: &mut [Vec<State>]) {
        let then = position + 1;
        if then >= event.aux {
            // An empty branch: both ways lead to the same place.
            return self.follow(position, state, inputs);
        }
        let targets: Vec<u32> = self.cfg.successors(position).collect();
        for target in targets {
            for state in self.eval.assume(state.clone(), event.expr, target == then) {
                for state in self.leave_loops(position, target, state) {
                    self.push(target, state, inputs);
                }
            }
        }
    }

    fn enter_loop(&mut self, position: u32, event: Event, state: State, inputs: &mut [Vec<State>]) {
        let tests_first = event.flags & TESTS_LAST == 0;
        let targets: Vec<u32> = self.cfg.successors(position).collect();
        for target in targets {
            let mut state = state.clone();
            if target == position + 1 && target < event.end {
                self.set_loop_variable(position, event, &mut state);
                if tests_first && !self.has_condition_events(position) {
                    for state in self.assume_loop(event, state, true) {
                        self.push(target, state, inputs);
                    }
                    continue;
                }
                self.push(target, state, inputs);
                continue;
            }
            for state in self.loop_condition(position, event, state) {
                for state in self.assume_loop(event, state, false) {
                    self.push(target, state, inputs);
                }
            }
        }
    }

    /// A loop's condition is true inside and false behind it; a macro's head is no condition.
    fn assume_loop(&mut self, event: Event, state: State, truth: bool) -> Vec<State> {
        if self.is_macro_loop(event) {
            return vec![state];
        }
        self.eval.assume(state, event.expr, truth)
    }

    fn is_macro_loop(&self, event: Event) -> bool {
        let view = self.view();
        view.unit.named_call(event.expr).is_some_and(|(name, _)| {
            view.program
                .table
                .is_loop(view.program.names.bytes(view.name(name)))
        })
    }

    fn has_condition_events(&self, position: u32) -> bool {
        self.events
            .get(at(position) + 1)
            .is_some_and(|next| next.parent == position && next.arm == 0)
    }

    /// Runs the events of a loop's condition for the way that does not enter the loop.
    fn loop_condition(&mut self, position: u32, event: Event, state: State) -> Vec<State> {
        let mut states = vec![state];
        if event.flags & TESTS_LAST != 0 {
            return states;
        }
        let mut here = position + 1;
        while here < event.end
            && self.events[at(here)].parent == position
            && self.events[at(here)].arm == 0
        {
            let inner = self.events[at(here)];
            if matches!(inner.kind, Kind::If | Kind::Loop | Kind::Switch) {
                break;
            }
            let mut next = Vec::new();
            for state in states {
                next.extend(self.transfer(here, inner, state));
            }
            states = next;
            here += 1;
        }
        states
    }

    /// After the last event of a loop's condition the condition is known.
    fn end_of_condition(&mut self, position: u32, event: Event, state: State) -> Vec<State> {
        if event.arm != 0 || event.parent == TOP {
            return vec![state];
        }
        let head = self.events[at(event.parent)];
        let is_last = self
            .events
            .get(at(position) + 1)
            .is_none_or(|next| next.parent != event.parent || next.arm != 0);
        if head.kind != Kind::Loop || !is_last {
            return vec![state];
        }
        self.assume_loop(head, state, head.flags & TESTS_LAST == 0)
    }

    fn set_loop_variable(&mut self, position: u32, event: Event, state: &mut State) {
        let view = self.view();
        if !self.is_macro_loop(event) {
            return;
        }
        let Some((_, args)) = view.unit.named_call(event.expr) else {
            return;
        };
        for (number, arg) in args.iter().take(3).enumerate() {
            if let Expr::Name(name) = view.expr(*arg)
                && view.is_local(name)
                && (number == 0 || view.param(name).is_none())
            {
                self.set_unknown(position, index(number) + 1, name, state);
                self.borrow_loop_variable(event.expr, name, state);
            }
        }
    }

    pub(super) fn set_unknown(&mut self, position: u32, part: u32, local: Sym, state: &mut State) {
        let value = self.eval.values.add(Node::Result(position, part));
        state.set_local(local, value, E::NONE);
    }

    fn switch(&mut self, position: u32, event: Event, state: State, inputs: &mut [Vec<State>]) {
        let targets: Vec<u32> = self.cfg.successors(position).collect();
        for target in targets {
            let case = self.events.get(at(target)).copied();
            let case = case.filter(|case| case.kind == Kind::Case && case.expr != E::NONE);
            let state = match case {
                Some(case) => self.eval.assume_case(state.clone(), event.expr, case.expr),
                None => Some(state.clone()),
            };
            // That no case fits is seldom meant to happen.
            let is_no_case = self
                .events
                .get(at(target))
                .is_none_or(|next| next.kind != Kind::Case);
            let state = state.map(|mut state| {
                state.joined |= is_no_case;
                state.unlikely |= is_no_case;
                state
            });
            if let Some(state) = state {
                self.push(target, state, inputs);
            }
        }
    }

    fn leave(&mut self, position: u32, expr: E, state: State) {
        let mut state = state;
        let result = (expr != E::NONE).then(|| self.eval.value(&state, expr));
        let signs = result.map_or(ANY, |value| self.eval.signs(&state, value));
        state.held.retain(|held| !held.lock.is_scoped());
        let exit = Exit {
            event: position,
            signs,
            is_void: expr == E::NONE,
            result,
            unlikely: state.unlikely,
            held: state.held,
            freed: state.freed,
            done: state.done,
            freed_set: state.freed_set,
        };
        if !self.exits.contains(&exit) {
            self.exits.push(exit);
        }
    }

    fn transfer(&mut self, position: u32, event: Event, mut state: State) -> Vec<State> {
        match event.kind {
            Kind::Call => return self.call(position, event, state),
            Kind::ScopeEnd => self.end_scope(position, event, &mut state),
            Kind::Write => {
                self.check_use(position, event, &state);
                self.write(position, event, &mut state);
            }
            Kind::Read => self.check_use(position, event, &state),
            _ => {}
        }
        vec![state]
    }

    fn end_scope(&mut self, position: u32, event: Event, state: &mut State) {
        if let Some((operation, instance)) = self.operation(state, event.expr) {
            self.note(position, operation.lock, LockAction::Release);
            self.release(position, operation.lock, instance, state);
        }
    }

    fn write(&mut self, position: u32, event: Event, state: &mut State) {
        let view = self.view();
        let target = view.unit.exprs.peel(event.expr);
        let is_plain = event.flags & (UPDATE | crate::front::event::BY_CALL) == 0;
        let value = if is_plain && event.aux != 0 {
            self.eval.value(state, E(event.aux))
        } else {
            self.eval.values.add(Node::Result(position, 0))
        };
        match view.expr(target) {
            Expr::Name(name) if view.is_local(name) => {
                let source = if is_plain { E(event.aux) } else { E::NONE };
                state.set_local(name, value, source);
            }
            _ => {
                self.mark_written(target, state);
                let address = self.eval.address(state, target);
                state.store(address, value);
            }
        }
    }
}
