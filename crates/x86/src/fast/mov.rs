//! MOV, MOVZX, MOVSX, LEA, XCHG between registers, CBW family.

use super::{address, by_size, get, handlers, load, next, set, store};
use crate::int::Int;
use crate::op::Handler;

handlers! {
    fn reg_reg[T: Int](cpu, op, run, log, budget) {
        set::<T>(cpu, (*op).dst, get(cpu, (*op).src));
        next!(cpu, op, run, log, budget)
    }

    fn reg_imm[T: Int](cpu, op, run, log, budget) {
        set::<T>(cpu, (*op).dst, T::cut((*op).imm));
        next!(cpu, op, run, log, budget)
    }

    fn reg_mem[T: Int, const FULL: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<FULL>(cpu, op);
        let value = load!(T, OBS, addr, cpu, op, run, log, budget);
        set::<T>(cpu, (*op).dst, value);
        next!(cpu, op, run, log, budget)
    }

    fn mem_reg[T: Int, const FULL: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<FULL>(cpu, op);
        let value = get::<T>(cpu, (*op).src);
        store!(T, OBS, addr, value, (*op).meta, cpu, op, run, log, budget);
        next!(cpu, op, run, log, budget)
    }

    fn mem_imm[T: Int, const FULL: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<FULL>(cpu, op);
        let value = T::cut((*op).imm);
        store!(T, OBS, addr, value, (*op).meta, cpu, op, run, log, budget);
        next!(cpu, op, run, log, budget)
    }

    /// MOVZX and MOVSX between registers.
    fn extend_reg[F: Int, T: Int, const SIGNED: bool](cpu, op, run, log, budget) {
        let value = get::<F>(cpu, (*op).src);
        set::<T>(cpu, (*op).dst, T::cut(if SIGNED { value.sx() } else { value.zx() }));
        next!(cpu, op, run, log, budget)
    }

    /// MOVZX and MOVSX from memory.
    fn extend_mem[F: Int, T: Int, const SIGNED: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let value = load!(F, OBS, addr, cpu, op, run, log, budget);
        set::<T>(cpu, (*op).dst, T::cut(if SIGNED { value.sx() } else { value.zx() }));
        next!(cpu, op, run, log, budget)
    }

    fn lea[T: Int, const FULL: bool](cpu, op, run, log, budget) {
        set::<T>(cpu, (*op).dst, T::cut(address::<FULL>(cpu, op)));
        next!(cpu, op, run, log, budget)
    }

    fn xchg_reg[T: Int](cpu, op, run, log, budget) {
        let (a, b) = (get::<T>(cpu, (*op).dst), get::<T>(cpu, (*op).src));
        set::<T>(cpu, (*op).dst, b);
        set::<T>(cpu, (*op).src, a);
        next!(cpu, op, run, log, budget)
    }

    /// CWDE and CDQE: sign-extend the lower half of the accumulator.
    fn widen_accumulator[F: Int, T: Int](cpu, op, run, log, budget) {
        set::<T>(cpu, 0, T::cut(get::<F>(cpu, 0).sx()));
        next!(cpu, op, run, log, budget)
    }

    /// CDQ and CQO: the sign of the accumulator into RDX.
    fn sign_to_rdx[T: Int](cpu, op, run, log, budget) {
        let sign = (get::<T>(cpu, 0).sx().cast_signed() >> 63).cast_unsigned();
        set::<T>(cpu, 16, T::cut(sign));
        next!(cpu, op, run, log, budget)
    }

    /// NOP, ENDBR, PREFETCH, fences: nothing to do on one host thread.
    fn nothing[](cpu, op, run, log, budget) {
        next!(cpu, op, run, log, budget)
    }
}

pub(crate) fn select_reg_reg(size: usize) -> Handler {
    by_size!(size, T => reg_reg::<T>)
}

pub(crate) fn select_reg_imm(size: usize) -> Handler {
    by_size!(size, T => reg_imm::<T>)
}

pub(crate) fn select_reg_mem<const OBS: u8>(size: usize, full: bool) -> Handler {
    by_size!(size, T => if full { reg_mem::<T, true, OBS> } else { reg_mem::<T, false, OBS> })
}

pub(crate) fn select_mem_reg<const OBS: u8>(size: usize, full: bool) -> Handler {
    by_size!(size, T => if full { mem_reg::<T, true, OBS> } else { mem_reg::<T, false, OBS> })
}

pub(crate) fn select_mem_imm<const OBS: u8>(size: usize, full: bool) -> Handler {
    by_size!(size, T => if full { mem_imm::<T, true, OBS> } else { mem_imm::<T, false, OBS> })
}

/// Extension from `from` bytes to `to` bytes.
pub(crate) fn select_extend_reg(from: usize, to: usize, signed: bool) -> Handler {
    match from {
        1 => {
            by_size!(to, T => if signed { extend_reg::<u8, T, true> } else { extend_reg::<u8, T, false> })
        }
        2 => {
            by_size!(to, T => if signed { extend_reg::<u16, T, true> } else { extend_reg::<u16, T, false> })
        }
        _ => {
            by_size!(to, T => if signed { extend_reg::<u32, T, true> } else { extend_reg::<u32, T, false> })
        }
    }
}

pub(crate) fn select_extend_mem<const OBS: u8>(from: usize, to: usize, signed: bool) -> Handler {
    match from {
        1 => {
            by_size!(to, T => if signed { extend_mem::<u8, T, true, OBS> } else { extend_mem::<u8, T, false, OBS> })
        }
        2 => {
            by_size!(to, T => if signed { extend_mem::<u16, T, true, OBS> } else { extend_mem::<u16, T, false, OBS> })
        }
        _ => {
            by_size!(to, T => if signed { extend_mem::<u32, T, true, OBS> } else { extend_mem::<u32, T, false, OBS> })
        }
    }
}

pub(crate) fn select_lea(size: usize, full: bool) -> Handler {
    by_size!(size, T => if full { lea::<T, true> } else { lea::<T, false> })
}

pub(crate) fn select_xchg_reg(size: usize) -> Handler {
    by_size!(size, T => xchg_reg::<T>)
}
