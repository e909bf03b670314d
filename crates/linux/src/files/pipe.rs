//! Pipes and FIFOs (pipe(7)).

use std::collections::VecDeque;

use raddle_mem::Frames;

use super::flags::{
    O_ACCMODE, O_DIRECT, O_RDWR, O_WRONLY, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDNORM,
    POLLWRNORM,
};
use super::inode::{Inode, InodeId, Node};
use super::queue::ByteQueue;
use super::ready;
use super::state::State;
use crate::errno::Errno;
use crate::kernel::Kernel;

/// Writes of at most this many bytes are not torn.
pub(crate) const ATOMIC_MAX: usize = 4096;
const CAPACITY: usize = 65536;
const CAPACITY_MAX: usize = 1 << 20;

/// A pipe.
#[derive(Debug, Clone)]
pub(crate) struct Pipe {
    pub(crate) queue: ByteQueue,
    capacity: usize,
    /// Open files that can read and write.
    pub(crate) readers: u32,
    pub(crate) writers: u32,
    /// How often each end was opened, so that the opener of a FIFO sees a partner who came and went.
    pub(crate) reader_opens: u64,
    pub(crate) writer_opens: u64,
    /// Lengths of packets written with O_DIRECT, from the front. Bytes behind them are a stream.
    packets: VecDeque<usize>,
}

/// A thread that waits for the other end of a FIFO to be opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FifoWait {
    pub(crate) inode: InodeId,
    /// The access mode it opens with.
    pub(crate) mode: u32,
    /// How often the other end had been opened when the wait began.
    pub(crate) partner_opens: u64,
}

impl Default for Pipe {
    fn default() -> Self {
        Self {
            queue: ByteQueue::default(),
            capacity: CAPACITY,
            readers: 0,
            writers: 0,
            reader_opens: 0,
            writer_opens: 0,
            packets: VecDeque::new(),
        }
    }
}

impl Pipe {
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.queue.len())
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// `F_SETPIPE_SZ`: rounds up to a power of two of pages.
    pub(crate) fn set_capacity(&mut self, wanted: usize) -> Result<usize, Errno> {
        if wanted > CAPACITY_MAX {
            return Err(Errno::EPERM);
        }
        let rounded = wanted.max(4096).next_power_of_two();
        if rounded < self.queue.len() {
            return Err(Errno::EBUSY);
        }
        self.capacity = rounded;
        Ok(rounded)
    }

    /// Bytes that one read may take.
    pub(crate) fn readable(&self, wanted: usize) -> usize {
        let limit = self.packets.front().copied().unwrap_or(self.queue.len());
        wanted.min(limit)
    }

    /// How many of `count` bytes a write can move now; zero means wait.
    pub(crate) fn writable(&self, count: usize) -> usize {
        let room = self.room();
        if count <= ATOMIC_MAX && room < count {
            0
        } else {
            room.min(count)
        }
    }

    pub(crate) fn push(
        &mut self,
        frames: &mut Frames,
        bytes: &[u8],
        as_packets: bool,
    ) -> Result<(), Errno> {
        let before = self.queue.len();
        self.queue.push(frames, bytes)?;
        if as_packets {
            if self.packets.is_empty() && before > 0 {
                self.packets.push_back(before);
            }
            self.packets
                .extend(bytes.chunks(ATOMIC_MAX).map(<[u8]>::len));
        } else if !self.packets.is_empty() {
            self.packets.push_back(bytes.len());
        }
        Ok(())
    }

    /// Removes what a read of `wanted` bytes took; the rest of a packet is lost.
    pub(crate) fn consume(&mut self, frames: &mut Frames, taken: usize) {
        let count = self.packets.pop_front().unwrap_or(taken);
        self.queue.consume(frames, count);
    }

    pub(crate) fn clear(&mut self, frames: &mut Frames) {
        self.queue.clear(frames);
        self.packets.clear();
    }

    /// Poll bits for an open file with these flags.
    pub(crate) fn readiness(&self, open_flags: u32) -> u32 {
        let mut bits = 0;
        if open_flags & O_WRONLY == 0 {
            if !self.queue.is_empty() {
                bits |= POLLIN | POLLRDNORM;
            }
            if self.writers == 0 && self.writer_opens > 0 {
                bits |= POLLHUP;
            }
        }
        if open_flags & O_ACCMODE != 0 {
            if self.room() >= ATOMIC_MAX {
                bits |= POLLOUT | POLLWRNORM;
            }
            if self.readers == 0 {
                bits |= POLLERR;
            }
        }
        bits
    }
}

/// Whether a context has an end of the pipe open, or is about to: a thread that sleeps in the open of a FIFO
/// counts, because its open is certain once the other end is there.
pub(crate) fn has_end(files: &State, id: InodeId, writing: bool) -> bool {
    let Node::Pipe(pipe) = &files.inode(id).node else {
        return false;
    };
    let open = if writing { pipe.writers } else { pipe.readers };
    open > 0
        || files
            .fifo_waits
            .values()
            .any(|wait| wait.inode == id && (wait.mode == O_WRONLY) == writing)
}

/// Whether writes through this open file are packets.
pub(crate) fn is_packet_mode(open_flags: u32) -> bool {
    open_flags & O_DIRECT != 0
}

/// Counts a new open file.
pub(crate) fn opened(inode: &mut Inode, open_flags: u32) {
    let Node::Pipe(pipe) = &mut inode.node else {
        return;
    };
    let mode = open_flags & O_ACCMODE;
    if mode != O_WRONLY {
        pipe.readers += 1;
        pipe.reader_opens += 1;
    }
    if mode == O_WRONLY || mode == O_RDWR {
        pipe.writers += 1;
        pipe.writer_opens += 1;
    }
}

/// Counts a closed open file and wakes who waits for the other end.
pub(crate) fn closed(kernel: &mut Kernel, id: InodeId, open_flags: u32) {
    let Node::Pipe(pipe) = &mut kernel.state.files.inode_mut(id).node else {
        return;
    };
    let mode = open_flags & O_ACCMODE;
    if mode != O_WRONLY {
        pipe.readers -= 1;
    }
    if mode == O_WRONLY || mode == O_RDWR {
        pipe.writers -= 1;
    }
    let is_last = pipe.readers == 0 && pipe.writers == 0;
    if is_last
        && !has_end(&kernel.state.files, id, false)
        && let Node::Pipe(pipe) = &mut kernel.state.files.inode_mut(id).node
    {
        pipe.clear(&mut kernel.frames);
    }
    ready::notify(kernel, id, POLLIN | POLLOUT);
}
