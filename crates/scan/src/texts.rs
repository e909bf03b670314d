//! The texts of scanned files, read again to show lines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use raddle_report::Place;

use crate::analyse::program::{EventId, FnId};
use crate::front::lex::{at, index};
use crate::matcher::Engine;

/// The lines of files that findings point to.
pub(crate) struct Texts<'e, 'p> {
    engine: &'e Engine<'p>,
    lines: BTreeMap<u32, (Vec<u8>, Vec<u32>)>,
}

impl<'e, 'p> Texts<'e, 'p> {
    pub(crate) fn new(engine: &'e Engine<'p>) -> Self {
        Self {
            engine,
            lines: BTreeMap::new(),
        }
    }
}

impl Texts<'_, '_> {
    fn file(&mut self, unit: u32) -> &(Vec<u8>, Vec<u32>) {
        let engine = self.engine;
        self.lines.entry(unit).or_insert_with(|| {
            let path: &PathBuf = &engine.program.sources[at(unit)].path;
            let text = std::fs::read(path).unwrap_or_default();
            let mut starts = vec![0];
            for (position, byte) in text.iter().enumerate() {
                if *byte == b'\n' {
                    starts.push(index(position + 1));
                }
            }
            (text, starts)
        })
    }

    /// One-based line and column of a byte offset.
    pub(crate) fn line(&mut self, unit: u32, pos: u32) -> (u32, u32) {
        let (_, starts) = self.file(unit);
        let line = starts.partition_point(|start| *start <= pos);
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (index(line), pos.saturating_sub(start) + 1)
    }

    /// The text of a line.
    pub(crate) fn text(&mut self, unit: u32, line: u32) -> String {
        let (text, starts) = self.file(unit);
        let first = at(line.saturating_sub(1));
        let start = starts.get(first).map_or(0, |start| at(*start));
        let end = starts.get(first + 1).map_or(text.len(), |end| at(*end));
        let line_text = String::from_utf8_lossy(&text[start.min(end)..end]);
        let mut shown = line_text.trim_end().replace('\t', "    ");
        if shown.chars().count() > 160 {
            shown = shown.chars().take(157).collect::<String>() + "...";
        }
        shown
    }

    pub(crate) fn place(&mut self, place: EventId) -> Place {
        let pos = self.engine.program.event(place).pos;
        self.place_at(place.function, pos)
    }

    pub(crate) fn place_at(&mut self, function: FnId, pos: u32) -> Place {
        let unit = self.engine.program.unit_of(function);
        let (line, column) = self.line(unit, pos);
        Place {
            file: self.engine.program.sources[at(unit)].shown.clone(),
            line,
            column,
            function: self.engine.program.function_name(function).into_owned(),
        }
    }
}
