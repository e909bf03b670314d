//! ADD, OR, ADC, SBB, AND, SUB, XOR, CMP, TEST, INC, DEC, NEG, NOT, XADD, CMPXCHG, XCHG.

use super::{
    address, by_const, by_size, get, handlers, load, load_for_update, next, set, store_back,
};
use crate::flags::Flags;
use crate::int::Int;
use crate::op::Handler;

/// Numbers of the operations: the first eight as in the encoding.
pub(crate) mod kind {
    pub(crate) const ADD: u8 = 0;
    pub(crate) const OR: u8 = 1;
    pub(crate) const ADC: u8 = 2;
    pub(crate) const SBB: u8 = 3;
    pub(crate) const AND: u8 = 4;
    pub(crate) const SUB: u8 = 5;
    pub(crate) const XOR: u8 = 6;
    pub(crate) const CMP: u8 = 7;
    pub(crate) const TEST: u8 = 8;
    pub(crate) const INC: u8 = 9;
    pub(crate) const DEC: u8 = 10;
    pub(crate) const NEG: u8 = 11;
    pub(crate) const NOT: u8 = 12;
}
use kind::{ADC, ADD, CMP, DEC, INC, NEG, NOT, OR, SBB, SUB, TEST, XOR};

/// Whether the operation has a result besides flags.
const fn writes(kind: u8) -> bool {
    !matches!(kind, CMP | TEST)
}

/// Flags of `a + b (+ carry) = r`.
#[inline(always)]
pub(crate) fn add_flags<T: Int>(a: T, b: T, r: T) -> Flags {
    let carries = (a.zx() & b.zx()) | ((a.zx() | b.zx()) & !r.zx());
    Flags::from_carries(r.sx(), carries, T::BITS)
}

/// Flags of `a - b (- borrow) = r`.
#[inline(always)]
pub(crate) fn sub_flags<T: Int>(a: T, b: T, r: T) -> Flags {
    let borrows = (!a.zx() & b.zx()) | ((!a.zx() | b.zx()) & r.zx());
    Flags::from_carries(r.sx(), borrows, T::BITS)
}

/// Result and flags of one operation; one-operand ones ignore `b`.
#[inline(always)]
pub(crate) fn compute<T: Int, const KIND: u8>(old: Flags, a: T, b: T) -> (T, Flags) {
    let carry = || u64::from(old.carry());
    match KIND {
        ADD | ADC => {
            let carry = if KIND == ADC { carry() } else { 0 };
            let r = T::cut(a.zx().wrapping_add(b.zx()).wrapping_add(carry));
            (r, add_flags(a, b, r))
        }
        SUB | CMP | SBB => {
            let borrow = if KIND == SBB { carry() } else { 0 };
            let r = T::cut(a.zx().wrapping_sub(b.zx()).wrapping_sub(borrow));
            (r, sub_flags(a, b, r))
        }
        INC => {
            let r = T::cut(a.zx().wrapping_add(1));
            (r, add_flags(a, T::cut(1), r).with_carry(old.carry()))
        }
        DEC => {
            let r = T::cut(a.zx().wrapping_sub(1));
            (r, sub_flags(a, T::cut(1), r).with_carry(old.carry()))
        }
        NEG => {
            let r = T::cut(0_u64.wrapping_sub(a.zx()));
            (r, sub_flags(T::cut(0), a, r))
        }
        NOT => (T::cut(!a.zx()), old),
        _ => {
            let r = T::cut(match KIND {
                OR => a.zx() | b.zx(),
                XOR => a.zx() ^ b.zx(),
                _ => a.zx() & b.zx(),
            });
            (r, Flags::from_logic(r.sx()))
        }
    }
}

handlers! {
    fn reg_reg[T: Int, const KIND: u8, const FLAGS: bool](cpu, op, run, log, budget) {
        let (r, flags) = compute::<T, KIND>((*cpu).flags, get(cpu, (*op).dst), get(cpu, (*op).src));
        if writes(KIND) {
            set::<T>(cpu, (*op).dst, r);
        }
        if FLAGS {
            (*cpu).flags = flags;
        }
        next!(cpu, op, run, log, budget)
    }

    fn reg_imm[T: Int, const KIND: u8, const FLAGS: bool](cpu, op, run, log, budget) {
        let (r, flags) = compute::<T, KIND>((*cpu).flags, get(cpu, (*op).dst), T::cut((*op).imm));
        if writes(KIND) {
            set::<T>(cpu, (*op).dst, r);
        }
        if FLAGS {
            (*cpu).flags = flags;
        }
        next!(cpu, op, run, log, budget)
    }

    fn reg_mem[T: Int, const KIND: u8, const FULL: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<FULL>(cpu, op);
        let b = load!(T, OBS, addr, cpu, op, run, log, budget);
        let (r, flags) = compute::<T, KIND>((*cpu).flags, get(cpu, (*op).dst), b);
        if writes(KIND) {
            set::<T>(cpu, (*op).dst, r);
        }
        (*cpu).flags = flags;
        next!(cpu, op, run, log, budget)
    }

    fn mem_reg[T: Int, const KIND: u8, const FULL: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<FULL>(cpu, op);
        let b = get::<T>(cpu, (*op).src);
        if writes(KIND) {
            let a = load_for_update!(T, OBS, addr, cpu, op, run, log, budget);
            let (r, flags) = compute::<T, KIND>((*cpu).flags, a, b);
            store_back!(T, addr, r, cpu, op, run, log, budget);
            (*cpu).flags = flags;
        } else {
            let a = load!(T, OBS, addr, cpu, op, run, log, budget);
            (*cpu).flags = compute::<T, KIND>((*cpu).flags, a, b).1;
        }
        next!(cpu, op, run, log, budget)
    }

    fn mem_imm[T: Int, const KIND: u8, const FULL: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<FULL>(cpu, op);
        let b = T::cut((*op).imm);
        if writes(KIND) {
            let a = load_for_update!(T, OBS, addr, cpu, op, run, log, budget);
            let (r, flags) = compute::<T, KIND>((*cpu).flags, a, b);
            store_back!(T, addr, r, cpu, op, run, log, budget);
            (*cpu).flags = flags;
        } else {
            let a = load!(T, OBS, addr, cpu, op, run, log, budget);
            (*cpu).flags = compute::<T, KIND>((*cpu).flags, a, b).1;
        }
        next!(cpu, op, run, log, budget)
    }

    /// `XADD [mem], reg`.
    fn xadd[T: Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let a = load_for_update!(T, OBS, addr, cpu, op, run, log, budget);
        let (r, flags) = compute::<T, ADD>((*cpu).flags, a, get(cpu, (*op).src));
        store_back!(T, addr, r, cpu, op, run, log, budget);
        set::<T>(cpu, (*op).src, a);
        (*cpu).flags = flags;
        next!(cpu, op, run, log, budget)
    }

    /// `XCHG [mem], reg`.
    fn xchg[T: Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let a = load_for_update!(T, OBS, addr, cpu, op, run, log, budget);
        let b = get::<T>(cpu, (*op).src);
        store_back!(T, addr, b, cpu, op, run, log, budget);
        set::<T>(cpu, (*op).src, a);
        next!(cpu, op, run, log, budget)
    }

    /// `CMPXCHG [mem], reg`. The memory is written in either case (SDM vol. 2A).
    fn cmpxchg[T: Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let a = load_for_update!(T, OBS, addr, cpu, op, run, log, budget);
        let accumulator = get::<T>(cpu, 0);
        let flags = compute::<T, CMP>((*cpu).flags, accumulator, a).1;
        let is_equal = accumulator == a;
        let stored = if is_equal { get::<T>(cpu, (*op).src) } else { a };
        store_back!(T, addr, stored, cpu, op, run, log, budget);
        if !is_equal {
            set::<T>(cpu, 0, a);
        }
        (*cpu).flags = flags;
        next!(cpu, op, run, log, budget)
    }
}

/// Operand combination of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    RegReg,
    RegImm,
    RegMem,
    MemReg,
    MemImm,
}

/// The handler for a register form; `flags` is false where they are overwritten before anybody reads them.
pub(crate) fn select_register(form: Form, kind: u8, size: usize, flags: bool) -> Handler {
    by_const!(kind, [0 1 2 3 4 5 6 7 8 9 10 11 12], K => by_size!(size, T => match (form, flags) {
        (Form::RegReg, true) => reg_reg::<T, K, true>,
        (Form::RegReg, false) => reg_reg::<T, K, false>,
        (_, true) => reg_imm::<T, K, true>,
        (_, false) => reg_imm::<T, K, false>,
    }))
}

/// The handler for a form with a memory operand.
pub(crate) fn select_memory<const OBS: u8>(
    form: Form,
    kind: u8,
    size: usize,
    full: bool,
) -> Handler {
    by_const!(kind, [0 1 2 3 4 5 6 7 8 9 10 11 12], K => by_size!(size, T => match (form, full) {
        (Form::RegMem, false) => reg_mem::<T, K, false, OBS>,
        (Form::RegMem, true) => reg_mem::<T, K, true, OBS>,
        (Form::MemReg, false) => mem_reg::<T, K, false, OBS>,
        (Form::MemReg, true) => mem_reg::<T, K, true, OBS>,
        (_, false) => mem_imm::<T, K, false, OBS>,
        (_, true) => mem_imm::<T, K, true, OBS>,
    }))
}

/// The handlers of the exchanging instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    Xadd,
    Xchg,
    Cmpxchg,
}

/// The handler for an exchanging instruction with a memory operand.
pub(crate) fn select_exchange<const OBS: u8>(which: Exchange, size: usize) -> Handler {
    by_size!(size, T => match which {
        Exchange::Xadd => xadd::<T, OBS>,
        Exchange::Xchg => xchg::<T, OBS>,
        Exchange::Cmpxchg => cmpxchg::<T, OBS>,
    })
}
