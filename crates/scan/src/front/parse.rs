//! The tolerant parser: recursive descent over tokens, never failing, counting what it had to skip.
//!
//! Macros are not expanded. A call followed by a block is a block under a macro; a macro argument that
//! is no expression is skipped. An error inside a function skips to the next statement and marks the
//! function as damaged.

mod decl;
mod expr;
mod stmt;

use super::ast::{
    Binding, Body, E, Exprs, Invocation, Local, Occurrences, S, Signature, Stmt, StmtKind,
    StructDecl, Ty,
};
use super::lex::{Kind, Lexed, Macro, Names, Sym, Token, at, index, op};
use super::words::Word;

/// Nesting at which the parser gives up on a statement: no human writes this.
const DEPTH_MAX: u32 = 160;

/// The parse went wrong here; the caller skips.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble;

pub(crate) type Parsed<T> = Result<T, Trouble>;

/// Receives each construct as soon as it is complete, so that no tree outlives its function.
pub(crate) trait Sink {
    /// A function with its body; `damaged` if parts were skipped.
    fn function(&mut self, exprs: &Exprs, names: &Names<'_>, function: &FunctionParts<'_>);
}

/// A function just parsed.
#[derive(Debug)]
pub(crate) struct FunctionParts<'p> {
    pub(crate) signature: &'p Signature,
    pub(crate) locals: &'p [Local],
    pub(crate) body: &'p Body,
    pub(crate) root: S,
    /// Where the body ends.
    pub(crate) end: u32,
    pub(crate) damaged: bool,
    pub(crate) from_macro: bool,
    /// The declaration says that locks are handed over to or by the caller.
    pub(crate) hands_over: bool,
}

/// What a file declares besides functions.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) structs: Vec<StructDecl>,
    pub(crate) typedefs: Vec<(Sym, Ty)>,
    /// Name, type, is static.
    pub(crate) globals: Vec<(Sym, Ty, bool)>,
    /// Functions declared or defined with their result types.
    pub(crate) results: Vec<(Sym, Ty)>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) invocations: Vec<Invocation>,
    /// Functions whose bodies could not be read, by name.
    pub(crate) functions_lost: Vec<Sym>,
}

pub(crate) struct Parser<'t, 'a, K: Sink> {
    tokens: &'t [Token],
    at: usize,
    names: &'t Names<'a>,
    pub(crate) exprs: Exprs,
    pub(crate) declared: Declared,
    body: Body,
    locals: Vec<Local>,
    depth: u32,
    errors: u32,
    sink: &'t mut K,
    is_loop: &'t dyn Fn(&[u8]) -> bool,
    hand_overs: &'t [u32],
    rcu_marks: &'t [u32],
    /// Where the declaration being read begins.
    declaration: u32,
}

/// Parses a whole file; functions go to `sink`, the rest is returned.
pub(crate) fn parse<K: Sink>(
    lexed: &Lexed<'_>,
    sink: &mut K,
    is_loop: &dyn Fn(&[u8]) -> bool,
) -> (Exprs, Declared) {
    let mut parser = Parser {
        tokens: &lexed.tokens,
        at: 0,
        names: &lexed.names,
        exprs: Exprs::new(),
        declared: Declared::default(),
        body: Body::default(),
        locals: Vec::new(),
        depth: 0,
        errors: 0,
        sink,
        is_loop,
        hand_overs: &lexed.hand_overs,
        rcu_marks: &lexed.rcu_marks,
        declaration: 0,
    };
    parser.file();
    for definition in &lexed.macros {
        parser.macro_body(definition);
    }
    (parser.exprs, parser.declared)
}

impl<'t, K: Sink> Parser<'t, '_, K> {
    fn here(&self) -> Token {
        self.tokens[self.at]
    }

    fn ahead(&self, by: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + by).min(last)]
    }

    fn bump(&mut self) -> Token {
        let token = self.here();
        self.exprs.steps += 1;
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn is_end(&self) -> bool {
        self.here().kind == Kind::End
    }

    fn is(&self, code: u32) -> bool {
        self.here().kind == Kind::Op(code)
    }

    fn ahead_is(&self, by: usize, code: u32) -> bool {
        self.ahead(by).kind == Kind::Op(code)
    }

    fn eat(&mut self, code: u32) -> bool {
        let found = self.is(code);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, code: u32) -> Parsed<()> {
        if self.eat(code) { Ok(()) } else { Err(Trouble) }
    }

    fn word_of(&self, token: Token) -> Word {
        if token.kind == Kind::Name {
            match self.names.word(token.sym) {
                // Without parentheses it is a name like any other.
                Word::AttributeCall => Word::Plain,
                word => word,
            }
        } else {
            Word::Plain
        }
    }

    fn word(&self) -> Word {
        self.word_of(self.here())
    }

    fn is_plain_name(&self, token: Token) -> bool {
        token.kind == Kind::Name && matches!(self.word_of(token), Word::Plain | Word::Sync)
    }

    fn name(&mut self) -> Parsed<Sym> {
        if self.is_plain_name(self.here()) {
            Ok(self.bump().sym)
        } else {
            Err(Trouble)
        }
    }

    /// Runs `inner` one level deeper, refusing absurd nesting.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Trouble);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips one token, or a whole bracketed group if it opens one.
    fn skip_group(&mut self) {
        let mut depth = 0_u32;
        loop {
            match self.here().kind {
                Kind::End => return,
                Kind::Op(code) if is_open(code) => depth += 1,
                Kind::Op(code) if is_close(code) => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips to just after the next `;` of this level, or to the `}` that closes it.
    fn skip_statement(&mut self) {
        loop {
            if self.is_end() || self.is(op("}")) {
                return;
            }
            if self.eat(op(";")) {
                return;
            }
            let was_block = self.is(op("{"));
            self.skip_group();
            if was_block {
                return;
            }
        }
    }

    fn note(&mut self, id: E, pos: u32) {
        self.body.occurrences.push((id, pos));
    }

    fn push(&mut self, kind: StmtKind, pos: u32, occurrences_from: u32) -> S {
        let id = S(index(self.body.stmts.len()));
        self.body.stmts.push(Stmt {
            kind,
            pos,
            occurrences: Occurrences {
                start: occurrences_from,
                end: index(self.body.occurrences.len()),
            },
        });
        id
    }

    fn mark(&self) -> u32 {
        index(self.body.occurrences.len())
    }

    /// A function-like macro is read as a function of untyped parameters.
    fn macro_body(&mut self, definition: &'t Macro) {
        let outer = (self.tokens, self.at);
        self.tokens = &definition.body;
        self.at = 0;
        self.begin_function();
        let untyped = self.exprs.ty(Ty::default());
        let params: Vec<Local> = definition
            .params
            .iter()
            .map(|name| Local {
                name: *name,
                ty: untyped,
            })
            .collect();
        self.locals.extend_from_slice(&params);
        let pos = self.here().pos;
        let mut stmts = Vec::new();
        while !self.is_end() && self.errors == 0 && !self.is(op("}")) {
            match self.statement() {
                Ok(stmt) => stmts.push(stmt),
                Err(Trouble) => self.errors += 1,
            }
        }
        if self.errors == 0 && self.is_end() {
            let root = self.push(StmtKind::Block(stmts), pos, 0);
            let signature = Signature {
                name: definition.name,
                params,
                ..Signature::default()
            };
            self.emit(&signature, root, true);
        }
        (self.tokens, self.at) = outer;
    }

    fn begin_function(&mut self) {
        self.body.stmts.clear();
        self.body.occurrences.clear();
        self.locals.clear();
        self.errors = 0;
        self.depth = 0;
    }

    fn emit(&mut self, signature: &Signature, root: S, from_macro: bool) {
        let (start, end) = (
            self.declaration,
            self.body.stmts.get(at(root.0)).map_or(0, |body| body.pos),
        );
        let hands_over = !from_macro
            && self
                .hand_overs
                .iter()
                .any(|place| (start..=end).contains(place));
        self.sink.function(
            &self.exprs,
            self.names,
            &FunctionParts {
                signature,
                locals: &self.locals,
                body: &self.body,
                root,
                end: self.tokens[self.at.saturating_sub(1)].pos,
                damaged: self.errors > 0,
                from_macro,
                hands_over,
            },
        );
    }
}

fn is_open(code: u32) -> bool {
    code == op("(") || code == op("{") || code == op("[")
}

fn is_close(code: u32) -> bool {
    code == op(")") || code == op("}") || code == op("]")
}
