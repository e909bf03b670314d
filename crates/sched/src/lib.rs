//! Schedulers over contexts, one file each, and the driver that runs a world under one of them.
//!
//! Reading order: [`scheduler`] (the trait), [`wrap`] (schedulers around schedulers), [`driver`] (the loop), `operation` (what the next operation of a
//! context touches), [`reads_from_trace`], then any algorithm: [`random_walk`], [`pct`], [`pike`], [`pos`], [`classes`], [`urw`],
//! [`reads_from`], [`delay`], [`preemption`], [`directed`], [`follow`] (replay); [`plain`] (ordinary runs); [`timed`], [`faulty`], [`focused`] and
//! [`stepwise`] wrap any of them. [`shrink`] makes failing schedules smaller; [`travel`] goes to and fro in a
//! recorded run.

pub mod classes;
pub mod delay;
pub mod directed;
pub mod dpor;
pub mod driver;
pub mod faulty;
pub mod focused;
pub mod follow;
mod operation;
pub mod pct;
pub mod pike;
pub mod plain;
pub mod pos;
pub mod preemption;
pub mod random_walk;
pub mod reads_from;
pub mod reads_from_trace;
pub mod scheduler;
pub mod shrink;
pub mod stepwise;
pub mod timed;
pub mod travel;
pub mod urw;
mod waiting;
pub mod wrap;

pub use classes::Classes;
pub use delay::DelayBounded;
pub use directed::{Budget, Directed, Hold, Spot, Verdict};
pub use dpor::Dpor;
pub use driver::{Drive, End, Order, Policy, Replaying, Slice, drive, drive_while};
pub use faulty::Faulty;
pub use focused::Focused;
pub use follow::Follow;
pub use pct::Pct;
pub use pike::Pike;
pub use plain::{Plain, Reaction};
pub use pos::Pos;
pub use preemption::PreemptionBounded;
pub use random_walk::RandomWalk;
pub use reads_from::{AbstractSchedule, ReadsFrom, Wish};
pub use reads_from_trace::{ReadsFromPair, ReadsFromTrace};
pub use scheduler::{Clock, Faults, Given, Passing, Profile, Reason, Scheduler, View};
pub use shrink::{Shrink, remove_deviations};
pub use stepwise::Stepwise;
pub use timed::{Jumps, Timed};
pub use urw::Urw;
pub use wrap::Wrap;

#[cfg(test)]
mod toy;
