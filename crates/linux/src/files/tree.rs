//! Changing directories: create, link, remove, rename.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::flags::NAME_MAX;
use super::inode::{Directory, Entry, Inode, InodeId, Name, Node, Source};
use super::listing::{listed_host, listed_known};
use super::open::{self, Listed};
use super::state::number_of_path;
use super::walk::{self, Last, Target};
use super::{inotify, permission, procfs};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Checks that the target is a free name in a directory where names can be made.
pub(crate) fn check_free(kernel: &Kernel, tid: Tid, target: &Target) -> Result<(), Errno> {
    if target.name.len() > NAME_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if target.inode.is_some() || target.last != Last::Name {
        return Err(Errno::EEXIST);
    }
    check_parent(kernel, target.parent)?;
    permission::check_change(kernel, tid, target.parent)
}

/// Checks that entries of this directory may be changed.
fn check_parent(kernel: &Kernel, parent: InodeId) -> Result<(), Errno> {
    let inode = kernel.state.files.inode(parent);
    let directory = inode.directory().ok_or(Errno::ENOTDIR)?;
    if matches!(directory.source, Source::Proc(_)) {
        return Err(Errno::EPERM);
    }
    if inode.links == 0 {
        return Err(Errno::ENOENT);
    }
    Ok(())
}

/// Makes a new entry. The target must be free.
pub(crate) fn create(
    kernel: &mut Kernel,
    tid: Tid,
    target: &Target,
    mode: u32,
    node: Node,
) -> Result<InodeId, Errno> {
    check_free(kernel, tid, target)?;
    let at = kernel.file_time();
    let who = Arc::clone(&kernel.thread(tid).credentials);
    let files = &mut kernel.state.files;
    let number = number_of_path(&files.path_in(target.parent, &target.name));
    let is_directory = node.is_directory();
    let mut inode =
        Inode::new(number, mode & 0o7777, at, node).owned_by((who.users.file, who.groups.file));
    if is_directory {
        inode.links = 2;
    }
    let parent = files.inode(target.parent);
    if parent.mode & 0o2000 != 0 {
        // A set-group-id directory hands its group on (inode(7)).
        inode.gid = parent.gid;
        if is_directory {
            inode.mode |= 0o2000;
        } else if inode.mode & 0o2010 == 0o2010 && !permission::may_keep_set_group(&who, inode.gid)
        {
            inode.mode &= !permission::SET_GROUP;
        }
    }
    let id = files.add_inode(inode);
    insert(kernel, target.parent, &target.name, id);
    if is_directory {
        kernel.state.files.inode_mut(target.parent).links += 1;
    }
    let directory_bit = if is_directory { inotify::IN_ISDIR } else { 0 };
    inotify::report(
        kernel,
        target.parent,
        inotify::IN_CREATE | directory_bit,
        &target.name,
        0,
    );
    Ok(id)
}

/// Makes an empty directory.
pub(crate) fn create_directory(
    kernel: &mut Kernel,
    tid: Tid,
    target: &Target,
    mode: u32,
) -> Result<InodeId, Errno> {
    let node = Node::Directory(Directory {
        parent: target.parent,
        name: target.name.clone(),
        entries: BTreeMap::new(),
        source: Source::Nothing,
    });
    create(kernel, tid, target, mode, node)
}

/// Gives an inode one more name.
pub(crate) fn link(
    kernel: &mut Kernel,
    tid: Tid,
    inode: InodeId,
    target: &Target,
) -> Result<(), Errno> {
    check_free(kernel, tid, target)?;
    if target.wants_directory {
        return Err(Errno::ENOENT);
    }
    let found = kernel.state.files.inode(inode);
    match &found.node {
        Node::Directory(_) => return Err(Errno::EPERM),
        Node::Text(_) | Node::Proc(_) | Node::ProcLink(_) => return Err(Errno::EXDEV),
        Node::File(_) | Node::Symlink(_) | Node::Device(_) | Node::SocketName(_) => {}
        _ if found.is_anonymous() => return Err(Errno::EXDEV),
        _ => {}
    }
    // A file that was made without a name may get one; one that lost its name may not.
    if found.links == 0 && !found.is_anonymous() {
        return Err(Errno::ENOENT);
    }
    let at = kernel.file_time();
    let linked = kernel.state.files.inode_mut(inode);
    linked.links += 1;
    linked.times.changed = at;
    insert(kernel, target.parent, &target.name, inode);
    inotify::report(kernel, target.parent, inotify::IN_CREATE, &target.name, 0);
    Ok(())
}

fn insert(kernel: &mut Kernel, parent: InodeId, name: &Name, inode: InodeId) {
    touch(kernel, parent);
    if let Some(directory) = kernel.state.files.inode_mut(parent).directory_mut() {
        directory
            .entries
            .insert(name.clone(), Entry::Present(inode));
    }
}

fn remove(kernel: &mut Kernel, parent: InodeId, name: &Name) {
    touch(kernel, parent);
    if let Some(directory) = kernel.state.files.inode_mut(parent).directory_mut() {
        if matches!(directory.source, Source::Nothing) {
            directory.entries.remove(name);
        } else {
            directory.entries.insert(name.clone(), Entry::Gone);
        }
    }
}

/// Notes that the entries of a directory changed.
fn touch(kernel: &mut Kernel, directory: InodeId) {
    let at = kernel.file_time();
    let times = &mut kernel.state.files.inode_mut(directory).times;
    times.modified = at;
    times.changed = at;
}

/// Removes a name of something that is no directory.
pub(crate) fn unlink(kernel: &mut Kernel, tid: Tid, target: &Target) -> Result<(), Errno> {
    match target.last {
        Last::Name => {}
        Last::Dot | Last::DotDot | Last::Root | Last::Magic => return Err(Errno::EISDIR),
    }
    let id = target.existing()?;
    check_parent(kernel, target.parent)?;
    permission::check_remove(kernel, tid, target.parent, id)?;
    if kernel.state.files.inode(id).node.is_directory() {
        return Err(Errno::EISDIR);
    }
    if target.wants_directory {
        return Err(Errno::ENOTDIR);
    }
    open::entry_removed(kernel, id, target.parent, &target.name);
    remove(kernel, target.parent, &target.name);
    inotify::report(kernel, target.parent, inotify::IN_DELETE, &target.name, 0);
    drop_link(kernel, id);
    Ok(())
}

fn drop_link(kernel: &mut Kernel, id: InodeId) {
    let at = kernel.file_time();
    let inode = kernel.state.files.inode_mut(id);
    inode.links -= 1;
    inode.times.changed = at;
    inotify::report_self(kernel, id, inotify::IN_ATTRIB);
    if kernel.state.files.inode(id).links == 0 {
        if kernel.state.files.inode(id).holders == 0 {
            inotify::report_deleted(kernel, id);
        }
        open::free_if_unused(kernel, id);
    }
}

/// Removes an empty directory.
pub(crate) fn remove_directory(
    kernel: &mut Kernel,
    tid: Tid,
    target: &Target,
) -> Result<(), Errno> {
    match target.last {
        Last::Name => {}
        Last::Dot => return Err(Errno::EINVAL),
        Last::DotDot => return Err(Errno::ENOTEMPTY),
        Last::Root | Last::Magic => return Err(Errno::EBUSY),
    }
    let id = target.existing()?;
    check_parent(kernel, target.parent)?;
    permission::check_remove(kernel, tid, target.parent, id)?;
    check_removable_directory(kernel, tid, id)?;
    open::entry_removed(kernel, id, target.parent, &target.name);
    remove(kernel, target.parent, &target.name);
    inotify::report(
        kernel,
        target.parent,
        inotify::IN_DELETE | inotify::IN_ISDIR,
        &target.name,
        0,
    );
    forget_directory(kernel, target.parent, id);
    Ok(())
}

fn check_removable_directory(kernel: &mut Kernel, tid: Tid, id: InodeId) -> Result<(), Errno> {
    let files = &kernel.state.files;
    let directory = files.inode(id).directory().ok_or(Errno::ENOTDIR)?;
    if matches!(directory.source, Source::Proc(_)) {
        return Err(Errno::EBUSY);
    }
    if !list(kernel, tid, id)?.is_empty() {
        return Err(Errno::ENOTEMPTY);
    }
    Ok(())
}

fn forget_directory(kernel: &mut Kernel, parent: InodeId, id: InodeId) {
    let files = &mut kernel.state.files;
    files.inode_mut(parent).links -= 1;
    let inode = files.inode_mut(id);
    inode.links = 0;
    if let Some(directory) = inode.directory_mut() {
        directory.source = Source::Nothing;
        directory.entries.clear();
    }
    inotify::report_deleted(kernel, id);
    open::free_if_unused(kernel, id);
}

/// `renameat2` flags.
pub(crate) const RENAME_NOREPLACE: u32 = 1;
pub(crate) const RENAME_EXCHANGE: u32 = 2;

/// Renames `from` to `to`, replacing what is there unless `flags` says otherwise.
pub(crate) fn rename(
    kernel: &mut Kernel,
    tid: Tid,
    from: &Target,
    to: &Target,
    flags: u32,
) -> Result<(), Errno> {
    if from.last != Last::Name {
        return Err(Errno::EBUSY);
    }
    if to.last != Last::Name {
        return Err(if flags & RENAME_NOREPLACE != 0 {
            Errno::EEXIST
        } else {
            Errno::EBUSY
        });
    }
    let moved = from.existing()?;
    if to.name.len() > NAME_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    check_parent(kernel, from.parent)?;
    check_parent(kernel, to.parent)?;
    if flags & RENAME_NOREPLACE != 0 && to.inode.is_some() {
        return Err(Errno::EEXIST);
    }
    let files = &kernel.state.files;
    let is_directory = files.inode(moved).node.is_directory();
    let wants_directory =
        from.wants_directory || (to.wants_directory && flags & RENAME_EXCHANGE == 0);
    if wants_directory && !is_directory {
        return Err(Errno::ENOTDIR);
    }
    if is_directory && is_inside(kernel, to.parent, moved) {
        return Err(Errno::EINVAL);
    }
    check_move(kernel, tid, (from.parent, moved), to)?;
    if flags & RENAME_EXCHANGE != 0 {
        if let Some(other) = to.inode {
            check_new_parent(kernel, tid, other, (to.parent, from.parent))?;
        }
        return exchange(kernel, from, to);
    }
    if let Some(replaced) = to.inode {
        if replaced == moved {
            return Ok(());
        }
        check_replace(kernel, tid, from, is_directory, replaced)?;
    }
    materialise(kernel, tid, moved)?;
    move_entry(kernel, from, to, moved, is_directory);
    Ok(())
}

/// Whether the thread may take an entry out of its directory and put it where `to` leads.
fn check_move(
    kernel: &Kernel,
    tid: Tid,
    (parent, moved): (InodeId, InodeId),
    to: &Target,
) -> Result<(), Errno> {
    permission::check_remove(kernel, tid, parent, moved)?;
    match to.inode {
        Some(replaced) => permission::check_remove(kernel, tid, to.parent, replaced)?,
        None => permission::check_change(kernel, tid, to.parent)?,
    }
    check_new_parent(kernel, tid, moved, (parent, to.parent))
}

/// A directory that gets another parent is itself written: its entry `..` changes.
fn check_new_parent(
    kernel: &Kernel,
    tid: Tid,
    id: InodeId,
    (old, new): (InodeId, InodeId),
) -> Result<(), Errno> {
    if old != new && kernel.state.files.inode(id).node.is_directory() {
        permission::check(kernel, tid, id, permission::WRITE)?;
    }
    Ok(())
}

fn check_replace(
    kernel: &mut Kernel,
    tid: Tid,
    from: &Target,
    is_directory: bool,
    replaced: InodeId,
) -> Result<(), Errno> {
    let replaces_directory = kernel.state.files.inode(replaced).node.is_directory();
    if replaces_directory && is_inside(kernel, from.parent, replaced) {
        return Err(Errno::ENOTEMPTY);
    }
    match (is_directory, replaces_directory) {
        (true, false) => Err(Errno::ENOTDIR),
        (false, true) => Err(Errno::EISDIR),
        (false, false) => Ok(()),
        (true, true) => check_removable_directory(kernel, tid, replaced),
    }
}

fn move_entry(kernel: &mut Kernel, from: &Target, to: &Target, moved: InodeId, is_directory: bool) {
    let at = kernel.file_time();
    if let Some(replaced) = to.inode {
        open::entry_removed(kernel, replaced, to.parent, &to.name);
    }
    remove(kernel, from.parent, &from.name);
    insert(kernel, to.parent, &to.name, moved);
    open::entry_moved(
        kernel,
        moved,
        (from.parent, &from.name),
        (to.parent, &to.name),
    );
    if let Some(replaced) = to.inode {
        if is_directory {
            forget_directory(kernel, to.parent, replaced);
        } else {
            drop_link(kernel, replaced);
        }
    }
    let files = &mut kernel.state.files;
    if is_directory && from.parent != to.parent {
        files.inode_mut(from.parent).links -= 1;
        files.inode_mut(to.parent).links += 1;
    }
    let inode = files.inode_mut(moved);
    inode.times.changed = at;
    if let Some(directory) = inode.directory_mut() {
        directory.parent = to.parent;
        directory.name = to.name.clone();
    }
    report_move(kernel, from, to, moved, is_directory);
}

fn report_move(
    kernel: &mut Kernel,
    from: &Target,
    to: &Target,
    moved: InodeId,
    is_directory: bool,
) {
    let bit = if is_directory { inotify::IN_ISDIR } else { 0 };
    kernel.state.files.rename_cookie += 1;
    let cookie = kernel.state.files.rename_cookie;
    inotify::report(
        kernel,
        from.parent,
        inotify::IN_MOVED_FROM | bit,
        &from.name,
        cookie,
    );
    inotify::report(
        kernel,
        to.parent,
        inotify::IN_MOVED_TO | bit,
        &to.name,
        cookie,
    );
    inotify::report_self(kernel, moved, inotify::IN_MOVE_SELF);
}

fn exchange(kernel: &mut Kernel, from: &Target, to: &Target) -> Result<(), Errno> {
    let (first, second) = (from.existing()?, to.existing()?);
    if kernel.state.files.inode(second).node.is_directory()
        && is_inside(kernel, from.parent, second)
    {
        return Err(Errno::EINVAL);
    }
    insert(kernel, from.parent, &from.name, second);
    insert(kernel, to.parent, &to.name, first);
    let (here, there) = ((from.parent, &from.name), (to.parent, &to.name));
    open::entry_moved(kernel, first, here, there);
    open::entry_moved(kernel, second, there, here);
    for (id, target, old) in [(first, to, from), (second, from, to)] {
        let files = &mut kernel.state.files;
        if let Some(directory) = files.inode_mut(id).directory_mut() {
            directory.parent = target.parent;
            directory.name = target.name.clone();
            files.inode_mut(old.parent).links -= 1;
            files.inode_mut(target.parent).links += 1;
        }
    }
    Ok(())
}

/// Whether `inner` is `outer` or lies below it.
fn is_inside(kernel: &Kernel, inner: InodeId, outer: InodeId) -> bool {
    let files = &kernel.state.files;
    let mut at = inner;
    loop {
        if at == outer {
            return true;
        }
        match files.inode(at).directory() {
            Some(directory) if at != files.root => at = directory.parent,
            _ => return false,
        }
    }
}

/// A host directory keeps its entries when it moves, because its source names the host path, not the guest's.
/// Only the numbers of entries first seen later depend on the new place; so see them all now.
fn materialise(kernel: &mut Kernel, tid: Tid, id: InodeId) -> Result<(), Errno> {
    let Some(directory) = kernel.state.files.inode(id).directory() else {
        return Ok(());
    };
    if !matches!(directory.source, Source::Host(_)) {
        return Ok(());
    }
    for listed in list(kernel, tid, id)? {
        walk::lookup(kernel, tid, id, &listed.name)?;
    }
    Ok(())
}

/// The entries of a directory, sorted, without the dots.
pub(crate) fn list(
    kernel: &mut Kernel,
    tid: Tid,
    directory: InodeId,
) -> Result<Vec<Listed>, Errno> {
    let found = kernel
        .state
        .files
        .inode(directory)
        .directory()
        .ok_or(Errno::ENOTDIR)?
        .clone();
    let mut names: BTreeSet<Name> = found
        .entries
        .iter()
        .filter(|(_, entry)| **entry != Entry::Gone)
        .map(|(name, _)| name.clone())
        .collect();
    let mut host_path = None;
    match &found.source {
        Source::Nothing => {}
        Source::Host(path) => {
            let listed = kernel.host.list(path);
            names.extend(
                listed
                    .iter()
                    .filter(|name| !found.entries.contains_key(*name))
                    .cloned(),
            );
            host_path = Some(path.clone());
        }
        Source::Proc(proc) => names.extend(procfs::names(kernel, tid, *proc)),
    }
    let mut listed = Vec::with_capacity(names.len());
    for name in names {
        let entry = match (found.entries.get(&name), &host_path) {
            (None, Some(path)) => listed_host(kernel, directory, path, &name),
            _ => listed_known(kernel, tid, directory, &name)?,
        };
        listed.extend(entry);
    }
    Ok(listed)
}
