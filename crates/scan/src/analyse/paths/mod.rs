//! Walks the paths of each function with the locks held on each of them.
//!
//! Values are numbered along a path, so that a lock in a local, a result that tells whether a lock was got,
//! and a condition that is tested again are the same value again. Paths that differ in nothing that is still
//! asked for are joined where they meet; paths whose locks differ stay apart (property simulation). Loops are
//! passed at most once. What had to be joined or dropped because there were too many paths is marked, and no
//! finding rests on it.

mod calls;
mod eval;
mod held;
mod judge;
mod lifetime;
mod macros;
pub(crate) mod state;
pub(crate) mod summary;
mod uses;
pub(crate) mod value;
mod walk;

pub(crate) use judge::{PathFact, PathFactKind};
pub(crate) use walk::{Sets, Walk};
