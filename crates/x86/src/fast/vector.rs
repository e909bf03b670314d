//! Moves between XMM registers and memory; all other SSE instructions through native stubs.
//!
//! While the guest's MXCSR has its default control bits (nearly always), stubs run under the host's, which is then
//! the same; the exception flags they raise stay in the hardware register until [`collect_exceptions`].

use super::generic::generic;
use super::{address, get, handlers, leave, load, next, record, set, store};
use crate::access::{leave_of, read_bytes, write_bytes};
use crate::cpu::Cpu;
use crate::exit::{Fault, Vector};
use crate::flags::Flags;
use crate::int::Int;
use crate::op::{Handler, Meta, Op};
use crate::run::{Leave, Run, index_of};
use crate::stub::{MemoryUse, StubRef};
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
            run.leave = leave_of(fault);
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
            run.leave = leave_of(fault);
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

/// Everything of MXCSR but the exception flags.
pub(crate) const CONTROL: u32 = 0xFFC0;
/// Control bits of a process that never touched them: everything masked, round to nearest.
pub(crate) const DEFAULT_CONTROL: u32 = 0x1F80;
const EXCEPTIONS: u32 = 0x3F;

/// Gives the hardware's exception flags to the guest and clears them in the hardware.
pub(crate) fn collect_exceptions(cpu: &mut Cpu) {
    let mut value = 0_u32;
    // SAFETY: stores and loads MXCSR through a live local; only exception flags change.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
        if value & EXCEPTIONS != 0 {
            cpu.fx.mxcsr |= value & EXCEPTIONS;
            value &= !EXCEPTIONS;
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags, readonly));
        }
    }
}

/// Forgets exception flags that the host itself raised.
pub(crate) fn clear_exceptions() {
    let value = DEFAULT_CONTROL;
    // SAFETY: sets MXCSR to the value every thread starts with.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags, readonly));
    }
}

type Entry = unsafe extern "C" fn(*mut u8, *mut u8) -> u64;

/// The stub of an op, kept where others keep a link.
#[inline(always)]
unsafe fn stub_of(op: *const Op) -> Entry {
    // SAFETY: `lower` put a stub's entry there.
    unsafe { std::mem::transmute::<*const Op, Entry>((*op).next) }
}

handlers! {
    /// An SSE instruction on registers. `FP` ones need the default control bits.
    fn stub_reg[const FP: bool, const FLAGS: bool](cpu, op, run, log, budget) {
        if FP && (*cpu).fx.mxcsr & CONTROL != DEFAULT_CONTROL {
            return generic(cpu, op, run, log, budget);
        }
        let rflags = stub_of(op)(cpu.cast(), std::ptr::null_mut());
        if FLAGS {
            (*cpu).flags = Flags::from_rflags(rflags);
        }
        next!(cpu, op, run, log, budget)
    }

    /// An SSE instruction that reads (or, if `WRITES`, writes) memory; `src` is the size and `dst` the mask of
    /// address bits that must be zero. Whatever is not plain goes to the generic interpreter.
    fn stub_mem[const FP: bool, const FLAGS: bool, const WRITES: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let entry = (&raw const (*run).tlb).cast::<crate::run::TlbEntry>().add(index_of(addr));
        let last_page = addr.wrapping_add(u64::from((*op).src)).wrapping_sub(1) & PAGE_MASK;
        let tag = if WRITES { (*entry).write } else { (*entry).read };
        let is_plain = tag == last_page
            && addr & u64::from((*op).dst) == 0
            && (!FP || (*cpu).fx.mxcsr & CONTROL == DEFAULT_CONTROL);
        if !is_plain {
            return generic(cpu, op, run, log, budget);
        }
        let host = std::ptr::with_exposed_provenance_mut::<u8>(raddle_stdx::width::to_usize(addr.wrapping_add((*entry).addend)));
        let rflags = stub_of(op)(cpu.cast(), host);
        if FLAGS {
            (*cpu).flags = Flags::from_rflags(rflags);
        }
        if OBS != super::OBSERVE_NONE {
            // Not a byte more than the operand: it may end where the page does.
            let value = match (*op).src {
                1 => u64::from(host.read()),
                2 => u64::from(host.cast::<u16>().read_unaligned()),
                4 => u64::from(host.cast::<u32>().read_unaligned()),
                _ => host.cast::<u64>().read_unaligned(),
            };
            record::<OBS>(&raw mut log, addr, (*op).meta, value);
        }
        next!(cpu, op, run, log, budget)
    }

    /// MOVAPS, MOVDQA, MOVUPS, MOVDQU, LDDQU xmm, m128.
    fn load_16[const ALIGNED: bool, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        if ALIGNED && !addr.is_multiple_of(16) {
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
        if ALIGNED && !addr.is_multiple_of(16) {
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

/// The handler for a stub.
pub(crate) fn select_stub<const OBS: u8>(stub: &StubRef) -> Handler {
    let is_write = stub.memory == MemoryUse::Write;
    match (stub.memory, stub.uses_mxcsr, stub.sets_flags) {
        (MemoryUse::None, false, false) => stub_reg::<false, false>,
        (MemoryUse::None, false, true) => stub_reg::<false, true>,
        (MemoryUse::None, true, false) => stub_reg::<true, false>,
        (MemoryUse::None, true, true) => stub_reg::<true, true>,
        (_, false, false) if is_write => stub_mem::<false, false, true, OBS>,
        (_, true, false) if is_write => stub_mem::<true, false, true, OBS>,
        (_, false, false) => stub_mem::<false, false, false, OBS>,
        (_, false, true) => stub_mem::<false, true, false, OBS>,
        (_, true, false) => stub_mem::<true, false, false, OBS>,
        (_, true, true) => stub_mem::<true, true, false, OBS>,
    }
}
