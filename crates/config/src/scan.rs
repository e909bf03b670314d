//! The `[scan]` table: what the static scanner should know about the project's own idioms,
//! which findings to leave out, and which patterns to add.

use std::collections::BTreeMap;

use serde::Deserialize;

pub use crate::suppress::Suppression;

/// The `[scan]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scan {
    /// Pattern files to use besides the shipped ones, relative to the configuration.
    pub patterns: Vec<String>,
    /// Paths to leave out; `*` stands for any characters.
    pub exclude: Vec<String>,
    /// Findings to leave out.
    pub suppress: Vec<Suppression>,
    pub idioms: Idioms,
}

/// Names of functions and macros, and what they mean. The shipped tables have the same form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Idioms {
    /// Words without meaning for the analysis.
    pub attributes: Vec<String>,
    /// Words whose parentheses go with them.
    pub attribute_calls: Vec<String>,
    /// Macros that head a loop; `*` stands for any characters.
    pub loops: Vec<String>,
    /// Macros that define a variable at file level: name of the macro to type of the variable.
    pub variables: BTreeMap<String, String>,
    /// Macros that define a function, with the prefix of its name.
    pub functions: BTreeMap<String, String>,
    /// Macros whose value has the type named by an argument, such as `container_of`.
    pub typed: BTreeMap<String, usize>,
    /// Functions that give back their first argument's object under another type.
    pub result_types: BTreeMap<String, String>,
    /// Structs whose objects belong to one thread at a time, such as messages.
    pub owned: Vec<String>,
    pub locks: Vec<LockFamily>,
    pub accesses: Vec<AccessFamily>,
    /// Named sets of functions, for `@name` in patterns.
    pub classes: BTreeMap<String, Vec<String>>,
    pub starters: Vec<Starter>,
}

/// Operations on one kind of lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LockFamily {
    /// Locks of different families are different locks.
    pub name: String,
    /// Whether the holder may sleep.
    pub sleeps: bool,
    /// Readers share it.
    pub shared: bool,
    /// It protects readers from reclamation only, and excludes no other thread.
    pub rcu: bool,
    /// Holding it means interrupts or preemption are off; there is no lock object.
    pub context: bool,
    /// Taken several times by one thread, or given back by another.
    pub counts: bool,
    /// Which argument is the lock; without it there is one lock for all.
    pub argument: Option<usize>,
    pub acquire: Vec<String>,
    /// Acquire that may fail, and then returns other than zero.
    pub acquire_or_error: Vec<String>,
    /// Acquire that returns true if it succeeded.
    pub try_acquire: Vec<String>,
    pub release: Vec<String>,
    /// First arguments of `guard(..)` and `scoped_guard(..)`.
    pub guards: Vec<String>,
}

/// Calls that read or write what an argument points to, or names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessFamily {
    /// Set name, for `@name` in patterns.
    pub class: String,
    pub calls: Vec<String>,
    /// Argument that is read.
    pub reads: Option<usize>,
    /// Argument that is overwritten.
    pub writes: Option<usize>,
    /// Argument that is read and written in one step.
    pub updates: Option<usize>,
    /// The accesses of the call need no lock to be safe by themselves.
    pub atomic: bool,
}

/// A call, macro or initialiser that makes a function run on its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Starter {
    pub calls: Vec<String>,
    /// Argument that is the function.
    pub function: usize,
    /// Argument that is passed to it.
    pub argument: Option<usize>,
    /// `thread`, `work`, `softirq`, `hardirq`, `init` or `entry`.
    pub context: String,
    /// Initialisers of these structs' fields start threads; all of the struct if `fields` is empty.
    pub structs: Vec<String>,
    pub fields: Vec<String>,
    /// Lock families that the caller of these fields holds.
    pub holds: Vec<String>,
}
