//! Who may do what with a file (path_resolution(7), "Permissions").

use super::inode::{Inode, InodeId, Source};
use super::procfs::ProcDir;
use crate::credentials::{Capability, Credentials};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Kinds of access, as bits of a mode.
pub(crate) const EXECUTE: u32 = 1;
pub(crate) const WRITE: u32 = 2;
pub(crate) const READ: u32 = 4;

const STICKY: u32 = 0o1000;
pub(crate) const SET_USER: u32 = 0o4000;
pub(crate) const SET_GROUP: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

/// Whether a thread with these credentials may use an inode in all the ways of `wanted`.
pub(crate) fn may(who: &Credentials, inode: &Inode, wanted: u32) -> bool {
    let class = if who.users.file == inode.uid {
        inode.mode >> 6
    } else if who.is_in_group(inode.gid) {
        inode.mode >> 3
    } else {
        inode.mode
    };
    if wanted & !class & 7 == 0 {
        return true;
    }
    let is_directory = inode.node.is_directory();
    let is_executable = is_directory || inode.mode & 0o111 != 0;
    if who.has(Capability::DAC_OVERRIDE) && (wanted & EXECUTE == 0 || is_executable) {
        return true;
    }
    let searching = if is_directory { READ | EXECUTE } else { READ };
    who.has(Capability::DAC_READ_SEARCH) && wanted & !searching == 0
}

/// EACCES unless the thread may use the inode so.
pub(crate) fn check(kernel: &Kernel, tid: Tid, id: InodeId, wanted: u32) -> Result<(), Errno> {
    let inode = kernel.state.files.inode(id);
    if may(kernel.credentials(tid), inode, wanted) || is_own_list(kernel, tid, inode) {
        Ok(())
    } else {
        Err(Errno::EACCES)
    }
}

/// A process sees its own open files in /proc, also after it has given up the user that opened them.
fn is_own_list(kernel: &Kernel, tid: Tid, inode: &Inode) -> bool {
    let own = kernel.thread(tid).process;
    let source = inode.directory().map(|directory| &directory.source);
    matches!(
        source,
        Some(Source::Proc(ProcDir::Descriptors(pid) | ProcDir::DescriptorInfos(pid))) if *pid == own
    )
}

/// Whether the thread may make entries in a directory.
pub(crate) fn check_change(kernel: &Kernel, tid: Tid, directory: InodeId) -> Result<(), Errno> {
    check(kernel, tid, directory, WRITE | EXECUTE)
}

/// Whether the thread may remove an entry of a directory: a sticky one lets only owners.
pub(crate) fn check_remove(
    kernel: &Kernel,
    tid: Tid,
    directory: InodeId,
    entry: InodeId,
) -> Result<(), Errno> {
    check_change(kernel, tid, directory)?;
    let who = kernel.credentials(tid);
    let above = kernel.state.files.inode(directory);
    let is_free = above.mode & STICKY == 0
        || above.uid == who.users.file
        || who.owns(kernel.state.files.inode(entry));
    if is_free { Ok(()) } else { Err(Errno::EPERM) }
}

/// EPERM unless the inode is the thread's own.
pub(crate) fn check_owner(kernel: &Kernel, tid: Tid, id: InodeId) -> Result<(), Errno> {
    if kernel.credentials(tid).owns(kernel.state.files.inode(id)) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

/// Whether a change of content or owner takes the set-group-id bit: always of a program, else from strangers.
fn drops_set_group(who: &Credentials, inode: &Inode) -> bool {
    inode.mode & SET_GROUP != 0
        && (inode.mode & GROUP_EXECUTE != 0 || !may_keep_set_group(who, inode.gid))
}

/// Whether a file of this group may be given the set-group-id bit.
pub(crate) fn may_keep_set_group(who: &Credentials, group: u32) -> bool {
    who.is_in_group(group) || who.has(Capability::FSETID)
}

/// The mode of a file that has a new owner.
pub(crate) fn mode_after_chown(who: &Credentials, inode: &Inode) -> u32 {
    if inode.node.is_directory() {
        return inode.mode;
    }
    let taken = if drops_set_group(who, inode) {
        SET_USER | SET_GROUP
    } else {
        SET_USER
    };
    inode.mode & !taken
}

/// A file was written or cut: it is not trusted with ids any more, unless the writer may give them.
pub(crate) fn note_written(kernel: &mut Kernel, tid: Tid, id: InodeId) {
    let inode = kernel.state.files.inode(id);
    if inode.mode & (SET_USER | SET_GROUP) == 0 || inode.content().is_none() {
        return;
    }
    let who = kernel.credentials(tid);
    if who.has(Capability::FSETID) {
        return;
    }
    let mode = mode_after_chown(who, inode);
    kernel.state.files.inode_mut(id).mode = mode;
}

#[cfg(test)]
mod tests {
    use super::super::inode::{Node, Timestamp};
    use super::*;

    fn file(mode: u32, uid: u32, gid: u32) -> Inode {
        let mut inode = Inode::new(1, mode, Timestamp::EPOCH, Node::File(Default::default()));
        (inode.uid, inode.gid) = (uid, gid);
        inode
    }

    fn user(uid: u32, gid: u32, more: &[u32]) -> Credentials {
        let mut who = Credentials::root();
        (who.users.file, who.groups.file) = (uid, gid);
        (who.effective, who.permitted) = (0, 0);
        who.more_groups = more.into();
        who
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        // The owner may not read what everyone else may.
        let odd = file(0o044, 5, 6);
        assert!(!may(&user(5, 6, &[]), &odd, READ));
        assert!(may(&user(7, 6, &[]), &odd, READ));
        assert!(may(&user(7, 9, &[6]), &odd, READ));
        assert!(may(&user(7, 9, &[]), &odd, READ));
        assert!(!may(&user(7, 9, &[]), &odd, READ | WRITE));
    }

    #[test]
    fn the_superuser_executes_only_what_is_executable() {
        let root = Credentials::root();
        assert!(may(&root, &file(0, 5, 5), READ | WRITE));
        assert!(!may(&root, &file(0o644, 5, 5), EXECUTE));
        assert!(may(&root, &file(0o001, 5, 5), EXECUTE));
    }

    #[test]
    fn new_owners_get_no_set_id_bits() {
        let who = user(5, 6, &[]);
        assert_eq!(mode_after_chown(&who, &file(0o6755, 5, 6)), 0o755);
        // Without execution the bit means mandatory locking and stays for members of the group.
        assert_eq!(mode_after_chown(&who, &file(0o2644, 5, 6)), 0o2644);
        assert_eq!(mode_after_chown(&who, &file(0o2644, 5, 9)), 0o644);
    }
}
