//! DWARF debug information, read unit by unit on demand.
//!
//! Sections are kept as bytes; each question borrows them as a `gimli` view for as long as it runs, and what is kept
//! of an answer is plain data. Every walk counts its work, so that a broken or hostile file costs time in
//! proportion to its size and then yields less information, never a hang.
//!
//! Not read: split units in `.dwo` files and type units named by signature.

mod function;
mod line;
mod local;
mod shape;
mod types;
mod unit;
mod variable;

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use gimli::{DebugInfoOffset, EndianSlice, LittleEndian};
use raddle_stdx::width::to_u64;
use rustc_hash::FxHashMap;

pub use function::{FunctionPlace, InlinedCall};
pub use line::{LineMatches, LinePlace};
pub use local::{Local, LocalPlace, LocalQuestion};
pub use shape::{Part, Shape};
pub use types::{Field, TypeRef};
pub use variable::Variable;

use crate::elf::{Elf, LinkAddr};
use crate::error::{Incomplete, Part as ErrorPart, Reason};
use crate::flat::{Flat, Span};
use function::UnitFunctions;
use line::LineTable;
use unit::{DwarfFile, UnitEntry};
use variable::Variables;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Unit<'a> = gimli::Unit<Slice<'a>>;
pub(crate) type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;

/// The debug information of one module.
#[derive(Debug)]
pub struct DebugInfo {
    main: DwarfFile,
    shared: Option<DwarfFile>,
    /// Executable ranges: linkers leave the debug information of discarded functions behind with useless addresses.
    code: Vec<Range<u64>>,
    unit_at: Flat<u32>,
    lines: Vec<OnceLock<Result<Arc<LineTable>, Reason>>>,
    functions: Vec<OnceLock<Result<Arc<UnitFunctions>, Reason>>>,
    variables: OnceLock<Variables>,
}

/// A debugging entry: which file, where in its `.debug_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DieRef {
    pub(crate) is_shared: bool,
    pub(crate) offset: DebugInfoOffset<usize>,
}

/// Both files as `gimli` sees them, for the time of one question.
pub(crate) struct View<'a> {
    pub(crate) info: &'a DebugInfo,
    main: Dwarf<'a>,
    /// Opening a unit reads the table of its source files, so that is done once.
    opened: RefCell<FxHashMap<(bool, usize), Rc<Unit<'a>>>>,
}

/// Counts steps; a walk that takes more than its data can justify is given up.
#[derive(Debug)]
pub(crate) struct Work {
    left: u64,
    limit: u64,
}

/// An entry of real debug information has far fewer attributes and range entries per byte of its unit.
const WORK_PER_BYTE: u64 = 64;
const WORK_BASE: u64 = 1 << 14;

impl Work {
    pub(crate) fn for_bytes(bytes: u64) -> Self {
        let limit = bytes
            .saturating_mul(WORK_PER_BYTE)
            .saturating_add(WORK_BASE);
        Self { left: limit, limit }
    }

    pub(crate) fn steps(&mut self, count: usize) -> Result<(), Reason> {
        let limit = self.limit;
        self.left = self
            .left
            .checked_sub(to_u64(count))
            .ok_or(Reason::TooMuchWork { limit })?;
        Ok(())
    }

    pub(crate) fn step(&mut self) -> Result<(), Reason> {
        self.steps(1)
    }
}

impl DebugInfo {
    pub(crate) fn read(
        elf: &Elf,
        shared: Option<&Elf>,
        code: Vec<Range<u64>>,
    ) -> Result<Self, Reason> {
        let main = DwarfFile::read(elf)?;
        let shared = shared.map(DwarfFile::read).transpose()?;
        let mut info = Self {
            lines: main.line_programs.iter().map(|_| OnceLock::new()).collect(),
            functions: main.units.iter().map(|_| OnceLock::new()).collect(),
            variables: OnceLock::new(),
            unit_at: Flat::new(Vec::new()),
            main,
            shared,
            code,
        };
        info.unit_at = info.index_ranges();
        Ok(info)
    }

    /// The functions whose code contains an address, innermost inlined one first.
    pub fn scopes_at(&self, address: LinkAddr) -> Vec<FunctionPlace> {
        let Some(functions) = self.unit_index_at(address).and_then(|i| self.functions(i)) else {
            return Vec::new();
        };
        functions.scopes_at(address)
    }

    /// The source line of an address.
    pub fn line_at(&self, address: LinkAddr) -> Option<LinePlace> {
        let unit = self.unit_index_at(address)?;
        self.line_table(unit)?.line_at(address)
    }

    /// The instructions of a source line; `file` may leave out leading folders.
    pub fn addresses_of_line(&self, file: &str, line: u32) -> LineMatches {
        let tables = (0..self.main.line_programs.len()).filter_map(|index| self.program(index));
        line::matches(tables, file, line)
    }

    /// Where the statements of a stretch of code begin, by ascending address.
    pub fn statements(&self, code: Range<LinkAddr>) -> Vec<(LinkAddr, LinePlace)> {
        let table = self.unit_index_at(code.start);
        let table = table.and_then(|unit| self.line_table(unit));
        table.map_or_else(Vec::new, |table| table.statements(code))
    }

    /// All places where functions of this name were inlined; see [`crate::demangle::names_match`].
    pub fn inlined_calls(&self, name: &str) -> Vec<InlinedCall> {
        let units = (0..self.main.units.len()).filter_map(|index| self.functions(index));
        let mut calls: Vec<InlinedCall> = units.flat_map(|f| f.inlined_calls(name)).collect();
        calls.sort_by_key(|call| call.ranges.first().map(|range| range.start));
        calls
    }

    /// All variables with a fixed address, by ascending address.
    pub fn variables(&self) -> &[Variable] {
        self.variable_index().all()
    }

    /// The variable that contains an address, and the offset in it.
    pub fn variable_at(&self, address: LinkAddr) -> Option<(&Variable, u64)> {
        self.variable_index().at(address)
    }

    /// All variables of this name, with or without their namespace or function.
    pub fn variables_named(&self, name: &str) -> Vec<&Variable> {
        let matches = |v: &&Variable| crate::demangle::names_match(&v.qualified_name(), name);
        self.variables().iter().filter(matches).collect()
    }

    /// Parts that turned out to be unreadable in the questions asked so far.
    pub fn incomplete(&self) -> Vec<Incomplete> {
        let reasons =
            |part, reason: Option<&Reason>| reason.map(|&reason| Incomplete { part, reason });
        let files = [Some(&self.main), self.shared.as_ref()];
        let units = files.into_iter().flatten().flat_map(|file| &file.broken);
        let units = units.filter_map(|reason| reasons(ErrorPart::DebugUnits, Some(reason)));
        let lines = self.lines.iter().filter_map(OnceLock::get);
        let lines = lines.filter_map(|table| reasons(ErrorPart::Lines, table.as_ref().err()));
        let functions = self.functions.iter().filter_map(OnceLock::get);
        let functions =
            functions.filter_map(|tree| reasons(ErrorPart::Functions, tree.as_ref().err()));
        let variables = self
            .variables
            .get()
            .into_iter()
            .flat_map(|index| &index.broken);
        let variables = variables.filter_map(|reason| reasons(ErrorPart::Variables, Some(reason)));
        units
            .chain(lines)
            .chain(functions)
            .chain(variables)
            .collect()
    }

    fn variable_index(&self) -> &Variables {
        self.variables.get_or_init(|| Variables::read(&self.view()))
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            info: self,
            main: self.main.borrow(self.shared.as_ref()),
            opened: RefCell::default(),
        }
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }

    /// A range of code, or nothing if it is empty or the leftover of a discarded function.
    pub(crate) fn live_range(&self, range: gimli::Range) -> Option<Range<LinkAddr>> {
        let is_live = range.begin < range.end && self.is_code(range.begin);
        is_live.then_some(LinkAddr(range.begin)..LinkAddr(range.end))
    }

    fn unit_index_at(&self, address: LinkAddr) -> Option<usize> {
        self.unit_at.at(address.0).map(|index| index as usize)
    }

    fn functions(&self, unit: usize) -> Option<&UnitFunctions> {
        let slot = self.functions.get(unit)?;
        let read = || UnitFunctions::read(&self.view(), unit).map(Arc::new);
        slot.get_or_init(read).as_deref().ok()
    }

    /// The line table of a unit.
    pub(crate) fn line_table(&self, unit: usize) -> Option<&LineTable> {
        self.program(self.main.units.get(unit)?.line_program?)
    }

    fn program(&self, index: usize) -> Option<&LineTable> {
        let slot = self.lines.get(index)?;
        let read = || LineTable::read(&self.view(), index).map(Arc::new);
        slot.get_or_init(read).as_deref().ok()
    }

    fn index_ranges(&self) -> Flat<u32> {
        let mut spans = Vec::new();
        for (index, unit) in self.main.units.iter().enumerate() {
            let Ok(value) = u32::try_from(index) else {
                break;
            };
            for &(start, end) in &unit.ranges {
                if self.is_code(start) {
                    let depth = 0;
                    spans.push(Span {
                        start,
                        end,
                        depth,
                        value,
                    });
                }
            }
        }
        Flat::new(spans)
    }
}

impl<'a> View<'a> {
    pub(crate) fn dwarf(&self, is_shared: bool) -> Option<&Dwarf<'a>> {
        if is_shared {
            self.main.sup()
        } else {
            Some(&self.main)
        }
    }

    pub(crate) fn file(&self, is_shared: bool) -> Option<&'a DwarfFile> {
        if is_shared {
            self.info.shared.as_ref()
        } else {
            Some(&self.info.main)
        }
    }

    pub(crate) fn units(&self) -> &'a [UnitEntry] {
        &self.info.main.units
    }

    /// The unit with this index in the main file, ready to be walked.
    pub(crate) fn unit(&self, index: usize) -> Result<Rc<Unit<'a>>, Reason> {
        self.open(false, index)
    }

    /// The unit that contains an entry, with the entry's offset in it.
    pub(crate) fn unit_of(&self, die: DieRef) -> Option<(Rc<Unit<'a>>, gimli::UnitOffset)> {
        let index = self.file(die.is_shared)?.unit_containing(die.offset)?;
        let unit = self.open(die.is_shared, index).ok()?;
        let offset = die.offset.to_unit_offset(&unit.header)?;
        Some((unit, offset))
    }

    fn open(&self, is_shared: bool, index: usize) -> Result<Rc<Unit<'a>>, Reason> {
        if let Some(unit) = self.opened.borrow().get(&(is_shared, index)) {
            return Ok(Rc::clone(unit));
        }
        let missing = gimli::Error::NoEntryAtGivenOffset;
        let dwarf = self.dwarf(is_shared).ok_or(missing)?;
        let file = self.file(is_shared).ok_or(missing)?;
        let entry = file.units.get(index).ok_or(missing)?;
        let unit = Rc::new(entry.open(dwarf)?);
        let mut opened = self.opened.borrow_mut();
        opened.insert((is_shared, index), Rc::clone(&unit));
        Ok(unit)
    }

    /// The entry that an attribute of an entry in `unit` refers to.
    pub(crate) fn reference(
        &self,
        unit: &Unit<'a>,
        is_shared: bool,
        value: gimli::AttributeValue<Slice<'a>>,
    ) -> Option<DieRef> {
        match value {
            gimli::AttributeValue::UnitRef(offset) => Some(DieRef {
                is_shared,
                offset: offset.to_debug_info_offset(&unit.header)?,
            }),
            gimli::AttributeValue::DebugInfoRef(offset) => Some(DieRef { is_shared, offset }),
            gimli::AttributeValue::DebugInfoRefSup(offset) => Some(DieRef {
                is_shared: true,
                offset,
            }),
            _ => None,
        }
    }

    pub(crate) fn text(
        &self,
        unit: &Unit<'a>,
        is_shared: bool,
        value: gimli::AttributeValue<Slice<'a>>,
    ) -> Option<std::borrow::Cow<'a, str>> {
        let slice = self.dwarf(is_shared)?.attr_string(unit, value).ok()?;
        Some(String::from_utf8_lossy(slice.slice()))
    }
}
