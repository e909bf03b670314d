//! Alias keys: two expressions may name the same object if their keys are equal.
//!
//! As in the paper (section 3.3) the key of a field is the struct that holds it and its name; a global
//! variable is its own key; locals are private to their function.

use super::program::{FnId, Name, Program};
use super::types::{Def, GlobalTy};
use crate::front::ast::{E, Expr};
use crate::front::event::Function;
use crate::front::lex::{Sym, at, op};
use crate::front::unit::Unit;

/// What an expression names, for aliasing. Packed: 4 bits of kind, two numbers of 30.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(u64);

/// The parts of a [`Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyParts {
    Unknown,
    /// Field of a struct.
    Field(Def, Name),
    /// A variable; the unit if it is private to one, else `None`.
    Global(Name, Option<u32>),
    Local(FnId, Name),
    /// A field of an unknown struct, in one unit.
    Vague(Name, u32),
    /// A lock without object.
    Class(u32),
    /// One bit of a word: a digest of the word's key, and the name of the bit.
    Bit(u32, Name),
}

const PART: u64 = (1 << 30) - 1;

impl Key {
    pub(crate) const UNKNOWN: Key = Key(0);

    pub(crate) fn new(parts: KeyParts) -> Self {
        let (kind, a, b) = match parts {
            KeyParts::Unknown => (0, 0, 0),
            KeyParts::Field(def, name) => (1, def.0, name.0),
            KeyParts::Global(name, unit) => (2, name.0, unit.map_or(0, |unit| unit + 1)),
            KeyParts::Local(function, name) => (3, function.0, name.0),
            KeyParts::Vague(name, unit) => (4, name.0, unit),
            KeyParts::Class(class) => (5, class, 0),
            KeyParts::Bit(word, bit) => (6, word, bit.0),
        };
        Self(kind << 60 | (u64::from(a) & PART) << 30 | (u64::from(b) & PART))
    }

    pub(crate) fn parts(self) -> KeyParts {
        let a = raddle_stdx::width::low_u32(self.0 >> 30 & PART);
        let b = raddle_stdx::width::low_u32(self.0 & PART);
        match self.0 >> 60 {
            1 => KeyParts::Field(Def(a), Name(b)),
            2 => KeyParts::Global(Name(a), b.checked_sub(1)),
            3 => KeyParts::Local(FnId(a), Name(b)),
            4 => KeyParts::Vague(Name(a), b),
            5 => KeyParts::Class(a),
            6 => KeyParts::Bit(a, Name(b)),
            _ => KeyParts::Unknown,
        }
    }

    /// The key names something that other threads may reach.
    pub(crate) fn is_shared(self) -> bool {
        !matches!(
            self.parts(),
            KeyParts::Unknown | KeyParts::Local(..) | KeyParts::Class(_)
        )
    }

    pub(crate) fn is_local(self) -> bool {
        matches!(self.parts(), KeyParts::Local(..))
    }

    /// Only the last part of the name: what is left without alias analysis.
    pub(crate) fn without_type(self) -> Self {
        match self.parts() {
            KeyParts::Field(_, name)
            | KeyParts::Global(name, _)
            | KeyParts::Local(_, name)
            | KeyParts::Vague(name, _)
            | KeyParts::Bit(_, name) => Self::new(KeyParts::Vague(name, 0)),
            _ => self,
        }
    }

    /// The key of one bit of the word behind this key.
    fn bit(self, bit: Name) -> Self {
        if !self.is_shared() {
            return self;
        }
        let mixed = self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 34;
        Self::new(KeyParts::Bit(raddle_stdx::width::low_u32(mixed), bit))
    }
}

/// Looks at the expressions of one function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'p> {
    pub(crate) program: &'p Program<'p>,
    pub(crate) id: FnId,
    pub(crate) unit_number: u32,
    pub(crate) unit: &'p Unit,
    pub(crate) function: &'p Function,
}

/// Structs so general that the field inside them says nothing; the outer field is the key.
const GENERAL: &[&[u8]] = &[
    b"list_head",
    b"hlist_node",
    b"hlist_head",
    b"atomic_t",
    b"atomic64_t",
    b"kref",
    b"spinlock",
    b"raw_spinlock",
    b"spinlock_t",
    b"rb_node",
    b"rb_root",
    b"kobject",
    b"qstr",
    b"timespec64",
];

/// How deep expressions are followed.
const DEPTH_MAX: u32 = 24;

impl<'p> View<'p> {
    pub(crate) fn new(program: &'p Program<'p>, id: FnId) -> Self {
        let (unit, function) = program.function(id);
        Self {
            program,
            id,
            unit_number: program.unit_of(id),
            unit,
            function,
        }
    }

    pub(crate) fn expr(&self, id: E) -> Expr {
        self.unit.exprs.get(id)
    }

    pub(crate) fn name(&self, sym: Sym) -> Name {
        Name(self.unit.global(sym))
    }

    /// The type of a parameter or local.
    pub(crate) fn local(&self, name: Sym) -> Option<GlobalTy> {
        let locals = self.unit.locals_of(self.function);
        let local = locals.iter().rev().find(|local| local.name == name)?;
        Some(GlobalTy::new(
            self.unit_number,
            self.unit,
            self.unit.ty(local.ty),
        ))
    }

    pub(crate) fn is_local(&self, name: Sym) -> bool {
        let locals = self.unit.locals_of(self.function);
        locals.iter().any(|local| local.name == name)
    }

    /// Number of a parameter.
    pub(crate) fn param(&self, name: Sym) -> Option<usize> {
        let count = at(self.function.params);
        let locals = self.unit.locals_of(self.function);
        locals[..count].iter().position(|local| local.name == name)
    }

    pub(crate) fn ty(&self, id: E) -> GlobalTy {
        self.ty_at(id, 0)
    }

    pub(super) fn ty_at(&self, id: E, depth: u32) -> GlobalTy {
        if depth > DEPTH_MAX {
            return GlobalTy::default();
        }
        match self.expr(id) {
            Expr::Name(name) => self.local(name).unwrap_or_else(|| {
                self.program
                    .types
                    .global(self.name(name), self.unit_number)
                    .map(|(ty, _)| ty)
                    .unwrap_or_default()
            }),
            Expr::Member { base, field, .. } => {
                let def = self.def_at(base, depth + 1);
                self.program
                    .types
                    .field(def, self.name(field))
                    .unwrap_or_default()
            }
            Expr::Index { base, .. } => self.ty_at(base, depth + 1).with_pointers(-1),
            Expr::Unary { op: code, of } if code == op("*") => {
                self.ty_at(of, depth + 1).with_pointers(-1)
            }
            Expr::Unary { op: code, of } if code == op("&") => {
                self.ty_at(of, depth + 1).with_pointers(1)
            }
            Expr::Cast { ty, of } => {
                let ty = GlobalTy::new(self.unit_number, self.unit, self.unit.ty(ty));
                if ty.base == Name(0) && ty.builtin && ty.pointers > 0 {
                    // `(void *)x` says nothing new.
                    return self.ty_at(of, depth + 1);
                }
                ty
            }
            Expr::Type { ty } => GlobalTy::new(self.unit_number, self.unit, self.unit.ty(ty)),
            Expr::Assign { to, .. } => self.ty_at(to, depth + 1),
            Expr::Step { of } => self.ty_at(of, depth + 1),
            Expr::Binary { left, right, .. } => {
                let left = self.ty_at(left, depth + 1);
                if left.pointers > 0 {
                    left
                } else {
                    self.ty_at(right, depth + 1)
                }
            }
            Expr::Choice { parts } => {
                let parts = self.unit.exprs.parts(parts);
                self.ty_at(parts[1], depth + 1)
            }
            Expr::Call { .. } => self.call_ty(id, depth),
            _ => GlobalTy::default(),
        }
    }

    fn call_ty(&self, id: E, depth: u32) -> GlobalTy {
        let Some((name, args)) = self.unit.named_call(id) else {
            return GlobalTy::default();
        };
        let name = self.name(name);
        let idiom = self.program.idiom(name);
        if let Some(argument) = idiom.typed
            && let Some(given) = args.get(argument)
        {
            return self.ty_at(*given, depth + 1).with_pointers(1);
        }
        if let Some(ty) = &idiom.result_type {
            return GlobalTy {
                base: self.program.names.find(ty.as_bytes()).unwrap_or_default(),
                tagged: true,
                pointers: 1,
                unit: self.unit_number,
                ..GlobalTy::default()
            };
        }
        if let (Some(access), false) = (idiom.access, args.is_empty())
            && let Some(given) = args.get(access.argument)
        {
            return self.ty_at(*given, depth + 1);
        }
        let declared = self.program.types.result(name);
        declared
            .or_else(|| self.macro_ty(name, args, depth))
            .unwrap_or_default()
    }

    /// The struct that `id` is, or points to.
    pub(crate) fn def(&self, id: E) -> Def {
        self.def_at(id, 0)
    }

    fn def_at(&self, id: E, depth: u32) -> Def {
        let ty = self.ty_at(id, depth);
        self.program.types.def(ty, self.program)
    }

    /// The key of what an accessing call touches: for operations on a named bit, that bit.
    pub(crate) fn accessed_key(&self, object: E, call: E) -> Key {
        let key = self.key(object);
        let Some((name, args)) = self.unit.named_call(call) else {
            return key;
        };
        let Some(access) = self.program.idiom(self.name(name)).access else {
            return key;
        };
        if access.argument != 1 || !self.is_bit_call(name) {
            return key;
        }
        match args
            .first()
            .map(|bit| self.expr(self.unit.exprs.peel(*bit)))
        {
            Some(Expr::Name(bit)) if !self.is_local(bit) => key.bit(self.name(bit)),
            Some(Expr::Number(bit)) => key.bit(self.name(bit)),
            _ => key,
        }
    }

    fn is_bit_call(&self, name: Sym) -> bool {
        self.program
            .names
            .bytes(self.name(name))
            .windows(3)
            .any(|part| part == b"bit")
    }

    /// The alias key of what `id` names, `&` and casts aside.
    pub(crate) fn key(&self, id: E) -> Key {
        self.key_at(id, 0)
    }

    fn key_at(&self, id: E, depth: u32) -> Key {
        if depth > DEPTH_MAX {
            return Key::UNKNOWN;
        }
        match self.expr(id) {
            Expr::Name(name) => {
                let global = self.name(name);
                if self.is_local(name) {
                    return Key::new(KeyParts::Local(self.id, global));
                }
                let home = self
                    .program
                    .types
                    .global(global, self.unit_number)
                    .and_then(|(_, home)| home);
                Key::new(KeyParts::Global(global, home))
            }
            Expr::Member { base, field, arrow } => self.member_key(base, field, arrow, depth),
            Expr::Index { base, .. } => self.key_at(base, depth + 1),
            Expr::Unary { op: code, of } if code == op("&") => self.key_at(of, depth + 1),
            Expr::Unary { op: code, of } if code == op("*") => match self.expr(of) {
                // What a local pointer points to is not the local.
                Expr::Name(name) if self.is_local(name) => Key::UNKNOWN,
                _ => self.key_at(of, depth + 1),
            },
            Expr::Cast { of, .. } | Expr::Step { of } => self.key_at(of, depth + 1),
            Expr::Assign { to, .. } => self.key_at(to, depth + 1),
            Expr::Call { .. } => {
                let access = self.unit.named_call(id).and_then(|(name, args)| {
                    let access = self.program.idiom(self.name(name)).access?;
                    args.get(access.argument).copied()
                });
                access.map_or(Key::UNKNOWN, |given| self.key_at(given, depth + 1))
            }
            _ => Key::UNKNOWN,
        }
    }

    fn member_key(&self, base: E, field: Sym, arrow: bool, depth: u32) -> Key {
        let field = self.name(field);
        let def = self.def_at(base, depth + 1);
        if !arrow && self.is_general(def) {
            return self.key_at(base, depth + 1);
        }
        if !arrow && let Key(0) = self.key_at(base, depth + 1) {
            return Key::UNKNOWN;
        }
        if !arrow && self.key_at(base, depth + 1).is_local() {
            // A struct on the stack, or one passed by value.
            return self.key_at(base, depth + 1);
        }
        if def != Def::NONE {
            let tag = self.program.types.def_name(def);
            if self.program.table.is_owned(self.program.names.bytes(tag)) {
                return Key::UNKNOWN;
            }
            return Key::new(KeyParts::Field(def, field));
        }
        match self.program.types.only_holder(field) {
            Some(def) => Key::new(KeyParts::Field(def, field)),
            None => Key::new(KeyParts::Vague(field, self.unit_number)),
        }
    }

    /// Whether the object is a plain record handed around by pointer: its struct has no lock, list, counter
    /// or the like by which several threads could know it.
    pub(crate) fn is_record(&self, id: E) -> bool {
        match self.expr(id) {
            Expr::Member { base, arrow, .. } => {
                if arrow {
                    self.program.types.is_record(self.def(base))
                } else {
                    self.is_record(base)
                }
            }
            Expr::Index { base, .. } => self.is_record(base),
            Expr::Unary { of, .. } | Expr::Cast { of, .. } | Expr::Step { of } => {
                self.is_record(of)
            }
            _ => false,
        }
    }

    fn is_general(&self, def: Def) -> bool {
        let name = self.program.types.def_name(def);
        GENERAL.contains(&self.program.names.bytes(name))
    }

    /// The variable at the root of an access path: `p` of `p->a.b[i]`.
    pub(crate) fn root(&self, mut id: E) -> Option<Sym> {
        for _ in 0..DEPTH_MAX {
            match self.expr(id) {
                Expr::Name(name) => return Some(name),
                Expr::Member { base, .. } | Expr::Index { base, .. } => id = base,
                Expr::Unary { of, .. } | Expr::Cast { of, .. } | Expr::Step { of } => id = of,
                _ => return None,
            }
        }
        None
    }

    /// Whether the path from its root goes through one pointer only: `p->a.b`, not `p->q->b`.
    pub(crate) fn is_direct(&self, id: E) -> bool {
        match self.expr(id) {
            Expr::Member { base, arrow, .. } => {
                if arrow {
                    matches!(self.expr(self.unit.exprs.peel(base)), Expr::Name(_))
                } else {
                    self.is_direct(base)
                }
            }
            Expr::Index { base, .. } => self.is_direct(base),
            Expr::Name(_) => true,
            Expr::Unary { of, .. } | Expr::Cast { of, .. } => self.is_direct(of),
            _ => false,
        }
    }

    /// Shared objects that evaluating `id` looks at, with the accessed expressions.
    pub(crate) fn objects(&self, id: E, out: &mut Vec<(E, Key)>) {
        self.objects_at(id, out, 0);
    }

    fn objects_at(&self, id: E, out: &mut Vec<(E, Key)>, depth: u32) {
        if depth > DEPTH_MAX || out.len() > 32 {
            return;
        }
        match self.expr(id) {
            Expr::Name(_) => {
                let key = self.key(id);
                if key.is_shared() {
                    out.push((id, key));
                }
            }
            Expr::Member { base, .. } | Expr::Index { base, .. } => {
                let key = self.key(id);
                if key.is_shared() {
                    out.push((id, key));
                } else {
                    self.objects_at(base, out, depth + 1);
                }
            }
            Expr::Unary { of, .. } | Expr::Cast { of, .. } | Expr::Step { of } => {
                self.objects_at(of, out, depth + 1);
            }
            Expr::Binary { left, right, .. } => {
                self.objects_at(left, out, depth + 1);
                self.objects_at(right, out, depth + 1);
            }
            Expr::Assign { from, .. } => self.objects_at(from, out, depth + 1),
            Expr::Call { args: parts, .. } => {
                let parts = self.unit.exprs.parts(parts);
                if self.measures_only(id) {
                    return;
                }
                let bit = self.unit.named_call(id).and_then(|(name, args)| {
                    let object = args.get(1).filter(|_| self.is_bit_call(name))?;
                    let object = match self.expr(*object) {
                        Expr::Unary { of, .. } => of,
                        _ => *object,
                    };
                    let key = self.accessed_key(object, id);
                    matches!(key.parts(), KeyParts::Bit(..)).then_some((object, key))
                });
                if let Some(bit) = bit {
                    out.push(bit);
                    return;
                }
                for part in parts {
                    self.objects_at(*part, out, depth + 1);
                }
            }
            Expr::Choice { parts } | Expr::Comma { parts } => {
                for part in self.unit.exprs.parts(parts) {
                    self.objects_at(*part, out, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// `ARRAY_SIZE(x)` and the like look at the type of their argument only.
    fn measures_only(&self, call: E) -> bool {
        self.unit.named_call(call).is_some_and(|(name, _)| {
            matches!(
                self.program.names.bytes(self.name(name)),
                b"ARRAY_SIZE" | b"offsetof" | b"sizeof_field" | b"typeof" | b"sizeof"
            )
        })
    }

    /// Calls `each` for the direct parts of an expression.
    pub(crate) fn each_part(&self, id: E, mut each: impl FnMut(E)) {
        match self.expr(id) {
            Expr::Member { base, .. } => each(base),
            Expr::Index { base, index } => {
                each(base);
                each(index);
            }
            Expr::Unary { of, .. } | Expr::Step { of } | Expr::Cast { of, .. } => each(of),
            Expr::Binary { left, right, .. } => {
                each(left);
                each(right);
            }
            Expr::Assign { to, from, .. } => {
                each(to);
                each(from);
            }
            Expr::Call { callee, args } => {
                each(callee);
                self.unit.exprs.parts(args).iter().copied().for_each(each);
            }
            Expr::Choice { parts } | Expr::Comma { parts } | Expr::Init { parts } => {
                self.unit.exprs.parts(parts).iter().copied().for_each(each);
            }
            Expr::Field { value, .. } => each(value),
            _ => {}
        }
    }

    /// As the user would write it.
    pub(crate) fn show(&self, id: E) -> String {
        super::super::show::expression(self, id)
    }
}
