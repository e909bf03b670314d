//! The file layer: inodes, descriptors, pipes, sockets, readiness.

use raddle_mem::{FrameId, ObjectId};

use crate::errno::Errno;
use crate::kernel::Kernel;

/// All guest-visible state of files, pipes and sockets.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {}

/// Host files pinned at first use.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {}

/// The descriptors of one process (shared by CLONE_FILES).
#[derive(Debug, Clone, Default)]
pub(crate) struct FdTable {}

/// Current directory, root and umask of one process (shared by CLONE_FS).
#[derive(Debug, Clone, Default)]
pub(crate) struct FsContext {}

/// A page of a file or shared segment, with one reference for the caller; EIO beyond its end (SIGBUS).
pub(crate) fn object_page(
    _kernel: &mut Kernel,
    _object: ObjectId,
    _page: u64,
) -> Result<FrameId, Errno> {
    Err(Errno::EIO)
}
