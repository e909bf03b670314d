//! Functions and what was inlined into them, from the tree of debugging entries.

use std::ops::Range;
use std::sync::Arc;

use gimli::{AttributeValue, DwAt};
use rustc_hash::FxHashMap;

use super::{DieRef, LinePlace, Slice, Unit, View, Work};
use crate::demangle::{demangle, names_match};
use crate::elf::LinkAddr;
use crate::error::Reason;
use crate::flat::{Flat, Span};

/// References from an instance to its declaration; compilers make chains of two or three.
const ORIGIN_HOPS_MAX: usize = 8;

/// A function around an address: the real one, or one inlined into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionPlace {
    /// The readable name.
    pub name: Arc<str>,
    /// The call that was replaced by this function's body; `None` for the function that really exists.
    pub called_at: Option<LinePlace>,
}

/// One place where a function was inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCall {
    pub name: Arc<str>,
    pub called_at: Option<LinePlace>,
    /// The function that really exists there.
    pub inside: Arc<str>,
    pub ranges: Vec<Range<LinkAddr>>,
}

/// The functions of one unit.
#[derive(Debug)]
pub(crate) struct UnitFunctions {
    scopes: Vec<Scope>,
    at: Flat<u32>,
}

#[derive(Debug)]
struct Scope {
    name: Arc<str>,
    called_at: Option<LinePlace>,
    /// The scope that this one was inlined into; an index smaller than its own.
    parent: Option<u32>,
    ranges: Vec<Range<LinkAddr>>,
    entry: gimli::UnitOffset,
}

impl UnitFunctions {
    pub(crate) fn read(view: &View<'_>, index: usize) -> Result<Self, Reason> {
        let unit = view.unit(index)?;
        let mut work = view.units()[index].work();
        let mut scopes: Vec<Scope> = Vec::new();
        let mut spans = Vec::new();
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut names = Names::default();
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
            let is_inlined = abbreviation.tag() == gimli::DW_TAG_inlined_subroutine;
            if !is_inlined && abbreviation.tag() != gimli::DW_TAG_subprogram {
                work.steps(abbreviation.attributes().len())?;
                raw.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut attributes = Attributes::default();
            for &spec in abbreviation.attributes() {
                work.step()?;
                attributes.take(&raw.read_attribute(spec)?);
            }
            let ranges = attributes.ranges(view, &unit, &mut work)?;
            let Ok(value) = u32::try_from(scopes.len()) else {
                break;
            };
            if ranges.is_empty() {
                continue;
            }
            for range in &ranges {
                let (start, end) = (range.start.0, range.end.0);
                let depth = u32::try_from(open.len()).unwrap_or(u32::MAX);
                spans.push(Span {
                    start,
                    end,
                    depth,
                    value,
                });
            }
            let parent = if is_inlined {
                open.last().map(|&(_, scope)| scope)
            } else {
                None
            };
            scopes.push(Scope {
                name: names.of(view, &unit, offset, attributes.origin),
                called_at: is_inlined.then(|| attributes.call(view, index)).flatten(),
                parent,
                ranges,
                entry: offset,
            });
            open.push((depth, value));
        }
        Ok(Self {
            scopes,
            at: Flat::new(spans),
        })
    }

    pub(crate) fn scopes_at(&self, address: LinkAddr) -> Vec<FunctionPlace> {
        let place = |scope: &Scope| FunctionPlace {
            name: Arc::clone(&scope.name),
            called_at: scope.called_at.clone(),
        };
        self.chain(self.at.at(address.0)).map(place).collect()
    }

    /// The entry of the function that really exists around an address.
    pub(crate) fn entry_at(&self, address: LinkAddr) -> Option<gimli::UnitOffset> {
        let outermost = self.chain(self.at.at(address.0)).last()?;
        Some(outermost.entry)
    }

    pub(crate) fn inlined_calls(&self, name: &str) -> Vec<InlinedCall> {
        let wanted = self.scopes.iter().filter(|scope| scope.parent.is_some());
        wanted
            .filter(|scope| names_match(&scope.name, name))
            .map(|scope| InlinedCall {
                name: Arc::clone(&scope.name),
                called_at: scope.called_at.clone(),
                inside: self
                    .chain(scope.parent)
                    .last()
                    .map_or_else(|| Arc::from(""), |outer| Arc::clone(&outer.name)),
                ranges: scope.ranges.clone(),
            })
            .collect()
    }

    fn chain(&self, innermost: Option<u32>) -> impl Iterator<Item = &Scope> {
        let scope = |index: u32| &self.scopes[index as usize];
        std::iter::successors(innermost.map(scope), move |inner| inner.parent.map(scope))
    }
}

/// The attributes of a function entry that matter here.
#[derive(Default)]
struct Attributes<'a> {
    low: Option<AttributeValue<Slice<'a>>>,
    high: Option<AttributeValue<Slice<'a>>>,
    list: Option<AttributeValue<Slice<'a>>>,
    call_file: Option<u64>,
    call_line: Option<u64>,
    call_column: Option<u64>,
    origin: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Attributes<'a> {
    fn take(&mut self, attribute: &gimli::Attribute<Slice<'a>>) {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = Some(attribute.value()),
            gimli::DW_AT_high_pc => self.high = Some(attribute.value()),
            gimli::DW_AT_ranges => self.list = Some(attribute.value()),
            gimli::DW_AT_call_file => {
                self.call_file = match attribute.value() {
                    AttributeValue::FileIndex(index) => Some(index),
                    other => other.udata_value(),
                };
            }
            gimli::DW_AT_call_line => self.call_line = attribute.udata_value(),
            gimli::DW_AT_call_column => self.call_column = attribute.udata_value(),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.origin = Some(attribute.value());
            }
            _ => {}
        }
    }

    fn ranges(
        &self,
        view: &View<'a>,
        unit: &Unit<'a>,
        work: &mut Work,
    ) -> Result<Vec<Range<LinkAddr>>, Reason> {
        let Some(dwarf) = view.dwarf(false) else {
            return Ok(Vec::new());
        };
        let mut ranges = Vec::new();
        if let Some(list) = self.list
            && let Some(mut iter) = dwarf.attr_ranges(unit, list)?
        {
            while let Some(range) = iter.next()? {
                work.step()?;
                ranges.extend(view.info.live_range(range));
            }
        } else if let Some(low) = self.low
            && let Some(begin) = dwarf.attr_address(unit, low)?
            && let Some(high) = self.high
        {
            let end = match high.udata_value() {
                Some(size) => begin.checked_add(size),
                None => dwarf.attr_address(unit, high)?,
            };
            let end = end.unwrap_or(begin);
            ranges.extend(view.info.live_range(gimli::Range { begin, end }));
        }
        ranges.sort_by_key(|range| range.start);
        Ok(ranges)
    }

    fn call(&self, view: &View<'_>, unit_index: usize) -> Option<LinePlace> {
        let narrow = |value: Option<u64>| u32::try_from(value.unwrap_or(0)).unwrap_or(0);
        let table = view.info.line_table(unit_index)?;
        Some(LinePlace {
            file: table.file(narrow(self.call_file)),
            line: narrow(self.call_line),
            column: narrow(self.call_column),
        })
    }
}

/// Names of functions by the entry that holds them; one function is inlined at many places.
#[derive(Default)]
struct Names {
    known: FxHashMap<DieRef, Arc<str>>,
}

impl Names {
    fn of<'a>(
        &mut self,
        view: &View<'a>,
        unit: &Unit<'a>,
        offset: gimli::UnitOffset,
        origin: Option<AttributeValue<Slice<'a>>>,
    ) -> Arc<str> {
        let Some(offset) = offset.to_debug_info_offset(&unit.header) else {
            return Arc::from("");
        };
        let die = DieRef {
            is_shared: false,
            offset,
        };
        // An instance has an entry of its own, so the cache works on what it refers to.
        let origin = origin.and_then(|value| view.reference(unit, false, value));
        let key = origin.unwrap_or(die);
        if let Some(name) = self.known.get(&key) {
            return Arc::clone(name);
        }
        let name: Arc<str> = match entry_name(view, die) {
            Some(EntryName::Linkage(name)) => demangle(&name).into(),
            Some(EntryName::Plain(name)) => name.into(),
            None => Arc::from(""),
        };
        self.known.insert(key, Arc::clone(&name));
        name
    }
}

pub(super) enum EntryName {
    /// As the linker knows it.
    Linkage(String),
    /// As the source says it.
    Plain(String),
}

/// The name of an entry, from itself or from what it is an instance or the definition of.
pub(super) fn entry_name(view: &View<'_>, die: DieRef) -> Option<EntryName> {
    let mut plain = None;
    let mut current = Some(die);
    for _ in 0..ORIGIN_HOPS_MAX {
        let Some(die) = current else {
            break;
        };
        let (unit, offset) = view.unit_of(die)?;
        let entry = unit.entry(offset).ok()?;
        let text = |name: DwAt| {
            let value = entry.attr_value(name).ok().flatten()?;
            view.text(&unit, die.is_shared, value)
        };
        let linkage = text(gimli::DW_AT_linkage_name);
        if let Some(name) = linkage.or_else(|| text(gimli::DW_AT_MIPS_linkage_name)) {
            return Some(EntryName::Linkage(name.into_owned()));
        }
        plain = plain.or_else(|| text(gimli::DW_AT_name).map(|name| name.into_owned()));
        current = origin(view, die);
    }
    plain.map(EntryName::Plain)
}

/// What an entry is an instance or the definition of.
pub(super) fn origin(view: &View<'_>, die: DieRef) -> Option<DieRef> {
    let (unit, offset) = view.unit_of(die)?;
    let entry = unit.entry(offset).ok()?;
    let link = |name| entry.attr_value(name).ok().flatten();
    let value = link(gimli::DW_AT_abstract_origin).or_else(|| link(gimli::DW_AT_specification))?;
    view.reference(&unit, die.is_shared, value)
}
