//! What happened: the one stream that detectors, predictors and recordings read.

use crate::context::ContextId;

/// Where in memory something is: stable under shared mappings, fork and kernel aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Frame number; unlike a virtual address it is the same for every mapping of the memory.
    pub frame: u32,
    /// Offset in the frame.
    pub offset: u16,
}

impl Location {
    /// Bytes that count as one place, as a power of two.
    pub const PLACE_BITS: u32 = 3;

    /// The name of the place in which it lies; neighbours have neighbouring names.
    pub fn place(self) -> u64 {
        (u64::from(self.frame) << 12 | u64::from(self.offset)) >> Self::PLACE_BITS
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub context: ContextId,
    /// The context's own step count when it happened.
    pub step: u64,
    pub pc: u64,
    pub kind: EventKind,
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    Exclusive,
    Shared,
}

/// How memory was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    Read,
    Write,
    /// A read-modify-write of several steps as seen by others.
    Update,
    /// A read-modify-write that nobody can come between (LOCK prefix or XCHG).
    AtomicUpdate,
}

impl AccessKind {
    pub fn writes(self) -> bool {
        self != Self::Read
    }

    pub fn is_atomic(self) -> bool {
        self == Self::AtomicUpdate
    }
}

/// One use of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub how: AccessKind,
    pub size: u8,
    pub location: Location,
    pub addr: u64,
    /// The low 64 bits read, written, or found by an update before it changed them.
    pub value: Option<u64>,
}

/// What kind of event, with its data. Addresses are virtual ones of the context's address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// Memory was read or written.
    Access(Access),
    /// A lock was obtained.
    Acquire {
        object: u64,
        mode: LockMode,
    },
    /// A lock is about to be given up.
    Release {
        object: u64,
        mode: LockMode,
    },
    /// Waiting on a condition, semaphore or event begins.
    WaitBegin {
        object: u64,
    },
    /// Waiting ended.
    WaitEnd {
        object: u64,
    },
    /// A condition, semaphore or event was signalled.
    Notify {
        object: u64,
        everyone: bool,
    },
    /// Arrived at a barrier.
    BarrierEnter {
        object: u64,
    },
    /// All arrived; left the barrier.
    BarrierLeave {
        object: u64,
    },
    Create {
        child: ContextId,
    },
    Join {
        child: ContextId,
    },
    Exit,
    Alloc {
        addr: u64,
        size: u64,
    },
    Free {
        addr: u64,
    },
    Map {
        addr: u64,
        size: u64,
    },
    Unmap {
        addr: u64,
        size: u64,
    },
    SyscallEnter {
        number: u32,
        /// Boxed because memory accesses, of which there are thousands times more, need less room.
        arguments: Box<[u64; 6]>,
    },
    SyscallLeave {
        number: u32,
        result: i64,
    },
    SignalEnter {
        number: u32,
    },
    SignalLeave,
    /// Bytes that left the world (standard output, standard error).
    Output {
        descriptor: i32,
        bytes: Vec<u8>,
    },
}
