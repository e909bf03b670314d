//! Combines the matches of sub-patterns into instances of the whole pattern.
//!
//! The first sub-pattern is searched everywhere. For each match of it the others are looked up through a
//! condition that links them: the same object (index of accesses), the same lock, or a named function.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::Engine;
use super::bound::{Bound, Partial};
use super::syntax::Matcher;
use crate::analyse::keys::{Key, View};
use crate::analyse::program::{EventId, FnId};
use crate::front::ast::{E, Expr};
use crate::front::lex::{Sym, at};
use crate::pdl::ast::{
    Arg, Args, Callee, Condition, Name, Pattern, Predicate, Stmt, StmtKind, Sub,
};

/// A match of a whole pattern.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) partial: Partial,
    /// Matches of the other sub-patterns that would have done as well.
    pub(crate) others: u32,
}

/// Partners looked at for one match of the first sub-pattern.
const PARTNERS_MAX: usize = 160;
/// Partners accepted before the best is taken.
const ACCEPTED_MAX: usize = 6;

pub(super) struct Job<'j, 'e, 'p> {
    engine: &'e Engine<'p>,
    pub(super) pattern: &'j Pattern,
    /// All matches of each further sub-pattern, where they had to be enumerated.
    enumerated: Vec<OnceCell<Enumerated>>,
}

#[derive(Debug, Default)]
struct Enumerated {
    all: Vec<Partial>,
    by_key: FxHashMap<Key, Vec<usize>>,
}

impl Engine<'_> {
    /// All instances of `pattern`.
    pub(crate) fn find(&self, pattern: &Pattern) -> Vec<Instance> {
        let job = Job::new(self, pattern);
        let mut instances = Vec::new();
        for id in self.program.function_ids() {
            if !job.may_match(&pattern.subs[0], id) || !job.is_possible(id) {
                continue;
            }
            for partial in job.sub_in(0, id, &job.empty()) {
                instances.extend(job.complete(partial));
            }
        }
        instances
    }
}

impl<'j, 'e, 'p> Job<'j, 'e, 'p> {
    pub(super) fn new(engine: &'e Engine<'p>, pattern: &'j Pattern) -> Self {
        Self {
            engine,
            pattern,
            enumerated: pattern.subs.iter().map(|_| OnceCell::new()).collect(),
        }
    }
}

impl Job<'_, '_, '_> {
    pub(super) fn empty(&self) -> Partial {
        Partial::new(self.pattern.variables.len(), self.pattern.labels.len())
    }

    /// A quick look whether the function has what the sub-pattern needs.
    pub(super) fn may_match(&self, sub: &Sub, id: FnId) -> bool {
        let (_, function) = self.engine.program.function(id);
        !function.from_macro && self.has_features(&sub.functions[0].body, id)
    }

    /// A quick look whether conditions that speak of few functions can hold in this one.
    pub(super) fn is_possible(&self, id: FnId) -> bool {
        let engine = self.engine;
        tests(&self.pattern.conditions)
            .into_iter()
            .all(|test| match test.predicate {
                Predicate::Called => {
                    let Some(Arg::Variable(wanted)) = test.args.get(1) else {
                        return true;
                    };
                    let sub = self.pattern.subs.iter().find(|sub| {
                        matches!(sub.functions[0].name, Name::Variable(name) if name == *wanted)
                    });
                    sub.is_none_or(|sub| {
                        let mut calls = engine.calls.of(id).iter();
                        calls.any(|call| !call.indirect && self.may_match(sub, call.callee))
                    })
                }
                Predicate::OddCaller => has_place(engine.odd_callers(), id),
                Predicate::FewCaller => has_place(engine.few_callers(), id),
                Predicate::UnmetCall => has_place(engine.unmet_calls(), id),
                Predicate::OutsideSection => has_place(engine.outside_sections(), id),
                predicate => super::paths::fact_kinds(predicate).is_none_or(|kinds| {
                    let mut facts = engine.flows.facts(id).iter();
                    !engine.level.locks || facts.any(|fact| kinds.contains(&fact.kind))
                }),
            })
    }

    fn has_features(&self, stmts: &[Stmt], id: FnId) -> bool {
        stmts.iter().all(|stmt| match &stmt.kind {
            StmtKind::Lock { .. } | StmtKind::Unlock(_) | StmtKind::TryLock(_) => {
                self.engine.flows.has_operations(id)
            }
            StmtKind::Call {
                callee: Callee::Class(class),
                ..
            } => {
                let wanted = self.engine.program.table.class(class).unwrap_or(0);
                self.engine.calls.classes[at(id.0)] & wanted != 0
            }
            StmtKind::Call {
                callee: Callee::Named(names),
                ..
            } => names.iter().any(|name| self.calls_name(id, name)),
            StmtKind::If { then, .. } => self.has_features(then, id),
            StmtKind::Loop { body, .. } => self.has_features(body, id),
            _ => true,
        })
    }

    fn calls_name(&self, id: FnId, name: &str) -> bool {
        if name.contains('*') {
            return true;
        }
        let engine = self.engine;
        let Some(name) = engine.program.names.find(name.as_bytes()) else {
            return false;
        };
        let Some(callers) = engine.calls.by_name.get(&name) else {
            return false;
        };
        callers
            .binary_search_by_key(&id, |(caller, _)| *caller)
            .is_ok()
    }

    fn admits(&self, partial: &Partial) -> bool {
        self.engine.admits(&self.pattern.conditions, partial)
            && (!self.pattern.disjoint_by_default || self.can_overlap(partial))
    }

    /// The condition of a pattern that says nothing about locks: what was matched last of each sub-pattern
    /// can happen at the same time.
    fn can_overlap(&self, partial: &Partial) -> bool {
        if !self.engine.level.locks {
            return true;
        }
        let last = |sub| {
            let mut of_sub = partial.trace.iter().rev();
            of_sub.find(|(own, _)| *own == sub).map(|(_, place)| *place)
        };
        let places: Vec<EventId> = (0..self.pattern.subs.len()).filter_map(last).collect();
        places.iter().enumerate().all(|(number, one)| {
            places[number + 1..]
                .iter()
                .all(|other| self.engine.concurrent(*one, *other).is_some())
        })
    }

    /// Matches of a sub-pattern that begins in function `id`.
    fn sub_in(&self, number: usize, id: FnId, base: &Partial) -> Vec<Partial> {
        let sub = &self.pattern.subs[number];
        let mut found = self.function_in(number, 0, id, base);
        if sub.functions.len() > 1 {
            let reachable = self.engine.called_from(id);
            for further in 1..sub.functions.len() {
                let mut next = Vec::new();
                for partial in &found {
                    for callee in &reachable {
                        next.extend(self.function_in(number, further, *callee, partial));
                        if next.len() > 64 {
                            break;
                        }
                    }
                }
                found = next;
            }
        }
        found
    }

    fn function_in(
        &self,
        number: usize,
        position: usize,
        id: FnId,
        base: &Partial,
    ) -> Vec<Partial> {
        let fun = &self.pattern.subs[number].functions[position];
        let mut base = base.clone();
        match &fun.name {
            Name::Any => {}
            Name::Constant(name) => {
                if *name != self.engine.program.function_name(id) {
                    return Vec::new();
                }
            }
            Name::Variable(variable) => match &base.variables[*variable] {
                Some(Bound::Function(known)) if *known != id => return Vec::new(),
                _ => base.variables[*variable] = Some(Bound::Function(id)),
            },
        }
        if !self.admits(&base) {
            return Vec::new();
        }
        let matcher = Matcher::new(self.engine, id, number);
        let mut found = match single(&fun.body) {
            Some(stmt) => self.each_event(&matcher, stmt, id, &base),
            None => matcher.body(&fun.body, base),
        };
        found.retain(|partial| self.admits(partial));
        found
    }

    /// Every event of the function on its own; conditions are checked before anything is kept.
    fn each_event(
        &self,
        matcher: &Matcher<'_, '_>,
        stmt: &Stmt,
        id: FnId,
        base: &Partial,
    ) -> Vec<Partial> {
        let mut out = Vec::new();
        for event in 0..crate::front::lex::index(self.engine.program.events(id).len()) {
            let found = matcher.at(stmt, event, base);
            out.extend(found.into_iter().filter(|partial| self.admits(partial)));
        }
        out
    }

    /// Adds the other sub-patterns; one instance per match of the first, with the best partners.
    fn complete(&self, first: Partial) -> Option<Instance> {
        let mut states = vec![first];
        let mut others = 0;
        let subs = if self.engine.level.all_subs {
            self.pattern.subs.len()
        } else {
            1
        };
        for number in 1..subs {
            let mut next = Vec::new();
            for state in &states {
                self.partners(number, state, &mut next);
                if next.len() >= ACCEPTED_MAX {
                    break;
                }
            }
            others += u32::try_from(next.len().saturating_sub(1)).unwrap_or(u32::MAX);
            states = next;
        }
        let best = states
            .into_iter()
            .enumerate()
            .max_by_key(|(position, state)| (self.quality(state), std::cmp::Reverse(*position)))?;
        Some(Instance {
            partial: best.1,
            others,
        })
    }

    /// Partners in other functions that threads are known to reach are the better evidence.
    fn quality(&self, state: &Partial) -> u32 {
        let mut quality = 0;
        let home = state.trace.first().map(|(_, place)| place.function);
        for (sub, place) in &state.trace {
            if *sub == 0 {
                continue;
            }
            let contexts = self.engine.contexts.of(place.function);
            let is_started = contexts.iter().any(|context| {
                !matches!(
                    context.start,
                    crate::idioms::Start::Unknown | crate::idioms::Start::Init
                )
            });
            quality += u32::from(Some(place.function) != home) * 2 + u32::from(is_started) * 3;
            if let Some(home) = home {
                let program = self.engine.program;
                let same = program.unit_of(home) == program.unit_of(place.function);
                quality += u32::from(same);
            }
        }
        quality
    }

    pub(super) fn partners(&self, number: usize, state: &Partial, out: &mut Vec<Partial>) {
        let sub = &self.pattern.subs[number];
        if let Some(functions) = self.linked_functions(sub, state) {
            for id in functions {
                if self.may_match(sub, id) {
                    out.extend(self.sub_in(number, id, state));
                }
            }
            out.truncate(ACCEPTED_MAX);
            return;
        }
        let keys = self.linked_keys(sub, state);
        if self.engine.level.alias
            && let (Some(stmt), Some(keys)) = (lookup_statement(sub), &keys)
        {
            let mut places = Vec::new();
            for key in keys {
                places.extend(self.places(stmt, *key, state));
            }
            for place in places.into_iter().take(PARTNERS_MAX) {
                out.extend(self.partner_at(number, stmt, place, state));
                if out.len() >= ACCEPTED_MAX {
                    return;
                }
            }
            return;
        }
        let all = self.enumerated[number].get_or_init(|| self.enumerate(number));
        let candidates: Vec<usize> = match &keys {
            Some(keys) => {
                let mut found: Vec<usize> = keys
                    .iter()
                    .flat_map(|key| all.by_key.get(key).into_iter().flatten().copied())
                    .collect();
                found.sort_unstable();
                found.dedup();
                found
            }
            None => (0..all.all.len()).collect(),
        };
        let core = keys.iter().flatten().any(|key| self.engine.is_core(*key));
        for candidate in candidates.into_iter().take(PARTNERS_MAX * 4) {
            if core && !self.is_same_directory(state, &all.all[candidate]) {
                continue;
            }
            if let Some(merged) = self.merge(state, &all.all[candidate]) {
                out.push(merged);
                if out.len() >= ACCEPTED_MAX {
                    return;
                }
            }
        }
    }

    fn is_same_directory(&self, one: &Partial, other: &Partial) -> bool {
        let program = self.engine.program;
        let directory = |partial: &Partial| {
            partial.trace.first().map(|(_, place)| {
                program
                    .directory(program.unit_of(place.function))
                    .to_owned()
            })
        };
        directory(one) == directory(other)
    }

    fn enumerate(&self, number: usize) -> Enumerated {
        let mut result = Enumerated::default();
        let sub = &self.pattern.subs[number];
        let variables = variables_of(sub);
        for id in self.engine.program.function_ids() {
            if self.may_match(sub, id) {
                result.all.extend(self.sub_in(number, id, &self.empty()));
            }
        }
        for (position, partial) in result.all.iter().enumerate() {
            for variable in &variables {
                let Some(bound) = &partial.variables[*variable] else {
                    continue;
                };
                for key in self.join_keys(bound) {
                    result.by_key.entry(key).or_default().push(position);
                }
            }
        }
        result
    }

    fn join_keys(&self, bound: &Bound) -> Vec<Key> {
        let keys = match bound {
            Bound::Lock { lock, .. } => vec![self.engine.flows.locks.key(*lock)],
            Bound::Args { .. } | Bound::Function(_) => Vec::new(),
            other => other.keys(),
        };
        if self.engine.level.alias {
            return keys;
        }
        keys.into_iter().map(Key::without_type).collect()
    }

    fn merge(&self, state: &Partial, other: &Partial) -> Option<Partial> {
        let mut merged = state.clone();
        for (slot, bound) in merged.variables.iter_mut().zip(&other.variables) {
            match (&slot, bound) {
                (Some(known), Some(bound)) if !self.engine.is_equal(known, bound) => return None,
                (None, Some(bound)) => *slot = Some(bound.clone()),
                _ => {}
            }
        }
        for (slot, label) in merged.labels.iter_mut().zip(&other.labels) {
            *slot = slot.or(*label);
        }
        merged.trace.extend_from_slice(&other.trace);
        self.admits(&merged).then_some(merged)
    }

    fn partner_at(
        &self,
        number: usize,
        stmt: &Stmt,
        place: EventId,
        state: &Partial,
    ) -> Vec<Partial> {
        let mut base = state.clone();
        if let Name::Variable(variable) = &self.pattern.subs[number].functions[0].name {
            base.variables[*variable] = Some(Bound::Function(place.function));
        }
        let matcher = Matcher::new(self.engine, place.function, number);
        let mut found = matcher.at(stmt, place.event, &base);
        found.retain(|partial| self.admits(partial));
        found
    }

    /// Accesses of `key`, nearest first: the same file, the same directory, then the rest.
    pub(super) fn places(&self, stmt: &Stmt, key: Key, state: &Partial) -> Vec<EventId> {
        let accesses = &self.engine.accesses;
        let mut places: Vec<EventId> = match stmt.kind {
            StmtKind::Read(_) => accesses.reads(key).to_vec(),
            StmtKind::Access(_) => [accesses.writes(key), accesses.reads(key)].concat(),
            _ => accesses.writes(key).to_vec(),
        };
        if matches!(stmt.kind, StmtKind::Read(_)) {
            places.extend(accesses.writes(key).iter().copied());
        }
        let Some((_, home)) = state.trace.first() else {
            return places;
        };
        let program = self.engine.program;
        let unit = program.unit_of(home.function);
        // An inline function of a header runs in every folder.
        if self.engine.is_core(key) && !program.is_header(unit) {
            places.retain(|place| {
                let other = program.unit_of(place.function);
                program.is_header(other) || program.directory(other) == program.directory(unit)
            });
        }
        places.sort_by_key(|place| {
            let other = program.unit_of(place.function);
            if other == unit {
                0
            } else if program.directory(other) == program.directory(unit) {
                1
            } else {
                2
            }
        });
        places
    }

    /// Functions that the conditions name for the sub-pattern's first `fun`.
    pub(super) fn linked_functions(&self, sub: &Sub, state: &Partial) -> Option<Vec<FnId>> {
        let Name::Variable(wanted) = sub.functions[0].name else {
            return None;
        };
        for test in tests(&self.pattern.conditions) {
            if !matches!(
                test.predicate,
                Predicate::SameFunction
                    | Predicate::Starts
                    | Predicate::Awaits
                    | Predicate::Called
                    | Predicate::ArmedIn
            ) {
                continue;
            }
            let source = match test.args.as_slice() {
                [source, Arg::Variable(variable)] if *variable == wanted => source,
                [Arg::Variable(variable), source] if *variable == wanted => source,
                _ => continue,
            };
            let found = match (test.predicate, source) {
                (Predicate::SameFunction | Predicate::Starts, _) => {
                    self.engine.named_functions(source, state)
                }
                (predicate, Arg::Label(label)) => {
                    state.labels[*label].map(|place| self.engine.partners_of(predicate, place))
                }
                _ => None,
            };
            if let Some(found) = found {
                return Some(found);
            }
        }
        None
    }

    /// Keys that a variable of the sub-pattern must have.
    pub(super) fn linked_keys(&self, sub: &Sub, state: &Partial) -> Option<Vec<Key>> {
        let own = variables_of(sub);
        let mut found = None;
        // A variable used on both sides links by itself.
        for variable in &own {
            if let Some(bound) = &state.variables[*variable] {
                found = Some(self.join_keys(bound));
            }
        }
        for test in tests(&self.pattern.conditions) {
            if !matches!(test.predicate, Predicate::Alias | Predicate::SameLock) {
                continue;
            }
            for (one, other) in [(0, 1), (1, 0)] {
                let (Some(Arg::Variable(target)), Some(source)) =
                    (test.args.get(one), test.args.get(other))
                else {
                    continue;
                };
                if !own.contains(target) || state.variables[*target].is_some() {
                    continue;
                }
                let keys = match source {
                    Arg::Variable(variable) => state.variables[*variable]
                        .as_ref()
                        .map(|bound| self.join_keys(bound)),
                    _ => None,
                };
                found = found.or(keys);
            }
        }
        found.map(|keys| {
            keys.into_iter()
                .filter(|key| *key != Key::UNKNOWN)
                .collect()
        })
    }
}

impl Engine<'_> {
    /// The functions that a predicate links to a statement.
    fn partners_of(&self, predicate: Predicate, place: EventId) -> Vec<FnId> {
        match predicate {
            Predicate::Awaits => self.awaited(place).to_vec(),
            Predicate::Called => self
                .calls
                .callees_at(place.function, place.event)
                .filter(|call| !call.indirect)
                .map(|call| call.callee)
                .collect(),
            _ => {
                let armed = self.left_armed(place);
                let mut functions: Vec<FnId> = armed.iter().map(|place| place.function).collect();
                functions.dedup();
                functions
            }
        }
    }

    /// The functions that a label (what it starts) or an argument names.
    fn named_functions(&self, source: &Arg, state: &Partial) -> Option<Vec<FnId>> {
        let (place, wanted) = match source {
            Arg::Label(label) => (state.labels[*label]?, None),
            Arg::Element(variable, element) => match state.variables[*variable].as_ref()? {
                Bound::Args { place, .. } => (*place, Some(*element)),
                _ => return None,
            },
            _ => return None,
        };
        let (unit, _) = self.program.function(place.function);
        let (name, args) = unit.named_call(self.program.event(place).expr)?;
        let starts = &self
            .program
            .idiom(crate::analyse::program::Name(unit.global(name)))
            .starts;
        let positions: Vec<usize> = match wanted {
            Some(element) => vec![element],
            None => starts.iter().map(|start| start.function).collect(),
        };
        let mut found = Vec::new();
        for arg in positions.iter().filter_map(|position| args.get(*position)) {
            found.extend(self.functions_given(place, *arg));
        }
        Some(found)
    }

    /// The functions that an argument names: itself, or what callers give for a parameter.
    pub(super) fn functions_given(&self, place: EventId, arg: E) -> Vec<FnId> {
        let view = View::new(self.program, place.function);
        let Some(name) = function_name(&view, arg) else {
            return Vec::new();
        };
        let Some(param) = view.param(name) else {
            let found = self.program.resolve(view.name(name), view.unit_number);
            return found.into_iter().collect();
        };
        let mut found = Vec::new();
        for caller in &self.calls.callers[at(place.function.0)] {
            let outer = View::new(self.program, *caller);
            let events = self.program.events(*caller);
            let calls = self.calls.of(*caller).iter();
            for call in calls.filter(|call| call.callee == place.function && !call.indirect) {
                let given = outer.unit.named_call(events[at(call.event)].expr);
                let name = given
                    .and_then(|(_, args)| args.get(param))
                    .and_then(|arg| function_name(&outer, *arg));
                if let Some(name) = name
                    && let Some(id) = self.program.resolve(outer.name(name), outer.unit_number)
                    && !found.contains(&id)
                {
                    found.push(id);
                }
            }
        }
        found
    }
}

/// `f` of `f` and `&f`.
pub(super) fn function_name(view: &View<'_>, arg: E) -> Option<Sym> {
    let arg = view.unit.exprs.peel(arg);
    let arg = match view.expr(arg) {
        Expr::Unary { of, .. } => of,
        _ => arg,
    };
    match view.expr(arg) {
        Expr::Name(name) => Some(name),
        _ => None,
    }
}

/// Whether one of the places, in order, lies in the function.
fn has_place(places: &[EventId], id: FnId) -> bool {
    let first = places.partition_point(|place| place.function < id);
    places.get(first).is_some_and(|place| place.function == id)
}

/// The tests that must hold in any case.
fn tests(conditions: &[Condition]) -> Vec<&crate::pdl::ast::Test> {
    let mut out = Vec::new();
    for condition in conditions {
        match condition {
            Condition::Test(test) => out.push(test),
            Condition::And(parts) => out.extend(tests(parts)),
            _ => {}
        }
    }
    out
}

/// The only statement of a body.
pub(super) fn single(body: &[Stmt]) -> Option<&Stmt> {
    match body {
        [only] if !matches!(only.kind, StmtKind::Exclude(_)) => Some(only),
        _ => None,
    }
}

/// The only statement of a sub-pattern, if the index of accesses can find it.
pub(super) fn lookup_statement(sub: &Sub) -> Option<&Stmt> {
    let [only] = sub.functions.as_slice() else {
        return None;
    };
    let stmt = single(&only.body)?;
    let is_access = matches!(
        stmt.kind,
        StmtKind::Read(Name::Variable(_))
            | StmtKind::Write(Name::Variable(_))
            | StmtKind::Update(Name::Variable(_))
            | StmtKind::Access(Name::Variable(_))
    );
    is_access.then_some(stmt)
}

/// Variables bound by the statements of a sub-pattern.
fn variables_of(sub: &Sub) -> Vec<usize> {
    let mut out = Vec::new();
    for fun in &sub.functions {
        collect(&fun.body, &mut out);
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn collect(stmts: &[Stmt], out: &mut Vec<usize>) {
    let mut add = |name: &Name| {
        if let Name::Variable(number) = name {
            out.push(*number);
        }
    };
    let mut inner: Vec<&[Stmt]> = Vec::new();
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::If {
                cond, then, other, ..
            } => {
                add(cond);
                inner.push(then);
                inner.extend(other.as_deref());
            }
            StmtKind::Loop { cond, body } => {
                add(cond);
                inner.push(body);
            }
            StmtKind::Lock { lock, holding } => {
                add(lock);
                holding.iter().for_each(&mut add);
            }
            StmtKind::TryLock(name)
            | StmtKind::Unlock(name)
            | StmtKind::Read(name)
            | StmtKind::Write(name)
            | StmtKind::Update(name)
            | StmtKind::Access(name)
            | StmtKind::Return(name) => add(name),
            StmtKind::Call { args, result, .. } => {
                add(result);
                match args {
                    Args::All(number) => add(&Name::Variable(*number)),
                    Args::Each(names) => names.iter().for_each(&mut add),
                    Args::Any => {}
                }
            }
            _ => {}
        }
    }
    for stmts in inner {
        collect(stmts, out);
    }
}
