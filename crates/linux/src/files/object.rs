//! What the rest of the kernel asks of files: programs, mappings, the start and the end of processes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use raddle_mem::{FrameId, ObjectId};
use raddle_stdx::width::to_u64;

use super::content::Content;
use super::flags;
use super::inode::{Entry, Inode, InodeId, Name, Node, Source};
use super::state::{Config, State};
use super::table::{self, Fd, FdTable, FsId, TableId};
use super::walk::{self, WalkOptions};
use super::{io, open, permission};
use crate::credentials::Privileges;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::setup::Setup;
use crate::thread::Tid;

/// A program file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecFile {
    pub(crate) object: ObjectId,
    pub(crate) size: u64,
    /// Its full path without symbolic links.
    pub(crate) path: Vec<u8>,
    /// Ids that its mode brings.
    pub(crate) privileges: Privileges,
}

/// Something that can be mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MapTarget {
    /// None for `/dev/zero`: the mapping is anonymous.
    pub(crate) object: Option<ObjectId>,
    /// What /proc/self/maps shows.
    pub(crate) label: Arc<str>,
}

/// The file system of a new world; nothing of the host is read yet.
pub(crate) fn new_state(setup: &Setup) -> State {
    State::new(Config {
        maps: setup
            .mappings
            .iter()
            .map(|mapping| (mapping.host.clone(), mapping.guest.clone()))
            .collect(),
        cpus: setup.cpus,
        memory_bytes: setup.memory_max,
    })
}

/// Makes descriptors 0 to 2 and the current directory of the first process, and mounts `--map` directories.
pub(crate) fn first_process(kernel: &mut Kernel, setup: &Setup) -> Result<(TableId, FsId), Errno> {
    mount_maps(kernel)?;
    let (root, node) = (kernel.state.files.root, kernel.host.node(Path::new("/")));
    kernel.state.files.inode_mut(root).links = node.links();
    let input = if setup.stdin.is_empty() {
        device_null(kernel)
    } else {
        let file = kernel.host.add_fixed(&mut kernel.frames, &setup.stdin)?;
        let content = Content::of_host(file, to_u64(setup.stdin.len()));
        open::create_anonymous_inode(kernel, 0o600, Node::File(content))
    };
    let stdin = open::create(kernel, input, 0, Name::from(&b"/dev/stdin"[..]));
    let mut fds = FdTable::empty();
    let entry = |open| {
        Some(Fd {
            open,
            close_on_exec: false,
        })
    };
    fds.set(0, entry(stdin));
    for descriptor in [1, 2] {
        let inode = open::create_anonymous_inode(kernel, 0o600, Node::Output(descriptor));
        let open = open::create(kernel, inode, flags::O_WRONLY, Name::from(&b"pipe:"[..]));
        fds.set(descriptor, entry(open));
    }
    let table = TableId(kernel.state.files.tables.insert(fds));
    let cwd = match find_fixed(kernel, &setup.directory) {
        // A sealed world has no directories but those that lead somewhere, and this one.
        Err(Errno::ENOENT) if kernel.host.is_sealed() => make_fixed(kernel, &setup.directory),
        found => found?,
    };
    let context = table::first_context(kernel, cwd);
    Ok((table, context))
}

fn device_null(kernel: &Kernel) -> InodeId {
    let files = &kernel.state.files;
    let entry = |directory: InodeId, name: &[u8]| match files
        .inode(directory)
        .directory()
        .and_then(|directory| directory.entries.get(name))
    {
        Some(Entry::Present(inode)) => *inode,
        _ => files.root,
    };
    entry(entry(files.root, b"dev"), b"null")
}

/// Finds a directory by an absolute path before any process exists; symbolic links are not followed.
fn find_fixed(kernel: &mut Kernel, path: &[u8]) -> Result<InodeId, Errno> {
    let mut at = kernel.state.files.root;
    for name in path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
    {
        at = walk::lookup(kernel, Tid(0), at, name)?.ok_or(Errno::ENOENT)?;
    }
    if !kernel.state.files.inode(at).node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    Ok(at)
}

/// Makes a directory and those above it before any process exists; what can be seen of the host shines through.
fn make_fixed(kernel: &mut Kernel, path: &[u8]) -> InodeId {
    let files = &mut kernel.state.files;
    let (parent, name) = files.fixed_parents(path);
    let source = Source::Host(Arc::from(Path::new(OsStr::from_bytes(path))));
    files.fixed_directory_with(parent, &name, source)
}

fn mount_maps(kernel: &mut Kernel) -> Result<(), Errno> {
    let config = Arc::clone(&kernel.state.files.config);
    for (host, guest) in &config.maps {
        mount(kernel, host, guest)?;
    }
    Ok(())
}

fn mount(kernel: &mut Kernel, host: &Path, guest: &[u8]) -> Result<(), Errno> {
    // The user may name a symbolic link here; what it leads to is what is mounted.
    let host = kernel.host.real_path(host).map_err(|_| Errno::ENOENT)?;
    let node = kernel.host.node(&host);
    let links = node.links();
    let (parent, name) = kernel.state.files.fixed_parents(guest);
    let owner = node.owner();
    let (mode, modified, node) =
        walk::node_of_host(parent, &host, &name, node)?.ok_or(Errno::ENOENT)?;
    let files = &mut kernel.state.files;
    let id = files.fixed_node(parent, &name, mode, node);
    let inode = files.inode_mut(id);
    (inode.uid, inode.gid) = owner;
    inode.times = super::inode::Times::all(modified);
    inode.links = links;
    Ok(())
}

/// Finds a program file and checks that it may be executed.
pub(crate) fn open_for_exec(kernel: &mut Kernel, tid: Tid, path: &[u8]) -> Result<ExecFile, Errno> {
    open_for_exec_at(kernel, tid, flags::AT_FDCWD, path, WalkOptions::FOLLOW)
}

/// As [`open_for_exec`], relative to a directory descriptor (`execveat`).
pub(crate) fn open_for_exec_at(
    kernel: &mut Kernel,
    tid: Tid,
    dirfd: i32,
    path: &[u8],
    options: WalkOptions,
) -> Result<ExecFile, Errno> {
    let target = walk::resolve(kernel, tid, dirfd, path, options)?;
    let id = target.existing()?;
    let path = target.path(kernel).to_vec();
    let inode = kernel.state.files.inode(id);
    let content = match &inode.node {
        Node::File(content) => content,
        Node::Symlink(_) => return Err(Errno::ELOOP),
        _ => return Err(Errno::EACCES),
    };
    if target.wants_directory {
        return Err(Errno::ENOTDIR);
    }
    if !permission::may(kernel.credentials(tid), inode, permission::EXECUTE) {
        return Err(Errno::EACCES);
    }
    let privileges = privileges_of(inode);
    let size = content.size();
    let object = ObjectId(inode.number);
    kernel.state.files.inode_mut(id).was_mapped = true;
    Ok(ExecFile {
        object,
        size,
        path,
        privileges,
    })
}

/// The ids that a program brings by its mode. A set-group-id bit without execution means something else.
fn privileges_of(inode: &Inode) -> Privileges {
    let has = |bits: u32| inode.mode & bits == bits;
    Privileges {
        user: has(permission::SET_USER).then_some(inode.uid),
        group: has(permission::SET_GROUP | 0o010).then_some(inode.gid),
    }
}

fn inode_of(kernel: &Kernel, object: ObjectId) -> Result<InodeId, Errno> {
    kernel
        .state
        .files
        .by_number
        .get(&object.0)
        .copied()
        .ok_or(Errno::EIO)
}

/// The size of an object, if it is there.
pub(crate) fn object_size(kernel: &Kernel, object: ObjectId) -> Option<u64> {
    inode_of(kernel, object)
        .ok()
        .map(|inode| io::file_size(kernel, inode))
}

/// Copies from an object; fewer bytes than asked for at its end.
pub(crate) fn read_object(
    kernel: &mut Kernel,
    object: ObjectId,
    offset: u64,
    into: &mut [u8],
) -> Result<usize, Errno> {
    let inode = inode_of(kernel, object)?;
    io::fetch(kernel, inode, offset, into)
}

/// A page of a file or shared segment, with one reference for the caller; EIO beyond its end (SIGBUS).
pub(crate) fn object_page(
    kernel: &mut Kernel,
    object: ObjectId,
    page: u64,
) -> Result<FrameId, Errno> {
    let inode = inode_of(kernel, object)?;
    match &mut kernel.state.files.inode_mut(inode).node {
        Node::File(content) => content.page_for_mapping(&mut kernel.frames, &mut kernel.host, page),
        _ => Err(Errno::EIO),
    }
}

/// The object behind a descriptor that is to be mapped with these `PROT_*` and `MAP_*` bits.
pub(crate) fn map_target(
    kernel: &mut Kernel,
    tid: Tid,
    fd: i32,
    prot: u64,
    map_flags: u64,
) -> Result<MapTarget, Errno> {
    const PROT_WRITE: u64 = 2;
    const MAP_SHARED: u64 = 1;
    let (shared, writable) = (map_flags & MAP_SHARED != 0, prot & PROT_WRITE != 0);
    let open = open::lookup(kernel, tid, fd)?;
    let file = kernel.state.files.open_file(open);
    if !file.can_read() || (shared && writable && !file.can_write()) {
        return Err(Errno::EACCES);
    }
    let (id, label) = (file.inode, super::procfs::open_path(kernel, open));
    let inode = kernel.state.files.inode_mut(id);
    match &mut inode.node {
        Node::File(content) => {
            if shared {
                content.set_mapped_shared();
            }
            inode.was_mapped = true;
            Ok(MapTarget {
                object: Some(ObjectId(inode.number)),
                label: String::from_utf8_lossy(&label).into(),
            })
        }
        Node::Device(super::device::Device::Zero) => Ok(MapTarget {
            object: None,
            label: Arc::from(""),
        }),
        _ => Err(Errno::ENODEV),
    }
}

/// A nameless object of zero pages, for shared anonymous mappings and SysV segments. It lives as long as some
/// address space maps it; `collect_orphans` frees it.
pub(crate) fn anonymous_object(kernel: &mut Kernel, size: u64) -> Result<ObjectId, Errno> {
    let mut content = Content::default();
    content.set_mapped_shared();
    content.truncate(&mut kernel.frames, &mut kernel.host, size)?;
    let id = open::create_anonymous_inode(kernel, 0o600, Node::File(content));
    let files = &mut kernel.state.files;
    files.orphans.push(id);
    let inode = files.inode_mut(id);
    inode.was_mapped = true;
    Ok(ObjectId(inode.number))
}

/// Closes the descriptors that a new program must not inherit. A shared table becomes the process's own first.
pub(crate) fn close_on_exec(kernel: &mut Kernel, pid: Pid) {
    let shared = kernel.process(pid).fds;
    if table::is_shared(kernel, shared) {
        let own = table::fork_table(kernel, shared, false);
        table::release_table(kernel, pid, shared);
        kernel.process_mut(pid).fds = own;
    }
    let table = kernel.process(pid).fds;
    let closing: Vec<(i32, Fd)> = kernel
        .state
        .files
        .table(table)
        .iter()
        .filter(|(_, fd)| fd.close_on_exec)
        .collect();
    for (fd, entry) in closing {
        kernel.state.files.table_mut(table).set(fd, None);
        open::close(kernel, pid, entry.open);
    }
}

/// A process ended: gives up its descriptors and its current directory.
pub(crate) fn release_process(kernel: &mut Kernel, pid: Pid) {
    let Some(process) = kernel.state.processes.get(&pid) else {
        return;
    };
    let (fds, fs) = (process.fds, process.fs);
    table::release_table(kernel, pid, fds);
    table::release_context(kernel, fs);
    // A thread that polls a pidfd of the process hears of its end.
    let watching: Vec<InodeId> = kernel
        .state
        .files
        .inodes
        .iter()
        .filter(|(_, inode)| matches!(inode.node, Node::Process(other) if other == pid))
        .map(|(id, _)| InodeId(id))
        .collect();
    for id in watching {
        super::ready::notify(kernel, id, flags::POLLIN);
    }
    open::collect_orphans(kernel);
}

/// What a call that a signal interrupts has already moved; such a call returns that count, not EINTR.
pub(crate) fn take_progress(kernel: &mut Kernel, tid: Tid) -> Option<u64> {
    kernel.state.files.fifo_waits.remove(&tid);
    kernel
        .state
        .files
        .progress
        .remove(&tid)
        .filter(|count| *count > 0)
}
