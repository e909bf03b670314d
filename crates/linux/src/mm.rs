//! Address spaces as system calls see them: mmap, munmap, mprotect, mremap, brk, madvise.

use std::sync::Arc;

use raddle_mem::{AddressSpace, Backing, ObjectId, PAGE_BITS, PageNo, Perm, Vma};

use crate::elf::USER_END;
use crate::errno::Errno;
use crate::files;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Mappings without an address go below this, downward.
pub(crate) const MMAP_TOP: u64 = 0x7FFF_F7FF_F000;
/// Lowest address that can be mapped (vm.mmap_min_addr).
pub(crate) const LOWEST: u64 = 0x1_0000;
/// Mappings with MAP_32BIT go below this.
const LOW_TOP: u64 = 0x8000_0000;

/// Flags of mmap(2).
pub(crate) mod flags {
    pub(crate) const SHARED: u64 = 0x1;
    pub(crate) const PRIVATE: u64 = 0x2;
    pub(crate) const TYPE: u64 = 0xF;
    pub(crate) const FIXED: u64 = 0x10;
    pub(crate) const ANONYMOUS: u64 = 0x20;
    pub(crate) const LOW: u64 = 0x40;
    pub(crate) const NORESERVE: u64 = 0x4000;
    pub(crate) const HUGETLB: u64 = 0x4_0000;
    pub(crate) const FIXED_NOREPLACE: u64 = 0x10_0000;
}

/// Permissions from PROT_ bits: x86 pages that can be written or executed can be read, too.
pub(crate) fn perm(prot: u64) -> Perm {
    Perm {
        read: prot & 7 != 0,
        write: prot & 2 != 0,
        execute: prot & 4 != 0,
    }
}

/// A place for `bytes` below the top of the mapping area.
pub(crate) fn find_free(map: &AddressSpace, bytes: u64) -> Option<PageNo> {
    find_below(map, PageNo::count_for(bytes), MMAP_TOP)
}

fn find_below(map: &AddressSpace, pages: u64, top: u64) -> Option<PageNo> {
    map.find_gap(pages, PageNo(LOWEST >> PAGE_BITS), PageNo(top >> PAGE_BITS))
}

/// A range of whole pages inside the memory of a program.
pub(crate) fn page_range(addr: u64, length: u64) -> Option<(PageNo, PageNo)> {
    let end = addr.checked_add(length)?.checked_next_multiple_of(4096)?;
    (addr.is_multiple_of(4096) && end <= USER_END)
        .then_some((PageNo(addr >> PAGE_BITS), PageNo(end >> PAGE_BITS)))
}

/// Arguments of mmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapRequest {
    pub(crate) addr: u64,
    pub(crate) length: u64,
    pub(crate) prot: u64,
    pub(crate) flags: u64,
    pub(crate) fd: i32,
    pub(crate) offset: u64,
}

/// mmap(2); gives the address.
pub(crate) fn map(kernel: &mut Kernel, tid: Tid, request: MapRequest) -> Result<u64, Errno> {
    if request.length == 0 || !request.offset.is_multiple_of(4096) {
        return Err(Errno::EINVAL);
    }
    let is_shared = match request.flags & flags::TYPE {
        flags::PRIVATE => false,
        // MAP_SHARED_VALIDATE differs only in flags that we do not have.
        flags::SHARED | 3 => true,
        _ => return Err(Errno::EINVAL),
    };
    if request.flags & flags::HUGETLB != 0 {
        return Err(Errno::ENOMEM);
    }
    let length = request
        .length
        .checked_next_multiple_of(4096)
        .filter(|length| *length <= USER_END)
        .ok_or(Errno::ENOMEM)?;
    check_room(kernel, tid, length, &request)?;
    let (backing, label) = backing(kernel, tid, &request, length, is_shared)?;
    let start = choose_place(kernel, tid, &request, length)?;
    let (frames, space) = kernel.memory_of(tid);
    space.map.map(
        frames,
        Vma {
            start,
            end: PageNo(start.0 + (length >> PAGE_BITS)),
            perm: perm(request.prot),
            shared: is_shared,
            backing,
            label,
        },
    );
    Ok(start.start().0)
}

/// Refuses what can never be had: more than the whole memory, or more than RLIMIT_AS.
fn check_room(kernel: &Kernel, tid: Tid, length: u64, request: &MapRequest) -> Result<(), Errno> {
    let is_committed = request.prot & 2 != 0
        && request.flags & flags::NORESERVE == 0
        && request.flags & flags::TYPE == flags::PRIVATE;
    if is_committed && length > kernel.config.memory_max {
        return Err(Errno::ENOMEM);
    }
    let limit = kernel.process_of(tid).limit(crate::syscall::RLIMIT_AS);
    if limit != u64::MAX {
        let mapped: u64 = kernel.space_of(tid).map.vmas().iter().map(Vma::pages).sum();
        if (mapped << PAGE_BITS).saturating_add(length) > limit {
            return Err(Errno::ENOMEM);
        }
    }
    Ok(())
}

fn backing(
    kernel: &mut Kernel,
    tid: Tid,
    request: &MapRequest,
    length: u64,
    is_shared: bool,
) -> Result<(Backing, Arc<str>), Errno> {
    if request.flags & flags::ANONYMOUS == 0 {
        let target = files::map_target(kernel, tid, request.fd, request.prot, request.flags)?;
        let backing = target
            .object
            .map_or(Backing::Anonymous, |object| Backing::Object {
                object,
                first_page: request.offset >> PAGE_BITS,
            });
        return Ok((backing, target.label));
    }
    if is_shared {
        let object = files::anonymous_object(kernel, length)?;
        return Ok((
            Backing::Object {
                object,
                first_page: 0,
            },
            "/dev/zero (deleted)".into(),
        ));
    }
    Ok((Backing::Anonymous, "".into()))
}

pub(crate) fn choose_place(
    kernel: &Kernel,
    tid: Tid,
    request: &MapRequest,
    length: u64,
) -> Result<PageNo, Errno> {
    let map = &kernel.space_of(tid).map;
    let is_fixed = request.flags & (flags::FIXED | flags::FIXED_NOREPLACE) != 0;
    if is_fixed {
        if !request.addr.is_multiple_of(4096) {
            return Err(Errno::EINVAL);
        }
        let (start, end) = page_range(request.addr, length).ok_or(Errno::ENOMEM)?;
        if request.addr < LOWEST {
            return Err(Errno::EPERM);
        }
        if request.flags & flags::FIXED_NOREPLACE != 0 && is_mapped_somewhere(map, start, end) {
            return Err(Errno::EEXIST);
        }
        return Ok(start);
    }
    let hint = request.addr & !0xFFF;
    if hint >= LOWEST
        && let Some((start, end)) = page_range(hint, length)
        && !is_mapped_somewhere(map, start, end)
    {
        return Ok(start);
    }
    let top = if request.flags & flags::LOW != 0 {
        LOW_TOP
    } else {
        MMAP_TOP
    };
    find_below(map, length >> PAGE_BITS, top).ok_or(Errno::ENOMEM)
}

/// Whether any page of the range is mapped.
pub(crate) fn is_mapped_somewhere(map: &AddressSpace, start: PageNo, end: PageNo) -> bool {
    map.vmas()
        .iter()
        .any(|vma| vma.start < end && start < vma.end)
}

/// Whether every page of the range is mapped.
pub(crate) fn is_mapped_everywhere(map: &AddressSpace, start: PageNo, end: PageNo) -> bool {
    let mut at = start;
    while at < end {
        match map.vma_at(at) {
            Some(vma) => at = vma.end,
            None => return false,
        }
    }
    true
}

/// Pages of an object from `first_page` on are gone (a file was cut): touching them faults again.
pub(crate) fn drop_object_pages(kernel: &mut Kernel, gone: ObjectId, first_page: u64) {
    for space in kernel.state.spaces.values_mut() {
        let ranges: Vec<(PageNo, PageNo)> = space
            .map
            .vmas()
            .iter()
            .filter_map(|vma| match vma.backing {
                Backing::Object {
                    object,
                    first_page: start,
                } if object == gone && start + vma.pages() > first_page => {
                    let kept = first_page.saturating_sub(start);
                    Some((PageNo(vma.start.0 + kept), vma.end))
                }
                _ => None,
            })
            .collect();
        for (start, end) in ranges {
            space.map.drop_pages(&mut kernel.frames, start, end);
        }
    }
}

/// brk(2): moves the end of the heap, or tells it.
pub(crate) fn set_brk(kernel: &mut Kernel, tid: Tid, wanted: u64) -> u64 {
    let memory_max = kernel.config.memory_max;
    let (frames, space) = kernel.memory_of(tid);
    if wanted < space.brk_start || wanted > MMAP_TOP || wanted - space.brk_start > memory_max {
        return space.brk;
    }
    let old_end = PageNo(space.brk.div_ceil(4096));
    let new_end = PageNo(wanted.div_ceil(4096));
    if new_end > old_end {
        if is_mapped_somewhere(&space.map, old_end, new_end) {
            return space.brk;
        }
        space.map.map(
            frames,
            Vma {
                start: old_end,
                end: new_end,
                perm: Perm::RW,
                shared: false,
                backing: Backing::Anonymous,
                label: "[heap]".into(),
            },
        );
    } else if new_end < old_end {
        space.map.unmap(frames, new_end, old_end);
    }
    space.brk = wanted;
    wanted
}

/// Arguments of mremap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemapRequest {
    pub(crate) addr: u64,
    pub(crate) old_length: u64,
    pub(crate) new_length: u64,
    pub(crate) may_move: bool,
    /// The new address, if it is prescribed.
    pub(crate) target: Option<u64>,
}

/// mremap(2); gives the address.
pub(crate) fn remap(kernel: &mut Kernel, tid: Tid, request: RemapRequest) -> Result<u64, Errno> {
    if request.old_length == 0 || request.new_length == 0 {
        return Err(Errno::EINVAL);
    }
    let (start, old_end) = page_range(request.addr, request.old_length).ok_or(Errno::EINVAL)?;
    let new_pages = PageNo::count_for(request.new_length);
    let old_pages = old_end.0 - start.0;
    let vma = kernel
        .space_of(tid)
        .map
        .vma_at(start)
        .cloned()
        .ok_or(Errno::EFAULT)?;
    if vma.end < old_end {
        return Err(Errno::EFAULT);
    }
    if let Some(target) = request.target {
        return move_to(kernel, tid, &vma, start, old_pages, new_pages, target);
    }
    let (frames, space) = kernel.memory_of(tid);
    if new_pages <= old_pages {
        space
            .map
            .unmap(frames, PageNo(start.0 + new_pages), old_end);
        return Ok(request.addr);
    }
    let new_end = PageNo(start.0 + new_pages);
    let is_free = old_end == vma.end && !is_mapped_somewhere(&space.map, old_end, new_end);
    if is_free && new_end.start().0 <= USER_END {
        let extension = continuation(&vma, old_end, new_end);
        space.map.map(frames, extension);
        return Ok(request.addr);
    }
    if !request.may_move {
        return Err(Errno::ENOMEM);
    }
    let target = find_below(&space.map, new_pages, MMAP_TOP).ok_or(Errno::ENOMEM)?;
    move_to(
        kernel,
        tid,
        &vma,
        start,
        old_pages,
        new_pages,
        target.start().0,
    )
}

fn move_to(
    kernel: &mut Kernel,
    tid: Tid,
    vma: &Vma,
    start: PageNo,
    old_pages: u64,
    new_pages: u64,
    target: u64,
) -> Result<u64, Errno> {
    let (target, target_end) = page_range(target, new_pages << PAGE_BITS).ok_or(Errno::EINVAL)?;
    let overlaps = target.0 < start.0 + old_pages && start < target_end;
    if overlaps || target.start().0 < LOWEST {
        return Err(Errno::EINVAL);
    }
    let kept = old_pages.min(new_pages);
    let (frames, space) = kernel.memory_of(tid);
    space.map.unmap(frames, target, target_end);
    space
        .map
        .unmap(frames, PageNo(start.0 + kept), PageNo(start.0 + old_pages));
    space
        .map
        .relocate(frames, start, PageNo(start.0 + kept), target);
    if new_pages > kept {
        let mut extension = continuation(vma, PageNo(start.0 + kept), PageNo(start.0 + new_pages));
        extension.start = PageNo(target.0 + kept);
        extension.end = target_end;
        space.map.map(frames, extension);
    }
    Ok(target.start().0)
}

/// An area like `vma` for pages that would be at `start..end` if it went on.
fn continuation(vma: &Vma, start: PageNo, end: PageNo) -> Vma {
    let backing = match vma.backing {
        Backing::Anonymous => Backing::Anonymous,
        Backing::Object { object, first_page } => Backing::Object {
            object,
            first_page: first_page + (start.0 - vma.start.0),
        },
    };
    Vma {
        start,
        end,
        backing,
        ..vma.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_whole_pages_below_the_end_of_user_memory() {
        assert_eq!(page_range(0x1000, 1), Some((PageNo(1), PageNo(2))));
        assert_eq!(page_range(0x1001, 1), None);
        assert_eq!(page_range(0x1000, u64::MAX), None);
        assert_eq!(page_range(USER_END, 1), None);
    }

    #[test]
    fn writable_pages_are_readable() {
        assert!(perm(2).read && perm(2).write && !perm(2).execute);
        assert_eq!(perm(0), Perm::NONE);
    }
}
