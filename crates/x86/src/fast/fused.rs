//! CMP or TEST of registers and constants together with the conditional jump behind it.

use super::alu::kind::{CMP, TEST};
use super::alu::{Form, compute};
use super::branch::follow;
use super::{by_const, get, handlers};
use crate::int::Int;
use crate::op::Handler;

/// Whether the condition with this number holds after the comparison, straight from the operands.
#[inline(always)]
fn holds<T: Int, const KIND: u8, const CC: u8>(a: T, b: T) -> bool {
    let signed = |value: T| value.sx().cast_signed();
    let value = if KIND == CMP {
        let r = T::cut(a.zx().wrapping_sub(b.zx()));
        match CC >> 1 {
            0 => {
                signed(a).wrapping_sub(signed(b)) != signed(r)
                    || (T::BITS == 64 && signed(a).checked_sub(signed(b)).is_none())
            }
            1 => a < b,
            2 => a == b,
            3 => a <= b,
            4 => signed(r) < 0,
            5 => (r.zx() & 0xFF).count_ones().is_multiple_of(2),
            6 => signed(a) < signed(b),
            _ => signed(a) <= signed(b),
        }
    } else {
        let r = T::cut(a.zx() & b.zx());
        match CC >> 1 {
            0 | 1 => false,
            2 | 3 => r.zx() == 0,
            4 | 6 => signed(r) < 0,
            5 => (r.zx() & 0xFF).count_ones().is_multiple_of(2),
            _ => signed(r) <= 0,
        }
    };
    value != (CC & 1 != 0)
}

handlers! {
    fn reg_reg[T: Int, const KIND: u8, const CC: u8](cpu, op, run, log, budget) {
        let (a, b) = (get::<T>(cpu, (*op).dst), get::<T>(cpu, (*op).src));
        (*cpu).flags = compute::<T, KIND>((*cpu).flags, a, b).1;
        follow!(holds::<T, KIND, CC>(a, b), cpu, op, run, log, budget)
    }

    fn reg_imm[T: Int, const KIND: u8, const CC: u8](cpu, op, run, log, budget) {
        let (a, b) = (get::<T>(cpu, (*op).dst), T::cut((*op).imm));
        (*cpu).flags = compute::<T, KIND>((*cpu).flags, a, b).1;
        follow!(holds::<T, KIND, CC>(a, b), cpu, op, run, log, budget)
    }
}

/// The handler, if this pair is one that we fuse: 8, 32 and 64 bits wide.
pub(crate) fn select(form: Form, kind: u8, size: usize, condition: u8) -> Option<Handler> {
    macro_rules! with {
        ($T:ty) => {
            by_const!(condition, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], CC => match (form, kind) {
                (Form::RegReg, CMP) => reg_reg::<$T, CMP, CC>,
                (Form::RegReg, _) => reg_reg::<$T, TEST, CC>,
                (_, CMP) => reg_imm::<$T, CMP, CC>,
                _ => reg_imm::<$T, TEST, CC>,
            })
        };
    }
    if !matches!(form, Form::RegReg | Form::RegImm) || !matches!(kind, CMP | TEST) {
        return None;
    }
    match size {
        1 => Some(with!(u8)),
        4 => Some(with!(u32)),
        8 => Some(with!(u64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    fn check<T: Int, const KIND: u8>(values: &[u64]) {
        macro_rules! conditions {
            ($($cc:literal)*) => {
                for a in values {
                    for b in values {
                        let (a, b) = (T::cut(*a), T::cut(*b));
                        let flags = compute::<T, KIND>(Flags::default(), a, b).1;
                        $(assert_eq!(holds::<T, KIND, $cc>(a, b), flags.condition($cc), "{a:?} {b:?} cc {}", $cc);)*
                    }
                }
            };
        }
        conditions!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }

    #[test]
    fn shortcuts_agree_with_the_flags() {
        let edges = [
            0,
            1,
            2,
            0x7F,
            0x80,
            0x81,
            0xFF,
            0x7FFF_FFFF,
            0x8000_0000,
            u64::MAX,
            i64::MAX as u64,
            1 << 63,
        ];
        check::<u8, CMP>(&edges);
        check::<u32, CMP>(&edges);
        check::<u64, CMP>(&edges);
        check::<u8, TEST>(&edges);
        check::<u32, TEST>(&edges);
        check::<u64, TEST>(&edges);
    }
}
