//! Statements and local declarations.

use super::{Parsed, Parser, Sink, Trouble};
use crate::front::ast::{E, Expr, Local, LoopHead, S, StmtKind, Ty};
use crate::front::lex::{Kind, op};
use crate::front::words::Word;

impl<K: Sink> Parser<'_, '_, K> {
    /// `{ .. }`: errors inside are skipped and counted.
    pub(super) fn block(&mut self) -> Parsed<S> {
        let pos = self.here().pos;
        self.expect(op("{"))?;
        let mut stmts = Vec::new();
        while !self.is(op("}")) {
            if self.is_end() {
                return Err(Trouble);
            }
            let (start, depth) = (self.at, self.depth);
            match self.statement() {
                Ok(stmt) => stmts.push(stmt),
                Err(Trouble) => {
                    self.errors += 1;
                    self.depth = depth;
                    self.skip_statement();
                }
            }
            if self.at == start {
                self.bump();
            }
        }
        self.bump();
        let mark = self.mark();
        Ok(self.push(StmtKind::Block(stmts), pos, mark))
    }

    pub(super) fn statement(&mut self) -> Parsed<S> {
        self.deeper(Self::statement_inner)
    }

    fn statement_inner(&mut self) -> Parsed<S> {
        let (pos, mark) = (self.here().pos, self.mark());
        match self.here().kind {
            Kind::Op(code) if code == op("{") => return self.block(),
            Kind::Op(code) if code == op(";") => {
                self.bump();
                return Ok(self.push(StmtKind::Empty, pos, mark));
            }
            Kind::Op(_) | Kind::Number | Kind::Text => return self.expression_statement(),
            Kind::End => return Err(Trouble),
            Kind::Name => {}
        }
        match self.word() {
            Word::If => self.if_statement(),
            Word::While | Word::For | Word::Do => self.loop_statement(),
            Word::Switch => self.switch_statement(),
            Word::Case => {
                self.bump();
                let value = self.expression()?;
                if self.eat(op("...")) {
                    self.expression()?;
                }
                self.expect(op(":"))?;
                Ok(self.push(StmtKind::Case { value }, pos, mark))
            }
            Word::Default => {
                self.bump();
                self.expect(op(":"))?;
                Ok(self.push(StmtKind::Case { value: E::NONE }, pos, mark))
            }
            Word::Break | Word::Continue => {
                let kind = if self.word() == Word::Break {
                    StmtKind::Break
                } else {
                    StmtKind::Continue
                };
                self.bump();
                self.expect(op(";"))?;
                Ok(self.push(kind, pos, mark))
            }
            Word::Return => {
                self.bump();
                let value = if self.is(op(";")) {
                    E::NONE
                } else {
                    self.expression()?
                };
                self.expect(op(";"))?;
                Ok(self.push(StmtKind::Return(value), pos, mark))
            }
            Word::Goto => self.goto_statement(),
            Word::Asm => {
                while !self.is(op(";")) && !self.is_end() && !self.is(op("}")) {
                    self.skip_group();
                }
                self.eat(op(";"));
                Ok(self.push(StmtKind::Empty, pos, mark))
            }
            _ if self.ahead_is(1, op(":")) && self.is_plain_name(self.here()) => {
                let label = self.bump().sym;
                self.bump();
                Ok(self.push(StmtKind::Label(label), pos, mark))
            }
            _ if self.starts_declaration() => self.declaration(),
            _ => self.expression_statement(),
        }
    }

    /// Limits the occurrences of `id` to those of its own expression, without its sub-statements'.
    fn cut(&mut self, id: S, end: u32) {
        self.body.stmts[crate::front::lex::at(id.0)].occurrences.end = end;
    }

    fn switch_statement(&mut self) -> Parsed<S> {
        let (pos, mark) = (self.here().pos, self.mark());
        self.bump();
        self.expect(op("("))?;
        let on = self.expression()?;
        self.expect(op(")"))?;
        let occurrences = self.mark();
        let body = self.statement()?;
        let id = self.push(StmtKind::Switch { on, body }, pos, mark);
        self.cut(id, occurrences);
        Ok(id)
    }

    fn goto_statement(&mut self) -> Parsed<S> {
        let (pos, mark) = (self.here().pos, self.mark());
        self.bump();
        if self.eat(op("*")) {
            self.expression()?;
            self.expect(op(";"))?;
            return Ok(self.push(StmtKind::Empty, pos, mark));
        }
        let label = self.name()?;
        self.expect(op(";"))?;
        Ok(self.push(StmtKind::Goto(label), pos, mark))
    }

    fn if_statement(&mut self) -> Parsed<S> {
        let (pos, mark) = (self.here().pos, self.mark());
        self.bump();
        self.expect(op("("))?;
        let cond = self.expression()?;
        self.expect(op(")"))?;
        let occurrences = self.mark();
        let then = self.statement()?;
        let other = if self.word() == Word::Else {
            self.bump();
            Some(self.statement()?)
        } else {
            None
        };
        let id = self.push(StmtKind::If { cond, then, other }, pos, mark);
        self.cut(id, occurrences);
        Ok(id)
    }

    fn loop_statement(&mut self) -> Parsed<S> {
        let (pos, mark) = (self.here().pos, self.mark());
        let word = self.word();
        self.bump();
        let mut head = LoopHead {
            init: None,
            cond: E::NONE,
            step: E::NONE,
            tests_last: word == Word::Do,
        };
        if word == Word::Do {
            let body = self.statement()?;
            if self.word() != Word::While {
                return Err(Trouble);
            }
            let mark = self.mark();
            self.bump();
            self.expect(op("("))?;
            head.cond = self.expression()?;
            self.expect(op(")"))?;
            self.eat(op(";"));
            return Ok(self.push(StmtKind::Loop { head, body }, pos, mark));
        }
        self.expect(op("("))?;
        if word == Word::While {
            head.cond = self.expression()?;
        } else {
            self.for_head(&mut head)?;
        }
        self.expect(op(")"))?;
        let occurrences = self.mark();
        let body = self.statement()?;
        let id = self.push(StmtKind::Loop { head, body }, pos, mark);
        self.cut(id, occurrences);
        Ok(id)
    }

    fn for_head(&mut self, head: &mut LoopHead) -> Parsed<()> {
        let (pos, mark) = (self.here().pos, self.mark());
        if self.starts_declaration() {
            head.init = Some(self.declaration()?);
        } else {
            if !self.is(op(";")) {
                let init = self.expression()?;
                head.init = Some(self.push(StmtKind::Expr(init), pos, mark));
            }
            self.expect(op(";"))?;
        }
        if !self.is(op(";")) {
            head.cond = self.expression()?;
        }
        self.expect(op(";"))?;
        if !self.is(op(")")) {
            head.step = self.expression()?;
        }
        Ok(())
    }

    fn expression_statement(&mut self) -> Parsed<S> {
        let (pos, mark) = (self.here().pos, self.mark());
        let id = self.expression()?;
        if self.eat(op(";")) {
            return Ok(self.push(StmtKind::Expr(id), pos, mark));
        }
        let Expr::Call { callee, .. } = self.exprs.get(id) else {
            return Err(Trouble);
        };
        if self.is(op("}")) || self.is_end() {
            return Ok(self.push(StmtKind::Expr(id), pos, mark));
        }
        let is_loop = match self.exprs.get(callee) {
            Expr::Name(name) => {
                let text = self.names.text(name);
                (self.is_loop)(text) || text.starts_with(b"scoped_")
            }
            _ => false,
        };
        let occurrences = self.mark();
        if self.is(op("{")) || is_loop {
            let body = self.statement()?;
            let stmt = self.push(StmtKind::MacroBlock { call: id, body }, pos, mark);
            self.cut(stmt, occurrences);
            return Ok(stmt);
        }
        // A macro that brings its own semicolon.
        if self.here().kind == Kind::Name {
            return Ok(self.push(StmtKind::Expr(id), pos, mark));
        }
        Err(Trouble)
    }

    /// Whether a declaration begins here: a type keyword, `T x` or `T *x` before `=`, `;`, `,`, `[`.
    fn starts_declaration(&self) -> bool {
        match self.word() {
            Word::Struct
            | Word::Union
            | Word::Enum
            | Word::Typedef
            | Word::Extern
            | Word::Static
            | Word::Inline
            | Word::Qualifier
            | Word::Builtin
            | Word::Typeof => return true,
            Word::Plain | Word::Sync => {}
            _ => return false,
        }
        if self.here().kind != Kind::Name {
            return false;
        }
        let mut after = 1;
        while self.ahead_is(after, op("*")) || self.word_of(self.ahead(after)) == Word::Qualifier {
            after += 1;
        }
        if !self.is_plain_name(self.ahead(after)) {
            return false;
        }
        if after == 1 {
            return !self.ahead_is(after + 1, op("("));
        }
        ["=", ";", ",", "["]
            .iter()
            .any(|text| self.ahead_is(after + 1, op(text)))
    }

    /// A local declaration; each declarator with a name becomes a statement.
    fn declaration(&mut self) -> Parsed<S> {
        let pos = self.here().pos;
        let specs = self.specifiers()?;
        let mut stmts = Vec::new();
        if !self.is(op(";")) {
            loop {
                let mark = self.mark();
                let declarator = self.declarator(specs.ty)?;
                let at = if declarator.pos == 0 {
                    pos
                } else {
                    declarator.pos
                };
                if self.is(op(":")) {
                    self.bump();
                    self.assignment()?;
                }
                while self.word() == Word::Asm {
                    self.bump();
                    self.skip_group();
                }
                let mut init = E::NONE;
                if self.eat(op("=")) {
                    init = if self.is(op("{")) {
                        self.initialiser()?
                    } else {
                        self.assignment()?
                    };
                }
                if declarator.name.0 != 0 && !specs.is_typedef {
                    self.add_local(declarator.name, declarator.ty, specs.is_static);
                    let kind = StmtKind::Declare {
                        name: declarator.name,
                        init,
                    };
                    stmts.push(self.push(kind, at, mark));
                }
                if !self.eat(op(",")) {
                    break;
                }
            }
        }
        self.expect(op(";"))?;
        let mark = self.mark();
        Ok(self.push(StmtKind::Block(stmts), pos, mark))
    }

    fn add_local(&mut self, name: crate::front::lex::Sym, ty: Ty, is_static: bool) {
        // A static local is shared by all callers: it is a global with a short scope.
        if is_static {
            self.declared.globals.push((name, ty, true));
            return;
        }
        let ty = self.exprs.ty(ty);
        self.locals.push(Local { name, ty });
    }
}
