//! What the next instruction would access, without executing it.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register, UsedMemory};
use raddle_mem::{AddressSpace, Frames};
use rustc_hash::FxHashMap;

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

/// A memory operand, before its address is known.
#[derive(Debug, Clone, Copy)]
struct Operand {
    memory: UsedMemory,
    reads: bool,
    writes: bool,
    atomic: bool,
}

/// The longest instruction.
pub const BYTES_MAX: usize = 15;

/// Looks at instructions that have not been executed, and remembers how they decode.
#[derive(Debug, Default)]
pub struct Peek {
    /// By address: the bytes that were decoded there, and what they mean.
    known: FxHashMap<u64, ([u8; BYTES_MAX], Box<[Operand]>)>,
}

impl Peek {
    /// Calls `each` for the accesses of the instruction at RIP, in the order of its operands; not at all if it
    /// cannot be fetched. The caller has tried to read its bytes; there may be fewer at the end of the last mapped
    /// page.
    pub fn next_accesses(
        &mut self,
        cpu: &Cpu,
        bytes: Option<[u8; BYTES_MAX]>,
        frames: &mut Frames,
        space: &mut AddressSpace,
        each: &mut dyn FnMut(NextAccess),
    ) {
        // Where there are fewer bytes to compare, a place is decoded anew.
        if let Some(bytes) = bytes
            && let Some((known, operands)) = self.known.get(&cpu.rip)
            && *known == bytes
        {
            operands
                .iter()
                .for_each(|operand| operand.resolve(cpu, each));
            return;
        }
        let operands = operands(cpu, frames, space);
        operands
            .iter()
            .for_each(|operand| operand.resolve(cpu, each));
        if let Some(bytes) = bytes {
            self.known.insert(cpu.rip, (bytes, operands.into()));
        }
    }

    /// The first access of the instruction at RIP, whose bytes the caller has fetched and can decode.
    pub(crate) fn first_access(
        &mut self,
        cpu: &Cpu,
        bytes: [u8; BYTES_MAX],
        decode: impl FnOnce() -> Option<Instruction>,
    ) -> Option<NextAccess> {
        let is_known = matches!(self.known.get(&cpu.rip), Some((known, _)) if *known == bytes);
        if !is_known {
            let operands = operands_of(&decode()?).into();
            self.known.insert(cpu.rip, (bytes, operands));
        }
        let (_, operands) = self.known.get(&cpu.rip)?;
        let mut found = None;
        for operand in operands {
            operand.resolve(cpu, &mut |access| found = found.or(Some(access)));
        }
        found
    }
}

impl Operand {
    fn resolve(&self, cpu: &Cpu, each: &mut dyn FnMut(NextAccess)) {
        let address = self
            .memory
            .virtual_address(0, |register, _, _| Some(value(cpu, register)));
        if let Some(addr) = address {
            each(NextAccess {
                addr,
                size: u8::try_from(self.memory.memory_size().size()).unwrap_or(u8::MAX),
                reads: self.reads,
                writes: self.writes,
                atomic: self.atomic,
            });
        }
    }
}

fn operands(cpu: &Cpu, frames: &mut Frames, space: &mut AddressSpace) -> Vec<Operand> {
    let Ok(fetched) = fetch::instructions(frames, space, cpu.rip, 1) else {
        return Vec::new();
    };
    fetched
        .instructions
        .first()
        .map_or_else(Vec::new, operands_of)
}

fn operands_of(instruction: &Instruction) -> Vec<Operand> {
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
        found.push(Operand {
            memory: *memory,
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
