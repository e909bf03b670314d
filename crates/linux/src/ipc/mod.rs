//! System V shared memory, semaphores and message queues (sysvipc(7)): the objects; the calls are in `syscall`.

pub(crate) mod message;
mod permission;
mod registry;
mod segment;
pub(crate) mod semaphore;

pub(crate) use message::{Choose, Message, Queue};
pub(crate) use permission::{Asked, Permission};
pub(crate) use registry::{Object, Registry, flags};
pub(crate) use segment::{Segment, attachments, sweep};
pub(crate) use semaphore::{Operation, SemaphoreSet, Undo, undo_all};

use crate::call::WaitKey;

/// All objects of System V.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ipc {
    pub(crate) segments: Registry<Segment>,
    pub(crate) semaphores: Registry<SemaphoreSet>,
    pub(crate) queues: Registry<Queue>,
    /// What is taken back at the ends of processes.
    pub(crate) undo: Undo,
}

/// What waits for a set of semaphores sleeps on this.
pub(crate) fn semaphore_key(id: i32) -> WaitKey {
    WaitKey::SemaphoreSet(id)
}

/// What waits for a message queue sleeps on this.
pub(crate) fn queue_key(id: i32) -> WaitKey {
    WaitKey::MessageQueue(id)
}
