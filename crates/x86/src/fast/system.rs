//! The system instructions that kernels execute most; in user mode, and where the Linux world runs, the generic
//! interpreter says what they do.

use super::generic::generic;
use super::{RSP, get, handlers, next, set};
use crate::cpu::slot;
use crate::flags::rflags;
use crate::op::LogKind;
use crate::run::Run;

/// What PUSHF hides.
const HIDDEN_FROM_PUSHF: u64 = rflags::VM | rflags::RF;

/// Whether the run is privileged.
#[inline(always)]
unsafe fn is_kernel(run: *const Run) -> bool {
    // SAFETY: `run` is the live run.
    unsafe { !(*run).system.is_null() && !(*run).is_user }
}

handlers! {
    fn cli[](cpu, op, run, log, budget) {
        if !is_kernel(run) {
            return generic(cpu, op, run, log, budget);
        }
        (*cpu).system_flags &= !rflags::IF;
        next!(cpu, op, run, log, budget)
    }

    /// If an interrupt waits for it, the generic interpreter ends the run.
    fn sti[](cpu, op, run, log, budget) {
        if !is_kernel(run) || (*(*run).system).wants_window() {
            return generic(cpu, op, run, log, budget);
        }
        if (*cpu).system_flags & rflags::IF == 0 {
            (*cpu).system_flags |= rflags::IF;
            (*cpu).system.interrupt_shadow = true;
            (*(*run).system).begin_shadow(budget + (*op).refund() - 1);
        }
        next!(cpu, op, run, log, budget)
    }

    fn swapgs[](cpu, op, run, log, budget) {
        if !is_kernel(run) {
            return generic(cpu, op, run, log, budget);
        }
        let other = (*cpu).system.kernel_gs_base;
        (*cpu).system.kernel_gs_base = get::<u64>(cpu, slot::GS_BASE * 8);
        set::<u64>(cpu, slot::GS_BASE * 8, other);
        next!(cpu, op, run, log, budget)
    }

    fn pushf[const OBS: u8](cpu, op, run, log, budget) {
        let value = (*cpu).rflags() & !HIDDEN_FROM_PUSHF;
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        let pointer = crate::access::fast_write::<u64>(run, rsp);
        if pointer.is_null() {
            if crate::access::slow_store(run, rsp, 8, value) == 0 {
                return super::leave_at_stack(cpu, op, run, log, budget);
            }
        } else {
            pointer.write_unaligned(value);
        }
        super::record::<OBS>(&raw mut log, rsp, (*op).meta.with_access(LogKind::Write, 8), value);
        set::<u64>(cpu, RSP, rsp);
        next!(cpu, op, run, log, budget)
    }
}
