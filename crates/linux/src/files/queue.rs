//! A first-in first-out queue of bytes that lives in guest frames, for pipes and sockets.

use std::collections::VecDeque;

use raddle_mem::{FrameId, Frames, PAGE_SIZE};

use crate::errno::Errno;

/// The bytes are `frames[0][start..]`, then the following frames, `len` in all.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByteQueue {
    frames: VecDeque<FrameId>,
    /// Invariant: below the page size.
    start: usize,
    len: usize,
}

impl ByteQueue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends all of `bytes`, or nothing if guest memory is exhausted.
    pub(crate) fn push(&mut self, frames: &mut Frames, bytes: &[u8]) -> Result<(), Errno> {
        let needed = (self.start + self.len + bytes.len()).div_ceil(PAGE_SIZE);
        let before = self.frames.len();
        while self.frames.len() < needed {
            if let Ok(frame) = frames.alloc() {
                self.frames.push_back(frame);
            } else {
                for frame in self.frames.drain(before..) {
                    frames.release(frame);
                }
                return Err(Errno::ENOMEM);
            }
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = self.start + self.len + done;
            let count = (PAGE_SIZE - at % PAGE_SIZE).min(bytes.len() - done);
            frames.write(
                self.frames[at / PAGE_SIZE],
                at % PAGE_SIZE,
                &bytes[done..done + count],
            );
            done += count;
        }
        self.len += bytes.len();
        Ok(())
    }

    /// Copies up to `count` bytes that begin `skip` bytes after the front, without removing them.
    pub(crate) fn peek(&self, frames: &Frames, skip: usize, count: usize) -> Vec<u8> {
        let count = count.min(self.len.saturating_sub(skip));
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            let at = self.start + skip + bytes.len();
            let piece = (PAGE_SIZE - at % PAGE_SIZE).min(count - bytes.len());
            let page = frames.bytes(self.frames[at / PAGE_SIZE]);
            bytes.extend_from_slice(&page[at % PAGE_SIZE..at % PAGE_SIZE + piece]);
        }
        bytes
    }

    /// Removes `count` bytes from the front.
    pub(crate) fn consume(&mut self, frames: &mut Frames, count: usize) {
        assert!(count <= self.len, "only queued bytes are consumed");
        self.start += count;
        self.len -= count;
        while self.start >= PAGE_SIZE || (self.len == 0 && !self.frames.is_empty()) {
            let frame = self
                .frames
                .pop_front()
                .expect("the front frame holds the start");
            frames.release(frame);
            self.start = self.start.saturating_sub(PAGE_SIZE);
        }
        if self.len == 0 {
            self.start = 0;
        }
    }

    /// Gives every frame back.
    pub(crate) fn clear(&mut self, frames: &mut Frames) {
        self.consume(frames, self.len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_frames_are_given_back() {
        let mut frames = Frames::new(1 << 20).unwrap();
        let mut queue = ByteQueue::default();
        let mut expected = VecDeque::new();
        let mut next = 0_u8;
        for round in 0..200_usize {
            let bytes: Vec<u8> = (0..round * 37 % 6000)
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            queue.push(&mut frames, &bytes).unwrap();
            expected.extend(bytes);
            let count = (round * 53 % 5000).min(queue.len());
            let got = queue.peek(&frames, 0, count);
            assert!(got.iter().eq(expected.iter().take(count)), "round {round}");
            expected.drain(..count);
            queue.consume(&mut frames, count);
        }
        queue.clear(&mut frames);
        assert_eq!(frames.in_use(), 0);
    }

    #[test]
    fn a_push_that_does_not_fit_changes_nothing() {
        let mut frames = Frames::new(16 * 4096).unwrap();
        let mut queue = ByteQueue::default();
        queue.push(&mut frames, b"front").unwrap();
        assert_eq!(queue.push(&mut frames, &[7; 20 * 4096]), Err(Errno::ENOMEM));
        assert_eq!(queue.peek(&frames, 0, 100), b"front");
        assert_eq!(frames.in_use(), 1);
    }
}
