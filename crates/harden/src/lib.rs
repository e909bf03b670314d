//! ConAir-style hardening: programs that re-execute an idempotent region instead of failing.
//!
//! [`analysis`] decides what can be re-executed, on a model that knows no LLVM; the plugin crate fills that model from
//! LLVM IR and carries out the plan; [`calls`] is the table of library functions that a region may hold; [`driver`] is
//! the compiler driver behind `raddle cc`; [`invariant`] reads oracles that were inferred; [`settings`] is what the driver
//! tells the plugin and [`record`] what the plugin tells the user.

pub mod analysis;
pub mod calls;
pub mod driver;
pub mod invariant;
pub mod record;
pub mod settings;
