//! Schedules and recordings: what has to be written down so that a run can be had again; and what its events mean, for
//! everyone who looks at them.
//!
//! Reading order: [`facts`] (what events mean), [`observer`] (who looks at them), [`log`] (how they are kept); then [`schedule`] (what a schedule is), [`envelope`] (the form of its file), [`recording`] (its content), [`landmark`], [`clock`].

pub mod clock;
pub mod envelope;
pub mod facts;
pub mod landmark;
pub mod log;
pub mod observer;
pub mod recording;
pub mod schedule;
pub mod serial_rules;

pub use clock::VectorClock;
pub use envelope::{Enveloped, RecordingError};
pub use facts::Facts;
pub use landmark::Landmark;
pub use observer::{Needs, Observation, Observer};
pub use recording::{
    Checkpoint, Checks, ClosedOutput, Ending, Expected, HostFile, Inputs, Limits, Mapping,
    Ordinary, Outside, Recording,
};
pub use schedule::{Deviation, Path, Phase, Position, Schedule, Turn};
pub use serial_rules::{Compare, Mask, SerialRule, SerialRules};
