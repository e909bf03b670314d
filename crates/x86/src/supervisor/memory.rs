//! Linear memory of a paged machine: the guest's page tables behind the software TLB.
//!
//! The TLB has one set of entries per privilege level, so that no entry needs a privilege tag. Translations of
//! code are not in it: blocks rest on page-table entries directly (see `prove`), so that what is decoded never
//! changes what a run does. For the same reason fetching sets no accessed bit.
#![expect(unsafe_code, reason = "follows the pointers of a live run")]

use raddle_mem::{Access, FrameId, Frames, GuestAddr, PAGE_BITS, PAGE_SIZE, PageFault};
use raddle_stdx::width::{low_u8, low_u32, to_u64};

use super::SystemRun;
use crate::access::{check_canonical, crosses_page, for_each_page};
use crate::cache::PageKey;
use crate::exit::{Fault, MemoryFault};
use crate::paging::{self, Controls, PhysicalMemory};
use crate::run::{EMPTY, INVALID, Run, index_of, tlb_state};
use crate::system::efer;

const PAGE_MASK: u64 = !(PAGE_SIZE as u64 - 1);

/// What a fault says of an access that only a device can answer: no frame is there.
pub(super) const DEVICE: PageFault = PageFault::OutOfFrames;

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Frame(FrameId),
    /// A physical address without memory.
    Device(u64),
}

/// Physical memory from address zero: page `p` is frame `p + 1`.
pub(super) struct Ram<'a> {
    pub(super) frames: &'a mut Frames,
    pub(super) pages: u64,
}

/// The frame of a physical address, if there is memory.
pub(super) fn frame_of(physical: u64, pages: u64) -> Option<FrameId> {
    let page = physical >> PAGE_BITS;
    (page < pages).then(|| FrameId(low_u32(page) + 1))
}

impl PhysicalMemory for Ram<'_> {
    fn load(&mut self, addr: u64, bytes: usize) -> u64 {
        let Some(frame) = frame_of(addr, self.pages) else {
            return 0;
        };
        let page = self.frames.bytes(frame);
        let entry = &page[GuestAddr(addr).page_offset()..];
        match (entry.first_chunk(), entry.first_chunk()) {
            (Some(entry), _) if bytes == 8 => u64::from_le_bytes(*entry),
            (_, Some(entry)) => u64::from(u32::from_le_bytes(*entry)),
            _ => 0,
        }
    }

    fn store(&mut self, addr: u64, value: u64, bytes: usize) {
        if let Some(frame) = frame_of(addr, self.pages) {
            let offset = GuestAddr(addr).page_offset();
            self.frames
                .write_unnoticed(frame, offset, &value.to_le_bytes()[..bytes]);
        }
    }
}

/// The page fault of a failed walk.
pub(super) fn page_fault(addr: u64, access: Access, code: u32) -> Fault {
    let cause = if code & 1 == 0 {
        PageFault::NotMapped
    } else {
        PageFault::Protection
    };
    Fault::Memory(MemoryFault {
        addr: GuestAddr(addr),
        access,
        cause,
    })
}

fn device_fault(addr: u64, access: Access) -> Fault {
    Fault::Memory(MemoryFault {
        addr: GuestAddr(addr),
        access,
        cause: DEVICE,
    })
}

/// The machine of a run.
///
/// # Safety
/// The run is in use by the engine of a paged machine, so its pointers are set, and no other reference to the machine
/// is alive.
unsafe fn system(run: &mut Run) -> &mut SystemRun {
    debug_assert!(!run.system.is_null(), "the run is on a paged machine");
    // SAFETY: the caller promises it; the borrow of the run lasts as long as the reference.
    unsafe { &mut *run.system }
}

/// The control registers that translations depend on.
fn controls(run: &Run) -> Controls {
    debug_assert!(!run.system.is_null(), "the run is on a paged machine");
    // SAFETY: the engine sets the pointer for the time of a run; the value is copied.
    unsafe { (*run.system).controls }
}

/// The memory of a run.
///
/// # Safety
/// The run is in use by the engine of a paged machine, and the memory is not used otherwise as long as this is alive.
unsafe fn ram<'a>(run: &Run) -> Ram<'a> {
    debug_assert!(!run.system.is_null() && !run.frames.is_null());
    // SAFETY: the engine sets both pointers for the time of a run; that no other code uses the memory the caller
    // promises.
    let (frames, pages) = unsafe { (&mut *run.frames, (*run.system).ram_pages) };
    Ram { frames, pages }
}

/// Finds the place of an address at the run's privilege level and caches the translation.
fn translate(run: &mut Run, addr: u64, access: Access) -> Result<Behind, Fault> {
    let page = addr & PAGE_MASK;
    // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
    let memory = unsafe { ram(run) };
    let entry = &mut run.tlb[index_of(addr)];
    let is_known = entry.read == page
        && (access == Access::Read || entry.state & tlb_state::WRITE_WALKED != 0);
    if is_known {
        let frame = FrameId(entry.frame);
        if access == Access::Write {
            memory.frames.prepare_write(frame);
            if !memory.frames.has_code(frame) {
                entry.write = page;
            }
        }
        return Ok(Behind::Frame(frame));
    }
    let is_user = run.is_user;
    let mut memory = memory;
    let found = paging::walk(controls(run), addr, access, is_user, &mut memory)
        .map_err(|code| page_fault(addr, access, code))?;
    let Some(frame) = frame_of(found.physical, memory.pages) else {
        return Ok(Behind::Device(found.physical));
    };
    let is_write = access == Access::Write;
    if is_write {
        memory.frames.prepare_write(frame);
    }
    let may_write = is_write && !memory.frames.has_code(frame);
    run.fill(page, frame, memory.frames.host_pointer(frame), may_write);
    let mut state = found.page_bits;
    if found.is_global {
        state |= tlb_state::GLOBAL;
    }
    if is_write {
        state |= tlb_state::WRITE_WALKED;
    }
    run.tlb[index_of(addr)].state = state;
    Ok(Behind::Frame(frame))
}

/// Addresses outside long mode have 32 bits and are always good.
fn check_address(run: &Run, addr: u64, len: usize) -> Result<(), Fault> {
    if controls(run).efer & efer::LMA == 0 {
        return Ok(());
    }
    check_canonical(addr, len)
}

/// Loads at the run's privilege level; nothing is read if any page faults.
pub(crate) fn read(run: &mut Run, addr: u64, into: &mut [u8], access: Access) -> Result<(), Fault> {
    check_address(run, addr, into.len())?;
    if crosses_page(addr, into.len()) {
        for_each_page(addr, into.len(), |at, _| {
            translate(run, at, access).map(|_| ())
        })?;
    }
    for_each_page(addr, into.len(), |at, range| {
        match translate(run, at, access)? {
            Behind::Frame(frame) => {
                let offset = GuestAddr(at).page_offset();
                // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
                let bytes = unsafe { ram(run) }.frames.bytes(frame);
                into[range.clone()].copy_from_slice(&bytes[offset..offset + range.len()]);
            }
            Behind::Device(physical) => {
                let piece = &mut into[range];
                read_device(run, physical, piece).ok_or_else(|| device_fault(at, access))?;
            }
        }
        Ok(())
    })
}

/// Stores at the run's privilege level; nothing is written if any page faults.
pub(crate) fn write(run: &mut Run, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
    check_address(run, addr, bytes.len())?;
    if crosses_page(addr, bytes.len()) {
        for_each_page(addr, bytes.len(), |at, _| {
            translate(run, at, Access::Write).map(|_| ())
        })?;
    }
    for_each_page(addr, bytes.len(), |at, range| {
        match translate(run, at, Access::Write)? {
            Behind::Frame(frame) => store(run, frame, at, &bytes[range]),
            Behind::Device(physical) => write_device(run, physical, &bytes[range])
                .ok_or_else(|| device_fault(at, Access::Write))?,
        }
        Ok(())
    })
}

fn store(run: &mut Run, frame: FrameId, at: u64, bytes: &[u8]) {
    // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
    let memory = unsafe { ram(run) };
    memory
        .frames
        .write(frame, GuestAddr(at).page_offset(), bytes);
    if memory.frames.has_stale_code() {
        refresh_code(run);
    }
}

fn read_device(run: &mut Run, physical: u64, into: &mut [u8]) -> Option<()> {
    // SAFETY: memory is accessed by runs that are in use, and this is the only reference to the machine.
    let system = unsafe { system(run) };
    if !system.may_touch_devices || into.len() > 8 {
        return None;
    }
    let at = system.access();
    let bytes = low_u8(to_u64(into.len()));
    // SAFETY: an access of a run in use, which has no other reference to the devices.
    let devices = unsafe { system.devices() };
    let value = devices.mmio_read(at, physical, bytes);
    into.copy_from_slice(&value.to_le_bytes()[..into.len()]);
    Some(())
}

fn write_device(run: &mut Run, physical: u64, bytes: &[u8]) -> Option<()> {
    // SAFETY: memory is accessed by runs that are in use, and this is the only reference to the machine.
    let system = unsafe { system(run) };
    if !system.may_touch_devices || bytes.len() > 8 {
        return None;
    }
    let at = system.access();
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let size = low_u8(to_u64(bytes.len()));
    // SAFETY: an access of a run in use, which has no other reference to the devices.
    let devices = unsafe { system.devices() };
    devices.mmio_write(at, physical, u64::from_le_bytes(word), size);
    Some(())
}

/// Loads with supervisor privilege, whatever the run's level.
pub(super) fn read_supervisor(run: &mut Run, addr: u64, into: &mut [u8]) -> Result<(), Fault> {
    if !run.is_user {
        return read(run, addr, into, Access::Read);
    }
    check_address(run, addr, into.len())?;
    for_each_page(addr, into.len(), |at, range| {
        let frame = walk_supervisor(run, at, Access::Read)?;
        let offset = GuestAddr(at).page_offset();
        // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
        let bytes = unsafe { ram(run) }.frames.bytes(frame);
        into[range.clone()].copy_from_slice(&bytes[offset..offset + range.len()]);
        Ok(())
    })
}

/// Stores with supervisor privilege, whatever the run's level; nothing is written if any page faults.
pub(super) fn write_supervisor(run: &mut Run, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
    if !run.is_user {
        return write(run, addr, bytes);
    }
    check_address(run, addr, bytes.len())?;
    for_each_page(addr, bytes.len(), |at, _| {
        walk_supervisor(run, at, Access::Write).map(|_| ())
    })?;
    for_each_page(addr, bytes.len(), |at, range| {
        let frame = walk_supervisor(run, at, Access::Write)?;
        store(run, frame, at, &bytes[range]);
        Ok(())
    })
}

fn walk_supervisor(run: &Run, addr: u64, access: Access) -> Result<FrameId, Fault> {
    // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
    let mut memory = unsafe { ram(run) };
    let found = paging::walk(controls(run), addr, access, false, &mut memory)
        .map_err(|code| page_fault(addr, access, code))?;
    frame_of(found.physical, memory.pages).ok_or_else(|| device_fault(addr, access))
}

impl Run {
    /// Forgets translations: all, or all but those of global pages.
    pub(super) fn flush(&mut self, keep_global: bool) {
        for entry in &mut self.tlb {
            if !keep_global || entry.state & tlb_state::GLOBAL == 0 {
                *entry = EMPTY;
            }
        }
    }

    /// Forgets the translation of one page, which may be a large one.
    pub(super) fn flush_page(&mut self, addr: u64) {
        for entry in &mut self.tlb {
            let bits = entry.state & tlb_state::PAGE_BITS;
            if entry.read != INVALID && entry.read >> bits == addr >> bits {
                *entry = EMPTY;
            }
        }
    }
}

/// Drops blocks whose bytes changed, and those that page tables put elsewhere now.
pub(super) fn refresh_code(run: &mut Run) {
    // SAFETY: `cache` is valid during a run.
    let cache = unsafe { &mut *run.cache };
    loop {
        // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
        let memory = unsafe { ram(run) };
        cache.drop_stale(memory.frames);
        let unproven = cache.take_unproven();
        if unproven.is_empty() {
            return;
        }
        for page in unproven {
            let Some(known) = cache.code_page(page) else {
                continue;
            };
            let found = prove(run, page);
            if found.ok() != Some(known) {
                cache.drop_code_page(page);
            }
        }
    }
}

/// Looks a code page up and makes its blocks depend on the table entries that say where it is.
pub(super) fn prove(run: &mut Run, page: PageKey) -> Result<FrameId, Fault> {
    let (key, number) = page;
    let addr = number << PAGE_BITS;
    let current = controls(run);
    let controls = Controls {
        cr3: super::group::root(key, current),
        ..current
    };
    let is_user = super::group::is_user(key);
    // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
    let mut memory = unsafe { ram(run) };
    let (found, trail) = paging::peek(controls, addr, Access::Execute, is_user, &mut memory)
        .map_err(|code| page_fault(addr, Access::Execute, code))?;
    let frame = frame_of(found.physical, memory.pages)
        .ok_or_else(|| page_fault(addr, Access::Execute, 1))?;
    let mut tables = [None; 4];
    for (table, at) in tables.iter_mut().zip(trail) {
        *table = frame_of(at, memory.pages).filter(|_| at != 0);
        if let Some(table) = *table {
            mark_code(run, table, GuestAddr(at).page_offset(), 8);
        }
    }
    // SAFETY: `cache` is valid during a run.
    let cache = unsafe { &mut *run.cache };
    cache.add_code_page(page, frame, tables.into_iter().flatten());
    Ok(frame)
}

/// Notes that blocks rest on these bytes: writes to them must be seen, by whichever processor they are made.
pub(super) fn mark_code(run: &mut Run, frame: FrameId, offset: usize, len: usize) {
    // SAFETY: the run is in use, and nothing else refers to the memory until the next line that asks for it.
    let memory = unsafe { ram(run) };
    let had_code = memory.frames.has_code(frame);
    memory.frames.mark_code(frame, offset, len);
    if had_code {
        return;
    }
    // SAFETY: the pointers of a run in use are set. `processors` is valid during a run; the run in use is one of its runs, reached through the same
    // allocation, and only tags of TLB entries change.
    unsafe {
        let processors = (*run.system).processors;
        for processor in &mut *processors {
            for level in &mut processor.levels {
                level.protect_code(frame);
            }
        }
    }
}
