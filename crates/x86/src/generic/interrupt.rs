//! Delivery of exceptions and interrupts, and the fast system calls (SDM vol. 3, chapter 6; vol. 2, SYSCALL).

use iced_x86::{Mnemonic, Register};
use raddle_mem::{Access, PageFault};
use raddle_stdx::width;

use super::access::{Bus, SystemBus};
use super::operand::{Exec, is_canonical, mask, segment_index};
use super::{Flow, Step, fault, segment};
use crate::cpu::{Cpu, Reg};
use crate::exit::{Fault, Vector};
use crate::flags::rflags;
use crate::system::{Segment, attribute, cr0, efer};

/// Where an event comes from; decides about privilege checks and the error codes of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// INT n, INT3, INTO: the gate must admit the current privilege level.
    Software,
    /// An exception or an interrupt from outside.
    Hardware,
}

/// The processor gave up: a third fault in a row (SDM vol. 3, 6.15, interrupt 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown;

/// Bits of an error code that refers to the interrupt table.
const ERROR_EXTERNAL: u32 = 1;
const ERROR_IN_IDT: u32 = 2;
/// Offset of RSP0 and IST1 in a 64-bit TSS.
const TSS_RSP: u64 = 4;
const TSS_IST: u64 = 36;

/// Raises a fault of an instruction: delivers its exception, or a double fault if that fails.
///
/// # Errors
/// If the double fault cannot be delivered either.
pub fn raise(cpu: &mut Cpu, fault: Fault, bus: &mut dyn SystemBus) -> Result<(), Shutdown> {
    let is_user = cpu.system.cpl == 3;
    let (first, code) = exception_of(cpu, fault, is_user);
    let Err(second) = deliver(cpu, first as u8, code, Origin::Hardware, bus) else {
        return Ok(());
    };
    let (second, code) = exception_of(cpu, second, false);
    if !is_double(first, second) {
        return match deliver(cpu, second as u8, code, Origin::Hardware, bus) {
            Ok(()) => Ok(()),
            Err(_) => double_fault(cpu, bus),
        };
    }
    double_fault(cpu, bus)
}

fn double_fault(cpu: &mut Cpu, bus: &mut dyn SystemBus) -> Result<(), Shutdown> {
    let vector = Vector::DoubleFault as u8;
    deliver(cpu, vector, Some(0), Origin::Hardware, bus).map_err(|_| Shutdown)
}

/// Two exceptions that together make a double fault (SDM vol. 3, table 6-5).
fn is_double(first: Vector, second: Vector) -> bool {
    let is_contributory = |vector| {
        matches!(
            vector,
            Vector::Divide
                | Vector::InvalidTss
                | Vector::SegmentNotPresent
                | Vector::StackFault
                | Vector::GeneralProtection
        )
    };
    match first {
        Vector::PageFault => second == Vector::PageFault || is_contributory(second),
        Vector::DoubleFault => true,
        _ => is_contributory(first) && is_contributory(second),
    }
}

/// Vector and error code of a fault; a page fault sets CR2.
fn exception_of(cpu: &mut Cpu, fault: Fault, is_user: bool) -> (Vector, Option<u32>) {
    match fault {
        Fault::Memory(memory) => {
            cpu.system.cr2 = memory.addr.0;
            let is_present = memory.cause == PageFault::Protection;
            let is_fetch = memory.access == Access::Execute && cpu.system.efer & efer::NXE != 0;
            let code = u32::from(is_present)
                | u32::from(memory.access == Access::Write) << 1
                | u32::from(is_user) << 2
                | u32::from(is_fetch) << 4;
            (Vector::PageFault, Some(code))
        }
        Fault::Exception { vector, error_code } => {
            let has_code = matches!(
                vector,
                Vector::DoubleFault
                    | Vector::InvalidTss
                    | Vector::SegmentNotPresent
                    | Vector::StackFault
                    | Vector::GeneralProtection
                    | Vector::PageFault
                    | Vector::AlignmentCheck
            );
            (vector, has_code.then_some(error_code))
        }
    }
}

/// Enters the handler of `vector` through the interrupt table. RIP must be the address to return to.
///
/// # Errors
/// The fault that the delivery itself raised; the processor is as before.
pub fn deliver(
    cpu: &mut Cpu,
    vector: u8,
    error_code: Option<u32>,
    origin: Origin,
    bus: &mut dyn SystemBus,
) -> Result<(), Fault> {
    cpu.system.halted = false;
    if cpu.system.is_long_mode() {
        deliver_long(cpu, vector, error_code, origin, bus)
    } else if cpu.system.cr0 & cr0::PE == 0 {
        deliver_real(cpu, vector, bus)
    } else {
        deliver_protected(cpu, vector, error_code, origin, bus)
    }
}

/// The error code that names a gate.
fn gate_error(vector: u8, origin: Origin) -> u32 {
    let external = match origin {
        Origin::Software => 0,
        Origin::Hardware => ERROR_EXTERNAL,
    };
    u32::from(vector) << 3 | ERROR_IN_IDT | external
}

/// An interrupt or trap gate.
struct Gate {
    selector: u16,
    offset: u64,
    is_interrupt: bool,
    stack_table: u64,
}

fn read_gate(
    cpu: &Cpu,
    vector: u8,
    origin: Origin,
    bus: &mut dyn SystemBus,
) -> Result<Gate, Fault> {
    let error = gate_error(vector, origin);
    let size: u16 = if cpu.system.is_long_mode() { 16 } else { 8 };
    let start = u16::from(vector) * size;
    if start + size - 1 > cpu.system.idtr.limit {
        return Err(fault::protection(error));
    }
    let mut raw = [0; 16];
    let addr = cpu.system.idtr.base.wrapping_add(u64::from(start));
    bus.read_supervisor(addr, &mut raw[..usize::from(size)])?;
    let low = u64::from_le_bytes([
        raw[0], raw[1], raw[2], raw[3], raw[4], raw[5], raw[6], raw[7],
    ]);
    let high = u32::from_le_bytes([raw[8], raw[9], raw[10], raw[11]]);
    let access = width::low_u8(low >> 40);
    let is_gate = matches!(access & 0x1F, 0x0E | 0x0F);
    let dpl = access >> 5 & 3;
    if !is_gate || origin == Origin::Software && dpl < cpu.system.cpl {
        return Err(fault::protection(error));
    }
    if access & 0x80 == 0 {
        return Err(fault::not_present(error));
    }
    Ok(Gate {
        selector: width::low_u16(low >> 16),
        offset: (low & 0xFFFF) | (low >> 32 & 0xFFFF_0000) | u64::from(high) << 32,
        is_interrupt: access & 1 == 0,
        stack_table: low >> 32 & 7,
    })
}

/// RFLAGS as pushed: a fault sets RF, so that a breakpoint on its instruction does not fire again.
fn pushed_flags(cpu: &Cpu, vector: u8, origin: Origin) -> u64 {
    let is_fault = origin == Origin::Hardware && vector < 32 && !matches!(vector, 1 | 3 | 4 | 8);
    cpu.rflags() | if is_fault { rflags::RF } else { 0 }
}

fn deliver_long(
    cpu: &mut Cpu,
    vector: u8,
    error_code: Option<u32>,
    origin: Origin,
    bus: &mut dyn SystemBus,
) -> Result<(), Fault> {
    let gate = read_gate(cpu, vector, origin, bus)?;
    let Some(mut code) = segment::global_descriptor(&cpu.system, gate.selector, bus)? else {
        return Err(fault::protection(segment::selector_error(gate.selector)));
    };
    let level = segment::gate_target(&cpu.system, code, gate.selector)?;
    let is_inward = level < cpu.system.cpl;
    let old_top = cpu.reg(Reg::Rsp);
    let top = if gate.stack_table != 0 {
        read_tss(cpu, TSS_IST + 8 * (gate.stack_table - 1), bus)?
    } else if is_inward {
        read_tss(cpu, TSS_RSP + 8 * u64::from(level), bus)?
    } else {
        old_top
    };
    if !is_canonical(top) {
        return Err(fault::stack(0));
    }
    if !is_canonical(gate.offset) {
        return Err(fault::protection(0));
    }
    let top = top & !15;
    let old_stack = cpu.system.segments[segment_index(Register::SS)];
    let old_code = cpu.system.segments[segment_index(Register::CS)].selector;
    let mut frame = [0; 48];
    let words = [
        u64::from(error_code.unwrap_or(0)),
        cpu.rip,
        u64::from(old_code),
        pushed_flags(cpu, vector, origin),
        old_top,
        u64::from(old_stack.selector),
    ];
    for (to, word) in frame.chunks_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    let frame = if error_code.is_some() {
        &frame[..]
    } else {
        &frame[8..]
    };
    let new_top = top.wrapping_sub(width::to_u64(frame.len()));
    bus.write_supervisor(new_top, frame)?;

    code.selector = (gate.selector & !3) | u16::from(level);
    cpu.system.segments[segment_index(Register::CS)] = code;
    if is_inward {
        cpu.system.segments[segment_index(Register::SS)] = Segment {
            selector: u16::from(level),
            ..Segment::default()
        };
    }
    cpu.system.cpl = level;
    cpu.set_reg(Reg::Rsp, new_top);
    cpu.rip = gate.offset;
    clear_flags(cpu, gate.is_interrupt);
    Ok(())
}

fn clear_flags(cpu: &mut Cpu, is_interrupt: bool) {
    cpu.system_flags &= !(rflags::TF | rflags::NT | rflags::RF | rflags::VM);
    if is_interrupt {
        cpu.system_flags &= !rflags::IF;
    }
}

/// A stack pointer of the 64-bit task-state segment.
fn read_tss(cpu: &Cpu, offset: u64, bus: &mut dyn SystemBus) -> Result<u64, Fault> {
    let tr = cpu.system.tr;
    if offset + 7 > u64::from(tr.limit) {
        return Err(fault::invalid_tss(segment::selector_error(tr.selector)));
    }
    let mut raw = [0; 8];
    bus.read_supervisor(tr.base.wrapping_add(offset), &mut raw)?;
    Ok(u64::from_le_bytes(raw))
}

/// The interrupt vector table of real mode: four bytes per vector, three words pushed.
fn deliver_real(cpu: &mut Cpu, vector: u8, bus: &mut dyn SystemBus) -> Result<(), Fault> {
    let mut raw = [0; 4];
    let entry = cpu.system.idtr.base.wrapping_add(u64::from(vector) * 4);
    bus.read_supervisor(entry, &mut raw)?;
    let stack = cpu.system.segments[segment_index(Register::SS)];
    let code = cpu.system.segments[segment_index(Register::CS)];
    let top = cpu.reg(Reg::Rsp).wrapping_sub(6) & mask(2);
    let mut frame = [0; 6];
    frame[..2].copy_from_slice(&cpu.rip.to_le_bytes()[..2]);
    frame[2..4].copy_from_slice(&code.selector.to_le_bytes());
    frame[4..].copy_from_slice(&cpu.rflags().to_le_bytes()[..2]);
    bus.write_supervisor(stack.base.wrapping_add(top) & mask(4), &frame)?;
    let rsp = (cpu.reg(Reg::Rsp) & !mask(2)) | top;
    cpu.set_reg(Reg::Rsp, rsp);
    let selector = u16::from_le_bytes([raw[2], raw[3]]);
    cpu.system.segments[segment_index(Register::CS)] = Segment {
        selector,
        base: u64::from(selector) << 4,
        ..code
    };
    cpu.rip = u64::from(u16::from_le_bytes([raw[0], raw[1]]));
    cpu.system_flags &= !(rflags::IF | rflags::TF | rflags::AC | rflags::RF);
    Ok(())
}

/// 32-bit gates of protected mode, at the same privilege level only: no kernel takes others before long mode.
fn deliver_protected(
    cpu: &mut Cpu,
    vector: u8,
    error_code: Option<u32>,
    origin: Origin,
    bus: &mut dyn SystemBus,
) -> Result<(), Fault> {
    let gate = read_gate(cpu, vector, origin, bus)?;
    let Some(mut code) = segment::global_descriptor(&cpu.system, gate.selector, bus)? else {
        return Err(fault::protection(segment::selector_error(gate.selector)));
    };
    let level = segment::gate_target(&cpu.system, code, gate.selector)?;
    if level != cpu.system.cpl {
        return Err(fault::invalid_tss(0));
    }
    let stack = cpu.system.segments[segment_index(Register::SS)];
    let old_code = cpu.system.segments[segment_index(Register::CS)].selector;
    let words = [
        error_code.unwrap_or(0),
        width::low_u32(cpu.rip),
        u32::from(old_code),
        width::low_u32(pushed_flags(cpu, vector, origin)),
    ];
    let mut frame = [0; 16];
    for (to, word) in frame.chunks_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    let frame = if error_code.is_some() {
        &frame[..]
    } else {
        &frame[4..]
    };
    let top = cpu.reg(Reg::Rsp).wrapping_sub(width::to_u64(frame.len())) & mask(4);
    bus.write_supervisor(stack.base.wrapping_add(top) & mask(4), frame)?;
    code.selector = (gate.selector & !3) | u16::from(level);
    cpu.system.segments[segment_index(Register::CS)] = code;
    cpu.set_reg(Reg::Rsp, top);
    cpu.rip = gate.offset & mask(4);
    clear_flags(cpu, gate.is_interrupt);
    Ok(())
}

/// INT n, INT3, INT1 and INTO where a kernel runs.
pub(super) fn software<B: Bus>(exec: &mut Exec<'_, B>, vector: u8) -> Step {
    let saved = exec.cpu.rip;
    exec.cpu.rip = exec.insn.next_ip();
    let origin = match exec.insn.mnemonic() {
        Mnemonic::Int1 => Origin::Hardware,
        _ => Origin::Software,
    };
    let Some(bus) = exec.bus.system() else {
        return Ok(Flow::Unsupported);
    };
    if let Err(fault) = deliver(exec.cpu, vector, None, origin, bus) {
        exec.cpu.rip = saved;
        return Err(fault);
    }
    Ok(Flow::Jump)
}

/// A flat segment as SYSCALL and SYSRET load it, without looking at any table.
fn flat(selector: u16, attributes: u16) -> Segment {
    Segment {
        selector,
        base: 0,
        limit: u32::MAX,
        attributes,
    }
}

/// SYSCALL into a kernel.
pub(super) fn syscall<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.cpu.system.efer & efer::SCE == 0 || !exec.cpu.system.is_long_mode() {
        return Err(fault::undefined());
    }
    let cpu = &mut *exec.cpu;
    let flags = cpu.rflags() & !rflags::RF;
    cpu.set_reg(Reg::Rcx, exec.insn.next_ip());
    cpu.set_reg(Reg::R11, flags);
    cpu.rip = if exec.insn.code_size() == iced_x86::CodeSize::Code64 {
        cpu.system.lstar
    } else {
        cpu.system.cstar
    };
    cpu.set_rflags(flags & !cpu.system.sfmask);
    let selector = width::low_u16(cpu.system.star >> 32) & !3;
    cpu.system.segments[segment_index(Register::CS)] = flat(selector, attribute::KERNEL_CODE_64);
    cpu.system.segments[segment_index(Register::SS)] =
        flat(selector.wrapping_add(8), attribute::KERNEL_DATA);
    cpu.system.cpl = 0;
    Ok(Flow::Jump)
}

/// SYSRET back to user mode.
pub(super) fn sysret<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.cpu.system.efer & efer::SCE == 0 || !exec.cpu.system.is_long_mode() {
        return Err(fault::undefined());
    }
    exec.require_kernel()?;
    let is_wide = exec.insn.mnemonic() == Mnemonic::Sysretq;
    let cpu = &mut *exec.cpu;
    let target = cpu.reg(Reg::Rcx);
    if is_wide && !is_canonical(target) {
        return Err(fault::protection(0));
    }
    let returned = rflags::ARITHMETIC
        | rflags::TF
        | rflags::IF
        | rflags::DF
        | rflags::IOPL
        | rflags::NT
        | rflags::AC
        | rflags::VIF
        | rflags::VIP
        | rflags::ID;
    cpu.set_rflags(cpu.reg(Reg::R11) & returned);
    let base = width::low_u16(cpu.system.star >> 48);
    let (code, attributes) = if is_wide {
        (base.wrapping_add(16), attribute::USER_CODE_64)
    } else {
        (base, attribute::USER_CODE_32)
    };
    cpu.rip = if is_wide { target } else { target & mask(4) };
    cpu.system.segments[segment_index(Register::CS)] = flat(code | 3, attributes);
    cpu.system.segments[segment_index(Register::SS)] =
        flat(base.wrapping_add(8) | 3, attribute::USER_DATA);
    cpu.system.cpl = 3;
    Ok(Flow::Jump)
}
