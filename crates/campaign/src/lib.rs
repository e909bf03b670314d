//! What a campaign on a program and one on a kernel have in common: schedules in generations, on several workers,
//! with results that do not depend on how many.
//!
//! Reading order: [`generation`] (the workers), [`algorithm`] (what runs one schedule), [`portfolio`] (which
//! algorithm runs which schedule), [`learning`] (what the runs teach for the next ones), [`failures`],
//! [`cancel`] (ending early).

pub mod algorithm;
pub mod cancel;
pub mod failures;
pub mod generation;
pub mod learning;
pub mod portfolio;

pub use algorithm::{Algorithm, Material, scheduler};
pub use cancel::{Cancel, Leave, Urgency};
pub use failures::{Failures, Kept, as_found_note};
pub use generation::{Director, Generation, Worker, run_generations};
pub use learning::Learning;
pub use portfolio::Portfolio;
