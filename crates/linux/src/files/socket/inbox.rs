//! What a socket has received and no context has read yet.

use std::collections::VecDeque;

use raddle_mem::Frames;

use super::{Address, Credentials};
use crate::errno::Errno;
use crate::files::open::OpenId;
use crate::files::queue::ByteQueue;

/// Bytes a socket takes before its partner must wait.
const CAPACITY: usize = 212_992;
/// Datagrams a Unix socket takes (`max_dgram_qlen`).
const DATAGRAMS_MAX: usize = 10;

/// One message, or a run of a stream that came with the same ancillary data.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) len: usize,
    pub(super) from: Option<Address>,
    /// Open files that travel with it; each is one reference.
    pub(super) rights: Vec<OpenId>,
    pub(super) credentials: Option<Credentials>,
}

/// Bytes in guest frames, cut into segments.
#[derive(Debug, Clone)]
pub(super) struct Inbox {
    pub(super) queue: ByteQueue,
    pub(super) segments: VecDeque<Segment>,
    pub(super) capacity: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            queue: ByteQueue::default(),
            segments: VecDeque::new(),
            capacity: CAPACITY,
        }
    }
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.queue.len())
    }

    /// Enough room for poll to call it writable.
    pub(super) fn is_writable(&self) -> bool {
        self.room() >= self.capacity / 4
    }

    /// Whether one more datagram of this length is taken now. A single one always fits.
    pub(super) fn takes(&self, len: usize, is_unix: bool) -> bool {
        let has_slot = !is_unix || self.segments.len() < DATAGRAMS_MAX;
        has_slot && (self.segments.is_empty() || len <= self.room())
    }

    /// Bytes that the next read could take.
    pub(super) fn next_len(&self, is_stream: bool) -> usize {
        if is_stream {
            self.queue.len()
        } else {
            self.segments.front().map_or(0, |segment| segment.len)
        }
    }

    /// Appends bytes; plain stream bytes join the last segment.
    pub(super) fn push(
        &mut self,
        frames: &mut Frames,
        bytes: &[u8],
        segment: Segment,
        is_stream: bool,
    ) -> Result<(), Errno> {
        self.queue.push(frames, bytes)?;
        if is_stream
            && segment.rights.is_empty()
            && let Some(last) = self.segments.back_mut()
            && last.rights.is_empty()
            && last.credentials == segment.credentials
            && last.from == segment.from
        {
            last.len += bytes.len();
        } else {
            self.segments.push_back(segment);
        }
        Ok(())
    }

    /// Removes `count` bytes of a stream from the front segment.
    pub(super) fn consume_stream(&mut self, frames: &mut Frames, count: usize) {
        self.queue.consume(frames, count);
        if let Some(front) = self.segments.front_mut() {
            front.len -= count;
            front.rights.clear();
            if front.len == 0 {
                self.segments.pop_front();
            }
        }
    }

    /// Removes the front message.
    pub(super) fn consume_message(&mut self, frames: &mut Frames) {
        if let Some(front) = self.segments.pop_front() {
            self.queue.consume(frames, front.len);
        }
    }

    /// Gives every frame back; the open files in flight are for the caller to release.
    pub(super) fn clear(&mut self, frames: &mut Frames) -> Vec<OpenId> {
        self.queue.clear(frames);
        self.segments
            .drain(..)
            .flat_map(|segment| segment.rights)
            .collect()
    }
}
