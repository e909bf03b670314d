//! One file after parsing: what the analyses keep of it.

use super::ast::{E, Expr, Exprs, Local, S, StmtKind, Ty};
use super::event::{Event, Function};
use super::lex::{Names, Sym, at, index, lex};
use super::lower::Lower;
use super::parse::{Declared, FunctionParts, Sink, parse};
use super::words::Words;
use crate::idioms::Table;

/// A parsed file. Names are local; [`Unit::globals`] maps them once all files are known.
#[derive(Debug)]
pub(crate) struct Unit {
    spellings: Vec<u8>,
    spelling_ends: Vec<u32>,
    /// Number of each local name among the names of all files.
    pub(crate) globals: Vec<u32>,
    pub(crate) exprs: Exprs,
    pub(crate) events: Vec<Event>,
    pub(crate) functions: Vec<Function>,
    pub(crate) locals: Vec<Local>,
    pub(crate) declared: Declared,
    pub(crate) stats: UnitStats,
    /// Byte offsets of `raddle-ignore` comments.
    pub(crate) ignores: Vec<u32>,
    /// Function-like macros that the file defines.
    pub(crate) macro_names: Vec<Sym>,
}

/// What parsing saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnitStats {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) functions: u64,
    pub(crate) damaged: u64,
    pub(crate) lost: u64,
}

impl Unit {
    /// Parses `text`.
    pub(crate) fn parse(text: &[u8], table: &Table, words: &Words) -> Self {
        let lexed = lex(text, words);
        let mut collector = Collector {
            table,
            idioms: Vec::new(),
            events: Vec::new(),
            functions: Vec::new(),
            locals: Vec::new(),
        };
        let (mut exprs, declared) = parse(&lexed, &mut collector, &|name| table.is_loop(name));
        exprs.seal();
        let stats = stats(text, &collector.functions, &declared);
        let (spellings, spelling_ends) = flatten(&lexed.names);
        let mut unit = Self {
            spellings,
            spelling_ends,
            globals: Vec::new(),
            exprs,
            events: collector.events,
            functions: collector.functions,
            locals: collector.locals,
            declared,
            stats,
            ignores: find_ignores(text),
            macro_names: lexed.macro_names,
        };
        unit.events.shrink_to_fit();
        unit.locals.shrink_to_fit();
        unit.functions.shrink_to_fit();
        unit
    }

    /// All spellings in the order of their numbers.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.spelling_ends.iter().map(move |end| {
            let text = &self.spellings[start..at(*end)];
            start = at(*end);
            text
        })
    }

    /// Takes over the numbers of all files and forgets the spellings.
    pub(crate) fn link(&mut self, globals: Vec<u32>) {
        self.globals = globals;
        self.spellings = Vec::new();
        self.spelling_ends = Vec::new();
    }

    /// The number of a local name among all names.
    pub(crate) fn global(&self, sym: Sym) -> u32 {
        self.globals.get(at(sym.0)).copied().unwrap_or(0)
    }

    pub(crate) fn events_of(&self, function: &Function) -> &[Event] {
        &self.events[at(function.first)..at(function.first + function.count)]
    }

    pub(crate) fn locals_of(&self, function: &Function) -> &[Local] {
        &self.locals[at(function.locals)..at(function.locals + function.local_count)]
    }

    pub(crate) fn ty(&self, id: u32) -> Ty {
        self.exprs.types[at(id)]
    }

    /// The callee's name and arguments, if `id` is a call of a name.
    pub(crate) fn named_call(&self, id: E) -> Option<(Sym, &[E])> {
        let Expr::Call { callee, args } = self.exprs.get(id) else {
            return None;
        };
        match self.exprs.get(callee) {
            Expr::Name(name) => Some((name, self.exprs.parts(args))),
            _ => None,
        }
    }
}

struct Collector<'t> {
    table: &'t Table,
    idioms: Vec<u16>,
    events: Vec<Event>,
    functions: Vec<Function>,
    locals: Vec<Local>,
}

impl Sink for Collector<'_> {
    fn function(&mut self, exprs: &Exprs, names: &Names<'_>, function: &FunctionParts<'_>) {
        let mut lower = Lower::new(
            exprs,
            names,
            self.table,
            &mut self.idioms,
            function.body,
            function.locals,
        );
        lower.stmt(function.root);
        if !function.from_macro {
            lower.end(function.end);
        }
        let events = lower.events;
        let signature = function.signature;
        self.functions.push(Function {
            name: signature.name,
            first: index(self.events.len()),
            count: index(events.len()),
            locals: index(self.locals.len()),
            local_count: index(function.locals.len()),
            params: index(signature.params.len()),
            is_static: signature.is_static,
            is_init: signature.is_init,
            damaged: function.damaged,
            from_macro: function.from_macro,
            value: value_of(function),
            hands_over: function.hands_over,
            definer: signature.definer,
        });
        self.events.extend(events);
        self.locals.extend_from_slice(function.locals);
    }
}

/// The expression that a macro stands for, if it is one.
fn value_of(function: &FunctionParts<'_>) -> E {
    let kind = |id: S| function.body.stmts.get(at(id.0)).map(|stmt| &stmt.kind);
    if function.from_macro
        && let Some(StmtKind::Block(stmts)) = kind(function.root)
        && let [only] = stmts.as_slice()
        && let Some(StmtKind::Expr(value)) = kind(*only)
    {
        return *value;
    }
    E::NONE
}

fn flatten(names: &Names<'_>) -> (Vec<u8>, Vec<u32>) {
    let mut spellings = Vec::new();
    let mut ends = Vec::with_capacity(names.texts.len());
    for text in &names.texts {
        spellings.extend_from_slice(text);
        ends.push(index(spellings.len()));
    }
    (spellings, ends)
}

fn stats(text: &[u8], functions: &[Function], declared: &Declared) -> UnitStats {
    let count = |test: fn(&Function) -> bool| {
        raddle_stdx::width::to_u64(functions.iter().filter(|function| test(function)).count())
    };
    let lost = raddle_stdx::width::to_u64(declared.functions_lost.len());
    let newlines = text.iter().filter(|byte| **byte == b'\n').count();
    UnitStats {
        bytes: raddle_stdx::width::to_u64(text.len()),
        lines: raddle_stdx::width::to_u64(newlines),
        functions: count(|function| !function.from_macro) + lost,
        damaged: count(|function| function.damaged && !function.from_macro),
        lost,
    }
}

/// The comment that keeps a finding out.
pub(crate) const IGNORE: &[u8] = b"raddle-ignore";

fn find_ignores(text: &[u8]) -> Vec<u32> {
    let mut places = Vec::new();
    let mut start = 0;
    while let Some(offset) = text[start..].iter().position(|byte| *byte == b'r') {
        let place = start + offset;
        if text[place..].starts_with(IGNORE) {
            places.push(index(place));
        }
        start = place + 1;
    }
    places
}
