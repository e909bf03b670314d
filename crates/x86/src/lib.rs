//! x86-64 decode and execute over a software TLB. Knows neither Linux nor a PC.
//!
//! ```text
//!   bytes ──iced──▶ Instruction ──lower──▶ Op (64 bytes, one handler each) ──▶ block ──▶ code cache
//!                                             │ no fast handler
//!                                             ▼
//!                                          generic (complete, one `match` per family, SDM order)
//! ```
//!
//! Reading order: [`Cpu`] (the state), [`Exit`] (why a run ends), [`Engine`] (the loop), then `op`, `lower`,
//! `fast` (specialised handlers) and `generic` (all other instructions).

mod access;
mod bus;
mod cache;
mod cpu;
mod cpuid;
mod engine;
mod executable;
mod exit;
mod fast;
mod fetch;
mod flags;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod generic;
mod int;
mod log;
mod lower;
mod native;
mod op;
mod paging;
mod peek;
mod run;
mod stub;
mod supervisor;
mod system;

pub use cpu::{Cpu, FxState, Reg};
pub use cpuid::{CpuidResult, cpuid};
pub use engine::{Engine, Memory, Observe, Outcome, Slice};
pub use exit::{Exit, Fault, MemoryFault, Vector};
pub use flags::{Flags, rflags};
pub use generic::{Origin, Shutdown, SystemBus, deliver, raise};
pub use log::{Log, Record};
pub use lower::Path;
pub use op::LogKind;
pub use paging::{Controls, Mapping, PhysicalMemory, walk};
pub use peek::{BYTES_MAX, NextAccess, Peek};
pub use supervisor::{
    DeviceAccess, Devices, HYPERCALL_LEAF, Processor, SystemEngine, SystemExit, SystemOutcome,
    SystemSlice,
};
pub use system::{DescriptorTable, Segment, SystemState};
