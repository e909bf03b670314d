//! mmap and its family.

use raddle_mem::{PAGE_BITS, PageNo};
use raddle_stdx::width::to_usize;
use raddle_world::EventKind;

use crate::call::{Call, SysResult, Trouble};
use crate::errno::Errno;
use crate::mm::{self, MapRequest, RemapRequest};
use crate::syscall::table::Entry;
use crate::syscall::{no_such_call, succeed};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial(
        "mmap",
        mmap,
        "huge pages are refused with ENOMEM; MAP_POPULATE, MAP_LOCKED, MAP_GROWSDOWN have no effect",
    ),
    Entry::full("mprotect", mprotect),
    Entry::full("munmap", munmap),
    Entry::full("brk", brk),
    Entry::partial(
        "mremap",
        mremap,
        "MREMAP_DONTUNMAP and an old size of 0 are EINVAL",
    ),
    Entry::ignored(
        "msync",
        msync,
        "shared mappings are always in step with their file",
    ),
    Entry::partial("mincore", mincore, "every mapped page counts as resident"),
    Entry::partial(
        "madvise",
        madvise,
        "MADV_DONTNEED drops pages; MADV_REMOVE, MADV_WIPEONFORK and MADV_POPULATE_* are EINVAL; other advice has no effect",
    ),
    Entry::ignored("mlock", check_range, "nothing is ever swapped out"),
    Entry::ignored("munlock", check_range, "nothing is ever swapped out"),
    Entry::ignored("mlockall", succeed, "nothing is ever swapped out"),
    Entry::ignored("munlockall", succeed, "nothing is ever swapped out"),
    Entry::ignored("mlock2", check_range, "nothing is ever swapped out"),
    Entry::ignored("mbind", succeed, "there is one memory node"),
    Entry::ignored("set_mempolicy", succeed, "there is one memory node"),
    Entry::partial("get_mempolicy", get_mempolicy, "there is one memory node"),
    Entry::full("membarrier", membarrier),
    Entry::refused(
        "pkey_mprotect",
        no_such_call,
        "ENOSYS: the processor has no protection keys",
    ),
    Entry::refused(
        "pkey_alloc",
        no_such_call,
        "ENOSYS: the processor has no protection keys",
    ),
    Entry::refused(
        "pkey_free",
        no_such_call,
        "ENOSYS: the processor has no protection keys",
    ),
];

fn mmap(call: &mut Call<'_>) -> SysResult {
    let request = MapRequest {
        addr: call.args[0],
        length: call.args[1],
        prot: call.args[2],
        flags: call.args[3],
        fd: call.int(4),
        offset: call.args[5],
    };
    let addr = mm::map(call.kernel, call.tid, request)?;
    if call.kernel.is_tracing {
        call.kernel.emit(
            call.tid,
            EventKind::Map {
                addr,
                size: request.length,
            },
        );
    }
    Ok(addr)
}

fn munmap(call: &mut Call<'_>) -> SysResult {
    let (addr, size) = (call.args[0], call.args[1]);
    let (start, end) = mm::page_range(addr, size).ok_or(Errno::EINVAL)?;
    if start == end {
        return Err(Errno::EINVAL.into());
    }
    let (frames, space) = call.kernel.memory_of(call.tid);
    space.map.unmap(frames, start, end);
    crate::files::collect_orphans(call.kernel);
    if call.kernel.is_tracing {
        call.kernel.emit(call.tid, EventKind::Unmap { addr, size });
    }
    Ok(0)
}

fn mprotect(call: &mut Call<'_>) -> SysResult {
    if !call.args[0].is_multiple_of(4096) || call.args[2] & !7 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (start, end) = mm::page_range(call.args[0], call.args[1]).ok_or(Errno::ENOMEM)?;
    let (_, space) = call.kernel.memory_of(call.tid);
    if space.map.protect(start, end, mm::perm(call.args[2])) {
        Ok(0)
    } else {
        Err(Errno::ENOMEM.into())
    }
}

fn brk(call: &mut Call<'_>) -> SysResult {
    Ok(mm::set_brk(call.kernel, call.tid, call.args[0]))
}

fn mremap(call: &mut Call<'_>) -> SysResult {
    const MAY_MOVE: u64 = 1;
    const FIXED: u64 = 2;
    let flags = call.args[3];
    if flags & !(MAY_MOVE | FIXED) != 0 || (flags & FIXED != 0 && flags & MAY_MOVE == 0) {
        return Err(Errno::EINVAL.into());
    }
    let request = RemapRequest {
        addr: call.args[0],
        old_length: call.args[1],
        new_length: call.args[2],
        may_move: flags & MAY_MOVE != 0,
        target: (flags & FIXED != 0).then_some(call.args[4]),
    };
    Ok(mm::remap(call.kernel, call.tid, request)?)
}

fn range(call: &Call<'_>) -> Result<(PageNo, PageNo), Trouble> {
    let addr = call.args[0] & !0xFFF;
    let length = call.args[1].saturating_add(call.args[0] & 0xFFF);
    Ok(mm::page_range(addr, length).ok_or(Errno::ENOMEM)?)
}

fn check_range(call: &mut Call<'_>) -> SysResult {
    let (start, end) = range(call)?;
    if mm::is_mapped_everywhere(&call.kernel.space_of(call.tid).map, start, end) {
        Ok(0)
    } else {
        Err(Errno::ENOMEM.into())
    }
}

fn msync(call: &mut Call<'_>) -> SysResult {
    if !call.args[0].is_multiple_of(4096) || call.args[2] & !7 != 0 {
        return Err(Errno::EINVAL.into());
    }
    check_range(call)
}

fn mincore(call: &mut Call<'_>) -> SysResult {
    if !call.args[0].is_multiple_of(4096) {
        return Err(Errno::EINVAL.into());
    }
    check_range(call)?;
    let (start, end) = range(call)?;
    let resident = vec![1; to_usize(end.0 - start.0)];
    call.write_bytes(call.args[2], &resident)?;
    Ok(0)
}

fn madvise(call: &mut Call<'_>) -> SysResult {
    const DONTNEED: i32 = 4;
    if !call.args[0].is_multiple_of(4096) {
        return Err(Errno::EINVAL.into());
    }
    match call.int(2) {
        DONTNEED => {
            let (start, end) = range(call)?;
            let (frames, space) = call.kernel.memory_of(call.tid);
            space.map.drop_pages(frames, start, end);
            check_range(call)
        }
        0..=3 | 8 | 10..=17 | 20 | 21 | 25 => check_range(call),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn get_mempolicy(call: &mut Call<'_>) -> SysResult {
    if call.args[0] != 0 {
        call.write_bytes(call.args[0], &[0; 4])?;
    }
    if call.args[1] != 0 {
        let bytes = to_usize(call.args[2].min(1 << PAGE_BITS)).div_ceil(8);
        call.write_bytes(call.args[1], &vec![0; bytes])?;
    }
    Ok(0)
}

/// One host thread runs everything in order, so every barrier is already in force.
fn membarrier(call: &mut Call<'_>) -> SysResult {
    const KNOWN: i32 = 0x1FF;
    match call.int(0) {
        0 => Ok(u64::from(KNOWN.cast_unsigned())),
        command if command > 0 && command & KNOWN == command && command.count_ones() == 1 => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}
