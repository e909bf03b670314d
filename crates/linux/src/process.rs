//! Processes: what threads share.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_stdx::Id;
use raddle_world::{ContextId, ImageId, VirtualTime};

use crate::files::{FsId, TableId};
use crate::signal::{Action, PendingSignals};
use crate::thread::Tid;

/// Process id as the guest sees it (`getpid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pid(pub(crate) u32);

impl Id for Pid {
    fn number(self) -> u32 {
        self.0
    }

    fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// The parent of the first process and of orphans. It is not a process of this world; it reaps at once.
pub(crate) const INIT: Pid = Pid(1);

/// Name of an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpaceId(pub(crate) u32);

impl SpaceId {
    /// That of the program that a world begins with; one before it is empty.
    pub(crate) const FIRST: Self = Self(2);
}

impl Id for SpaceId {
    fn number(self) -> u32 {
        self.0
    }

    fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// One process (thread group).
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    pub(crate) space: SpaceId,
    pub(crate) fds: TableId,
    /// Current directory, root and umask.
    pub(crate) fs: FsId,
    /// Live threads, the leader first as long as it lives.
    pub(crate) threads: Vec<Tid>,
    pub(crate) group: Pid,
    pub(crate) session: Pid,
    pub(crate) image: Image,
    /// Signal dispositions, by number minus one.
    pub(crate) actions: Arc<[Action; 64]>,
    /// Signals for the process as a whole.
    pub(crate) pending: PendingSignals,
    /// Sent to the parent when the process ends; 0 for none.
    pub(crate) exit_signal: u32,
    /// Set while the parent of a vfork waits for this process to exec or end.
    pub(crate) is_vfork_child: bool,
    pub(crate) life: Life,
    /// A stop or continue that the parent has not waited for yet.
    pub(crate) unreported: Option<Report>,
    pub(crate) limits: BTreeMap<u32, (u64, u64)>,
    pub(crate) parent_death_signal: u32,
    pub(crate) is_subreaper: bool,
    pub(crate) is_dumpable: bool,
    pub(crate) no_new_privileges: bool,
    pub(crate) personality: u32,
    pub(crate) usage: Usage,
    /// What waited-for children have used.
    pub(crate) children_usage: Usage,
    pub(crate) started: VirtualTime,
    /// Exit code of the leader, if it ended before the other threads.
    pub(crate) leader_status: Option<i32>,
    pub(crate) next_timer: i32,
    /// Contexts of threads by the handle that their creator got.
    pub(crate) thread_handles: BTreeMap<u64, ContextId>,
}

/// What execve put in place.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) id: ImageId,
    /// Canonical path of the program file.
    pub(crate) path: Arc<[u8]>,
    /// Argument strings as they lie on the stack, each with its NUL.
    pub(crate) command_line: Arc<[u8]>,
    /// Environment strings as they lie on the stack, each with its NUL.
    pub(crate) environment: Arc<[u8]>,
    pub(crate) auxv: Arc<[u8]>,
    pub(crate) stack_start: u64,
}

/// Whether a process still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    /// Stopped by job control with this signal.
    Stopped(u32),
    /// Ended with this wait status; its parent has not waited for it yet.
    Zombie(i32),
}

/// A change of state that `wait` with WUNTRACED or WCONTINUED can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    Stopped(u32),
    Continued,
}

/// Resources used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// Virtual nanoseconds of execution (one per step).
    pub(crate) steps: u64,
    pub(crate) syscalls: u64,
    pub(crate) faults: u64,
    pub(crate) voluntary_switches: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.syscalls += other.syscalls;
        self.faults += other.faults;
        self.voluntary_switches += other.voluntary_switches;
    }
}

impl Process {
    /// The command name as `/proc/PID/comm` has it, from the file name of the image.
    pub(crate) fn command_name(path: &[u8]) -> Arc<str> {
        let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let cut = &base[..base.len().min(15)];
        String::from_utf8_lossy(cut).into()
    }

    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.life, Life::Zombie(_))
    }

    /// Soft limit of a resource.
    pub(crate) fn limit(&self, resource: u32) -> u64 {
        self.limits
            .get(&resource)
            .map_or(u64::MAX, |(soft, _)| *soft)
    }
}
