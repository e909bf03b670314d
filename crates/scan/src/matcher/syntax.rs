//! Matches the statements of one `fun` of a pattern against one function.
//!
//! Statements match in order; code between them is ignored, except what `\{..}` excludes. Order means
//! that control can get from one to the next without going round a loop.

use std::cell::{OnceCell, RefCell};

use rustc_hash::FxHashMap;

use super::{Bound, Engine, Partial};
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::{Key, View};
use crate::analyse::locks::Lock;
use crate::analyse::program::{EventId, FnId};
use crate::front::ast::E;
use crate::front::event::{Event, Kind, TOP, UPDATE};
use crate::front::lex::{at, index};
use crate::idioms::{LockAction, glob_matches};
use crate::pdl::ast::{Args, Callee, Name, Stmt, StmtKind};

/// Partial matches kept at a time in one function.
const STATES_MAX: usize = 64;

pub(super) struct Matcher<'e, 'p> {
    pub(super) engine: &'e Engine<'p>,
    pub(super) view: View<'e>,
    pub(super) id: FnId,
    pub(super) events: &'e [Event],
    cfg: OnceCell<Cfg>,
    /// What was asked about the order of events, by the earlier one.
    reached: RefCell<FxHashMap<u32, Box<[bool]>>>,
    sub: usize,
}

#[derive(Debug, Clone)]
pub(super) struct State<'s> {
    /// The last matched event.
    pub(super) last: Option<u32>,
    /// The next match is not before this.
    floor: u32,
    excluded: Vec<&'s [Stmt]>,
    partial: Partial,
}

impl<'e, 'p> Matcher<'e, 'p> {
    pub(super) fn new(engine: &'e Engine<'p>, id: FnId, sub: usize) -> Self {
        Self {
            engine,
            view: View::new(engine.program, id),
            id,
            events: engine.program.events(id),
            cfg: OnceCell::new(),
            reached: RefCell::default(),
            sub,
        }
    }

    fn cfg(&self) -> &Cfg {
        self.cfg.get_or_init(|| Cfg::new(self.events))
    }

    /// Whether control can get from one event to a later one. A search asks this for few of the former and
    /// many of the latter.
    fn reaches(&self, from: u32, to: u32) -> bool {
        let mut reached = self.reached.borrow_mut();
        let later = reached
            .entry(from)
            .or_insert_with(|| self.cfg().reached_from(from));
        to > from && later[at(to - from)]
    }

    pub(super) fn place(&self, event: u32) -> EventId {
        EventId {
            function: self.id,
            event,
        }
    }

    /// All matches of `body` in the whole function.
    pub(super) fn body(&self, body: &[Stmt], partial: Partial) -> Vec<Partial> {
        let end = index(self.events.len());
        self.sequence(body, 0, end, None, partial)
            .into_iter()
            .map(|state| state.partial)
            .collect()
    }

    /// Matches of a single statement at one event.
    pub(super) fn at(&self, stmt: &Stmt, event: u32, partial: &Partial) -> Vec<Partial> {
        if !may_begin(stmt, self.events[at(event)].kind) {
            return Vec::new();
        }
        let state = State {
            last: None,
            floor: 0,
            excluded: Vec::new(),
            partial: partial.clone(),
        };
        self.statement(stmt, event, index(self.events.len()), &state)
            .into_iter()
            .map(|state| state.partial)
            .collect()
    }

    pub(super) fn sequence<'s>(
        &self,
        stmts: &'s [Stmt],
        low: u32,
        high: u32,
        last: Option<u32>,
        partial: Partial,
    ) -> Vec<State<'s>> {
        let mut states = vec![State {
            last,
            floor: low,
            excluded: Vec::new(),
            partial,
        }];
        for stmt in stmts {
            if let StmtKind::Exclude(inner) = &stmt.kind {
                states
                    .iter_mut()
                    .for_each(|state| state.excluded.push(inner));
                continue;
            }
            let mut next = Vec::new();
            for state in &states {
                for event in state.floor..high {
                    if next.len() >= STATES_MAX {
                        break;
                    }
                    self.step(stmt, event, high, state, &mut next);
                }
            }
            states = next;
            if states.is_empty() {
                return states;
            }
        }
        states.retain(|state| !self.is_excluded(state, state.floor, high, None));
        states
    }

    fn step<'s>(
        &self,
        stmt: &'s Stmt,
        event: u32,
        high: u32,
        state: &State<'s>,
        out: &mut Vec<State<'s>>,
    ) {
        let results = self.statement(stmt, event, high, state);
        if results.is_empty() {
            return;
        }
        let is_ordered = state.last.is_none_or(|last| self.reaches(last, event));
        if is_ordered && !self.is_excluded(state, state.floor, event, Some(event)) {
            out.extend(results);
        }
    }

    /// Whether an excluded statement stands between the last match and `to`, on a way from one to the other.
    fn is_excluded(&self, state: &State<'_>, from: u32, to: u32, target: Option<u32>) -> bool {
        if state.excluded.is_empty() {
            return false;
        }
        let inner = State {
            last: None,
            floor: from,
            excluded: Vec::new(),
            partial: state.partial.clone(),
        };
        (from..to).any(|event| {
            state.excluded.iter().any(|stmts| {
                self.matches_excluded(stmts, event, to, &inner)
                    && state.last.is_none_or(|last| self.reaches(last, event))
                    && target.is_none_or(|target| self.reaches(event, target))
            })
        })
    }

    fn matches_excluded(&self, stmts: &[Stmt], event: u32, to: u32, state: &State<'_>) -> bool {
        let Some((first, rest)) = stmts.split_first() else {
            return false;
        };
        if let StmtKind::If { cond, then, .. } = &first.kind
            && then.is_empty()
            && self.tests_again(cond, event, &state.partial)
        {
            return true;
        }
        let mut results = self.statement(first, event, to, state);
        for stmt in rest {
            let mut next = Vec::new();
            for state in &results {
                for event in state.floor..to {
                    self.step(stmt, event, to, state, &mut next);
                }
            }
            results = next;
        }
        !results.is_empty()
    }

    /// Whether `event` looks at what `$cond` looked at: any condition, or a call that tests it inside.
    fn tests_again(&self, cond: &Name, event: u32, partial: &Partial) -> bool {
        let Name::Variable(number) = cond else {
            return false;
        };
        let Some(bound) = &partial.variables[*number] else {
            return false;
        };
        let keys = bound.keys();
        let here = self.events[at(event)];
        match here.kind {
            Kind::Read | Kind::Write => {
                let is_test = here.flags & (crate::front::event::IN_CONDITION | UPDATE) != 0;
                is_test && keys.contains(&self.engine.accesses.key(self.place(event)))
            }
            Kind::Call => self.engine.calls.callees_at(self.id, event).any(|call| {
                let events = self.engine.program.events(call.callee);
                events.iter().enumerate().any(|(position, inner)| {
                    inner.kind == Kind::Read
                        && keys.contains(&self.engine.accesses.key(EventId {
                            function: call.callee,
                            event: index(position),
                        }))
                })
            }),
            _ => false,
        }
    }

    /// Matches of `stmt` that begin at `event`.
    fn statement<'s>(
        &self,
        stmt: &'s Stmt,
        event: u32,
        high: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let here = self.events[at(event)];
        match &stmt.kind {
            StmtKind::If {
                cond,
                then,
                other,
                or_loop,
            } => {
                if here.kind == Kind::If {
                    let Some(partial) = self.bind_condition(stmt, cond, event, state) else {
                        return Vec::new();
                    };
                    return self.branches(then, other.as_deref(), event, high, &partial);
                }
                if self.is_disguised_if(event, then, other.as_deref()) {
                    return self.disguised_if(stmt, cond, then, event, state);
                }
                if *or_loop && here.kind == Kind::Loop && here.expr != E::NONE {
                    return self.looped(stmt, cond, then, event, state);
                }
                Vec::new()
            }
            StmtKind::Loop { cond, body } if here.kind == Kind::Loop => {
                self.looped(stmt, cond, body, event, state)
            }
            StmtKind::Break if here.kind == Kind::Break => self.simple(stmt, event, state),
            StmtKind::Continue if here.kind == Kind::Continue => self.simple(stmt, event, state),
            StmtKind::Leave if self.leaves(event, &state.partial) => {
                self.simple(stmt, event, state)
            }
            StmtKind::Return(value) if here.kind == Kind::Return => {
                let bound = self.condition(event, here.expr);
                self.with(stmt, event, state, value, bound)
            }
            StmtKind::Lock { lock, holding } => {
                self.lock(stmt, lock, holding.as_ref(), event, state)
            }
            StmtKind::TryLock(lock) => self.lock_action(stmt, lock, event, state, LockAction::Try),
            StmtKind::Unlock(lock) => {
                self.lock_action(stmt, lock, event, state, LockAction::Release)
            }
            StmtKind::Read(name)
                if here.kind == Kind::Read
                    || (here.kind == Kind::Write && here.flags & UPDATE != 0) =>
            {
                self.access(stmt, name, event, state)
            }
            StmtKind::Write(name) if here.kind == Kind::Write => {
                self.access(stmt, name, event, state)
            }
            StmtKind::Update(name) if here.kind == Kind::Write && here.flags & UPDATE != 0 => {
                self.access(stmt, name, event, state)
            }
            StmtKind::Access(name) if matches!(here.kind, Kind::Read | Kind::Write) => {
                self.access(stmt, name, event, state)
            }
            StmtKind::Update(name) if here.kind == Kind::Call => {
                self.wrapped_update(stmt, name, event, state)
            }
            StmtKind::Write(name) if here.kind == Kind::Call && state.last.is_some() => {
                self.wrapped_writes(stmt, name, event, state)
            }
            StmtKind::Call {
                callee,
                args,
                result,
            } if here.kind == Kind::Call => self.call(stmt, callee, args, result, event, state),
            _ => Vec::new(),
        }
    }

    /// Whether `event` leaves the loop that was matched around it.
    fn leaves(&self, event: u32, partial: &Partial) -> bool {
        let here = self.events[at(event)];
        let inside = |head: u32| (head..self.events[at(head)].end).contains(&event);
        let matched = partial.trace.iter().rev().find_map(|(_, place)| {
            let is_loop = self
                .events
                .get(at(place.event))
                .is_some_and(|head| head.kind == Kind::Loop);
            (place.function == self.id && is_loop && inside(place.event)).then_some(place.event)
        });
        match here.kind {
            Kind::Return => true,
            Kind::Break => {
                let mut parent = here.parent;
                while parent != TOP
                    && !matches!(self.events[at(parent)].kind, Kind::Loop | Kind::Switch)
                {
                    parent = self.events[at(parent)].parent;
                }
                matched.is_none_or(|head| head == parent)
            }
            Kind::Goto => {
                let label = self
                    .events
                    .iter()
                    .position(|other| other.kind == Kind::Label && other.aux == here.aux);
                matched.is_none_or(|head| {
                    label.is_none_or(|label| {
                        !(head..self.events[at(head)].end).contains(&index(label))
                    })
                })
            }
            _ => false,
        }
    }

    fn advance<'s>(&self, stmt: &Stmt, event: u32, mut partial: Partial) -> State<'s> {
        let place = self.place(event);
        if let Some(label) = stmt.label {
            partial.labels[label] = Some(place);
        }
        partial.trace.push((self.sub, place));
        State {
            last: Some(event),
            floor: event + 1,
            excluded: Vec::new(),
            partial,
        }
    }

    fn simple<'s>(&self, stmt: &Stmt, event: u32, state: &State<'s>) -> Vec<State<'s>> {
        vec![self.advance(stmt, event, state.partial.clone())]
    }

    pub(super) fn with<'s>(
        &self,
        stmt: &Stmt,
        event: u32,
        state: &State<'s>,
        name: &Name,
        bound: Bound,
    ) -> Vec<State<'s>> {
        match self.bind(&state.partial, name, bound) {
            Some(partial) => vec![self.advance(stmt, event, partial)],
            None => Vec::new(),
        }
    }

    pub(super) fn bind_condition(
        &self,
        stmt: &Stmt,
        cond: &Name,
        event: u32,
        state: &State<'_>,
    ) -> Option<Partial> {
        let expr = self.events[at(event)].expr;
        // A second test of what is known already must name it.
        let is_known =
            matches!(cond, Name::Variable(number) if state.partial.variables[*number].is_some());
        let bound = if is_known {
            self.plain_condition(event, expr)
        } else {
            self.condition(event, expr)
        };
        let partial = self.bind(&state.partial, cond, bound)?;
        Some(self.advance(stmt, event, partial).partial)
    }

    /// The branches of an `if`: as written, swapped, and with the rest of the block as the other branch.
    fn branches<'s>(
        &self,
        then: &'s [Stmt],
        other: Option<&'s [Stmt]>,
        event: u32,
        high: u32,
        partial: &Partial,
    ) -> Vec<State<'s>> {
        let here = self.events[at(event)];
        let run = |stmts: &'s [Stmt], low: u32, high: u32, partial: Partial| {
            self.sequence(stmts, low, high, Some(event), partial)
        };
        let mut out = Vec::new();
        if let Some(other) = other {
            for (first, second) in [
                ((event + 1, here.aux), (here.aux, here.end)),
                ((here.aux, here.end), (event + 1, here.aux)),
            ] {
                for state in run(then, first.0, first.1, partial.clone()) {
                    out.extend(run(other, second.0, second.1, state.partial));
                }
            }
        } else {
            out.extend(run(then, event + 1, here.aux, partial.clone()));
            if here.aux < here.end && !then.is_empty() {
                out.extend(run(then, here.aux, here.end, partial.clone()));
            }
        }
        for state in &mut out {
            state.floor = here.end;
            // A branch that leaves does not lead on, but the other one does.
            let leaves = state.last.is_some_and(|last| {
                matches!(
                    self.events[at(last)].kind,
                    Kind::Return | Kind::Goto | Kind::Break | Kind::Continue
                )
            });
            if leaves {
                state.last = Some(event);
            }
        }
        // `if (!c) return;` makes the rest of the block depend on `c`.
        let leaves = here.aux == here.end && self.never_falls_through(event);
        if other.is_none() && leaves && !then.is_empty() {
            let mut rest = run(then, here.end, high, partial.clone());
            for state in &mut rest {
                state.floor = state.last.map_or(here.end, |last| last + 1);
            }
            out.extend(rest);
        }
        out
    }

    /// Whether the then-branch of the `if` at `event` always leaves the block.
    fn never_falls_through(&self, event: u32) -> bool {
        let here = self.events[at(event)];
        here.aux > event + 1
            && matches!(
                self.events[at(here.aux - 1)].kind,
                Kind::Return | Kind::Goto | Kind::Break | Kind::Continue
            )
            && self.events[at(here.aux - 1)].parent == event
    }

    fn looped<'s>(
        &self,
        stmt: &Stmt,
        cond: &Name,
        body: &'s [Stmt],
        event: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let here = self.events[at(event)];
        let Some(partial) = self.bind_condition(stmt, cond, event, state) else {
            return Vec::new();
        };
        let mut out = self.sequence(body, event + 1, here.end, Some(event), partial);
        for state in &mut out {
            state.floor = here.end;
            // Whatever left the loop, control goes on behind it.
            state.last = Some(event);
        }
        out
    }

    fn lock_action<'s>(
        &self,
        stmt: &Stmt,
        name: &Name,
        event: u32,
        state: &State<'s>,
        wanted: LockAction,
    ) -> Vec<State<'s>> {
        let mut out = Vec::new();
        for operation in self.engine.flows.operations_at(self.id, event) {
            let action = match operation.action {
                LockAction::AcquireOrError => LockAction::Acquire,
                other => other,
            };
            let family = self.engine.flows.locks.family(operation.lock);
            let family = self.engine.program.table.family(family);
            // What excludes no other context is no lock to a pattern.
            if action == wanted && !family.rcu && !family.context {
                let bound = self.locked(event, operation.lock);
                out.extend(self.with(stmt, event, state, name, bound));
            }
        }
        out
    }

    fn locked(&self, event: u32, lock: Lock) -> Bound {
        Bound::Lock {
            place: self.place(event),
            lock,
        }
    }

    fn lock<'s>(
        &self,
        stmt: &Stmt,
        name: &Name,
        holding: Option<&Name>,
        event: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let taken = self.lock_action(stmt, name, event, state, LockAction::Acquire);
        let Some(holding) = holding else {
            return taken;
        };
        let mut out = Vec::new();
        if taken.is_empty() {
            return out;
        }
        for held in self.held_for_certain(event) {
            for state in &taken {
                let bound = self.locked(event, held);
                if let Some(partial) = self.bind(&state.partial, holding, bound) {
                    out.push(State {
                        partial,
                        ..state.clone()
                    });
                }
            }
        }
        out
    }

    /// Excluding locks certainly held at `event`, however the function was entered.
    fn held_for_certain(&self, event: u32) -> Vec<Lock> {
        let held = self.engine.held(self.place(event));
        let mut all: Vec<Lock> = held
            .always
            .into_iter()
            .filter(|lock| {
                let family = self.engine.flows.locks.family(*lock);
                let family = self.engine.program.table.family(family);
                !family.rcu && !family.context
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        // Taking a lock that may be held already means that the analysis lost track of a release.
        let retaken = self
            .engine
            .flows
            .operations_at(self.id, event)
            .any(|operation| {
                held.ever
                    .iter()
                    .any(|other| other.is_same_object(operation.lock))
            });
        if retaken { Vec::new() } else { all }
    }

    fn access<'s>(
        &self,
        stmt: &Stmt,
        name: &Name,
        event: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let place = self.place(event);
        let key = self.engine.accesses.key(place);
        if key == Key::UNKNOWN && matches!(name, Name::Variable(_)) {
            return Vec::new();
        }
        let bound = Bound::Object {
            place,
            expr: self.events[at(event)].expr,
            key,
        };
        self.with(stmt, event, state, name, bound)
    }

    fn call<'s>(
        &self,
        stmt: &Stmt,
        callee: &Callee,
        args: &Args,
        result: &Name,
        event: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let expr = self.events[at(event)].expr;
        let Some((name, given)) = self.view.unit.named_call(expr) else {
            return Vec::new();
        };
        let global = self.view.name(name);
        let program = self.engine.program;
        let mut partial = state.partial.clone();
        match callee {
            Callee::Named(names) => {
                let text = program.names.bytes(global);
                if !names.iter().any(|name| glob_matches(name.as_bytes(), text)) {
                    return Vec::new();
                }
            }
            Callee::Class(class) => {
                let wanted = program.table.class(class).unwrap_or(0);
                if program.idiom(global).classes & wanted == 0 {
                    return Vec::new();
                }
            }
            Callee::Variable(number) => {
                let bound = self.condition(event, expr);
                let Some(bound) = self.bind(&partial, &Name::Variable(*number), bound) else {
                    return Vec::new();
                };
                partial = bound;
            }
        }
        let place = self.place(event);
        match args {
            Args::Any => {}
            Args::All(number) => {
                let bound = Bound::Args { place, call: expr };
                match self.bind(&partial, &Name::Variable(*number), bound) {
                    Some(bound) => partial = bound,
                    None => return Vec::new(),
                }
            }
            Args::Each(names) => {
                for (name, given) in names.iter().zip(given) {
                    match self.bind(&partial, name, self.object(place, *given)) {
                        Some(bound) => partial = bound,
                        None => return Vec::new(),
                    }
                }
            }
        }
        if *result != Name::Any {
            let Some(target) = self.result_target(event, expr) else {
                return Vec::new();
            };
            match self.bind(&partial, result, self.object(place, target)) {
                Some(bound) => partial = bound,
                None => return Vec::new(),
            }
        }
        vec![self.advance(stmt, event, partial)]
    }

    fn object(&self, place: EventId, expr: E) -> Bound {
        Bound::Object {
            place,
            expr,
            key: self.key_through_local(place.event, expr),
        }
    }

    /// Where the result of the call at `event` goes; through a local into an object if it does.
    fn result_target(&self, event: u32, call: E) -> Option<E> {
        let later = &self.events[at(event) + 1..];
        let peel = |value: u32| self.view.unit.exprs.peel(E(value));
        let first = later
            .iter()
            .take(8)
            .find(|next| next.kind == Kind::Write && next.aux != 0 && peel(next.aux) == call)?;
        if !self.view.key(first.expr).is_local() {
            return Some(first.expr);
        }
        let through = later.iter().take(40).find(|next| {
            next.kind == Kind::Write
                && next.aux != 0
                && peel(next.aux) == first.expr
                && !self.view.key(next.expr).is_local()
        });
        Some(through.map_or(first.expr, |next| next.expr))
    }

    /// The partial match with `name` bound, or nothing if it is bound to something else.
    fn bind(&self, partial: &Partial, name: &Name, bound: Bound) -> Option<Partial> {
        match name {
            Name::Any => Some(partial.clone()),
            Name::Constant(text) => self.is_called(&bound, text).then(|| partial.clone()),
            Name::Variable(number) => match &partial.variables[*number] {
                None => {
                    let mut partial = partial.clone();
                    partial.variables[*number] = Some(bound);
                    Some(partial)
                }
                Some(known) => self.engine.is_equal(known, &bound).then(|| partial.clone()),
            },
        }
    }

    fn is_called(&self, bound: &Bound, text: &str) -> bool {
        let shown = self.engine.show(bound);
        let last = shown.rsplit(['.', '>', '&']).next().unwrap_or(&shown);
        glob_matches(text.as_bytes(), shown.as_bytes())
            || glob_matches(text.as_bytes(), last.as_bytes())
    }
}

/// Whether a match of `stmt` can begin at an event of this kind; cheaper than to try.
fn may_begin(stmt: &Stmt, kind: Kind) -> bool {
    match &stmt.kind {
        StmtKind::Loop { .. } => kind == Kind::Loop,
        StmtKind::Return(_) => kind == Kind::Return,
        StmtKind::Read(_) | StmtKind::Access(_) => matches!(kind, Kind::Read | Kind::Write),
        StmtKind::Write(_) | StmtKind::Update(_) => matches!(kind, Kind::Write | Kind::Call),
        StmtKind::Call { .. } => kind == Kind::Call,
        _ => true,
    }
}
