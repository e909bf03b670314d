//! REP MOVS and REP STOS: as many iterations at once as lie on one page and in the slice.
//!
//! Each iteration is a step of its own, so that a slice can end between any two of them; only where nothing
//! observes accesses are they made in one go.

use super::generic::{Then, execute};
use super::{get, handlers, leave, next, set};
use crate::access::{fast_read, fast_write, read_bytes};
use crate::cpu::Cpu;
use crate::flags::rflags;
use crate::int::Int;
use crate::op::Handler;
use crate::run::{Leave, Run};
use raddle_mem::{Access, PAGE_SIZE};

const RAX: u8 = 0;
const RCX: u8 = 8;
const RSI: u8 = 6 * 8;
const RDI: u8 = 7 * 8;

/// Elements from `addr` to the end of its page.
#[inline(always)]
fn on_page<T: Int>(addr: u64) -> u64 {
    (PAGE_SIZE as u64 - addr % PAGE_SIZE as u64) / T::BYTES as u64
}

/// Where to write at `addr`, after asking the slow path once; null if only the slow path can.
unsafe fn write_at<T: Int>(run: *mut Run, addr: u64) -> *mut T {
    // SAFETY: `run` is the live run.
    unsafe {
        let pointer = fast_write::<T>(run, addr);
        if !pointer.is_null() {
            return pointer;
        }
        match read_bytes(&mut *run, addr, &mut [0], Access::Write) {
            Ok(()) => fast_write::<T>(run, addr),
            Err(_) => std::ptr::null_mut(),
        }
    }
}

/// Where to read at `addr`, after asking the slow path once; null if only the slow path can.
unsafe fn read_at<T: Int>(run: *mut Run, addr: u64) -> *const T {
    // SAFETY: `run` is the live run.
    unsafe {
        let pointer = fast_read::<T>(run, addr);
        if !pointer.is_null() {
            return pointer;
        }
        match read_bytes(&mut *run, addr, &mut [0], Access::Read) {
            Ok(()) => fast_read::<T>(run, addr),
            Err(_) => std::ptr::null(),
        }
    }
}

/// Makes at most `limit` iterations, if they are simple; gives how many.
#[inline(never)]
unsafe extern "C" fn many<T: Int, const MOVES: bool>(
    cpu: *mut Cpu,
    run: *mut Run,
    limit: i64,
) -> i64 {
    // SAFETY: all pointers are valid during a run; what is touched stays on the pages that the TLB vouches for.
    unsafe {
        if (*cpu).system_flags & rflags::DF != 0 {
            return 0;
        }
        let (to, from) = (get::<u64>(cpu, RDI), get::<u64>(cpu, RSI));
        let mut count = get::<u64>(cpu, RCX)
            .min(limit.cast_unsigned())
            .min(on_page::<T>(to));
        if MOVES {
            count = count.min(on_page::<T>(from));
        }
        if count < 2 {
            return 0;
        }
        let bytes = count * T::BYTES as u64;
        let target = write_at::<T>(run, to);
        if target.is_null() {
            return 0;
        }
        let length = raddle_stdx::width::to_usize(count);
        if MOVES {
            // The target was asked for first: its copy may have replaced the source.
            let source = read_at::<T>(run, from);
            if source.is_null() || fast_write::<T>(run, to) != target {
                return 0;
            }
            copy_forward(target, source, length);
            set::<u64>(cpu, RSI, from.wrapping_add(bytes));
        } else {
            let value = get::<T>(cpu, RAX);
            for index in 0..length {
                target.add(index).write_unaligned(value);
            }
        }
        set::<u64>(cpu, RDI, to.wrapping_add(bytes));
        set::<u64>(cpu, RCX, get::<u64>(cpu, RCX) - count);
        count.cast_signed()
    }
}

/// Copies elements one after the other, so that a source that overlaps the target repeats.
#[inline(always)]
unsafe fn copy_forward<T: Int>(target: *mut T, source: *const T, length: usize) {
    let distance = target.addr().wrapping_sub(source.addr());
    // SAFETY: the caller vouches for both ranges.
    unsafe {
        if distance >= length * T::BYTES {
            // Nothing that is read was written by an earlier iteration.
            std::ptr::copy(source.cast::<u8>(), target.cast::<u8>(), length * T::BYTES);
        } else {
            for index in 0..length {
                let value = source.add(index).read_unaligned();
                target.add(index).write_unaligned(value);
            }
        }
    }
}

handlers! {
    fn repeated[T: Int, const MOVES: bool](cpu, op, run, log, budget) {
        let mut budget = budget;
        loop {
            let made = many::<T, MOVES>(cpu, run, budget.saturating_add(1));
            let is_over = if made > 0 {
                budget -= made - 1;
                get::<u64>(cpu, RCX) == 0
            } else {
                match execute(cpu, op, run, log, budget) {
                    Then::LeaveBefore => return leave(cpu, op, run, log, budget),
                    Then::Next => true,
                    Then::Repeat => false,
                    Then::Jump | Then::LeaveBehind => {
                        (*run).budget = budget + (*op).refund() - 1;
                        return;
                    }
                }
            };
            if is_over {
                return next!(cpu, op, run, log, budget);
            }
            if budget <= 0 {
                (*cpu).rip = (*op).meta.pc();
                (*run).budget = budget + (*op).refund() - 1;
                (*run).log = log;
                (*run).leave = Leave::Budget;
                return;
            }
            budget -= 1;
        }
    }
}

/// The handler of REP MOVS or REP STOS with elements of so many bytes.
pub(crate) fn select(moves: bool, size: usize) -> Handler {
    super::by_size!(size, T => if moves { repeated::<T, true> } else { repeated::<T, false> })
}
