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
    /// Optimisers split a variable into parts that live apart: where in the whole this part begins.
    pub part_offset: u64,
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

    /// The innermost part of the variable at an offset from its address, such as `obj.queue.head`.
    pub fn field_at(&self, debug: &DebugInfo, offset: u64) -> Field {
        let offset = offset.saturating_add(self.part_offset);
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
            work.steps(abbreviation.attributes().len())?;
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
        for part in location.map_or_else(Vec::new, |value| fixed_parts(view, &unit, value)) {
            work.step()?;
            // The chain of scopes may be as long as the nesting; only the nearest name is shown.
            let scope = open.last().map(|&(_, scope)| scope);
            into.extend(describe(view, (&unit, index), offset, (&part, scope)));
        }
    }
    Ok(())
}

/// A stretch of a variable at a fixed address.
struct Part {
    address: u64,
    /// Where in the variable it begins.
    offset: u64,
    /// `None` for the whole variable.
    size: Option<u64>,
}

/// The addresses of a location that is made of nothing but addresses.
fn fixed_parts<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Slice<'a>>,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let Some(expression) = value.exprloc_value() else {
        return parts;
    };
    let mut operations = expression.operations(unit.encoding());
    let mut address = None;
    let mut offset = 0_u64;
    while let Ok(Some(operation)) = operations.next() {
        match operation {
            Operation::Address { address: fixed } if address.is_none() => address = Some(fixed),
            Operation::AddressIndex { index } if address.is_none() => {
                address = view.dwarf(false).and_then(|d| d.address(unit, index).ok());
            }
            Operation::Piece {
                size_in_bits,
                bit_offset: None,
            } => {
                let size = size_in_bits / 8;
                parts.extend(address.take().map(|address| Part {
                    address,
                    offset,
                    size: Some(size),
                }));
                offset = offset.saturating_add(size);
            }
            _ => return Vec::new(),
        }
    }
    let size = None;
    parts.extend(address.map(|address| Part {
        address,
        offset,
        size,
    }));
    parts
}

fn describe(
    view: &View<'_>,
    (unit, index): (&Unit<'_>, usize),
    offset: gimli::UnitOffset,
    (part, scope): (&Part, Option<gimli::UnitOffset>),
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
            let scope = scope.and_then(|scope| entry_name(view, die(scope)?));
            let scope = match scope {
                Some(EntryName::Linkage(name)) => path_of(&demangle(&name)),
                Some(EntryName::Plain(name)) => name,
                None => String::new(),
            };
            (scope, name)
        }
    };
    let type_ref = super::types::type_of(view, own);
    let size = type_ref
        .and_then(|type_ref| view.size_of(type_ref))
        .unwrap_or(0);
    Some(Variable {
        name: name.into(),
        scope: scope.into(),
        address: LinkAddr(part.address),
        size: part.size.unwrap_or(size),
        part_offset: part.offset,
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
