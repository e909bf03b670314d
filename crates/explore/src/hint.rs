//! Hints that a program gives about itself: instructions that do nothing on any processor, found by their bytes.

use raddle_linux::marked_places;
use raddle_symbols::SymbolSpace;

/// The letter of `raddle_snapshot()` of `raddle.h`.
const SNAPSHOT: u8 = b'S';

/// Where the mapped modules ask for a snapshot.
pub(crate) fn snapshots(symbols: &SymbolSpace) -> Vec<u64> {
    let places = marked_places(symbols).into_iter();
    let snapshots = places.filter(|(_, letter)| *letter == SNAPSHOT);
    snapshots.map(|(place, _)| place).collect()
}
