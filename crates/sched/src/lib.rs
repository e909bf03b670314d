//! Schedulers over contexts, one file each, and the driver that runs a world under one of them.
//!
//! Reading order: [`scheduler`] (the trait), [`driver`] (the loop), then any algorithm: [`random_walk`],
//! [`pct`], [`basic_pos`], [`urw`], [`delay`], [`follow`] (replay).

pub mod basic_pos;
pub mod delay;
pub mod driver;
pub mod follow;
pub mod pct;
pub mod random_walk;
pub mod scheduler;
pub mod urw;

pub use basic_pos::BasicPos;
pub use delay::DelayBounded;
pub use driver::{Drive, End, drive};
pub use follow::Follow;
pub use pct::Pct;
pub use random_walk::RandomWalk;
pub use scheduler::{Profile, Reason, Scheduler, View};
pub use urw::Urw;

#[cfg(test)]
mod toy;
