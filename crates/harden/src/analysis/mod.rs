//! The analysis, on a plain model of a function: it knows neither LLVM nor a file format.
//!
//! [`model`] is the vocabulary, [`region`] finds the points from which a failure may be re-executed, `slice` what a
//! failure depends on, [`plan`] decides per site, [`interproc`] goes up to callers.

pub mod dominators;
pub mod interproc;
pub mod model;
pub mod plan;
pub mod region;
pub mod slice;

#[cfg(test)]
mod tests;
