//! Line tables: from an address to a line, and from a line to its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use raddle_stdx::width::to_usize;

use super::{Unit, View};
use crate::elf::LinkAddr;
use crate::error::Reason;
use crate::flat::{Flat, Span};

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinePlace {
    /// With its folder, as the compiler was called.
    pub file: Arc<str>,
    pub line: u32,
    /// Zero when unknown.
    pub column: u32,
}

/// The instructions of a source line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineMatches {
    /// The line that has instructions: the asked one, or else the next one after it in that file.
    pub line: Option<u32>,
    /// Ascending and distinct.
    pub ranges: Vec<Range<LinkAddr>>,
}

/// The rows of one line program.
#[derive(Debug)]
pub(crate) struct LineTable {
    /// By the file numbers of the program; a number without a name is an empty text.
    pub(crate) files: Vec<Arc<str>>,
    rows: Vec<Row>,
    /// Maps addresses to the sequence that covers them.
    sequence_at: Flat<u32>,
    sequences: Vec<Range<usize>>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    address: u64,
    file: u32,
    line: u32,
    column: u32,
    /// Whether a later row claims the same instruction; optimisers leave several lines at one address.
    is_shadowed: bool,
    /// The first address after a sequence; belongs to no line.
    is_end: bool,
}

impl LineTable {
    pub(crate) fn read(view: &View<'_>, program: usize) -> Result<Self, Reason> {
        let first_unit = view.info.main.line_programs.get(program).copied();
        let unit = view.unit(first_unit.unwrap_or(usize::MAX))?;
        let Some(program) = unit.line_program.clone() else {
            return Err(gimli::Error::MissingUnitDie.into());
        };
        let files = file_names(view, &unit);
        let mut rows: Vec<Row> = Vec::new();
        let mut sequences = Vec::new();
        let mut first = 0;
        let mut state = program.rows();
        // A broken tail leaves the sequences before it usable.
        while let Ok(Some((_, row))) = state.next_row() {
            rows.push(to_row(row));
            if row.end_sequence() {
                sequences.push(first..rows.len());
                first = rows.len();
            }
        }
        rows.truncate(first);
        let mut spans = Vec::new();
        for (index, sequence) in sequences.iter().enumerate() {
            let slice = &mut rows[sequence.clone()];
            // Rows ascend in a sequence by the standard; sorting makes that true for broken files as well.
            slice.sort_by_key(|row| row.address);
            let start = slice.first().map_or(0, |row| row.address);
            let end = slice.last().map_or(0, |row| row.address);
            if let Ok(value) = u32::try_from(index)
                && view.info.is_code(start)
            {
                let depth = 0;
                spans.push(Span {
                    start,
                    end,
                    depth,
                    value,
                });
            }
        }
        Ok(Self {
            files,
            rows,
            sequence_at: Flat::new(spans),
            sequences,
        })
    }

    pub(crate) fn line_at(&self, address: LinkAddr) -> Option<LinePlace> {
        let sequence = self.sequence_at.at(address.0)?;
        let rows = &self.rows[self.sequences[sequence as usize].clone()];
        let after = rows.partition_point(|row| row.address <= address.0);
        let row = rows.get(after.checked_sub(1)?)?;
        (!row.is_end && row.line != 0).then(|| LinePlace {
            file: self.file(row.file),
            line: row.line,
            column: row.column,
        })
    }

    /// The rows that begin in a stretch of code; of several at one address the last, which [`Self::line_at`] gives.
    pub(crate) fn statements(&self, code: Range<LinkAddr>) -> Vec<(LinkAddr, LinePlace)> {
        let Some(sequence) = self.sequence_at.at(code.start.0) else {
            return Vec::new();
        };
        let rows = &self.rows[self.sequences[sequence as usize].clone()];
        let mut addresses: Vec<LinkAddr> = rows
            .iter()
            .map(|row| LinkAddr(row.address))
            .filter(|address| code.contains(address))
            .collect();
        addresses.dedup();
        let place = |address: LinkAddr| Some((address, self.line_at(address)?));
        addresses.into_iter().filter_map(place).collect()
    }

    pub(crate) fn file(&self, number: u32) -> Arc<str> {
        let name = self.files.get(to_usize(number.into()));
        name.map_or_else(|| Arc::from(""), Arc::clone)
    }

    /// Rows of live code that belong to one of `wanted` files, each with the range of its instructions.
    fn rows_in(&self, wanted: &[bool]) -> Vec<(Row, Range<LinkAddr>)> {
        let mut found = Vec::new();
        for sequence in &self.sequences {
            let rows = &self.rows[sequence.clone()];
            let start = rows.first().map_or(0, |row| row.address);
            if self.sequence_at.at(start).is_none() {
                continue;
            }
            let mut end = start;
            for (row, next) in rows.iter().zip(rows.iter().skip(1)).rev() {
                if row.address < next.address {
                    end = next.address;
                }
                let is_wanted = wanted.get(to_usize(row.file.into())) == Some(&true);
                if is_wanted && row.line != 0 && row.address < end {
                    let is_shadowed = row.address == next.address;
                    let range = LinkAddr(row.address)..LinkAddr(end);
                    found.push((
                        Row {
                            is_shadowed,
                            ..*row
                        },
                        range,
                    ));
                }
            }
        }
        found
    }
}

/// Collects the ranges of a line over all tables; inlined and template code has several.
pub(super) fn matches<'t>(
    tables: impl Iterator<Item = &'t LineTable>,
    file: &str,
    line: u32,
) -> LineMatches {
    // By line and whether every row of it is shadowed: the first that is not less than asked is the answer.
    let mut found: BTreeMap<(u32, bool), BTreeSet<(LinkAddr, LinkAddr)>> = BTreeMap::new();
    for table in tables {
        let wanted: Vec<bool> = table
            .files
            .iter()
            .map(|own| is_same_file(own, file))
            .collect();
        if !wanted.contains(&true) {
            continue;
        }
        for (row, range) in table.rows_in(&wanted) {
            if row.line >= line {
                let ranges = found.entry((row.line, row.is_shadowed)).or_default();
                ranges.insert((range.start, range.end));
            }
        }
    }
    match found.pop_first() {
        Some(((line, _), ranges)) => LineMatches {
            line: Some(line),
            ranges: ranges.into_iter().map(|(start, end)| start..end).collect(),
        },
        None => LineMatches::default(),
    }
}

/// Whether `wanted` is the path `own` or its last components.
fn is_same_file(own: &str, wanted: &str) -> bool {
    let wanted = wanted.strip_prefix("./").unwrap_or(wanted);
    own.strip_suffix(wanted)
        .is_some_and(|front| !wanted.is_empty() && (front.is_empty() || front.ends_with('/')))
}

fn to_row(row: &gimli::LineRow) -> Row {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(0);
    Row {
        address: row.address(),
        file: narrow(row.file_index()),
        line: row.line().map_or(0, |line| narrow(line.get())),
        column: match row.column() {
            gimli::ColumnType::LeftEdge => 0,
            gimli::ColumnType::Column(column) => narrow(column.get()),
        },
        is_shadowed: false,
        is_end: row.end_sequence(),
    }
}

/// Names by file number: from 1 in old tables, from 0 since DWARF 5.
fn file_names<'a>(view: &View<'a>, unit: &Unit<'a>) -> Vec<Arc<str>> {
    let Some(program) = &unit.line_program else {
        return Vec::new();
    };
    let header = program.header();
    let comp_dir = unit
        .comp_dir
        .map(|dir| dir.to_string_lossy())
        .unwrap_or_default();
    let mut names = Vec::new();
    if header.version() < 5 {
        names.push(Arc::from(""));
    }
    for entry in header.file_names() {
        let name = view
            .text(unit, false, entry.path_name())
            .unwrap_or_default();
        let folder = entry.directory(header);
        let folder = folder
            .and_then(|dir| view.text(unit, false, dir))
            .unwrap_or_default();
        names.push(join(&[&comp_dir, &folder, &name]).into());
    }
    names
}

/// Joins path parts; an absolute part replaces what is before it.
fn join(parts: &[&str]) -> String {
    let mut path = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part.strip_prefix("./").unwrap_or(part));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_as_compilers_mean_them() {
        assert_eq!(join(&["/build", "src", "a.c"]), "/build/src/a.c");
        assert_eq!(join(&["/build", "/usr/include", "b.h"]), "/usr/include/b.h");
        assert_eq!(join(&["", "", "./c.c"]), "c.c");
        assert_eq!(join(&["/build", "", "/abs.c"]), "/abs.c");
    }

    #[test]
    fn files_match_by_whole_trailing_components() {
        assert!(is_same_file("/build/src/a.c", "a.c"));
        assert!(is_same_file("/build/src/a.c", "./src/a.c"));
        assert!(is_same_file("/build/src/a.c", "/build/src/a.c"));
        assert!(!is_same_file("/build/src/ba.c", "a.c"));
        assert!(!is_same_file("/build/src/a.c", ""));
    }
}
