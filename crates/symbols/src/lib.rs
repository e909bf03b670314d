//! ELF, DWARF and kallsyms: from addresses to names, lines, variables, types and callers, and back.
//!
//! This crate knows files and addresses. It never knows a machine, a process or a schedule, and it opens no file
//! by itself except through [`DebugFileFinder`], which a caller may replace.
//!
//! Two kinds of address exist: a [`LinkAddr`] as the file states it, and a run-time address (`u64`), which is a
//! link address plus the bias at which a program mapped the file. Only [`SymbolSpace`] deals in the second kind.
//!
//! Reading order: [`module`] (one file), [`symbol`] (its names), `dwarf` (its debug information), [`unwind`]
//! (its call frames), [`space`] (several files at their places), [`kallsyms`] (a kernel's own table), `symbol_file` (an
//! ELF file of names, for debuggers), `relocatable` (kernel modules at their places).

mod btf;
pub mod debug_file;
pub mod demangle;
pub mod dwarf;
mod elf;
pub mod error;
mod flat;
pub mod kallsyms;
pub mod module;
mod plt;
mod relocatable;
pub mod space;
mod store;
pub mod symbol;
mod symbol_file;
pub mod unwind;

pub use btf::{Btf, LockPart};
pub use debug_file::{BuildId, DebugFileFinder, DebugRequest};
pub use elf::{LinkAddr, Segment};
pub use error::{Incomplete, ModuleError, Part};
pub use kallsyms::KernelSymbols;
pub use module::{CodePlace, FileMapping, Import, Module};
pub use relocatable::executable_at;
pub use space::{DataPlace, InlinedBy, Mapping, SymbolSpace, Symbolised};
pub use store::{Found, Lookup, ModuleStore};
pub use symbol::{Binding, Symbol, SymbolKind, SymbolTable, Version};
pub use symbol_file::{CodeSection, symbol_file};
pub use unwind::{Frame, Registers};
