//! The tree of one file: hash-consed expressions, types, and statements of one function at a time.
//!
//! Two occurrences of the same expression text have the same [`E`], so equality of conditions is
//! equality of numbers. Places are kept with statements and events, never with expressions.

use rustc_hash::FxHashMap;

use super::lex::{Sym, at, index};

/// An expression of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct E(pub(crate) u32);

impl E {
    /// No expression.
    pub(crate) const NONE: E = E(0);
}

/// A range in [`Exprs::lists`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct List {
    start: u32,
    len: u32,
}

/// A type as far as aliasing needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Ty {
    /// Tag of a struct or union, or a typedef name; 0 for built-in or unknown types.
    pub(crate) base: Sym,
    /// `base` is a tag.
    pub(crate) tagged: bool,
    /// Pointer and array levels.
    pub(crate) pointers: u8,
    /// A function or pointer to one.
    pub(crate) function: bool,
    /// A plain number.
    pub(crate) builtin: bool,
}

/// One node. Operators are the lexer's operator codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Expr {
    None,
    Name(Sym),
    Number(Sym),
    Text(Sym),
    Member {
        base: E,
        field: Sym,
        arrow: bool,
    },
    Index {
        base: E,
        index: E,
    },
    Unary {
        op: u32,
        of: E,
    },
    /// `x++` and `x--`, before or after.
    Step {
        of: E,
    },
    Binary {
        op: u32,
        left: E,
        right: E,
    },
    Assign {
        op: u32,
        to: E,
        from: E,
    },
    Call {
        callee: E,
        args: List,
    },
    Cast {
        ty: u32,
        of: E,
    },
    Choice {
        parts: List,
    },
    Comma {
        parts: List,
    },
    Init {
        parts: List,
    },
    Field {
        name: Sym,
        value: E,
    },
    Type {
        ty: u32,
    },
    /// A statement expression; the number is a statement of the function being parsed.
    Block(S),
    /// Macro arguments that are no expression.
    Other,
}

/// The expressions of one file.
#[derive(Debug, Default)]
pub(crate) struct Exprs {
    pub(crate) nodes: Vec<Expr>,
    ids: FxHashMap<Expr, E>,
    lists: Vec<E>,
    list_ids: FxHashMap<Vec<E>, List>,
    pub(crate) types: Vec<Ty>,
    type_ids: FxHashMap<Ty, u32>,
    /// Tokens consumed while parsing, going back included: a measure of work.
    pub(crate) steps: u64,
}

impl Exprs {
    pub(crate) fn new() -> Self {
        let mut exprs = Self::default();
        exprs.add(Expr::None);
        exprs
    }

    /// The one number of `expr`.
    pub(crate) fn add(&mut self, expr: Expr) -> E {
        if let Some(id) = self.ids.get(&expr) {
            return *id;
        }
        let id = E(index(self.nodes.len()));
        self.nodes.push(expr);
        self.ids.insert(expr, id);
        id
    }

    /// The one range that holds `parts`.
    pub(crate) fn list(&mut self, parts: &[E]) -> List {
        if let Some(list) = self.list_ids.get(parts) {
            return *list;
        }
        let list = List {
            start: index(self.lists.len()),
            len: index(parts.len()),
        };
        self.lists.extend_from_slice(parts);
        self.list_ids.insert(parts.to_vec(), list);
        list
    }

    /// The one number of `ty`.
    pub(crate) fn ty(&mut self, ty: Ty) -> u32 {
        if let Some(id) = self.type_ids.get(&ty) {
            return *id;
        }
        let id = index(self.types.len());
        self.types.push(ty);
        self.type_ids.insert(ty, id);
        id
    }

    /// The number of `expr`, if it has one.
    pub(crate) fn find(&self, expr: Expr) -> Option<E> {
        self.ids.get(&expr).copied()
    }

    pub(crate) fn get(&self, id: E) -> Expr {
        self.nodes[at(id.0)]
    }

    pub(crate) fn parts(&self, list: List) -> &[E] {
        &self.lists[at(list.start)..at(list.start) + at(list.len)]
    }

    /// Frees what only building needs.
    pub(crate) fn seal(&mut self) {
        self.ids = FxHashMap::default();
        self.list_ids = FxHashMap::default();
        self.type_ids = FxHashMap::default();
        self.nodes.shrink_to_fit();
        self.lists.shrink_to_fit();
        self.types.shrink_to_fit();
    }

    /// Without parentheses, casts, `likely` and the like around it: what is really accessed.
    pub(crate) fn peel(&self, mut id: E) -> E {
        loop {
            match self.get(id) {
                Expr::Cast { of, .. } => id = of,
                _ => return id,
            }
        }
    }
}

/// A statement of the function being parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct S(pub(crate) u32);

/// Where the calls and accesses of one statement's expressions stand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Occurrences {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum StmtKind {
    Empty,
    Expr(E),
    Declare {
        name: Sym,
        init: E,
    },
    If {
        cond: E,
        then: S,
        other: Option<S>,
    },
    Loop {
        head: LoopHead,
        body: S,
    },
    /// `name(args) { .. }` and `name(args) statement`.
    MacroBlock {
        call: E,
        body: S,
    },
    Switch {
        on: E,
        body: S,
    },
    Case {
        value: E,
    },
    Label(Sym),
    Goto(Sym),
    Break,
    Continue,
    Return(E),
    Block(Vec<S>),
}

/// The controlling parts of a loop; missing ones are [`E::NONE`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoopHead {
    pub(crate) init: Option<S>,
    pub(crate) cond: E,
    pub(crate) step: E,
    pub(crate) tests_last: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) pos: u32,
    pub(crate) occurrences: Occurrences,
}

/// Scratch space for one function.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) stmts: Vec<Stmt>,
    /// Calls and accesses with their places, in the order of parsing.
    pub(crate) occurrences: Vec<(E, u32)>,
}

/// A parameter or local variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local {
    pub(crate) name: Sym,
    pub(crate) ty: u32,
}

/// A field of a struct or union.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldDecl {
    pub(crate) name: Sym,
    pub(crate) ty: Ty,
    /// Declared as a pointer for readers under RCU.
    pub(crate) is_rcu: bool,
}

/// `struct tag { .. }`.
#[derive(Debug, Clone)]
pub(crate) struct StructDecl {
    pub(crate) tag: Sym,
    pub(crate) fields: Vec<FieldDecl>,
}

/// A variable at file level, or a field of one, that is set to a name: `.open = my_open`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    /// Tag or typedef name of the initialised struct.
    pub(crate) holder: Sym,
    pub(crate) field: Sym,
    pub(crate) value: Sym,
}

/// `NAME(args);` at file level.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) name: Sym,
    /// Arguments that are single names; others are 0.
    pub(crate) args: Vec<Sym>,
    pub(crate) is_static: bool,
}

/// What follows a function's name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signature {
    pub(crate) name: Sym,
    pub(crate) result: Ty,
    pub(crate) params: Vec<Local>,
    pub(crate) is_static: bool,
    /// The macro that defines it (`SYSCALL_DEFINE3`), or 0.
    pub(crate) definer: Sym,
    pub(crate) is_init: bool,
}
