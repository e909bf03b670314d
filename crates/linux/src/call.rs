//! One system call in progress: who calls, with what, and how it can end.

use raddle_mem::GuestAddr;
use raddle_world::{Lacking, VirtualTime, WaitReason};

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// What a handler gets. Arguments are raw registers; helpers read them as what they mean.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) kernel: &'a mut Kernel,
    /// The calling thread.
    pub(crate) tid: Tid,
    pub(crate) args: [u64; 6],
    /// The end of the wait that an earlier attempt of this same call asked for.
    pub(crate) deadline: Option<VirtualTime>,
    /// True if the call blocked before and is tried again; a deadline may have passed.
    pub(crate) is_retry: bool,
}

/// The value for RAX, or why there is none (yet).
pub(crate) type SysResult = Result<u64, Trouble>;

/// Why a call does not return a plain value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    Errno(Errno),
    /// Put the thread to sleep; when one of the keys is woken or the deadline has passed, call the handler again
    /// with `is_retry` set and the same deadline.
    Block(Block),
    /// We do not support it.
    Unsupported(Lacking),
    /// The thread no longer exists or has a new image (exit, execve, sigreturn): there is nothing to return to.
    NoReturn,
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// How to sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) reason: WaitReason,
    /// Any of these ends the sleep.
    pub(crate) keys: Vec<WaitKey>,
    pub(crate) deadline: Option<VirtualTime>,
    /// What a signal handler does to the call.
    pub(crate) on_signal: OnSignal,
}

/// What happens to a blocked call when a signal handler runs (signal(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnSignal {
    /// Restarted if the handler has SA_RESTART, else EINTR.
    Restart,
    /// Always EINTR.
    Interrupt,
    /// Handlers wait until the call has ended (the parent of a vfork).
    Hold,
}

/// Names of things that can wake a sleeper. `Kernel::wake(key)` wakes every thread that sleeps on it, in the
/// order in which they began to sleep; they try their call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WaitKey {
    /// Readiness of a pipe, socket, eventfd, ...: the number of its object in the file layer.
    Object(u32),
    /// A child of this process changed state.
    ChildOf(u32),
    /// This futex waiter was woken (the ticket is unique per wait).
    FutexTicket(u64),
    /// A signal arrived for this thread (sigtimedwait, pause, signalfd).
    SignalFor(u32),
    /// A file lock on this inode was released.
    FileLock(u64),
    /// A set of semaphores of System V has changed.
    SemaphoreSet(i32),
    /// A message queue of System V has changed.
    MessageQueue(i32),
    /// The process that was made by vfork has released its parent.
    VforkOf(u32),
}

impl Block {
    /// Whether a signal handler ends the sleep.
    pub(crate) fn is_interruptible(&self) -> bool {
        self.on_signal != OnSignal::Hold
    }
}

impl Call<'_> {
    /// Argument `index` as an address.
    pub(crate) fn addr(&self, index: usize) -> GuestAddr {
        GuestAddr(self.args[index])
    }

    /// Argument `index` as a C `int` (descriptors, flags, enumerations).
    pub(crate) fn int(&self, index: usize) -> i32 {
        raddle_stdx::width::low_i32(self.args[index])
    }
}
