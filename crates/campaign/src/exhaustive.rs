//! How far a search through all interleavings came.

/// What such a search has to say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exhaustive {
    pub interleavings: u64,
    /// How many there probably are.
    pub estimate: f64,
    /// Whether all were explored.
    pub is_complete: bool,
    /// Runs that were not explored to their end, because they did not end.
    pub cut_short: u64,
}
