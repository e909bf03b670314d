//! Stacks and places as reports show them.

use raddle_linux::LinuxWorld;
use raddle_report::finding::{Excerpt, Place};
use raddle_symbols::SymbolSpace;
use raddle_world::ContextId;

/// Frames of a stack that are shown.
const FRAMES_MAX: usize = 24;

/// One frame of a stack.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) pc: u64,
}

/// The stack of a live context, innermost frame first.
pub(crate) fn stack(world: &mut LinuxWorld, who: ContextId) -> Vec<Line> {
    let Some(symbols) = world.symbols(who) else {
        return Vec::new();
    };
    let pcs = world.stack(who, &symbols, FRAMES_MAX);
    pcs.into_iter()
        .map(|pc| Line {
            place: place_of(&symbols, pc),
            pc,
        })
        .collect()
}

/// Source place of an instruction, as far as it is known.
pub(crate) fn place_of(symbols: &SymbolSpace, pc: u64) -> Place {
    let Some(found) = symbols.symbolise(pc) else {
        return Place {
            function: format!("{pc:#x}"),
            ..Place::default()
        };
    };
    let function = found
        .function
        .as_deref()
        .map_or_else(|| format!("{pc:#x}"), str::to_owned);
    match found.line {
        Some(line) => Place {
            file: line.file.to_string(),
            line: line.line,
            column: line.column,
            function,
        },
        None => Place {
            file: found.module.to_string(),
            line: 0,
            column: 0,
            function,
        },
    }
}

/// `file.c:12 function`.
pub(crate) fn describe(place: &Place) -> String {
    let file = place.file.rsplit('/').next().unwrap_or_default();
    if place.line == 0 {
        format!("{} in {file}", place.function)
    } else {
        format!("{file}:{} {}", place.line, place.function)
    }
}

/// The source line of a place, if the source is at hand.
pub(crate) fn excerpt(place: &Place) -> Option<Excerpt> {
    if place.line == 0 {
        return None;
    }
    let text = std::fs::read_to_string(&place.file).ok()?;
    let line = text.lines().nth(place.line as usize - 1)?;
    Some(Excerpt {
        first_line: place.line,
        lines: vec![line.to_owned()],
    })
}
