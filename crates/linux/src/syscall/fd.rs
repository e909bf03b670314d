//! Descriptors: dup, fcntl, flock, ioctl, pipe.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{as_i64, as_u64, low_u16, low_u32, to_u64, to_usize};
use raddle_world::WaitReason;

use super::file_args::descriptor;
use super::table::Entry;
use crate::call::{Block, Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::files::flags::{
    O_ACCMODE, O_APPEND, O_ASYNC, O_CLOEXEC, O_DIRECT, O_LARGEFILE, O_NOATIME, O_NONBLOCK, O_PATH,
    O_RDWR, O_WRONLY,
};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::lock::{self, Lock, Owner};
use crate::files::open::{self, OpenId};
use crate::files::pipe::Pipe;
use crate::files::table::Fd;
use crate::files::{io, socket};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial(
        "ioctl",
        ioctl,
        "FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, FIOASYNC and interface queries; terminals are ENOTTY",
    ),
    Entry::full("pipe", pipe),
    Entry::full("dup", dup),
    Entry::full("dup2", dup2),
    Entry::partial(
        "fcntl",
        fcntl,
        "leases and directory notification are refused; F_SETOWN and F_SETSIG are kept without effect",
    ),
    Entry::full("flock", flock),
    Entry::full("dup3", dup3),
    Entry::full("pipe2", pipe2),
];

fn dup(call: &mut Call<'_>) -> SysResult {
    duplicate(call, 0, false)
}

/// Duplicates the descriptor in argument 0 to the lowest one from `from` on.
fn duplicate(call: &mut Call<'_>, from: u32, close_on_exec: bool) -> SysResult {
    let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
    let table = call.kernel.process_of(call.tid).fds;
    let files = &mut call.kernel.state.files;
    let fd = files.table(table).lowest_free(from)?;
    files.open_file_mut(open).refs += 1;
    let entry = Fd {
        open,
        close_on_exec,
    };
    files.table_mut(table).set(fd, Some(entry));
    descriptor(fd)
}

fn dup2(call: &mut Call<'_>) -> SysResult {
    if call.int(0) == call.int(1) {
        open::lookup_any(call.kernel, call.tid, call.int(0))?;
        return descriptor(call.int(0));
    }
    duplicate_to(call, false)
}

fn dup3(call: &mut Call<'_>) -> SysResult {
    if call.int(0) == call.int(1) || call.word(2) & !O_CLOEXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    duplicate_to(call, call.word(2) & O_CLOEXEC != 0)
}

fn duplicate_to(call: &mut Call<'_>, close_on_exec: bool) -> SysResult {
    let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
    let table = call.kernel.process_of(call.tid).fds;
    let to = call.int(1);
    let limit = call.kernel.state.files.table(table).limit;
    if u32::try_from(to).map_or(true, |to| to >= limit) {
        return Err(Errno::EBADF.into());
    }
    let files = &mut call.kernel.state.files;
    files.open_file_mut(open).refs += 1;
    let entry = Fd {
        open,
        close_on_exec,
    };
    let old = files.table_mut(table).set(to, Some(entry));
    if let Some(old) = old {
        let pid = call.kernel.process_of(call.tid).pid;
        open::close(call.kernel, pid, old.open);
    }
    descriptor(to)
}

fn pipe(call: &mut Call<'_>) -> SysResult {
    make_pipe(call, 0)
}

fn pipe2(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(1);
    if flags & !(O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    make_pipe(call, flags)
}

fn make_pipe(call: &mut Call<'_>, flags: u32) -> SysResult {
    let inode = open::create_anonymous_inode(call.kernel, 0o600, Node::Pipe(Pipe::default()));
    open::give_to(call.kernel, inode, call.tid);
    let path = Name::from(&b"pipe:"[..]);
    let kept = flags & (O_NONBLOCK | O_DIRECT);
    let reader = open::create(call.kernel, inode, kept, path.clone());
    let writer = open::create(call.kernel, inode, kept | O_WRONLY, path);
    install_pair(call, reader, writer, flags & O_CLOEXEC != 0, call.args[0])
}

/// Gives two open files descriptors and stores their numbers at `addr`.
pub(super) fn install_pair(
    call: &mut Call<'_>,
    first: OpenId,
    second: OpenId,
    close_on_exec: bool,
    addr: u64,
) -> SysResult {
    let one = match open::install(call.kernel, call.tid, first, close_on_exec) {
        Ok(fd) => fd,
        Err(errno) => {
            open::release(call.kernel, second);
            return Err(errno.into());
        }
    };
    let two = match open::install(call.kernel, call.tid, second, close_on_exec) {
        Ok(fd) => fd,
        Err(errno) => {
            open::close_fd(call.kernel, call.tid, one)?;
            return Err(errno.into());
        }
    };
    let mut bytes = one.to_le_bytes().to_vec();
    bytes.extend_from_slice(&two.to_le_bytes());
    if let Err(errno) = call.write_bytes(addr, &bytes) {
        open::close_fd(call.kernel, call.tid, one)?;
        open::close_fd(call.kernel, call.tid, two)?;
        return Err(errno.into());
    }
    Ok(0)
}

mod command {
    //! Commands of fcntl(2).
    pub(super) const DUPFD: u32 = 0;
    pub(super) const GETFD: u32 = 1;
    pub(super) const SETFD: u32 = 2;
    pub(super) const GETFL: u32 = 3;
    pub(super) const SETFL: u32 = 4;
    pub(super) const GETLK: u32 = 5;
    pub(super) const SETLK: u32 = 6;
    pub(super) const SETLKW: u32 = 7;
    pub(super) const SETOWN: u32 = 8;
    pub(super) const GETOWN: u32 = 9;
    pub(super) const SETSIG: u32 = 10;
    pub(super) const GETSIG: u32 = 11;
    pub(super) const SETOWN_EX: u32 = 15;
    pub(super) const GETOWN_EX: u32 = 16;
    pub(super) const OFD_GETLK: u32 = 36;
    pub(super) const OFD_SETLK: u32 = 37;
    pub(super) const OFD_SETLKW: u32 = 38;
    pub(super) const DUPFD_CLOEXEC: u32 = 1030;
    pub(super) const SETPIPE_SZ: u32 = 1031;
    pub(super) const GETPIPE_SZ: u32 = 1032;
    pub(super) const ADD_SEALS: u32 = 1033;
    pub(super) const GET_SEALS: u32 = 1034;
}

fn fcntl(call: &mut Call<'_>) -> SysResult {
    use command as f;
    let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
    let wanted = call.word(1);
    match wanted {
        f::DUPFD | f::DUPFD_CLOEXEC => {
            let from = call.word(2);
            let table = call.kernel.process_of(call.tid).fds;
            if from >= call.kernel.state.files.table(table).limit {
                return Err(Errno::EINVAL.into());
            }
            return duplicate(call, from, wanted == f::DUPFD_CLOEXEC);
        }
        f::GETFD | f::SETFD => return descriptor_flags(call, wanted == f::SETFD),
        f::GETFL => return Ok(u64::from(visible_flags(call, open))),
        _ => {}
    }
    let file = call.kernel.state.files.open_file_mut(open);
    if file.flags & O_PATH != 0 {
        return Err(Errno::EBADF.into());
    }
    let inode = file.inode;
    match wanted {
        f::SETFL => {
            const CHANGEABLE: u32 = O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK;
            file.flags = (file.flags & !CHANGEABLE) | (low_u32(call.args[2]) & CHANGEABLE);
            Ok(0)
        }
        f::GETLK | f::SETLK | f::SETLKW => {
            let owner = Owner::Process(call.kernel.process_of(call.tid).pid);
            record_lock(call, open, inode, owner, wanted - f::GETLK)
        }
        f::OFD_GETLK | f::OFD_SETLK | f::OFD_SETLKW => {
            record_lock(call, open, inode, Owner::Open(open), wanted - f::OFD_GETLK)
        }
        f::SETOWN => {
            file.owner = raddle_stdx::width::low_i32(call.args[2]);
            Ok(0)
        }
        f::GETOWN => Ok(as_u64(i64::from(file.owner))),
        f::SETSIG => {
            file.signal = raddle_stdx::width::low_i32(call.args[2]);
            Ok(0)
        }
        f::GETSIG => Ok(as_u64(i64::from(file.signal))),
        f::SETOWN_EX => {
            let [words] = call.read_words::<1>(call.args[2])?;
            let file = call.kernel.state.files.open_file_mut(open);
            file.owner = raddle_stdx::width::low_i32(words >> 32);
            Ok(0)
        }
        f::GETOWN_EX => {
            let owner = file.owner;
            let mut bytes = 1_i32.to_le_bytes().to_vec();
            bytes.extend_from_slice(&owner.to_le_bytes());
            call.write_bytes(call.args[2], &bytes)?;
            Ok(0)
        }
        f::SETPIPE_SZ | f::GETPIPE_SZ => pipe_size(call, inode, wanted == f::SETPIPE_SZ),
        f::ADD_SEALS | f::GET_SEALS => seals(call, inode, wanted == f::ADD_SEALS),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// O_LARGEFILE is set by every 64-bit open and shown, but not by pipes and sockets.
fn visible_flags(call: &Call<'_>, open: OpenId) -> u32 {
    let file = call.kernel.state.files.open_file(open);
    let node = &call.kernel.state.files.inode(file.inode).node;
    if node.is_seekable() && file.flags & O_PATH == 0 {
        file.flags | O_LARGEFILE
    } else if matches!(node, Node::Socket(_)) {
        (file.flags & !O_ACCMODE) | O_RDWR
    } else {
        file.flags
    }
}

fn descriptor_flags(call: &mut Call<'_>, set: bool) -> SysResult {
    let table = call.kernel.process_of(call.tid).fds;
    let entry = call.kernel.state.files.table(table).get(call.int(0))?;
    if !set {
        return Ok(u64::from(entry.close_on_exec));
    }
    mark(call, call.args[2] & 1 != 0)
}

/// Sets or clears the close-on-exec flag of the descriptor in argument 0.
fn mark(call: &mut Call<'_>, close_on_exec: bool) -> SysResult {
    let fd = call.int(0);
    let table = call.kernel.process_of(call.tid).fds;
    let table = call.kernel.state.files.table_mut(table);
    let entry = table.get(fd)?;
    let marked = Fd {
        close_on_exec,
        ..entry
    };
    table.set(fd, Some(marked));
    Ok(0)
}

fn pipe_size(call: &mut Call<'_>, inode: InodeId, set: bool) -> SysResult {
    let wanted = to_usize(call.args[2] & 0xFFFF_FFFF);
    let Node::Pipe(pipe) = &mut call.kernel.state.files.inode_mut(inode).node else {
        return Err(Errno::EBADF.into());
    };
    if set {
        if wanted == 0 {
            return Err(Errno::EINVAL.into());
        }
        pipe.set_capacity(wanted)?;
    }
    Ok(to_u64(pipe.capacity()))
}

fn seals(call: &mut Call<'_>, inode: InodeId, add: bool) -> SysResult {
    const SEAL_SEAL: u32 = 1;
    const KNOWN: u32 = 0x1F;
    let wanted = low_u32(call.args[2]);
    let found = call.kernel.state.files.inode_mut(inode);
    let held = found.seals.ok_or(Errno::EINVAL)?;
    if !add {
        return Ok(u64::from(held));
    }
    if wanted & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    if held & SEAL_SEAL != 0 {
        return Err(Errno::EPERM.into());
    }
    found.seals = Some(held | wanted);
    Ok(0)
}

const READ_LOCK: u16 = 0;
const WRITE_LOCK: u16 = 1;
const UNLOCK: u16 = 2;

/// F_GETLK (0), F_SETLK (1) and F_SETLKW (2) for either kind of owner.
fn record_lock(
    call: &mut Call<'_>,
    open: OpenId,
    inode: InodeId,
    owner: Owner,
    action: u32,
) -> SysResult {
    let addr = call.args[2];
    let words: [u64; 4] = call.read_words(addr)?;
    let kind = low_u16(words[0]);
    let whence = low_u16(words[0] >> 16);
    let pid = low_u32(words[3]);
    if matches!(owner, Owner::Open(_)) && pid != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (start, end) = lock_range(call, open, inode, whence, words[1], words[2])?;
    let range = Lock {
        owner,
        exclusive: kind == WRITE_LOCK,
        start,
        end,
        pid: call.kernel.process_of(call.tid).pid,
    };
    if action == 0 {
        return get_lock(call, inode, &range, kind, words[0]);
    }
    let file = call.kernel.state.files.open_file(open);
    match kind {
        READ_LOCK if !file.can_read() => Err(Errno::EBADF.into()),
        WRITE_LOCK if !file.can_write() => Err(Errno::EBADF.into()),
        READ_LOCK | WRITE_LOCK => match lock::take(call.kernel, inode, range) {
            Ok(()) => Ok(0),
            Err(_) if action == 1 => Err(Errno::EAGAIN.into()),
            Err(held) => {
                if let Owner::Process(pid) = owner {
                    lock::wait_for(call.kernel, pid, &held)?;
                }
                Err(wait_for_lock(inode))
            }
        },
        UNLOCK => {
            lock::release(call.kernel, inode, &range);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn wait_for_lock(inode: InodeId) -> Trouble {
    Trouble::Block(Block {
        reason: WaitReason::FileLock,
        keys: vec![WaitKey::FileLock(u64::from(inode.0))],
        deadline: None,
        on_signal: OnSignal::Restart,
    })
}

/// The bytes a `struct flock` names.
fn lock_range(
    call: &Call<'_>,
    open: OpenId,
    inode: InodeId,
    whence: u16,
    start: u64,
    len: u64,
) -> Result<(u64, u64), Errno> {
    let base = match whence {
        0 => 0,
        1 => as_i64(call.kernel.state.files.open_file(open).offset),
        2 => as_i64(io::file_size(call.kernel, inode)),
        _ => return Err(Errno::EINVAL),
    };
    let start = base.checked_add(as_i64(start)).ok_or(Errno::EOVERFLOW)?;
    let len = as_i64(len);
    let (from, to) = if len < 0 {
        (start.checked_add(len).ok_or(Errno::EINVAL)?, start)
    } else if len == 0 {
        (start, i64::MAX)
    } else {
        (start, start.checked_add(len).ok_or(Errno::EOVERFLOW)?)
    };
    let from = u64::try_from(from).map_err(|_| Errno::EINVAL)?;
    let to = if to == i64::MAX { u64::MAX } else { as_u64(to) };
    Ok((from, to))
}

fn get_lock(
    call: &mut Call<'_>,
    inode: InodeId,
    wanted: &Lock,
    kind: u16,
    first_word: u64,
) -> SysResult {
    if kind > WRITE_LOCK {
        return Err(Errno::EINVAL.into());
    }
    let addr = call.args[2];
    let Some(held) = call.kernel.state.files.locks.conflict(inode, wanted) else {
        let word = (first_word & !0xFFFF) | u64::from(UNLOCK);
        call.write_words(addr, &[word])?;
        return Ok(0);
    };
    let kind = if held.exclusive {
        WRITE_LOCK
    } else {
        READ_LOCK
    };
    let len = if held.end == u64::MAX {
        0
    } else {
        held.end - held.start
    };
    let pid = match held.owner {
        Owner::Process(pid) => u64::from(pid.0),
        Owner::Open(_) | Owner::Flock(_) => u64::from(u32::MAX),
    };
    call.write_words(addr, &[u64::from(kind), held.start, len])?;
    call.kernel.write_user(
        call.tid,
        GuestAddr(addr).offset(24),
        &low_u32(pid).to_le_bytes(),
    )?;
    Ok(0)
}

fn flock(call: &mut Call<'_>) -> SysResult {
    const SHARED: u32 = 1;
    const EXCLUSIVE: u32 = 2;
    const NO_WAIT: u32 = 4;
    const UNLOCK: u32 = 8;
    let open = call.open_file(0)?;
    let inode = call.kernel.state.files.open_file(open).inode;
    let operation = call.word(1);
    let mut range = Lock {
        owner: Owner::Flock(open),
        exclusive: false,
        start: 0,
        end: u64::MAX,
        pid: call.kernel.process_of(call.tid).pid,
    };
    match operation & !NO_WAIT {
        UNLOCK => {
            lock::release(call.kernel, inode, &range);
            Ok(0)
        }
        kind @ (SHARED | EXCLUSIVE) => {
            range.exclusive = kind == EXCLUSIVE;
            match lock::take(call.kernel, inode, range) {
                Ok(()) => Ok(0),
                Err(_) if operation & NO_WAIT != 0 => Err(Errno::EAGAIN.into()),
                Err(_) => Err(wait_for_lock(inode)),
            }
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn ioctl(call: &mut Call<'_>) -> SysResult {
    const FIONREAD: u32 = 0x541B;
    const FIONBIO: u32 = 0x5421;
    const FIONCLEX: u32 = 0x5450;
    const FIOCLEX: u32 = 0x5451;
    const FIOASYNC: u32 = 0x5452;
    const FIOQSIZE: u32 = 0x5460;
    let open = call.open_file(0)?;
    match call.word(1) {
        FIOCLEX | FIONCLEX => mark(call, call.word(1) == FIOCLEX),
        FIONBIO | FIOASYNC => {
            let bit = if call.word(1) == FIONBIO {
                O_NONBLOCK
            } else {
                O_ASYNC
            };
            let on = call.kernel.read_u32(call.tid, call.args[2])? != 0;
            let file = call.kernel.state.files.open_file_mut(open);
            if on {
                file.flags |= bit;
            } else {
                file.flags &= !bit;
            }
            Ok(0)
        }
        FIONREAD => {
            let count = readable_bytes(call, open)?;
            call.write_bytes(call.args[2], &low_u32(to_u64(count)).to_le_bytes())?;
            Ok(0)
        }
        FIOQSIZE => {
            let inode = call.kernel.state.files.open_file(open).inode;
            let size = io::file_size(call.kernel, inode);
            call.write_words(call.args[2], &[size])?;
            Ok(0)
        }
        request => {
            if let Some(result) = socket::interface_ioctl(call, open, request) {
                return result;
            }
            Err(Errno::ENOTTY.into())
        }
    }
}

fn readable_bytes(call: &Call<'_>, open: OpenId) -> Result<usize, Errno> {
    let files = &call.kernel.state.files;
    let file = files.open_file(open);
    match &files.inode(file.inode).node {
        Node::File(content) => Ok(to_usize(content.size().saturating_sub(file.offset))),
        Node::Pipe(pipe) => Ok(pipe.queue.len()),
        Node::Socket(socket) => Ok(socket.readable_bytes()),
        Node::Inotify(inotify) => Ok(inotify.queued_bytes()),
        _ => Err(Errno::ENOTTY),
    }
}
