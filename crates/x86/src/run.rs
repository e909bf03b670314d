//! What handlers need besides registers: the software TLB, and pointers that are valid during one run.

use raddle_mem::{AddressSpace, FrameId, Frames, PAGE_SIZE};

use crate::cache::{CodeCache, JumpEntry};
use crate::engine::Observe;
use crate::exit::Fault;
use crate::op::Op;
use crate::stub::StubCache;
use crate::supervisor::SystemRun;

/// Number of TLB entries; a power of two.
pub(crate) const TLB_ENTRIES: usize = 512;

/// A tag that no page has.
pub(crate) const INVALID: u64 = 1;

/// One cached translation. A tag is the page's address if that kind of access may go straight to memory.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct TlbEntry {
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// Host address minus guest address.
    pub(crate) addend: u64,
    pub(crate) frame: u32,
    /// See [`tlb_state`]; zero where the Linux world runs.
    pub(crate) state: u32,
}

/// What a TLB entry of a paged machine is besides its tags.
pub(crate) mod tlb_state {
    /// Bits 0 to 5: size of the page as a power of two.
    pub(crate) const PAGE_BITS: u32 = 0x3F;
    /// Stays when CR3 is loaded.
    pub(crate) const GLOBAL: u32 = 1 << 6;
    /// A walk for a write has been made: permission is there and the dirty bit is set.
    pub(crate) const WRITE_WALKED: u32 = 1 << 7;
}

pub(crate) const EMPTY: TlbEntry = TlbEntry {
    read: INVALID,
    write: INVALID,
    addend: 0,
    frame: 0,
    state: 0,
};

/// Why the handlers returned to the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The next block needs more steps than are left.
    Budget,
    /// No block for RIP is known here; if `patch` is set, link it when found.
    NeedBlock,
    Syscall,
    Interrupt(u8),
    Halt,
    Fault(Fault),
    /// A memory operand of a fast handler lies outside the canonical addresses.
    NotCanonical,
    Point,
    Unsupported,
    /// Paged machine only: something that the loop must look at, behind the instruction.
    Attend,
    /// PAUSE, where the slice asked to stop there.
    Pause,
    /// The guest calls its host.
    Hypercall,
}

/// State of one run; `repr(C)` so that the TLB is at the address handlers get.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) tlb: [TlbEntry; TLB_ENTRIES],
    pub(crate) jumps: *const JumpEntry,
    pub(crate) leave: Leave,
    pub(crate) budget: i64,
    pub(crate) log: *mut u64,
    /// The link op that should be patched to the block for RIP.
    pub(crate) patch: *mut Op,
    pub(crate) frames: *mut Frames,
    pub(crate) space: *mut AddressSpace,
    pub(crate) cache: *mut CodeCache,
    pub(crate) stubs: *mut StubCache,
    pub(crate) observe: Observe,
    pub(crate) slice_steps: i64,
    /// Sixteen bytes on their way through the slow path.
    pub(crate) wide: u128,
    pub(crate) tsc: u64,
    /// Program counter at which a point must not stop the run.
    pub(crate) skip_point: u64,
    /// Points that may be passed without a stop.
    pub(crate) points_left: u64,
    /// Points that are never passed; a table of bits by [`interest_bit`], valid while points may be passed.
    pub(crate) interest: *const u64,
    /// The paged machine this run is on; null where the Linux world runs.
    pub(crate) system: *mut SystemRun,
    /// Of a paged machine: the TLB holds translations of user mode.
    pub(crate) is_user: bool,
    /// What the TLB was filled from.
    space_version: u64,
    write_epoch: u32,
}

impl Run {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            tlb: [EMPTY; TLB_ENTRIES],
            jumps: std::ptr::null(),
            leave: Leave::Budget,
            budget: 0,
            log: std::ptr::null_mut(),
            patch: std::ptr::null_mut(),
            frames: std::ptr::null_mut(),
            space: std::ptr::null_mut(),
            cache: std::ptr::null_mut(),
            stubs: std::ptr::null_mut(),
            observe: Observe::None,
            slice_steps: 0,
            wide: 0,
            tsc: 0,
            skip_point: u64::MAX,
            points_left: 0,
            interest: std::ptr::null(),
            system: std::ptr::null_mut(),
            is_user: false,
            space_version: 0,
            write_epoch: 0,
        })
    }

    /// Drops what is no longer true of these mappings and this snapshot epoch. A restore takes back pages that
    /// were filled in since, without a new version of the mappings, so that even read tags are void after it.
    pub(crate) fn validate_tlb(&mut self, space: &AddressSpace, frames: &Frames) {
        if self.space_version != space.version() || self.write_epoch != frames.write_epoch() {
            self.tlb.fill(EMPTY);
            self.space_version = space.version();
            self.write_epoch = frames.write_epoch();
        }
    }

    /// The TLB follows what the slow path itself did to the mappings.
    pub(crate) fn adopt_version(&mut self, version: u64) {
        self.space_version = version;
    }

    /// Caches a translation.
    pub(crate) fn fill(&mut self, page_start: u64, frame: FrameId, host: *mut u8, writable: bool) {
        let entry = &mut self.tlb[index_of(page_start)];
        entry.read = page_start;
        entry.write = if writable { page_start } else { INVALID };
        entry.addend = (host.expose_provenance() as u64).wrapping_sub(page_start);
        entry.frame = frame.0;
        entry.state = 0;
    }

    /// Forgets every translation if the snapshot epoch is another one.
    pub(crate) fn validate_epoch(&mut self, frames: &Frames) {
        if self.write_epoch != frames.write_epoch() {
            self.tlb.fill(EMPTY);
            self.write_epoch = frames.write_epoch();
        }
    }

    /// Takes write permission of this page from the fast path: it now holds decoded code.
    pub(crate) fn protect_code(&mut self, frame: FrameId) {
        for entry in &mut self.tlb {
            if entry.frame == frame.0 {
                entry.write = INVALID;
            }
        }
    }
}

/// Words of the table of points that are never passed.
pub(crate) const INTEREST_WORDS: usize = 64;

/// The word and the bit of a program counter in the table of points that are never passed. Some share a bit: a stop
/// too many does no harm.
#[inline(always)]
pub(crate) fn interest_bit(pc: u64) -> (usize, u64) {
    let hash = pc ^ (pc >> 12);
    let word = raddle_stdx::width::to_usize(hash >> 6) % INTEREST_WORDS;
    (word, 1 << (hash & 63))
}

/// The entry that serves an address.
#[inline(always)]
pub(crate) fn index_of(addr: u64) -> usize {
    raddle_stdx::width::to_usize(addr / PAGE_SIZE as u64) % TLB_ENTRIES
}
