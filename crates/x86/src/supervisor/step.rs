//! What the generic interpreter's instructions mean for a run on a paged machine.
#![expect(unsafe_code, reason = "follows the pointer to the live machine")]

use iced_x86::{Instruction, Mnemonic};

use super::HYPERCALL_LEAF;
use crate::cpu::{Cpu, Reg};
use crate::exit::Fault;
use crate::flags::rflags;
use crate::generic::Flow;
use crate::run::{Leave, Run};

/// What a step may change so that the run must not simply go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Before {
    cpl: u8,
    code_bits: u32,
    was_enabled: bool,
    rsp: u64,
}

/// Whether the instruction is the guest's call to its host, which is not executed but ends the run behind it.
pub(crate) fn is_hypercall(cpu: &Cpu, instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Cpuid
        && cpu.reg(Reg::Rax) & 0xFFFF_FFFF == u64::from(HYPERCALL_LEAF)
}

/// Called before a generic step.
pub(crate) fn before_step(cpu: &mut Cpu) -> Before {
    cpu.system.interrupt_shadow = false;
    Before {
        cpl: cpu.system.cpl,
        code_bits: cpu.system.code_bits(),
        was_enabled: cpu.system_flags & rflags::IF != 0,
        rsp: cpu.reg(Reg::Rsp),
    }
}

/// Called after a generic step that leaves `left` steps of the slice: why the run must return to the loop behind
/// the instruction, if it must. RIP is then set.
pub(crate) fn after_step(
    cpu: &mut Cpu,
    instruction: &Instruction,
    run: &mut Run,
    before: Before,
    result: &Result<Flow, Fault>,
    left: i64,
) -> Option<Leave> {
    let Ok(flow) = result else {
        return None;
    };
    // SAFETY: the run is on a paged machine; nothing else refers to it now.
    let system = unsafe { &mut *run.system };
    if cpu.system.interrupt_shadow {
        system.shadow_budget = left;
    }
    let is_enabled = cpu.system_flags & rflags::IF != 0;
    let opens_window = system.wants_window && is_enabled && !before.was_enabled;
    let changes_mode = cpu.system.cpl != before.cpl || cpu.system.code_bits() != before.code_bits;
    if system.interrupt_frame != u64::MAX {
        let takes_frame =
            instruction.mnemonic() == Mnemonic::Iretq && before.rsp == system.interrupt_frame;
        let enters_user = changes_mode && cpu.system.cpl == 3;
        system.request.interrupt_done = takes_frame || enters_user;
    }
    let leave = match instruction.mnemonic() {
        Mnemonic::Pause if system.stop_at_pause => Leave::Pause,
        _ if system.request.is_any() || opens_window || changes_mode => Leave::Attend,
        _ => return None,
    };
    match flow {
        Flow::Next => {
            cpu.rip = instruction.next_ip();
            Some(leave)
        }
        Flow::Jump => Some(leave),
        Flow::Repeat => {
            cpu.rip = instruction.ip();
            Some(leave)
        }
        _ => None,
    }
}
