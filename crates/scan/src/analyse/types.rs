//! Structs, typedefs, variables and results of functions, over all files.

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::{Name, Program};
use crate::front::ast::Ty;
use crate::front::lex::{at, index};
use crate::front::unit::Unit;

/// A definition of a struct; the same tag may be defined in several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Def(pub(crate) u32);

impl Def {
    /// Nothing is known.
    pub(crate) const NONE: Def = Def(0);
    /// A tag without a definition: the number of the tag follows.
    const UNDEFINED: u32 = 1 << 27;
}

/// A type in terms of all names; `unit` is where it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GlobalTy {
    pub(crate) base: Name,
    pub(crate) tagged: bool,
    pub(crate) pointers: u8,
    pub(crate) function: bool,
    pub(crate) builtin: bool,
    pub(crate) unit: u32,
}

/// Marks the number of a struct without a tag.
const ANONYMOUS: u32 = 0x8000_0000;

impl GlobalTy {
    pub(crate) fn new(unit_number: u32, unit: &Unit, ty: Ty) -> Self {
        let base = if ty.base.0 & ANONYMOUS != 0 {
            anonymous(unit_number, ty.base.0)
        } else {
            Name(unit.global(ty.base))
        };
        Self {
            base,
            tagged: ty.tagged,
            pointers: ty.pointers,
            function: ty.function,
            builtin: ty.builtin,
            unit: unit_number,
        }
    }

    /// One pointer level more or less.
    pub(crate) fn with_pointers(self, change: i8) -> Self {
        Self {
            pointers: self.pointers.saturating_add_signed(change),
            ..self
        }
    }
}

fn anonymous(unit: u32, place: u32) -> Name {
    let mixed = (u64::from(unit) << 32 | u64::from(place)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Name(ANONYMOUS | raddle_stdx::width::low_u32(mixed >> 33))
}

/// The declarations of all files.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// Where each tag is defined.
    defs: FxHashMap<Name, Vec<(u32, Def)>>,
    def_names: Vec<Name>,
    def_homes: Vec<u32>,
    fields: FxHashMap<(Def, Name), GlobalTy>,
    /// Fields declared as `__rcu`.
    rcu_fields: FxHashSet<(Def, Name)>,
    /// Structs that hold what `call_rcu()` needs.
    freed_by_rcu: FxHashSet<Def>,
    /// Structs that have a field of this name.
    holders: FxHashMap<Name, Vec<Def>>,
    typedefs: FxHashMap<Name, GlobalTy>,
    /// The name of a struct without a tag: the first of its typedefs.
    typedef_names: FxHashMap<Name, Name>,
    globals: FxHashMap<Name, Vec<(u32, bool, GlobalTy)>>,
    results: FxHashMap<Name, GlobalTy>,
    /// Structs with a lock, list entry, counter or the like, in themselves or embedded.
    identified: FxHashSet<Def>,
}

impl Types {
    pub(crate) fn add(&mut self, number: u32, unit: &Unit, program: &Program<'_>) {
        if self.def_names.is_empty() {
            self.def_names.push(Name(0));
            self.def_homes.push(0);
        }
        for declared in &unit.declared.structs {
            let tag = if declared.tag.0 & ANONYMOUS != 0 {
                anonymous(number, declared.tag.0)
            } else {
                Name(unit.global(declared.tag))
            };
            let def = Def(index(self.def_names.len()));
            self.def_names.push(tag);
            self.def_homes.push(number);
            self.defs.entry(tag).or_default().push((number, def));
            for field in &declared.fields {
                let name = Name(unit.global(field.name));
                self.fields
                    .insert((def, name), GlobalTy::new(number, unit, field.ty));
                if field.is_rcu {
                    self.rcu_fields.insert((def, name));
                }
                let holders = self.holders.entry(name).or_default();
                if holders.len() < 8 {
                    holders.push(def);
                }
            }
        }
        for (name, ty) in &unit.declared.typedefs {
            self.add_typedef(Name(unit.global(*name)), GlobalTy::new(number, unit, *ty));
        }
        for (name, ty, is_static) in &unit.declared.globals {
            self.add_global(
                Name(unit.global(*name)),
                number,
                *is_static,
                GlobalTy::new(number, unit, *ty),
            );
        }
        for (name, ty) in &unit.declared.results {
            self.results
                .entry(Name(unit.global(*name)))
                .or_insert_with(|| GlobalTy::new(number, unit, *ty));
        }
        for invocation in &unit.declared.invocations {
            let Some(ty) = &program.idiom(Name(unit.global(invocation.name))).variable else {
                continue;
            };
            let base = program.names.find(ty.as_bytes()).unwrap_or_default();
            let ty = GlobalTy {
                base,
                tagged: !ty.ends_with("_t"),
                unit: number,
                ..GlobalTy::default()
            };
            if let Some(name) = invocation.args.first() {
                self.add_global(Name(unit.global(*name)), number, invocation.is_static, ty);
            }
        }
    }

    fn add_typedef(&mut self, name: Name, ty: GlobalTy) {
        if self.typedefs.contains_key(&name) {
            return;
        }
        self.typedefs.insert(name, ty);
        if ty.base.0 & ANONYMOUS != 0 {
            let known = self.typedef_names.entry(ty.base).or_insert(name);
            *known = name.min(*known);
        }
    }

    fn add_global(&mut self, name: Name, unit: u32, is_static: bool, ty: GlobalTy) {
        self.globals
            .entry(name)
            .or_default()
            .push((unit, is_static, ty));
    }

    /// Finds the structs that several threads can know: what the class `sharing_types` marks.
    pub(crate) fn identify(&mut self, program: &Program<'_>) {
        let wanted = program.table.class("sharing_types").unwrap_or(0);
        let mut embedded = Vec::new();
        for ((def, _), ty) in &self.fields {
            // A task is never embedded: who points to one has a thread of its own.
            let is_task = program.names.bytes(ty.base) == b"task_struct";
            let is_mark = program.idiom(ty.base).classes & wanted != 0;
            if ty.pointers == 0 && program.names.bytes(ty.base) == b"rcu_head" {
                self.freed_by_rcu.insert(*def);
            }
            if is_mark && (ty.pointers == 0 || is_task) {
                self.identified.insert(*def);
            } else if ty.pointers == 0 && !ty.builtin && ty.base != Name(0) {
                embedded.push((*def, self.def(*ty, program)));
            }
        }
        for _ in 0..4 {
            for (outer, inner) in &embedded {
                if self.identified.contains(inner) {
                    self.identified.insert(*outer);
                }
            }
        }
    }

    /// Whether `def` is a known struct without any mark of being shared.
    pub(crate) fn is_record(&self, def: Def) -> bool {
        self.def_home(def).is_some() && !self.identified.contains(&def)
    }

    /// The variable that `name` means in `unit`: its type, and the unit if it is private to it.
    pub(crate) fn global(&self, name: Name, unit: u32) -> Option<(GlobalTy, Option<u32>)> {
        let all = self.globals.get(&name)?;
        if let Some((_, is_static, ty)) = all.iter().find(|(home, _, _)| *home == unit) {
            return Some((*ty, is_static.then_some(unit)));
        }
        let (_, _, ty) = all.iter().find(|(_, is_static, _)| !is_static)?;
        Some((*ty, None))
    }

    pub(crate) fn result(&self, name: Name) -> Option<GlobalTy> {
        self.results.get(&name).copied()
    }

    /// Follows typedefs to a struct.
    pub(crate) fn canonical(&self, mut ty: GlobalTy) -> GlobalTy {
        for _ in 0..6 {
            if ty.tagged {
                return ty;
            }
            let Some(target) = self.typedefs.get(&ty.base) else {
                return ty;
            };
            ty = GlobalTy {
                pointers: target.pointers.saturating_add(ty.pointers),
                function: target.function || ty.function,
                ..*target
            };
        }
        ty
    }

    /// The struct that `ty` or what it points to is.
    pub(crate) fn def(&self, ty: GlobalTy, program: &Program<'_>) -> Def {
        let ty = self.canonical(ty);
        if ty.base == Name(0) || (ty.builtin && !ty.tagged) {
            return Def::NONE;
        }
        match self.defs.get(&ty.base).map(Vec::as_slice) {
            None | Some([]) => Def(Def::UNDEFINED | (ty.base.0 & (Def::UNDEFINED - 1))),
            Some([(_, only)]) => *only,
            Some(several) => several
                .iter()
                .find(|(home, _)| *home == ty.unit)
                .or_else(|| {
                    several
                        .iter()
                        .filter(|(home, _)| program.is_header(*home))
                        .max_by_key(|(home, def)| {
                            (program.nearness(*home, ty.unit), std::cmp::Reverse(*def))
                        })
                })
                .map_or(several[0].1, |(_, def)| *def),
        }
    }

    pub(crate) fn field(&self, def: Def, name: Name) -> Option<GlobalTy> {
        self.fields.get(&(def, name)).copied()
    }

    /// Whether the field is declared as a pointer for readers under RCU.
    pub(crate) fn is_rcu_field(&self, def: Def, name: Name) -> bool {
        self.rcu_fields.contains(&(def, name))
    }

    /// Whether the struct has a head for `call_rcu()` or `kfree_rcu()`.
    pub(crate) fn is_freed_by_rcu(&self, def: Def) -> bool {
        self.freed_by_rcu.contains(&def)
    }

    /// The only struct with such a field, if there is only one.
    pub(crate) fn only_holder(&self, field: Name) -> Option<Def> {
        match self.holders.get(&field).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        }
    }

    /// The file that defines the struct.
    pub(crate) fn def_home(&self, def: Def) -> Option<u32> {
        if def == Def::NONE {
            return None;
        }
        self.def_homes.get(at(def.0)).copied()
    }

    /// The tag or typedef name behind a definition.
    pub(crate) fn def_name(&self, def: Def) -> Name {
        if def.0 & Def::UNDEFINED != 0 {
            return Name(def.0 & (Def::UNDEFINED - 1));
        }
        let name = self.def_names.get(at(def.0)).copied().unwrap_or_default();
        if name.0 & ANONYMOUS != 0 {
            return self.typedef_names.get(&name).copied().unwrap_or_default();
        }
        name
    }
}
