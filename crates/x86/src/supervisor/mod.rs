//! The paged machine: processors that run a kernel on its own page tables.
//!
//! ```text
//!   linear address ──TLB of (processor, privilege)──▶ frame          hit: no further work
//!        │ miss
//!        ▼
//!   paging::walk over guest frames ──▶ #PF through the interrupt table, a frame, or a device
//! ```
//!
//! The handlers, the lowering and the code cache are those of the Linux world. What differs is behind the slow
//! path of memory accesses (`memory`), in what generic instructions may demand of the loop (`step`), and in the
//! loop itself, which delivers faults and changes levels. A run ends exactly after the steps asked for; the machine
//! around it owns time, interrupts and devices. An exception that is delivered counts as one step.
#![expect(
    unsafe_code,
    reason = "calls handlers and hands them pointers that live as long as the call"
)]

mod bus;
mod devices;
mod engine;
mod fetch;
mod group;
mod memory;
mod step;
#[cfg(test)]
mod tests;

use raddle_mem::Frames;

use crate::cache::CodeCache;
use crate::paging::Controls;
use crate::run::Run;
pub use devices::{DeviceAccess, Devices, HYPERCALL_LEAF};
pub use engine::{SystemEngine, SystemExit, SystemOutcome, SystemSlice};
pub(crate) use memory::{read, write};
pub(crate) use step::{after_step, before_step, is_hypercall};

/// What an instruction demands of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Request {
    /// Translations are void; global ones too if `flush_global`.
    flush: bool,
    flush_global: bool,
    /// The translation of one page is void.
    page: Option<u64>,
    /// A device was touched.
    device: bool,
    /// The interrupt that the slice names is over.
    interrupt_done: bool,
}

impl Request {
    fn is_any(self) -> bool {
        self.flush || self.device || self.interrupt_done || self.page.is_some()
    }
}

/// The part of a run's state that only a paged machine has.
#[derive(Debug)]
pub(crate) struct SystemRun {
    controls: Controls,
    ram_pages: u64,
    /// Number of the running processor.
    cpu: usize,
    /// The time-stamp counter at the current instruction.
    now: u64,
    request: Request,
    may_touch_devices: bool,
    /// An interrupt waits for the processor to admit it.
    wants_window: bool,
    stop_at_pause: bool,
    /// Where the frame of the interrupt in progress is; all ones if there is none.
    interrupt_frame: u64,
    /// Steps left right behind the last instruction that holds interrupts off for one more.
    shadow_budget: i64,
    processors: *mut [Processor],
    devices: *mut dyn Devices,
}

impl SystemRun {
    fn access(&self) -> DeviceAccess {
        DeviceAccess {
            cpu: self.cpu,
            tsc: self.now,
        }
    }

    /// Whether an interrupt waits for the processor to admit it.
    pub(crate) fn wants_window(&self) -> bool {
        self.wants_window
    }

    /// Interrupts are held off for the one instruction that begins with `left` steps left.
    pub(crate) fn begin_shadow(&mut self, left: i64) {
        self.shadow_budget = left;
    }

    /// The devices of the machine.
    ///
    /// # Safety
    /// The engine is in a run on this machine: it sets the pointer for that time, during which no other code refers to
    /// the devices.
    unsafe fn devices(&mut self) -> &mut dyn Devices {
        // SAFETY: the caller promises it; the borrow of the machine lasts as long as the reference.
        unsafe { &mut *self.devices }
    }
}

/// What the engine keeps per processor: one software TLB for each privilege level.
#[derive(Debug)]
pub struct Processor {
    levels: [Box<Run>; 2],
}

impl Processor {
    fn new() -> Self {
        let mut levels = [Run::new(), Run::new()];
        levels[1].is_user = true;
        Self { levels }
    }
}

/// The code cache of a run.
///
/// # Safety
/// The engine is in a run with this `Run`, so its pointers are set, and no reference to the cache lives but through it.
unsafe fn cache(run: &mut Run) -> &mut CodeCache {
    // SAFETY: the caller promises it; the borrow of the run lasts as long as the reference.
    unsafe { &mut *run.cache }
}

/// The memory of a run.
///
/// # Safety
/// As for [`cache`].
unsafe fn frames(run: &mut Run) -> &mut Frames {
    // SAFETY: as in `cache`.
    unsafe { &mut *run.frames }
}
