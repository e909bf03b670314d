//! What happened: the one stream that detectors, predictors and recordings read.

use raddle_stdx::width::low_u8;

use crate::context::ContextId;
use crate::fault::Fault;
use crate::location::{GRANULE_BYTES, Location};
use crate::mark::Mark;
use crate::site::Site;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub context: ContextId,
    /// The context's own step count when it happened.
    pub step: u64,
    pub site: Site,
    pub kind: EventKind,
}

impl Event {
    /// The address of the instruction.
    pub fn pc(&self) -> u64 {
        self.site.pc()
    }
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    Exclusive,
    Shared,
}

/// What is waited for, and what a wake-up is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// A condition variable: a wake-up that finds no waiter is lost.
    Condition,
    /// A semaphore: a wake-up is a token that stays until a context takes it.
    Semaphore,
    /// One-time initialisation: who comes first does it, all others wait for it.
    Once,
    /// Something that has happened or not, as a completion or a wait queue.
    Event,
}

/// What a locked instruction does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockedKind {
    CompareExchange,
    Exchange,
    /// Sets a bit and tells whether it was set.
    SetBit,
    /// Clears a bit, or all but some.
    ClearBits,
    /// Adds or counts.
    Arithmetic,
    /// Something else, or not known.
    Unknown,
}

/// How memory was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    Read,
    Write,
    /// A read-modify-write of several steps as seen by others.
    Update,
    /// A read-modify-write that no other context can come between (LOCK prefix or XCHG).
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

impl Access {
    /// Whether it touches one granule only, as nearly all do.
    #[inline]
    pub fn is_in_one_granule(&self) -> bool {
        self.size == self.size_in_granule()
    }

    /// The same access granule by granule; up to the end of its page, if it crosses that.
    pub fn pieces(self) -> impl Iterator<Item = Self> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let size = rest.size_in_granule();
            let offset = rest.location.offset;
            if size == 0 || offset > 0xFFF {
                return None;
            }
            let piece = Self {
                size,
                value: None,
                ..rest
            };
            rest.size -= size;
            rest.addr = rest.addr.wrapping_add(u64::from(size));
            rest.location.offset = offset + u16::from(size);
            Some(piece)
        })
    }

    /// Bytes in the first granule.
    fn size_in_granule(&self) -> u8 {
        self.size
            .min(GRANULE_BYTES - low_u8(self.addr) % GRANULE_BYTES)
    }
}

/// What kind of event, with its data. Addresses are virtual ones of the context's address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// Memory was read or written.
    Access(Access),
    /// The same by a context that races with no other any more, as a processor whose part of a test is over: it may put
    /// others in order, and what it writes hides what was there.
    Aside(Access),
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
    /// Waiting begins.
    WaitBegin {
        object: u64,
        on: WaitKind,
    },
    /// Waiting ended.
    WaitEnd {
        object: u64,
        on: WaitKind,
    },
    /// What others wait for has happened, or a token is given.
    Notify {
        object: u64,
        on: WaitKind,
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
    /// A known function is called: what it does inside is its own business, other events say what it means. Told
    /// while accesses are observed.
    KnownCall,
    /// Something was handed to the system under this name: a context that obtains it comes after. Told while accesses are
    /// observed.
    Publish {
        object: u64,
    },
    /// What was handed to the system under this name was obtained from it.
    Obtain {
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
    /// An operation of the program or of a client begins, ends, or says what it was given or gave.
    Mark(Box<Mark>),
    /// The system does something to the context that it may do and seldom does.
    Fault(Fault),
}

#[cfg(test)]
mod tests {
    use raddle_stdx::width::low_u16;

    use super::*;

    fn pieces(addr: u64, size: u8) -> Vec<(u64, u8, u16)> {
        let access = Access {
            how: AccessKind::Read,
            size,
            location: Location::shared(1, low_u16(addr & 0xFFF)),
            addr,
            value: None,
        };
        let parts = access.pieces();
        parts
            .map(|piece| (piece.addr, piece.size, piece.location.offset))
            .collect()
    }

    #[test]
    fn an_access_is_cut_at_granules_and_ends_with_its_page() {
        assert_eq!(pieces(0x1004, 4), [(0x1004, 4, 4)]);
        assert_eq!(pieces(0x1006, 4), [(0x1006, 2, 6), (0x1008, 2, 8)]);
        let wide: Vec<u64> = pieces(0x1010, 32).iter().map(|piece| piece.0).collect();
        assert_eq!(wide, [0x1010, 0x1018, 0x1020, 0x1028]);
        assert_eq!(pieces(0x1FFC, 8), [(0x1FFC, 4, 0xFFC)]);
        assert_eq!(pieces(0x1000, 0), []);
    }
}
