//! Other ways to write a condition: kept in a local, asked of a small function, a `switch`, a `return`.

use super::Bound;
use super::syntax::{Matcher, State};
use crate::analyse::keys::{Key, View};
use crate::analyse::program::EventId;
use crate::front::ast::{E, Expr};
use crate::front::event::{BY_CALL, IN_CONDITION, Kind, TOP, UPDATE};
use crate::front::lex::{Sym, at, index};
use crate::pdl::ast::{Name, Stmt, StmtKind};

/// How deep conditions are searched for locals.
const DEPTH_MAX: u32 = 8;
/// Events before a condition that are searched for what its locals were set to.
const SEARCH_MAX: usize = 120;
/// Events of a function whose result is taken for its condition.
pub(super) const SMALL: usize = 6;
/// Events of a function whose writes are taken for its caller's, and how many of them.
const WRITER_EVENTS_MAX: usize = 24;
const WRITES_MAX: usize = 6;

impl<'p> Matcher<'_, 'p> {
    /// What a condition looks at: the objects in it, those that its locals were set from, and those that
    /// small functions look at for it.
    pub(super) fn condition(&self, event: u32, expr: E) -> Bound {
        let mut objects = Vec::new();
        self.view.objects(expr, &mut objects);
        let mut locals = Vec::new();
        self.parts(expr, &mut locals, &mut objects, 0);
        let sources = locals
            .into_iter()
            .filter_map(|local| self.source(local, event));
        for source in sources {
            self.view.objects(source, &mut objects);
        }
        Bound::Condition {
            place: self.place(event),
            expr,
            objects,
        }
    }

    /// The objects that a condition names itself.
    pub(super) fn plain_condition(&self, event: u32, expr: E) -> Bound {
        let mut objects = Vec::new();
        self.view.objects(expr, &mut objects);
        Bound::Condition {
            place: self.place(event),
            expr,
            objects,
        }
    }

    /// The condition itself, and what its locals were set to.
    pub(super) fn sources(&self, event: u32, expr: E) -> Vec<E> {
        let mut locals = Vec::new();
        self.parts(expr, &mut locals, &mut Vec::new(), 0);
        let sources = locals
            .into_iter()
            .filter_map(|local| self.source(local, event));
        std::iter::once(expr).chain(sources).collect()
    }

    fn parts(&self, expr: E, locals: &mut Vec<Sym>, objects: &mut Vec<(E, Key)>, depth: u32) {
        if depth > DEPTH_MAX || expr == E::NONE {
            return;
        }
        match self.view.expr(expr) {
            Expr::Name(name) if self.view.is_local(name) && self.view.param(name).is_none() => {
                locals.push(name);
            }
            // What a local leads to is another object.
            Expr::Member { .. } | Expr::Index { .. } => {}
            Expr::Call { .. } => self.asked(expr, objects),
            _ => self.view.each_part(expr, |part| {
                self.parts(part, locals, objects, depth + 1);
            }),
        }
    }

    /// The expression that the local was last set to before `event`.
    fn source(&self, local: Sym, event: u32) -> Option<E> {
        let mut before = self.events[..at(event)].iter().rev().take(SEARCH_MAX);
        let written = before.find(|event| {
            event.kind == Kind::Write && self.view.expr(event.expr) == Expr::Name(local)
        })?;
        let is_plain = written.flags & (UPDATE | BY_CALL) == 0 && written.aux != 0;
        is_plain.then(|| self.view.unit.exprs.peel(E(written.aux)))
    }

    /// The key of an object; of a local that was set from a shared object, that object's.
    pub(super) fn key_through_local(&self, event: u32, expr: E) -> Key {
        let key = self.view.key(expr);
        let peeled = self.view.unit.exprs.peel(expr);
        if key.is_local()
            && let Expr::Name(local) = self.view.expr(peeled)
            && self.view.param(local).is_none()
            && let Some(source) = self.source(local, event)
        {
            let source = self.view.key(source);
            if source.is_shared() {
                return source;
            }
        }
        key
    }

    /// An update made by a small function for its caller: `sock_hold(sk)`.
    pub(super) fn wrapped_update<'s>(
        &self,
        stmt: &Stmt,
        name: &Name,
        event: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let place = self.place(event);
        // What a condition asks is told by the function that is asked.
        if self.events[at(event)].flags & IN_CONDITION != 0 {
            return Vec::new();
        }
        let Some((inner, param)) = self.engine.wrapped_access(place) else {
            return Vec::new();
        };
        let given = self.view.unit.named_call(self.events[at(event)].expr);
        let Some(arg) = given.and_then(|(_, args)| args.get(param).copied()) else {
            return Vec::new();
        };
        let bound = Bound::Object {
            place,
            expr: arg,
            key: self.engine.accesses.key(inner),
        };
        self.with(stmt, event, state, name, bound)
    }

    /// Writes that a small function always makes to what it is given: `set_rate(dev, 5)`.
    pub(super) fn wrapped_writes<'s>(
        &self,
        stmt: &Stmt,
        name: &Name,
        event: u32,
        state: &State<'s>,
    ) -> Vec<State<'s>> {
        let place = self.place(event);
        let mut calls = self.engine.calls.callees_at(self.id, event);
        let Some(callee) = calls.find(|call| !call.indirect).map(|call| call.callee) else {
            return Vec::new();
        };
        let inner = View::new(self.view.program, callee);
        let events = self.view.program.events(callee);
        let given = self.view.unit.named_call(self.events[at(event)].expr);
        let Some((_, args)) = given else {
            return Vec::new();
        };
        if inner.function.from_macro || events.len() > WRITER_EVENTS_MAX {
            return Vec::new();
        }
        let mut out = Vec::new();
        for (number, write) in events.iter().enumerate() {
            let is_plain = write.kind == Kind::Write && write.flags & BY_CALL == 0;
            if !is_plain || write.parent != TOP || out.len() >= WRITES_MAX {
                continue;
            }
            let param = inner.root(write.expr).and_then(|root| inner.param(root));
            let Some(arg) = param.and_then(|param| args.get(param)) else {
                continue;
            };
            let key = self.engine.accesses.key(EventId {
                function: callee,
                event: index(number),
            });
            if key.is_shared() {
                let bound = Bound::Object {
                    place,
                    expr: *arg,
                    key,
                };
                out.extend(self.with(stmt, event, state, name, bound));
            }
        }
        out
    }

    /// Objects that a small function of the program looks at for its result.
    fn asked(&self, call: E, objects: &mut Vec<(E, Key)>) {
        let program = self.view.program;
        let Some((name, _)) = self.view.unit.named_call(call) else {
            return;
        };
        let Some(callee) = program.resolve(self.view.name(name), self.view.unit_number) else {
            return;
        };
        let inner = View::new(program, callee);
        let events = program.events(callee);
        if events.len() > SMALL || inner.function.from_macro {
            return;
        }
        for event in events.iter().filter(|event| event.kind == Kind::Return) {
            let mut found = Vec::new();
            inner.objects(event.expr, &mut found);
            objects.extend(found.into_iter().map(|(_, key)| (call, key)));
        }
    }

    /// Whether a `switch` or a returned comparison stands for the `if`.
    pub(super) fn is_disguised_if(
        &self,
        event: u32,
        then: &[Stmt],
        other: Option<&[Stmt]>,
    ) -> bool {
        let here = self.events[at(event)];
        if other.is_some() {
            return false;
        }
        match here.kind {
            Kind::Switch => true,
            // Nothing is done here; the caller acts on the result.
            Kind::Return => {
                matches!(
                    self.view.expr(here.expr),
                    Expr::Binary { .. } | Expr::Unary { .. } | Expr::Choice { .. }
                ) && then
                    .iter()
                    .all(|stmt| matches!(stmt.kind, StmtKind::Exclude(_)))
            }
            _ => false,
        }
    }

    pub(super) fn disguised_if<'s>(
        &self,
        stmt: &Stmt,
        cond: &Name,
        then: &'s [Stmt],
        event: u32,
        state: &State<'_>,
    ) -> Vec<State<'s>> {
        let Some(partial) = self.bind_condition(stmt, cond, event, state) else {
            return Vec::new();
        };
        let end = self.events[at(event)].end;
        self.sequence(then, event + 1, end, Some(event), partial)
    }
}
