//! Shared memory segments.

use raddle_mem::{Backing, ObjectId, Vma};
use raddle_stdx::width::to_u64;

use super::permission::Permission;
use super::registry::Object;
use crate::files::{self, InodeId};
use crate::kernel::Kernel;

/// One segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) permission: Permission,
    pub(crate) size: u64,
    /// Its memory, held until it is removed; after that its mappings keep it.
    pub(crate) inode: InodeId,
    pub(crate) object: ObjectId,
    pub(crate) creator: u32,
    pub(crate) last: u32,
    /// Seconds since 1970.
    pub(crate) attached: u64,
    pub(crate) detached: u64,
    pub(crate) changed: u64,
    /// `SHM_LOCK`: without effect, but told.
    pub(crate) is_locked: bool,
    /// To go with the last attachment.
    pub(crate) is_removed: bool,
}

impl Object for Segment {
    fn permission(&self) -> &Permission {
        &self.permission
    }

    fn permission_mut(&mut self) -> &mut Permission {
        &mut self.permission
    }

    fn is_hidden(&self) -> bool {
        self.is_removed
    }
}

/// How often a segment is attached. An area that was split keeps one part with the first page.
pub(crate) fn attachments(kernel: &Kernel, object: ObjectId) -> u64 {
    let begins = |vma: &&Vma| matches!(vma.backing, Backing::Object { object: other, first_page: 0 } if other == object);
    let counts = kernel
        .state
        .spaces
        .values()
        .map(|space| space.map.vmas().iter().filter(begins).count());
    to_u64(counts.sum())
}

/// Forgets removed segments that are attached nowhere. Nothing but the calls of this family can tell whether they
/// still exist, so each of them begins with this.
pub(crate) fn sweep(kernel: &mut Kernel) {
    let gone: Vec<i32> = kernel
        .state
        .ipc
        .segments
        .iter()
        .filter(|(_, segment)| segment.is_removed && attachments(kernel, segment.object) == 0)
        .map(|(id, _)| id)
        .collect();
    for id in gone {
        kernel.state.ipc.segments.remove(id);
    }
    files::collect_orphans(kernel);
}
