//! How far to run, why a slice ended, and what a context would do next.

use crate::location::Location;
use crate::site::Site;
use crate::unsupported::Unsupported;

/// Bounds of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// At most this many steps.
    Steps(u64),
    /// Up to the next flagged program point, but at most this many steps.
    Point { steps_max: u64 },
    /// Up to the next system call, synchronisation operation or flagged program point, but at most this many
    /// steps.
    Sync { steps_max: u64 },
}

impl Until {
    /// The bound in steps.
    pub fn steps_max(self) -> u64 {
        match self {
            Self::Steps(steps) => steps,
            Self::Point { steps_max } | Self::Sync { steps_max } => steps_max,
        }
    }
}

/// Why a slice ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The step bound was reached.
    Steps,
    /// The context stands before a flagged program point.
    Point { site: Site },
    /// The context is about to make, or has just made, a system call or synchronisation operation.
    Sync,
    /// The context cannot go on until another context or a timer wakes it.
    Blocked,
    /// The context asked to be scheduled later (`sched_yield`, PAUSE).
    Yielded,
    /// The context has ended.
    Done,
    /// The whole world has ended with this wait status of its first process.
    WorldDone { status: i32 },
    /// The world met something it does not support. Boxed because stops are many and this one is rare.
    Unsupported(Box<Unsupported>),
}

/// What the next instruction of a context would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub site: Site,
    pub kind: PendingKind,
}

impl Pending {
    /// Whether it is a system call.
    pub fn is_call(&self) -> bool {
        matches!(self.kind, PendingKind::Syscall { .. })
    }
}

/// The kind of the next operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingKind {
    /// Touches no memory and nothing shared.
    Local,
    /// A memory access; `location` is absent if the page is not present yet.
    Access {
        addr: u64,
        location: Option<Location>,
        size: u8,
        reads: bool,
        writes: bool,
        atomic: bool,
    },
    /// A system call with its number.
    Syscall { number: u32 },
    /// A known synchronisation function on this object.
    Sync { object: u64 },
}
