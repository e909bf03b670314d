//! What is known of all files together: names, types, calls, threads, locks, aliases.

pub(crate) mod accesses;
pub(crate) mod calls;
pub(crate) mod cfg;
pub(crate) mod contexts;
pub(crate) mod flow;
mod fresh;
pub(crate) mod keys;
mod lock_names;
pub(crate) mod locks;
mod macros;
pub(crate) mod operations;
pub(crate) mod paths;
pub(crate) mod program;
pub(crate) mod sleep;
pub(crate) mod types;
pub(crate) mod wrappers;
