//! The differential fuzzer: the same instruction, the same state, on the host processor and on ours.
//!
//! ```text
//!   forms (all implemented `Code`s) ─▶ plan (one encoding) ─▶ cases (many states)
//!                                                              ├─▶ native::Native  (trampoline, signals as outcomes)
//!                                                              └─▶ any Subject     (the generic interpreter; the engine)
//!   compare: registers, flags that are defined, XMM, x87, memory windows, where it went or how it faulted
//! ```
//! Everything is a function of the seed.

mod case;
mod compare;
mod forms;
mod layout;
mod machine;
mod native;
mod operands;
mod plan;
mod run;
mod subject;
#[cfg(test)]
mod tests;
mod values;

pub use case::{Case, CaseResult, Ending};
pub use layout::{CODE, CODE_BYTES, DATA, DATA_BYTES, TAKEN, WINDOW_BYTES, WINDOWS};
pub use machine::Machine;
pub use native::Native;
pub use run::{Config, Mismatch, Report, fuzz, fuzz_engine, fuzz_interpreter};
pub use subject::{Interpreter, Subject};
