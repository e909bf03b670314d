//! Changing attributes and sizes: chmod, chown, times, truncate, fallocate, sync, extended attributes.

use raddle_stdx::width::{as_i64, low_u32};

use super::table::Entry;
use super::{not_permitted, succeed};
use crate::call::{Call, SysResult};
use crate::credentials::{Capability, Credentials};
use crate::errno::Errno;
use crate::files::flags::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use crate::files::inode::{Inode, InodeId, Node, Timestamp};
use crate::files::walk::WalkOptions;
use crate::files::{inotify, io, open, permission};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("fsync", check_descriptor),
    Entry::full("fdatasync", check_descriptor),
    Entry::full("truncate", truncate),
    Entry::full("ftruncate", ftruncate),
    Entry::full("chmod", chmod),
    Entry::full("fchmod", fchmod),
    Entry::full("chown", chown),
    Entry::full("fchown", fchown),
    Entry::full("lchown", lchown),
    Entry::full("utime", utime),
    Entry::full("sync", succeed),
    Entry::ignored("readahead", check_descriptor, "everything is in memory"),
    Entry::refused(
        "setxattr",
        no_attributes,
        "no extended attributes: EOPNOTSUPP",
    ),
    Entry::refused(
        "lsetxattr",
        no_attributes,
        "no extended attributes: EOPNOTSUPP",
    ),
    Entry::refused(
        "fsetxattr",
        no_attributes,
        "no extended attributes: EOPNOTSUPP",
    ),
    Entry::partial("getxattr", get_attribute, "no file has extended attributes"),
    Entry::partial(
        "lgetxattr",
        get_link_attribute,
        "no file has extended attributes",
    ),
    Entry::partial(
        "fgetxattr",
        get_descriptor_attribute,
        "no file has extended attributes",
    ),
    Entry::partial(
        "listxattr",
        list_attributes,
        "no file has extended attributes",
    ),
    Entry::partial(
        "llistxattr",
        list_link_attributes,
        "no file has extended attributes",
    ),
    Entry::partial(
        "flistxattr",
        check_descriptor,
        "no file has extended attributes",
    ),
    Entry::partial(
        "removexattr",
        get_attribute,
        "no file has extended attributes",
    ),
    Entry::partial(
        "lremovexattr",
        get_link_attribute,
        "no file has extended attributes",
    ),
    Entry::partial(
        "fremovexattr",
        get_descriptor_attribute,
        "no file has extended attributes",
    ),
    Entry::ignored("fadvise64", check_descriptor, "advice has no effect"),
    Entry::full("utimes", utimes),
    Entry::full("fchownat", fchownat),
    Entry::full("futimesat", futimesat),
    Entry::full("fchmodat", fchmodat),
    Entry::ignored(
        "sync_file_range",
        check_descriptor,
        "everything is in memory",
    ),
    Entry::full("utimensat", utimensat),
    Entry::partial(
        "fallocate",
        fallocate,
        "FALLOC_FL_COLLAPSE_RANGE and FALLOC_FL_INSERT_RANGE are refused",
    ),
    Entry::full("syncfs", check_descriptor),
    Entry::full("fchmodat2", fchmodat2),
    Entry::refused("quotactl", not_permitted, "no quotas"),
];

/// For calls that only promise something about the disk: the descriptor must be good.
fn check_descriptor(call: &mut Call<'_>) -> SysResult {
    call.open_file(0)?;
    Ok(0)
}

fn no_attributes(_: &mut Call<'_>) -> SysResult {
    Err(Errno::EOPNOTSUPP.into())
}

fn get_attribute(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    Err(Errno::ENODATA.into())
}

fn get_link_attribute(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    call.find(AT_FDCWD, &path, WalkOptions::NOFOLLOW)?;
    Err(Errno::ENODATA.into())
}

fn get_descriptor_attribute(call: &mut Call<'_>) -> SysResult {
    call.open_file(0)?;
    Err(Errno::ENODATA.into())
}

fn list_attributes(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    Ok(0)
}

fn list_link_attributes(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    call.find(AT_FDCWD, &path, WalkOptions::NOFOLLOW)?;
    Ok(0)
}

fn truncate(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    if !call.kernel.state.files.inode(inode).node.is_directory() {
        permission::check(call.kernel, call.tid, inode, permission::WRITE)?;
    }
    cut(call, inode)
}

fn ftruncate(call: &mut Call<'_>) -> SysResult {
    let open = call.open_file(0)?;
    let file = call.kernel.state.files.open_file(open);
    if !file.can_write() {
        return Err(Errno::EINVAL.into());
    }
    let inode = file.inode;
    cut(call, inode)
}

/// Cuts or extends a file to the size in the second argument.
fn cut(call: &mut Call<'_>, inode: InodeId) -> SysResult {
    io::truncate(call.kernel, inode, call.args[1])?;
    permission::note_written(call.kernel, call.tid, inode);
    Ok(0)
}

fn fallocate(call: &mut Call<'_>) -> SysResult {
    const KEEP_SIZE: u32 = 1;
    const PUNCH_HOLE: u32 = 2;
    const ZERO_RANGE: u32 = 16;
    let open = call.open_file(0)?;
    let file = call.kernel.state.files.open_file(open);
    if !file.can_write() {
        return Err(Errno::EBADF.into());
    }
    let inode = file.inode;
    let (mode, start, len) = (call.word(1), call.args[2], call.args[3]);
    if as_i64(start) < 0 || as_i64(len) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let end = start
        .checked_add(len)
        .filter(|end| as_i64(*end) >= 0)
        .ok_or(Errno::EFBIG)?;
    if matches!(call.kernel.state.files.inode(inode).node, Node::Pipe(_)) {
        return Err(Errno::ESPIPE.into());
    }
    let size = io::file_size(call.kernel, inode);
    match mode {
        0 | KEEP_SIZE => {}
        mode if mode == PUNCH_HOLE | KEEP_SIZE || mode & !KEEP_SIZE == ZERO_RANGE => {
            let seals = call.kernel.state.files.inode(inode).seals.unwrap_or(0);
            if seals & 0x18 != 0 {
                return Err(Errno::EPERM.into());
            }
            let Node::File(content) = &mut call.kernel.state.files.inode_mut(inode).node else {
                return Err(Errno::ENODEV.into());
            };
            if start < size {
                content.zero(
                    &mut call.kernel.frames,
                    &mut call.kernel.host,
                    start,
                    end.min(size),
                )?;
            }
        }
        _ => return Err(Errno::EOPNOTSUPP.into()),
    }
    if mode & KEEP_SIZE == 0 && end > size {
        io::truncate(call.kernel, inode, end)?;
    } else if call.kernel.state.files.inode(inode).content().is_none() {
        return Err(Errno::ENODEV.into());
    }
    Ok(0)
}

fn chmod(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    set_mode(call, inode, call.word(1))
}

fn fchmod(call: &mut Call<'_>) -> SysResult {
    let inode = call.inode(0)?;
    set_mode(call, inode, call.word(1))
}

fn fchmodat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    let inode = call.find(call.int(0), &path, WalkOptions::FOLLOW)?;
    set_mode(call, inode, call.word(2))
}

fn fchmodat2(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(3);
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    let inode = call.find_at(call.int(0), &path, flags, flags & AT_SYMLINK_NOFOLLOW == 0)?;
    set_mode(call, inode, call.word(2))
}

fn set_mode(call: &mut Call<'_>, inode: InodeId, mode: u32) -> SysResult {
    let at = call.kernel.file_time();
    let group = call.kernel.state.files.inode(inode).gid;
    permission::check_owner(call.kernel, call.tid, inode)?;
    let keeps_group = permission::may_keep_set_group(call.kernel.credentials(call.tid), group);
    let found = call.kernel.state.files.inode_mut(inode);
    if matches!(found.node, Node::Symlink(_)) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    found.mode = mode & 0o7777;
    if !keeps_group {
        found.mode &= !permission::SET_GROUP;
    }
    found.times.changed = at;
    inotify::report_self(call.kernel, inode, inotify::IN_ATTRIB);
    Ok(0)
}

fn chown(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    set_owner(call, inode, 1)
}

fn lchown(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::NOFOLLOW)?;
    set_owner(call, inode, 1)
}

fn fchown(call: &mut Call<'_>) -> SysResult {
    let inode = call.inode(0)?;
    set_owner(call, inode, 1)
}

fn fchownat(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(4);
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    let inode = call.find_at(call.int(0), &path, flags, flags & AT_SYMLINK_NOFOLLOW == 0)?;
    set_owner(call, inode, 2)
}

/// Sets user and group from arguments `first` and `first + 1`; -1 leaves one as it is.
fn set_owner(call: &mut Call<'_>, inode: InodeId, first: usize) -> SysResult {
    let at = call.kernel.file_time();
    let given = |id: u32| (id != u32::MAX).then_some(id);
    let (uid, gid) = (given(call.word(first)), given(call.word(first + 1)));
    let who = call.kernel.credentials(call.tid);
    let found = call.kernel.state.files.inode(inode);
    check_new_owner(who, found, uid, gid)?;
    let mode = permission::mode_after_chown(who, found);
    let found = call.kernel.state.files.inode_mut(inode);
    found.uid = uid.unwrap_or(found.uid);
    found.gid = gid.unwrap_or(found.gid);
    found.mode = mode;
    found.times.changed = at;
    inotify::report_self(call.kernel, inode, inotify::IN_ATTRIB);
    Ok(0)
}

/// Owners may give their files to groups of theirs and to no other user.
fn check_new_owner(
    who: &Credentials,
    inode: &Inode,
    uid: Option<u32>,
    gid: Option<u32>,
) -> Result<(), Errno> {
    let is_own = who.users.file == inode.uid;
    let keeps_user = uid.is_none_or(|uid| is_own && uid == inode.uid);
    let knows_group = gid.is_none_or(|gid| is_own && (who.is_in_group(gid) || gid == inode.gid));
    if keeps_user && knows_group {
        return Ok(());
    }
    who.need(Capability::CHOWN)
}

/// Who may set the times of a file: its owner, and to the present also who may write it.
fn check_times(call: &Call<'_>, inode: InodeId, is_present: bool) -> Result<(), Errno> {
    let own = permission::check_owner(call.kernel, call.tid, inode);
    if own.is_err() && is_present {
        return permission::check(call.kernel, call.tid, inode, permission::WRITE);
    }
    own
}

/// Access and modification time; none leaves one as it is.
type NewTimes = [Option<Timestamp>; 2];

fn set_times(call: &mut Call<'_>, inode: InodeId, times: NewTimes) -> SysResult {
    check_times(call, inode, times == now(call))?;
    let at = call.kernel.file_time();
    let found = &mut call.kernel.state.files.inode_mut(inode).times;
    if let Some(time) = times[0] {
        found.accessed = time;
    }
    if let Some(time) = times[1] {
        found.modified = time;
    }
    found.changed = at;
    inotify::report_self(call.kernel, inode, inotify::IN_ATTRIB);
    Ok(0)
}

fn now(call: &Call<'_>) -> NewTimes {
    [Some(call.kernel.file_time()); 2]
}

fn utimensat(call: &mut Call<'_>) -> SysResult {
    const NOW: i64 = 0x3FFF_FFFF;
    const OMIT: i64 = 0x3FFF_FFFE;
    let mut times = now(call);
    if call.args[2] != 0 {
        for (index, time) in times.iter_mut().enumerate() {
            let addr = call.args[2] + 16 * raddle_stdx::width::to_u64(index);
            let (seconds, nanos) = call.read_time(addr)?;
            match nanos {
                NOW => {}
                OMIT => *time = None,
                0..=999_999_999 => {
                    *time = Some(Timestamp {
                        seconds,
                        nanos: u32::try_from(nanos).map_err(|_| Errno::EINVAL)?,
                    });
                }
                _ => return Err(Errno::EINVAL.into()),
            }
        }
    }
    let flags = call.word(3);
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = if call.args[1] == 0 {
        let open = open::lookup_any(call.kernel, call.tid, call.int(0))?;
        call.kernel.state.files.open_file(open).inode
    } else {
        let path = call.path(1)?;
        call.find_at(call.int(0), &path, flags, flags & AT_SYMLINK_NOFOLLOW == 0)?
    };
    if times == [None; 2] {
        return Ok(0);
    }
    set_times(call, inode, times)
}

fn utime(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    let mut times = now(call);
    if call.args[1] != 0 {
        let words: [u64; 2] = call.read_words(call.args[1])?;
        times = words.map(|seconds| {
            Some(Timestamp {
                seconds: as_i64(seconds),
                nanos: 0,
            })
        });
    }
    set_times(call, inode, times)
}

fn utimes(call: &mut Call<'_>) -> SysResult {
    let path = call.path(0)?;
    let inode = call.find(AT_FDCWD, &path, WalkOptions::FOLLOW)?;
    let times = microsecond_times(call, 1)?;
    set_times(call, inode, times)
}

fn futimesat(call: &mut Call<'_>) -> SysResult {
    let path = call.path(1)?;
    let inode = call.find(call.int(0), &path, WalkOptions::FOLLOW)?;
    let times = microsecond_times(call, 2)?;
    set_times(call, inode, times)
}

fn microsecond_times(call: &mut Call<'_>, index: usize) -> Result<NewTimes, Errno> {
    if call.args[index] == 0 {
        return Ok(now(call));
    }
    let words: [u64; 4] = call.read_words(call.args[index])?;
    if words[1] >= 1_000_000 || words[3] >= 1_000_000 {
        return Err(Errno::EINVAL);
    }
    let time = |seconds, micros: u64| {
        Some(Timestamp {
            seconds: as_i64(seconds),
            nanos: low_u32(micros * 1000),
        })
    };
    Ok([time(words[0], words[1]), time(words[2], words[3])])
}
