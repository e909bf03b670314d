//! Descriptor tables and file system contexts, shared between processes by reference count.

use std::sync::Arc;

use raddle_stdx::width::{to_u64, to_usize};

use super::inode::InodeId;
use super::open::{self, OpenId};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;

/// Index of a descriptor table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableId(pub(crate) u32);

/// Index of a file system context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FsId(pub(crate) u32);

/// Soft limit of open descriptors that a world begins with.
pub(crate) const DESCRIPTORS_MAX: u32 = 1024;

/// One descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fd {
    pub(crate) open: OpenId,
    pub(crate) close_on_exec: bool,
}

/// The descriptors of one process (shared by CLONE_FILES).
#[derive(Debug, Clone)]
pub(crate) struct FdTable {
    slots: Arc<Vec<Option<Fd>>>,
    /// RLIMIT_NOFILE.
    pub(crate) limit: u32,
    refs: u32,
}

/// Current directory and umask of one process (shared by CLONE_FS).
#[derive(Debug, Clone)]
pub(crate) struct FsContext {
    pub(crate) cwd: InodeId,
    pub(crate) umask: u32,
    refs: u32,
}

impl FdTable {
    pub(crate) fn empty() -> Self {
        Self {
            slots: Arc::default(),
            limit: DESCRIPTORS_MAX,
            refs: 1,
        }
    }

    pub(crate) fn get(&self, fd: i32) -> Result<Fd, Errno> {
        usize::try_from(fd)
            .ok()
            .and_then(|index| *self.slots.get(index)?)
            .ok_or(Errno::EBADF)
    }

    /// The lowest free descriptor at or above `from`.
    pub(crate) fn lowest_free(&self, from: u32) -> Result<i32, Errno> {
        (from..self.limit)
            .find(|index| self.slots.get(*index as usize).is_none_or(Option::is_none))
            .and_then(|index| i32::try_from(index).ok())
            .ok_or(Errno::EMFILE)
    }

    /// Sets or clears a slot and gives what was there.
    pub(crate) fn set(&mut self, fd: i32, entry: Option<Fd>) -> Option<Fd> {
        let index = usize::try_from(fd).ok()?;
        let slots = Arc::make_mut(&mut self.slots);
        if slots.len() <= index {
            entry?;
            slots.resize(index + 1, None);
        }
        std::mem::replace(&mut slots[index], entry)
    }

    /// The open descriptors in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, Fd)> {
        (0..)
            .zip(self.slots.iter())
            .filter_map(|(index, slot)| Some((index, (*slot)?)))
    }
}

/// A table for a new process: a copy (fork) or the same one (CLONE_FILES).
pub(crate) fn fork_table(kernel: &mut Kernel, table: TableId, share: bool) -> TableId {
    let files = &mut kernel.state.files;
    if share {
        files.table_mut(table).refs += 1;
        return table;
    }
    let mut copy = files.table(table).clone();
    copy.refs = 1;
    for (_, fd) in copy.iter() {
        files.open_file_mut(fd.open).refs += 1;
    }
    TableId(files.tables.insert(copy))
}

/// Gives up one reference to a table; the last one closes every descriptor for process `owner`.
pub(crate) fn release_table(kernel: &mut Kernel, owner: Pid, table: TableId) {
    let files = &mut kernel.state.files;
    let shared = files.table_mut(table);
    shared.refs -= 1;
    if shared.refs > 0 {
        return;
    }
    let table = files.tables.remove(table.0).expect("the table was live");
    for (_, fd) in table.iter() {
        open::close(kernel, owner, fd.open);
    }
}

/// A context for a new process: a copy (fork) or the same one (CLONE_FS).
pub(crate) fn fork_context(kernel: &mut Kernel, context: FsId, share: bool) -> FsId {
    let files = &mut kernel.state.files;
    if share {
        files.context_mut(context).refs += 1;
        return context;
    }
    let mut copy = files.context(context).clone();
    copy.refs = 1;
    files.inode_mut(copy.cwd).holders += 1;
    FsId(files.contexts.insert(copy))
}

/// Gives up one reference to a context.
pub(crate) fn release_context(kernel: &mut Kernel, context: FsId) {
    let files = &mut kernel.state.files;
    let shared = files.context_mut(context);
    shared.refs -= 1;
    if shared.refs > 0 {
        return;
    }
    let context = files
        .contexts
        .remove(context.0)
        .expect("the context was live");
    open::release_inode(kernel, context.cwd);
}

/// A context for the first process.
pub(crate) fn first_context(kernel: &mut Kernel, cwd: InodeId) -> FsId {
    let files = &mut kernel.state.files;
    files.inode_mut(cwd).holders += 1;
    FsId(files.contexts.insert(FsContext {
        cwd,
        umask: 0o022,
        refs: 1,
    }))
}

/// Whether several processes use the table.
pub(crate) fn is_shared(kernel: &Kernel, table: TableId) -> bool {
    kernel.state.files.table(table).refs > 1
}

/// Sets the soft limit of descriptors (RLIMIT_NOFILE).
pub(crate) fn set_limit(kernel: &mut Kernel, table: TableId, limit: u64) {
    kernel.state.files.table_mut(table).limit =
        u32::try_from(limit.min(1 << 20)).unwrap_or(1 << 20);
}

/// The number of descriptor slots a range of descriptors covers, bounded by the table.
pub(crate) fn bounded_range(table: &FdTable, first: u32, last: u32) -> std::ops::Range<u32> {
    let end = to_u64(table.slots.len()).min(u64::from(last) + 1);
    first..raddle_stdx::width::low_u32(to_u64(to_usize(end)))
}
