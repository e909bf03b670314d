//! The vocabulary that all worlds and all analyses share: contexts, events, stops, choices, virtual time.
//!
//! A *world* is something deterministic that runs several contexts on one host thread: Linux processes, or a
//! PC with several processors. This crate knows neither; it only says how one talks about them.
//! Reading order: [`World`], then `context`, `event`, `mark`, `held`, `location`, `site`, `stop`, `unsupported`, `crash`, `choice`, `fault`, `inspect`.

mod choice;
mod context;
mod crash;
mod event;
mod fault;
mod held;
mod inspect;
mod location;
mod locked;
mod mark;
mod rehearsal;
mod site;
mod stop;
mod time;
mod unsupported;
mod world;

pub use choice::{Choice, ChoiceSource, SeededChoices};
pub use context::{Context, ContextId, ContextTable, Liveness, WaitReason, successor};
pub use crash::{Crash, Doing, MemoryFault, ThreadName};
pub use event::{Access, AccessKind, Event, EventKind, LockMode, LockedKind, WaitKind};
pub use fault::{Fault, MeetFaults};
pub use held::{HeldLocks, LockSource, Obtained, Section};
pub use inspect::{Inspect, Loaded};
pub use location::{GRANULE_BYTES, Granule, Location, PageKey};
pub use mark::{Mark, Value};
pub use rehearsal::{Rehearse, Standstill, WordsRead};
pub use site::{ImageId, Site};
pub use stop::{Pending, PendingKind, Stop, Until};
pub use time::{Duration, VirtualTime};
pub use unsupported::{CallMade, Lacking, Unsupported};
pub use world::{JudgeLiveness, PassPoints, Passage, Snapshot, TakeTurns, TearInstructions, World};
