//! Arguments that many file calls have in common, and how file calls sleep.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_u32, to_u64, to_usize};
use raddle_world::{VirtualTime, WaitReason};

use crate::call::{Block, Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::files::flags::{AT_EMPTY_PATH, PATH_MAX, TRANSFER_MAX};
use crate::files::inode::InodeId;
use crate::files::io::Buffer;
use crate::files::open::{self, OpenId};
use crate::files::walk::{self, Target, WalkOptions};
use crate::files::{self, ready};

/// Most elements of a vectored transfer (`UIO_MAXIOV`).
pub(super) const VECTOR_MAX: u64 = 1024;

impl Call<'_> {
    /// Argument `index` as 32 bits of flags.
    pub(super) fn word(&self, index: usize) -> u32 {
        low_u32(self.args[index])
    }

    /// Argument `index` as a path.
    pub(super) fn path(&mut self, index: usize) -> Result<Vec<u8>, Errno> {
        self.kernel
            .read_string(self.tid, self.args[index], PATH_MAX - 1)
    }

    /// The open file behind the descriptor in argument `index`.
    pub(super) fn open_file(&self, index: usize) -> Result<OpenId, Errno> {
        open::lookup(self.kernel, self.tid, self.int(index))
    }

    /// The inode behind the descriptor in argument `index`.
    pub(super) fn inode(&self, index: usize) -> Result<InodeId, Errno> {
        let open = self.open_file(index)?;
        Ok(self.kernel.state.files.open_file(open).inode)
    }

    pub(super) fn resolve(
        &mut self,
        dirfd: i32,
        path: &[u8],
        options: WalkOptions,
    ) -> Result<Target, Errno> {
        walk::resolve(self.kernel, self.tid, dirfd, path, options)
    }

    pub(super) fn find(
        &mut self,
        dirfd: i32,
        path: &[u8],
        options: WalkOptions,
    ) -> Result<InodeId, Errno> {
        walk::find(self.kernel, self.tid, dirfd, path, options)
    }

    /// The inode of a path, or of the descriptor itself for an empty path with `AT_EMPTY_PATH`.
    pub(super) fn find_at(
        &mut self,
        dirfd: i32,
        path: &[u8],
        at_flags: u32,
        follow: bool,
    ) -> Result<InodeId, Errno> {
        if path.is_empty() && at_flags & AT_EMPTY_PATH != 0 {
            return walk::start_directory(self.kernel, self.tid, dirfd);
        }
        let options = WalkOptions {
            follow,
            ..WalkOptions::default()
        };
        self.find(dirfd, path, options)
    }

    /// A piece of the caller's memory, no longer than a transfer may be.
    pub(super) fn buffer(&self, addr: usize, len: usize) -> Result<Buffer, Errno> {
        let len = to_usize(self.args[len]);
        if self.args[addr].checked_add(to_u64(len)).is_none() {
            return Err(Errno::EFAULT);
        }
        Ok(Buffer::user(
            self.tid,
            self.addr(addr),
            len.min(TRANSFER_MAX),
        ))
    }

    /// The pieces that an array of `struct iovec` names.
    pub(super) fn vector(&mut self, addr: u64, count: u64) -> Result<Buffer, Errno> {
        if count > VECTOR_MAX {
            return Err(Errno::EINVAL);
        }
        let mut pieces = Vec::new();
        let mut total: usize = 0;
        for index in 0..count {
            let [base, len] = self.read_words(addr.wrapping_add(index * 16))?;
            if len > u64::MAX >> 1 {
                return Err(Errno::EINVAL);
            }
            let len = to_usize(len).min(TRANSFER_MAX - total);
            total += len;
            if len > 0 {
                pieces.push((GuestAddr(base), len));
            }
        }
        Ok(Buffer::User {
            tid: self.tid,
            pieces,
        })
    }

    /// Sleeps until the open file's readiness changes.
    pub(super) fn block_on(&self, fd: i32, open: OpenId, deadline: Option<VirtualTime>) -> Trouble {
        let mut keys = Vec::new();
        ready::keys_of(self.kernel, self.tid, open, &mut keys);
        self.block(vec![fd], keys, deadline, OnSignal::Restart)
    }

    pub(super) fn block(
        &self,
        descriptors: Vec<i32>,
        mut keys: Vec<WaitKey>,
        deadline: Option<VirtualTime>,
        on_signal: OnSignal,
    ) -> Trouble {
        keys.sort();
        keys.dedup();
        Trouble::Block(Block {
            reason: WaitReason::Io { descriptors },
            keys,
            deadline,
            on_signal,
        })
    }

    /// Whether the wait that an earlier attempt began is over.
    pub(super) fn has_timed_out(&self) -> bool {
        self.is_retry
            && self
                .deadline
                .is_some_and(|deadline| deadline <= self.kernel.state.now)
    }

    /// Bytes that earlier attempts of this call have moved.
    pub(super) fn progress(&mut self) -> usize {
        let progress = self.kernel.state.files.progress.remove(&self.tid);
        if self.is_retry {
            to_usize(progress.unwrap_or(0))
        } else {
            0
        }
    }

    pub(super) fn keep_progress(&mut self, count: usize) {
        if count > 0 {
            self.kernel
                .state
                .files
                .progress
                .insert(self.tid, to_u64(count));
        }
    }

    /// The end of a failed write: a broken pipe also raises SIGPIPE.
    pub(super) fn broken_pipe(&mut self, errno: Errno, quiet: bool) -> Trouble {
        if errno == Errno::EPIPE && !quiet {
            files::send_signal(self.kernel, self.tid, crate::signal::SIGPIPE);
        }
        errno.into()
    }
}

/// A count as the value of a call.
pub(super) fn count(value: usize) -> SysResult {
    Ok(to_u64(value))
}

/// A descriptor as the value of a call.
pub(super) fn descriptor(fd: i32) -> SysResult {
    Ok(raddle_stdx::width::as_u64(i64::from(fd)))
}
