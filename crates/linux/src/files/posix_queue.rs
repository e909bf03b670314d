//! POSIX message queues (mq_overview(7)): the objects; their calls are in `syscall/posix_queue.rs`.

use std::collections::VecDeque;
use std::sync::Arc;

use raddle_stdx::width::to_u64;

use super::flags::{POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM};
use super::inode::{InodeId, Node};
use crate::kernel::Kernel;
use crate::process::Pid;

/// What a message and a node of the tree of priorities take in Linux, which counts them against RLIMIT_MSGQUEUE.
const MESSAGE_HEADER: u64 = 48;
const TREE_NODE: u64 = 48;
/// Priorities are below this (`MQ_PRIO_MAX`).
pub(crate) const PRIORITY_END: u32 = 32_768;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) priority: u32,
    pub(crate) text: Arc<[u8]>,
}

/// Who is told of the next message that comes to an empty queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) owner: Pid,
    /// The signal and the value that comes with it; none if nothing is to happen.
    pub(crate) signal: Option<(u32, u64)>,
}

/// One queue.
#[derive(Debug, Clone)]
pub(crate) struct PosixQueue {
    /// The highest priority first; among equals the oldest.
    messages: VecDeque<Message>,
    pub(crate) messages_max: u64,
    pub(crate) size_max: u64,
    pub(crate) registration: Option<Registration>,
}

impl PosixQueue {
    pub(crate) fn new(messages_max: u64, size_max: u64) -> Self {
        Self {
            messages: VecDeque::new(),
            messages_max,
            size_max,
            registration: None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        to_u64(self.messages.len())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.messages_max
    }

    /// What the queue counts against RLIMIT_MSGQUEUE, or none if that is more than can be counted.
    pub(crate) fn accounted(&self) -> Option<u64> {
        let nodes = self.messages_max.min(u64::from(PRIORITY_END)) * TREE_NODE;
        let each = self.size_max.checked_add(MESSAGE_HEADER)?;
        self.messages_max.checked_mul(each)?.checked_add(nodes)
    }

    pub(crate) fn push(&mut self, message: Message) {
        let behind = |other: &Message| other.priority >= message.priority;
        let place = self.messages.partition_point(behind);
        self.messages.insert(place, message);
    }

    pub(crate) fn first(&self) -> Option<&Message> {
        self.messages.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    pub(crate) fn readiness(&self) -> u32 {
        let input = if self.messages.is_empty() {
            0
        } else {
            POLLIN | POLLRDNORM
        };
        let output = if self.is_full() {
            0
        } else {
            POLLOUT | POLLWRNORM
        };
        input | output
    }

    /// What `read` of its descriptor gives.
    pub(crate) fn status(&self) -> String {
        const SIGEV_SIGNAL: u32 = 0;
        const SIGEV_NONE: u32 = 1;
        let bytes: usize = self.messages.iter().map(|one| one.text.len()).sum();
        let (how, signal, owner) = match self.registration {
            None => (SIGEV_SIGNAL, 0, 0),
            Some(Registration { owner, signal }) => match signal {
                None => (SIGEV_NONE, 0, owner.0),
                Some((number, _)) => (SIGEV_SIGNAL, number, owner.0),
            },
        };
        format!("QSIZE:{bytes:<10} NOTIFY:{how:<5} SIGNO:{signal:<5} NOTIFY_PID:{owner:<6}\n")
    }
}

/// The queue that is an inode.
pub(crate) fn of(kernel: &Kernel, id: InodeId) -> Option<&PosixQueue> {
    match &kernel.state.files.inode(id).node {
        Node::PosixQueue(queue) => Some(queue),
        _ => None,
    }
}

pub(crate) fn of_mut(kernel: &mut Kernel, id: InodeId) -> Option<&mut PosixQueue> {
    match &mut kernel.state.files.inode_mut(id).node {
        Node::PosixQueue(queue) => Some(queue),
        _ => None,
    }
}

/// A process closes a descriptor of a queue: what it has registered is gone.
pub(crate) fn closed(kernel: &mut Kernel, owner: Pid, id: InodeId) {
    if let Some(queue) = of_mut(kernel, id) {
        queue.registration.take_if(|one| one.owner == owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(priority: u32, text: &str) -> Message {
        Message {
            priority,
            text: Arc::from(text.as_bytes()),
        }
    }

    #[test]
    fn the_highest_priority_comes_first_and_among_equals_the_oldest() {
        let mut queue = PosixQueue::new(4, 8);
        for (priority, text) in [(1, "a"), (5, "b"), (1, "c"), (5, "d")] {
            assert!(!queue.is_full());
            queue.push(message(priority, text));
        }
        assert!(queue.is_full());
        assert_eq!(queue.readiness(), POLLIN | POLLRDNORM);
        let order: Vec<Message> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [(5, "b"), (5, "d"), (1, "a"), (1, "c")];
        assert_eq!(
            order,
            expected.map(|(priority, text)| message(priority, text))
        );
        assert_eq!(queue.readiness(), POLLOUT | POLLWRNORM);
    }

    #[test]
    fn what_cannot_be_counted_has_no_size() {
        assert_eq!(
            PosixQueue::new(10, 8192).accounted(),
            Some(10 * (8192 + 96))
        );
        assert_eq!(PosixQueue::new(1 << 40, 1 << 40).accounted(), None);
    }
}
