//! IMUL with two and three operands, MUL and DIV of registers, 32 and 64 bits wide.

use super::{address, by_wide_size, get, handlers, leave, load, next, set};
use crate::exit::{Fault, Vector};
use crate::flags::Flags;
use crate::int::Int;
use crate::op::Handler;
use crate::run::Leave;

const RDX: u8 = 2 * 8;

/// Truncated signed product; CF and OF if it does not fit; ZF, SF and PF (undefined) follow the result.
#[inline(always)]
fn multiply<T: Int>(a: T, b: T) -> (T, Flags) {
    let wide = i128::from(a.sx().cast_signed()) * i128::from(b.sx().cast_signed());
    let r = T::cut(raddle_stdx::width::halves(wide.cast_unsigned()).0);
    let overflows = i128::from(r.sx().cast_signed()) != wide;
    (r, Flags::from_result(r.sx(), overflows, overflows))
}

handlers! {
    fn imul_reg[T: Int, const FLAGS: bool](cpu, op, run, log, budget) {
        let (r, flags) = multiply::<T>(get(cpu, (*op).dst), get(cpu, (*op).src));
        set::<T>(cpu, (*op).dst, r);
        if FLAGS {
            (*cpu).flags = flags;
        }
        next!(cpu, op, run, log, budget)
    }

    fn imul_reg_imm[T: Int, const FLAGS: bool](cpu, op, run, log, budget) {
        let (r, flags) = multiply::<T>(get(cpu, (*op).src), T::cut((*op).imm));
        set::<T>(cpu, (*op).dst, r);
        if FLAGS {
            (*cpu).flags = flags;
        }
        next!(cpu, op, run, log, budget)
    }

    fn imul_mem[T: Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let b = load!(T, OBS, addr, cpu, op, run, log, budget);
        let (r, flags) = multiply::<T>(get(cpu, (*op).dst), b);
        set::<T>(cpu, (*op).dst, r);
        (*cpu).flags = flags;
        next!(cpu, op, run, log, budget)
    }

    /// RDX:RAX = RAX * operand.
    fn mul_reg[T: Int, const SIGNED: bool, const FLAGS: bool](cpu, op, run, log, budget) {
        let (a, b) = (get::<T>(cpu, 0), get::<T>(cpu, (*op).src));
        let wide = if SIGNED {
            (i128::from(a.sx().cast_signed()) * i128::from(b.sx().cast_signed())).cast_unsigned()
        } else {
            u128::from(a.zx()) * u128::from(b.zx())
        };
        let low = T::cut(raddle_stdx::width::halves(wide).0);
        let high = T::cut(raddle_stdx::width::halves(wide >> T::BITS).0);
        let fits = if SIGNED { high.sx() == (low.sx().cast_signed() >> 63).cast_unsigned() } else { high.zx() == 0 };
        set::<T>(cpu, 0, low);
        set::<T>(cpu, RDX, high);
        if FLAGS {
            (*cpu).flags = Flags::from_result(low.sx(), !fits, !fits);
        }
        next!(cpu, op, run, log, budget)
    }

    /// RDX:RAX / operand; flags are undefined and stay.
    fn div_reg[T: Int, const SIGNED: bool](cpu, op, run, log, budget) {
        let divisor = get::<T>(cpu, (*op).src);
        let (low, high) = (get::<T>(cpu, 0), get::<T>(cpu, RDX));
        let divided = if SIGNED { divide_signed(low, high, divisor) } else { divide(low, high, divisor) };
        let Some((quotient, remainder)) = divided else {
            (*run).leave = Leave::Fault(Fault::Exception { vector: Vector::Divide, error_code: 0 });
            return leave(cpu, op, run, log, budget);
        };
        set::<T>(cpu, 0, quotient);
        set::<T>(cpu, RDX, remainder);
        next!(cpu, op, run, log, budget)
    }
}

/// Quotient and remainder, or `None` for #DE.
#[inline(always)]
fn divide<T: Int>(low: T, high: T, divisor: T) -> Option<(T, T)> {
    if divisor.zx() == 0 || high.zx() >= divisor.zx() {
        return None;
    }
    if high.zx() == 0 {
        return Some((
            T::cut(low.zx() / divisor.zx()),
            T::cut(low.zx() % divisor.zx()),
        ));
    }
    let dividend = (u128::from(high.zx()) << T::BITS) | u128::from(low.zx());
    let cut = |value: u128| T::cut(raddle_stdx::width::halves(value).0);
    Some((
        cut(dividend / u128::from(divisor.zx())),
        cut(dividend % u128::from(divisor.zx())),
    ))
}

#[inline(always)]
fn divide_signed<T: Int>(low: T, high: T, divisor: T) -> Option<(T, T)> {
    let divisor = i128::from(divisor.sx().cast_signed());
    let dividend = (i128::from(high.sx().cast_signed()) << T::BITS) | i128::from(low.zx());
    let (quotient, remainder) = (
        dividend.checked_div(divisor)?,
        dividend.checked_rem(divisor)?,
    );
    let cut = |value: i128| T::cut(raddle_stdx::width::halves(value.cast_unsigned()).0);
    let fits = i128::from(cut(quotient).sx().cast_signed()) == quotient;
    fits.then(|| (cut(quotient), cut(remainder)))
}

pub(crate) fn select_imul_reg(size: usize, flags: bool) -> Handler {
    by_wide_size!(size, T => if flags { imul_reg::<T, true> } else { imul_reg::<T, false> })
}

pub(crate) fn select_imul_reg_imm(size: usize, flags: bool) -> Handler {
    by_wide_size!(size, T => if flags { imul_reg_imm::<T, true> } else { imul_reg_imm::<T, false> })
}

pub(crate) fn select_imul_mem<const OBS: u8>(size: usize) -> Handler {
    by_wide_size!(size, T => imul_mem::<T, OBS>)
}

pub(crate) fn select_mul_reg(size: usize, signed: bool, flags: bool) -> Handler {
    by_wide_size!(size, T => match (signed, flags) {
        (false, false) => mul_reg::<T, false, false>,
        (false, true) => mul_reg::<T, false, true>,
        (true, false) => mul_reg::<T, true, false>,
        (true, true) => mul_reg::<T, true, true>,
    })
}

pub(crate) fn select_div_reg(size: usize, signed: bool) -> Handler {
    by_wide_size!(size, T => if signed { div_reg::<T, true> } else { div_reg::<T, false> })
}
