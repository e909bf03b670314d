//! Opening and closing: open, openat, openat2, creat, close, close_range, memfd_create.

use raddle_stdx::width::low_u32;

use super::file_args::descriptor;
use super::table::Entry;
use crate::call::{Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::files::device::Device;
use crate::files::flags::{
    AT_FDCWD, O_ACCMODE, O_APPEND, O_ASYNC, O_CLOEXEC, O_CREAT, O_DIRECT, O_DIRECTORY, O_DSYNC,
    O_EXCL, O_LARGEFILE, O_NOATIME, O_NOFOLLOW, O_NONBLOCK, O_PATH, O_RDWR, O_SYNC, O_TMPFILE,
    O_TRUNC, O_WRONLY, POLLIN,
};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::pipe::{FifoWait, Pipe};
use crate::files::walk::{Last, Target, WalkOptions};
use crate::files::{inotify, io, open, permission, ready, table, tree};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("open", open_call),
    Entry::full("close", close),
    Entry::full("creat", creat),
    Entry::full("openat", openat),
    Entry::full("memfd_create", memfd_create),
    Entry::full("close_range", close_range),
    Entry::full("openat2", openat2),
];

/// What open calls have in common.
struct Request {
    flags: u32,
    mode: u32,
    options: WalkOptions,
}

impl Request {
    fn classic(flags: u32, mode: u32) -> Self {
        Self {
            flags,
            mode,
            options: WalkOptions::default(),
        }
    }
}

fn open_call(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let request = Request::classic(call.word(1), call.word(2));
    open_at(call, AT_FDCWD, &path, &request)
}

fn creat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let request = Request::classic(O_CREAT | O_WRONLY | O_TRUNC, call.word(1));
    open_at(call, AT_FDCWD, &path, &request)
}

fn openat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    let request = Request::classic(call.word(2), call.word(3));
    open_at(call, call.int(0), &path, &request)
}

fn openat2(call: &mut Call<'_>) -> SysResult {
    const NO_XDEV: u64 = 0x01;
    const NO_MAGICLINKS: u64 = 0x02;
    const NO_SYMLINKS: u64 = 0x04;
    const BENEATH: u64 = 0x08;
    const IN_ROOT: u64 = 0x10;
    const CACHED: u64 = 0x20;
    const KNOWN: u32 = O_ACCMODE
        | O_CREAT
        | O_EXCL
        | O_TRUNC
        | O_APPEND
        | O_NONBLOCK
        | O_DSYNC
        | O_ASYNC
        | O_DIRECT
        | O_LARGEFILE
        | O_DIRECTORY
        | O_NOFOLLOW
        | O_NOATIME
        | O_CLOEXEC
        | O_SYNC
        | O_PATH
        | O_TMPFILE
        | 0o400;
    let path = call.path(1)?;
    if call.args[3] < 24 {
        return Err(Errno::EINVAL.into());
    }
    if call.args[3] > 24 {
        return Err(Errno::E2BIG.into());
    }
    let [flags, mode, resolve] = call.read_words(call.args[2])?;
    let all = NO_XDEV | NO_MAGICLINKS | NO_SYMLINKS | BENEATH | IN_ROOT | CACHED;
    let makes = flags & u64::from(O_CREAT | (O_TMPFILE & !O_DIRECTORY)) != 0;
    let is_valid = resolve & !all == 0
        && resolve & (BENEATH | IN_ROOT) != (BENEATH | IN_ROOT)
        && flags & !u64::from(KNOWN) == 0
        && mode & !0o7777 == 0
        && (makes || mode == 0);
    if !is_valid {
        return Err(Errno::EINVAL.into());
    }
    let request = Request {
        flags: low_u32(flags),
        mode: low_u32(mode),
        options: WalkOptions {
            follow: true,
            no_symlinks: resolve & NO_SYMLINKS != 0,
            no_magic: resolve & NO_MAGICLINKS != 0,
            beneath: resolve & BENEATH != 0,
            in_root: resolve & IN_ROOT != 0,
            ..WalkOptions::default()
        },
    };
    open_at(call, call.int(0), &path, &request)
}

fn open_at(call: &mut Call<'_>, dirfd: i32, path: &[u8], request: &Request) -> SysResult {
    let flags = if request.flags & O_PATH != 0 {
        request.flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    } else {
        request.flags
    };
    let options = WalkOptions {
        follow: flags & O_NOFOLLOW == 0 && flags & (O_CREAT | O_EXCL) != O_CREAT | O_EXCL,
        for_create: flags & O_CREAT != 0,
        ..request.options
    };
    let mut target = call.resolve(dirfd, path, options)?;
    let exists = target.inode.is_some();
    if flags & O_TMPFILE == O_TMPFILE {
        return open_temporary(call, &target, flags, request.mode);
    }
    if flags & O_CREAT != 0 {
        if flags & O_DIRECTORY != 0 {
            return Err(Errno::EINVAL.into());
        }
        // A file cannot be made with the name of a directory, whatever is there.
        if target.wants_directory && target.last == Last::Name {
            return Err(Errno::EISDIR.into());
        }
        create(call, &mut target, flags, request.mode)?;
    }
    // A file that was just made is open to its maker whatever its mode.
    if exists && flags & O_PATH == 0 {
        check_permission(call, target.existing()?, flags)?;
    }
    open_existing(call, &target, flags)
}

/// Makes the file that O_CREAT asks for, unless it exists.
fn create(call: &mut Call<'_>, target: &mut Target, flags: u32, mode: u32) -> Result<(), Trouble> {
    if target.inode.is_some() {
        if flags & O_EXCL != 0 && !call.is_retry {
            return Err(Errno::EEXIST.into());
        }
        return Ok(());
    }
    if target.wants_directory {
        return Err(Errno::EISDIR.into());
    }
    let mode = masked(call, mode);
    let inode = tree::create(
        call.kernel,
        call.tid,
        target,
        mode,
        Node::File(Default::default()),
    )?;
    target.inode = Some(inode);
    Ok(())
}

/// Whether the caller may open the inode so. What cannot be opened at all has its own error.
fn check_permission(call: &Call<'_>, id: InodeId, flags: u32) -> Result<(), Errno> {
    let truncates = if flags & O_TRUNC != 0 {
        permission::WRITE
    } else {
        0
    };
    let wanted = truncates
        | match flags & O_ACCMODE {
            0 => permission::READ,
            O_WRONLY => permission::WRITE,
            _ => permission::READ | permission::WRITE,
        };
    match &call.kernel.state.files.inode(id).node {
        Node::Symlink(_) | Node::ProcLink(_) => return Ok(()),
        Node::Directory(_) if wanted & permission::WRITE != 0 => return Ok(()),
        _ => permission::check(call.kernel, call.tid, id, wanted)?,
    }
    if flags & O_NOATIME != 0 {
        permission::check_owner(call.kernel, call.tid, id)?;
    }
    Ok(())
}

/// A mode without the bits of the caller's umask.
pub(super) fn masked(call: &Call<'_>, mode: u32) -> u32 {
    let context = call.kernel.process_of(call.tid).fs;
    mode & 0o7777 & !call.kernel.state.files.context(context).umask
}

fn open_existing(call: &mut Call<'_>, target: &Target, flags: u32) -> SysResult {
    let id = target.existing()?;
    let inode = call.kernel.state.files.inode(id);
    let writes = flags & O_ACCMODE != 0 && flags & O_PATH == 0;
    let is_path = flags & O_PATH != 0;
    match &inode.node {
        Node::Directory(_) if writes || flags & (O_CREAT | O_TRUNC) != 0 => {
            return Err(Errno::EISDIR.into());
        }
        Node::Directory(_) => {}
        _ if flags & O_DIRECTORY != 0 || (target.wants_directory && target.last == Last::Name) => {
            return Err(Errno::ENOTDIR.into());
        }
        Node::Symlink(_) | Node::ProcLink(_) if !is_path => return Err(Errno::ELOOP.into()),
        Node::SocketName(_) | Node::Socket(_) if !is_path => return Err(Errno::ENXIO.into()),
        Node::Device(Device::Terminal) if !is_path => return Err(Errno::ENXIO.into()),
        Node::Event(_) | Node::Timer(_) | Node::Signal(_) | Node::Epoll(_) | Node::Inotify(_)
            if !is_path =>
        {
            return Err(Errno::ENXIO.into());
        }
        Node::Pipe(_) if !is_path => return open_fifo(call, target, id, flags),
        Node::File(content) if !is_path => {
            if let Some(file) = content.host_file() {
                call.kernel.host.check_readable(file)?;
            }
        }
        _ => {}
    }
    if flags & O_TRUNC != 0 && !is_path && call.kernel.state.files.inode(id).content().is_some() {
        io::truncate(call.kernel, id, 0)?;
        permission::note_written(call.kernel, call.tid, id);
    }
    finish(call, target, id, flags)
}

fn finish(call: &mut Call<'_>, target: &Target, id: InodeId, flags: u32) -> SysResult {
    let path = target.path(call.kernel);
    let open = open::create(call.kernel, id, flags, path);
    if target.last == Last::Name {
        let place = (target.parent, target.name.clone());
        call.kernel.state.files.open_file_mut(open).place = Some(place);
    }
    if flags & O_PATH == 0 {
        inotify::report_self(call.kernel, id, inotify::IN_OPEN);
    }
    descriptor(open::install(
        call.kernel,
        call.tid,
        open,
        flags & O_CLOEXEC != 0,
    )?)
}

/// Opening one end of a FIFO waits for the other end (fifo(7)).
fn open_fifo(call: &mut Call<'_>, target: &Target, id: InodeId, flags: u32) -> SysResult {
    let Node::Pipe(pipe) = &call.kernel.state.files.inode(id).node else {
        return Err(Errno::ENXIO.into());
    };
    let mode = flags & O_ACCMODE;
    let is_anonymous = call.kernel.state.files.inode(id).links == 0;
    let partner_is_there = has_partner(call, id, pipe, mode);
    if !partner_is_there && !is_anonymous && flags & O_NONBLOCK == 0 {
        return wait_for_partner(call, id, mode);
    }
    if mode == O_WRONLY && !partner_is_there && flags & O_NONBLOCK != 0 {
        return Err(Errno::ENXIO.into());
    }
    call.kernel.state.files.fifo_waits.remove(&call.tid);
    let result = finish(call, target, id, flags);
    ready::notify(call.kernel, id, POLLIN);
    result
}

/// Whether a context has the other end open, waits to open it, or has opened it since this call began to wait.
fn has_partner(call: &Call<'_>, id: InodeId, pipe: &Pipe, mode: u32) -> bool {
    let files = &call.kernel.state.files;
    let (open, opens) = match mode {
        O_RDWR => return true,
        O_WRONLY => (pipe.readers, pipe.reader_opens),
        _ => (pipe.writers, pipe.writer_opens),
    };
    let wait = files.fifo_waits.get(&call.tid).filter(|_| call.is_retry);
    let came_since = wait.is_some_and(|wait| wait.inode == id && wait.partner_opens < opens);
    let waits = files
        .fifo_waits
        .values()
        .any(|wait| wait.inode == id && (wait.mode == O_WRONLY) != (mode == O_WRONLY));
    open > 0 || came_since || waits
}

fn wait_for_partner(call: &mut Call<'_>, id: InodeId, mode: u32) -> SysResult {
    let files = &mut call.kernel.state.files;
    if let Node::Pipe(pipe) = &files.inode(id).node {
        let partner_opens = if mode == O_WRONLY {
            pipe.reader_opens
        } else {
            pipe.writer_opens
        };
        files.fifo_waits.entry(call.tid).or_insert(FifoWait {
            inode: id,
            mode,
            partner_opens,
        });
    }
    Err(call.block(
        Vec::new(),
        vec![WaitKey::Object(id.0)],
        None,
        OnSignal::Restart,
    ))
}

fn open_temporary(call: &mut Call<'_>, target: &Target, flags: u32, mode: u32) -> SysResult {
    if flags & O_ACCMODE == 0 {
        return Err(Errno::EINVAL.into());
    }
    let directory = target.existing()?;
    if !call.kernel.state.files.inode(directory).node.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    permission::check_change(call.kernel, call.tid, directory)?;
    let mode = masked(call, mode);
    let inode = open::create_anonymous_inode(call.kernel, mode, Node::File(Default::default()));
    open::give_to(call.kernel, inode, call.tid);
    let number = call.kernel.state.files.inode(inode).number;
    let name = format!("#{number}");
    let path = Name::from(call.kernel.state.files.path_in(directory, name.as_bytes()));
    let open = open::create(call.kernel, inode, flags & !O_DIRECTORY, path);
    descriptor(open::install(
        call.kernel,
        call.tid,
        open,
        flags & O_CLOEXEC != 0,
    )?)
}

fn close(call: &mut Call<'_>) -> SysResult {
    open::close_fd(call.kernel, call.tid, call.int(0))?;
    Ok(0)
}

fn close_range(call: &mut Call<'_>) -> SysResult {
    const UNSHARE: u32 = 2;
    const CLOEXEC: u32 = 4;
    let (first, last, flags) = (call.word(0), call.word(1), call.word(2));
    if first > last || flags & !(UNSHARE | CLOEXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let shared = call.kernel.process_of(call.tid).fds;
    if flags & UNSHARE != 0 && table::is_shared(call.kernel, shared) {
        let pid = call.kernel.process_of(call.tid).pid;
        let own = table::fork_table(call.kernel, shared, false);
        table::release_table(call.kernel, pid, shared);
        call.kernel.process_of_mut(call.tid).fds = own;
    }
    let table = call.kernel.process_of(call.tid).fds;
    for index in table::bounded_range(call.kernel.state.files.table(table), first, last) {
        let Ok(fd) = i32::try_from(index) else { break };
        let Ok(entry) = call.kernel.state.files.table(table).get(fd) else {
            continue;
        };
        if flags & CLOEXEC != 0 {
            let marked = table::Fd {
                close_on_exec: true,
                ..entry
            };
            call.kernel
                .state
                .files
                .table_mut(table)
                .set(fd, Some(marked));
        } else {
            open::close_fd(call.kernel, call.tid, fd)?;
        }
    }
    Ok(0)
}

fn memfd_create(call: &mut Call<'_>) -> SysResult {
    const CLOEXEC: u32 = 1;
    const ALLOW_SEALING: u32 = 2;
    const KNOWN: u32 = CLOEXEC | ALLOW_SEALING | 0x18;
    let flags = call.word(1);
    if flags & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = call
        .kernel
        .read_string(call.tid, call.args[0], 249)
        .map_err(|errno| match errno {
            Errno::ENAMETOOLONG => Errno::EINVAL,
            other => other,
        })?;
    let inode = open::create_anonymous_inode(call.kernel, 0o777, Node::File(Default::default()));
    open::give_to(call.kernel, inode, call.tid);
    let mut path = b"/memfd:".to_vec();
    path.extend_from_slice(&name);
    let open = open::create(call.kernel, inode, O_RDWR | O_LARGEFILE, Name::from(path));
    // Without permission to seal, the seal against further seals is set.
    call.kernel.state.files.inode_mut(inode).seals = Some(u32::from(flags & ALLOW_SEALING == 0));
    descriptor(open::install(
        call.kernel,
        call.tid,
        open,
        flags & CLOEXEC != 0,
    )?)
}
