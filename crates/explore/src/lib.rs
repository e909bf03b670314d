//! The campaign: runs a program to its snapshot point once, explores schedules from there, and turns what goes
//! wrong into small, replayable, explained findings.
//!
//! Reading order: [`session`] (a world at its snapshot), [`schedule_run`] (one schedule), [`portfolio`] (which
//! algorithm when), [`campaign`] (generations and workers), [`minimise`], [`explain`], [`replay`],
//! [`relaxed`] (replay in a changed program).

mod atomics;
pub mod campaign;
mod checkpoint;
mod exhaustive;
mod explain;
mod feedback;
mod history;
pub mod judge;
mod landmark;
pub mod libtest;
mod minimise;
mod names;
mod portfolio;
pub mod relaxed;
pub mod replay;
mod schedule_run;
mod session;
mod stack;
mod steps;
pub mod travel;

pub use campaign::{Options, Progress, Report, explore};
pub use checkpoint::changed_files;
pub use exhaustive::Exhaustive;
pub use judge::Judge;
pub use portfolio::PORTFOLIO;
pub use relaxed::{Relaxed, replay_relaxed};
pub use replay::{Replayed, Replayer, TraceLine};
pub use session::{Focus, SnapshotAt, StartFailure};
