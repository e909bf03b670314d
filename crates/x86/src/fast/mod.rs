//! Specialised handlers for the instructions that programs execute most.
//!
//! A handler does its work and tail-calls the handler of the next op; release builds turn that call into a
//! jump, so a block runs without returning. Handlers must not keep a reference to a local alive across the
//! call, and must do all memory accesses before the first write to a register or flag.
#![expect(
    unsafe_code,
    reason = "handlers work on raw state and end in tail calls"
)]

use crate::cpu::Cpu;
use crate::exit::{Fault, Vector};
use crate::int::Int;
use crate::op::Op;
use crate::run::{Leave, Run, interest_bit};

pub(crate) mod alu;
pub(crate) mod bits;
pub(crate) mod branch;
pub(crate) mod fused;
pub(crate) mod generic;
pub(crate) mod mov;
pub(crate) mod muldiv;
pub(crate) mod shift;
pub(crate) mod stack;
pub(crate) mod string;
pub(crate) mod system;
pub(crate) mod vector;

/// Defines handlers: the arguments of `op::Handler` under their usual names.
macro_rules! handlers {
    ($($(#[$attribute:meta])* fn $name:ident [$($generics:tt)*] ($cpu:ident, $op:ident, $run:ident, $log:ident, $budget:ident) $body:block)*) => {$(
        $(#[$attribute])*
        pub(crate) unsafe extern "C" fn $name<$($generics)*>(
            $cpu: *mut crate::cpu::Cpu,
            $op: *const crate::op::Op,
            $run: *mut crate::run::Run,
            #[allow(unused_mut, clippy::allow_attributes, reason = "not every handler logs")] mut $log: *mut u64,
            $budget: i64,
        ) {
            // SAFETY: the engine calls handlers with pointers that are valid for the whole run.
            unsafe { $body }
        }
    )*};
}

/// Goes on with the op behind this one.
macro_rules! next {
    ($cpu:ident, $op:ident, $run:ident, $log:ident, $budget:ident) => {{
        let following = $op.add(1);
        ((*following).handler)($cpu, following, $run, $log, $budget)
    }};
}

/// Loads a `T` by a fast way and, if that has none, by the slow one, or leaves with the fault; logs the access.
macro_rules! load_by {
    ($fast:ident, $for_update:literal, $T:ty, $OBS:expr, $addr:expr, $cpu:ident, $op:ident, $run:ident, $log:ident, $budget:ident) => {{
        let pointer = crate::access::$fast::<$T>($run, $addr);
        let value = if pointer.is_null() {
            let size = <$T as crate::int::Int>::BYTES as u64;
            let slow = crate::access::slow_load($run, $addr, size, $for_update);
            if slow.ok == 0 {
                return crate::fast::leave($cpu, $op, $run, $log, $budget);
            }
            <$T as crate::int::Int>::cut(slow.value)
        } else {
            pointer.read_unaligned()
        };
        crate::fast::record::<$OBS>(
            &raw mut $log,
            $addr,
            (*$op).meta,
            crate::int::Int::zx(value),
        );
        value
    }};
}

/// Loads a `T`, or leaves with the fault; logs the access.
macro_rules! load {
    ($($arguments:tt)*) => {
        $crate::fast::load_by!(fast_read, 0, $($arguments)*)
    };
}

/// Loads a `T` that will be written back: faults if it may not be written. The record has the old value.
macro_rules! load_for_update {
    ($($arguments:tt)*) => {
        $crate::fast::load_by!(fast_write, 1, $($arguments)*)
    };
}

/// Stores a `T` without a record (the second half of an update), or leaves with the fault.
macro_rules! store_back {
    ($T:ty, $addr:expr, $value:expr, $cpu:ident, $op:ident, $run:ident, $log:ident, $budget:ident) => {{
        let pointer = crate::access::fast_write::<$T>($run, $addr);
        if pointer.is_null() {
            let size = <$T as crate::int::Int>::BYTES as u64;
            if crate::access::slow_store($run, $addr, size, crate::int::Int::zx($value)) == 0 {
                return crate::fast::leave($cpu, $op, $run, $log, $budget);
            }
        } else {
            pointer.write_unaligned($value);
        }
    }};
}

/// Stores a `T`, or leaves with the fault; logs the access with the given description.
macro_rules! store {
    ($T:ty, $OBS:expr, $addr:expr, $value:expr, $meta:expr, $cpu:ident, $op:ident, $run:ident, $log:ident, $budget:ident) => {{
        crate::fast::store_back!($T, $addr, $value, $cpu, $op, $run, $log, $budget);
        crate::fast::record::<$OBS>(&raw mut $log, $addr, $meta, crate::int::Int::zx($value));
    }};
}

/// `match` over the operand size with a type alias in scope.
macro_rules! by_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

/// `match` over the two sizes that most instructions of 64-bit code have.
macro_rules! by_wide_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

/// `match` over a small number with a constant in scope.
macro_rules! by_const {
    ($value:expr, [$($number:literal)*], $K:ident => $body:expr) => {
        match $value {
            $($number => {
                const $K: u8 = $number;
                $body
            })*
            _ => unreachable!("the caller passes a number of the list"),
        }
    };
}

pub(crate) use {
    by_const, by_size, by_wide_size, handlers, load, load_by, load_for_update, next, store,
    store_back,
};

/// Observation modes as constants for handlers.
pub(crate) const OBSERVE_NONE: u8 = 0;
pub(crate) const OBSERVE_ADDR: u8 = 1;
pub(crate) const OBSERVE_VALUE: u8 = 2;

/// Appends a record to the log.
#[inline(always)]
pub(crate) unsafe fn record<const OBS: u8>(
    log: *mut *mut u64,
    addr: u64,
    meta: crate::op::Meta,
    value: u64,
) {
    if OBS == OBSERVE_NONE {
        return;
    }
    // SAFETY: the engine bounds the steps of a slice so that the log cannot overflow.
    unsafe {
        let at = *log;
        at.write(addr);
        at.add(1).write(meta.0);
        if OBS == OBSERVE_VALUE {
            at.add(2).write(value);
            *log = at.add(3);
        } else {
            *log = at.add(2);
        }
    }
}

/// A register operand.
#[inline(always)]
pub(crate) unsafe fn get<T: Int>(cpu: *const Cpu, offset: u8) -> T {
    // SAFETY: offsets are made by `lower` and stay inside the register file, which comes first in `Cpu`.
    unsafe {
        cpu.cast::<u8>()
            .add(usize::from(offset))
            .cast::<T>()
            .read_unaligned()
    }
}

/// Writes a register operand; 32-bit writes clear the upper half.
#[inline(always)]
pub(crate) unsafe fn set<T: Int>(cpu: *mut Cpu, offset: u8, value: T) {
    // SAFETY: as in `get`; a 32-bit operand is never one of AH to BH, so the offset is a multiple of eight.
    unsafe {
        let at = cpu.cast::<u8>().add(usize::from(offset));
        if T::BYTES == 4 {
            at.cast::<u64>().write(value.zx());
        } else {
            at.cast::<T>().write_unaligned(value);
        }
    }
}

/// Effective address: `FULL` adds index and segment base.
#[inline(always)]
pub(crate) unsafe fn address<const FULL: bool>(cpu: *const Cpu, op: *const Op) -> u64 {
    // SAFETY: `op` is valid and its offsets are made by `lower`.
    unsafe {
        let base = get::<u64>(cpu, (*op).base).wrapping_add((*op).disp);
        if FULL {
            let index = get::<u64>(cpu, (*op).index) << (*op).scale;
            base.wrapping_add(index)
                .wrapping_add(get::<u64>(cpu, (*op).seg))
        } else {
            base
        }
    }
}

/// Returns to the loop before `op` has had any effect; `run.leave` is set.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn leave(
    cpu: *mut Cpu,
    op: *const Op,
    run: *mut Run,
    log: *mut u64,
    budget: i64,
) {
    // SAFETY: all pointers are valid during a run.
    unsafe {
        (*cpu).rip = (*op).meta.pc();
        (*run).budget = budget + (*op).refund();
        (*run).log = log;
        if (*run).leave == Leave::NotCanonical {
            // Operands based on RSP or RBP belong to the stack segment, unless FS or GS is named (SDM vol. 1, 3.7.4).
            let is_stack =
                matches!((*op).base, RSP | RBP) && (*op).seg == crate::cpu::slot::ZERO * 8;
            let vector = if is_stack {
                Vector::StackFault
            } else {
                Vector::GeneralProtection
            };
            (*run).leave = Leave::Fault(Fault::Exception {
                vector,
                error_code: 0,
            });
        }
    }
}

/// As `leave`, after an access to the stack by an instruction whose explicit operand is elsewhere.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn leave_at_stack(
    cpu: *mut Cpu,
    op: *const Op,
    run: *mut Run,
    log: *mut u64,
    budget: i64,
) {
    // SAFETY: as for `leave`.
    unsafe {
        if (*run).leave == Leave::NotCanonical {
            (*run).leave = Leave::Fault(Fault::Exception {
                vector: Vector::StackFault,
                error_code: 0,
            });
        }
        leave(cpu, op, run, log, budget);
    }
}

/// Byte offsets of the stack registers in the register file.
pub(crate) const RSP: u8 = 4 * 8;
pub(crate) const RBP: u8 = 5 * 8;

/// Whether a flagged program point is passed, and counts it.
///
/// # Safety
/// The run is valid, and so is its table of points that are never passed if points may be passed.
#[inline(always)]
pub(crate) unsafe fn passes(run: *mut Run, pc: u64) -> bool {
    // SAFETY: the caller's promise; the index is below the size of the table.
    unsafe {
        if (*run).points_left == 0 {
            return false;
        }
        let (word, bit) = interest_bit(pc);
        if *(*run).interest.add(word) & bit != 0 {
            return false;
        }
        (*run).points_left -= 1;
    }
    true
}

handlers! {
    /// The block of this op is no longer true: continue with what is there now.
    fn stale[](cpu, op, run, log, budget) {
        (*cpu).rip = (*op).meta.pc();
        (*run).budget = budget + (*op).refund();
        (*run).log = log;
        (*run).leave = Leave::NeedBlock;
        (*run).patch = std::ptr::null_mut();
    }

    /// The first op of a block that is no longer true and has a successor: its steps are given back first.
    fn forward[](cpu, op, run, log, budget) {
        let budget = budget + (*op).refund();
        branch::enter!((*op).next, i64::from((*op).next_steps), cpu, run, log, budget)
    }

    /// A flagged program point: stop here unless the run began here or may pass it.
    fn point[](cpu, op, run, log, budget) {
        if (*run).skip_point == (*op).meta.pc() {
            (*run).skip_point = u64::MAX;
            next!(cpu, op, run, log, budget)
        } else if passes(run, (*op).meta.pc()) {
            next!(cpu, op, run, log, budget)
        } else {
            (*run).leave = Leave::Point;
            leave(cpu, op, run, log, budget)
        }
    }

    /// The end of a block whose successor is not linked yet: `next` is the op to patch.
    fn unlinked[](cpu, op, run, log, budget) {
        (*cpu).rip = (*op).meta.pc();
        (*run).budget = budget;
        (*run).log = log;
        (*run).leave = Leave::NeedBlock;
        (*run).patch = (*op).next.cast_mut();
    }

    /// The end of a block that was cut short so that the slice ends exactly here.
    fn cut[](cpu, op, run, log, budget) {
        (*cpu).rip = (*op).meta.pc();
        (*run).budget = budget;
        (*run).log = log;
        (*run).leave = Leave::Budget;
    }

    /// Notes the beginning of a block in the log, with the steps left before it.
    fn block_head[const OBS: u8](cpu, op, run, log, budget) {
        record::<OBS>(&raw mut log, (budget + i64::from((*op).block_steps)).cast_unsigned(), (*op).meta, 0);
        next!(cpu, op, run, log, budget)
    }
}
