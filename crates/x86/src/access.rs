//! Memory access: the inlined fast path through the TLB and the slow path behind it.
#![expect(unsafe_code, reason = "follows host pointers that the TLB vouches for")]

use raddle_mem::{Access, FrameId, GuestAddr, PAGE_SIZE, PageFault};

use crate::engine::Observe;
use crate::exit::{Fault, MemoryFault, Vector};
use crate::fast::{OBSERVE_ADDR, OBSERVE_VALUE, record};
use crate::int::Int;
use crate::op::Meta;
use crate::run::{Leave, Run, index_of};
use crate::supervisor;

const PAGE_MASK: u64 = !(PAGE_SIZE as u64 - 1);

/// Where to read `T` at `addr`, or null if the slow path must be taken (also if the access crosses a page).
///
/// # Safety
/// `run` is the live run.
#[inline(always)]
pub(crate) unsafe fn fast_read<T: Int>(run: *mut Run, addr: u64) -> *const T {
    // SAFETY: the index is below the number of entries.
    let entry = unsafe { (*run).tlb.get_unchecked(index_of(addr)) };
    let last_page = addr.wrapping_add(T::BYTES as u64 - 1) & PAGE_MASK;
    if entry.read == last_page {
        std::ptr::with_exposed_provenance(raddle_stdx::width::to_usize(
            addr.wrapping_add(entry.addend),
        ))
    } else {
        std::ptr::null()
    }
}

/// Where to write `T` at `addr`, or null.
///
/// # Safety
/// `run` is the live run.
#[inline(always)]
pub(crate) unsafe fn fast_write<T: Int>(run: *mut Run, addr: u64) -> *mut T {
    // SAFETY: the index is below the number of entries.
    let entry = unsafe { (*run).tlb.get_unchecked(index_of(addr)) };
    let last_page = addr.wrapping_add(T::BYTES as u64 - 1) & PAGE_MASK;
    if entry.write == last_page {
        std::ptr::with_exposed_provenance_mut(raddle_stdx::width::to_usize(
            addr.wrapping_add(entry.addend),
        ))
    } else {
        std::ptr::null_mut()
    }
}

/// Result of a slow load, in two registers.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct SlowLoad {
    pub(crate) value: u64,
    /// 1 if the value is there, 0 if `run.leave` says why not.
    pub(crate) ok: u64,
}

/// Reads up to eight bytes when the fast path cannot.
///
/// # Safety
/// `run` is the live run.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn slow_load(
    run: *mut Run,
    addr: u64,
    size: u64,
    for_update: u64,
) -> SlowLoad {
    let mut bytes = [0; 8];
    let size = raddle_stdx::width::to_usize(size);
    let access = if for_update == 0 {
        Access::Read
    } else {
        Access::Write
    };
    // SAFETY: `run` is live; nothing else refers to it during this call.
    match unsafe { read_bytes(&mut *run, addr, &mut bytes[..size], access) } {
        Ok(()) => SlowLoad {
            value: u64::from_le_bytes(bytes),
            ok: 1,
        },
        Err(fault) => {
            // SAFETY: as above.
            unsafe { (*run).leave = leave_of(fault) };
            SlowLoad { value: 0, ok: 0 }
        }
    }
}

/// Writes up to eight bytes when the fast path cannot; zero if `run.leave` says why not.
///
/// # Safety
/// `run` is the live run.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn slow_store(run: *mut Run, addr: u64, size: u64, value: u64) -> u64 {
    let bytes = value.to_le_bytes();
    let size = raddle_stdx::width::to_usize(size);
    // SAFETY: `run` is live; nothing else refers to it during this call.
    match unsafe { write_bytes(&mut *run, addr, &bytes[..size]) } {
        Ok(()) => 1,
        Err(fault) => {
            // SAFETY: as above.
            unsafe { (*run).leave = leave_of(fault) };
            0
        }
    }
}

/// A bad address is #SS or #GP, depending on the base register, which only the handler's op knows.
pub(crate) fn leave_of(fault: Fault) -> Leave {
    match fault {
        Fault::Exception { .. } => Leave::NotCanonical,
        Fault::Memory(_) => Leave::Fault(fault),
    }
}

/// Reads any number of bytes; nothing is read if any page faults.
pub(crate) fn read_bytes(
    run: &mut Run,
    addr: u64,
    into: &mut [u8],
    access: Access,
) -> Result<(), Fault> {
    if !run.system.is_null() {
        return supervisor::read(run, addr, into, access);
    }
    check_canonical(addr, into.len())?;
    if crosses_page(addr, into.len()) {
        for_each_page(addr, into.len(), |at, range| {
            translate_checked(run, at, range.len(), access).map(|_| ())
        })?;
    }
    for_each_page(addr, into.len(), |at, range| {
        let frame = translate_checked(run, at, range.len(), access)?;
        let offset = GuestAddr(at).page_offset();
        // SAFETY: `frames` is valid during a run.
        let frames = unsafe { &*run.frames };
        into[range.clone()].copy_from_slice(&frames.bytes(frame)[offset..offset + range.len()]);
        Ok(())
    })
}

/// Writes any number of bytes; nothing is written if any page faults.
pub(crate) fn write_bytes(run: &mut Run, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
    if !run.system.is_null() {
        return supervisor::write(run, addr, bytes);
    }
    check_canonical(addr, bytes.len())?;
    if crosses_page(addr, bytes.len()) {
        for_each_page(addr, bytes.len(), |at, range| {
            translate_checked(run, at, range.len(), Access::Write).map(|_| ())
        })?;
    }
    for_each_page(addr, bytes.len(), |at, range| {
        let frame = translate_checked(run, at, range.len(), Access::Write)?;
        // SAFETY: `frames` is valid during a run and no reference to it is alive.
        let frames = unsafe { &mut *run.frames };
        frames.write(frame, GuestAddr(at).page_offset(), &bytes[range]);
        if frames.has_stale_code() {
            // SAFETY: `cache` is valid during a run.
            unsafe { (*run.cache).drop_stale(frames) };
        }
        Ok(())
    })
}

/// Whether an access needs more than one page, all of which must be there before anything happens.
pub(crate) fn crosses_page(addr: u64, len: usize) -> bool {
    GuestAddr(addr).page_offset() + len > PAGE_SIZE
}

/// The frame of an address for an access of `len` bytes in one page, none of which may be forbidden.
fn translate_checked(
    run: &mut Run,
    addr: u64,
    len: usize,
    access: Access,
) -> Result<FrameId, Fault> {
    let frame = translate(run, addr, access)?;
    check_forbidden(run, addr, len, access)?;
    Ok(frame)
}

/// Finds the frame of an address for an access and caches the translation.
fn translate(run: &mut Run, addr: u64, access: Access) -> Result<FrameId, Fault> {
    // SAFETY: `frames` and `space` are valid during a run and no reference to them is alive.
    let (frames, space) = unsafe { (&mut *run.frames, &mut *run.space) };
    let guest = GuestAddr(addr);
    let layout = space.code_layout();
    let found = space
        .translate(frames, guest.page(), access)
        .map_err(|cause| {
            Fault::Memory(MemoryFault {
                addr: guest,
                access,
                cause,
            })
        })?;
    // A copy made just now may have replaced the frame that the TLB knew; filling the entry puts that right,
    // and no other entry can hold this page.
    run.adopt_version(space.version());
    if layout != space.code_layout() {
        // SAFETY: `cache` is valid during a run.
        unsafe { (*run.cache).retire(layout) };
    }
    let mut writable = false;
    if access == Access::Write {
        frames.prepare_write(found.frame);
        writable = !frames.has_code(found.frame);
    }
    if found.cacheable {
        run.fill(
            addr & PAGE_MASK,
            found.frame,
            frames.host_pointer(found.frame),
            writable,
        );
    }
    Ok(found.frame)
}

/// A fault if any of the bytes is forbidden. Their pages are never in the TLB, so that only this path has to ask.
fn check_forbidden(run: &Run, addr: u64, len: usize, access: Access) -> Result<(), Fault> {
    // SAFETY: `space` is valid during a run and no other reference to it is alive.
    let space = unsafe { &*run.space };
    if space.forbids(GuestAddr(addr), len as u64) {
        return Err(Fault::Memory(MemoryFault {
            addr: GuestAddr(addr),
            access,
            cause: PageFault::Forbidden,
        }));
    }
    Ok(())
}

/// Calls `visit` with the start and the range of `0..len` of each page piece.
pub(crate) fn for_each_page(
    addr: u64,
    len: usize,
    mut visit: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut done = 0;
    while done < len {
        let at = addr.wrapping_add(done as u64);
        let count = (PAGE_SIZE - GuestAddr(at).page_offset()).min(len - done);
        visit(at, done..done + count)?;
        done += count;
    }
    Ok(())
}

/// Addresses must be sign-extended from bit 47 (SDM vol. 1, 3.3.7.1).
pub(crate) fn check_canonical(addr: u64, len: usize) -> Result<(), Fault> {
    let last = addr.wrapping_add((len as u64).saturating_sub(1));
    let canonical = |addr: u64| (addr.cast_signed() << 16 >> 16).cast_unsigned() == addr;
    if canonical(addr) && canonical(last) {
        Ok(())
    } else {
        Err(Fault::Exception {
            vector: Vector::GeneralProtection,
            error_code: 0,
        })
    }
}

/// Appends a record to the log, if there is one.
pub(crate) fn append(observe: Observe, log: &mut *mut u64, addr: u64, meta: Meta, value: u64) {
    // SAFETY: the engine bounds the steps of a slice so that the log cannot overflow.
    unsafe {
        match observe {
            Observe::None => {}
            Observe::Addr => record::<OBSERVE_ADDR>(log, addr, meta, value),
            Observe::AddrValue => record::<OBSERVE_VALUE>(log, addr, meta, value),
        }
    }
}
