//! Declarations at file level, types and declarators.

use super::{Parsed, Parser, Sink, Trouble};
use crate::front::ast::{
    Binding, E, Expr, FieldDecl, Invocation, Local, Signature, StructDecl, Ty,
};
use crate::front::lex::{Kind, Sym, op};
use crate::front::words::Word;

/// What stands before the declarators.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Specifiers {
    pub(super) ty: Ty,
    pub(super) is_typedef: bool,
    pub(super) is_static: bool,
    pub(super) is_init: bool,
}

/// A name with its type.
#[derive(Debug, Clone, Default)]
pub(super) struct Declarator {
    pub(super) name: Sym,
    pub(super) ty: Ty,
    pub(super) pos: u32,
    params: Option<Vec<Local>>,
}

impl<K: Sink> Parser<'_, '_, K> {
    /// A whole file.
    pub(super) fn file(&mut self) {
        while !self.is_end() {
            let start = self.at;
            self.begin_function();
            self.declaration = self.here().pos;
            if self.external().is_err() {
                self.skip_external(start);
            }
            if self.at == start {
                self.bump();
            }
        }
    }

    /// After trouble: to the end of this declaration; a body that goes by is a lost function.
    fn skip_external(&mut self, start: usize) {
        self.at = start;
        let mut name = None;
        loop {
            if self.is_end() {
                return;
            }
            if self.eat(op(";")) {
                return;
            }
            if self.is(op("{")) {
                if let Some(name) = name {
                    self.declared.functions_lost.push(name);
                }
                self.skip_group();
                if name.is_some() {
                    return;
                }
                continue;
            }
            if self.is(op("(")) {
                let before = self.at.checked_sub(1).map(|before| self.tokens[before]);
                name = before
                    .filter(|token| token.kind == Kind::Name)
                    .map(|token| token.sym)
                    .or(name);
            } else if !self.is_plain_name(self.here()) {
                name = None;
            }
            self.skip_group();
        }
    }

    fn external(&mut self) -> Parsed<()> {
        if self.eat(op(";")) || self.eat(op("}")) {
            return Ok(());
        }
        if self.word() == Word::Asm {
            self.bump();
            self.skip_statement();
            return Ok(());
        }
        if self.word() == Word::Extern && self.ahead(1).kind == Kind::Text {
            self.bump();
            self.bump();
            self.eat(op("{"));
            return Ok(());
        }
        let specs = self.specifiers()?;
        let nothing_read = specs.ty == Ty::default();
        if nothing_read && self.is_plain_name(self.here()) && self.ahead_is(1, op("(")) {
            return self.invocation(specs);
        }
        if self.eat(op(";")) {
            return Ok(());
        }
        loop {
            let mut declarator = self.declarator(specs.ty)?;
            self.skip_attributes_after_declarator();
            if declarator.params.is_some() && self.is_function_body() {
                let params = declarator.params.take().unwrap_or_default();
                let signature = Signature {
                    name: declarator.name,
                    result: declarator.ty,
                    params,
                    is_static: specs.is_static,
                    definer: Sym(0),
                    is_init: specs.is_init,
                };
                return self.function(signature);
            }
            self.external_declarator(specs, &declarator)?;
            if self.eat(op(",")) {
                continue;
            }
            return self.expect(op(";"));
        }
    }

    fn external_declarator(&mut self, specs: Specifiers, declarator: &Declarator) -> Parsed<()> {
        if specs.is_typedef {
            self.declared
                .typedefs
                .push((declarator.name, declarator.ty));
        } else if declarator.params.is_some() {
            self.declared.results.push((declarator.name, declarator.ty));
        } else {
            self.declared
                .globals
                .push((declarator.name, declarator.ty, specs.is_static));
        }
        if self.eat(op("=")) {
            let value = if self.is(op("{")) {
                self.initialiser()?
            } else {
                self.assignment()?
            };
            self.bind(declarator.ty.base, Sym(0), value, 0);
        }
        Ok(())
    }

    /// Notes the names that initialise fields of `holder`.
    fn bind(&mut self, holder: Sym, field: Sym, value: E, depth: u32) {
        if depth > 8 {
            return;
        }
        match self.exprs.get(value) {
            Expr::Name(value) => self.declared.bindings.push(Binding {
                holder,
                field,
                value,
            }),
            Expr::Unary { of, .. } | Expr::Cast { of, .. } => {
                self.bind(holder, field, of, depth + 1);
            }
            Expr::Field { name, value } => {
                // A nested initialiser has a type we do not look up: its fields name themselves.
                let inner = matches!(self.exprs.get(value), Expr::Init { .. });
                let holder = if inner { Sym(0) } else { holder };
                self.bind(holder, name, value, depth + 1);
            }
            Expr::Init { parts } | Expr::Call { args: parts, .. } => {
                let parts = self.exprs.parts(parts).to_vec();
                for part in parts {
                    self.bind(holder, field, part, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Macros after a function's parentheses (`__releases(x)` of unknown name, `NAME`).
    fn skip_attributes_after_declarator(&mut self) {
        while self.is_plain_name(self.here()) && !self.is_old_style_parameter() {
            self.bump();
            if self.is(op("(")) {
                self.skip_group();
            }
        }
        if self.word() == Word::Asm {
            self.bump();
            self.skip_group();
        }
    }

    fn is_old_style_parameter(&self) -> bool {
        self.is_plain_name(self.ahead(1)) || self.ahead_is(1, op("*"))
    }

    fn is_function_body(&self) -> bool {
        self.is(op("{"))
            || matches!(
                self.word(),
                Word::Struct | Word::Builtin | Word::Qualifier | Word::Union | Word::Enum
            )
            || (self.is_plain_name(self.here()) && self.is_old_style_parameter())
    }

    fn function(&mut self, signature: Signature) -> Parsed<()> {
        let mut signature = signature;
        // Parameters of old-style definitions.
        while !self.is(op("{")) {
            if self.is_end() || self.is(op("}")) {
                return Err(Trouble);
            }
            let specs = self.specifiers()?;
            loop {
                let declarator = self.declarator(specs.ty)?;
                let ty = self.exprs.ty(declarator.ty);
                match signature
                    .params
                    .iter_mut()
                    .find(|p| p.name == declarator.name)
                {
                    Some(param) => param.ty = ty,
                    None => return Err(Trouble),
                }
                if !self.eat(op(",")) {
                    break;
                }
            }
            self.expect(op(";"))?;
        }
        self.locals.extend_from_slice(&signature.params);
        self.declared
            .results
            .push((signature.name, signature.result));
        let body_start = self.at;
        let root = match self.block() {
            Ok(root) => root,
            Err(Trouble) => {
                self.at = body_start;
                self.skip_group();
                self.declared.functions_lost.push(signature.name);
                return Ok(());
            }
        };
        self.emit(&signature, root, false);
        Ok(())
    }

    /// `NAME(args)` at file level: a definition by macro, a registration, or a function made by a macro.
    fn invocation(&mut self, specs: Specifiers) -> Parsed<()> {
        let token = self.bump();
        let start = self.at;
        let mut args = Vec::new();
        self.bump();
        let mut params = Vec::new();
        while !self.is(op(")")) {
            if self.is_end() {
                return Err(Trouble);
            }
            let first = self.here();
            let begin = self.at;
            while !self.is_end() && !self.is(op(",")) && !self.is(op(")")) {
                self.skip_group();
            }
            let words = &self.tokens[begin..self.at];
            let single = if let [one] = words { one.sym } else { Sym(0) };
            let last = words.last().map_or(Sym(0), |last| last.sym);
            args.push(if first.kind == Kind::Name {
                single
            } else {
                Sym(0)
            });
            params.push((begin, last));
            self.eat(op(","));
        }
        self.bump();
        self.skip_attributes_after_declarator();
        if self.is(op("{")) {
            let mut signature = self.macro_signature(token.sym, &args, &params);
            signature.is_static |= specs.is_static;
            return self.function(signature);
        }
        if self.is(op("=")) {
            // `DEFINE_PER_CPU(type, name) = value;`
            self.skip_statement();
        }
        if self.is(op("(")) || self.is_plain_name(self.here()) && start == 0 {
            return Err(Trouble);
        }
        self.eat(op(";"));
        self.declared.invocations.push(Invocation {
            name: token.sym,
            args,
            is_static: specs.is_static,
        });
        Ok(())
    }

    /// `SYSCALL_DEFINE2(open, const char *, name, int, flags)`: name, then pairs of type and name.
    fn macro_signature(
        &mut self,
        definer: Sym,
        args: &[Sym],
        params: &[(usize, Sym)],
    ) -> Signature {
        let is_pairs = args.len() % 2 == 1;
        let mut locals = Vec::new();
        if is_pairs {
            let resume = self.at;
            for pair in params[1..].chunks(2) {
                self.at = pair[0].0;
                let ty = self.type_name().unwrap_or_default();
                let ty = self.exprs.ty(ty);
                let name = pair[1].1;
                locals.push(Local { name, ty });
            }
            self.at = resume;
        }
        Signature {
            name: args
                .first()
                .copied()
                .filter(|name| name.0 != 0)
                .unwrap_or(definer),
            params: locals,
            definer,
            ..Signature::default()
        }
    }

    /// Storage, qualifiers and the type itself.
    pub(super) fn specifiers(&mut self) -> Parsed<Specifiers> {
        let mut specs = Specifiers::default();
        let mut have_type = false;
        loop {
            match self.word() {
                Word::Typedef => specs.is_typedef = true,
                Word::Static => specs.is_static = true,
                Word::Extern | Word::Qualifier | Word::Inline => {}
                Word::Builtin => {
                    specs.ty.builtin = true;
                    have_type = true;
                }
                Word::Struct | Word::Union | Word::Enum => {
                    specs.ty = self.tagged_type()?;
                    have_type = true;
                    continue;
                }
                Word::Typeof => {
                    self.bump();
                    self.skip_group();
                    specs.ty.builtin = true;
                    have_type = true;
                    continue;
                }
                Word::Plain | Word::Sync if self.here().kind == Kind::Name => {
                    if self.names.text(self.here().sym) == b"__init" {
                        specs.is_init = true;
                    } else if have_type || !self.is_type_name_here() {
                        return Ok(specs);
                    } else {
                        specs.ty.base = self.here().sym;
                        have_type = true;
                    }
                }
                _ => return Ok(specs),
            }
            self.bump();
        }
    }

    /// Whether the plain name here must be a type: a declarator follows it.
    fn is_type_name_here(&self) -> bool {
        let next = self.ahead(1);
        match next.kind {
            Kind::Name => true,
            Kind::Op(code) => {
                code == op("*")
                    || code == op(",")
                    || code == op(")")
                    || (code == op("(") && self.ahead_is(2, op("*")))
            }
            _ => false,
        }
    }

    /// `struct tag`, with or without its fields.
    fn tagged_type(&mut self) -> Parsed<Ty> {
        let pos = self.here().pos;
        let is_enum = self.word() == Word::Enum;
        self.bump();
        let mut tag = Sym(0);
        while self.is_plain_name(self.here()) {
            let before = tag;
            tag = self.here().sym;
            if before.0 != 0 && !self.ahead_is(1, op("{")) {
                // The second name is the declarator.
                tag = before;
                break;
            }
            self.bump();
        }
        if self.is(op("{")) {
            if is_enum {
                self.skip_group();
            } else {
                let fields = self.fields()?;
                if tag.0 == 0 {
                    tag = Sym(ANONYMOUS | (pos & !ANONYMOUS));
                }
                self.declared.structs.push(StructDecl { tag, fields });
            }
        }
        Ok(Ty {
            base: if is_enum { Sym(0) } else { tag },
            tagged: !is_enum,
            builtin: is_enum,
            ..Ty::default()
        })
    }

    fn fields(&mut self) -> Parsed<Vec<FieldDecl>> {
        self.deeper(|parser| {
            parser.expect(op("{"))?;
            let mut fields = Vec::new();
            while !parser.eat(op("}")) {
                if parser.is_end() {
                    return Err(Trouble);
                }
                let start = parser.at;
                if parser.field(&mut fields).is_err() {
                    parser.at = start;
                    parser.skip_statement();
                    if parser.at == start {
                        parser.bump();
                    }
                }
            }
            Ok(fields)
        })
    }

    fn field(&mut self, fields: &mut Vec<FieldDecl>) -> Parsed<()> {
        if self.is_plain_name(self.here()) && self.ahead_is(1, op("(")) {
            return self.field_macro(fields);
        }
        let structs_before = self.declared.structs.len();
        let start = self.place();
        let specs = self.specifiers()?;
        if self.eat(op(";")) {
            // Fields of an anonymous member belong to the outer struct.
            if self.declared.structs.len() > structs_before
                && let Some(inner) = self.declared.structs.last()
            {
                fields.extend_from_slice(&inner.fields);
            }
            return Ok(());
        }
        loop {
            let declarator = self.declarator(specs.ty)?;
            if self.eat(op(":")) {
                self.assignment()?;
            }
            let mut ty = declarator.ty;
            ty.function |= declarator.params.is_some();
            fields.push(FieldDecl {
                name: declarator.name,
                ty,
                is_rcu: self.is_rcu_between(start, self.place()),
            });
            if !self.eat(op(",")) {
                break;
            }
        }
        while self.is_plain_name(self.here()) {
            self.bump();
            if self.is(op("(")) {
                self.skip_group();
            }
        }
        self.expect(op(";"))
    }

    /// Where the next token stands.
    fn place(&self) -> u32 {
        self.tokens.get(self.at).map_or(u32::MAX, |token| token.pos)
    }

    fn is_rcu_between(&self, start: u32, end: u32) -> bool {
        let first = self.rcu_marks.partition_point(|mark| *mark < start);
        self.rcu_marks.get(first).is_some_and(|mark| *mark < end)
    }

    /// `DECLARE_BITMAP(name, n);` and `struct_group(name, fields);`.
    fn field_macro(&mut self, fields: &mut Vec<FieldDecl>) -> Parsed<()> {
        let is_group = self
            .names
            .text(self.here().sym)
            .starts_with(b"struct_group");
        self.bump();
        let inside = self.at + 1;
        let first = self.ahead(1);
        self.skip_group();
        let after = self.at;
        self.eat(op(";"));
        let resume = self.at;
        if first.kind == Kind::Name {
            fields.push(FieldDecl {
                name: first.sym,
                ty: Ty::default(),
                is_rcu: false,
            });
        }
        if is_group {
            self.at = inside;
            while self.at + 1 < after && !self.eat(op(",")) {
                self.bump();
            }
            while self.at + 1 < after {
                let start = self.at;
                if self.field(fields).is_err() || self.at == start {
                    break;
                }
            }
        }
        self.at = resume;
        Ok(())
    }

    /// A type without a name, as in casts.
    pub(super) fn type_name(&mut self) -> Parsed<Ty> {
        let specs = self.specifiers()?;
        if specs.ty == Ty::default() {
            return Err(Trouble);
        }
        Ok(self.declarator(specs.ty)?.ty)
    }

    /// `*name[..](..)`, `(*name)(..)`, or nothing at all.
    pub(super) fn declarator(&mut self, base: Ty) -> Parsed<Declarator> {
        self.deeper(|parser| parser.declarator_inner(base))
    }

    fn declarator_inner(&mut self, base: Ty) -> Parsed<Declarator> {
        let mut ty = base;
        loop {
            if self.eat(op("*")) {
                ty.pointers = ty.pointers.saturating_add(1);
            } else if matches!(self.word(), Word::Qualifier | Word::Inline) {
                self.bump();
            } else if self.is_plain_name(self.here()) && self.is_plain_name(self.ahead(1)) {
                // A macro between type and name.
                self.bump();
            } else {
                break;
            }
        }
        let mut declarator = Declarator {
            ty,
            ..Declarator::default()
        };
        if self.is_plain_name(self.here()) {
            declarator.pos = self.here().pos;
            declarator.name = self.bump().sym;
        } else if self.is(op("(")) && self.opens_declarator() {
            self.bump();
            let inner = self.declarator(Ty::default())?;
            self.expect(op(")"))?;
            declarator.name = inner.name;
            declarator.pos = inner.pos;
            declarator.params = inner.params;
            declarator.ty.pointers = declarator.ty.pointers.saturating_add(inner.ty.pointers);
            if self.is(op("(")) {
                self.skip_group();
                // `int (*f)(..)` is a pointer; `(name)(..)` is a function after all.
                declarator.ty.function = inner.ty.pointers > 0;
            }
        }
        self.declarator_suffixes(&mut declarator)?;
        Ok(declarator)
    }

    fn opens_declarator(&self) -> bool {
        self.ahead_is(1, op("*"))
            || self.ahead_is(1, op("("))
            || (self.is_plain_name(self.ahead(1))
                && self.ahead_is(2, op(")"))
                && self.ahead_is(3, op("(")))
    }

    fn declarator_suffixes(&mut self, declarator: &mut Declarator) -> Parsed<()> {
        loop {
            if self.is(op("[")) {
                self.skip_group();
                declarator.ty.pointers = declarator.ty.pointers.saturating_add(1);
            } else if self.is(op("(")) && declarator.params.is_none() && !declarator.ty.function {
                declarator.params = Some(self.parameters()?);
            } else {
                return Ok(());
            }
        }
    }

    fn parameters(&mut self) -> Parsed<Vec<Local>> {
        self.expect(op("("))?;
        let mut params = Vec::new();
        while !self.is(op(")")) {
            if self.eat(op("...")) {
                break;
            }
            let start = self.at;
            let local = self.parameter();
            match local {
                Ok(local) if self.is(op(",")) || self.is(op(")")) => params.push(local),
                _ => {
                    self.at = start;
                    while !self.is_end() && !self.is(op(",")) && !self.is(op(")")) {
                        self.skip_group();
                    }
                    let ty = self.exprs.ty(Ty::default());
                    let last = self.tokens[self.at.saturating_sub(1)];
                    params.push(Local { name: last.sym, ty });
                }
            }
            if !self.eat(op(",")) {
                break;
            }
        }
        self.expect(op(")"))?;
        Ok(params)
    }

    fn parameter(&mut self) -> Parsed<Local> {
        let specs = self.specifiers()?;
        let declarator = self.declarator(specs.ty)?;
        let mut ty = declarator.ty;
        ty.function |= declarator.params.is_some();
        // Old-style parameter lists hold names where types should be.
        let name = if declarator.name.0 == 0 && !specs.ty.tagged && specs.ty.pointers == 0 {
            specs.ty.base
        } else {
            declarator.name
        };
        let ty = self.exprs.ty(ty);
        Ok(Local { name, ty })
    }
}

/// Marks the tag of a struct without one; the rest of the number is its place.
pub(crate) const ANONYMOUS: u32 = 0x8000_0000;
