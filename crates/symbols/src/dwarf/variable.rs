//! Variables that live at a fixed address: globals, file statics, function statics, class statics.

use std::sync::Arc;

use gimli::{AttributeValue, Operation};

use super::function::{EntryName, entry_name};
use super::{DebugInfo, DieRef, Field, LinePlace, Slice, TypeRef, Unit, View};
use crate::demangle::{demangle, path_of};
use crate::elf::LinkAddr;
use crate::error::Reason;
use crate::flat::{Flat, Span};

/// A variable with a fixed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: Arc<str>,
    /// The namespace or function around it; empty at file level.
    pub scope: Arc<str>,
    pub address: LinkAddr,
    /// Zero when the type does not say.
    pub size: u64,
    pub declared_at: Option<LinePlace>,
    pub type_ref: Option<TypeRef>,
}

impl Variable {
    /// The name with its scope.
    pub fn qualified_name(&self) -> String {
        if self.scope.is_empty() {
            self.name.to_string()
        } else {
            format!("{}::{}", self.scope, self.name)
        }
    }

    /// The part of the variable at an offset, such as `obj.queue.head`.
    pub fn field_at(&self, debug: &DebugInfo, offset: u64) -> Field {
        let unknown = || Field {
            path: String::new(),
            type_name: String::new(),
            size: 0,
            rest: offset,
            is_atomic: false,
        };
        let field = self
            .type_ref
            .and_then(|type_ref| debug.field_at(type_ref, offset));
        let mut field = field.unwrap_or_else(unknown);
        field.path.insert_str(0, &self.name);
        field
    }
}

/// All variables of a module.
#[derive(Debug)]
pub(crate) struct Variables {
    all: Vec<Variable>,
    at: Flat<u32>,
    /// Why variables of some units are missing.
    pub(crate) broken: Vec<Reason>,
}

impl Variables {
    pub(crate) fn read(view: &View<'_>) -> Self {
        let mut all = Vec::new();
        let mut broken = Vec::new();
        for index in 0..view.units().len() {
            if let Err(reason) = read_unit(view, index, &mut all) {
                broken.push(reason);
            }
        }
        broken.dedup();
        all.sort_by(|a, b| (a.address, &a.name, a.size).cmp(&(b.address, &b.name, b.size)));
        all.dedup_by(|a, b| (a.address, &a.name, &a.scope) == (b.address, &b.name, &b.scope));
        let span = |(index, variable): (usize, &Variable)| {
            let start = variable.address.0;
            Some(Span {
                start,
                end: start.saturating_add(variable.size.max(1)),
                depth: 0,
                value: u32::try_from(index).ok()?,
            })
        };
        let at = Flat::new(all.iter().enumerate().filter_map(span).collect());
        Self { all, at, broken }
    }

    pub(crate) fn all(&self) -> &[Variable] {
        &self.all
    }

    pub(crate) fn at(&self, address: LinkAddr) -> Option<(&Variable, u64)> {
        let variable = &self.all[self.at.at(address.0)? as usize];
        Some((variable, address.0 - variable.address.0))
    }
}

/// Entries whose name is part of the name of what they contain.
fn opens_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_subprogram
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
    )
}

fn read_unit(view: &View<'_>, index: usize, into: &mut Vec<Variable>) -> Result<(), Reason> {
    let unit = view.unit(index)?;
    let mut work = view.units()[index].work();
    let mut open: Vec<(isize, gimli::UnitOffset)> = Vec::new();
    let mut raw = unit.entries_raw(None)?;
    while !raw.is_empty() {
        work.step()?;
        let depth = raw.next_depth();
        let offset = raw.next_offset();
        let Some(abbreviation) = raw.read_abbreviation()? else {
            continue;
        };
        while open.last().is_some_and(|&(outer, _)| outer >= depth) {
            open.pop();
        }
        if opens_scope(abbreviation.tag()) {
            open.push((depth, offset));
        }
        if abbreviation.tag() != gimli::DW_TAG_variable {
            raw.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut location = None;
        for &spec in abbreviation.attributes() {
            work.step()?;
            let attribute = raw.read_attribute(spec)?;
            if attribute.name() == gimli::DW_AT_location {
                location = Some(attribute.value());
            }
        }
        let address = location.and_then(|value| fixed_address(view, &unit, value));
        if let Some(address) = address {
            // The chain of scopes may be as long as the nesting; only the nearest parts make a name.
            let scopes: Vec<gimli::UnitOffset> = open
                .iter()
                .rev()
                .take(8)
                .rev()
                .map(|&(_, scope)| scope)
                .collect();
            into.extend(describe(view, (&unit, index), offset, (address, &scopes)));
        }
    }
    Ok(())
}

/// The address of a location that is just an address.
fn fixed_address<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Slice<'a>>,
) -> Option<u64> {
    let expression = value.exprloc_value()?;
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    if operations.next().ok()?.is_some() {
        return None;
    }
    match first {
        Operation::Address { address } => Some(address),
        Operation::AddressIndex { index } => view.dwarf(false)?.address(unit, index).ok(),
        _ => None,
    }
}

fn describe(
    view: &View<'_>,
    (unit, index): (&Unit<'_>, usize),
    offset: gimli::UnitOffset,
    (address, scopes): (u64, &[gimli::UnitOffset]),
) -> Option<Variable> {
    let die = |offset: gimli::UnitOffset| {
        let offset = offset.to_debug_info_offset(&unit.header)?;
        Some(DieRef {
            is_shared: false,
            offset,
        })
    };
    let own = die(offset)?;
    let (scope, name) = match entry_name(view, own)? {
        EntryName::Linkage(name) if name.starts_with("_Z") || name.starts_with("_R") => {
            split_path(&demangle(&name))
        }
        EntryName::Linkage(name) | EntryName::Plain(name) => {
            let names = scopes
                .iter()
                .filter_map(|&scope| entry_name(view, die(scope)?));
            let names = names.map(|name| match name {
                EntryName::Linkage(name) => path_of(&demangle(&name)),
                EntryName::Plain(name) => name,
            });
            (names.last().unwrap_or_default(), name)
        }
    };
    let type_ref = super::types::type_of(view, own);
    let size = type_ref
        .and_then(|type_ref| view.size_of(type_ref))
        .unwrap_or(0);
    Some(Variable {
        name: name.into(),
        scope: scope.into(),
        address: LinkAddr(address),
        size,
        declared_at: declaration(view, own, index),
        type_ref,
    })
}

/// Splits `a::b::c` into `a::b` and `c`.
fn split_path(path: &str) -> (String, String) {
    match path.rsplit_once("::") {
        Some((scope, name)) => (scope.to_owned(), name.to_owned()),
        None => (String::new(), path.to_owned()),
    }
}

/// Where the variable, or what it is the definition of, was declared.
fn declaration(view: &View<'_>, die: DieRef, unit_index: usize) -> Option<LinePlace> {
    let table = view.info.line_table(unit_index)?;
    let mut current = Some(die);
    for _ in 0..4 {
        // File numbers of another file's unit mean another table.
        let die = current.filter(|die| !die.is_shared)?;
        let (unit, offset) = view.unit_of(die)?;
        let entry = unit.entry(offset).ok()?;
        let number = |name| {
            let value = entry.attr_value(name).ok().flatten()?;
            match value {
                AttributeValue::FileIndex(index) => Some(index),
                other => other.udata_value(),
            }
        };
        if let (Some(file), Some(line)) = (
            number(gimli::DW_AT_decl_file),
            number(gimli::DW_AT_decl_line),
        ) {
            return Some(LinePlace {
                file: table.file(u32::try_from(file).ok()?),
                line: u32::try_from(line).ok()?,
                column: number(gimli::DW_AT_decl_column)
                    .and_then(|column| u32::try_from(column).ok())
                    .unwrap_or(0),
            });
        }
        current = super::function::origin(view, die);
    }
    None
}
