//! Control registers, debug registers and model-specific registers.

use iced_x86::{Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, is_canonical, mask};
use super::{Flow, Step, fault};
use crate::cpu::Reg;
use crate::exit::Fault;
use crate::system::{DescriptorTable, cr0, cr4, efer, msr};

/// Bits of CR4 that our processor has.
const CR4_VALID: u64 = 0x7FF;
/// Bits of EFER that can be set.
const EFER_VALID: u64 = efer::SCE | efer::LME | efer::LMA | efer::NXE;
/// Bits of CR3 beyond the physical address width.
const CR3_RESERVED: u64 = !0 << 40;
/// Debug status and control: bits that always read as one, and bits that can be set.
const DR6_FIXED: u64 = 0xFFFF_0FF0;
const DR6_VALID: u64 = 0xE00F;
const DR7_FIXED: u64 = 0x400;
const DR7_VALID: u64 = 0xFFFF_23FF;
/// Memory types that PAT admits, as a bit set.
const PAT_TYPES: u8 = 0b1111_0011;

/// MOV to and from control and debug registers.
pub(super) fn special_move<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let (to, from) = (exec.insn.op0_register(), exec.insn.op1_register());
    if exec.insn.op0_kind() != OpKind::Register || exec.insn.op1_kind() != OpKind::Register {
        return Ok(Flow::Unsupported);
    }
    exec.require_kernel()?;
    if to.is_cr() {
        write_control(exec, to, exec.cpu.gpr(from))?;
    } else if from.is_cr() {
        let value = read_control(exec, from)?;
        exec.cpu.set_gpr(to, value);
    } else if to.is_dr() {
        write_debug(exec, to, exec.cpu.gpr(from))?;
    } else if from.is_dr() {
        let number = debug_number(exec, from)?;
        exec.cpu.set_gpr(to, exec.cpu.system.dr[number]);
    } else {
        return Ok(Flow::Unsupported);
    }
    Ok(Flow::Next)
}

fn read_control<B: Bus>(exec: &Exec<'_, B>, register: Register) -> Result<u64, Fault> {
    let system = &exec.cpu.system;
    match register {
        Register::CR0 => Ok(system.cr0),
        Register::CR2 => Ok(system.cr2),
        Register::CR3 => Ok(system.cr3),
        Register::CR4 => Ok(system.cr4),
        Register::CR8 => Ok(system.cr8),
        _ => Err(fault::undefined()),
    }
}

fn write_control<B: Bus>(
    exec: &mut Exec<'_, B>,
    register: Register,
    value: u64,
) -> Result<(), Fault> {
    match register {
        Register::CR0 => return set_cr0(exec, value),
        Register::CR2 => exec.cpu.system.cr2 = value,
        Register::CR3 => {
            if value & CR3_RESERVED != 0 {
                return Err(fault::protection(0));
            }
            exec.cpu.system.cr3 = value;
            flush(exec, true);
        }
        Register::CR4 => return set_cr4(exec, value),
        Register::CR8 if value > 15 => return Err(fault::protection(0)),
        Register::CR8 => exec.cpu.system.cr8 = value,
        _ => return Err(fault::undefined()),
    }
    Ok(())
}

fn flush<B: Bus>(exec: &mut Exec<'_, B>, keep_global: bool) {
    let keep_global = keep_global && exec.cpu.system.cr4 & cr4::PGE != 0;
    if let Some(bus) = exec.bus.system() {
        bus.flush_translations(keep_global);
    }
}

/// CR0, with the switch into and out of long mode (SDM vol. 3, 9.8.5).
pub(super) fn set_cr0<B: Bus>(exec: &mut Exec<'_, B>, value: u64) -> Result<(), Fault> {
    let has = |bit| value & bit != 0;
    let is_contradictory =
        has(cr0::PG) && !has(cr0::PE) || has(cr0::NW) && !has(cr0::CD) || value >> 32 != 0;
    if is_contradictory {
        return Err(fault::protection(0));
    }
    let system = &mut exec.cpu.system;
    let was_paging = system.cr0 & cr0::PG != 0;
    if has(cr0::PG) && !was_paging && system.efer & efer::LME != 0 {
        if system.cr4 & cr4::PAE == 0 {
            return Err(fault::protection(0));
        }
        system.efer |= efer::LMA;
    }
    if !has(cr0::PG) && was_paging {
        if exec.insn.code_size() == iced_x86::CodeSize::Code64 {
            return Err(fault::protection(0));
        }
        system.efer &= !efer::LMA;
    }
    let changed = system.cr0 ^ value;
    system.cr0 = value | cr0::ET;
    if changed & (cr0::PG | cr0::WP | cr0::PE) != 0 {
        flush(exec, false);
    }
    Ok(())
}

fn set_cr4<B: Bus>(exec: &mut Exec<'_, B>, value: u64) -> Result<(), Fault> {
    let system = &mut exec.cpu.system;
    let loses_long_mode = system.is_long_mode() && value & cr4::PAE == 0;
    if value & !CR4_VALID != 0 || loses_long_mode {
        return Err(fault::protection(0));
    }
    let changed = system.cr4 ^ value;
    system.cr4 = value;
    if changed & (cr4::PGE | cr4::PAE | cr4::PSE) != 0 {
        flush(exec, false);
    }
    Ok(())
}

/// DR4 and DR5 are other names of DR6 and DR7, unless debugging extensions are on.
fn debug_number<B: Bus>(exec: &Exec<'_, B>, register: Register) -> Result<usize, Fault> {
    match register.number() {
        4 | 5 if exec.cpu.system.cr4 & cr4::DE != 0 => Err(fault::undefined()),
        number @ (4 | 5) => Ok(number + 2),
        number @ 0..=7 => Ok(number),
        _ => Err(fault::undefined()),
    }
}

fn write_debug<B: Bus>(
    exec: &mut Exec<'_, B>,
    register: Register,
    value: u64,
) -> Result<(), Fault> {
    let number = debug_number(exec, register)?;
    let value = match number {
        6 | 7 if value >> 32 != 0 => return Err(fault::protection(0)),
        6 => (value & DR6_VALID) | DR6_FIXED,
        7 => (value & DR7_VALID) | DR7_FIXED,
        _ => value,
    };
    exec.cpu.system.dr[number] = value;
    Ok(())
}

/// LMSW (which cannot leave protected mode) and CLTS.
pub(super) fn machine_status<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_kernel()?;
    if exec.insn.mnemonic() == Mnemonic::Clts {
        exec.cpu.system.cr0 &= !cr0::TS;
        return Ok(Flow::Next);
    }
    let word = if exec.is_memory(0) {
        let addr = exec.memory_address(2)?;
        exec.load(addr, 2, AccessKind::Read)?
    } else {
        exec.read_operand(0)?
    };
    let old = exec.cpu.system.cr0;
    let value = (old & !0xE) | (word & 0xF);
    set_cr0(exec, value)?;
    Ok(Flow::Next)
}

/// LGDT and LIDT; a 16-bit operand size loads only 24 bits of base.
pub(super) fn load_table<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    use iced_x86::Code;
    exec.require_kernel()?;
    let bytes = if exec.is_64_bit() { 8 } else { 4 };
    let addr = exec.memory_address(bytes + 2)?;
    let limit = exec.load(addr, 2, AccessKind::Read)?;
    let mut base = exec.load(addr.wrapping_add(2), bytes, AccessKind::Read)?;
    if matches!(exec.insn.code(), Code::Lgdt_m1632_16 | Code::Lidt_m1632_16) {
        base &= 0xFF_FFFF;
    }
    if exec.is_64_bit() && !is_canonical(base) {
        return Err(fault::protection(0));
    }
    let table = DescriptorTable {
        base,
        limit: width::low_u16(limit),
    };
    if exec.insn.mnemonic() == Mnemonic::Lgdt {
        exec.cpu.system.gdtr = table;
    } else {
        exec.cpu.system.idtr = table;
    }
    Ok(Flow::Next)
}

/// RDMSR.
pub(super) fn read_msr<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_kernel()?;
    let number = width::low_u32(exec.cpu.reg(Reg::Rcx));
    let system = &exec.cpu.system;
    let value = match number {
        msr::TSC => {
            let offset = system.tsc_offset;
            exec.bus.tsc().wrapping_add(offset)
        }
        msr::APIC_BASE => system.apic_base,
        msr::SYSENTER_CS => system.sysenter[0],
        msr::SYSENTER_ESP => system.sysenter[1],
        msr::SYSENTER_EIP => system.sysenter[2],
        msr::PAT => system.pat,
        msr::EFER => system.efer,
        msr::STAR => system.star,
        msr::LSTAR => system.lstar,
        msr::CSTAR => system.cstar,
        msr::SFMASK => system.sfmask,
        msr::FS_BASE => exec.cpu.fs_base(),
        msr::GS_BASE => exec.cpu.gs_base(),
        msr::KERNEL_GS_BASE => system.kernel_gs_base,
        _ => exec
            .bus
            .system()
            .and_then(|bus| bus.read_msr(number))
            .ok_or(fault::protection(0))?,
    };
    exec.cpu.set_reg(Reg::Rax, value & mask(4));
    exec.cpu.set_reg(Reg::Rdx, value >> 32);
    Ok(Flow::Next)
}

/// WRMSR.
pub(super) fn write_msr<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_kernel()?;
    let number = width::low_u32(exec.cpu.reg(Reg::Rcx));
    let value = exec.cpu.reg(Reg::Rdx) << 32 | exec.cpu.reg(Reg::Rax) & mask(4);
    let holds_address = matches!(
        number,
        msr::SYSENTER_ESP
            | msr::SYSENTER_EIP
            | msr::LSTAR
            | msr::CSTAR
            | msr::FS_BASE
            | msr::GS_BASE
            | msr::KERNEL_GS_BASE
    );
    if holds_address && !is_canonical(value) {
        return Err(fault::protection(0));
    }
    let system = &mut exec.cpu.system;
    match number {
        msr::TSC => {
            let now = exec.bus.tsc();
            exec.cpu.system.tsc_offset = value.wrapping_sub(now);
        }
        msr::APIC_BASE => {
            system.apic_base = value;
            // The interrupt controller moves along; whether it minds is its own business.
            if let Some(bus) = exec.bus.system() {
                bus.write_msr(number, value);
            }
        }
        msr::SYSENTER_CS => system.sysenter[0] = value,
        msr::SYSENTER_ESP => system.sysenter[1] = value,
        msr::SYSENTER_EIP => system.sysenter[2] = value,
        msr::PAT => {
            let is_valid = value
                .to_le_bytes()
                .iter()
                .all(|kind| *kind < 8 && PAT_TYPES >> kind & 1 != 0);
            if !is_valid {
                return Err(fault::protection(0));
            }
            system.pat = value;
        }
        msr::EFER => set_efer(exec, value)?,
        msr::STAR => system.star = value,
        msr::LSTAR => system.lstar = value,
        msr::CSTAR => system.cstar = value,
        msr::SFMASK => system.sfmask = value & mask(4),
        msr::FS_BASE => exec.cpu.set_fs_base(value),
        msr::GS_BASE => exec.cpu.set_gs_base(value),
        msr::KERNEL_GS_BASE => system.kernel_gs_base = value,
        _ => {
            let is_known = exec
                .bus
                .system()
                .is_some_and(|bus| bus.write_msr(number, value));
            if !is_known {
                return Err(fault::protection(0));
            }
        }
    }
    Ok(Flow::Next)
}

fn set_efer<B: Bus>(exec: &mut Exec<'_, B>, value: u64) -> Result<(), Fault> {
    let system = &mut exec.cpu.system;
    let is_paging = system.cr0 & cr0::PG != 0;
    let changes_mode = (system.efer ^ value) & efer::LME != 0;
    if value & !EFER_VALID != 0 || is_paging && changes_mode {
        return Err(fault::protection(0));
    }
    let changed = system.efer ^ value;
    system.efer = (value & !efer::LMA) | (system.efer & efer::LMA);
    if changed & efer::NXE != 0 {
        flush(exec, false);
    }
    Ok(())
}
