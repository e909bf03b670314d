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
//! order is run once), `state` (which of them go on alike), [`compare`] (what counts as equal), [`search`] (is there an order?), [`verdict`] (what to tell if
//! there is none), `slow` (what takes too long), [`judge`] (all of it as a judge of runs), [`kernel`] (the same for
//! calls of a kernel).

pub mod compare;
pub mod history;
pub mod import;
pub mod judge;
pub mod kernel;
pub mod one_at_a_time;
pub mod orders;
pub mod search;
mod slow;
mod state;
pub mod test_file;
pub mod verdict;
mod verdicts;

pub use compare::{Comparison, RuleError};
pub use history::{Client, History, Operation};
pub use judge::{CannotJudge, Linearize, Varying};
pub use kernel::LinearizeKernel;
pub use orders::Orders;
pub use test_file::{ServerTest, TestError};
pub use verdicts::Figures;
