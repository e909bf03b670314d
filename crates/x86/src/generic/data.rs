//! Moves, extensions, exchanges and flag instructions.

use iced_x86::{Mnemonic, OpKind, Register};

use super::access::{AccessKind, Bus};
use super::operand::{Exec, Operand, address_bytes, mask, merge, sign_extend};
use super::{Flow, Step, system};
use crate::cpu::Reg;
use crate::flags::{Flags, rflags};

/// MOV in all its forms, and MOVNTI.
pub(super) fn mov<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if system::is_special_move(exec.insn) {
        return system::special_move(exec);
    }
    let value = exec.read_operand(1)?;
    let place = exec.place(0)?;
    exec.write(place, value, AccessKind::Write)?;
    Ok(Flow::Next)
}

/// MOVZX, MOVSX, MOVSXD.
pub(super) fn extend<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(1);
    let value = exec.read_operand(1)?;
    let value = if exec.insn.mnemonic() == Mnemonic::Movzx {
        value
    } else {
        sign_extend(value, bytes)
    };
    exec.cpu.set_gpr(exec.insn.op0_register(), value);
    Ok(Flow::Next)
}

/// LEA: the offset only, no segment, no access.
pub(super) fn lea<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let offset = exec.offset();
    exec.cpu.set_gpr(exec.insn.op0_register(), offset);
    Ok(Flow::Next)
}

/// XCHG: with memory it is always atomic.
pub(super) fn xchg<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let (first, second) = (exec.place(0)?, exec.place(1)?);
    // Some encodings name the register first.
    let (memory, other) = if let Operand::Memory { .. } = second {
        (second, first)
    } else {
        (first, second)
    };
    let value = exec.read(other, AccessKind::Read)?;
    let old = exec.read(memory, AccessKind::UpdateRead { atomic: true })?;
    exec.write(memory, value, AccessKind::UpdateWrite { atomic: true })?;
    exec.write(other, old, AccessKind::Write)?;
    Ok(Flow::Next)
}

/// XLATB: AL becomes byte AL of the table at BX.
pub(super) fn xlat<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    // iced names AL as the index register, so that the usual address calculation holds.
    let addr = exec.memory_address(1)?;
    let value = exec.load(addr, 1, AccessKind::Read)?;
    exec.cpu.set_gpr(Register::AL, value);
    Ok(Flow::Next)
}

/// CBW, CWDE, CDQE, CWD, CDQ, CQO.
pub(super) fn widen_accumulator<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let cpu = &mut *exec.cpu;
    let rax = cpu.reg(Reg::Rax);
    let (from, is_pair) = match exec.insn.mnemonic() {
        Mnemonic::Cbw => (1, false),
        Mnemonic::Cwde => (2, false),
        Mnemonic::Cdqe => (4, false),
        Mnemonic::Cwd => (2, true),
        Mnemonic::Cdq => (4, true),
        _ => (8, true),
    };
    let wide = sign_extend(rax, from);
    if is_pair {
        let sign = (wide.cast_signed() >> 63).cast_unsigned();
        cpu.set_reg(Reg::Rdx, merge(cpu.reg(Reg::Rdx), sign, from));
    } else {
        cpu.set_reg(Reg::Rax, merge(rax, wide, from * 2));
    }
    Ok(Flow::Next)
}

/// LAHF, SAHF, CLC, STC, CMC, CLD, STD.
pub(super) fn flag<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    const LOW: u64 = rflags::CF | rflags::PF | rflags::AF | rflags::ZF | rflags::SF;
    let cpu = &mut *exec.cpu;
    match exec.insn.mnemonic() {
        Mnemonic::Lahf => {
            let low = (cpu.flags.to_rflags() & LOW) | rflags::FIXED;
            cpu.set_gpr(Register::AH, low);
        }
        Mnemonic::Sahf => {
            let overflow = cpu.flags.to_rflags() & rflags::OF;
            cpu.flags = Flags::from_rflags((cpu.gpr(Register::AH) & LOW) | overflow);
        }
        Mnemonic::Clc => cpu.flags = cpu.flags.with_carry(false),
        Mnemonic::Stc => cpu.flags = cpu.flags.with_carry(true),
        Mnemonic::Cmc => cpu.flags = cpu.flags.with_carry(!cpu.flags.carry()),
        Mnemonic::Cld => cpu.system_flags &= !rflags::DF,
        _ => cpu.system_flags |= rflags::DF,
    }
    Ok(Flow::Next)
}

/// CLFLUSH reads nothing, but faults like a load of one byte.
pub(super) fn flush_line<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let addr = exec.memory_address(1)?;
    exec.load(addr, 1, AccessKind::Read)?;
    Ok(Flow::Next)
}

impl<B: Bus> Exec<'_, B> {
    /// The offset of the memory operand plus `more`, cut to the address size again.
    pub(super) fn offset_plus(&self, more: u64) -> u64 {
        let offset = self.offset();
        offset.wrapping_add(more) & mask(address_bytes(self.insn))
    }

    /// True if operand `operand` is in memory.
    pub(super) fn is_memory(&self, operand: u32) -> bool {
        self.insn.op_kind(operand) == OpKind::Memory
    }
}
