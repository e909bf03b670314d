//! COBET for whole source trees: find concurrency bugs in C by composite patterns with semantic conditions.
//!
//! The way of a file: `front` turns text into events per function, `analyse` links all files and computes
//! locks, threads and aliases, `pdl` reads patterns, `matcher` finds their instances, `results` turns
//! instances into ranked findings. Hong and Kim, "Effective pattern-driven concurrency bug detection for
//! operating systems", JSS 2012, is the paper; the pages of the manual say where we differ.

mod analyse;
mod expect;
mod front;
pub mod fuzz;
mod idioms;
mod judged;
mod matcher;
mod pdl;
mod results;
mod scan;
mod shipped;
mod show;
mod statistics;
mod texts;
mod walk;
mod why;

pub use expect::{Expectation, TestResult, test_patterns};
pub use idioms::list_class;
pub use judged::{Judged, Verdict, judged};
pub use matcher::Level;
pub use pdl::error::PatternError;
pub use scan::{
    FormerText, Options, PatternCount, Phase, Progress, Report, ScanError, Summary, scan,
    statistics, why,
};
pub use shipped::{Shipped, list_patterns, shipped_example, shipped_files};
pub use statistics::{MECHANISMS, Statistics};
pub use walk::{PathError, check_path};
