//! System V shared memory: shmget, shmat, shmdt, shmctl.

use raddle_mem::{Backing, PAGE_BITS, PageNo, Vma};
use raddle_stdx::width::{as_u64, to_u64};
use raddle_world::EventKind;

use super::table::Entry;
use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::files::{self, open};
use crate::ipc::{Asked, Object, Permission, Segment, attachments, sweep};
use crate::mm::{self, MapRequest};
use crate::time::{self, SECOND};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial("shmget", shmget, "SHM_HUGETLB is refused with ENOMEM"),
    Entry::full("shmat", shmat),
    Entry::full("shmdt", shmdt),
    Entry::partial(
        "shmctl",
        shmctl,
        "SHM_LOCK and SHM_UNLOCK have no effect; an end of a process is no time of detachment",
    ),
];

/// Commands that all control calls know.
pub(super) mod command {
    pub(crate) const REMOVE: i32 = 0;
    pub(crate) const SET: i32 = 1;
    pub(crate) const STAT: i32 = 2;
    pub(crate) const INFO: i32 = 3;
}

/// Seconds since 1970, as the objects of System V note them.
pub(super) fn seconds(call: &Call<'_>) -> u64 {
    time::realtime(call.kernel.state.now) / SECOND
}

fn shmget(call: &mut Call<'_>) -> SysResult {
    const HUGE: u32 = 0o4000;
    sweep(call.kernel);
    let (key, size, flags) = (call.int(0), call.args[1], call.word(2));
    let who = call.kernel.credentials(call.tid);
    let known = call
        .kernel
        .state
        .ipc
        .segments
        .find(who, key, flags, |segment| size <= segment.size)?;
    if let Some(id) = known {
        return Ok(as_u64(i64::from(id)));
    }
    if size == 0 {
        return Err(Errno::EINVAL.into());
    }
    if size > call.kernel.config.memory_max || flags & HUGE != 0 {
        return Err(Errno::ENOMEM.into());
    }
    let permission = Permission::of_new(who, key, flags);
    let object = files::anonymous_object(call.kernel, size)?;
    let inode = *call
        .kernel
        .state
        .files
        .by_number
        .get(&object.0)
        .ok_or(Errno::ENOMEM)?;
    call.kernel.state.files.inode_mut(inode).holders += 1;
    let segment = Segment {
        permission,
        size,
        inode,
        object,
        creator: call.kernel.thread(call.tid).process.0,
        last: 0,
        attached: 0,
        detached: 0,
        changed: seconds(call),
        is_locked: false,
        is_removed: false,
    };
    let id = call.kernel.state.ipc.segments.insert(segment);
    Ok(as_u64(i64::from(id)))
}

/// Flags of shmat(2).
mod attach {
    pub(super) const READ_ONLY: u32 = 0o10_000;
    pub(super) const ROUND: u32 = 0o20_000;
    pub(super) const REMAP: u32 = 0o40_000;
    pub(super) const EXECUTE: u32 = 0o100_000;
}

fn shmat(call: &mut Call<'_>) -> SysResult {
    sweep(call.kernel);
    let (id, flags) = (call.int(0), call.word(2));
    let is_read_only = flags & attach::READ_ONLY != 0;
    let asked = if is_read_only {
        Asked::Read
    } else {
        Asked::ReadAndWrite
    };
    let segment = call.kernel.state.ipc.segments.get(id)?;
    let who = call.kernel.credentials(call.tid);
    segment.permission.check(who, asked)?;
    let (object, size, key) = (segment.object, segment.size, segment.permission.key);
    let start = attach_at(call, size, flags)?;
    let prot =
        1 | if is_read_only { 0 } else { 2 } | if flags & attach::EXECUTE != 0 { 4 } else { 0 };
    let pages = PageNo::count_for(size);
    let (frames, space) = call.kernel.memory_of(call.tid);
    space.map.map(
        frames,
        Vma {
            start,
            end: PageNo(start.0 + pages),
            perm: mm::perm(prot),
            shared: true,
            backing: Backing::Object {
                object,
                first_page: 0,
            },
            label: format!("/SYSV{key:08x} (deleted)").into(),
        },
    );
    let (now, pid) = (seconds(call), call.kernel.thread(call.tid).process.0);
    let segment = call.kernel.state.ipc.segments.get_mut(id)?;
    (segment.attached, segment.last) = (now, pid);
    let addr = start.start().0;
    if call.kernel.is_tracing {
        let size = pages << PAGE_BITS;
        call.kernel.emit(call.tid, EventKind::Map { addr, size });
    }
    Ok(addr)
}

/// Where a segment goes: where the caller wants it, or where there is room.
fn attach_at(call: &mut Call<'_>, size: u64, flags: u32) -> Result<PageNo, Errno> {
    let mut addr = call.args[1];
    if addr == 0 && flags & attach::REMAP != 0 {
        return Err(Errno::EINVAL);
    }
    if !addr.is_multiple_of(4096) {
        if flags & attach::ROUND == 0 {
            return Err(Errno::EINVAL);
        }
        addr &= !0xFFF;
    }
    let fixed = match addr {
        0 => 0,
        _ if flags & attach::REMAP != 0 => mm::flags::FIXED,
        _ => mm::flags::FIXED_NOREPLACE,
    };
    let request = MapRequest {
        addr,
        length: size,
        prot: 1,
        flags: mm::flags::SHARED | fixed,
        fd: -1,
        offset: 0,
    };
    mm::choose_place(call.kernel, call.tid, &request, size.next_multiple_of(4096)).map_err(
        |errno| match errno {
            Errno::EEXIST | Errno::EPERM => Errno::EINVAL,
            other => other,
        },
    )
}

fn shmdt(call: &mut Call<'_>) -> SysResult {
    let addr = call.args[0];
    if !addr.is_multiple_of(4096) {
        return Err(Errno::EINVAL.into());
    }
    let vma = call
        .kernel
        .space_of(call.tid)
        .map
        .vma_at(PageNo(addr >> PAGE_BITS));
    let Some(Backing::Object {
        object,
        first_page: 0,
    }) = vma
        .filter(|vma| vma.start.start().0 == addr)
        .map(|vma| vma.backing)
    else {
        return Err(Errno::EINVAL.into());
    };
    let found = call
        .kernel
        .state
        .ipc
        .segments
        .iter()
        .find(|(_, segment)| segment.object == object)
        .map(|(id, segment)| (id, segment.size));
    let (id, size) = found.ok_or(Errno::EINVAL)?;
    let (start, end) = mm::page_range(addr, size).ok_or(Errno::EINVAL)?;
    let is_part = |vma: &Vma| {
        matches!(vma.backing, Backing::Object { object: other, .. } if other == object)
            && vma.start >= start
            && vma.end <= end
    };
    let (frames, space) = call.kernel.memory_of(call.tid);
    let parts: Vec<(PageNo, PageNo)> = space
        .map
        .vmas()
        .iter()
        .filter(|vma| is_part(vma))
        .map(|vma| (vma.start, vma.end))
        .collect();
    for (start, end) in parts {
        space.map.unmap(frames, start, end);
    }
    if call.kernel.is_tracing {
        call.kernel.emit(call.tid, EventKind::Unmap { addr, size });
    }
    let (now, pid) = (seconds(call), call.kernel.thread(call.tid).process.0);
    let segment = call.kernel.state.ipc.segments.get_mut(id)?;
    (segment.detached, segment.last) = (now, pid);
    sweep(call.kernel);
    Ok(0)
}

fn shmctl(call: &mut Call<'_>) -> SysResult {
    const LOCK: i32 = 11;
    const UNLOCK: i32 = 12;
    const STAT_INDEX: i32 = 13;
    const USAGE: i32 = 14;
    const STAT_ANY: i32 = 15;
    sweep(call.kernel);
    let id = call.int(0);
    match call.int(1) {
        command::STAT | STAT_INDEX | STAT_ANY => put_status(call, id),
        command::REMOVE => remove(call, id),
        command::SET => set(call, id),
        LOCK | UNLOCK => {
            let is_locked = call.int(1) == LOCK;
            check_owner(call, id)?;
            call.kernel.state.ipc.segments.get_mut(id)?.is_locked = is_locked;
            Ok(0)
        }
        command::INFO => {
            let limits = [
                u64::MAX - (1 << 24),
                1,
                4096,
                4096,
                u64::MAX - (1 << 24),
                0,
                0,
                0,
                0,
            ];
            call.write_words(call.args[2], &limits)?;
            Ok(u64::from(
                call.kernel.state.ipc.segments.highest().cast_unsigned(),
            ))
        }
        USAGE => {
            let segments = &call.kernel.state.ipc.segments;
            let pages: u64 = segments
                .iter()
                .map(|(_, segment)| PageNo::count_for(segment.size))
                .sum();
            let (count, highest) = (to_u64(segments.len()), segments.highest());
            call.write_words(call.args[2], &[count, pages, pages, 0, 0, 0])?;
            Ok(u64::from(highest.cast_unsigned()))
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn check_owner(call: &Call<'_>, id: i32) -> Result<(), Errno> {
    let segment = call.kernel.state.ipc.segments.get(id)?;
    segment
        .permission
        .check_owner(call.kernel.credentials(call.tid))
}

/// Writes a `struct shmid64_ds`. Asked by index, it gives the identifier, which is the same here.
fn put_status(call: &mut Call<'_>, id: i32) -> SysResult {
    const REMOVED: u32 = 0o1000;
    const LOCKED: u32 = 0o2000;
    const STAT_INDEX: i32 = 13;
    let segment = call.kernel.state.ipc.segments.get(id)?;
    if call.int(1) != STAT_INDEX + 2 {
        let who = call.kernel.credentials(call.tid);
        segment.permission.check(who, Asked::Read)?;
    }
    let mut extra = 0;
    if segment.is_removed {
        extra |= REMOVED;
    }
    if segment.is_locked {
        extra |= LOCKED;
    }
    let mut bytes = segment.permission.encode(extra).to_vec();
    let pids = u64::from(segment.creator) | u64::from(segment.last) << 32;
    let count = attachments(call.kernel, segment.object);
    for word in [
        segment.size,
        segment.attached,
        segment.detached,
        segment.changed,
        pids,
        count,
        0,
        0,
    ] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    call.write_bytes(call.args[2], &bytes)?;
    Ok(if call.int(1) == command::STAT {
        0
    } else {
        u64::from(id.cast_unsigned())
    })
}

/// IPC_SET of any kind of object: owner and mode from the structure in argument `at`.
pub(super) fn set_permission(
    call: &mut Call<'_>,
    at: u64,
    object: fn(&mut crate::ipc::Ipc, i32) -> Result<&mut dyn Object, Errno>,
) -> Result<(), Errno> {
    let bytes = call.read_bytes(at)?;
    let id = call.int(0);
    let who = call.kernel.credentials(call.tid).clone();
    let permission = object(&mut call.kernel.state.ipc, id)?.permission_mut();
    permission.check_owner(&who)?;
    permission.set(&bytes);
    Ok(())
}

fn set(call: &mut Call<'_>, id: i32) -> SysResult {
    set_permission(call, call.args[2], |ipc, id| {
        Ok(ipc.segments.get_mut(id)?)
    })?;
    let now = seconds(call);
    call.kernel.state.ipc.segments.get_mut(id)?.changed = now;
    Ok(0)
}

fn remove(call: &mut Call<'_>, id: i32) -> SysResult {
    check_owner(call, id)?;
    let segment = call.kernel.state.ipc.segments.get_mut(id)?;
    if !segment.is_removed {
        segment.is_removed = true;
        let inode = segment.inode;
        open::release_inode(call.kernel, inode);
    }
    sweep(call.kernel);
    Ok(0)
}
