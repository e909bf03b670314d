//! What reports read from a world: registers, memory, calls in progress.

use raddle_config::hooks::Effect;
use raddle_mem::{AddressSpace, Frames, GuestAddr};
use raddle_symbols::unwind::RIP;
use raddle_symbols::{Registers, SymbolSpace};
use raddle_world::ContextId;
use raddle_x86::Cpu;

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

/// DWARF numbers of the general registers in the order of the machine (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI).
const DWARF_NUMBERS: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

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

    /// Reads memory of a live context's process; false if it cannot be read.
    pub fn read_bytes(&mut self, who: ContextId, addr: u64, into: &mut [u8]) -> bool {
        self.tid(who).is_some_and(|tid| {
            self.kernel_mut()
                .read_user(tid, GuestAddr(addr), into)
                .is_ok()
        })
    }

    /// The registers of a live context.
    pub fn registers(&self, who: ContextId) -> Option<Registers> {
        let tid = self.tid(who)?;
        let cpu = &self.kernel().thread(tid).cpu;
        let mut registers = Registers::default();
        for (number, value) in DWARF_NUMBERS.into_iter().zip(cpu.general()) {
            registers.set(number, Some(*value));
        }
        registers.set(RIP, Some(cpu.rip));
        Some(registers)
    }

    /// Eight bytes of the memory of a live context's process; none if they cannot be read.
    pub fn read_word(&mut self, who: ContextId, addr: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read_bytes(who, addr, &mut bytes)
            .then(|| u64::from_le_bytes(bytes))
    }

    /// Where the frames of a live context's stack stand, innermost first: addresses inside the calls.
    pub fn stack(&mut self, who: ContextId, symbols: &SymbolSpace, frames_max: usize) -> Vec<u64> {
        let Some(registers) = self.registers(who) else {
            return Vec::new();
        };
        let frames = symbols.unwind(registers, &mut |addr| self.read_word(who, addr), frames_max);
        frames
            .iter()
            .enumerate()
            .filter_map(|(depth, frame)| {
                let pc = frame.registers.pc()?;
                // A return address may already belong to the next line.
                let is_exact = depth == 0 || frame.is_exact;
                Some(if is_exact { pc } else { pc.wrapping_sub(1) })
            })
            .collect()
    }

    /// The innermost hooked function that a live context is in.
    pub fn pending_call(&self, who: ContextId) -> Option<PendingCall> {
        let tid = self.tid(who)?;
        self.hooks().innermost(self.kernel(), tid)
    }

    /// The name of the mapped file or area that contains an address of a live context's process.
    pub fn area_name(&self, who: ContextId, addr: u64) -> Option<String> {
        let tid = self.tid(who)?;
        let space = self.kernel().space_of(tid);
        let area = space.map.vma_at(GuestAddr(addr).page())?;
        Some(area.label.to_string())
    }
}
