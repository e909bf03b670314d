//! Runs a program on our machine and on the host processor at the same time, one instruction after the other,
//! and compares registers after every instruction and memory at every system call.
//!
//! The host side is a process that ptrace steps. It makes no system calls of the program: it is given the
//! memory, the results of system calls, CPUID and RDTSC that our world made, so that both sides stay the same
//! program. One host thread executes all threads of the program, with their registers loaded at each switch.
//!
//! Reading order: `native` (the stepped process), `compare` (what must be equal), `pair` (both sides).

mod compare;
mod instruction;
mod native;
mod pair;

pub use pair::{Pair, Report};
