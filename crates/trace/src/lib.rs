//! Schedules and recordings: what has to be written down so that a run can be had again, and the clocks that
//! order its events.
//!
//! Reading order: [`schedule`] (what a schedule is), [`envelope`] (the form of its file), [`recording`] (its content), [`landmark`], [`clock`].

pub mod clock;
pub mod envelope;
pub mod landmark;
pub mod recording;
pub mod schedule;

pub use clock::VectorClock;
pub use envelope::{Enveloped, RecordingError};
pub use landmark::Landmark;
pub use recording::{Checkpoint, Checks, Expected, HostFile, Inputs, Limits, Mapping, Recording};
pub use schedule::{Deviation, Path, Phase, Position, Schedule, Turn};
