//! Instructions that touch system state; the unprivileged ones work in every world.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, mask, segment_index};
use super::{Flow, Step, control, fault, interrupt, segment};
use crate::cpu::Reg;
use crate::cpuid::cpuid;
use crate::exit::Fault;
use crate::flags::rflags;
use crate::system::cr4;

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
            let apic_id = exec.cpu.system.apic_id;
            let result = match exec.bus.system() {
                Some(bus) => bus.cpuid(leaf, subleaf, apic_id),
                None => cpuid(leaf, subleaf, apic_id),
            };
            exec.cpu.set_reg(Reg::Rax, u64::from(result.eax));
            exec.cpu.set_reg(Reg::Rbx, u64::from(result.ebx));
            exec.cpu.set_reg(Reg::Rcx, u64::from(result.ecx));
            exec.cpu.set_reg(Reg::Rdx, u64::from(result.edx));
            Ok(Flow::Next)
        }
        M::Rdtsc => {
            if exec.cpu.system.cpl != 0 && exec.cpu.system.cr4 & cr4::TSD != 0 {
                return Err(fault::protection(0));
            }
            let now = exec.bus.tsc().wrapping_add(exec.cpu.system.tsc_offset);
            exec.cpu.set_reg(Reg::Rax, now & mask(4));
            exec.cpu.set_reg(Reg::Rdx, now >> 32);
            Ok(Flow::Next)
        }
        M::Sgdt | M::Sidt => store_table(exec),
        M::Sldt | M::Str | M::Smsw => store_selector(exec),
        M::Lar | M::Lsl | M::Verr | M::Verw => segment::probe(exec),
        M::Lss | M::Lfs | M::Lgs | M::Lds | M::Les => segment::load_pointer(exec),
        M::Retf => segment::far_return(exec),
        M::Iret | M::Iretd | M::Iretq => segment::interrupt_return(exec),
        M::Sysret | M::Sysretq => interrupt::sysret(exec),
        M::Lldt | M::Ltr => segment::load_system_segment(exec),
        M::Lgdt | M::Lidt => control::load_table(exec),
        M::Lmsw | M::Clts => control::machine_status(exec),
        M::Rdmsr => control::read_msr(exec),
        M::Wrmsr => control::write_msr(exec),
        M::Cli | M::Sti => interrupt_flag(exec),
        M::In | M::Out => port(exec),
        M::Hlt => {
            exec.require_kernel()?;
            exec.cpu.rip = exec.insn.next_ip();
            exec.cpu.system.halted = true;
            Ok(Flow::Halt)
        }
        M::Invlpg => {
            exec.require_kernel()?;
            let addr = exec
                .segment_base(exec.insn.memory_segment())
                .wrapping_add(exec.offset());
            if let Some(bus) = exec.bus.system() {
                bus.flush_page(addr);
            }
            Ok(Flow::Next)
        }
        M::Invd | M::Wbinvd | M::Wbnoinvd => {
            exec.require_kernel()?;
            Ok(Flow::Next)
        }
        M::Swapgs => swapgs(exec),
        // There are no performance counters, at any privilege level.
        M::Rdpmc => Err(fault::protection(0)),
        _ => Ok(Flow::Unsupported),
    }
}

/// SWAPGS: the other GS base.
fn swapgs<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if !exec.is_64_bit() {
        return Err(fault::undefined());
    }
    exec.require_kernel()?;
    let other = exec.cpu.system.kernel_gs_base;
    exec.cpu.system.kernel_gs_base = exec.cpu.gs_base();
    exec.cpu.set_gs_base(other);
    Ok(Flow::Next)
}

/// CLI and STI; interrupts stay off for one instruction after they are switched on.
fn interrupt_flag<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_ports()?;
    let cpu = &mut *exec.cpu;
    if exec.insn.mnemonic() == Mnemonic::Cli {
        cpu.system_flags &= !rflags::IF;
    } else if cpu.system_flags & rflags::IF == 0 {
        cpu.system_flags |= rflags::IF;
        cpu.system.interrupt_shadow = true;
    }
    Ok(Flow::Next)
}

/// IN and OUT.
fn port<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_ports()?;
    let is_input = exec.insn.mnemonic() == Mnemonic::In;
    let (value_operand, port_operand) = if is_input { (0, 1) } else { (1, 0) };
    let number = width::low_u16(exec.read_operand(port_operand)?);
    let register = exec.insn.op_register(value_operand);
    let bytes = u8::try_from(register.size()).unwrap_or(4);
    let value = exec.cpu.gpr(register);
    let Some(bus) = exec.bus.system() else {
        return Err(fault::protection(0));
    };
    if is_input {
        let value = bus.port_in(number, bytes);
        exec.cpu.set_gpr(register, u64::from(value));
    } else {
        bus.port_out(number, width::low_u32(value), bytes);
    }
    Ok(Flow::Next)
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
        exec.load_segment(to, selector)?;
        return Ok(Flow::Next);
    }
    control::special_move(exec)
}
