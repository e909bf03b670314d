//! Instructions that touch system state; the unprivileged ones work in every world.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, mask, segment_index};
use super::{Flow, Step, fault};
use crate::cpu::Reg;
use crate::cpuid::cpuid;
use crate::exit::Fault;
use crate::flags::{Flags, rflags};
use crate::system::Segment;

impl<B: Bus> Exec<'_, B> {
    /// #GP unless the I/O privilege level admits ports and the interrupt flag. The permission map is never consulted.
    pub(super) fn require_ports(&self) -> Result<(), Fault> {
        let iopl = (self.cpu.system_flags & rflags::IOPL) >> 12;
        if u64::from(self.cpu.system.cpl) <= iopl {
            Ok(())
        } else {
            Err(fault::protection(0))
        }
    }
}

/// Everything the other families do not know.
pub(super) fn execute<B: Bus>(exec: &mut Exec<'_, B>, mnemonic: Mnemonic) -> Step {
    use Mnemonic as M;
    match mnemonic {
        M::Cpuid => {
            let leaf = width::low_u32(exec.cpu.reg(Reg::Rax));
            let subleaf = width::low_u32(exec.cpu.reg(Reg::Rcx));
            let result = cpuid(leaf, subleaf, exec.cpu.system.apic_id);
            exec.cpu.set_reg(Reg::Rax, u64::from(result.eax));
            exec.cpu.set_reg(Reg::Rbx, u64::from(result.ebx));
            exec.cpu.set_reg(Reg::Rcx, u64::from(result.ecx));
            exec.cpu.set_reg(Reg::Rdx, u64::from(result.edx));
            Ok(Flow::Next)
        }
        M::Rdtsc => {
            let now = exec.bus.tsc().wrapping_add(exec.cpu.system.tsc_offset);
            exec.cpu.set_reg(Reg::Rax, now & mask(4));
            exec.cpu.set_reg(Reg::Rdx, now >> 32);
            Ok(Flow::Next)
        }
        M::Sgdt | M::Sidt => store_table(exec),
        M::Sldt | M::Str | M::Smsw => store_selector(exec),
        M::Lar | M::Lsl | M::Verr | M::Verw => {
            exec.read_operand(exec.insn.op_count() - 1)?;
            let others = exec.cpu.flags.to_rflags() & !rflags::ZF;
            exec.cpu.flags = Flags::from_rflags(others);
            Ok(Flow::Next)
        }
        M::Cli | M::Sti | M::In | M::Out => {
            exec.require_ports()?;
            Ok(Flow::Unsupported)
        }
        M::Hlt
        | M::Rdmsr
        | M::Wrmsr
        | M::Lgdt
        | M::Lidt
        | M::Lldt
        | M::Ltr
        | M::Lmsw
        | M::Clts
        | M::Invlpg
        | M::Invd
        | M::Wbinvd
        | M::Wbnoinvd
        | M::Swapgs
        | M::Rdpmc
        | M::Sysret
        | M::Sysretq => {
            exec.require_kernel()?;
            Ok(Flow::Unsupported)
        }
        _ => Ok(Flow::Unsupported),
    }
}

/// SGDT and SIDT: limit, then base.
fn store_table<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let system = &exec.cpu.system;
    let table = if exec.insn.mnemonic() == Mnemonic::Sgdt {
        system.gdtr
    } else {
        system.idtr
    };
    let size = if exec.is_64_bit() { 10 } else { 6 };
    let mut image = [0; 10];
    image[..2].copy_from_slice(&table.limit.to_le_bytes());
    image[2..].copy_from_slice(&table.base.to_le_bytes());
    let addr = exec.memory_address(size)?;
    exec.bus.write(addr, &image[..size], AccessKind::Write)?;
    Ok(Flow::Next)
}

/// SLDT, STR, SMSW.
fn store_selector<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let system = &exec.cpu.system;
    let value = match exec.insn.mnemonic() {
        Mnemonic::Sldt => u64::from(system.ldtr.selector),
        Mnemonic::Str => u64::from(system.tr.selector),
        _ => system.cr0,
    };
    if exec.is_memory(0) {
        let addr = exec.memory_address(2)?;
        exec.store(addr, value, 2, AccessKind::Write)?;
    } else {
        exec.cpu.set_gpr(exec.insn.op0_register(), value);
    }
    Ok(Flow::Next)
}

/// True if a MOV names a segment, control or debug register.
pub(super) fn is_special_move(insn: &Instruction) -> bool {
    (0..2).any(|operand| {
        insn.op_kind(operand) == OpKind::Register && is_special(insn.op_register(operand))
    })
}

fn is_special(register: Register) -> bool {
    register.is_segment_register() || register.is_cr() || register.is_dr() || register.is_tr()
}

/// MOV to and from segment, control and debug registers.
pub(super) fn special_move<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let source = exec.insn.op1_kind() == OpKind::Register;
    let from = exec.insn.op1_register();
    if source && from.is_segment_register() {
        let selector = exec.cpu.system.segments[segment_index(from)].selector;
        if exec.is_memory(0) {
            let addr = exec.memory_address(2)?;
            exec.store(addr, u64::from(selector), 2, AccessKind::Write)?;
        } else {
            exec.cpu
                .set_gpr(exec.insn.op0_register(), u64::from(selector));
        }
        return Ok(Flow::Next);
    }
    let to = exec.insn.op0_register();
    if exec.insn.op0_kind() == OpKind::Register && to.is_segment_register() {
        let selector = width::low_u16(exec.read_operand(1)?);
        load_segment(exec, to, selector)?;
        return Ok(Flow::Next);
    }
    exec.require_kernel()?;
    Ok(Flow::Unsupported)
}

/// Loads a data segment register. A user-only world has no descriptor tables: the null selector and the ones a
/// process starts with are all there is.
pub(super) fn load_segment<B: Bus>(
    exec: &mut Exec<'_, B>,
    register: Register,
    selector: u16,
) -> Result<(), Fault> {
    let error = u32::from(selector & !3);
    if register == Register::CS {
        return Err(fault::undefined());
    }
    let is_null = selector & !3 == 0;
    let stack = exec.cpu.system.segments[segment_index(Register::SS)];
    let segment = if is_null && register != Register::SS {
        Segment {
            selector,
            ..Segment::default()
        }
    } else if selector == stack.selector {
        stack
    } else {
        return Err(fault::protection(error));
    };
    exec.cpu.system.segments[segment_index(register)] = segment;
    match register {
        Register::FS => exec.cpu.set_fs_base(0),
        Register::GS => exec.cpu.set_gs_base(0),
        _ => {}
    }
    Ok(())
}

/// JMP and CALL to another code segment.
pub(super) fn far_branch<B: Bus>(_exec: &mut Exec<'_, B>) -> Step {
    Ok(Flow::Unsupported)
}

/// INT n where a kernel runs.
pub(super) fn software_interrupt<B: Bus>(_exec: &mut Exec<'_, B>, _vector: u8) -> Step {
    Ok(Flow::Unsupported)
}

/// SYSCALL where a kernel runs.
pub(super) fn syscall<B: Bus>(_exec: &mut Exec<'_, B>) -> Step {
    Ok(Flow::Unsupported)
}
