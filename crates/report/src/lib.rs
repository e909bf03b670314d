//! `Finding`: the one schema for what raddle tells its user, and the renderers of it.
//!
//! This crate never executes or analyses anything; it turns evidence into text, JSON and SARIF.
//! Read [`finding`] first, then [`evidence`] and [`action`], then one renderer in `render`.

pub mod action;
pub mod campaign_log;
pub mod evidence;
pub mod finding;
pub mod order;
pub mod place;
pub mod recovery_log;
pub mod render;
#[cfg(test)]
mod samples;
pub mod serial;
pub mod words;

pub use action::{Action, Want};
pub use evidence::{Context, Edge, EdgeKind, Locks, Step};
pub use finding::{Confidence, Finding, RecordingFile, Severity};
pub use place::{Frame, Place, Word};
pub use serial::SerialOrders;
