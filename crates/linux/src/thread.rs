//! Threads: the contexts of this world.

use std::sync::Arc;

use raddle_world::ContextId;
use raddle_x86::Cpu;

use crate::process::Pid;

/// Thread id as the guest sees it (`gettid`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tid(pub(crate) u32);

/// One thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) tid: Tid,
    pub(crate) process: Pid,
    pub(crate) context: ContextId,
    pub(crate) cpu: Cpu,
    /// `comm`: at most 15 bytes.
    pub(crate) name: Arc<str>,
}
