//! SHL, SHR, SAR, ROL, ROR of registers by a constant or by CL, 32 and 64 bits wide.

use super::{by_const, by_wide_size, get, handlers, next, set};
use crate::flags::Flags;
use crate::int::Int;
use crate::op::Handler;

/// Numbers of the operations.
pub(crate) mod kind {
    pub(crate) const SHL: u8 = 0;
    pub(crate) const SHR: u8 = 1;
    pub(crate) const SAR: u8 = 2;
    pub(crate) const ROL: u8 = 3;
    pub(crate) const ROR: u8 = 4;
}
use kind::{ROL, SAR, SHL, SHR};

/// Result and flags for a masked count that is not zero. Where the manual leaves OF undefined (counts above
/// one) it is as if the last single-bit shift had set it; AF reads as zero. Rotations change CF and OF only.
#[inline(always)]
fn compute<T: Int, const KIND: u8>(old: Flags, a: T, count: u32) -> (T, Flags) {
    let top = T::BITS - 1;
    let bit = |value: u64, number: u32| value >> number & 1 != 0;
    match KIND {
        SHL => {
            let r = T::cut(a.zx() << count);
            let carry = bit(a.zx(), T::BITS - count);
            (
                r,
                Flags::from_result(r.sx(), carry, bit(r.zx(), top) != carry),
            )
        }
        SHR => {
            let r = T::cut(a.zx() >> count);
            (
                r,
                Flags::from_result(
                    r.sx(),
                    bit(a.zx(), count - 1),
                    count == 1 && bit(a.zx(), top),
                ),
            )
        }
        SAR => {
            let r = T::cut((a.sx().cast_signed() >> count).cast_unsigned());
            (r, Flags::from_result(r.sx(), bit(a.sx(), count - 1), false))
        }
        ROL => {
            let r = T::cut((a.zx() << count) | (a.zx() >> ((T::BITS - count) % T::BITS)));
            let carry = bit(r.zx(), 0);
            (r, with_rotation(old, carry, bit(r.zx(), top) != carry))
        }
        _ => {
            let r = T::cut((a.zx() >> count) | (a.zx() << ((T::BITS - count) % T::BITS)));
            let carry = bit(r.zx(), top);
            (r, with_rotation(old, carry, carry != bit(r.zx(), top - 1)))
        }
    }
}

/// The old flags with CF and OF replaced.
fn with_rotation(old: Flags, carry: bool, overflow: bool) -> Flags {
    old.with_overflow(overflow).with_carry(carry)
}

handlers! {
    /// The masked count is a constant in `imm`, not zero.
    fn by_constant[T: Int, const KIND: u8, const FLAGS: bool](cpu, op, run, log, budget) {
        let (r, flags) = compute::<T, KIND>((*cpu).flags, get(cpu, (*op).dst), raddle_stdx::width::low_u32((*op).imm));
        set::<T>(cpu, (*op).dst, r);
        if FLAGS {
            (*cpu).flags = flags;
        }
        next!(cpu, op, run, log, budget)
    }

    /// A count of zero changes nothing but still clears the upper half of a 32-bit destination.
    fn by_cl[T: Int, const KIND: u8, const FLAGS: bool](cpu, op, run, log, budget) {
        let count = u32::from(get::<u8>(cpu, 8)) & (T::BITS - 1);
        let a = get::<T>(cpu, (*op).dst);
        if count == 0 {
            set::<T>(cpu, (*op).dst, a);
        } else {
            let (r, flags) = compute::<T, KIND>((*cpu).flags, a, count);
            set::<T>(cpu, (*op).dst, r);
            if FLAGS {
                (*cpu).flags = flags;
            }
        }
        next!(cpu, op, run, log, budget)
    }
}

pub(crate) fn select_constant(kind: u8, size: usize, flags: bool) -> Handler {
    by_const!(kind, [0 1 2 3 4], K => by_wide_size!(size, T => if flags {
        by_constant::<T, K, true>
    } else {
        by_constant::<T, K, false>
    }))
}

pub(crate) fn select_cl(kind: u8, size: usize, flags: bool) -> Handler {
    by_const!(kind, [0 1 2 3 4], K => by_wide_size!(size, T => if flags {
        by_cl::<T, K, true>
    } else {
        by_cl::<T, K, false>
    }))
}
