//! Reading, writing and seeking.

use raddle_stdx::width::{as_i64, as_u64, low_u32, to_u64, to_usize};

use super::file_args::count;
use super::table::Entry;
use crate::call::{Call, SysResult, Trouble};
use crate::errno::Errno;
use crate::files::flags::O_APPEND;
use crate::files::inode::Node;
use crate::files::io::{self, Buffer, IoError};
use crate::files::open::OpenId;
use crate::files::socket;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("read", read),
    Entry::full("write", write),
    Entry::full("lseek", lseek),
    Entry::full("pread64", pread64),
    Entry::full("pwrite64", pwrite64),
    Entry::full("readv", readv),
    Entry::full("writev", writev),
    Entry::full("preadv", preadv),
    Entry::full("pwritev", pwritev),
    Entry::partial(
        "preadv2",
        preadv2,
        "RWF_HIPRI, RWF_DSYNC and RWF_SYNC have no effect",
    ),
    Entry::partial(
        "pwritev2",
        pwritev2,
        "RWF_HIPRI, RWF_DSYNC and RWF_SYNC have no effect",
    ),
];

const RWF_NOWAIT: u32 = 0x8;
const RWF_APPEND: u32 = 0x10;
const RWF_KNOWN: u32 = 0x1F;

fn read(call: &mut Call<'_>) -> SysResult {
    let open = call.open_file(0)?;
    let buffer = call.buffer(1, 2)?;
    read_into(call, open, None, buffer, false)
}

fn write(call: &mut Call<'_>) -> SysResult {
    let open = call.open_file(0)?;
    let buffer = call.buffer(1, 2)?;
    write_from(call, open, None, &buffer, false)
}

fn pread64(call: &mut Call<'_>) -> SysResult {
    let (open, offset) = positioned(call, 3)?;
    let buffer = call.buffer(1, 2)?;
    read_into(call, open, Some(offset), buffer, false)
}

fn pwrite64(call: &mut Call<'_>) -> SysResult {
    let (open, offset) = positioned(call, 3)?;
    let buffer = call.buffer(1, 2)?;
    write_from(call, open, Some(offset), &buffer, false)
}

fn readv(call: &mut Call<'_>) -> SysResult {
    let open = call.open_file(0)?;
    let buffer = call.vector(call.args[1], call.args[2])?;
    read_into(call, open, None, buffer, false)
}

fn writev(call: &mut Call<'_>) -> SysResult {
    let open = call.open_file(0)?;
    let buffer = call.vector(call.args[1], call.args[2])?;
    write_from(call, open, None, &buffer, false)
}

fn preadv(call: &mut Call<'_>) -> SysResult {
    let (open, offset) = positioned(call, 3)?;
    let buffer = call.vector(call.args[1], call.args[2])?;
    read_into(call, open, Some(offset), buffer, false)
}

fn pwritev(call: &mut Call<'_>) -> SysResult {
    let (open, offset) = positioned(call, 3)?;
    let buffer = call.vector(call.args[1], call.args[2])?;
    write_from(call, open, Some(offset), &buffer, false)
}

/// The open file and the explicit offset of a positioned transfer.
fn positioned(call: &Call<'_>, index: usize) -> Result<(OpenId, u64), Errno> {
    let open = call.open_file(0)?;
    let offset = call.args[index];
    if as_i64(offset) < 0 {
        return Err(Errno::EINVAL);
    }
    let inode = call.kernel.state.files.open_file(open).inode;
    if !call.kernel.state.files.inode(inode).node.is_seekable() {
        return Err(Errno::ESPIPE);
    }
    Ok((open, offset))
}

/// The offset of preadv2 and pwritev2: -1 means the file's own position.
fn optional_position(call: &Call<'_>) -> Result<(OpenId, Option<u64>), Errno> {
    if call.args[3] == u64::MAX {
        Ok((call.open_file(0)?, None))
    } else {
        positioned(call, 3).map(|(open, offset)| (open, Some(offset)))
    }
}

fn preadv2(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(5);
    if flags & !RWF_KNOWN != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let (open, offset) = optional_position(call)?;
    let buffer = call.vector(call.args[1], call.args[2])?;
    read_into(call, open, offset, buffer, flags & RWF_NOWAIT != 0)
}

fn pwritev2(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(5);
    if flags & !RWF_KNOWN != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let (open, offset) = optional_position(call)?;
    let buffer = call.vector(call.args[1], call.args[2])?;
    let before = call.kernel.state.files.open_file(open).flags;
    if flags & RWF_APPEND != 0 {
        call.kernel.state.files.open_file_mut(open).flags |= O_APPEND;
    }
    let result = write_from(call, open, offset, &buffer, flags & RWF_NOWAIT != 0);
    call.kernel.state.files.open_file_mut(open).flags = before;
    result
}

/// Reads, or sleeps until there is something to read.
pub(super) fn read_into(
    call: &mut Call<'_>,
    open: OpenId,
    offset: Option<u64>,
    mut buffer: Buffer,
    no_wait: bool,
) -> SysResult {
    let file = call.kernel.state.files.open_file(open);
    if !file.can_read() {
        return Err(Errno::EBADF.into());
    }
    let no_wait = no_wait || file.is_nonblocking();
    let max = buffer.len();
    match io::read(call.kernel, call.tid, open, offset, &mut buffer, max) {
        Ok(moved) => count(moved),
        Err(IoError::Errno(errno)) => Err(errno.into()),
        Err(IoError::WouldBlock) if no_wait || call.has_timed_out() => Err(Errno::EAGAIN.into()),
        Err(IoError::WouldBlock) => {
            let deadline = socket::receive_deadline(call, open);
            Err(call.block_on(call.int(0), open, deadline))
        }
    }
}

/// Writes everything, sleeping as often as needed; a nonblocking file takes what it can.
pub(super) fn write_from(
    call: &mut Call<'_>,
    open: OpenId,
    offset: Option<u64>,
    buffer: &Buffer,
    no_wait: bool,
) -> SysResult {
    let file = call.kernel.state.files.open_file(open);
    if !file.can_write() {
        return Err(Errno::EBADF.into());
    }
    let no_wait = no_wait || file.is_nonblocking();
    let inode = file.inode;
    let mut done = call.progress();
    loop {
        let step = io::write(call.kernel, call.tid, open, offset, buffer, done);
        match step {
            Ok(moved) => {
                done += moved;
                let is_stream = matches!(
                    call.kernel.state.files.inode(inode).node,
                    Node::Pipe(_) | Node::Socket(_)
                );
                if done >= buffer.len() || moved == 0 || !is_stream {
                    return count(done);
                }
            }
            Err(IoError::WouldBlock) if done > 0 && (no_wait || call.has_timed_out()) => {
                return count(done);
            }
            Err(IoError::WouldBlock) if no_wait || call.has_timed_out() => {
                return Err(Errno::EAGAIN.into());
            }
            Err(IoError::WouldBlock) => {
                call.keep_progress(done);
                let deadline = socket::send_deadline(call, open);
                return Err(call.block_on(call.int(0), open, deadline));
            }
            Err(IoError::Errno(errno)) => {
                let trouble = call.broken_pipe(errno, false);
                return if done > 0 { count(done) } else { Err(trouble) };
            }
        }
    }
}

fn lseek(call: &mut Call<'_>) -> SysResult {
    const SET: u32 = 0;
    const CURRENT: u32 = 1;
    const END: u32 = 2;
    const DATA: u32 = 3;
    const HOLE: u32 = 4;
    let open = call.open_file(0)?;
    let files = &call.kernel.state.files;
    let file = files.open_file(open);
    let inode = files.inode(file.inode);
    if !inode.node.is_seekable() {
        return Err(Errno::ESPIPE.into());
    }
    let delta = as_i64(call.args[1]);
    let size = inode.content().map_or(0, |content| content.size());
    let target = match low_u32(call.args[2]) {
        SET => Some(delta),
        CURRENT => as_i64(file.offset).checked_add(delta),
        END => as_i64(size).checked_add(delta),
        whence @ (DATA | HOLE) => {
            let offset = u64::try_from(delta).map_err(|_| Errno::ENXIO)?;
            let content = inode.content().ok_or(Errno::EINVAL)?;
            Some(as_i64(
                content.seek(offset, whence == DATA).ok_or(Errno::ENXIO)?,
            ))
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    let target = target.ok_or(Errno::EOVERFLOW)?;
    if target < 0 {
        return Err(Errno::EINVAL.into());
    }
    let file = call.kernel.state.files.open_file_mut(open);
    file.offset = as_u64(target);
    if target == 0 {
        file.listing = None;
    }
    Ok(as_u64(target))
}

/// The progress of a transfer between two files, as its result: an error only if nothing was moved.
pub(super) fn outcome(moved: usize, trouble: Trouble) -> SysResult {
    if moved > 0 {
        Ok(to_u64(moved))
    } else {
        Err(trouble)
    }
}

/// A length argument, bounded by what one call may move.
pub(super) fn bounded(len: u64) -> usize {
    to_usize(len).min(crate::files::flags::TRANSFER_MAX)
}
