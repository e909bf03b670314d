//! What tests share: where things are, compilers, running raddle, known programs and kernels.
//!
//! A development dependency and nothing else. A helper ends the test that calls it when something goes wrong, with the
//! reason.

#[cfg(feature = "browser")]
pub mod browser;
mod command;
mod compile;
pub mod corpus;
mod folders;
pub mod gdb;
pub mod harden;
pub mod kernel;
mod recordings;
mod rust_package;
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(feature = "snapshots")]
pub mod snapshot;
#[cfg(feature = "worlds")]
mod worlds;

pub use command::{
    Ran, cargo_raddle, number, output_in, raddle, raddle_in, raddle_path, run, send, succeed, text,
    told_in,
};
pub use compile::{LOST, compile, compile_test_program, compile_text, git};
pub use folders::{once, root, scratch, target, temporary, test_program};
pub use recordings::{failures, recording, recordings};
pub use rust_package::{cargo_raddle_in, counter_package};
#[cfg(feature = "worlds")]
pub use worlds::{try_world, world};
