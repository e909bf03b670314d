//! Attributes of files: stat and its kin, access, statfs, readlink.

use std::sync::Arc;

use raddle_mem::GuestAddr;
use raddle_stdx::width::to_usize;

use super::file_args::count;
use super::table::Entry;
use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::files::flags::{
    AT_EMPTY_PATH, AT_FDCWD, AT_NO_AUTOMOUNT, AT_REMOVEDIR, AT_STATX_SYNC_TYPE, AT_SYMLINK_NOFOLLOW,
};
use crate::files::inode::{InodeId, Node};
use crate::files::walk::WalkOptions;
use crate::files::{open, permission, procfs, stat};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("stat", stat_call),
    Entry::full("fstat", fstat),
    Entry::full("lstat", lstat),
    Entry::full("access", access),
    Entry::full("readlink", readlink),
    Entry::full("statfs", statfs),
    Entry::full("fstatfs", fstatfs),
    Entry::full("newfstatat", newfstatat),
    Entry::full("readlinkat", readlinkat),
    Entry::full("faccessat", faccessat),
    Entry::full("statx", statx),
    Entry::full("faccessat2", faccessat2),
];

fn put(call: &mut Call<'_>, inode: InodeId, at: usize) -> SysResult {
    let bytes = stat::of(&call.kernel.state.files, inode).encode();
    call.write_bytes(call.args[at], &bytes)?;
    Ok(0)
}

fn stat_call(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    put(call, inode, 1)
}

fn lstat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::NOFOLLOW)?;
    put(call, inode, 1)
}

fn fstat(call: &mut Call<'_>) -> SysResult {
    let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
    let inode = call.kernel.state.files.open_file(open).inode;
    put(call, inode, 1)
}

fn newfstatat(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(3);
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
    let inode = call.find_at(call.int(0), &path, flags, follow)?;
    put(call, inode, 2)
}

fn statx(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(2);
    let known = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE;
    if flags & !known != 0
        || flags & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE
        || call.word(3) & 0x8000_0000 != 0
    {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
    let inode = call.find_at(call.int(0), &path, flags, follow)?;
    let bytes = stat::of(&call.kernel.state.files, inode).encode_extended();
    call.write_bytes(call.args[4], &bytes)?;
    Ok(0)
}

fn access(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    check_access(call, AT_FDCWD, &path, call.word(1), 0)
}

fn faccessat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    check_access(call, call.int(0), &path, call.word(2), 0)
}

fn faccessat2(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(3);
    // AT_EACCESS has the value of AT_REMOVEDIR.
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_REMOVEDIR) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    check_access(call, call.int(0), &path, call.word(2), flags)
}

fn check_access(call: &mut Call<'_>, dirfd: i32, path: &[u8], mode: u32, flags: u32) -> SysResult {
    if mode & !7 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
    let own = Arc::clone(&call.kernel.thread(call.tid).credentials);
    // The path, too, is walked as the real user.
    if flags & AT_REMOVEDIR == 0 {
        call.kernel.thread_mut(call.tid).credentials = Arc::new(own.as_real_user());
    }
    let found = call
        .find_at(dirfd, path, flags, follow)
        .and_then(|inode| permission::check(call.kernel, call.tid, inode, mode));
    call.kernel.thread_mut(call.tid).credentials = own;
    found?;
    Ok(0)
}

fn readlink(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    read_link(call, AT_FDCWD, &path, 1)
}

fn readlinkat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    read_link(call, call.int(0), &path, 2)
}

fn read_link(call: &mut Call<'_>, dirfd: i32, path: &[u8], buffer: usize) -> SysResult {
    let size = call.int(buffer + 1);
    if size <= 0 {
        return Err(Errno::EINVAL.into());
    }
    // An empty path means the link that was opened with O_PATH | O_NOFOLLOW.
    let inode = call.find_at(dirfd, path, AT_EMPTY_PATH, false)?;
    let target = match &call.kernel.state.files.inode(inode).node {
        Node::Symlink(target) => target.to_vec(),
        Node::ProcLink(link) => procfs::link_target(call.kernel, call.tid, *link)?,
        _ if path.is_empty() => return Err(Errno::ENOENT.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    let len = target
        .len()
        .min(to_usize(call.args[buffer + 1] & 0x7FFF_FFFF));
    call.kernel
        .write_user(call.tid, GuestAddr(call.args[buffer]), &target[..len])?;
    count(len)
}

fn statfs(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    put_file_system(call, inode)
}

fn fstatfs(call: &mut Call<'_>) -> SysResult {
    let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
    let inode = call.kernel.state.files.open_file(open).inode;
    put_file_system(call, inode)
}

fn put_file_system(call: &mut Call<'_>, inode: InodeId) -> SysResult {
    let bytes = stat::encode_file_system(&call.kernel.state.files, inode);
    call.write_bytes(call.args[1], &bytes)?;
    Ok(0)
}
