//! Addition, subtraction, logic and the compare-and-exchange family.

use iced_x86::Mnemonic;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, Operand, bits, sign_extend};
use super::{Flow, Step};
use crate::cpu::Reg;
use crate::flags::{Flags, rflags};

/// `a + b + carry` and its flags.
pub(super) fn add(a: u64, b: u64, carry: bool, bytes: usize) -> (u64, Flags) {
    let sum = a.wrapping_add(b).wrapping_add(u64::from(carry));
    let carries = (a & b) | ((a | b) & !sum);
    let result = sign_extend(sum, bytes);
    (result, Flags::from_carries(result, carries, bits(bytes)))
}

/// `a - b - borrow` and its flags.
pub(super) fn subtract(a: u64, b: u64, borrow: bool, bytes: usize) -> (u64, Flags) {
    let difference = a.wrapping_sub(b).wrapping_sub(u64::from(borrow));
    let borrows = (!a & b) | (!(a ^ b) & difference);
    let result = sign_extend(difference, bytes);
    (result, Flags::from_carries(result, borrows, bits(bytes)))
}

fn logic(value: u64, bytes: usize) -> (u64, Flags) {
    let result = sign_extend(value, bytes);
    (result, Flags::from_logic(result))
}

/// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP, TEST.
pub(super) fn binary<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let mnemonic = exec.insn.mnemonic();
    let bytes = exec.bytes_of(0);
    let carry = exec.cpu.flags.carry();
    let compute = move |a: u64, b: u64| match mnemonic {
        Mnemonic::Add => add(a, b, false, bytes),
        Mnemonic::Adc => add(a, b, carry, bytes),
        Mnemonic::Sbb => subtract(a, b, carry, bytes),
        Mnemonic::Sub | Mnemonic::Cmp => subtract(a, b, false, bytes),
        Mnemonic::Or => logic(a | b, bytes),
        Mnemonic::Xor => logic(a ^ b, bytes),
        _ => logic(a & b, bytes),
    };
    exec.cpu.flags = if matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test) {
        let a = exec.read_operand(0)?;
        let b = exec.read_operand(1)?;
        compute(a, b).1
    } else {
        let b = exec.read_operand(1)?;
        exec.update(0, exec.insn.has_lock_prefix(), |a| compute(a, b))?
    };
    Ok(Flow::Next)
}

/// INC, DEC, NEG, NOT.
pub(super) fn unary<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let mnemonic = exec.insn.mnemonic();
    let bytes = exec.bytes_of(0);
    let old = exec.cpu.flags;
    let flags = exec.update(0, exec.insn.has_lock_prefix(), |a| match mnemonic {
        Mnemonic::Inc => {
            let (result, flags) = add(a, 1, false, bytes);
            (result, flags.with_carry(old.carry()))
        }
        Mnemonic::Dec => {
            let (result, flags) = subtract(a, 1, false, bytes);
            (result, flags.with_carry(old.carry()))
        }
        Mnemonic::Neg => subtract(0, sign_extend(a, bytes), false, bytes),
        _ => (!a, old),
    })?;
    exec.cpu.flags = flags;
    Ok(Flow::Next)
}

/// XADD: the destination gets the sum, the source the old destination.
pub(super) fn xadd<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let source = exec.insn.op1_register();
    let addend = exec.cpu.gpr(source);
    let place = exec.place(0)?;
    let atomic = exec.insn.has_lock_prefix();
    let old = exec.read(place, AccessKind::UpdateRead { atomic })?;
    let (sum, flags) = add(old, addend, false, bytes);
    if let Operand::Memory { .. } = place {
        exec.write(place, sum, AccessKind::UpdateWrite { atomic })?;
        exec.cpu.set_gpr(source, old);
    } else {
        // The sum wins if both operands are the same register.
        exec.cpu.set_gpr(source, old);
        exec.write(place, sum, AccessKind::UpdateWrite { atomic })?;
    }
    exec.cpu.flags = flags;
    Ok(Flow::Next)
}

/// CMPXCHG. A failed comparison still writes the old value back to memory.
pub(super) fn cmpxchg<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let atomic = exec.insn.has_lock_prefix();
    let place = exec.place(0)?;
    let source = exec.read_operand(1)?;
    let accumulator = exec.cpu.reg(Reg::Rax) & super::operand::mask(bytes);
    let old = exec.read(place, AccessKind::UpdateRead { atomic })?;
    let (_, flags) = subtract(accumulator, old, false, bytes);
    let is_equal = accumulator == old;
    let new = if is_equal { source } else { old };
    if is_equal || matches!(place, Operand::Memory { .. }) {
        exec.write(place, new, AccessKind::UpdateWrite { atomic })?;
    }
    if !is_equal {
        let merged = super::operand::merge(exec.cpu.reg(Reg::Rax), old, bytes);
        exec.cpu.set_reg(Reg::Rax, merged);
    }
    exec.cpu.flags = flags;
    Ok(Flow::Next)
}

/// CMPXCHG8B and CMPXCHG16B: DX:AX is compared, CX:BX is stored.
pub(super) fn cmpxchg_wide<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let half = if exec.insn.mnemonic() == Mnemonic::Cmpxchg16b {
        8
    } else {
        4
    };
    let atomic = exec.insn.has_lock_prefix();
    let align = if half == 8 { 16 } else { 1 };
    let addr = exec.aligned_address(half * 2, align)?;
    let expected = pair(exec, Reg::Rax, Reg::Rdx, half);
    let replacement = pair(exec, Reg::Rbx, Reg::Rcx, half);
    let mut old = [0; 16];
    let old = &mut old[..half * 2];
    exec.bus
        .read(addr, old, AccessKind::UpdateRead { atomic })?;
    let is_equal = *old == expected[..half * 2];
    let new = if is_equal {
        &replacement[..half * 2]
    } else {
        &*old
    };
    exec.bus
        .write(addr, new, AccessKind::UpdateWrite { atomic })?;
    if !is_equal {
        exec.cpu.set_reg(Reg::Rax, from_le(&old[..half]));
        exec.cpu.set_reg(Reg::Rdx, from_le(&old[half..]));
    }
    let others = exec.cpu.flags.to_rflags() & !rflags::ZF;
    let zero = if is_equal { rflags::ZF } else { 0 };
    exec.cpu.flags = Flags::from_rflags(others | zero);
    Ok(Flow::Next)
}

fn pair<B: Bus>(exec: &Exec<'_, B>, low: Reg, high: Reg, half: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..half].copy_from_slice(&exec.cpu.reg(low).to_le_bytes()[..half]);
    bytes[half..half * 2].copy_from_slice(&exec.cpu.reg(high).to_le_bytes()[..half]);
    bytes
}

fn from_le(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}
