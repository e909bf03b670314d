//! Message queues of System V.

use std::collections::VecDeque;

use raddle_stdx::width::to_u64;

use super::permission::Permission;
use super::registry::Object;

/// Bytes of one message at most (`MSGMAX`).
pub(crate) const MESSAGE_MAX: u64 = 8192;
/// Bytes of a new queue at most (`MSGMNB`).
pub(crate) const QUEUE_MAX: u64 = 16_384;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: i64,
    pub(crate) text: Vec<u8>,
}

/// One queue.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) permission: Permission,
    pub(crate) messages: VecDeque<Message>,
    pub(crate) bytes_max: u64,
    pub(crate) last_sender: u32,
    pub(crate) last_receiver: u32,
    /// Seconds since 1970.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) changed: u64,
}

impl Object for Queue {
    fn permission(&self) -> &Permission {
        &self.permission
    }

    fn permission_mut(&mut self) -> &mut Permission {
        &mut self.permission
    }
}

/// Which message a receiver wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choose {
    First,
    Kind(i64),
    AllBut(i64),
    /// The lowest kind that is not above this.
    UpTo(i64),
}

impl Choose {
    pub(crate) fn new(kind: i64, is_exception: bool) -> Self {
        match kind {
            0 => Self::First,
            1.. if is_exception => Self::AllBut(kind),
            1.. => Self::Kind(kind),
            _ => Self::UpTo(kind.saturating_neg()),
        }
    }
}

impl Queue {
    pub(crate) fn bytes(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| to_u64(message.text.len()))
            .sum()
    }

    /// Whether a message of this size can be sent now.
    pub(crate) fn has_room(&self, size: u64) -> bool {
        self.bytes() + size <= self.bytes_max && to_u64(self.messages.len()) < self.bytes_max
    }

    /// The place of the message that a receiver wants.
    pub(crate) fn find(&self, choose: Choose) -> Option<usize> {
        let mut kinds = self.messages.iter().map(|message| message.kind);
        match choose {
            Choose::First => (!self.messages.is_empty()).then_some(0),
            Choose::Kind(wanted) => kinds.position(|kind| kind == wanted),
            Choose::AllBut(unwanted) => kinds.position(|kind| kind != unwanted),
            Choose::UpTo(limit) => kinds
                .enumerate()
                .filter(|(_, kind)| *kind <= limit)
                .min_by_key(|(place, kind)| (*kind, *place))
                .map(|(place, _)| place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;

    fn queue(kinds: &[i64]) -> Queue {
        let message = |kind: &i64| Message {
            kind: *kind,
            text: vec![0; 10],
        };
        Queue {
            permission: Permission::of_new(&Credentials::root(), 1, 0o600),
            messages: kinds.iter().map(message).collect(),
            bytes_max: 50,
            last_sender: 0,
            last_receiver: 0,
            sent: 0,
            received: 0,
            changed: 0,
        }
    }

    #[test]
    fn receivers_choose_by_kind() {
        let queue = queue(&[5, 3, 4, 3]);
        assert_eq!(queue.find(Choose::new(0, false)), Some(0));
        assert_eq!(queue.find(Choose::new(4, false)), Some(2));
        assert_eq!(queue.find(Choose::new(5, true)), Some(1));
        assert_eq!(queue.find(Choose::new(-4, false)), Some(1));
        assert_eq!(queue.find(Choose::new(-2, false)), None);
    }

    #[test]
    fn a_queue_is_full_by_bytes() {
        let queue = queue(&[1, 1, 1, 1]);
        assert!(queue.has_room(10) && !queue.has_room(11));
    }
}
