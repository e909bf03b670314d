//! What could be in `std`: a seeded integer generator, digests, width conversions with names.
//!
//! This crate knows nothing of programs, kernels or machines.
//! Entry points: [`Prng`], [`Digest`], [`cpu_time()`], the free functions of [`width`].

mod cpu_time;
mod digest;
mod prng;
pub mod width;

pub use cpu_time::cpu_time;
pub use digest::Digest;
pub use prng::Prng;
