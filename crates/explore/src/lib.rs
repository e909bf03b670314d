//! The campaign: runs a program to its snapshot point once, explores schedules from there, and turns what goes
//! wrong into small, replayable, explained findings.
//!
//! Reading order: [`session`] (a world at its snapshot), [`schedule_run`] (one schedule), [`portfolio`] (which
//! algorithm when), [`campaign`] (generations and workers), [`minimise`], [`explain`], [`replay`].

pub mod campaign;
mod exhaustive;
mod explain;
mod feedback;
mod minimise;
mod portfolio;
pub mod replay;
mod schedule_run;
mod session;
mod stack;
mod steps;

pub use campaign::{Options, Progress, Report, explore};
pub use exhaustive::Exhaustive;
pub use portfolio::Algorithm;
pub use replay::{Replayed, replay};
pub use session::{Focus, SnapshotAt, StartFailure};
