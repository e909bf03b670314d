//! Reading and writing open files of every kind.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{as_i64, to_u64, to_usize};

use super::content::Content;
use super::device::Device;
use super::flags::{O_APPEND, POLLIN, POLLOUT};
use super::inode::{InodeId, Node};
use super::open::OpenId;
use super::{core, event, inotify, permission, pipe, procfs, ready, socket};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::mm;
use crate::thread::Tid;

/// Bytes moved in one piece.
const CHUNK: usize = 64 * 1024;

/// Why nothing was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IoError {
    Errno(Errno),
    /// Nothing can be moved now; it may be later.
    WouldBlock,
}

impl From<Errno> for IoError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Where bytes come from or go to: pieces of the caller's memory, or our own.
#[derive(Debug)]
pub(crate) enum Buffer {
    User {
        tid: Tid,
        pieces: Vec<(GuestAddr, usize)>,
    },
    Own(Vec<u8>),
}

impl Buffer {
    /// One piece of the caller's memory.
    pub(crate) fn user(tid: Tid, addr: GuestAddr, len: usize) -> Self {
        Self::User {
            tid,
            pieces: vec![(addr, len)],
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::User { pieces, .. } => pieces.iter().map(|(_, len)| len).sum(),
            Self::Own(bytes) => bytes.len(),
        }
    }

    /// Stores `bytes` at position `at`; an own buffer grows.
    pub(crate) fn put(
        &mut self,
        kernel: &mut Kernel,
        at: usize,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        match self {
            Self::Own(own) => {
                own.truncate(at);
                own.extend_from_slice(bytes);
                Ok(())
            }
            Self::User { tid, pieces } => {
                let mut done = 0;
                for (addr, len) in overlap(pieces, at, bytes.len()) {
                    kernel.write_user(*tid, addr, &bytes[done..done + len])?;
                    done += len;
                }
                Ok(())
            }
        }
    }

    /// Fetches up to `count` bytes from position `at`.
    pub(crate) fn get(
        &self,
        kernel: &mut Kernel,
        at: usize,
        count: usize,
    ) -> Result<Vec<u8>, Errno> {
        match self {
            Self::Own(own) => Ok(own[at..(at + count).min(own.len())].to_vec()),
            Self::User { tid, pieces } => {
                let found = overlap(pieces, at, count);
                let mut bytes = vec![0; found.iter().map(|(_, len)| len).sum()];
                let mut done = 0;
                for (addr, len) in found {
                    kernel.read_user(*tid, addr, &mut bytes[done..done + len])?;
                    done += len;
                }
                Ok(bytes)
            }
        }
    }
}

/// The parts of `pieces` that `at..at + count` covers.
fn overlap(pieces: &[(GuestAddr, usize)], at: usize, count: usize) -> Vec<(GuestAddr, usize)> {
    let mut found = Vec::new();
    let (mut start, end) = (0, at.saturating_add(count));
    for (addr, len) in pieces {
        let (from, to) = (at.max(start), end.min(start + len));
        if from < to {
            found.push((addr.offset(to_u64(from - start)), to - from));
        }
        start += len;
    }
    found
}

/// Reads up to `max` bytes into the buffer, from `offset` or the file's own position.
pub(crate) fn read(
    kernel: &mut Kernel,
    tid: Tid,
    open: OpenId,
    offset: Option<u64>,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    let file = kernel.state.files.open_file(open);
    let inode = file.inode;
    match &kernel.state.files.inode(inode).node {
        Node::Directory(_) => Err(Errno::EISDIR.into()),
        Node::File(_) | Node::Text(_) | Node::Proc(_) | Node::PosixQueue(_) => {
            read_positioned(kernel, open, inode, offset, buffer, max)
        }
        Node::Device(device) => {
            let device = *device;
            read_device(kernel, device, buffer, max)
        }
        Node::Pipe(_) => read_pipe(kernel, inode, buffer, max),
        Node::Socket(_) => socket::read(kernel, tid, inode, buffer, max),
        Node::Event(_) | Node::Timer(_) | Node::Signal(_) => {
            event::read(kernel, tid, inode, buffer, max)
        }
        Node::Inotify(_) => inotify::read(kernel, inode, buffer, max),
        Node::Output(_) => Err(Errno::EBADF.into()),
        Node::Symlink(_)
        | Node::ProcLink(_)
        | Node::Epoll(_)
        | Node::Process(_)
        | Node::SocketName(_) => Err(Errno::EINVAL.into()),
    }
}

fn read_positioned(
    kernel: &mut Kernel,
    open: OpenId,
    inode: InodeId,
    offset: Option<u64>,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    let start = offset.unwrap_or(kernel.state.files.open_file(open).offset);
    let mut done = 0;
    let mut problem = None;
    while done < max {
        let mut chunk = vec![0; CHUNK.min(max - done)];
        let at = start + to_u64(done);
        let count = match fetch(kernel, inode, at, &mut chunk) {
            Ok(count) => count,
            Err(errno) => {
                problem = Some(errno);
                break;
            }
        };
        if count == 0 {
            break;
        }
        if let Err(errno) = buffer.put(kernel, done, &chunk[..count]) {
            problem = Some(errno);
            break;
        }
        done += count;
    }
    if let Some(errno) = problem.filter(|_| done == 0) {
        return Err(errno.into());
    }
    if offset.is_none() {
        kernel.state.files.open_file_mut(open).offset = start + to_u64(done);
    }
    if done > 0 {
        inotify::report_self(kernel, inode, inotify::IN_ACCESS);
    }
    Ok(done)
}

/// Copies from a file of any kind that has positions.
pub(crate) fn fetch(
    kernel: &mut Kernel,
    inode: InodeId,
    offset: u64,
    into: &mut [u8],
) -> Result<usize, Errno> {
    match &kernel.state.files.inode(inode).node {
        Node::File(content) => content.read(&mut kernel.frames, &mut kernel.host, offset, into),
        Node::Text(text) => Ok(copy_tail(text.as_bytes(), offset, into)),
        Node::PosixQueue(queue) => Ok(copy_tail(queue.status().as_bytes(), offset, into)),
        Node::Proc(file) => {
            let text = procfs::text(kernel, *file)?;
            Ok(copy_tail(&text, offset, into))
        }
        _ => Err(Errno::EINVAL),
    }
}

fn copy_tail(text: &[u8], offset: u64, into: &mut [u8]) -> usize {
    let tail = text.get(to_usize(offset)..).unwrap_or_default();
    let count = tail.len().min(into.len());
    into[..count].copy_from_slice(&tail[..count]);
    count
}

fn read_device(
    kernel: &mut Kernel,
    device: Device,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    let mut done = 0;
    while done < max {
        let mut chunk = vec![0; CHUNK.min(max - done)];
        match device {
            Device::Null => return Ok(0),
            Device::Zero | Device::Full => {}
            Device::Random { .. } => core::random_bytes(kernel, &mut chunk),
            Device::Terminal => return Err(Errno::EIO.into()),
        }
        buffer.put(kernel, done, &chunk)?;
        done += chunk.len();
    }
    Ok(done)
}

fn read_pipe(
    kernel: &mut Kernel,
    inode: InodeId,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    let Node::Pipe(pipe) = &kernel.state.files.inode(inode).node else {
        return Err(Errno::EINVAL.into());
    };
    if max == 0 {
        return Ok(0);
    }
    if pipe.queue.is_empty() {
        return if pipe::has_end(&kernel.state.files, inode, true) {
            Err(IoError::WouldBlock)
        } else {
            Ok(0)
        };
    }
    let bytes = pipe.queue.peek(&kernel.frames, 0, pipe.readable(max));
    buffer.put(kernel, 0, &bytes)?;
    if let Node::Pipe(pipe) = &mut kernel.state.files.inode_mut(inode).node {
        pipe.consume(&mut kernel.frames, bytes.len());
    }
    ready::notify(kernel, inode, POLLOUT);
    Ok(bytes.len())
}

/// Writes from position `from` of the buffer; may move fewer bytes than there are.
pub(crate) fn write(
    kernel: &mut Kernel,
    tid: Tid,
    open: OpenId,
    offset: Option<u64>,
    buffer: &Buffer,
    from: usize,
) -> Result<usize, IoError> {
    let file = kernel.state.files.open_file(open);
    let (inode, open_flags) = (file.inode, file.flags);
    match &kernel.state.files.inode(inode).node {
        Node::Directory(_) => Err(Errno::EISDIR.into()),
        Node::File(_) => write_file(kernel, tid, open, offset, buffer, from),
        Node::Text(_) => {
            // Settings of a kernel that we do not have: taken and forgotten.
            Ok(buffer.len() - from)
        }
        Node::Proc(file) => {
            let file = *file;
            let bytes = buffer.get(kernel, from, CHUNK)?;
            procfs::write(kernel, file, &bytes)?;
            Ok(bytes.len())
        }
        Node::Device(Device::Full) => Err(Errno::ENOSPC.into()),
        Node::Device(_) => Ok(buffer.len() - from),
        Node::Output(descriptor) => {
            let descriptor = *descriptor;
            write_output(kernel, tid, descriptor, buffer, from)
        }
        Node::Pipe(_) => {
            let packets = pipe::is_packet_mode(open_flags);
            write_pipe(kernel, inode, packets, buffer, from)
        }
        Node::Socket(_) => socket::write(kernel, tid, inode, buffer, from),
        Node::Event(_) => event::write(kernel, inode, buffer),
        Node::Symlink(_)
        | Node::ProcLink(_)
        | Node::Epoll(_)
        | Node::Timer(_)
        | Node::Signal(_)
        | Node::Inotify(_)
        | Node::PosixQueue(_)
        | Node::Process(_)
        | Node::SocketName(_) => Err(Errno::EINVAL.into()),
    }
}

fn write_output(
    kernel: &mut Kernel,
    tid: Tid,
    descriptor: i32,
    buffer: &Buffer,
    from: usize,
) -> Result<usize, IoError> {
    if kernel.state.files.closed_outputs.contains(&descriptor) {
        return Err(Errno::EPIPE.into());
    }
    let mut at = from;
    while at < buffer.len() {
        let bytes = buffer.get(kernel, at, CHUNK)?;
        core::output(kernel, tid, descriptor, &bytes);
        at += bytes.len();
    }
    Ok(at - from)
}

fn write_file(
    kernel: &mut Kernel,
    tid: Tid,
    open: OpenId,
    offset: Option<u64>,
    buffer: &Buffer,
    from: usize,
) -> Result<usize, IoError> {
    let file = kernel.state.files.open_file(open);
    let (inode, appends) = (file.inode, file.flags & O_APPEND != 0);
    let start = if appends {
        file_size(kernel, inode)
    } else {
        offset.unwrap_or(file.offset)
    };
    let limit = core::file_size_max(kernel, tid).min(u64::MAX >> 1);
    if start >= limit && from < buffer.len() {
        return Err(Errno::EFBIG.into());
    }
    let mut done = 0;
    let mut problem = None;
    while from + done < buffer.len() {
        let at = start + to_u64(done);
        let room = to_usize(limit - at).min(CHUNK);
        if room == 0 {
            break;
        }
        let moved = buffer
            .get(kernel, from + done, room)
            .and_then(|bytes| store(kernel, inode, at, &bytes).map(|()| bytes.len()));
        match moved {
            Ok(count) => done += count,
            Err(errno) => {
                problem = Some(errno);
                break;
            }
        }
    }
    if let Some(errno) = problem.filter(|_| done == 0) {
        return Err(errno.into());
    }
    permission::note_written(kernel, tid, inode);
    if offset.is_none() {
        kernel.state.files.open_file_mut(open).offset = start + to_u64(done);
    }
    if done > 0 {
        inotify::report_self(kernel, inode, inotify::IN_MODIFY);
    }
    Ok(done)
}

/// The size of a regular file; zero for everything else.
pub(crate) fn file_size(kernel: &Kernel, inode: InodeId) -> u64 {
    kernel
        .state
        .files
        .inode(inode)
        .content()
        .map_or(0, Content::size)
}

/// Seals of a memfd that forbid a change.
const SEAL_SHRINK: u32 = 2;
const SEAL_GROW: u32 = 4;
const SEAL_WRITE: u32 = 0x18;

/// Writes to a regular file and notes the time.
pub(crate) fn store(
    kernel: &mut Kernel,
    inode: InodeId,
    offset: u64,
    bytes: &[u8],
) -> Result<(), Errno> {
    let at = kernel.file_time();
    let found = kernel.state.files.inode_mut(inode);
    let seals = found.seals.unwrap_or(0);
    let grows = offset + to_u64(bytes.len()) > found.content().map_or(0, Content::size);
    if seals & SEAL_WRITE != 0 || (seals & SEAL_GROW != 0 && grows) {
        return Err(Errno::EPERM);
    }
    found.times.modified = at;
    found.times.changed = at;
    let Node::File(content) = &mut found.node else {
        return Err(Errno::EINVAL);
    };
    content.write(&mut kernel.frames, &mut kernel.host, offset, bytes)
}

/// Sets the size of a regular file.
pub(crate) fn truncate(kernel: &mut Kernel, inode: InodeId, size: u64) -> Result<(), Errno> {
    if as_i64(size) < 0 {
        return Err(Errno::EINVAL);
    }
    let at = kernel.file_time();
    let found = kernel.state.files.inode_mut(inode);
    let seals = found.seals.unwrap_or(0);
    match &mut found.node {
        Node::File(content) => {
            let (shrinks, grows) = (size < content.size(), size > content.size());
            if (seals & SEAL_SHRINK != 0 && shrinks) || (seals & SEAL_GROW != 0 && grows) {
                return Err(Errno::EPERM);
            }
            content.truncate(&mut kernel.frames, &mut kernel.host, size)?;
            found.times.modified = at;
            found.times.changed = at;
            let object = raddle_mem::ObjectId(found.number);
            if shrinks {
                mm::drop_object_pages(kernel, object, raddle_mem::PageNo::count_for(size));
            }
            inotify::report_self(kernel, inode, inotify::IN_MODIFY);
            Ok(())
        }
        Node::Directory(_) => Err(Errno::EISDIR),
        _ => Err(Errno::EINVAL),
    }
}

fn write_pipe(
    kernel: &mut Kernel,
    inode: InodeId,
    as_packets: bool,
    buffer: &Buffer,
    from: usize,
) -> Result<usize, IoError> {
    let Node::Pipe(pipe) = &kernel.state.files.inode(inode).node else {
        return Err(Errno::EINVAL.into());
    };
    if !pipe::has_end(&kernel.state.files, inode, false) {
        return Err(Errno::EPIPE.into());
    }
    let wanted = buffer.len() - from;
    let count = pipe.writable(wanted);
    if wanted == 0 {
        return Ok(0);
    }
    if count == 0 {
        return Err(IoError::WouldBlock);
    }
    let bytes = buffer.get(kernel, from, count)?;
    if let Node::Pipe(pipe) = &mut kernel.state.files.inode_mut(inode).node {
        pipe.push(&mut kernel.frames, &bytes, as_packets)?;
    }
    ready::notify(kernel, inode, POLLIN);
    Ok(bytes.len())
}
