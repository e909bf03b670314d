//! The campaign: runs a program to its snapshot point once, explores schedules from there, and turns what goes
//! wrong into small, replayable, explained findings.
//!
//! Reading order: `snapshot` (the way to it), `session` (a world that stands there), `schedule_run` (one schedule), `portfolio` (which
//! algorithm when), [`campaign`] (generations and workers), `minimise`, `explain`, [`replay`],
//! [`relaxed`] (replay in a changed program).

mod atomics;
mod attribution;
pub mod campaign;
mod checkpoint;
mod exhaustive;
mod explain;
mod feedback;
mod hint;
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
mod snapshot;
mod stack;
mod steps;
mod timing;

pub use campaign::{News, Options, Phase, Progress, Report, explore};
pub use checkpoint::changed_files;
pub use exhaustive::Exhaustive;
pub use judge::Judge;
pub use portfolio::PORTFOLIO;
pub use relaxed::{Relaxed, replay_relaxed};
pub use replay::{Replayed, Replayer, TraceLine};
pub use session::{Focus, StartFailure};
pub use snapshot::SnapshotAt;
pub use timing::{Clock, Spent};
