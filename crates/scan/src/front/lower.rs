//! From the statements of one function to its events.

use super::ast::{Body, E, Expr, Exprs, Local, LoopHead, S, Stmt, StmtKind};
use super::event::{
    ATOMIC, BY_CALL, DECLARES, DISCARDED, ENDLESS, Event, IDEMPOTENT, IN_CONDITION, Kind,
    RUNS_ONCE, TESTS_LAST, TOP, UPDATE,
};
use super::lex::{Names, Sym, at, index, op};
use crate::idioms::{Table, Touch};

/// State of one lowering.
pub(crate) struct Lower<'l, 'a> {
    pub(crate) exprs: &'l Exprs,
    pub(crate) names: &'l Names<'a>,
    pub(crate) table: &'l Table,
    /// Idiom of each name of the file; `u16::MAX` where not yet looked up.
    pub(crate) idioms: &'l mut Vec<u16>,
    pub(crate) body: &'l Body,
    pub(crate) locals: &'l [Local],
    pub(crate) events: Vec<Event>,
    parent: u32,
    arm: u8,
    flags: u8,
    /// Where to look for the place of the next event.
    cursor: usize,
    limit: usize,
    pos: u32,
    /// Guards taken in the open blocks.
    guards: Vec<E>,
}

/// Occurrences searched for the place of an event before the statement's place is taken.
const SEARCH_MAX: usize = 64;

impl<'l, 'a> Lower<'l, 'a> {
    pub(crate) fn new(
        exprs: &'l Exprs,
        names: &'l Names<'a>,
        table: &'l Table,
        idioms: &'l mut Vec<u16>,
        body: &'l Body,
        locals: &'l [Local],
    ) -> Self {
        Self {
            exprs,
            names,
            table,
            idioms,
            body,
            locals,
            events: Vec::new(),
            parent: TOP,
            arm: 0,
            flags: 0,
            cursor: 0,
            limit: 0,
            pos: 0,
            guards: Vec::new(),
        }
    }

    fn emit(&mut self, kind: Kind, expr: E, aux: u32, flags: u8) -> u32 {
        let id = index(self.events.len());
        self.events.push(Event {
            kind,
            arm: self.arm,
            flags: flags | self.flags,
            expr,
            aux,
            pos: self.pos,
            parent: self.parent,
            end: id + 1,
        });
        id
    }

    /// Control that runs off the end of the function returns.
    pub(crate) fn end(&mut self, pos: u32) {
        let is_left = self
            .events
            .last()
            .is_some_and(|last| last.kind == Kind::Return && last.parent == TOP);
        if !is_left {
            self.pos = pos;
            self.emit(Kind::Return, E::NONE, 0, 0);
        }
    }

    /// Moves to the place where `id` stands in the text of the current statement.
    fn locate(&mut self, id: E) {
        let end = self.limit.min(self.cursor + SEARCH_MAX);
        let found = self.body.occurrences[self.cursor.min(end)..end]
            .iter()
            .position(|(other, _)| *other == id);
        if let Some(offset) = found {
            self.pos = self.body.occurrences[self.cursor + offset].1;
        }
    }

    fn enter(&mut self, stmt: &Stmt) {
        self.pos = stmt.pos;
        self.cursor = at(stmt.occurrences.start);
        self.limit = at(stmt.occurrences.end);
    }

    fn inside(&mut self, parent: u32, arm: u8, inner: impl FnOnce(&mut Self)) {
        let outer = (self.parent, self.arm);
        (self.parent, self.arm) = (parent, arm);
        inner(self);
        (self.parent, self.arm) = outer;
    }

    fn close(&mut self, id: u32) {
        let end = index(self.events.len());
        self.events[at(id)].end = end;
    }

    fn idiom(&mut self, name: Sym) -> u16 {
        let slot = at(name.0);
        if self.idioms.len() <= slot {
            self.idioms.resize(slot + 1, u16::MAX);
        }
        if self.idioms[slot] == u16::MAX {
            self.idioms[slot] = self.table.id(self.names.text(name));
        }
        self.idioms[slot]
    }

    pub(crate) fn stmt(&mut self, id: S) {
        let stmt = &self.body.stmts[at(id.0)];
        self.enter(stmt);
        match &stmt.kind {
            StmtKind::Empty => {}
            StmtKind::Expr(expr) => self.expression_statement(*expr),
            StmtKind::Declare { name, init } => {
                if *init != E::NONE {
                    self.read(*init);
                    if let Some(target) = self.find_name(*name) {
                        self.emit(Kind::Write, target, init.0, DECLARES);
                    }
                }
            }
            StmtKind::If { cond, then, other } => self.branch(*cond, *then, *other),
            StmtKind::Loop { head, body } => self.looped(stmt, *head, *body),
            StmtKind::MacroBlock { call, body } => self.macro_block(*call, *body),
            StmtKind::Switch { on, body } => {
                self.condition(*on);
                let head = self.emit(Kind::Switch, *on, 0, 0);
                self.inside(head, 1, |lower| lower.stmt(*body));
                self.close(head);
            }
            StmtKind::Case { value } => {
                self.emit(Kind::Case, *value, 0, 0);
            }
            StmtKind::Label(label) => {
                self.emit(Kind::Label, E::NONE, label.0, 0);
            }
            StmtKind::Goto(label) => {
                self.emit(Kind::Goto, E::NONE, label.0, 0);
            }
            StmtKind::Break => {
                self.emit(Kind::Break, E::NONE, 0, 0);
            }
            StmtKind::Continue => {
                self.emit(Kind::Continue, E::NONE, 0, 0);
            }
            StmtKind::Return(value) => {
                self.read(*value);
                self.emit(Kind::Return, *value, 0, 0);
            }
            StmtKind::Block(stmts) => {
                let open = self.guards.len();
                for inner in stmts {
                    self.stmt(*inner);
                }
                while self.guards.len() > open {
                    let guard = self.guards.pop().unwrap_or(E::NONE);
                    self.emit(Kind::ScopeEnd, guard, 0, 0);
                }
            }
        }
    }

    fn expression_statement(&mut self, expr: E) {
        self.read(expr);
        if let Some(last) = self.events.last_mut()
            && last.kind == Kind::Call
            && last.expr == self.exprs.peel(expr)
        {
            last.flags |= DISCARDED;
        }
        if let Expr::Call { callee, .. } = self.exprs.get(expr)
            && let Expr::Call { callee: inner, .. } = self.exprs.get(callee)
            && self.is_named(inner, b"guard")
        {
            self.guards.push(expr);
        }
    }

    fn is_named(&self, id: E, text: &[u8]) -> bool {
        matches!(self.exprs.get(id), Expr::Name(name) if self.names.text(name) == text)
    }

    /// The expression `name`, if it occurs anywhere; a name that never occurs matters to no analysis.
    fn find_name(&self, name: Sym) -> Option<E> {
        // Declared names are consed by the parser when first used; search by value.
        self.exprs.find(Expr::Name(name))
    }

    fn condition(&mut self, cond: E) {
        let outer = self.flags;
        self.flags |= IN_CONDITION;
        self.read(cond);
        self.flags = outer;
    }

    fn branch(&mut self, cond: E, then: S, other: Option<S>) {
        let pos = self.pos;
        self.condition(cond);
        self.pos = pos;
        let head = self.emit(Kind::If, cond, 0, 0);
        self.inside(head, 1, |lower| lower.stmt(then));
        self.events[at(head)].aux = index(self.events.len());
        if let Some(other) = other {
            self.inside(head, 2, |lower| lower.stmt(other));
        }
        self.close(head);
    }

    fn looped(&mut self, stmt: &Stmt, head: LoopHead, body: S) {
        if let Some(init) = head.init {
            self.stmt(init);
            self.enter(stmt);
        }
        let flags = if head.tests_last { TESTS_LAST } else { 0 }
            | if head.cond == E::NONE || self.is_true(head.cond) {
                ENDLESS
            } else if matches!(self.exprs.get(head.cond), Expr::Number(text) if self.names.text(text) == b"0")
            {
                RUNS_ONCE
            } else {
                0
            };
        self.pos = stmt.pos;
        let id = self.emit(Kind::Loop, head.cond, 0, flags);
        if !head.tests_last {
            self.inside(id, 0, |lower| lower.condition(head.cond));
        }
        self.inside(id, 1, |lower| lower.stmt(body));
        self.enter(stmt);
        self.inside(id, 1, |lower| lower.read(head.step));
        if head.tests_last {
            self.inside(id, 0, |lower| lower.condition(head.cond));
        }
        self.close(id);
    }

    fn is_true(&self, cond: E) -> bool {
        match self.exprs.get(cond) {
            Expr::Number(text) => self.names.text(text) != b"0",
            Expr::Name(name) => self.names.text(name) == b"true",
            _ => false,
        }
    }

    fn macro_block(&mut self, call: E, body: S) {
        let is_loop = match self.exprs.get(call) {
            Expr::Call { callee, .. } => match self.exprs.get(callee) {
                Expr::Name(name) => self.table.is_loop(self.names.text(name)),
                _ => false,
            },
            _ => false,
        };
        let kind = if is_loop { Kind::Loop } else { Kind::Scope };
        let id = self.emit(kind, call, 0, 0);
        self.inside(id, 0, |lower| lower.condition(call));
        self.inside(id, 1, |lower| lower.stmt(body));
        if !is_loop {
            self.inside(id, 1, |lower| {
                lower.emit(Kind::ScopeEnd, call, 0, 0);
            });
        }
        self.close(id);
    }

    fn is_local(&self, name: Sym) -> bool {
        self.locals.iter().any(|local| local.name == name)
    }

    /// Constants are shouted: they are no variables.
    fn is_constant(&self, name: Sym) -> bool {
        let text = self.names.text(name);
        !text.iter().any(u8::is_ascii_lowercase) || matches!(text, b"true" | b"false" | b"current")
    }

    /// Evaluates `id` for its value.
    fn read(&mut self, id: E) {
        match self.exprs.get(id) {
            Expr::None | Expr::Number(_) | Expr::Text(_) | Expr::Type { .. } | Expr::Other => {}
            Expr::Name(name) => {
                if !self.is_local(name) && !self.is_constant(name) {
                    self.locate(id);
                    self.emit(Kind::Read, id, 0, 0);
                }
            }
            Expr::Member { .. } | Expr::Index { .. } => {
                self.address(id);
                self.locate(id);
                self.emit(Kind::Read, id, 0, 0);
            }
            Expr::Unary { op: code, of } if code == op("&") => self.address(of),
            Expr::Unary { op: code, of } if code == op("*") => {
                self.read(of);
                self.locate(id);
                self.emit(Kind::Read, id, 0, 0);
            }
            Expr::Unary { of, .. } | Expr::Cast { of, .. } => self.read(of),
            Expr::Step { of } => {
                self.address(of);
                self.locate(of);
                self.emit(Kind::Write, of, 0, UPDATE);
            }
            Expr::Binary { left, right, .. } => {
                self.read(left);
                self.read(right);
            }
            Expr::Assign { op: code, to, from } => {
                self.read(from);
                self.address(to);
                self.locate(to);
                let flags = if code == op("=") {
                    0
                } else if code == op("|=") || code == op("&=") {
                    UPDATE | IDEMPOTENT
                } else {
                    UPDATE
                };
                self.emit(Kind::Write, to, from.0, flags);
            }
            Expr::Call { callee, args } => self.call(id, callee, args),
            Expr::Choice { parts } | Expr::Comma { parts } | Expr::Init { parts } => {
                for part in self.exprs.parts(parts).to_vec() {
                    self.read(part);
                }
            }
            Expr::Field { value, .. } => self.read(value),
            Expr::Block(stmt) => {
                let outer = (self.cursor, self.limit, self.pos);
                self.stmt(stmt);
                (self.cursor, self.limit, self.pos) = outer;
            }
        }
    }

    /// Evaluates what is needed to know where `id` is, without reading it.
    fn address(&mut self, id: E) {
        match self.exprs.get(id) {
            Expr::Member { base, arrow, .. } => {
                if arrow {
                    self.read(base);
                } else {
                    self.address(base);
                }
            }
            Expr::Index { base, index } => {
                self.address(base);
                self.read(index);
            }
            Expr::Unary { op: code, of } if code == op("*") => self.read(of),
            Expr::Cast { of, .. } => self.address(of),
            Expr::Name(_) => {}
            _ => self.read(id),
        }
    }

    fn call(&mut self, id: E, callee: E, args: super::ast::List) {
        let parts = self.exprs.parts(args).to_vec();
        let idiom = match self.exprs.get(callee) {
            Expr::Name(name) => self.idiom(name),
            _ => {
                self.read_callee(callee);
                0
            }
        };
        let table = self.table;
        let access = table.get(idiom).access;
        let target = access.and_then(|access| {
            let given = parts.get(access.argument).copied()?;
            // C11 and the kernel disagree on the order of arguments; a number is never the target.
            if matches!(self.exprs.get(given), Expr::Number(_)) {
                parts.first().copied()
            } else {
                Some(given)
            }
        });
        for part in &parts {
            if Some(*part) != target {
                self.read(*part);
            }
        }
        if let (Some(access), Some(target)) = (access, target) {
            let object = match self.exprs.get(target) {
                Expr::Unary { op: code, of } if code == op("&") => of,
                _ => target,
            };
            self.address(object);
            self.locate(id);
            let atomic = if access.atomic { ATOMIC } else { 0 } | BY_CALL;
            match access.touch {
                Touch::Read => self.emit(Kind::Read, object, id.0, atomic),
                Touch::Write => self.emit(Kind::Write, object, id.0, atomic),
                Touch::Update => self.emit(Kind::Write, object, id.0, atomic | UPDATE),
            };
        }
        self.locate(id);
        self.emit(Kind::Call, id, 0, 0);
    }

    fn read_callee(&mut self, callee: E) {
        match self.exprs.get(callee) {
            Expr::Call { .. } | Expr::Member { .. } | Expr::Index { .. } => self.read(callee),
            _ => self.address(callee),
        }
    }
}
