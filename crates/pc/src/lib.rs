//! World no. 2: a PC that boots a real kernel, with just enough hardware and not one source of chance.
//!
//! Reading order: [`boot`] (from a kernel image to the first instruction), [`devices`] (what answers outside of
//! RAM), [`cpuid`] (what the processors say of themselves).

pub mod boot;
pub mod cpuid;
pub mod devices;
pub mod machine;
mod msr;
pub mod wire;
