//! Shifts and rotates (SDM vol. 2, RCL/RCR/ROL/ROR, SAL/SAR/SHL/SHR, SHLD, SHRD).

use iced_x86::Mnemonic;

use super::access::Bus;
use super::operand::{Exec, bits, mask, sign_bit, sign_extend};
use super::{Flow, Step};
use crate::flags::{Flags, rflags};

/// A shifted value and the flags after it.
type Shifted = (u64, Flags);

/// ROL, ROR, RCL, RCR, SHL, SHR, SAR.
pub(super) fn single<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let count = exec.read_operand(1)? & if bytes == 8 { 63 } else { 31 };
    let mnemonic = exec.insn.mnemonic();
    let old = exec.cpu.flags;
    let flags = exec.update(0, false, |a| {
        if count == 0 {
            return (a, old);
        }
        match mnemonic {
            Mnemonic::Rol | Mnemonic::Ror => rotate(mnemonic, a, count, bytes, old),
            Mnemonic::Rcl | Mnemonic::Rcr => rotate_carry(mnemonic, a, count, bytes, old),
            _ => shift(mnemonic, a, count, bytes),
        }
    })?;
    exec.cpu.flags = flags;
    Ok(Flow::Next)
}

fn shift(mnemonic: Mnemonic, a: u64, count: u64, bytes: usize) -> Shifted {
    let width = u64::from(bits(bytes));
    let top = sign_bit(bytes);
    let (wide, carry, overflow) = match mnemonic {
        Mnemonic::Shr => {
            // The bits before the last single-bit shift decide CF and OF.
            let before = if count > 64 { 0 } else { a >> (count - 1) };
            (before >> 1, before & 1 != 0, before & top != 0)
        }
        Mnemonic::Sar => {
            let signed = sign_extend(a, bytes).cast_signed();
            let before = (signed >> (count - 1)).cast_unsigned();
            (
                (before.cast_signed() >> 1).cast_unsigned(),
                before & 1 != 0,
                false,
            )
        }
        _ => {
            let before = if count > width { 0 } else { a << (count - 1) };
            let carry = before & top != 0;
            (before << 1, carry, carry != (before << 1 & top != 0))
        }
    };
    let result = sign_extend(wide, bytes);
    (result, Flags::from_result(result, carry, overflow))
}

/// ROL and ROR leave SF, ZF, AF and PF.
fn rotate(mnemonic: Mnemonic, a: u64, count: u64, bytes: usize, old: Flags) -> Shifted {
    let width = u64::from(bits(bytes));
    let top = sign_bit(bytes);
    let turn = count % width;
    let a = a & mask(bytes);
    let left = if mnemonic == Mnemonic::Rol {
        turn
    } else {
        (width - turn) % width
    };
    let result = if left == 0 {
        a
    } else {
        ((a << left) | (a >> (width - left))) & mask(bytes)
    };
    let is_top_set = result & top != 0;
    let (carry, overflow) = if mnemonic == Mnemonic::Rol {
        let carry = result & 1 != 0;
        (carry, carry != is_top_set)
    } else {
        (is_top_set, is_top_set != (result & (top >> 1) != 0))
    };
    (result, with_carry_and_overflow(old, carry, overflow))
}

/// RCL and RCR rotate through the carry: one bit more than the width.
fn rotate_carry(mnemonic: Mnemonic, a: u64, count: u64, bytes: usize, old: Flags) -> Shifted {
    let width = bits(bytes);
    let top = sign_bit(bytes);
    let turn = u32::try_from(count).unwrap_or(0) % (width + 1);
    let left = if mnemonic == Mnemonic::Rcl {
        turn
    } else {
        (width + 1 - turn) % (width + 1)
    };
    let ring = u128::from(a & mask(bytes)) | (u128::from(old.carry()) << width);
    let full = (1_u128 << (width + 1)) - 1;
    let turned = ((ring << left) | (ring >> (width + 1 - left))) & full;
    let (low, _) = raddle_stdx::width::halves(turned);
    let result = low & mask(bytes);
    let carry = turned >> width != 0;
    let is_top_set = result & top != 0;
    let overflow = if mnemonic == Mnemonic::Rcl {
        carry != is_top_set
    } else {
        is_top_set != (result & (top >> 1) != 0)
    };
    (result, with_carry_and_overflow(old, carry, overflow))
}

fn with_carry_and_overflow(old: Flags, carry: bool, overflow: bool) -> Flags {
    let kept = old.to_rflags() & !(rflags::CF | rflags::OF);
    let overflow = if overflow { rflags::OF } else { 0 };
    Flags::from_rflags(kept | u64::from(carry) | overflow)
}

/// SHLD and SHRD: bits of the second operand move in.
pub(super) fn double<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let width = bits(bytes);
    let source = exec.read_operand(1)? & mask(bytes);
    let count = exec.read_operand(2)? & if bytes == 8 { 63 } else { 31 };
    let count = u32::try_from(count).unwrap_or(0);
    let is_left = exec.insn.mnemonic() == Mnemonic::Shld;
    let old = exec.cpu.flags;
    let flags = exec.update(0, false, |a| {
        if count == 0 {
            return (a, old);
        }
        let a = a & mask(bytes);
        let (low, carry) = if is_left {
            shift_in_left(a, source, count, width)
        } else {
            shift_in_right(a, source, count, width)
        };
        let result = sign_extend(low, bytes);
        let overflow = (result ^ a) & sign_bit(bytes) != 0;
        (result, Flags::from_result(result, carry, overflow))
    })?;
    exec.cpu.flags = flags;
    Ok(Flow::Next)
}

/// Three words in a row, so that counts beyond a 16-bit width have a meaning too.
fn shift_in_left(a: u64, source: u64, count: u32, width: u32) -> (u64, bool) {
    if width == 64 {
        let (low, _) = halves((u128::from(a) << 64 | u128::from(source)) >> (64 - count));
        return (low, a >> (64 - count) & 1 != 0);
    }
    let row = u128::from(a) << (2 * width) | u128::from(source) << width | u128::from(a);
    let (low, _) = halves(row >> (2 * width - count));
    let (carry, _) = halves(row >> (3 * width - count));
    (low, carry & 1 != 0)
}

fn shift_in_right(a: u64, source: u64, count: u32, width: u32) -> (u64, bool) {
    let row = if width == 64 {
        u128::from(source) << 64 | u128::from(a)
    } else {
        u128::from(a) << (2 * width) | u128::from(source) << width | u128::from(a)
    };
    let (low, _) = halves(row >> count);
    let (carry, _) = halves(row >> (count - 1));
    (low, carry & 1 != 0)
}

fn halves(value: u128) -> (u64, u64) {
    raddle_stdx::width::halves(value)
}
