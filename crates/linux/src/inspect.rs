//! What reports and debuggers read from a world: registers, memory, calls in progress.

use std::collections::BTreeSet;
use std::ops::Range;

use raddle_config::hooks::Effect;
use raddle_mem::{AddressSpace, Frames, GuestAddr, PAGE_SIZE};
use raddle_stdx::width::to_u64;
use raddle_symbols::unwind::Frame;
use raddle_symbols::{Registers, SymbolSpace};
use raddle_world::{ContextId, Inspect, Loaded, Location, Site};
use raddle_x86::{Cpu, Observe};

use crate::heap::Block;
use crate::world::LinuxWorld;

/// A call of a hooked function that has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingCall {
    pub effect: Effect,
    /// The lock, condition or thread handle it is about.
    pub object: u64,
    /// Where the call will return to.
    pub return_pc: u64,
}

/// The registers that unwinding needs.
pub(crate) fn registers_of(cpu: &Cpu) -> Registers {
    Registers::of_machine(cpu.general(), cpu.rip)
}

impl LinuxWorld {
    /// The processor of a live context.
    pub fn cpu(&self, who: ContextId) -> Option<&Cpu> {
        Some(&self.kernel().thread(self.tid(who)?).cpu)
    }

    /// Number of the process that a live context belongs to.
    pub fn process_id(&self, who: ContextId) -> Option<u32> {
        Some(self.kernel().thread(self.tid(who)?).process.0)
    }

    /// The address space of a live context's process, and the frames that hold its pages.
    pub fn memory(&self, who: ContextId) -> Option<(&AddressSpace, &Frames)> {
        let kernel = self.kernel();
        Some((&kernel.space_of(self.tid(who)?).map, &kernel.frames))
    }

    /// The registers of a live context.
    pub fn registers(&self, who: ContextId) -> Option<Registers> {
        let tid = self.tid(who)?;
        Some(registers_of(&self.kernel().thread(tid).cpu))
    }

    /// The auxiliary vector that a live context's program was given.
    pub fn auxv(&self, who: ContextId) -> Option<&[u8]> {
        let tid = self.tid(who)?;
        Some(&self.kernel().process_of(tid).image.auxv)
    }

    /// Eight bytes of the memory of a live context's process; none if they cannot be read.
    pub fn read_word(&mut self, who: ContextId, addr: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let is_whole = self.read_bytes(who, addr, &mut bytes) == bytes.len();
        is_whole.then(|| u64::from_le_bytes(bytes))
    }

    /// Where the frames of a live context's stack stand, innermost first: addresses inside the calls.
    pub fn stack(&mut self, who: ContextId, symbols: &SymbolSpace, frames_max: usize) -> Vec<u64> {
        let frames = self.frames(who, symbols, frames_max);
        let inside = frames.iter().filter_map(|frame| frame.lookup_address());
        inside.collect()
    }

    /// The frames of a live context's stack, innermost first.
    pub fn frames(
        &mut self,
        who: ContextId,
        symbols: &SymbolSpace,
        frames_max: usize,
    ) -> Vec<Frame> {
        let Some(registers) = self.registers(who) else {
            return Vec::new();
        };
        symbols.unwind(registers, &mut |addr| self.read_word(who, addr), frames_max)
    }

    /// Where an address of a live context's process is, if its page is present.
    pub fn location(&self, who: ContextId, addr: u64) -> Option<Location> {
        self.location_of(self.tid(who)?, addr)
    }

    /// The memory that a live context got as its own when it was created; empty if its creator did not say.
    pub fn own_memory(&self, who: ContextId) -> Range<u64> {
        self.tid(who)
            .map_or(0..0, |tid| self.kernel().thread(tid).stack.clone())
    }

    /// The heap block that contains an address, live or freed.
    pub fn block_at(&self, who: ContextId, addr: u64) -> Option<Block> {
        let tid = self.tid(who)?;
        self.kernel().space_of(tid).heap.block_at(addr).cloned()
    }

    /// The heap blocks of a live context that are older than the snapshot: address and size.
    pub fn blocks_of_before(&self, who: ContextId) -> Vec<(u64, u64)> {
        let Some(tid) = self.tid(who) else {
            return Vec::new();
        };
        let blocks = self.kernel().space_of(tid).heap.unchanged();
        blocks.map(|block| (block.addr, block.size)).collect()
    }

    /// Where the function that allocated the live heap block at an address was called.
    pub fn allocated_by(&self, who: ContextId, addr: u64) -> Option<u64> {
        let tid = self.tid(who)?;
        let block = self.kernel().space_of(tid).heap.block_at(addr)?;
        let is_live = block.freed.is_none();
        block.allocated.stack.first().copied().filter(|_| is_live)
    }

    /// The context of the thread that a handle of a live context's process stands for.
    pub fn thread_of_handle(&self, who: ContextId, handle: u64) -> Option<ContextId> {
        let tid = self.tid(who)?;
        let handles = &self.kernel().process_of(tid).thread_handles;
        handles.get(&handle).copied()
    }

    /// The innermost hooked function that a live context is in.
    pub fn pending_call(&self, who: ContextId) -> Option<PendingCall> {
        let tid = self.tid(who)?;
        self.hooks().innermost(self.kernel(), tid)
    }

    /// The pipe or socket behind a descriptor of a live context's process, as /proc names it; none for files.
    pub fn channel(&self, who: ContextId, descriptor: u64) -> Option<String> {
        let pid = self.kernel().thread(self.tid(who)?).process;
        let number = i32::try_from(descriptor).ok()?;
        crate::files::procfs::channel(self.kernel(), pid, number)
    }

    /// The name of the mapped file or area that contains an address of a live context's process.
    pub fn area_name(&self, who: ContextId, addr: u64) -> Option<String> {
        let tid = self.tid(who)?;
        let space = self.kernel().space_of(tid);
        let area = space.map.vma_at(GuestAddr(addr).page())?;
        Some(area.label.to_string())
    }
}

impl Inspect for LinuxWorld {
    fn cpu(&self, who: ContextId) -> Option<&Cpu> {
        LinuxWorld::cpu(self, who)
    }

    fn read_bytes(&mut self, who: ContextId, addr: u64, into: &mut [u8]) -> usize {
        let Some(tid) = self.tid(who) else { return 0 };
        let mut done = 0;
        while done < into.len() {
            let at = GuestAddr(addr.wrapping_add(to_u64(done)));
            let count = (PAGE_SIZE - at.page_offset()).min(into.len() - done);
            let piece = &mut into[done..done + count];
            if self.kernel_mut().read_user(tid, at, piece).is_err() {
                break;
            }
            done += count;
        }
        done
    }

    fn set_breakpoints(&mut self, at: &BTreeSet<u64>, are_set: bool) {
        // A debugger names instructions of the program that it has loaded the symbols of.
        let image = self.image(ContextId(0));
        for pc in at {
            if are_set {
                self.add_point(Site::new(image, *pc));
            } else {
                self.remove_points_at(*pc);
            }
        }
    }

    fn observe_memory(&mut self, wanted: bool) {
        self.set_observe(if wanted { Observe::Addr } else { Observe::None });
    }

    fn changed_bytes(&self) -> u64 {
        to_u64(self.kernel().frames.changed().count() * PAGE_SIZE)
    }

    fn loaded(&mut self) -> Option<Loaded> {
        let first = ContextId(0);
        let at = self.symbols(first)?.mappings().next()?.0.start;
        let auxv = self.auxv(first)?.to_vec();
        Some(Loaded { at, auxv })
    }
}
