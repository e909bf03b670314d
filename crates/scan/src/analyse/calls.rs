//! Who calls whom, through names and through function pointers; and who is started as a thread.

use rustc_hash::FxHashMap;

use super::keys::{Key, KeyParts, View};
use super::lock_names::lock_name;
use super::program::{FnId, Name, Program};
use super::types::Def;
use crate::front::ast::{E, Expr};
use crate::front::event::Kind;
use crate::front::lex::{at, index};
use crate::idioms::{LockAction, Start};

/// A call of a function of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) event: u32,
    pub(crate) callee: FnId,
    /// Through a pointer: one of several possible callees.
    pub(crate) indirect: bool,
}

/// How a function comes to run on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) start: Start,
    /// Where it is started: the function and event, if it is a call.
    pub(crate) by: Option<(FnId, u32)>,
    /// The entry of [`crate::idioms::Table::table_starts`] that says which locks are held.
    pub(crate) table: Option<u16>,
}

/// The call graph.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Calls of each function, as ranges of `all`.
    ranges: Vec<(u32, u32)>,
    all: Vec<Call>,
    pub(crate) callers: Vec<Vec<FnId>>,
    pub(crate) roots: Vec<Option<Root>>,
    /// Calls by the name that is called.
    pub(crate) by_name: FxHashMap<Name, Vec<(FnId, u32)>>,
    /// Union of the idiom classes called in each function.
    pub(crate) classes: Vec<u128>,
    /// Functions whose address is taken other than for a known purpose.
    pub(crate) address_taken: Vec<bool>,
    /// Called functions whose names come in pairs: `foo_lock` and `foo_unlock`.
    named_locks: FxHashMap<Name, (LockAction, Name)>,
    /// The other functions of such pairs.
    partners: FxHashMap<Name, Vec<Name>>,
}

/// Candidates of one function pointer that are followed; more mean an interface, whose members are roots.
const CANDIDATES_MAX: usize = 24;

impl Calls {
    pub(crate) fn new(program: &Program<'_>) -> Self {
        let count = program.functions.len();
        let mut builder = Builder {
            program,
            pointers: FxHashMap::default(),
            hands_on: FxHashMap::default(),
            calls: Self {
                callers: vec![Vec::new(); count],
                roots: vec![None; count],
                classes: vec![0; count],
                address_taken: vec![false; count],
                ..Self::default()
            },
        };
        builder.bindings();
        builder.invocations();
        for id in program.function_ids() {
            builder.pointer_assignments(id);
            builder.handlers_handed_on(id);
        }
        for id in program.function_ids() {
            builder.function(id);
        }
        builder.remaining_roots();
        builder.named_locks();
        builder.calls
    }

    pub(crate) fn of(&self, id: FnId) -> &[Call] {
        let (start, end) = self.ranges[at(id.0)];
        &self.all[at(start)..at(end)]
    }

    pub(crate) fn callees_at(&self, id: FnId, event: u32) -> impl Iterator<Item = Call> + '_ {
        let all = self.of(id);
        let start = all.partition_point(|call| call.event < event);
        all[start..]
            .iter()
            .copied()
            .take_while(move |call| call.event == event)
    }

    /// The functions that release what this one takes, or take what it releases, by their names.
    pub(crate) fn partners(&self, name: Name) -> &[Name] {
        self.partners.get(&name).map_or(&[], Vec::as_slice)
    }

    /// What a function does whose name speaks of a lock, and the name of the one that releases it.
    pub(crate) fn named_lock(&self, name: Name) -> Option<(LockAction, Name)> {
        self.named_locks.get(&name).copied()
    }
}

/// How functions in this field of a struct are called, and the entry of the table that says so.
fn table_start(program: &Program<'_>, holder: Name, field: Name) -> (Start, Option<u16>) {
    let (holder, field) = (program.names.bytes(holder), program.names.bytes(field));
    let mut starts = program.table.table_starts.iter().enumerate();
    let found = starts.find(|(_, start)| {
        start.structs.iter().any(|name| name.as_bytes() == holder)
            && (start.fields.is_empty() || start.fields.iter().any(|name| name.as_bytes() == field))
    });
    found.map_or((Start::Entry, None), |(number, start)| {
        (start.context, u16::try_from(number).ok())
    })
}

/// The object of which `place` is the field that holds its handler, `timer` of `timer.function`, and what runs it.
pub(crate) fn handler_of(view: &View<'_>, place: E) -> Option<(E, Start)> {
    let Expr::Member { base, field, .. } = view.expr(place) else {
        return None;
    };
    let program = view.program;
    let holder = program.types.canonical(view.ty(base)).base;
    let (start, _) = table_start(program, holder, view.name(field));
    let is_handler = matches!(
        start,
        Start::Thread | Start::Work | Start::SoftIrq | Start::HardIrq
    );
    is_handler.then_some((base, start))
}

struct Builder<'p> {
    program: &'p Program<'p>,
    /// Function pointer to candidates.
    pointers: FxHashMap<Key, Vec<FnId>>,
    /// Functions that start what they are given as a parameter: its number, and how it is started.
    hands_on: FxHashMap<FnId, Vec<(usize, Start)>>,
    calls: Calls,
}

impl Builder<'_> {
    fn root(&mut self, id: FnId, start: Start, by: Option<(FnId, u32)>) {
        let slot = &mut self.calls.roots[at(id.0)];
        let is_better = slot.is_none_or(|root| start < root.start);
        if is_better {
            *slot = Some(Root {
                start,
                by,
                table: None,
            });
        }
    }

    /// A function in an operation table. In two tables it holds nothing for certain.
    fn table_root(&mut self, id: FnId, start: Start, table: Option<u16>) {
        let is_new = self.calls.roots[at(id.0)].is_none();
        self.root(id, start, None);
        if let Some(root) = &mut self.calls.roots[at(id.0)] {
            root.table = if is_new || root.table == table {
                table
            } else {
                None
            };
        }
    }

    fn point(&mut self, key: Key, target: FnId) {
        let list = self.pointers.entry(key).or_default();
        if list.len() <= CANDIDATES_MAX && !list.contains(&target) {
            list.push(target);
        }
    }

    /// `.open = my_open` at file level.
    fn bindings(&mut self) {
        for (number, unit) in self.program.units.iter().enumerate() {
            let number = index(number);
            for binding in &unit.declared.bindings {
                let Some(target) = self
                    .program
                    .resolve(Name(unit.global(binding.value)), number)
                else {
                    continue;
                };
                let ty = crate::front::ast::Ty {
                    base: binding.holder,
                    ..Default::default()
                };
                let holder = self.program.global_ty(number, ty);
                let def = self.program.types.def(holder, self.program);
                let field = Name(unit.global(binding.field));
                let (start, table) = self.table_start(holder.base, field);
                self.table_root(target, start, table);
                self.calls.address_taken[at(target.0)] = true;
                if def != Def::NONE {
                    self.point(Key::new(KeyParts::Field(def, field)), target);
                }
            }
        }
    }

    fn table_start(&self, holder: Name, field: Name) -> (Start, Option<u16>) {
        table_start(self.program, holder, field)
    }

    /// `module_init(f)`, `DECLARE_WORK(w, f)`, `EXPORT_SYMBOL(f)`.
    fn invocations(&mut self) {
        for (number, unit) in self.program.units.iter().enumerate() {
            for invocation in &unit.declared.invocations {
                let name = Name(unit.global(invocation.name));
                let starts = &self.program.idiom(name).starts;
                let is_export = self.program.names.bytes(name).starts_with(b"EXPORT_SYMBOL");
                for (position, arg) in invocation.args.iter().enumerate() {
                    let Some(target) = self.program.resolve(Name(unit.global(*arg)), index(number))
                    else {
                        continue;
                    };
                    let start = starts
                        .iter()
                        .find(|start| start.function == position)
                        .map(|start| start.context);
                    match start {
                        Some(start) => self.root(target, start, None),
                        None if is_export => {}
                        None => {
                            self.root(target, Start::Entry, None);
                            self.calls.address_taken[at(target.0)] = true;
                        }
                    }
                }
            }
        }
    }

    /// `p->callback = f` inside a function.
    fn pointer_assignments(&mut self, id: FnId) {
        let view = View::new(self.program, id);
        for (position, event) in self.program.events(id).iter().enumerate() {
            if event.kind != Kind::Write || event.aux == 0 {
                continue;
            }
            let value = view.unit.exprs.peel(E(event.aux));
            let value = match view.expr(value) {
                Expr::Unary { of, .. } => of,
                _ => value,
            };
            let Expr::Name(name) = view.expr(value) else {
                continue;
            };
            if view.is_local(name) {
                continue;
            }
            let Some(target) = self.program.resolve(view.name(name), view.unit_number) else {
                continue;
            };
            let key = view.key(event.expr);
            match handler_of(&view, event.expr) {
                Some((_, start)) => self.root(target, start, Some((id, index(position)))),
                None => self.root(target, Start::Entry, Some((id, 0))),
            }
            self.calls.address_taken[at(target.0)] = true;
            self.point(key, target);
        }
    }

    /// A function that requests an interrupt, or starts a thread, for a handler that is its own parameter.
    fn handlers_handed_on(&mut self, id: FnId) {
        let view = View::new(self.program, id);
        for event in self.program.events(id) {
            if event.kind != Kind::Call {
                continue;
            }
            let Some((name, args)) = view.unit.named_call(event.expr) else {
                continue;
            };
            for start in &self.program.idiom(view.name(name)).starts {
                let Some(arg) = args.get(start.function) else {
                    continue;
                };
                if let Expr::Name(local) = view.expr(view.unit.exprs.peel(*arg))
                    && let Some(param) = view.param(local)
                {
                    let known = self.hands_on.entry(id).or_default();
                    known.push((param, start.context));
                }
            }
        }
    }

    /// How a function that is given to `callee` as the argument of this number is started.
    fn start_of_argument(&self, callee: Name, unit: u32, number: usize) -> Option<Start> {
        let starts = &self.program.idiom(callee).starts;
        if let Some(start) = starts.iter().find(|start| start.function == number) {
            return Some(start.context);
        }
        let callee = self.program.resolve(callee, unit)?;
        let handed = self.hands_on.get(&callee)?;
        let mut starts = handed.iter().filter(|(param, _)| *param == number);
        starts.next().map(|(_, start)| *start)
    }

    fn function(&mut self, id: FnId) {
        let view = View::new(self.program, id);
        let start = index(self.calls.all.len());
        for (position, event) in self.program.events(id).iter().enumerate() {
            if event.kind != Kind::Call {
                continue;
            }
            let position = index(position);
            match view.unit.named_call(event.expr) {
                Some((name, args)) => {
                    let local = view.is_local(name);
                    let name = view.name(name);
                    if local {
                        continue;
                    }
                    self.calls
                        .by_name
                        .entry(name)
                        .or_default()
                        .push((id, position));
                    self.calls.classes[at(id.0)] |= self.program.idiom(name).classes;
                    if let Some(callee) = self.program.resolve(name, view.unit_number) {
                        self.call(id, position, callee, false);
                    }
                    self.arguments(&view, id, position, name, args);
                }
                None => self.indirect(&view, id, position, event.expr),
            }
        }
        self.calls.ranges.push((start, index(self.calls.all.len())));
    }

    fn call(&mut self, caller: FnId, event: u32, callee: FnId, indirect: bool) {
        self.calls.all.push(Call {
            event,
            callee,
            indirect,
        });
        let callers = &mut self.calls.callers[at(callee.0)];
        if callers.last() != Some(&caller) {
            callers.push(caller);
        }
    }

    /// Functions given as arguments: thread starters, or callbacks of some kind.
    fn arguments(&mut self, view: &View<'_>, id: FnId, position: u32, callee: Name, args: &[E]) {
        for (number, arg) in args.iter().enumerate() {
            let arg = match view.expr(view.unit.exprs.peel(*arg)) {
                Expr::Unary { of, .. } => of,
                _ => view.unit.exprs.peel(*arg),
            };
            let Expr::Name(name) = view.expr(arg) else {
                continue;
            };
            if view.is_local(name) {
                continue;
            }
            let Some(target) = self.program.resolve(view.name(name), view.unit_number) else {
                continue;
            };
            let start = self.start_of_argument(callee, view.unit_number, number);
            if start.is_none() && self.calls_back(callee) {
                self.call(id, position, target, true);
                self.calls.address_taken[at(target.0)] = true;
                continue;
            }
            let start = start.unwrap_or(Start::Entry);
            self.root(target, start, Some((id, position)));
            self.calls.address_taken[at(target.0)] = true;
        }
    }

    /// Whether a function of this name calls what it is given before it returns.
    fn calls_back(&self, callee: Name) -> bool {
        const PARTS: &[&[u8]] = &[
            b"iterate",
            b"for_each",
            b"foreach",
            b"_walk",
            b"traverse",
            b"_iter",
        ];
        let text = self.program.names.bytes(callee);
        PARTS
            .iter()
            .any(|part| text.windows(part.len()).any(|window| window == *part))
    }

    fn indirect(&mut self, view: &View<'_>, id: FnId, position: u32, call: E) {
        let Expr::Call { callee, .. } = view.expr(call) else {
            return;
        };
        let key = view.key(callee);
        let Some(candidates) = self.pointers.get(&key) else {
            return;
        };
        if candidates.len() > CANDIDATES_MAX {
            return;
        }
        for callee in candidates.clone() {
            self.call(id, position, callee, true);
        }
    }

    fn named_locks(&mut self) {
        let mut found = Vec::new();
        for name in self.calls.by_name.keys() {
            let text = self.program.names.text(*name);
            let Some((action, releases)) = lock_name(&text) else {
                continue;
            };
            let is_called = |release: &Name| self.calls.by_name.contains_key(release);
            let mut releases = releases.iter();
            let release = releases.find_map(|release| {
                let release = self.program.names.find(release.as_bytes());
                release.filter(is_called)
            });
            if let Some(release) = release
                && self.program.idiom(*name).lock.is_none()
            {
                found.push((*name, (action, release)));
            }
        }
        found.sort_unstable();
        for (name, (action, release)) in found {
            let partners = &mut self.calls.partners;
            partners.entry(name).or_default().push(release);
            partners.entry(release).or_default().push(name);
            self.calls.named_locks.insert(name, (action, release));
            let releases = (LockAction::Release, release);
            self.calls.named_locks.insert(release, releases);
        }
    }

    fn remaining_roots(&mut self) {
        for id in self.program.function_ids() {
            if self.calls.roots[at(id.0)].is_some() {
                continue;
            }
            let (unit, function) = self.program.function(id);
            if function.from_macro {
                continue;
            }
            let is_system_call = function.definer.0 != 0
                && self
                    .program
                    .idiom(Name(unit.global(function.definer)))
                    .function_prefix
                    .is_some();
            if is_system_call
                || self.program.names.bytes(Name(unit.global(function.name))) == b"main"
            {
                self.root(id, Start::Entry, None);
            } else if function.is_init {
                self.root(id, Start::Init, None);
            } else if self.calls.callers[at(id.0)].is_empty() {
                self.root(id, Start::Unknown, None);
            }
        }
    }
}
