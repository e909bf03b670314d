//! The analysis, on a plain model of a function: it knows neither LLVM nor a file format.
//!
//! [`model`] is the vocabulary, [`region`] finds the points from which a failure may be re-executed, `slice` what a
//! failure depends on, [`plan`] decides per site, [`interproc`] goes up to callers, [`summary`] says what calls of the
//! program's own functions do, [`guard`] which locks guard which variables, [`held`] where locks are held,
//! [`sections`] what is taken and given back inside a region.

pub mod dominators;
pub mod guard;
pub mod held;
pub mod interproc;
pub mod model;
pub mod plan;
pub mod region;
pub mod sections;
pub mod slice;
pub mod summary;

#[cfg(test)]
mod tests;
