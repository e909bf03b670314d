//! Branches, calls, returns, conditions and traps.

use iced_x86::{Code, ConditionCode, Instruction, Mnemonic, OpKind};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, is_canonical, mask, merge};
use super::{Flow, Step, fault, interrupt, segment};
use crate::cpu::Reg;
use crate::flags::rflags;

/// The number of the condition in the opcode of Jcc, SETcc and CMOVcc.
pub(super) fn condition_of(insn: &Instruction) -> Option<u8> {
    match insn.condition_code() {
        ConditionCode::None => None,
        code => Some(code as u8 - 1),
    }
}

/// Jcc, SETcc, CMOVcc.
pub(super) fn conditional<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let number = condition_of(exec.insn).unwrap_or(0);
    let holds = exec.cpu.flags.condition(number);
    if is_near_branch(exec.insn) {
        return if holds {
            exec.jump(exec.insn.near_branch_target())
        } else {
            Ok(Flow::Next)
        };
    }
    if exec.insn.op_count() == 1 {
        let place = exec.place(0)?;
        exec.write(place, u64::from(holds), AccessKind::Write)?;
        return Ok(Flow::Next);
    }
    // CMOVcc always loads, and always writes, so that 32-bit forms clear the upper half.
    let source = exec.read_operand(1)?;
    let target = exec.insn.op0_register();
    let value = if holds { source } else { exec.cpu.gpr(target) };
    exec.cpu.set_gpr(target, value);
    Ok(Flow::Next)
}

fn is_near_branch(insn: &Instruction) -> bool {
    matches!(
        insn.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

/// JMP, CALL, RET; near and far.
pub(super) fn branch<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let insn = exec.insn;
    if insn.mnemonic() == Mnemonic::Ret {
        return near_return(exec);
    }
    if insn.is_jmp_far()
        || insn.is_call_far()
        || insn.is_jmp_far_indirect()
        || insn.is_call_far_indirect()
    {
        return segment::far_branch(exec);
    }
    let target = if is_near_branch(insn) {
        insn.near_branch_target()
    } else {
        exec.read_operand(0)?
    };
    if insn.mnemonic() == Mnemonic::Call {
        let bytes = width::to_usize(u64::from(insn.stack_pointer_increment().unsigned_abs()));
        if exec.is_64_bit() && !is_canonical(target) {
            return Err(fault::protection(0));
        }
        exec.push(insn.next_ip() & mask(bytes), bytes)?;
    }
    exec.jump(target)
}

fn near_return<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = match exec.insn.code() {
        Code::Retnw | Code::Retnw_imm16 => 2,
        Code::Retnd | Code::Retnd_imm16 => 4,
        _ => 8,
    };
    let target = exec.peek(0, bytes)?;
    let more = if exec.insn.op_count() == 1 {
        u64::from(exec.insn.immediate16())
    } else {
        0
    };
    let flow = exec.jump(target)?;
    exec.drop_stack(width::to_u64(bytes) + more);
    Ok(flow)
}

/// LOOP, LOOPE, LOOPNE, JCXZ, JECXZ, JRCXZ.
pub(super) fn count_branch<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    use Code as C;
    let bytes = match exec.insn.code() {
        C::Jcxz_rel8_16
        | C::Jcxz_rel8_32
        | C::Loop_rel8_16_CX
        | C::Loop_rel8_32_CX
        | C::Loope_rel8_16_CX
        | C::Loope_rel8_32_CX
        | C::Loopne_rel8_16_CX
        | C::Loopne_rel8_32_CX => 2,
        C::Jrcxz_rel8_16
        | C::Jrcxz_rel8_64
        | C::Loop_rel8_16_RCX
        | C::Loop_rel8_64_RCX
        | C::Loope_rel8_16_RCX
        | C::Loope_rel8_64_RCX
        | C::Loopne_rel8_16_RCX
        | C::Loopne_rel8_64_RCX => 8,
        _ => 4,
    };
    let rcx = exec.cpu.reg(Reg::Rcx);
    let is_loop = matches!(
        exec.insn.mnemonic(),
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne
    );
    let count = if is_loop { rcx.wrapping_sub(1) } else { rcx } & mask(bytes);
    let taken = match exec.insn.mnemonic() {
        Mnemonic::Loop => count != 0,
        Mnemonic::Loope => count != 0 && exec.cpu.flags.zero(),
        Mnemonic::Loopne => count != 0 && !exec.cpu.flags.zero(),
        _ => count == 0,
    };
    let flow = if taken {
        exec.jump(exec.insn.near_branch_target())?
    } else {
        Flow::Next
    };
    if is_loop {
        exec.cpu.set_reg(Reg::Rcx, merge(rcx, count, bytes));
    }
    Ok(flow)
}

/// INT n, INT3, INT1, INTO, SYSCALL, UD0 to UD2.
pub(super) fn trap<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let vector = match exec.insn.mnemonic() {
        Mnemonic::Int => exec.insn.immediate8(),
        Mnemonic::Int3 => 3,
        Mnemonic::Int1 => 1,
        Mnemonic::Into if exec.cpu.flags.overflow() => 4,
        Mnemonic::Into => return Ok(Flow::Next),
        Mnemonic::Syscall => return syscall(exec),
        _ => return Err(fault::undefined()),
    };
    if exec.bus.system().is_some() {
        return interrupt::software(exec, vector);
    }
    exec.cpu.rip = exec.insn.next_ip();
    Ok(Flow::Interrupt(vector))
}

/// SYSCALL: RCX and R11 get RIP and RFLAGS; a kernel is entered, or the world takes over.
fn syscall<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.bus.system().is_some() {
        return interrupt::syscall(exec);
    }
    let next = exec.insn.next_ip();
    let flags = exec.cpu.rflags() & !rflags::RF;
    exec.cpu.set_reg(Reg::Rcx, next);
    exec.cpu.set_reg(Reg::R11, flags);
    exec.cpu.rip = next;
    Ok(Flow::Syscall)
}
