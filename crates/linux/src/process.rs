//! Processes: what threads share.

use raddle_mem::AddressSpace;

use crate::thread::Tid;

/// Process id as the guest sees it (`getpid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pid(pub(crate) u32);

/// One process (thread group).
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    pub(crate) space: AddressSpace,
    pub(crate) fds: crate::files::TableId,
    /// Inode of the current directory lives in `fds`-independent file state: see `files::FsContext`.
    pub(crate) fs: crate::files::FsId,
    pub(crate) threads: Vec<Tid>,
}
