//! Multiplication and division.

use iced_x86::Mnemonic;
use raddle_stdx::width::halves;

use super::access::Bus;
use super::operand::{Exec, bits, mask, merge, sign_extend};
use super::{Flow, Step, fault};
use crate::cpu::Reg;
use crate::flags::Flags;

/// MUL and IMUL with one, two or three operands.
pub(super) fn multiply<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let is_signed = exec.insn.mnemonic() == Mnemonic::Imul;
    match exec.insn.op_count() {
        1 => {
            let a = exec.cpu.reg(Reg::Rax);
            let b = exec.read_operand(0)?;
            let product = product(a, b, bytes, is_signed);
            write_wide(exec, product, bytes);
            set_flags(exec, product, bytes, is_signed);
        }
        count => {
            let (a, b) = if count == 2 { (0, 1) } else { (1, 2) };
            let a = exec.read_operand(a)?;
            let b = exec.read_operand(b)?;
            let product = product(a, b, bytes, true);
            exec.cpu
                .set_gpr(exec.insn.op0_register(), halves(product).0);
            set_flags(exec, product, bytes, true);
        }
    }
    Ok(Flow::Next)
}

fn product(a: u64, b: u64, bytes: usize, is_signed: bool) -> u128 {
    if is_signed {
        let wide = |value| i128::from(sign_extend(value, bytes).cast_signed());
        (wide(a) * wide(b)).cast_unsigned()
    } else {
        u128::from(a & mask(bytes)) * u128::from(b & mask(bytes))
    }
}

/// The double-width result goes to AX, DX:AX, EDX:EAX or RDX:RAX.
fn write_wide<B: Bus>(exec: &mut Exec<'_, B>, value: u128, bytes: usize) {
    let (low, _) = halves(value);
    let cpu = &mut *exec.cpu;
    if bytes == 1 {
        cpu.set_reg(Reg::Rax, merge(cpu.reg(Reg::Rax), low, 2));
        return;
    }
    let (high, _) = halves(value >> bits(bytes));
    cpu.set_reg(Reg::Rax, merge(cpu.reg(Reg::Rax), low, bytes));
    cpu.set_reg(Reg::Rdx, merge(cpu.reg(Reg::Rdx), high, bytes));
}

/// CF and OF say whether the upper half matters.
fn set_flags<B: Bus>(exec: &mut Exec<'_, B>, product: u128, bytes: usize, is_signed: bool) {
    let (low, _) = halves(product);
    let result = sign_extend(low, bytes);
    let fits = if is_signed {
        i128::from(result.cast_signed()).cast_unsigned() == product
    } else {
        product >> bits(bytes) == 0
    };
    exec.cpu.flags = Flags::from_result(result, !fits, !fits);
}

/// DIV and IDIV.
pub(super) fn divide<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let width = bits(bytes);
    let divisor = exec.read_operand(0)?;
    let (a, d) = (exec.cpu.reg(Reg::Rax), exec.cpu.reg(Reg::Rdx));
    let dividend = if bytes == 1 {
        u128::from(a & 0xFFFF)
    } else {
        u128::from(d & mask(bytes)) << width | u128::from(a & mask(bytes))
    };
    let (quotient, remainder) = if exec.insn.mnemonic() == Mnemonic::Idiv {
        divide_signed(dividend, divisor, bytes)
    } else {
        divide_unsigned(dividend, divisor & mask(bytes), bytes)
    }
    .ok_or(fault::divide())?;
    let both = u128::from(quotient & mask(bytes)) | u128::from(remainder & mask(bytes)) << width;
    write_wide(exec, both, bytes);
    Ok(Flow::Next)
}

fn divide_unsigned(dividend: u128, divisor: u64, bytes: usize) -> Option<(u64, u64)> {
    let quotient = dividend.checked_div(u128::from(divisor))?;
    let remainder = dividend % u128::from(divisor);
    (quotient >> bits(bytes) == 0).then(|| (halves(quotient).0, halves(remainder).0))
}

fn divide_signed(dividend: u128, divisor: u64, bytes: usize) -> Option<(u64, u64)> {
    let unused = 128 - 2 * bits(bytes);
    let dividend = (dividend << unused).cast_signed() >> unused;
    let divisor = i128::from(sign_extend(divisor, bytes).cast_signed());
    let quotient = dividend.checked_div(divisor)?;
    let remainder = dividend % divisor;
    let low = halves(quotient.cast_unsigned()).0;
    let fits = i128::from(sign_extend(low, bytes).cast_signed()) == quotient;
    fits.then(|| (low, halves(remainder.cast_unsigned()).0))
}
