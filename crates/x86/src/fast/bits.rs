//! BT of registers, BSF, BSR, BSWAP, POPCNT.

use super::{by_wide_size, get, handlers, next, set};
use crate::flags::Flags;
use crate::int::Int;
use crate::op::Handler;

handlers! {
    fn bt_reg[T: Int](cpu, op, run, log, budget) {
        let number = get::<T>(cpu, (*op).src).zx() & u64::from(T::BITS - 1);
        let bit = get::<T>(cpu, (*op).dst).zx() >> number & 1 != 0;
        (*cpu).flags = (*cpu).flags.with_carry(bit);
        next!(cpu, op, run, log, budget)
    }

    fn bt_imm[T: Int](cpu, op, run, log, budget) {
        let bit = get::<T>(cpu, (*op).dst).zx() >> ((*op).imm & u64::from(T::BITS - 1)) & 1 != 0;
        (*cpu).flags = (*cpu).flags.with_carry(bit);
        next!(cpu, op, run, log, budget)
    }

    /// BSF and BSR; a zero source leaves the destination alone (as every vendor does) and sets ZF.
    fn scan_reg[T: Int, const FORWARD: bool](cpu, op, run, log, budget) {
        let value = get::<T>(cpu, (*op).src).zx();
        if value == 0 {
            let old = get::<u64>(cpu, (*op).dst);
            set::<u64>(cpu, (*op).dst, old);
        } else {
            let position = if FORWARD { value.trailing_zeros() } else { 63 - value.leading_zeros() };
            set::<T>(cpu, (*op).dst, T::cut(u64::from(position)));
        }
        (*cpu).flags = Flags::from_logic(T::cut(value).sx());
        next!(cpu, op, run, log, budget)
    }

    fn bswap[T: Int](cpu, op, run, log, budget) {
        let value = get::<T>(cpu, (*op).dst).zx().swap_bytes() >> (64 - T::BITS);
        set::<T>(cpu, (*op).dst, T::cut(value));
        next!(cpu, op, run, log, budget)
    }
}

pub(crate) fn select_bt_reg(size: usize) -> Handler {
    by_wide_size!(size, T => bt_reg::<T>)
}

pub(crate) fn select_bt_imm(size: usize) -> Handler {
    by_wide_size!(size, T => bt_imm::<T>)
}

pub(crate) fn select_scan_reg(size: usize, forward: bool) -> Handler {
    by_wide_size!(size, T => if forward { scan_reg::<T, true> } else { scan_reg::<T, false> })
}

pub(crate) fn select_bswap(size: usize) -> Handler {
    by_wide_size!(size, T => bswap::<T>)
}
