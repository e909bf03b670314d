//! Semantic and latent concurrency bugs without a specification: the program itself says what is right, by what it does
//! when its operations come one after the other.
//!
//! ```text
//!   a run ──marks──▶ History ──▶ search ──▶ a serial order that gives the same, or NotSerial
//!                                  │ ▲
//!                     what comes   ▼ │ results
//!                     after these? Orders ──▶ a world of its own, run in OneAtATime
//! ```
//!
//! Reading order: [`history`] (operations of a run), [`one_at_a_time`] (the scheduler of serial orders), [`orders`] (each
//! order is run once), [`compare`] (what counts as equal), [`search`] (is there an order?), [`verdict`] (what to tell if
//! there is none), [`judge`] (all of it as a judge of runs).

pub mod compare;
pub mod history;
pub mod judge;
pub mod one_at_a_time;
pub mod orders;
pub mod search;
pub mod test_file;
pub mod verdict;

pub use compare::{Comparison, RuleError};
pub use history::{Client, History, Operation};
pub use judge::{CannotJudge, Figures, Linearize, Varying};
pub use orders::Orders;
pub use test_file::{ServerTest, TestError};
