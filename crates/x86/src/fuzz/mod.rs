//! The differential fuzzer: the same instruction, the same state, on the host processor and on ours.
//!
//! ```text
//!   forms (all implemented `Code`s) ─▶ plan (one encoding) ─▶ cases (many states)
//!                                                              ├─▶ native::Native  (trampoline, signals as outcomes)
//!                                                              └─▶ any Subject     (the generic interpreter; the engine)
//!   compare: registers, flags that are defined, XMM, x87, memory windows, where it went or how it faulted
//! ```
//! Besides single instructions, `program` makes short random programs with branches and loops, for what only whole
//! blocks show: fused pairs, dead flags, links. Everything is a function of the seed.

mod case;
mod compare;
mod forms;
mod layout;
mod machine;
mod native;
mod operands;
mod plan;
mod program;
mod run;
mod subject;
#[cfg(test)]
mod tests;
mod trace;
mod values;
mod vendor;

pub use case::{Case, CaseResult, Ending};
pub use layout::{CODE, DATA, DATA_BYTES, PROGRAM, TAKEN, WINDOW_BYTES, WINDOWS};
pub use machine::Machine;
pub use native::Native;
pub use run::{
    Config, Mismatch, Report, fuzz, fuzz_engine, fuzz_engine_programs, fuzz_interpreter,
    fuzz_interpreter_programs,
};
pub use subject::{Interpreter, Subject};
pub use trace::fuzz_log;
