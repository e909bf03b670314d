//! Marks: what a program says of itself through instructions that do nothing on any processor.
//!
//! They are found by their bytes, which survive inlining, optimisation and `strip`, and need neither a library nor a
//! symbol. `raddle.h` and the crate `raddle-annotations` make them.

use raddle_mem::GuestAddr;
use raddle_stdx::IdMap;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_symbols::SymbolSpace;
use raddle_world::{EventKind, Mark, Value};
use raddle_x86::{Engine, Reg};
use rustc_hash::FxHashMap;

use crate::hooks::Hooks;
use crate::kernel::Kernel;
use crate::process::SpaceId;
use crate::thread::Tid;

/// A NOP of eight bytes whose unused displacement reads `RDL` and the letter of its meaning.
const PREFIX: [u8; 7] = *b"\x0F\x1F\x84\x00RDL";
/// Bytes of a name, an argument or a result that are read at most.
const BYTES_MAX: u64 = 1 << 16;
/// How `raddle.h` numbers what a value is.
const NUMBER: u64 = 0;
const TEXT: u64 = 1;

/// Where the mapped modules have marks, and their letters.
pub fn marked_places(symbols: &SymbolSpace) -> Vec<(u64, u8)> {
    let mut found = Vec::new();
    for mapping in symbols.modules() {
        let segments = mapping.module.segments().iter();
        for segment in segments.filter(|segment| segment.is_executable) {
            let code = mapping
                .module
                .bytes_at(segment.address, to_usize(segment.file_size));
            let start = mapping.bias.wrapping_add(segment.address.0);
            found
                .extend(letters(code).map(|(offset, letter)| (start.wrapping_add(offset), letter)));
        }
    }
    found
}

/// Offsets and letters of the marks in some code.
fn letters(code: &[u8]) -> impl Iterator<Item = (u64, u8)> {
    let windows = code.windows(PREFIX.len() + 1).enumerate();
    // The first two bytes rule out nearly everything.
    windows
        .filter(|(_, window)| window[0] == PREFIX[0] && window[..PREFIX.len()] == PREFIX)
        .map(|(offset, window)| (to_u64(offset), window[PREFIX.len()]))
        .filter(|(_, letter)| letter.is_ascii_uppercase())
}

/// What a mark of an operation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Begin,
    Probe,
    Argument,
    Result,
    End,
}

impl Meaning {
    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'B' => Self::Begin,
            b'Q' => Self::Probe,
            b'A' => Self::Argument,
            b'R' => Self::Result,
            b'E' => Self::End,
            _ => return None,
        })
    }

    /// Whether another context may well come in here.
    fn is_boundary(self) -> bool {
        matches!(self, Self::Begin | Self::Probe | Self::End)
    }
}

/// The marks of operations, where the judge of the run wants to know of them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    is_on: bool,
    /// For each address space: the layout in which the marks were found.
    spaces: IdMap<SpaceId, (u64, FxHashMap<u64, Meaning>)>,
}

impl Marks {
    pub(crate) fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// Looks for marks if the code of the thread's process changed.
    pub(crate) fn refresh(
        &mut self,
        kernel: &mut Kernel,
        engine: &mut Engine,
        hooks: &mut Hooks,
        tid: Tid,
    ) {
        if !self.is_on {
            return;
        }
        let id = kernel.process_of(tid).space;
        let layout = kernel.space_of(tid).map.code_layout();
        if self.spaces.get(&id).is_some_and(|known| known.0 == layout) {
            return;
        }
        let places = marked_places(&hooks.symbols(kernel, tid));
        let meant = places
            .into_iter()
            .filter_map(|(pc, letter)| Some((pc, Meaning::of(letter)?)));
        let meanings: FxHashMap<u64, Meaning> = meant.collect();
        meanings.keys().for_each(|pc| engine.add_point(*pc));
        self.spaces.insert(id, (layout, meanings));
    }

    fn meaning(&self, kernel: &Kernel, tid: Tid, pc: u64) -> Option<Meaning> {
        let (_, meanings) = self.spaces.get(&kernel.process_of(tid).space)?;
        meanings.get(&pc).copied()
    }

    pub(crate) fn is_mark(&self, kernel: &Kernel, tid: Tid, pc: u64) -> bool {
        self.meaning(kernel, tid, pc).is_some()
    }

    /// Tells of the mark that a thread stands before, if there is one; says whether it begins or ends an operation.
    pub(crate) fn at_point(&self, kernel: &mut Kernel, tid: Tid, pc: u64) -> Option<bool> {
        let meaning = self.meaning(kernel, tid, pc)?;
        let cpu = &kernel.thread(tid).cpu;
        let [first, second, third] =
            [Reg::Rdi, Reg::Rsi, Reg::Rdx].map(|register| cpu.reg(register));
        let mark = match meaning {
            Meaning::Begin | Meaning::Probe => Mark::Begin {
                name: String::from_utf8_lossy(&bytes(kernel, tid, first, second)).into_owned(),
                is_probe: meaning == Meaning::Probe,
            },
            Meaning::Argument => Mark::Argument(value(kernel, tid, [first, second, third])),
            Meaning::Result => Mark::Result(value(kernel, tid, [first, second, third])),
            Meaning::End => Mark::End,
        };
        kernel.emit(tid, EventKind::Mark(Box::new(mark)));
        Some(meaning.is_boundary())
    }

    /// Whether a program point is needed by a mark.
    pub(crate) fn uses(&self, pc: u64) -> bool {
        let mut spaces = self.spaces.values();
        spaces.any(|(_, meanings)| meanings.contains_key(&pc))
    }
}

fn value(kernel: &mut Kernel, tid: Tid, [class, what, length]: [u64; 3]) -> Value {
    match class {
        NUMBER => Value::Number(what.cast_signed()),
        TEXT => Value::Text(bytes(kernel, tid, what, length)),
        _ => Value::Error(bytes(kernel, tid, what, length)),
    }
}

/// Bytes of a thread's memory; none if it has none there.
fn bytes(kernel: &mut Kernel, tid: Tid, at: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; to_usize(length.min(BYTES_MAX))];
    match kernel.read_user(tid, GuestAddr(at), &mut bytes) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_wherever_they_stand() {
        let mark = |letter| [&PREFIX[..], &[letter]].concat();
        let code = [&[0x90][..], &mark(b'S'), &PREFIX, &mark(b'B')].concat();
        assert_eq!(letters(&code).collect::<Vec<_>>(), [(1, b'S'), (16, b'B')]);
        assert_eq!(letters(&PREFIX).count(), 0);
    }

    #[test]
    fn values_and_snapshots_are_no_boundaries() {
        let is_boundary = |letter| Meaning::of(letter).map(Meaning::is_boundary);
        assert_eq!(is_boundary(b'B'), Some(true));
        assert_eq!(is_boundary(b'A'), Some(false));
        assert_eq!(is_boundary(b'S'), None);
    }
}
