//! `Finding`: the one schema for what raddle tells its user, and the renderers of it.
//!
//! This crate never executes or analyses anything; it turns evidence into text, JSON and SARIF.
//! Read [`finding`] first, then one renderer in `render`.

pub mod finding;
pub mod render;
pub mod words;

pub use finding::{Confidence, Excerpt, Finding, Place, Severity, Step};
