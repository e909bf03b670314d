//! Moving bytes between two files: sendfile, splice, tee, vmsplice, copy_file_range.

use raddle_stdx::width::{as_i64, to_u64};

use super::file_args::count;
use super::rw::{bounded, outcome, read_into, write_from};
use super::table::Entry;
use crate::call::{Call, SysResult, Trouble};
use crate::errno::Errno;
use crate::files::flags::{O_APPEND, POLLOUT};
use crate::files::inode::{InodeId, Node};
use crate::files::io::{self, Buffer, IoError};
use crate::files::open::OpenId;
use crate::files::ready;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("sendfile", sendfile),
    Entry::full("splice", splice),
    Entry::full("tee", tee),
    Entry::full("vmsplice", vmsplice),
    Entry::full("copy_file_range", copy_file_range),
];

const CHUNK: usize = 64 * 1024;
const NONBLOCK: u32 = 2;

/// Where to read or write: a position of the caller's, or the file's own.
struct Place {
    open: OpenId,
    inode: InodeId,
    /// The address of the caller's position, and its value.
    position: Option<(u64, u64)>,
}

impl Place {
    /// The open file in argument `fd` with the position at the address in argument `offset`.
    fn of(call: &mut Call<'_>, fd: usize, offset: usize) -> Result<Self, Errno> {
        let open = call.open_file(fd)?;
        let inode = call.kernel.state.files.open_file(open).inode;
        let addr = call.args[offset];
        let position = if addr == 0 {
            None
        } else {
            if !call.kernel.state.files.inode(inode).node.is_seekable() {
                return Err(Errno::ESPIPE);
            }
            let value = call.kernel.read_u64(call.tid, addr)?;
            if as_i64(value) < 0 {
                return Err(Errno::EINVAL);
            }
            Some((addr, value))
        };
        Ok(Self {
            open,
            inode,
            position,
        })
    }

    fn start(&self, call: &Call<'_>) -> u64 {
        self.position.map_or(
            call.kernel.state.files.open_file(self.open).offset,
            |(_, value)| value,
        )
    }

    /// Moves the position `moved` bytes on.
    fn advance(&mut self, call: &mut Call<'_>, moved: usize) -> Result<(), Errno> {
        match &mut self.position {
            Some((addr, value)) => {
                *value += to_u64(moved);
                call.write_words(*addr, &[*value])
            }
            None => {
                call.kernel.state.files.open_file_mut(self.open).offset += to_u64(moved);
                Ok(())
            }
        }
    }

    fn is_pipe(&self, call: &Call<'_>) -> bool {
        matches!(
            call.kernel.state.files.inode(self.inode).node,
            Node::Pipe(_)
        )
    }
}

fn check_access(call: &Call<'_>, from: OpenId, to: OpenId) -> Result<(), Errno> {
    let files = &call.kernel.state.files;
    if files.open_file(from).can_read() && files.open_file(to).can_write() {
        Ok(())
    } else {
        Err(Errno::EBADF)
    }
}

fn sendfile(call: &mut Call<'_>) -> SysResult {
    let mut from = Place::of(call, 1, 2)?;
    let to = call.open_file(0)?;
    check_access(call, from.open, to)?;
    if !matches!(
        call.kernel.state.files.inode(from.inode).node,
        Node::File(_) | Node::Text(_) | Node::Proc(_)
    ) {
        return Err(Errno::EINVAL.into());
    }
    if call.kernel.state.files.open_file(to).flags & O_APPEND != 0 {
        return Err(Errno::EINVAL.into());
    }
    let wanted = bounded(call.args[3]);
    let mut done = call.progress();
    while done < wanted {
        let mut chunk = vec![0; CHUNK.min(wanted - done)];
        let start = from.start(call);
        let available = io::fetch(call.kernel, from.inode, start, &mut chunk)?;
        if available == 0 {
            break;
        }
        chunk.truncate(available);
        match io::write(call.kernel, call.tid, to, None, &Buffer::Own(chunk), 0) {
            Ok(moved) => {
                from.advance(call, moved)?;
                done += moved;
            }
            Err(IoError::WouldBlock) => {
                if call.kernel.state.files.open_file(to).is_nonblocking() {
                    return outcome(done, Errno::EAGAIN.into());
                }
                call.keep_progress(done);
                return Err(call.block_on(call.int(0), to, None));
            }
            Err(IoError::Errno(errno)) => {
                let trouble = call.broken_pipe(errno, false);
                return outcome(done, trouble);
            }
        }
    }
    count(done)
}

fn copy_file_range(call: &mut Call<'_>) -> SysResult {
    let (one, other) = (call.inode(0)?, call.inode(2)?);
    let node = |inode: InodeId| &call.kernel.state.files.inode(inode).node;
    if node(one).is_directory() || node(other).is_directory() {
        return Err(Errno::EISDIR.into());
    }
    // Texts of /proc have no size; programs then read and write.
    if !matches!((node(one), node(other)), (Node::File(_), Node::File(_))) || call.word(5) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut from = Place::of(call, 0, 1)?;
    let mut to = Place::of(call, 2, 3)?;
    check_access(call, from.open, to.open)?;
    if call.kernel.state.files.open_file(to.open).flags & O_APPEND != 0 {
        return Err(Errno::EBADF.into());
    }
    let (source, target) = (from.start(call), to.start(call));
    let rest = io::file_size(call.kernel, from.inode).saturating_sub(source);
    let wanted = bounded(call.args[4].min(rest));
    let overlaps = source < target + to_u64(wanted) && target < source + to_u64(wanted);
    if from.inode == to.inode && overlaps {
        return Err(Errno::EINVAL.into());
    }
    let mut done = 0;
    while done < wanted {
        let mut chunk = vec![0; CHUNK.min(wanted - done)];
        let moved = io::fetch(call.kernel, from.inode, source + to_u64(done), &mut chunk)?;
        if moved == 0 {
            break;
        }
        io::store(
            call.kernel,
            to.inode,
            target + to_u64(done),
            &chunk[..moved],
        )?;
        done += moved;
    }
    from.advance(call, done)?;
    to.advance(call, done)?;
    count(done)
}

fn splice(call: &mut Call<'_>) -> SysResult {
    let mut from = Place::of(call, 0, 1)?;
    let mut to = Place::of(call, 2, 3)?;
    check_access(call, from.open, to.open)?;
    let max = bounded(call.args[4]);
    if max == 0 {
        return Ok(0);
    }
    match (from.is_pipe(call), to.is_pipe(call)) {
        (false, false) => Err(Errno::EINVAL.into()),
        (true, true) if from.inode == to.inode => Err(Errno::EINVAL.into()),
        (true, _) => splice_out(call, &from, &mut to, max),
        (false, true) => splice_in(call, &mut from, &to, max),
    }
}

/// Sleeps for one end of a splice, unless the caller or the file does not want to.
fn wait_for(call: &Call<'_>, fd: usize, open: OpenId) -> Trouble {
    let is_nonblocking = call.kernel.state.files.open_file(open).is_nonblocking();
    if call.word(5) & NONBLOCK != 0 || is_nonblocking {
        Errno::EAGAIN.into()
    } else {
        call.block_on(call.int(fd), open, None)
    }
}

/// From a pipe to anything.
fn splice_out(call: &mut Call<'_>, from: &Place, to: &mut Place, max: usize) -> SysResult {
    let Node::Pipe(pipe) = &call.kernel.state.files.inode(from.inode).node else {
        return Err(Errno::EINVAL.into());
    };
    if pipe.queue.is_empty() {
        return if pipe.writers == 0 {
            Ok(0)
        } else {
            Err(wait_for(call, 0, from.open))
        };
    }
    let bytes = pipe
        .queue
        .peek(&call.kernel.frames, 0, pipe.readable(max.min(CHUNK)));
    let offset = to.position.map(|(_, value)| value);
    let buffer = Buffer::Own(bytes);
    match io::write(call.kernel, call.tid, to.open, offset, &buffer, 0) {
        Ok(moved) => {
            if let Node::Pipe(pipe) = &mut call.kernel.state.files.inode_mut(from.inode).node {
                pipe.consume(&mut call.kernel.frames, moved);
            }
            ready::notify(call.kernel, from.inode, POLLOUT);
            if to.position.is_some() {
                to.advance(call, moved)?;
            }
            count(moved)
        }
        Err(IoError::WouldBlock) => Err(wait_for(call, 2, to.open)),
        Err(IoError::Errno(errno)) => Err(call.broken_pipe(errno, false)),
    }
}

/// From anything to a pipe.
fn splice_in(call: &mut Call<'_>, from: &mut Place, to: &Place, max: usize) -> SysResult {
    let Node::Pipe(pipe) = &call.kernel.state.files.inode(to.inode).node else {
        return Err(Errno::EINVAL.into());
    };
    if pipe.readers == 0 {
        return Err(call.broken_pipe(Errno::EPIPE, false));
    }
    let room = pipe.room().min(max).min(CHUNK);
    if room == 0 {
        return Err(wait_for(call, 2, to.open));
    }
    let mut buffer = Buffer::Own(Vec::new());
    let offset = from.position.map(|(_, value)| value);
    match io::read(call.kernel, call.tid, from.open, offset, &mut buffer, room) {
        Ok(0) => Ok(0),
        Ok(moved) => {
            if from.position.is_some() {
                from.advance(call, moved)?;
            }
            push_to_pipe(call, to.inode, &buffer)?;
            count(moved)
        }
        Err(IoError::WouldBlock) => Err(wait_for(call, 0, from.open)),
        Err(IoError::Errno(errno)) => Err(errno.into()),
    }
}

/// Appends bytes for which there is room.
fn push_to_pipe(call: &mut Call<'_>, inode: InodeId, buffer: &Buffer) -> Result<(), Errno> {
    let bytes = buffer.get(call.kernel, 0, buffer.len())?;
    if let Node::Pipe(pipe) = &mut call.kernel.state.files.inode_mut(inode).node {
        pipe.push(&mut call.kernel.frames, &bytes, false)?;
    }
    ready::notify(call.kernel, inode, crate::files::flags::POLLIN);
    Ok(())
}

fn tee(call: &mut Call<'_>) -> SysResult {
    let (from, to) = (call.open_file(0)?, call.open_file(1)?);
    check_access(call, from, to)?;
    let files = &call.kernel.state.files;
    let (source, target) = (files.open_file(from).inode, files.open_file(to).inode);
    let (Node::Pipe(pipe), Node::Pipe(sink)) =
        (&files.inode(source).node, &files.inode(target).node)
    else {
        return Err(Errno::EINVAL.into());
    };
    if source == target {
        return Err(Errno::EINVAL.into());
    }
    let no_wait = call.word(3) & NONBLOCK != 0;
    if sink.readers == 0 {
        return Err(call.broken_pipe(Errno::EPIPE, false));
    }
    let room = sink.room().min(bounded(call.args[2]));
    if pipe.queue.is_empty() && pipe.writers == 0 {
        return Ok(0);
    }
    if (pipe.queue.is_empty() || room == 0) && no_wait {
        return Err(Errno::EAGAIN.into());
    }
    if pipe.queue.is_empty() {
        return Err(call.block_on(call.int(0), from, None));
    }
    if room == 0 {
        return Err(call.block_on(call.int(1), to, None));
    }
    let bytes = pipe.queue.peek(&call.kernel.frames, 0, room);
    let moved = bytes.len();
    push_to_pipe(call, target, &Buffer::Own(bytes))?;
    count(moved)
}

fn vmsplice(call: &mut Call<'_>) -> SysResult {
    let open = call.open_file(0)?;
    let inode = call.inode(0)?;
    if !matches!(call.kernel.state.files.inode(inode).node, Node::Pipe(_)) {
        return Err(Errno::EBADF.into());
    }
    let buffer = call.vector(call.args[1], call.args[2])?;
    let no_wait = call.word(3) & NONBLOCK != 0;
    if call.kernel.state.files.open_file(open).can_write() {
        write_from(call, open, None, &buffer, no_wait)
    } else {
        read_into(call, open, None, buffer, no_wait)
    }
}
