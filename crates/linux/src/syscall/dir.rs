//! Directories: listing, making, removing, renaming, the current directory.

use std::sync::Arc;

use raddle_stdx::width::{to_u64, to_usize};

use super::file_args::count;
use super::open::masked;
use super::table::Entry;
use super::{no_such_call, not_permitted};
use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::files::flags::{AT_EMPTY_PATH, AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, PATH_MAX};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::open::{self, Listed};
use crate::files::permission;
use crate::files::pipe::Pipe;
use crate::files::tree::{self, RENAME_EXCHANGE, RENAME_NOREPLACE};
use crate::files::walk::WalkOptions;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("getdents", getdents),
    Entry::full("getcwd", getcwd),
    Entry::full("chdir", chdir),
    Entry::full("fchdir", fchdir),
    Entry::full("rename", rename),
    Entry::full("mkdir", mkdir),
    Entry::full("rmdir", rmdir),
    Entry::full("link", link),
    Entry::full("unlink", unlink),
    Entry::full("symlink", symlink),
    Entry::full("umask", umask),
    Entry::partial(
        "mknod",
        mknod,
        "regular files, FIFOs and sockets; devices are refused",
    ),
    Entry::refused(
        "pivot_root",
        not_permitted,
        "pivot_root changes the machine",
    ),
    Entry::refused("mount", not_permitted, "mounts are fixed: use --map"),
    Entry::refused("umount2", not_permitted, "mounts are fixed: use --map"),
    Entry::full("getdents64", getdents64),
    Entry::full("mkdirat", mkdirat),
    Entry::partial(
        "mknodat",
        mknodat,
        "regular files, FIFOs and sockets; devices are refused",
    ),
    Entry::full("unlinkat", unlinkat),
    Entry::full("renameat", renameat),
    Entry::full("linkat", linkat),
    Entry::full("symlinkat", symlinkat),
    Entry::partial("renameat2", renameat2, "RENAME_WHITEOUT is refused"),
    Entry::refused("open_tree", no_such_call, "mounts are fixed: use --map"),
    Entry::refused("move_mount", no_such_call, "mounts are fixed: use --map"),
    Entry::refused("fsopen", no_such_call, "mounts are fixed: use --map"),
];

fn mkdir(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    make_directory(call, AT_FDCWD, &path, call.word(1))
}

fn mkdirat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    make_directory(call, call.int(0), &path, call.word(2))
}

fn make_directory(call: &mut Call<'_>, dirfd: i32, path: &[u8], mode: u32) -> SysResult {
    let target = call.resolve(dirfd, path, WalkOptions::CHANGE)?;
    tree::check_free(call.kernel, call.tid, &target)?;
    let mode = masked(call, mode) & 0o1777;
    tree::create_directory(call.kernel, call.tid, &target, mode)?;
    Ok(0)
}

fn rmdir(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    remove(call, AT_FDCWD, &path, true)
}

fn unlink(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    remove(call, AT_FDCWD, &path, false)
}

fn unlinkat(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(2);
    if flags & !AT_REMOVEDIR != 0 {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    remove(call, call.int(0), &path, flags & AT_REMOVEDIR != 0)
}

fn remove(call: &mut Call<'_>, dirfd: i32, path: &[u8], directory: bool) -> SysResult {
    let target = call.resolve(dirfd, path, WalkOptions::CHANGE)?;
    if directory {
        tree::remove_directory(call.kernel, call.tid, &target)?;
    } else {
        tree::unlink(call.kernel, call.tid, &target)?;
    }
    Ok(0)
}

fn rename(call: &mut Call<'_>) -> SysResult {
    let (from, to) = (call.path(0)?, call.path(1)?);
    rename_at(call, (AT_FDCWD, &from), (AT_FDCWD, &to), 0)
}

fn renameat(call: &mut Call<'_>) -> SysResult {
    let (from, to) = (call.path(1)?, call.path(3)?);
    let (old, new) = (call.int(0), call.int(2));
    rename_at(call, (old, &from), (new, &to), 0)
}

fn renameat2(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(4);
    let both = RENAME_NOREPLACE | RENAME_EXCHANGE;
    if flags & !both != 0 || flags & both == both {
        return Err(Errno::EINVAL.into());
    }
    let (from, to) = (call.path(1)?, call.path(3)?);
    let (old, new) = (call.int(0), call.int(2));
    rename_at(call, (old, &from), (new, &to), flags)
}

fn rename_at(
    call: &mut Call<'_>,
    (old_fd, old_path): (i32, &[u8]),
    (new_fd, new_path): (i32, &[u8]),
    flags: u32,
) -> SysResult {
    let from = call.resolve(old_fd, old_path, WalkOptions::CHANGE)?;
    let to = call.resolve(new_fd, new_path, WalkOptions::CHANGE)?;
    tree::rename(call.kernel, call.tid, &from, &to, flags)?;
    Ok(0)
}

fn link(call: &mut Call<'_>) -> SysResult {
    let (from, to) = (call.path(0)?, call.path(1)?);
    link_at(call, (AT_FDCWD, &from), (AT_FDCWD, &to), 0)
}

fn linkat(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(4);
    if flags & !(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (from, to) = (call.path(1)?, call.path(3)?);
    let (old, new) = (call.int(0), call.int(2));
    link_at(call, (old, &from), (new, &to), flags)
}

fn link_at(
    call: &mut Call<'_>,
    (old_fd, old_path): (i32, &[u8]),
    (new_fd, new_path): (i32, &[u8]),
    flags: u32,
) -> SysResult {
    let inode = call.find_at(old_fd, old_path, flags, flags & AT_SYMLINK_FOLLOW != 0)?;
    let target = call.resolve(new_fd, new_path, WalkOptions::CHANGE)?;
    tree::link(call.kernel, call.tid, inode, &target)?;
    Ok(0)
}

fn symlink(call: &mut Call<'_>) -> SysResult {
    let (text, path) = (call.path(0)?, call.path(1)?);
    symlink_at(call, &text, AT_FDCWD, &path)
}

fn symlinkat(call: &mut Call<'_>) -> SysResult {
    let (text, path) = (call.path(0)?, call.path(2)?);
    symlink_at(call, &text, call.int(1), &path)
}

fn symlink_at(call: &mut Call<'_>, text: &[u8], dirfd: i32, path: &[u8]) -> SysResult {
    if text.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let target = call.resolve(dirfd, path, WalkOptions::CHANGE)?;
    if target.wants_directory && target.inode.is_none() {
        return Err(Errno::ENOENT.into());
    }
    tree::create(
        call.kernel,
        call.tid,
        &target,
        0o777,
        Node::Symlink(Name::from(text)),
    )?;
    Ok(0)
}

fn mknod(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    make_node(call, AT_FDCWD, &path, call.word(1))
}

fn mknodat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    make_node(call, call.int(0), &path, call.word(2))
}

fn make_node(call: &mut Call<'_>, dirfd: i32, path: &[u8], mode: u32) -> SysResult {
    let target = call.resolve(dirfd, path, WalkOptions::CHANGE)?;
    tree::check_free(call.kernel, call.tid, &target)?;
    if target.wants_directory {
        return Err(Errno::ENOENT.into());
    }
    let node = match mode & 0o170_000 {
        0 | 0o100_000 => Node::File(Default::default()),
        0o010_000 => Node::Pipe(Pipe::default()),
        0o140_000 => Node::SocketName(None),
        0o020_000 | 0o060_000 => return Err(Errno::EPERM.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    let mode = masked(call, mode);
    tree::create(call.kernel, call.tid, &target, mode, node)?;
    Ok(0)
}

fn umask(call: &mut Call<'_>) -> SysResult {
    let context = call.kernel.process_of(call.tid).fs;
    let mask = call.word(0) & 0o777;
    let context = call.kernel.state.files.context_mut(context);
    Ok(u64::from(std::mem::replace(&mut context.umask, mask)))
}

fn chdir(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    enter(call, inode)
}

fn fchdir(call: &mut Call<'_>) -> SysResult {
    let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
    let inode = call.kernel.state.files.open_file(open).inode;
    enter(call, inode)
}

fn enter(call: &mut Call<'_>, inode: InodeId) -> SysResult {
    let context = call.kernel.process_of(call.tid).fs;
    let files = &mut call.kernel.state.files;
    if !files.inode(inode).node.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    permission::check(call.kernel, call.tid, inode, permission::EXECUTE)?;
    let files = &mut call.kernel.state.files;
    files.inode_mut(inode).holders += 1;
    let old = std::mem::replace(&mut files.context_mut(context).cwd, inode);
    open::release_inode(call.kernel, old);
    Ok(0)
}

fn getcwd(call: &mut Call<'_>) -> SysResult {
    let context = call.kernel.process_of(call.tid).fs;
    let files = &call.kernel.state.files;
    let cwd = files.context(context).cwd;
    if files.inode(cwd).links == 0 {
        return Err(Errno::ENOENT.into());
    }
    let mut path = files.directory_path(cwd);
    path.push(0);
    if path.len() > PATH_MAX {
        return Err(Errno::ENAMETOOLONG.into());
    }
    if to_u64(path.len()) > call.args[1] {
        return Err(Errno::ERANGE.into());
    }
    call.write_bytes(call.args[0], &path)?;
    count(path.len())
}

fn getdents64(call: &mut Call<'_>) -> SysResult {
    list(call, encode_entry)
}

fn getdents(call: &mut Call<'_>) -> SysResult {
    list(call, encode_old_entry)
}

fn list(call: &mut Call<'_>, encode: fn(&Listed, next: u64) -> Vec<u8>) -> SysResult {
    let open = call.open_file(0)?;
    let room = to_usize(u64::from(call.word(2)));
    let listing = listing(call, open)?;
    let start = to_usize(call.kernel.state.files.open_file(open).offset);
    let mut bytes = Vec::new();
    let mut next = start;
    for entry in listing.iter().skip(start) {
        let record = encode(entry, to_u64(next + 1));
        if bytes.len() + record.len() > room {
            if bytes.is_empty() {
                return Err(Errno::EINVAL.into());
            }
            break;
        }
        bytes.extend(record);
        next += 1;
    }
    call.write_bytes(call.args[1], &bytes)?;
    call.kernel.state.files.open_file_mut(open).offset = to_u64(next);
    count(bytes.len())
}

/// The entries of an open directory, dots first; read anew after a rewind.
fn listing(call: &mut Call<'_>, open: open::OpenId) -> Result<Arc<[Listed]>, Errno> {
    let file = call.kernel.state.files.open_file(open);
    if let Some(listing) = &file.listing
        && file.offset > 0
    {
        return Ok(Arc::clone(listing));
    }
    let id = file.inode;
    let inode = call.kernel.state.files.inode(id);
    let parent = inode.directory().ok_or(Errno::ENOTDIR)?.parent;
    if inode.links == 0 {
        return Err(Errno::ENOENT);
    }
    let dot = |name: &[u8], number| Listed {
        name: Name::from(name),
        number,
        kind: 4,
    };
    let parent_number = call.kernel.state.files.inode(parent).number;
    let mut entries = vec![dot(b".", inode.number), dot(b"..", parent_number)];
    entries.extend(tree::list(call.kernel, call.tid, id)?);
    let entries: Arc<[Listed]> = entries.into();
    call.kernel.state.files.open_file_mut(open).listing = Some(Arc::clone(&entries));
    Ok(entries)
}

/// `struct linux_dirent64`.
fn encode_entry(entry: &Listed, next: u64) -> Vec<u8> {
    let len = (19 + entry.name.len() + 1).next_multiple_of(8);
    let mut record = Vec::with_capacity(len);
    record.extend_from_slice(&entry.number.to_le_bytes());
    record.extend_from_slice(&next.to_le_bytes());
    record.extend_from_slice(&raddle_stdx::width::low_u16(to_u64(len)).to_le_bytes());
    record.push(entry.kind);
    record.extend_from_slice(&entry.name);
    record.resize(len, 0);
    record
}

/// `struct linux_dirent`: the type is the last byte of the record.
fn encode_old_entry(entry: &Listed, next: u64) -> Vec<u8> {
    let len = (18 + entry.name.len() + 2).next_multiple_of(8);
    let mut record = Vec::with_capacity(len);
    record.extend_from_slice(&entry.number.to_le_bytes());
    record.extend_from_slice(&next.to_le_bytes());
    record.extend_from_slice(&raddle_stdx::width::low_u16(to_u64(len)).to_le_bytes());
    record.extend_from_slice(&entry.name);
    record.resize(len, 0);
    record[len - 1] = entry.kind;
    record
}
