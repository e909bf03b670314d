//! The campaign: schedules in generations on several workers, until something fails or the budget is used up, then
//! the explanation of what failed. It knows what it explores only as a [`Subject`], and its results do not depend on
//! how many workers there are.
//!
//! Reading order: [`subject`] (what can be explored), [`outcome`] (what goes to a worker and comes back),
//! [`mod@explore`] (the campaign), [`generation`] and `worker` (who does the work), [`algorithm`] and [`portfolio`] (what
//! runs which schedule), [`learning`] and [`feedback`] (what the runs teach for the next ones), [`findings`],
//! [`minimise`], [`serial`], [`failures`], [`cancel`] (ending early), [`coverage`] (what happened, under names that last).

pub mod algorithm;
pub mod cancel;
pub mod coverage;
pub mod exhaustive;
pub mod explore;
pub mod failures;
pub mod feedback;
pub mod findings;
pub mod focus;
pub mod generation;
pub mod learning;
pub mod minimise;
pub mod options;
pub mod outcome;
pub mod pairs;
pub mod portfolio;
pub mod serial;
pub mod spent;
pub mod subject;
mod suspects;
mod symptom;
mod worker;

pub use algorithm::{Algorithm, Material, UnknownScheduler, scheduler};
pub use cancel::{Cancel, Leave, Urgency};
pub use coverage::{CodeName, NamedCoverage, Reach, Spaces};
pub use exhaustive::{Exhaustive, NoteTransitions, Noted};
pub use explore::{Begun, ReportOf, begin, explore, sample, sample_with};
pub use failures::{Failures, Kept, as_found_note};
pub use findings::{Findings, follow};
pub use focus::{Focus, of_site};
pub use generation::{Crew, Director, Generation, Worker, run_generations, with_threads};
pub use learning::Learning;
pub use minimise::{Budget, Effort, Smallest};
pub use options::{Listener, News, Options, Phase, Progress, Report};
pub use outcome::{Digests, Job, Outcome, Shared};
pub use portfolio::Portfolio;
pub use spent::{Clock, Spent, Stopwatch};
pub use subject::{
    Explained, Found, FoundOf, Habits, Learned, OutcomeOf, RacyOf, Rules, Run, RunOf, Sighting,
    Stage, Subject, Symptom, Tally, Watch,
};
pub use worker::Explorer;
