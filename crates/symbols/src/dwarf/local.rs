//! Local variables and parameters of a frame.

use std::sync::Arc;

use gimli::AttributeValue;

use super::function::{EntryName, entry_name};
use super::{DebugInfo, DieRef, Slice, TypeRef, Unit, View};
use crate::elf::LinkAddr;
use crate::error::Reason;
use crate::unwind::{Machine, evaluate};

/// A variable of a function at one of its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    pub name: Arc<str>,
    pub is_parameter: bool,
    pub place: LocalPlace,
    pub type_ref: Option<TypeRef>,
}

/// Where a local variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalPlace {
    /// At this run-time address.
    Memory(u64),
    /// In the register with this DWARF number.
    Register(u16),
    /// Nowhere, but known.
    Value(u64),
    /// Optimised away here, or spread over several places.
    Unknown,
}

/// A frame whose variables are asked for.
pub struct LocalQuestion<'m> {
    /// The instruction, as the file states its address.
    pub at: LinkAddr,
    /// What the program added to link addresses when it mapped the file.
    pub bias: u64,
    /// Registers, canonical frame address and memory of the frame.
    pub machine: Machine<'m>,
}

impl std::fmt::Debug for LocalQuestion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalQuestion")
            .field("at", &self.at)
            .field("bias", &self.bias)
            .finish_non_exhaustive()
    }
}

impl DebugInfo {
    /// The parameters and variables in scope at an instruction, in the order of the source.
    pub fn locals(&self, question: &mut LocalQuestion<'_>) -> Vec<Local> {
        let mut locals = Vec::new();
        if let Some(index) = self.unit_index_at(question.at)
            && let Some(entry) = self.functions(index).and_then(|f| f.entry_at(question.at))
        {
            let view = self.view();
            // What was read before a broken entry is still right.
            let _broken_tail = walk(&view, index, entry, question, &mut locals).is_err();
        }
        locals
    }
}

fn walk(
    view: &View<'_>,
    index: usize,
    function: gimli::UnitOffset,
    question: &mut LocalQuestion<'_>,
    into: &mut Vec<Local>,
) -> Result<(), Reason> {
    let unit = view.unit(index)?;
    let mut work = view.units()[index].work();
    let mut raw = unit.entries_raw(Some(function))?;
    // Entries below a scope that does not contain the instruction are skipped.
    let mut skip_below: Option<isize> = None;
    let mut frame_base = None;
    let start = raw.next_depth();
    while !raw.is_empty() {
        work.step()?;
        let depth = raw.next_depth();
        let offset = raw.next_offset();
        let Some(abbreviation) = raw.read_abbreviation()? else {
            continue;
        };
        if depth <= start && offset != function {
            break;
        }
        if skip_below.is_some_and(|limit| depth <= limit) {
            skip_below = None;
        }
        work.steps(abbreviation.attributes().len())?;
        raw.skip_attributes(abbreviation.attributes())?;
        if skip_below.is_some() {
            continue;
        }
        let entry = unit.entry(offset)?;
        let tag = entry.tag();
        if offset == function {
            let value = entry.attr_value(gimli::DW_AT_frame_base)?;
            frame_base = value.and_then(|v| frame_base_of(view, &unit, v, question));
        } else if opens_block(tag) {
            if tag == gimli::DW_TAG_subprogram || !contains(view, &unit, &entry, question.at)? {
                skip_below = Some(depth);
            }
        } else if tag == gimli::DW_TAG_variable || tag == gimli::DW_TAG_formal_parameter {
            into.extend(local(view, &unit, &entry, (question, frame_base)));
        } else {
            skip_below = Some(depth);
        }
    }
    Ok(())
}

fn opens_block(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_subprogram
    )
}

fn contains<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    entry: &gimli::DebuggingInformationEntry<'_, '_, Slice<'a>>,
    at: LinkAddr,
) -> Result<bool, Reason> {
    let Some(dwarf) = view.dwarf(false) else {
        return Ok(false);
    };
    let mut ranges = dwarf.die_ranges(unit, entry)?;
    while let Some(range) = ranges.next()? {
        if (range.begin..range.end).contains(&at.0) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn frame_base_of<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Slice<'a>>,
    question: &mut LocalQuestion<'_>,
) -> Option<u64> {
    let expression = expression_at(view, unit, value, question.at)?;
    match place_of(view, unit, expression, (question, None))? {
        LocalPlace::Memory(address) | LocalPlace::Value(address) => Some(address),
        LocalPlace::Register(number) => question.machine.registers.get(number),
        LocalPlace::Unknown => None,
    }
}

fn local<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    entry: &gimli::DebuggingInformationEntry<'_, '_, Slice<'a>>,
    (question, frame_base): (&mut LocalQuestion<'_>, Option<u64>),
) -> Option<Local> {
    let die = DieRef {
        is_shared: false,
        offset: entry.offset().to_debug_info_offset(&unit.header)?,
    };
    let (EntryName::Plain(name) | EntryName::Linkage(name)) = entry_name(view, die)?;
    let place = entry
        .attr_value(gimli::DW_AT_location)
        .ok()
        .flatten()
        .and_then(|value| expression_at(view, unit, value, question.at))
        .and_then(|expression| place_of(view, unit, expression, (question, frame_base)));
    Some(Local {
        name: name.into(),
        is_parameter: entry.tag() == gimli::DW_TAG_formal_parameter,
        place: place.unwrap_or(LocalPlace::Unknown),
        type_ref: super::types::type_of(view, die),
    })
}

/// The location expression that holds at an address: the only one, or one of a list.
fn expression_at<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    value: AttributeValue<Slice<'a>>,
    at: LinkAddr,
) -> Option<gimli::Expression<Slice<'a>>> {
    if let Some(expression) = value.exprloc_value() {
        return Some(expression);
    }
    let mut list = view.dwarf(false)?.attr_locations(unit, value).ok()??;
    while let Ok(Some(entry)) = list.next() {
        if (entry.range.begin..entry.range.end).contains(&at.0) {
            return Some(entry.data);
        }
    }
    None
}

fn place_of<'a>(
    view: &View<'a>,
    unit: &Unit<'a>,
    expression: gimli::Expression<Slice<'a>>,
    (question, frame_base): (&mut LocalQuestion<'_>, Option<u64>),
) -> Option<LocalPlace> {
    let bias = question.bias;
    let address_at = |index| view.dwarf(false)?.address(unit, index).ok();
    let context = crate::unwind::Context {
        frame_base,
        bias,
        address_at: &address_at,
    };
    evaluate(expression, unit.encoding(), &mut question.machine, &context)
}
