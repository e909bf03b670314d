//! PUSH, POP, LEAVE with 64-bit operands.

use super::{RBP, RSP, address, get, handlers, load, next, set, store};
use crate::op::LogKind;

handlers! {
    fn push_reg[const OBS: u8](cpu, op, run, log, budget) {
        let value = get::<u64>(cpu, (*op).src);
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        store!(u64, OBS, rsp, value, (*op).meta, cpu, op, run, log, budget);
        set::<u64>(cpu, RSP, rsp);
        next!(cpu, op, run, log, budget)
    }

    fn push_imm[const OBS: u8](cpu, op, run, log, budget) {
        let value = (*op).imm;
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        store!(u64, OBS, rsp, value, (*op).meta, cpu, op, run, log, budget);
        set::<u64>(cpu, RSP, rsp);
        next!(cpu, op, run, log, budget)
    }

    fn push_mem[const OBS: u8](cpu, op, run, log, budget) {
        let addr = address::<true>(cpu, op);
        let before = log;
        let value = load!(u64, OBS, addr, cpu, op, run, log, budget);
        let rsp = get::<u64>(cpu, RSP).wrapping_sub(8);
        let pointer = crate::access::fast_write::<u64>(run, rsp);
        if pointer.is_null() {
            if crate::access::slow_store(run, rsp, 8, value) == 0 {
                return super::leave_at_stack(cpu, op, run, before, budget);
            }
        } else {
            pointer.write_unaligned(value);
        }
        super::record::<OBS>(&raw mut log, rsp, (*op).meta.with_access(LogKind::Write, 8), value);
        set::<u64>(cpu, RSP, rsp);
        next!(cpu, op, run, log, budget)
    }

    fn pop_reg[const OBS: u8](cpu, op, run, log, budget) {
        let rsp = get::<u64>(cpu, RSP);
        let value = load!(u64, OBS, rsp, cpu, op, run, log, budget);
        // POP RSP keeps the popped value: the increment comes first.
        set::<u64>(cpu, RSP, rsp.wrapping_add(8));
        set::<u64>(cpu, (*op).dst, value);
        next!(cpu, op, run, log, budget)
    }

    fn leave_frame[const OBS: u8](cpu, op, run, log, budget) {
        let frame = get::<u64>(cpu, RBP);
        let value = load!(u64, OBS, frame, cpu, op, run, log, budget);
        set::<u64>(cpu, RSP, frame.wrapping_add(8));
        set::<u64>(cpu, RBP, value);
        next!(cpu, op, run, log, budget)
    }
}
