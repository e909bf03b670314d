//! The trait that Linux processes and a PC have in common.

use crate::context::{ContextId, ContextTable};
use crate::event::Event;
use crate::fault::MeetFaults;
use crate::rehearsal::Rehearse;
use crate::site::Site;
use crate::stop::{Pending, Stop, Until};
use crate::time::Duration;

/// A moment of a world that it can come back to. Snapshots nest as a stack: restoring one forgets later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Snapshot(pub usize);

/// A deterministic machine with several contexts on one host thread.
///
/// One run is a function of (image, inputs, configuration, choices, sequence of `run` calls).
pub trait World {
    /// Liveness, parent, name of every context.
    fn contexts(&self) -> &ContextTable;
    /// The next operation of a context, decoded but not executed; valid until a context runs.
    fn pending(&mut self, who: ContextId) -> Pending;
    /// Runs one context. It must be runnable. Events are appended to the world's list.
    fn run(&mut self, who: ContextId, until: Until) -> Stop;
    /// Lets virtual time jump to the next timer or time-out; false if there is none. Worlds do it by
    /// themselves never: it happens when no context can run, or because a schedule says so.
    fn advance_time(&mut self) -> bool;
    /// How long it is until the next timer or time-out.
    fn until_deadline(&self) -> Option<Duration>;
    /// The events since the last call.
    fn take_events(&mut self) -> Vec<Event>;
    /// Gives back a list that [`World::take_events`] gave: its memory holds the next events.
    fn recycle_events(&mut self, events: Vec<Event>);
    fn snapshot(&mut self) -> Snapshot;
    fn restore(&mut self, to: Snapshot);
    /// Whether a context has asked for a system call that has not been made yet.
    fn is_entering_call(&self, who: ContextId) -> bool;
    /// Where in the program a context stands: inside a known function, where that function was called.
    fn site(&self, who: ContextId) -> Site;
    /// Digest of a context's registers: equal ones at the same site may mean a loop that makes no progress.
    fn register_digest(&self, who: ContextId) -> u64;
    /// Digest of everything the guest could see.
    fn state_digest(&mut self) -> u64;
    /// Present if it can run past flagged points.
    fn passing(&mut self) -> Option<&mut dyn PassPoints> {
        None
    }
    /// Present if it can stop a context in the middle of an instruction.
    fn tearing(&mut self) -> Option<&mut dyn TearInstructions> {
        None
    }
    /// Present if it can try out how a context would go on.
    fn rehearsing(&mut self) -> Option<&mut dyn Rehearse> {
        None
    }
    /// Present if its contexts can meet faults.
    fn faulting(&mut self) -> Option<&mut dyn MeetFaults> {
        None
    }
    /// Present if its own choices say how long contexts run in turns.
    fn turns(&mut self) -> Option<&mut dyn TakeTurns> {
        None
    }
    /// Present if it is to say by itself who is not live, instead of being tried out.
    fn judging(&mut self) -> Option<&mut dyn JudgeLiveness> {
        None
    }
}

/// The ability to be run in turns, as an ordinary machine does it.
pub trait TakeTurns {
    /// How long the next turn is: at least one step, and at most so many.
    fn turn_length(&mut self, steps_max: u64) -> u64;
    /// No process outside reads standard output (1) or standard error (2) any more: the next write to it fails as one
    /// to a broken pipe does. This comes from outside: a replay has to know when it was.
    fn close_output(&mut self, descriptor: i32);
}

/// The ability to say by heuristics who does not make progress.
pub trait JudgeLiveness {
    /// Whether a context that could run is not live, as far as was seen.
    fn is_waiting(&mut self, who: ContextId) -> bool;
    /// Everybody is live again.
    fn revive_all(&mut self);
}

/// Which flagged points a run may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage<'a> {
    /// So many at most.
    pub points: u64,
    /// None of these.
    pub never: &'a [Site],
}

/// The ability to run past flagged points.
pub trait PassPoints {
    /// As [`World::run`], but may pass points without a stop. Gives how many were passed; it may always be fewer.
    fn run_passing(&mut self, who: ContextId, until: Until, passage: Passage<'_>) -> (Stop, u64);
}

/// The ability to stop a context in the middle of an instruction.
pub trait TearInstructions {
    /// Lets a context do the read of its next instruction, which reads and writes one granule without a lock, and
    /// stop before the write; false if the next instruction is not like that. Processors make no promise that
    /// no other context comes between.
    fn tear(&mut self, who: ContextId) -> bool;
}
