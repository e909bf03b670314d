//! Everything that has no handler of its own: one call of the generic interpreter per step.

use super::branch::jump_to;
use super::{handlers, leave, next};
use crate::access::append;
use crate::bus::RunBus;
use crate::cpu::Cpu;
use crate::generic::{self, Flow};
use crate::op::{LogKind, Op};
use crate::run::{Leave, Run};
use crate::supervisor;

/// How the handler goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Then {
    Next,
    Jump,
    Repeat,
    /// Back to the loop behind the instruction; `run.leave` and RIP are set.
    LeaveBehind,
    /// Back to the loop before the instruction; `run.leave` is set.
    LeaveBefore,
}

handlers! {
    fn generic[](cpu, op, run, log, budget) {
        let mut budget = budget;
        loop {
            let then = execute(cpu, op, run, log, budget);
            if then == Then::LeaveBefore {
                return leave(cpu, op, run, log, budget);
            }
            log = (*run).log;
            match then {
                Then::Next => return next!(cpu, op, run, log, budget),
                Then::Jump => {
                    let budget = budget + (*op).refund() - 1;
                    return jump_to!((*cpu).rip, cpu, run, log, budget);
                }
                Then::Repeat if budget > 0 => {
                    budget -= 1;
                    // Records of the next iteration belong to the next step.
                    let left = (budget + i64::from((*op).block_steps)).cast_unsigned();
                    let meta = (*op).meta.with_access(LogKind::Block, 1);
                    append((*run).observe, &mut (*run).log, left, meta, 0);
                    log = (*run).log;
                }
                Then::Repeat => {
                    // The rest of the block is given back; the loop comes here again with what is left.
                    (*cpu).rip = (*op).meta.pc();
                    (*run).budget = budget + (*op).refund() - 1;
                    (*run).leave = Leave::Budget;
                    return;
                }
                Then::LeaveBehind | Then::LeaveBefore => {
                    (*run).budget = budget + (*op).refund() - 1;
                    return;
                }
            }
        }
    }
}

/// One step; the log position behind it is in `run.log`.
#[inline(never)]
pub(super) unsafe extern "C" fn execute(
    cpu: *mut Cpu,
    op: *const Op,
    run: *mut Run,
    log: *mut u64,
    budget: i64,
) -> Then {
    // SAFETY: all pointers are valid during a run; `imm` of a generic op points to its decoded instruction.
    let (cpu, op, run) = unsafe { (&mut *cpu, &*op, &mut *run) };
    // SAFETY: as above.
    let instruction = unsafe {
        &*std::ptr::with_exposed_provenance::<iced_x86::Instruction>(raddle_stdx::width::to_usize(
            op.imm,
        ))
    };
    let done = run.slice_steps - (budget + op.refund());
    let tsc = run.tsc.wrapping_add(done.cast_unsigned());
    let stubs = run.stubs;
    // STMXCSR and its kin must see the flags that stubs left in the hardware.
    super::vector::collect_exceptions(cpu);
    let mut bus = RunBus {
        run,
        log,
        meta: op.meta,
        tsc,
    };
    let is_system = !bus.run.system.is_null();
    if is_system && supervisor::is_hypercall(cpu, instruction) {
        cpu.rip = instruction.next_ip();
        run.log = log;
        run.leave = Leave::Hypercall;
        return Then::LeaveBehind;
    }
    let before = is_system.then(|| supervisor::before_step(cpu));
    // SAFETY: the stub cache is valid during a run and used by one step at a time.
    let result = generic::step(cpu, instruction, unsafe { &mut *stubs }, &mut bus);
    let log = bus.log;
    run.log = log;
    if let Some(before) = before {
        let left = budget + op.refund() - 1;
        let reason = supervisor::after_step(cpu, instruction, run, before, &result, left);
        if let Some(leave) = reason {
            run.leave = leave;
            return Then::LeaveBehind;
        }
    }
    let leave = match result {
        Ok(Flow::Next) => return Then::Next,
        Ok(Flow::Jump) => return Then::Jump,
        Ok(Flow::Repeat) => return Then::Repeat,
        Ok(Flow::Syscall) => Leave::Syscall,
        Ok(Flow::Interrupt(number)) => Leave::Interrupt(number),
        Ok(Flow::Halt) => Leave::Halt,
        Ok(Flow::Unsupported) => {
            run.leave = Leave::Unsupported;
            return Then::LeaveBefore;
        }
        Err(fault) => {
            run.leave = Leave::Fault(fault);
            return Then::LeaveBefore;
        }
    };
    run.leave = leave;
    if matches!(leave, Leave::Interrupt(_) | Leave::Halt) {
        cpu.rip = instruction.next_ip();
    }
    Then::LeaveBehind
}
