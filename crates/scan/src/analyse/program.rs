//! Links the files: one numbering of names and functions, and the tables of declarations.

use std::path::PathBuf;

use rustc_hash::{FxHashMap, FxHashSet};

use super::types::{GlobalTy, Types};
use crate::front::event::{Event, Function};
use crate::front::lex::{Sym, at, index};
use crate::front::unit::Unit;
use crate::idioms::{Idiom, Table};

/// A function of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FnId(pub(crate) u32);

/// A name among the names of all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Name(pub(crate) u32);

/// An event of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EventId {
    pub(crate) function: FnId,
    pub(crate) event: u32,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// As shown to the user.
    pub(crate) shown: String,
    pub(crate) path: PathBuf,
    /// Findings in it are wanted; otherwise it is context.
    pub(crate) wanted: bool,
}

/// The spellings of all names.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    ids: FxHashMap<Box<[u8]>, u32>,
    texts: Vec<Box<[u8]>>,
}

impl Spellings {
    fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = index(self.texts.len());
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    pub(crate) fn find(&self, text: &[u8]) -> Option<Name> {
        self.ids.get(text).copied().map(Name)
    }

    pub(crate) fn text(&self, name: Name) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(name))
    }

    pub(crate) fn bytes(&self, name: Name) -> &[u8] {
        self.texts.get(at(name.0)).map_or(b"", |text| text)
    }
}

/// All files, linked.
#[derive(Debug)]
pub(crate) struct Program<'t> {
    pub(crate) table: &'t Table,
    pub(crate) sources: Vec<Source>,
    pub(crate) units: Vec<Unit>,
    pub(crate) names: Spellings,
    /// Idiom of each name.
    pub(crate) idioms: Vec<u16>,
    /// Idioms of names that the program itself explains; they come before those of the table.
    derived: FxHashMap<Name, Idiom>,
    /// Unit and number in it of each function.
    pub(crate) functions: Vec<(u32, u32)>,
    pub(crate) by_name: FxHashMap<Name, Vec<FnId>>,
    pub(crate) types: Types,
    /// Names that are function-like macros somewhere: a call of one may be no call at all.
    macros: FxHashSet<Name>,
}

impl<'t> Program<'t> {
    /// Links `units`, which are in the order of `sources`.
    pub(crate) fn link(table: &'t Table, sources: Vec<Source>, units: Vec<Unit>) -> Self {
        let mut program = Self {
            table,
            sources,
            units: Vec::with_capacity(units.len()),
            names: Spellings::default(),
            idioms: Vec::new(),
            derived: FxHashMap::default(),
            functions: Vec::new(),
            by_name: FxHashMap::default(),
            types: Types::default(),
            macros: FxHashSet::default(),
        };
        program.names.intern(b"");
        for unit in units {
            program.add(unit);
        }
        program.idioms = program
            .names
            .texts
            .iter()
            .map(|text| table.id(text))
            .collect();
        let mut types = Types::default();
        for (number, unit) in program.units.iter().enumerate() {
            types.add(index(number), unit, &program);
        }
        types.identify(&program);
        program.types = types;
        program.derived = super::wrappers::wrappers(&program).into_iter().collect();
        program
    }

    fn add(&mut self, mut unit: Unit) {
        let globals = unit
            .spellings()
            .map(|text| self.names.intern(text))
            .collect();
        unit.link(globals);
        let number = index(self.units.len());
        for (position, function) in unit.functions.iter().enumerate() {
            let id = FnId(index(self.functions.len()));
            self.functions.push((number, index(position)));
            let name = Name(unit.global(function.name));
            let name = self.definer_name(&unit, function, name);
            self.by_name.entry(name).or_default().push(id);
        }
        if self.is_header(number) {
            let names = unit.macro_names.iter().map(|name| Name(unit.global(*name)));
            self.macros.extend(names);
        }
        self.units.push(unit);
    }

    /// `SYSCALL_DEFINE3(open, ..)` defines `sys_open`.
    fn definer_name(&mut self, unit: &Unit, function: &Function, name: Name) -> Name {
        if function.definer == Sym(0) {
            return name;
        }
        let definer = self.names.bytes(Name(unit.global(function.definer)));
        let idiom = self.table.get(self.table.id(definer));
        let Some(prefix) = &idiom.function_prefix else {
            return name;
        };
        let mut text = prefix.clone().into_bytes();
        text.extend_from_slice(self.names.bytes(name));
        Name(self.names.intern(&text))
    }

    pub(crate) fn function(&self, id: FnId) -> (&Unit, &Function) {
        let (unit, position) = self.functions[at(id.0)];
        let unit = &self.units[at(unit)];
        (unit, &unit.functions[at(position)])
    }

    pub(crate) fn unit_of(&self, id: FnId) -> u32 {
        self.functions[at(id.0)].0
    }

    pub(crate) fn events(&self, id: FnId) -> &[Event] {
        let (unit, function) = self.function(id);
        unit.events_of(function)
    }

    pub(crate) fn event(&self, id: EventId) -> Event {
        self.events(id.function)[at(id.event)]
    }

    pub(crate) fn function_name(&self, id: FnId) -> std::borrow::Cow<'_, str> {
        let (unit, function) = self.function(id);
        self.names.text(Name(unit.global(function.name)))
    }

    pub(crate) fn function_ids(&self) -> impl Iterator<Item = FnId> + use<> {
        (0..index(self.functions.len())).map(FnId)
    }

    /// The idiom of a name.
    pub(crate) fn idiom(&self, name: Name) -> &Idiom {
        if let Some(derived) = self.derived.get(&name) {
            return derived;
        }
        self.table
            .get(self.idioms.get(at(name.0)).copied().unwrap_or(0))
    }

    /// The directory part of a unit's path.
    pub(crate) fn directory(&self, unit: u32) -> &str {
        let shown = &self.sources[at(unit)].shown;
        shown.rfind('/').map_or("", |slash| &shown[..slash])
    }

    pub(crate) fn is_header(&self, unit: u32) -> bool {
        self.sources[at(unit)].shown.ends_with(".h")
    }

    /// The function that `name` means when used in `unit`: its own static one, a visible inline one,
    /// the one nearest in the tree.
    pub(crate) fn resolve(&self, name: Name, unit: u32) -> Option<FnId> {
        let candidates = self.by_name.get(&name)?;
        if self.macros.contains(&name) {
            return candidates.iter().copied().find(|id| {
                let (_, function) = self.function(*id);
                function.from_macro || self.unit_of(*id) == unit
            });
        }
        if let [only] = candidates.as_slice() {
            return self.is_visible(*only, unit).then_some(*only);
        }
        let own = candidates.iter().find(|id| self.unit_of(**id) == unit);
        own.copied().or_else(|| {
            candidates
                .iter()
                .filter(|id| self.is_visible(**id, unit))
                .max_by_key(|id| {
                    (
                        self.nearness(self.unit_of(**id), unit),
                        std::cmp::Reverse(**id),
                    )
                })
                .copied()
        })
    }

    fn is_visible(&self, id: FnId, unit: u32) -> bool {
        let home = self.unit_of(id);
        let (_, function) = self.function(id);
        home == unit || self.is_header(home) || !(function.is_static || function.from_macro)
    }

    /// How many leading path components two units share.
    pub(crate) fn nearness(&self, one: u32, other: u32) -> usize {
        self.directory(one)
            .split('/')
            .zip(self.directory(other).split('/'))
            .take_while(|(a, b)| a == b)
            .count()
    }

    /// A type of a unit in terms of all names.
    pub(crate) fn global_ty(&self, unit: u32, ty: crate::front::ast::Ty) -> GlobalTy {
        GlobalTy::new(unit, &self.units[at(unit)], ty)
    }
}
