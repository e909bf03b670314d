//! Single entries of directories as a listing shows them.

use super::host::{self, HostNode};
use super::inode::{InodeId, Name};
use super::open::Listed;
use super::state::number_of_path;
use super::walk;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// An entry that is known, or made when it is looked up.
pub(super) fn listed_known(
    kernel: &mut Kernel,
    tid: Tid,
    directory: InodeId,
    name: &Name,
) -> Result<Option<Listed>, Errno> {
    Ok(walk::lookup(kernel, tid, directory, name)?.map(|id| {
        let inode = kernel.state.files.inode(id);
        Listed {
            name: name.clone(),
            number: inode.number,
            kind: inode.node.entry_type(),
        }
    }))
}

/// An entry of a host directory that has not been used yet; no inode is made for it.
pub(super) fn listed_host(
    kernel: &mut Kernel,
    directory: InodeId,
    path: &std::path::Path,
    name: &Name,
) -> Option<Listed> {
    let kind = match kernel.host.node(&host::join(path, name)) {
        HostNode::Absent => return None,
        HostNode::Denied => 0,
        HostNode::Directory { .. } => 4,
        HostNode::File { .. } => 8,
        HostNode::Symlink { .. } => 10,
        HostNode::Fifo { .. } => 1,
    };
    Some(Listed {
        number: number_of_path(&kernel.state.files.path_in(directory, name)),
        name: name.clone(),
        kind,
    })
}
