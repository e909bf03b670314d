//! The subject "program": runs it to its snapshot point once, judges the schedules that a campaign runs from there,
//! and turns what goes wrong into replayable, explained findings.
//!
//! Reading order: [`program`] (what a campaign asks of it), `snapshot` (the way to where schedules begin), `session` (a
//! world that stands there), `schedule_run` (one schedule), [`judge`], `explain`, [`replay`], [`relaxed`] (replay in a
//! changed program), [`ordinary`] (runs that no campaign explores), `exhaustive` (all interleavings instead of a
//! sample).

mod atomics;
mod attribution;
mod checkpoint;
mod exhaustive;
mod explain;
mod handlers;
mod hint;
mod history;
pub mod judge;
mod landmark;
pub mod libtest;
mod managed;
mod names;
pub mod ordinary;
mod portfolio;
pub mod program;
pub mod relaxed;
pub mod replay;
mod schedule_run;
mod session;
mod snapshot;
mod stack;
mod steps;
mod teller;
mod weave;
mod whereabouts;

pub use checkpoint::changed_files;
pub use explain::DATA_RACE;
pub use judge::{Judge, Marked};
pub use portfolio::PORTFOLIO;
pub use program::{Cut, HABITS, Program, ProgramReport, explore};
pub use relaxed::{Relaxed, replay_relaxed};
pub use replay::{Replayed, Replayer, TraceLine};
pub use session::{About, Session, StartFailure, setup};
pub use snapshot::{SnapshotAt, step_of};
pub use stack::is_openmp_runtime;
