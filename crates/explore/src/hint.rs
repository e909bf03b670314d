//! Hints that a program gives about itself: instructions that do nothing on any processor, found by their bytes.
//!
//! Bytes survive inlining, optimisation and `strip`, and need neither a library nor a symbol.

use raddle_stdx::width::{to_u64, to_usize};
use raddle_symbols::SymbolSpace;

/// `raddle_snapshot()` of `raddle.h`: a NOP of eight bytes whose unused displacement reads `RDLS`.
const SNAPSHOT: [u8; 8] = *b"\x0F\x1F\x84\x00RDLS";

/// Where the mapped modules ask for a snapshot.
pub(crate) fn snapshots(symbols: &SymbolSpace) -> Vec<u64> {
    let mut found = Vec::new();
    for mapping in symbols.modules() {
        let segments = mapping.module.segments().iter();
        for segment in segments.filter(|segment| segment.is_executable) {
            let code = mapping
                .module
                .bytes_at(segment.address, to_usize(segment.file_size));
            let start = mapping.bias.wrapping_add(segment.address.0);
            found.extend(offsets(code).map(|offset| start.wrapping_add(offset)));
        }
    }
    found
}

fn offsets(code: &[u8]) -> impl Iterator<Item = u64> {
    let windows = code.windows(SNAPSHOT.len()).enumerate();
    windows
        .filter(|(_, window)| *window == SNAPSHOT)
        .map(|(offset, _)| to_u64(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_found_wherever_they_stand() {
        let code = [&[0x90][..], &SNAPSHOT, &SNAPSHOT[..7], &SNAPSHOT].concat();
        assert_eq!(offsets(&code).collect::<Vec<_>>(), [1, 16]);
        assert_eq!(offsets(&SNAPSHOT[..7]).count(), 0);
    }
}
