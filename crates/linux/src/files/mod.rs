//! The file layer: inodes, descriptors, pipes, sockets, readiness.
//!
//! This is the small form that only knows host files; it is replaced by the whole one.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_mem::{FrameId, ObjectId, PAGE_SIZE};
use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::VirtualTime;

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::thread::Tid;

/// All guest-visible state of files, pipes and sockets.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    shared: BTreeMap<u64, BTreeMap<u64, FrameId>>,
    count: u64,
}

/// Host files pinned at first use.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {
    paths: Vec<Vec<u8>>,
    contents: Vec<Arc<[u8]>>,
    pages: BTreeMap<(u64, u64), FrameId>,
}

/// Index of a descriptor table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableId(pub(crate) u32);

/// Index of a file system context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FsId(pub(crate) u32);

/// A program file.
#[derive(Debug)]
pub(crate) struct ExecFile {
    pub(crate) object: ObjectId,
    pub(crate) size: u64,
    pub(crate) path: Vec<u8>,
}

/// What a descriptor gives to mmap.
#[derive(Debug)]
pub(crate) struct MapTarget {
    pub(crate) object: Option<ObjectId>,
    pub(crate) label: Arc<str>,
}

/// A page of a file or shared segment, with one reference for the caller; EIO beyond its end (SIGBUS).
pub(crate) fn object_page(
    kernel: &mut Kernel,
    object: ObjectId,
    page: u64,
) -> Result<FrameId, Errno> {
    if object.0 >= 1 << 32 {
        let pages = kernel.state.files.shared.entry(object.0).or_default();
        let frame = match pages.get(&page) {
            Some(frame) => *frame,
            None => {
                let frame = kernel.frames.alloc().map_err(|_| Errno::ENOMEM)?;
                pages.insert(page, frame);
                frame
            }
        };
        kernel.frames.retain(frame);
        return Ok(frame);
    }
    let key = (object.0, page);
    if let Some(frame) = kernel.host.pages.get(&key) {
        kernel.frames.retain(*frame);
        return Ok(*frame);
    }
    let content = &kernel.host.contents[to_usize(object.0)];
    let start = to_usize(page) * PAGE_SIZE;
    if start >= content.len() {
        return Err(Errno::EIO);
    }
    let end = (start + PAGE_SIZE).min(content.len());
    let frame = kernel
        .frames
        .alloc_pinned(&content[start..end])
        .map_err(|_| Errno::ENOMEM)?;
    kernel.host.pages.insert(key, frame);
    kernel.frames.retain(frame);
    Ok(frame)
}

/// Finds a program file.
pub(crate) fn open_for_exec(
    kernel: &mut Kernel,
    _tid: Tid,
    path: &[u8],
) -> Result<ExecFile, Errno> {
    use std::os::unix::ffi::OsStrExt;
    let host = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    let host = host.canonicalize().map_err(|_| Errno::ENOENT)?;
    let name = host.as_os_str().as_bytes().to_vec();
    if let Some(index) = kernel.host.paths.iter().position(|known| *known == name) {
        let size = to_u64(kernel.host.contents[index].len());
        return Ok(ExecFile {
            object: ObjectId(to_u64(index)),
            size,
            path: name,
        });
    }
    let content = std::fs::read(&host).map_err(|_| Errno::EACCES)?;
    let size = to_u64(content.len());
    kernel.host.paths.push(name.clone());
    kernel.host.contents.push(content.into());
    Ok(ExecFile {
        object: ObjectId(to_u64(kernel.host.paths.len() - 1)),
        size,
        path: name,
    })
}

/// Reads an object.
pub(crate) fn read_object(
    kernel: &mut Kernel,
    object: ObjectId,
    offset: u64,
    into: &mut [u8],
) -> Result<usize, Errno> {
    let content = &kernel.host.contents[to_usize(object.0)];
    let start = to_usize(offset).min(content.len());
    let count = into.len().min(content.len() - start);
    into[..count].copy_from_slice(&content[start..start + count]);
    Ok(count)
}

/// What mmap of a descriptor maps.
pub(crate) fn map_target(
    _kernel: &mut Kernel,
    _tid: Tid,
    _fd: i32,
    _prot: u64,
    _flags: u64,
) -> Result<MapTarget, Errno> {
    Err(Errno::EBADF)
}

/// A segment for MAP_SHARED | MAP_ANONYMOUS.
pub(crate) fn anonymous_object(kernel: &mut Kernel, _size: u64) -> Result<ObjectId, Errno> {
    kernel.state.files.count += 1;
    Ok(ObjectId((1 << 32) + kernel.state.files.count))
}

/// A table for a new process: a copy (fork) or the same one (CLONE_FILES).
pub(crate) fn fork_table(_kernel: &mut Kernel, table: TableId, _share: bool) -> TableId {
    table
}

/// A context for a new process: a copy (fork) or the same one (CLONE_FS).
pub(crate) fn fork_context(_kernel: &mut Kernel, context: FsId, _share: bool) -> FsId {
    context
}

/// Sets the soft limit of descriptors (RLIMIT_NOFILE).
pub(crate) fn set_limit(_kernel: &mut Kernel, _table: TableId, _limit: u64) {}

/// Closes what execve closes.
pub(crate) fn close_on_exec(_kernel: &mut Kernel, _pid: Pid) {}

/// Closes everything of a process that has ended.
pub(crate) fn release_process(_kernel: &mut Kernel, _pid: Pid) {}

/// The next moment at which a timerfd expires.
pub(crate) fn next_deadline(_state: &State) -> Option<VirtualTime> {
    None
}

/// Lets timerfds expire whose time has come.
pub(crate) fn timers_expired(_kernel: &mut Kernel) {}

/// Descriptors and directory of the first process.
pub(crate) fn first_process(
    _kernel: &mut Kernel,
    _setup: &crate::setup::Setup,
) -> Result<(TableId, FsId), Errno> {
    Ok((TableId(0), FsId(0)))
}

/// The file system of a new world.
pub(crate) fn new_state(_setup: &crate::setup::Setup) -> State {
    State::default()
}

/// Writes the overlay out.
pub(crate) fn export(_kernel: &mut Kernel, _to: &std::path::Path) -> std::io::Result<()> {
    Ok(())
}
