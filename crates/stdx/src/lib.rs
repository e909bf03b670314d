//! What could be in `std`: a seeded integer generator, digests, a map from small ids, width conversions with names.
//!
//! This crate knows nothing of programs, kernels or machines.
//! Entry points: [`Prng`], [`Digest`], [`IdMap`], [`cpu_time()`], [`glob_matches()`], the free functions of [`width`] and of
//! [`regular_file`].

mod cpu_time;
mod digest;
mod glob;
mod id_map;
mod prng;
pub mod regular_file;
pub mod width;

pub use cpu_time::cpu_time;
pub use digest::Digest;
pub use glob::glob_matches;
pub use id_map::{Id, IdMap};
pub use prng::Prng;
