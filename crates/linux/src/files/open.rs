//! Open files: what descriptors refer to. Opening, closing, and the end of an inode.

use std::sync::Arc;

use super::flags;
use super::inode::{Inode, InodeId, Name, Node};
use super::table::Fd;
use super::{core, epoll, inotify, lock, pipe, posix_queue, socket};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::thread::Tid;

/// Index of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenId(pub(crate) u32);

/// An open file description.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    pub(crate) inode: InodeId,
    /// Access mode and status flags.
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    /// Descriptors and messages in flight that refer to it.
    pub(crate) refs: u32,
    /// The path it was opened by, unless `place` knows better.
    pub(crate) path: Name,
    /// The directory entry it was opened by, as long as that exists; renames take it along.
    pub(crate) place: Option<(InodeId, Name)>,
    /// That entry has been removed.
    pub(crate) is_deleted: bool,
    /// The entries that `getdents64` hands out, as of the last rewind.
    pub(crate) listing: Option<Arc<[Listed]>>,
    /// `F_SETOWN`.
    pub(crate) owner: i32,
    /// `F_SETSIG`.
    pub(crate) signal: i32,
}

/// One directory entry as `getdents64` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: Name,
    pub(crate) number: u64,
    pub(crate) kind: u8,
}

impl OpenFile {
    pub(crate) fn can_read(&self) -> bool {
        self.flags & (flags::O_PATH | flags::O_WRONLY) == 0
    }

    pub(crate) fn can_write(&self) -> bool {
        self.flags & flags::O_PATH == 0 && self.flags & flags::O_ACCMODE != 0
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        self.flags & flags::O_NONBLOCK != 0
    }
}

/// Opens an inode: one open file with one reference for the caller.
pub(crate) fn create(kernel: &mut Kernel, inode: InodeId, open_flags: u32, path: Name) -> OpenId {
    let kept = open_flags
        & !(flags::O_CREAT | flags::O_EXCL | flags::O_TRUNC | flags::O_CLOEXEC | (1 << 8));
    let files = &mut kernel.state.files;
    files.inode_mut(inode).holders += 1;
    if kept & flags::O_PATH == 0 {
        pipe::opened(files.inode_mut(inode), kept);
    }
    OpenId(files.opens.insert(OpenFile {
        inode,
        flags: kept,
        offset: 0,
        refs: 1,
        path,
        place: None,
        is_deleted: false,
        listing: None,
        owner: 0,
        signal: 0,
    }))
}

/// An entry was removed: files opened by it keep the path it had.
pub(crate) fn entry_removed(kernel: &mut Kernel, inode: InodeId, parent: InodeId, name: &[u8]) {
    let path = kernel.state.files.path_in(parent, name);
    for open in opened_by(kernel, inode, parent, name) {
        let file = kernel.state.files.open_file_mut(open);
        file.path = Name::from(&path[..]);
        file.place = None;
        file.is_deleted = true;
    }
}

/// An entry was renamed: files opened by it show the new path.
pub(crate) fn entry_moved(
    kernel: &mut Kernel,
    inode: InodeId,
    from: (InodeId, &Name),
    to: (InodeId, &Name),
) {
    for open in opened_by(kernel, inode, from.0, from.1) {
        kernel.state.files.open_file_mut(open).place = Some((to.0, to.1.clone()));
    }
}

fn opened_by(kernel: &Kernel, inode: InodeId, parent: InodeId, name: &[u8]) -> Vec<OpenId> {
    let is_it = |file: &OpenFile| {
        file.inode == inode
            && file
                .place
                .as_ref()
                .is_some_and(|(directory, own)| *directory == parent && **own == *name)
    };
    kernel
        .state
        .files
        .opens
        .iter()
        .filter(|(_, file)| is_it(file))
        .map(|(id, _)| OpenId(id))
        .collect()
}

/// An inode without a name.
pub(crate) fn create_anonymous_inode(kernel: &mut Kernel, mode: u32, node: Node) -> InodeId {
    let at = kernel.file_time();
    let files = &mut kernel.state.files;
    let number = files.anonymous_number();
    let mut inode = Inode::new(number, mode, at, node);
    inode.links = 0;
    files.add_inode(inode)
}

/// An inode without a name belongs to the thread that made it.
pub(crate) fn give_to(kernel: &mut Kernel, inode: InodeId, tid: Tid) {
    let who = kernel.credentials(tid);
    let owner = (who.users.file, who.groups.file);
    let inode = kernel.state.files.inode_mut(inode);
    (inode.uid, inode.gid) = owner;
}

/// Makes an open file the process's lowest free descriptor; on failure the open file is closed.
pub(crate) fn install(
    kernel: &mut Kernel,
    tid: Tid,
    open: OpenId,
    close_on_exec: bool,
) -> Result<i32, Errno> {
    let table = kernel.process_of(tid).fds;
    let found = kernel.state.files.table(table).lowest_free(0);
    match found {
        Ok(fd) => {
            let entry = Fd {
                open,
                close_on_exec,
            };
            kernel.state.files.table_mut(table).set(fd, Some(entry));
            Ok(fd)
        }
        Err(errno) => {
            let pid = kernel.process_of(tid).pid;
            close(kernel, pid, open);
            Err(errno)
        }
    }
}

/// The open file behind a descriptor; `O_PATH` descriptors are not good for input and output.
pub(crate) fn lookup(kernel: &Kernel, tid: Tid, fd: i32) -> Result<OpenId, Errno> {
    let open = lookup_any(kernel, tid, fd)?;
    if kernel.state.files.open_file(open).flags & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    Ok(open)
}

/// The open file behind a descriptor, `O_PATH` included.
pub(crate) fn lookup_any(kernel: &Kernel, tid: Tid, fd: i32) -> Result<OpenId, Errno> {
    let table = kernel.process_of(tid).fds;
    Ok(kernel.state.files.table(table).get(fd)?.open)
}

/// Closes one descriptor of the thread's process.
pub(crate) fn close_fd(kernel: &mut Kernel, tid: Tid, fd: i32) -> Result<(), Errno> {
    let process = kernel.process_of(tid);
    let (table, pid) = (process.fds, process.pid);
    kernel.state.files.table(table).get(fd)?;
    if let Some(entry) = kernel.state.files.table_mut(table).set(fd, None) {
        close(kernel, pid, entry.open);
    }
    Ok(())
}

/// Gives up a descriptor's reference: record locks of the process go, the last reference ends the open file.
pub(crate) fn close(kernel: &mut Kernel, owner: Pid, open: OpenId) {
    let inode = kernel.state.files.open_file(open).inode;
    lock::release_process(kernel, owner, inode);
    posix_queue::closed(kernel, owner, inode);
    release(kernel, open);
}

/// Gives up a reference to an open file.
pub(crate) fn release(kernel: &mut Kernel, open: OpenId) {
    let file = kernel.state.files.open_file_mut(open);
    file.refs -= 1;
    if file.refs > 0 {
        return;
    }
    let (inode, open_flags) = (file.inode, file.flags);
    lock::release_open(kernel, open, inode);
    epoll::forget_open(kernel, open);
    kernel.state.files.opens.remove(open.0);
    if open_flags & flags::O_PATH == 0 {
        let mask = if open_flags & flags::O_ACCMODE == 0 {
            inotify::IN_CLOSE_NOWRITE
        } else {
            inotify::IN_CLOSE_WRITE
        };
        inotify::report_self(kernel, inode, mask);
        pipe::closed(kernel, inode, open_flags);
        socket::closed(kernel, inode);
    }
    release_inode(kernel, inode);
}

/// Gives up a hold on an inode.
pub(crate) fn release_inode(kernel: &mut Kernel, id: InodeId) {
    kernel.state.files.inode_mut(id).holders -= 1;
    free_if_unused(kernel, id);
}

/// Frees an inode that nothing names, holds or maps.
pub(crate) fn free_if_unused(kernel: &mut Kernel, id: InodeId) {
    let inode = kernel.state.files.inode(id);
    if inode.links > 0 || inode.holders > 0 {
        return;
    }
    if inode.was_mapped && core::is_mapped(kernel, inode.number) {
        let orphans = &mut kernel.state.files.orphans;
        if !orphans.contains(&id) {
            orphans.push(id);
        }
        return;
    }
    free(kernel, id);
}

fn free(kernel: &mut Kernel, id: InodeId) {
    inotify::forget_inode(kernel, id);
    let files = &mut kernel.state.files;
    let Some(mut inode) = files.inodes.remove(id.0) else {
        return;
    };
    Arc::make_mut(&mut files.by_number).remove(&inode.number);
    files.locks.forget(id);
    files.epolls.retain(|other| *other != id);
    files.watchers.retain(|other| *other != id);
    files.timers.retain(|other| *other != id);
    match &mut inode.node {
        Node::File(content) => content.clear(&mut kernel.frames),
        Node::Pipe(pipe) => pipe.clear(&mut kernel.frames),
        Node::Socket(socket) => socket::destroy(kernel, socket),
        _ => {}
    }
}

/// Frees the orphans that no address space maps any more. To be called after unmaps and exits.
pub(crate) fn collect_orphans(kernel: &mut Kernel) {
    let orphans = std::mem::take(&mut kernel.state.files.orphans);
    for id in orphans {
        free_if_unused(kernel, id);
    }
}
