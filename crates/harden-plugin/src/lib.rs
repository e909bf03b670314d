//! The pass plugin: LLVM IR in, hardened LLVM IR out.
//!
//! Clang, opt and lld load this library and call `pass` at the end of their pipelines. `extract` builds the plain
//! model that `raddle_harden::analysis` decides on, `emit` carries the decisions out, `ir` is the only module that
//! talks to LLVM. Without the headers of LLVM 22 at build time the library is empty.

#[cfg(harden_llvm)]
mod emit;
#[cfg(harden_llvm)]
mod extract;
#[cfg(harden_llvm)]
mod ir;
#[cfg(harden_llvm)]
mod names;
#[cfg(harden_llvm)]
mod pass;
