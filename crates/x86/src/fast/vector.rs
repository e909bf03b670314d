//! Moves between XMM registers and memory.

use super::{address, get, handlers, leave, load, next, record, set, store};
use crate::access::{read_bytes, write_bytes};
use crate::cpu::Cpu;
use crate::exit::{Fault, Vector};
use crate::int::Int;
use crate::op::Meta;
use crate::run::{Leave, Run, index_of};
use raddle_mem::{Access, PAGE_SIZE};

/// An XMM register by number.
#[inline(always)]
unsafe fn xmm(cpu: *mut Cpu, number: u8) -> *mut u128 {
    // SAFETY: `lower` only makes numbers below 16.
    unsafe {
        (&raw mut (*cpu).xmm)
            .cast::<u128>()
            .add(usize::from(number))
    }
}

const PAGE_MASK: u64 = !(PAGE_SIZE as u64 - 1);

/// Sixteen bytes when the fast path cannot read them; the value is left in `run.wide`.
#[cold]
#[inline(never)]
unsafe extern "C" fn slow_load_16(run: *mut Run, addr: u64) -> u64 {
    let mut bytes = [0; 16];
    // SAFETY: `run` is the live run.
    let run = unsafe { &mut *run };
    match read_bytes(run, addr, &mut bytes, Access::Read) {
        Ok(()) => {
            run.wide = u128::from_le_bytes(bytes);
            1
        }
        Err(fault) => {
            run.leave = Leave::Fault(fault);
            0
        }
    }
}

/// Stores `run.wide` when the fast path cannot.
#[cold]
#[inline(never)]
unsafe extern "C" fn slow_store_16(run: *mut Run, addr: u64) -> u64 {
    // SAFETY: `run` is the live run.
    let run = unsafe { &mut *run };
    let bytes = run.wide.to_le_bytes();
    match write_bytes(run, addr, &bytes) {
        Ok(()) => 1,
        Err(fault) => {
            run.leave = Leave::Fault(fault);
            0
        }
    }
}

const MISALIGNED: Leave = Leave::Fault(Fault::Exception {
    vector: Vector::GeneralProtection,
    error_code: 0,
});

#[inline(always)]
unsafe fn record_16<const OBS: u8>(log: *mut *mut u64, addr: u64, meta: Meta, value: u128) {
    // SAFETY: as in `record`.
    unsafe { record::<OBS>(log, addr, meta, raddle_stdx::width::halves(value).0) };
}

handlers! {
    /// MOVAPS, MOVDQA, MOVUPS, MOVDQU, LDDQU xmm, m128.
    fn load_16[const ALIGNED: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        if ALIGNED && addr % 16 != 0 {
            (*run).leave = MISALIGNED;
            return leave(cpu, op, run, log, budget);
        }
        let entry = (&raw const (*run).tlb).cast::<crate::run::TlbEntry>().add(index_of(addr));
        let value = if (*entry).read == addr.wrapping_add(15) & PAGE_MASK {
            std::ptr::with_exposed_provenance::<u128>(raddle_stdx::width::to_usize(addr.wrapping_add((*entry).addend))).read_unaligned()
        } else {
            if slow_load_16(run, addr) == 0 {
                return leave(cpu, op, run, log, budget);
            }
            (*run).wide
        };
        record_16::<OBS>(&raw mut log, addr, (*op).meta, value);
        *xmm(cpu, (*op).dst) = value;
        next!(cpu, op, run, log, budget)
    }

    fn store_16[const ALIGNED: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        if ALIGNED && addr % 16 != 0 {
            (*run).leave = MISALIGNED;
            return leave(cpu, op, run, log, budget);
        }
        let value = *xmm(cpu, (*op).src);
        let entry = (&raw const (*run).tlb).cast::<crate::run::TlbEntry>().add(index_of(addr));
        if (*entry).write == addr.wrapping_add(15) & PAGE_MASK {
            std::ptr::with_exposed_provenance_mut::<u128>(raddle_stdx::width::to_usize(addr.wrapping_add((*entry).addend))).write_unaligned(value);
        } else {
            (*run).wide = value;
            if slow_store_16(run, addr) == 0 {
                return leave(cpu, op, run, log, budget);
            }
        }
        record_16::<OBS>(&raw mut log, addr, (*op).meta, value);
        next!(cpu, op, run, log, budget)
    }

    fn move_16[](cpu, op, run, log, budget) {
        *xmm(cpu, (*op).dst) = *xmm(cpu, (*op).src);
        next!(cpu, op, run, log, budget)
    }

    /// MOVD, MOVQ, MOVSS, MOVSD xmm, mem: the rest of the register becomes zero.
    fn load_low[T: Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let value = load!(T, OBS, addr, cpu, op, run, log, budget);
        *xmm(cpu, (*op).dst) = u128::from(value.zx());
        next!(cpu, op, run, log, budget)
    }

    /// MOVD, MOVQ, MOVSS, MOVSD mem, xmm.
    fn store_low[T: Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let value = T::cut(raddle_stdx::width::halves(*xmm(cpu, (*op).src)).0);
        store!(T, OBS, addr, value, (*op).meta, cpu, op, run, log, budget);
        next!(cpu, op, run, log, budget)
    }

    /// MOVD, MOVQ xmm, reg.
    fn low_from_reg[T: Int](cpu, op, run, log, budget) {
        *xmm(cpu, (*op).dst) = u128::from(get::<T>(cpu, (*op).src).zx());
        next!(cpu, op, run, log, budget)
    }

    /// MOVD, MOVQ reg, xmm.
    fn low_to_reg[T: Int](cpu, op, run, log, budget) {
        set::<T>(cpu, (*op).dst, T::cut(raddle_stdx::width::halves(*xmm(cpu, (*op).src)).0));
        next!(cpu, op, run, log, budget)
    }

    /// PXOR, XORPS, XORPD of two registers.
    fn xor_16[](cpu, op, run, log, budget) {
        *xmm(cpu, (*op).dst) ^= *xmm(cpu, (*op).src);
        next!(cpu, op, run, log, budget)
    }
}
