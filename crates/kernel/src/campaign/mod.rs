//! The subject "test of a kernel" (Fonseca, Rodrigues, Brandenburg: SKI, OSDI 2014). Each worker makes its own guest
//! from the shared boot snapshot.
//!
//! Reading order: `subject` (what a campaign asks of it), `session` (a guest at the start line), `run` (one schedule),
//! `failure`, `explain`.

mod allowed;
mod explain;
mod failure;
mod instruction_trace;
mod judge;
mod kept;
mod known_functions;
mod names;
mod portfolio;
mod race_rules;
mod recorded;
mod repeat;
mod run;
mod serial;
mod session;
mod ski_race;
mod subject;
mod trace;

pub use allowed::{ContextSet, NoContextSet};
pub use explain::{Explainer, Replayed, replay};
pub use failure::Failure;
pub use instruction_trace::{InstructionOptions, trace_instructions};
pub use judge::{CallMark, Gave, Judge};
pub use known_functions::KnownFunctions;
pub use names::Names;
pub use portfolio::PORTFOLIO;
pub use race_rules::{RaceRules, Rank};
pub use recorded::Recorded;
pub use repeat::{Trace, repeat};
pub use run::{LivenessRule, Outcome, RaceMode, Rules};
pub use session::{Origin, Session, StartFailure, Target, input};
pub use ski_race::{RaceGroup, RacePair};
pub use subject::{HABITS, KernelReport, KernelTest, LOOP_WINDOW, PATIENCE, PAUSE_WINDOW, explore};
pub use trace::{FunctionTrace, TraceOptions, trace_functions};
