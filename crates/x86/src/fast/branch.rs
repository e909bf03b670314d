//! Jumps, calls and returns: the ends of blocks.

use super::{RSP, address, by_const, get, handlers, load, next, set, store};
use crate::cpu::Cpu;
use crate::op::{Handler, LogKind, Op};
use crate::run::{Leave, Run};

/// Goes to the linked block of a two-way branch, or returns to the loop if it needs more steps than are left.
macro_rules! follow {
    ($taken:expr, $cpu:ident, $op:ident, $run:ident, $log:ident, $budget:ident) => {{
        let (target, steps) = if $taken {
            ((*$op).next, (*$op).next_steps)
        } else {
            ((*$op).alt, (*$op).alt_steps)
        };
        crate::fast::branch::enter!(target, i64::from(steps), $cpu, $run, $log, $budget)
    }};
}

/// Charges a block's steps and goes there, or returns to the loop.
macro_rules! enter {
    ($target:expr, $steps:expr, $cpu:ident, $run:ident, $log:ident, $budget:ident) => {{
        let target: *const crate::op::Op = $target;
        let left = $budget - $steps;
        if left < 0 {
            return crate::fast::branch::out_of_budget($cpu, target, $run, $log, $budget);
        }
        ((*target).handler)($cpu, target, $run, $log, left)
    }};
}

/// Goes to an address that is known only now, through the jump cache.
macro_rules! jump_to {
    ($pc:expr, $cpu:ident, $run:ident, $log:ident, $budget:ident) => {{
        let pc: u64 = $pc;
        let entry = (*$run).jumps.add(crate::cache::jump_index(pc));
        if (*entry).pc != pc {
            return crate::fast::branch::unknown_target($cpu, pc, $run, $log, $budget);
        }
        crate::fast::branch::enter!((*entry).op, (*entry).steps, $cpu, $run, $log, $budget)
    }};
}

pub(crate) use {enter, follow, jump_to};

/// Returns to the loop at the beginning of a block that is too long for the rest of the slice.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn out_of_budget(
    cpu: *mut Cpu,
    target: *const Op,
    run: *mut Run,
    log: *mut u64,
    budget: i64,
) {
    // SAFETY: all pointers are valid during a run.
    unsafe {
        (*cpu).rip = (*target).meta.pc();
        (*run).budget = budget;
        (*run).log = log;
        (*run).leave = Leave::Budget;
    }
}

/// Returns to the loop to look for the block at `pc`.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn unknown_target(
    cpu: *mut Cpu,
    pc: u64,
    run: *mut Run,
    log: *mut u64,
    budget: i64,
) {
    // SAFETY: all pointers are valid during a run.
    unsafe {
        (*cpu).rip = pc;
        (*run).budget = budget;
        (*run).log = log;
        (*run).leave = Leave::NeedBlock;
        (*run).patch = std::ptr::null_mut();
    }
}

handlers! {
    /// JMP to a constant, and the end of a block that simply goes on in the next one.
    fn jmp[](cpu, op, run, log, budget) {
        enter!((*op).next, i64::from((*op).next_steps), cpu, run, log, budget)
    }

    fn jcc[const CC: u8](cpu, op, run, log, budget) {
        follow!((*cpu).flags.condition(CC), cpu, op, run, log, budget)
    }

    fn jmp_reg[](cpu, op, run, log, budget) {
        jump_to!(get::<u64>(cpu, (*op).src), cpu, run, log, budget)
    }

    fn jmp_mem[const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let target = load!(u64, OBS, addr, cpu, op, run, log, budget);
        jump_to!(target, cpu, run, log, budget)
    }

    /// CALL of a constant; `imm` is the return address.
    fn call[const OBS: u8](cpu, op, run, log, budget) {
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        let back = (*op).imm;
        store!(u64, OBS, rsp, back, (*op).meta, cpu, op, run, log, budget);
        set::<u64>(cpu, RSP, rsp);
        enter!((*op).next, i64::from((*op).next_steps), cpu, run, log, budget)
    }

    fn call_reg[const OBS: u8](cpu, op, run, log, budget) {
        let target = get::<u64>(cpu, (*op).src);
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        let back = (*op).imm;
        store!(u64, OBS, rsp, back, (*op).meta, cpu, op, run, log, budget);
        set::<u64>(cpu, RSP, rsp);
        jump_to!(target, cpu, run, log, budget)
    }

    fn call_mem[const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let before = log;
        let target = load!(u64, OBS, addr, cpu, op, run, log, budget);
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        let back = (*op).imm;
        let pointer = crate::access::fast_write::<u64>(run, rsp);
        if pointer.is_null() {
            if crate::access::slow_store(run, rsp, 8, back) == 0 {
                return super::leave_at_stack(cpu, op, run, before, budget);
            }
        } else {
            pointer.write_unaligned(back);
        }
        super::record::<OBS>(&raw mut log, rsp, (*op).meta.with_access(LogKind::Write, 8), back);
        set::<u64>(cpu, RSP, rsp);
        jump_to!(target, cpu, run, log, budget)
    }

    /// RET and RET n; `imm` is n.
    fn ret[const OBS: u8](cpu, op, run, log, budget) {
        let rsp = get::<u64>(cpu, RSP);
        let target = load!(u64, OBS, rsp, cpu, op, run, log, budget);
        set::<u64>(cpu, RSP, rsp.wrapping_add(8).wrapping_add((*op).imm));
        jump_to!(target, cpu, run, log, budget)
    }

    fn setcc_reg[](cpu, op, run, log, budget) {
        set::<u8>(cpu, (*op).dst, u8::from((*cpu).flags.condition((*op).scale)));
        next!(cpu, op, run, log, budget)
    }

    fn cmov_reg[T: crate::int::Int, const CC: u8](cpu, op, run, log, budget) {
        let (old, new) = (get::<T>(cpu, (*op).dst), get::<T>(cpu, (*op).src));
        set::<T>(cpu, (*op).dst, if (*cpu).flags.condition(CC) { new } else { old });
        next!(cpu, op, run, log, budget)
    }

    /// The operand is read whether or not it is used (SDM vol. 2A).
    fn cmov_mem[T: crate::int::Int, const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let new = load!(T, OBS, addr, cpu, op, run, log, budget);
        let old = get::<T>(cpu, (*op).dst);
        set::<T>(cpu, (*op).dst, if (*cpu).flags.condition(raddle_stdx::width::low_u8((*op).imm)) { new } else { old });
        next!(cpu, op, run, log, budget)
    }
}

pub(crate) fn select_jcc(condition: u8) -> Handler {
    by_const!(condition, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], CC => jcc::<CC>)
}

pub(crate) fn select_cmov_reg(condition: u8, size: usize) -> Handler {
    by_const!(condition, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], CC => super::by_wide_size!(size, T => cmov_reg::<T, CC>))
}
