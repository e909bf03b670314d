//! Detectors: consumers of the event stream and of the way a run ended. None of them runs anything.
//!
//! Reading order: [`failure`] (what counts as wrong), [`communication`] (where contexts meet), [`race`] (who touches the same without order),
//! [`interleaving`] and [`coverage`] (what no serial order gives, and how much of that has happened).

pub mod communication;
pub mod coverage;
pub mod failure;
pub mod interleaving;
pub mod race;
mod reading;
mod shadow;

pub use communication::Communication;
pub use coverage::{Coverage, Covered, Reach, Spaces};
pub use failure::{Failure, HeapFault, NotSerial, assertion_message};
pub use race::{Race, Races, Side};
pub use reading::HandOver;
