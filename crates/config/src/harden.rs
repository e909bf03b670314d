//! The `[harden]` table: which functions mean what to `raddle harden`, and its limits.

use serde::Deserialize;

/// What a project says about itself to the hardening tools; everything has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Harden {
    /// Functions whose call is a failure, beside `__assert_fail` and Rust's panics.
    pub assertions: Vec<String>,
    /// Output functions beside those of libc; their pointer arguments are checked.
    pub outputs: Vec<String>,
    /// Functions that change nothing that others can see, beside those of libc: they do not end a region.
    pub harmless: Vec<String>,
    pub locks: Vec<Lock>,
    pub allocators: Vec<Allocator>,
    /// Pointers below this are invalid; 10000 if not given.
    pub pointer_bound: Option<u64>,
    /// How many callers up a failure may be re-executed; 3 if not given, 0 turns it off.
    pub caller_levels: Option<usize>,
    /// Volatile reads end regions, as memory-mapped devices need it.
    pub volatile_is_io: bool,
}

/// Lock functions of the project's own; each takes the lock as its first parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lock {
    pub lock: String,
    pub unlock: String,
    /// `int timed(lock, unsigned milliseconds)`, zero when acquired; without it the lock is no deadlock site.
    pub timed: Option<String>,
}

/// An allocator of the project's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Allocator {
    pub alloc: String,
    pub free: String,
}
