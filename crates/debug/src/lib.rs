//! Recorded runs in debuggers: the protocols of gdb and of editors over worlds that can be looked into.
//!
//! This crate knows runs as [`raddle_sched::travel`] gives them, and names as `raddle_symbols` does. It never knows
//! which world a run was made in, opens no file and no socket, and never changes a run.
//!
//! Reading order: [`scene`] (a thread at a moment: frames and variables), `value` (what is in memory, as its type says),
//! [`expression`] (what users type), [`debugger`] (going to and fro by lines), then the protocols: [`gdb`] and [`dap`].

pub mod dap;
pub mod debugger;
pub mod expression;
pub mod gdb;
pub mod scene;
mod steps;
mod value;

pub use debugger::{Debugger, LastWrite, SymbolsOf};
pub use scene::{Scene, StackFrame, Variable};
pub use value::{Typed, bytes_text};
