//! The list of units of a file: where they are, what code they cover, which line program they use.

use std::sync::Arc;

use gimli::{Abbreviations, DebugInfoOffset, DebugLineOffset, DwarfSections};
use raddle_stdx::width::to_u64;
use rustc_hash::FxHashMap;

use super::{Dwarf, Slice, Unit, Work};
use crate::elf::{Elf, SectionBytes};
use crate::error::Reason;

/// The debug sections of one file and the index of their units.
#[derive(Debug)]
pub(crate) struct DwarfFile {
    sections: DwarfSections<SectionBytes>,
    /// Invariant: ascending by offset.
    pub(crate) units: Vec<UnitEntry>,
    /// Each distinct line program with the first unit that names it.
    pub(crate) line_programs: Vec<usize>,
    /// Why units are missing from the list.
    pub(crate) broken: Vec<Reason>,
}

#[derive(Debug)]
pub(crate) struct UnitEntry {
    pub(crate) offset: DebugInfoOffset<usize>,
    /// Bytes of the unit with its header.
    pub(crate) len: usize,
    abbreviations: Arc<Abbreviations>,
    pub(crate) ranges: Vec<(u64, u64)>,
    pub(crate) line_program: Option<usize>,
}

impl DwarfFile {
    pub(crate) fn read(elf: &Elf) -> Result<Self, Reason> {
        let sections = DwarfSections::load(|id| -> Result<SectionBytes, Reason> {
            let found = elf.section(id.name())?;
            Ok(found.map_or_else(SectionBytes::empty, |(_, bytes)| bytes))
        })?;
        let mut file = Self {
            sections,
            units: Vec::new(),
            line_programs: Vec::new(),
            broken: Vec::new(),
        };
        let mut units = Vec::new();
        let mut programs = Programs::default();
        let mut broken = Vec::new();
        {
            let dwarf = file.borrow(None);
            let mut work = Work::for_bytes(to_u64(elf.bytes.len()));
            let mut cache = FxHashMap::default();
            let mut headers = dwarf.units();
            loop {
                match headers.next() {
                    Ok(Some(header)) => {
                        let index = units.len();
                        let entry = read_entry(
                            &dwarf,
                            header,
                            &mut cache,
                            &mut work,
                            (&mut programs, index),
                        );
                        match entry {
                            Ok(entry) => units.push(entry),
                            Err(reason) => broken.push(reason),
                        }
                    }
                    Ok(None) => break,
                    Err(source) => {
                        broken.push(source.into());
                        break;
                    }
                }
            }
        }
        // One reason per kind is enough to tell that and why information is missing.
        broken.dedup();
        file.units = units;
        file.line_programs = programs.first_units;
        file.broken = broken;
        Ok(file)
    }

    pub(crate) fn borrow<'a>(&'a self, shared: Option<&'a Self>) -> Dwarf<'a> {
        let slice = |bytes: &'a SectionBytes| Slice::new(bytes.as_slice(), gimli::LittleEndian);
        match shared {
            Some(shared) => self.sections.borrow_with_sup(&shared.sections, slice),
            None => self.sections.borrow(slice),
        }
    }

    /// The index of the unit around an offset.
    pub(crate) fn unit_containing(&self, offset: DebugInfoOffset<usize>) -> Option<usize> {
        let after = self.units.partition_point(|unit| unit.offset.0 <= offset.0);
        let index = after.checked_sub(1)?;
        let unit = self.units.get(index)?;
        (offset.0 - unit.offset.0 < unit.len).then_some(index)
    }
}

impl UnitEntry {
    pub(crate) fn open<'a>(&self, dwarf: &Dwarf<'a>) -> gimli::Result<Unit<'a>> {
        let header = dwarf.debug_info.header_from_offset(self.offset)?;
        Unit::new_with_abbreviations(dwarf, header, Arc::clone(&self.abbreviations))
    }

    pub(crate) fn work(&self) -> Work {
        Work::for_bytes(to_u64(self.len))
    }
}

#[derive(Default)]
struct Programs {
    by_offset: FxHashMap<usize, usize>,
    first_units: Vec<usize>,
}

impl Programs {
    fn index_of(&mut self, offset: DebugLineOffset<usize>, unit: usize) -> usize {
        *self.by_offset.entry(offset.0).or_insert_with(|| {
            self.first_units.push(unit);
            self.first_units.len() - 1
        })
    }
}

/// Many units may share one table of abbreviations; each table is parsed once.
type AbbreviationCache = FxHashMap<usize, Arc<Abbreviations>>;

fn read_entry<'a>(
    dwarf: &Dwarf<'a>,
    header: gimli::UnitHeader<Slice<'a>>,
    cache: &mut AbbreviationCache,
    work: &mut Work,
    (programs, index): (&mut Programs, usize),
) -> Result<UnitEntry, Reason> {
    work.step()?;
    let gimli::UnitSectionOffset::DebugInfoOffset(offset) = header.offset() else {
        return Err(gimli::Error::NoEntryAtGivenOffset.into());
    };
    let key = header.debug_abbrev_offset().0;
    let abbreviations = if let Some(known) = cache.get(&key) {
        Arc::clone(known)
    } else {
        let parsed = dwarf.abbreviations(&header)?;
        cache.insert(key, Arc::clone(&parsed));
        parsed
    };
    let len = header.length_including_self();
    let unit = Unit::new_with_abbreviations(dwarf, header, Arc::clone(&abbreviations))?;
    let mut ranges = Vec::new();
    let mut iter = dwarf.unit_ranges(&unit)?;
    while let Some(range) = iter.next()? {
        work.step()?;
        ranges.push((range.begin, range.end));
    }
    let program = unit
        .line_program
        .as_ref()
        .map(|program| program.header().offset());
    Ok(UnitEntry {
        offset,
        len,
        abbreviations,
        ranges,
        line_program: program.map(|offset| programs.index_of(offset, index)),
    })
}
