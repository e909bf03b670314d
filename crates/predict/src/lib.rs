//! From runs in which nothing goes wrong to confirmed concurrency bugs: what could another interleaving do?
//!
//! Reading order: [`profile`] (what is remembered of a run), [`unserializable`] (CTrigger), [`memory_errors`] (ConMem),
//! [`target`] (what is to be forced, and how it is ranked), [`mod@predict`] (profile, rank, force, report).
//!
//! # CTrigger (Park, Lu, Zhou: ASPLOS 2009)
//!
//! A context accesses a place twice, `P` and then `C`; another one accesses it with `R`. If `R` comes between, no serial
//! order gives the same result in four of the eight cases: read-write-read, write-write-read, write-read-write,
//! read-write-write. The runs of the profile show which `P`, `C` and `R` there are. An interleaving is *infeasible* if
//! order synchronisation puts `R` before `P` or behind `C` (creation, joining, barriers, hand-overs), or if `P` and `C`
//! lie in one critical section and `R` is protected by the same lock; identity is that of the critical section, not of
//! the lock. What was seen in the profile needs not be forced. The rest is ranked by its *local gap*, the steps of the
//! context between `P` and `C`: the smaller, the rarer in nature, the earlier tested.
//!
//! # ConMem (Zhang, Sun, Lu: ASPLOS 2010)
//!
//! Three of its detectors look for the ingredients of memory errors: a pointer that one context reads and uses and
//! another one sets to NULL (Con-NULL); a place that one context initialises and another one reads (Con-UnInit); a block
//! that one context uses and another one frees (Con-Dangling). Timing conditions are those of order and of critical
//! sections as above.
//!
//! # Validation
//!
//! Where the papers put a sleep before an instruction, the context is held exactly there until the other one has passed
//! ([`raddle_sched::Directed`]); before the outermost critical section if the other one needs its lock. A target is
//! *confirmed* if the forced run fails by the judges of `raddle explore`; else it was forced without harm, or it could
//! not be forced, which is told apart.
//!
//! # What is not here
//!
//! Custom synchronisation beyond inferred locks adds no order; ConMem's Con-Overflow and all of ConSeq are missing.

pub mod memory_errors;
pub mod predict;
pub mod profile;
pub mod target;
pub mod unserializable;

pub use predict::{Predicted, Prediction, Predictions, predict};
pub use profile::Profile;
pub use target::{Kind, Outcome, Target};
