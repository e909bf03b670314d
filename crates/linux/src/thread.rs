//! Threads: the contexts of this world.

use std::ops::Range;
use std::sync::Arc;

use raddle_stdx::Id;
use raddle_world::{ContextId, Fault, HeldLocks, ThreadName};
use raddle_x86::Cpu;

use crate::call;
use crate::credentials::Credentials;
use crate::heap::Block;
use crate::hooks::PendingCall;
use crate::process::Pid;
use crate::signal::{AltStack, PendingSignals, SignalSet};

/// Thread id as the guest sees it (`gettid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tid(pub(crate) u32);

impl Id for Tid {
    fn number(self) -> u32 {
        self.0
    }

    fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// One thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) tid: Tid,
    pub(crate) process: Pid,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) context: ContextId,
    pub(crate) cpu: Cpu,
    /// `comm`: at most 15 bytes.
    pub(crate) name: Arc<str>,
    pub(crate) activity: Activity,
    /// Where to store zero and wake a futex when the thread ends; 0 for nowhere.
    pub(crate) clear_child_tid: u64,
    /// Head of the list of robust futexes; 0 for none.
    pub(crate) robust_list: u64,
    pub(crate) mask: SignalSet,
    /// The mask to come back to after sigsuspend, ppoll and the like.
    pub(crate) saved_mask: Option<SignalSet>,
    pub(crate) pending: PendingSignals,
    pub(crate) alt_stack: AltStack,
    /// Memory that its creator gave it as its own; empty if that is not known.
    pub(crate) stack: Range<u64>,
    /// The exception behind the signal that is being delivered; goes into its frame.
    pub(crate) last_exception: ExceptionInfo,
    /// Ticket of the futex wait that is in progress.
    pub(crate) futex_ticket: Option<u64>,
    /// The child that this thread waits for after vfork.
    pub(crate) vfork_child: Option<Pid>,
    /// Held by job control.
    pub(crate) is_stopped: bool,
    /// Asked to be scheduled later.
    pub(crate) has_yielded: bool,
    /// Its steps when it last yielded: it has done nothing since if it has made no more.
    pub(crate) yielded_at: Option<u64>,
    /// Calls of hooked functions that have not returned.
    pub(crate) hooked_calls: Vec<PendingCall>,
    /// Locks obtained through hooked functions.
    pub(crate) held_locks: HeldLocks,
    /// The block that a call of realloc in progress may move.
    pub(crate) moving: Option<Block>,
    /// The next instruction may touch forbidden memory.
    pub(crate) is_excused: bool,
    /// What the next instruction has read already, if it was torn apart.
    pub(crate) torn: Option<Torn>,
    /// The fault that it meets in the call that it has asked for.
    pub(crate) fault: Option<Fault>,
    /// Stood at a flagged program point when its last slice ended.
    pub(crate) stopped_at_point: Option<u64>,
    /// Signal to send when the parent dies is a process matter; scheduling attributes are a thread's.
    pub(crate) schedule: Schedule,
}

impl Thread {
    /// What messages call the thread with this number.
    pub(crate) fn called(&self, tid: Tid) -> ThreadName {
        ThreadName {
            number: tid.0,
            name: self.name.to_string(),
        }
    }
}

/// The value that a read-modify-write instruction has read and not yet written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Torn {
    pub(crate) pc: u64,
    pub(crate) addr: u64,
    pub(crate) bytes: [u8; 16],
    pub(crate) size: u8,
}

/// What sched_setscheduler and friends set; kept and reported, but without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) policy: u32,
    pub(crate) priority: u32,
    pub(crate) nice: i32,
    /// One bit per CPU.
    pub(crate) affinity: u64,
}

/// What a signal frame tells about the exception that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ExceptionInfo {
    pub(crate) vector: u64,
    pub(crate) error_code: u64,
    pub(crate) addr: u64,
}

/// What the thread does when it is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Executes its own instructions.
    User,
    /// Has executed SYSCALL; the call has not happened yet.
    Entered,
    /// Is inside a call that blocked.
    Waiting(Waiting),
}

/// A call that blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) number: u32,
    pub(crate) args: [u64; 6],
    pub(crate) block: call::Block,
    /// Position among all sleepers, in the order in which they fell asleep.
    pub(crate) sequence: u64,
    /// One of its keys was woken or its time has come: the call is to be tried again.
    pub(crate) is_woken: bool,
}
