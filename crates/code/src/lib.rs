//! Static analysis of the machine code of one module: control flow, loops, slices, spin loops.
//!
//! Results are plain data that depend on the module's bytes and symbols only, so a caller may keep them by build-id.
//! This crate executes nothing and knows no run-time address.
//!
//! Reading order: [`instruction`] (what one instruction does), [`flow_graph`] (the blocks of a function), [`dominator`],
//! [`natural_loop`], [`slice`](mod@slice) (what feeds a register), [`spin`] (loops that only wait);
//! [`control_dependence`], [`dependence`] (slices with distances), [`failure_site`] (where programs notice that something
//! is wrong, and the reads that decide it), [`condition`] (what would happen if such a read gave another value),
//! [`address_flow`] (which reads become indices and lengths).

pub mod address_flow;
pub mod condition;
pub mod control_dependence;
pub mod dependence;
pub mod dominator;
pub mod failure_site;
pub mod flow_graph;
pub mod instruction;
mod jump_table;
pub mod natural_loop;
pub mod no_return;
pub mod register;
pub mod slice;
pub mod spin;

pub use address_flow::{IndexRead, IndexReads, Role};
pub use condition::{Fate, Goal, fate};
pub use control_dependence::ControlDependence;
pub use dependence::{Distances, Function, Functions};
pub use dominator::Dominators;
pub use failure_site::{FailureSite, FailureSites, SiteKind, SiteNames};
pub use flow_graph::{Block, BlockId, CodeError, FlowGraph, Leave};
pub use instruction::{Access, AccessKind, Atomic, Disassembler, Flow, Instruction, Special};
pub use natural_loop::{LoopId, Loops, NaturalLoop};
pub use no_return::NoReturn;
pub use register::{Register, RegisterSet};
pub use slice::{Slice, Source, backward_slice};
pub use spin::{SpinLoop, spin_loops};
