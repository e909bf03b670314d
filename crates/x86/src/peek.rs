//! What the next instruction would access, without executing it.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};
use raddle_mem::{AddressSpace, Frames};

use crate::cpu::Cpu;
use crate::fetch;

/// One memory access of an instruction that has not been executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextAccess {
    pub addr: u64,
    pub size: u8,
    pub reads: bool,
    pub writes: bool,
    /// LOCK prefix, or XCHG with memory.
    pub atomic: bool,
}

/// The accesses of the instruction at RIP, in the order of its operands; empty if it cannot be fetched.
pub fn next_accesses(cpu: &Cpu, frames: &mut Frames, space: &mut AddressSpace) -> Vec<NextAccess> {
    let Ok(fetched) = fetch::instructions(frames, space, cpu.rip, 1) else {
        return Vec::new();
    };
    fetched
        .instructions
        .first()
        .map_or_else(Vec::new, |instruction| accesses_of(cpu, instruction))
}

/// The accesses that an instruction would make with these registers.
pub(crate) fn accesses_of(cpu: &Cpu, instruction: &Instruction) -> Vec<NextAccess> {
    let mut factory = InstructionInfoFactory::new();
    let is_exchange = instruction.mnemonic() == iced_x86::Mnemonic::Xchg;
    let atomic = instruction.has_lock_prefix() || is_exchange;
    let mut found = Vec::new();
    for memory in factory.info(instruction).used_memory() {
        let (reads, writes) = match memory.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            _ => continue,
        };
        let Some(addr) = memory.virtual_address(0, |register, _, _| Some(value(cpu, register)))
        else {
            continue;
        };
        let size = u8::try_from(memory.memory_size().size()).unwrap_or(u8::MAX);
        found.push(NextAccess {
            addr,
            size,
            reads,
            writes,
            atomic,
        });
    }
    found
}

/// A register as an address sees it: general registers cut to their size, segments as their base.
fn value(cpu: &Cpu, register: Register) -> u64 {
    match register {
        Register::FS => cpu.fs_base(),
        Register::GS => cpu.gs_base(),
        register if register.is_gpr() => {
            let whole = cpu.general()[register.full_register().number()];
            match register.size() {
                8 => whole,
                4 => whole & 0xFFFF_FFFF,
                _ => whole & 0xFFFF,
            }
        }
        _ => 0,
    }
}
