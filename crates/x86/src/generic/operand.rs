//! Operands: effective addresses, registers by iced's names, loads and stores.

use iced_x86::{CodeSize, Instruction, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::{Step, fault};
use crate::cpu::Cpu;
use crate::exit::Fault;
use crate::stub::StubCache;

/// One instruction in the course of execution.
pub(super) struct Exec<'a, B> {
    pub(super) cpu: &'a mut Cpu,
    pub(super) insn: &'a Instruction,
    pub(super) stubs: &'a mut StubCache,
    pub(super) bus: &'a mut B,
}

/// An operand after address calculation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Register),
    Memory { addr: u64, bytes: usize },
    Immediate(u64),
}

/// A mask of the low `bytes` bytes.
pub(super) fn mask(bytes: usize) -> u64 {
    match bytes {
        1 => 0xFF,
        2 => 0xFFFF,
        4 => 0xFFFF_FFFF,
        _ => u64::MAX,
    }
}

/// The low `bytes` bytes of `value`, sign-extended.
pub(super) fn sign_extend(value: u64, bytes: usize) -> u64 {
    let unused = 64 - bits(bytes);
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}

/// The width in bits of an operand of 1, 2, 4 or 8 bytes.
pub(super) fn bits(bytes: usize) -> u32 {
    match bytes {
        1 => 8,
        2 => 16,
        4 => 32,
        _ => 64,
    }
}

/// The top bit of an operand of `bytes` bytes.
pub(super) fn sign_bit(bytes: usize) -> u64 {
    1 << (bits(bytes) - 1)
}

/// True if bits 63 to 47 are all equal.
pub(super) fn is_canonical(addr: u64) -> bool {
    ((addr << 16).cast_signed() >> 16).cast_unsigned() == addr
}

/// Index in the register file of a general register of any width; the flag is set for AH, CH, DH, BH.
fn gpr_index(register: Register) -> (usize, bool) {
    let number = register as usize;
    const AL: usize = Register::AL as usize;
    const AH: usize = Register::AH as usize;
    const SPL: usize = Register::SPL as usize;
    const AX: usize = Register::AX as usize;
    match number {
        AL..AH => (number - AL, false),
        AH..SPL => (number - AH, true),
        SPL..AX => (number - SPL + 4, false),
        // AX, EAX and RAX start rows of sixteen.
        _ => ((number - AX) % 16, false),
    }
}

impl Cpu {
    /// A general register of any width, zero-extended.
    pub(super) fn gpr(&self, register: Register) -> u64 {
        let (index, is_high) = gpr_index(register);
        if is_high {
            (self.regs[index] >> 8) & 0xFF
        } else {
            self.regs[index] & mask(register.size())
        }
    }

    /// Sets a general register of any width; a 32-bit write clears the upper half (SDM vol. 1, 3.4.1.1).
    pub(super) fn set_gpr(&mut self, register: Register, value: u64) {
        let (index, is_high) = gpr_index(register);
        let old = self.regs[index];
        self.regs[index] = if is_high {
            (old & !0xFF00) | ((value & 0xFF) << 8)
        } else {
            merge(old, value, register.size())
        };
    }
}

/// `old` with its low `bytes` bytes replaced; four bytes replace all eight.
pub(super) fn merge(old: u64, value: u64, bytes: usize) -> u64 {
    match bytes {
        4 => value & 0xFFFF_FFFF,
        8 => value,
        _ => (old & !mask(bytes)) | (value & mask(bytes)),
    }
}

impl<B: Bus> Exec<'_, B> {
    pub(super) fn is_64_bit(&self) -> bool {
        self.insn.code_size() == CodeSize::Code64
    }

    /// What instruction pointers are cut to.
    pub(super) fn ip_mask(&self) -> u64 {
        match self.insn.code_size() {
            CodeSize::Code16 => 0xFFFF,
            CodeSize::Code32 => 0xFFFF_FFFF,
            _ => u64::MAX,
        }
    }

    /// The base of a segment; in 64-bit mode only FS and GS have one.
    pub(super) fn segment_base(&self, segment: Register) -> u64 {
        match segment {
            Register::FS => self.cpu.fs_base(),
            Register::GS => self.cpu.gs_base(),
            _ if self.is_64_bit() => 0,
            _ => self.cpu.system.segments[segment_index(segment)].base,
        }
    }

    /// The offset of the explicit memory operand within its segment, cut to the address size.
    pub(super) fn offset(&self) -> u64 {
        let insn = self.insn;
        let (base, index) = (insn.memory_base(), insn.memory_index());
        let mut offset = insn.memory_displacement64();
        // The displacement of an IP-relative operand is the address itself.
        if base != Register::None && base != Register::RIP && base != Register::EIP {
            offset = offset.wrapping_add(self.cpu.gpr(base));
        }
        if index != Register::None {
            let scaled = self
                .cpu
                .gpr(index)
                .wrapping_mul(u64::from(insn.memory_index_scale()));
            offset = offset.wrapping_add(scaled);
        }
        offset & mask(address_bytes(insn))
    }

    /// The linear address of `offset` in `segment`, checked for the form that the processor demands.
    pub(super) fn linear(
        &self,
        segment: Register,
        offset: u64,
        bytes: usize,
    ) -> Result<u64, Fault> {
        let addr = self.segment_base(segment).wrapping_add(offset);
        if !self.is_64_bit() {
            return Ok(addr & 0xFFFF_FFFF);
        }
        let last = addr.wrapping_add(width::to_u64(bytes) - 1);
        if is_canonical(addr) && is_canonical(last) {
            return Ok(addr);
        }
        Err(if segment == Register::SS {
            fault::stack(0)
        } else {
            fault::protection(0)
        })
    }

    /// The linear address of the explicit memory operand.
    pub(super) fn memory_address(&self, bytes: usize) -> Result<u64, Fault> {
        self.linear(self.insn.memory_segment(), self.offset(), bytes)
    }

    /// As `memory_address`, but #GP first of all if it is not a multiple of `align`.
    pub(super) fn aligned_address(&self, bytes: usize, align: u64) -> Result<u64, Fault> {
        let segment = self.insn.memory_segment();
        let offset = self.offset();
        let addr = self.segment_base(segment).wrapping_add(offset);
        if !addr.is_multiple_of(align) {
            return Err(fault::protection(0));
        }
        self.linear(segment, offset, bytes)
    }

    /// Resolves operand number `operand`.
    pub(super) fn place(&self, operand: u32) -> Result<Operand, Fault> {
        Ok(match self.insn.op_kind(operand) {
            OpKind::Register => Operand::Register(self.insn.op_register(operand)),
            OpKind::Memory => {
                let bytes = self.insn.memory_size().size();
                let addr = self.memory_address(bytes)?;
                Operand::Memory { addr, bytes }
            }
            _ => Operand::Immediate(self.insn.immediate(operand)),
        })
    }

    /// The width in bytes of operand number `operand`; that of an immediate is not known.
    pub(super) fn bytes_of(&self, operand: u32) -> usize {
        match self.insn.op_kind(operand) {
            OpKind::Register => self.insn.op_register(operand).size(),
            _ => self.insn.memory_size().size(),
        }
    }

    /// Loads up to eight bytes.
    pub(super) fn load(&mut self, addr: u64, bytes: usize, kind: AccessKind) -> Result<u64, Fault> {
        let mut buffer = [0; 8];
        self.bus.read(addr, &mut buffer[..bytes], kind)?;
        Ok(u64::from_le_bytes(buffer))
    }

    /// Stores up to eight bytes.
    pub(super) fn store(
        &mut self,
        addr: u64,
        value: u64,
        bytes: usize,
        kind: AccessKind,
    ) -> Result<(), Fault> {
        self.bus.write(addr, &value.to_le_bytes()[..bytes], kind)
    }

    /// The value of an operand, zero-extended; an immediate as iced extends it.
    pub(super) fn read(&mut self, place: Operand, kind: AccessKind) -> Result<u64, Fault> {
        match place {
            Operand::Register(register) => Ok(self.cpu.gpr(register)),
            Operand::Memory { addr, bytes } => self.load(addr, bytes, kind),
            Operand::Immediate(value) => Ok(value),
        }
    }

    /// The value of operand number `operand`.
    pub(super) fn read_operand(&mut self, operand: u32) -> Result<u64, Fault> {
        let place = self.place(operand)?;
        self.read(place, AccessKind::Read)
    }

    /// Stores into a register or memory operand.
    pub(super) fn write(
        &mut self,
        place: Operand,
        value: u64,
        kind: AccessKind,
    ) -> Result<(), Fault> {
        match place {
            Operand::Register(register) => {
                self.cpu.set_gpr(register, value);
                Ok(())
            }
            Operand::Memory { addr, bytes } => self.store(addr, value, bytes, kind),
            Operand::Immediate(_) => Ok(()),
        }
    }

    /// Loads operand `operand`, applies `change` and stores the result; flags are the caller's business, afterwards.
    pub(super) fn update<T>(
        &mut self,
        operand: u32,
        atomic: bool,
        change: impl FnOnce(u64) -> (u64, T),
    ) -> Result<T, Fault> {
        let place = self.place(operand)?;
        let old = self.read(place, AccessKind::UpdateRead { atomic })?;
        let (new, rest) = change(old);
        self.write(place, new, AccessKind::UpdateWrite { atomic })?;
        Ok(rest)
    }

    /// Sets RIP to `target`, which must be canonical (we fault at the branch, as Intel's processors do).
    pub(super) fn jump(&mut self, target: u64) -> Step {
        let target = target & self.ip_mask();
        if self.is_64_bit() && !is_canonical(target) {
            return Err(fault::protection(0));
        }
        self.cpu.rip = target;
        Ok(super::Flow::Jump)
    }

    /// #GP unless the privilege level is zero.
    pub(super) fn require_kernel(&self) -> Result<(), Fault> {
        if self.cpu.system.cpl == 0 {
            Ok(())
        } else {
            Err(fault::protection(0))
        }
    }
}

/// Address size of the explicit memory operand in bytes.
pub(super) fn address_bytes(insn: &Instruction) -> usize {
    let (base, index) = (insn.memory_base(), insn.memory_index());
    if base != Register::None {
        base.size()
    } else if index != Register::None {
        index.size()
    } else {
        match insn.memory_displ_size() {
            2 => 2,
            4 => 4,
            _ => 8,
        }
    }
}

/// Number of a segment register as the encoding has it.
pub(super) fn segment_index(segment: Register) -> usize {
    segment as usize - Register::ES as usize
}
