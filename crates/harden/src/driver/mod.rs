//! The compiler driver behind `raddle cc`, without processes and environment: it reads a compiler command line and
//! says which one to run instead.
//!
//! [`invocation`] understands the user's arguments, [`toolchain`] is where LLVM and our plugin are, [`parts`] writes
//! the runtime where a linker can find it, [`config`] merges `raddle.toml` and options.

pub mod config;
pub mod invocation;
pub mod parts;
pub mod toolchain;

pub use invocation::{Invocation, Step};
pub use toolchain::{Language, Missing, Toolchain};
