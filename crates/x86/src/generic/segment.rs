//! Descriptors, segment registers and far transfers (SDM vol. 3, chapters 3 and 5).

use iced_x86::{Code, Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, is_canonical, mask, segment_index};
use super::{Flow, Step, fault};
use crate::cpu::Reg;
use crate::exit::Fault;
use crate::flags::{Flags, rflags};
use crate::system::{DescriptorTable, Segment, SystemState, attribute, cr0};

/// A descriptor of a code, data or system segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) segment: Segment,
    /// Where it is, to mark it accessed or busy.
    addr: u64,
}

impl Descriptor {
    fn has(self, bit: u16) -> bool {
        self.segment.attributes & bit != 0
    }

    fn dpl(self) -> u8 {
        self.segment.dpl()
    }

    fn is_code(self) -> bool {
        self.has(attribute::NOT_SYSTEM) && self.has(attribute::CODE)
    }

    fn is_conforming_code(self) -> bool {
        self.is_code() && self.has(attribute::CONFORMING)
    }

    fn is_writable_data(self) -> bool {
        self.has(attribute::NOT_SYSTEM)
            && !self.has(attribute::CODE)
            && self.has(attribute::WRITABLE)
    }

    fn is_readable(self) -> bool {
        self.has(attribute::NOT_SYSTEM)
            && (!self.has(attribute::CODE) || self.has(attribute::WRITABLE))
    }
}

/// The error code that names a selector.
pub(super) fn selector_error(selector: u16) -> u32 {
    u32::from(selector & !3)
}

fn is_null(selector: u16) -> bool {
    selector & !3 == 0
}

/// Splits the eight bytes of a descriptor.
fn parse(raw: u64, selector: u16) -> Segment {
    let limit = width::low_u32((raw & 0xFFFF) | (raw >> 32 & 0xF_0000));
    let attributes = width::low_u16(raw >> 40) & 0xF0FF;
    Segment {
        selector,
        base: (raw >> 16 & 0xFF_FFFF) | (raw >> 32 & 0xFF00_0000),
        limit: if attributes & attribute::PAGES != 0 {
            limit << 12 | 0xFFF
        } else {
            limit
        },
        attributes,
    }
}

impl<B: Bus> Exec<'_, B> {
    pub(super) fn is_real_mode(&self) -> bool {
        self.cpu.system.cr0 & cr0::PE == 0
    }

    /// Reads the descriptor that a selector names; `bytes` is 16 for the system segments of long mode.
    pub(super) fn descriptor(
        &mut self,
        selector: u16,
        bytes: usize,
    ) -> Result<Option<Descriptor>, Fault> {
        let system = &self.cpu.system;
        let table = if selector & 4 == 0 {
            system.gdtr
        } else {
            DescriptorTable {
                base: system.ldtr.base,
                limit: u16::try_from(system.ldtr.limit).unwrap_or(u16::MAX),
            }
        };
        let offset = usize::from(selector & !7);
        if is_null(selector) || offset + bytes - 1 > usize::from(table.limit) {
            return Ok(None);
        }
        let addr = table.base.wrapping_add(width::to_u64(offset));
        let mut raw = [0; 16];
        let Some(bus) = self.bus.system() else {
            return Ok(None);
        };
        bus.read_supervisor(addr, &mut raw[..bytes])?;
        let word = |at: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&raw[at..at + 8]);
            u64::from_le_bytes(part)
        };
        let mut segment = parse(word(0), selector);
        if bytes == 16 {
            segment.base |= word(8) << 32;
        }
        Ok(Some(Descriptor { segment, addr }))
    }

    /// Sets bits in the type field of a descriptor in memory.
    fn mark(&mut self, descriptor: &mut Descriptor, bit: u16) -> Result<(), Fault> {
        if descriptor.has(bit) {
            return Ok(());
        }
        descriptor.segment.attributes |= bit;
        let byte = width::low_u8(u64::from(descriptor.segment.attributes));
        match self.bus.system() {
            Some(bus) => bus.write_supervisor(descriptor.addr.wrapping_add(5), &[byte]),
            None => Ok(()),
        }
    }

    /// Loads DS, ES, FS, GS or SS.
    pub(super) fn load_segment(&mut self, register: Register, selector: u16) -> Result<(), Fault> {
        if register == Register::CS {
            return Err(fault::undefined());
        }
        if self.bus.system().is_none() {
            return self.load_segment_without_tables(register, selector);
        }
        let segment = if self.is_real_mode() {
            let old = self.cpu.system.segments[segment_index(register)];
            Segment {
                selector,
                base: u64::from(selector) << 4,
                ..old
            }
        } else {
            self.checked_segment(register, selector)?
        };
        self.set_segment(register, segment);
        if register == Register::SS {
            self.cpu.system.interrupt_shadow = true;
        }
        Ok(())
    }

    fn checked_segment(&mut self, register: Register, selector: u16) -> Result<Segment, Fault> {
        let error = selector_error(selector);
        let rpl = width::low_u8(u64::from(selector & 3));
        let cpl = self.cpu.system.cpl;
        let is_stack = register == Register::SS;
        if is_null(selector) {
            let is_allowed = !is_stack || self.is_64_bit() && cpl != 3 && rpl == cpl;
            return if is_allowed {
                Ok(Segment {
                    selector,
                    ..Segment::default()
                })
            } else {
                Err(fault::protection(0))
            };
        }
        let Some(mut descriptor) = self.descriptor(selector, 8)? else {
            return Err(fault::protection(error));
        };
        let is_valid = if is_stack {
            descriptor.is_writable_data() && rpl == cpl && descriptor.dpl() == cpl
        } else {
            descriptor.is_readable()
                && (descriptor.is_conforming_code() || rpl.max(cpl) <= descriptor.dpl())
        };
        if !is_valid {
            return Err(fault::protection(error));
        }
        if !descriptor.has(attribute::PRESENT) {
            return Err(if is_stack {
                fault::stack(error)
            } else {
                fault::not_present(error)
            });
        }
        self.mark(&mut descriptor, attribute::ACCESSED)?;
        Ok(descriptor.segment)
    }

    /// Where there are no descriptor tables, only the null selector and that of the stack can be loaded.
    fn load_segment_without_tables(
        &mut self,
        register: Register,
        selector: u16,
    ) -> Result<(), Fault> {
        let stack = self.cpu.system.segments[segment_index(Register::SS)];
        let segment = if is_null(selector) && register != Register::SS {
            Segment {
                selector,
                ..Segment::default()
            }
        } else if selector == stack.selector {
            stack
        } else {
            return Err(fault::protection(selector_error(selector)));
        };
        self.set_segment(register, segment);
        Ok(())
    }

    pub(super) fn set_segment(&mut self, register: Register, segment: Segment) {
        self.cpu.system.segments[segment_index(register)] = segment;
        match register {
            Register::FS => self.cpu.set_fs_base(segment.base),
            Register::GS => self.cpu.set_gs_base(segment.base),
            _ => {}
        }
    }

    /// Checks a code selector for a transfer to privilege level `cpl` without a gate.
    fn checked_code(&mut self, selector: u16, cpl: u8, is_return: bool) -> Result<Segment, Fault> {
        let error = selector_error(selector);
        let rpl = width::low_u8(u64::from(selector & 3));
        if is_null(selector) {
            return Err(fault::protection(0));
        }
        let Some(mut descriptor) = self.descriptor(selector, 8)? else {
            return Err(fault::protection(error));
        };
        let is_valid = descriptor.is_code()
            && if descriptor.is_conforming_code() {
                descriptor.dpl() <= cpl
            } else {
                descriptor.dpl() == cpl && (is_return || rpl <= cpl)
            };
        let is_ambiguous = self.cpu.system.is_long_mode()
            && descriptor.has(attribute::LONG)
            && descriptor.has(attribute::BIG);
        if !is_valid || is_ambiguous {
            return Err(fault::protection(error));
        }
        if !descriptor.has(attribute::PRESENT) {
            return Err(fault::not_present(error));
        }
        self.mark(&mut descriptor, attribute::ACCESSED)?;
        let mut segment = descriptor.segment;
        segment.selector = (selector & !3) | u16::from(cpl);
        Ok(segment)
    }

    /// The code segment for a transfer at the current level, in any mode.
    fn code_segment(&mut self, selector: u16) -> Result<Segment, Fault> {
        if self.is_real_mode() {
            let old = self.cpu.system.segments[segment_index(Register::CS)];
            return Ok(Segment {
                selector,
                base: u64::from(selector) << 4,
                ..old
            });
        }
        self.checked_code(selector, self.cpu.system.cpl, false)
    }

    /// Sets CS and RIP; the offset must suit the new segment.
    fn enter_code(&mut self, segment: Segment, offset: u64) -> Result<(), Fault> {
        let is_64_bit = self.cpu.system.is_long_mode() && segment.attributes & attribute::LONG != 0;
        if is_64_bit && !is_canonical(offset) {
            return Err(fault::protection(0));
        }
        self.cpu.system.segments[segment_index(Register::CS)] = segment;
        self.cpu.rip = if is_64_bit { offset } else { offset & mask(4) };
        Ok(())
    }
}

/// JMP and CALL to another code segment; gates and tasks are not supported.
pub(super) fn far_branch<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.bus.system().is_none() {
        return Ok(Flow::Unsupported);
    }
    let (selector, offset, bytes) = far_target(exec)?;
    let segment = exec.code_segment(selector)?;
    let is_call = exec.insn.is_call_far() || exec.insn.is_call_far_indirect();
    if is_call {
        let old = exec.cpu.system.segments[segment_index(Register::CS)].selector;
        let next = exec.insn.next_ip();
        let step = width::to_u64(bytes);
        let top = exec.stack_pointer().wrapping_sub(2 * step);
        let low = exec.stack_address(top, bytes)?;
        let high = exec.stack_address(top.wrapping_add(step), bytes)?;
        exec.store(high, u64::from(old), bytes, AccessKind::Write)?;
        exec.store(low, next, bytes, AccessKind::Write)?;
        exec.enter_code(segment, offset)?;
        exec.set_stack_pointer(top);
    } else {
        exec.enter_code(segment, offset)?;
    }
    Ok(Flow::Jump)
}

/// Selector, offset and operand size of a far branch.
fn far_target<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(u16, u64, usize), Fault> {
    match exec.insn.op0_kind() {
        OpKind::FarBranch16 => Ok((
            exec.insn.far_branch_selector(),
            u64::from(exec.insn.far_branch16()),
            2,
        )),
        OpKind::FarBranch32 => Ok((
            exec.insn.far_branch_selector(),
            u64::from(exec.insn.far_branch32()),
            4,
        )),
        _ => {
            let bytes = exec.insn.memory_size().size() - 2;
            let addr = exec.memory_address(bytes + 2)?;
            let offset = exec.load(addr, bytes, AccessKind::Read)?;
            let after = addr.wrapping_add(width::to_u64(bytes));
            let selector = exec.load(after, 2, AccessKind::Read)?;
            Ok((width::low_u16(selector), offset, bytes))
        }
    }
}

/// RETF and IRET: what the stack says comes next.
struct Return {
    selector: u16,
    offset: u64,
    /// Stack pointer and segment, if the frame has them.
    stack: Option<(u64, u16)>,
}

impl<B: Bus> Exec<'_, B> {
    /// Goes where a frame says, at its privilege level.
    fn follow(&mut self, to: &Return, top_after: u64) -> Result<(), Fault> {
        if self.is_real_mode() {
            let segment = self.code_segment(to.selector)?;
            self.enter_code(segment, to.offset)?;
            self.set_stack_pointer(top_after);
            return Ok(());
        }
        let rpl = width::low_u8(u64::from(to.selector & 3));
        if rpl < self.cpu.system.cpl {
            return Err(fault::protection(selector_error(to.selector)));
        }
        let code = self.checked_code(to.selector, rpl, true)?;
        let is_outward = rpl > self.cpu.system.cpl;
        let stack = match to.stack {
            Some((_, selector)) => {
                let is_64_bit = code.attributes & attribute::LONG != 0;
                Some(self.return_stack(selector, rpl, is_64_bit)?)
            }
            None => None,
        };
        let is_wide = code.attributes & attribute::LONG != 0;
        self.enter_code(code, to.offset)?;
        self.cpu.system.cpl = rpl;
        match (to.stack, stack) {
            (Some((pointer, _)), Some(segment)) => {
                self.cpu.system.segments[segment_index(Register::SS)] = segment;
                let pointer = if is_wide { pointer } else { pointer & mask(4) };
                self.cpu.set_reg(Reg::Rsp, pointer);
            }
            _ => self.set_stack_pointer(top_after),
        }
        if is_outward {
            self.drop_privileged_segments();
        }
        Ok(())
    }

    fn return_stack(&mut self, selector: u16, rpl: u8, is_64_bit: bool) -> Result<Segment, Fault> {
        let error = selector_error(selector);
        if is_null(selector) {
            return if is_64_bit && rpl != 3 {
                Ok(Segment {
                    selector,
                    ..Segment::default()
                })
            } else {
                Err(fault::protection(0))
            };
        }
        let Some(mut descriptor) = self.descriptor(selector, 8)? else {
            return Err(fault::protection(error));
        };
        let is_valid = descriptor.is_writable_data()
            && descriptor.dpl() == rpl
            && width::low_u8(u64::from(selector & 3)) == rpl;
        if !is_valid {
            return Err(fault::protection(error));
        }
        if !descriptor.has(attribute::PRESENT) {
            return Err(fault::stack(error));
        }
        self.mark(&mut descriptor, attribute::ACCESSED)?;
        Ok(descriptor.segment)
    }

    /// A less privileged level must not keep segments it could not load.
    fn drop_privileged_segments(&mut self) {
        let cpl = self.cpu.system.cpl;
        for register in [Register::ES, Register::DS, Register::FS, Register::GS] {
            let segment = self.cpu.system.segments[segment_index(register)];
            let conforming = attribute::CODE | attribute::CONFORMING;
            let is_conforming = segment.attributes & conforming == conforming;
            if !is_null(segment.selector) && !is_conforming && segment.dpl() < cpl {
                self.set_segment(register, Segment::default());
            }
        }
    }
}

/// RETF, with or without a number of bytes to drop.
pub(super) fn far_return<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.bus.system().is_none() {
        return Ok(Flow::Unsupported);
    }
    let bytes = match exec.insn.code() {
        Code::Retfw | Code::Retfw_imm16 => 2,
        Code::Retfd | Code::Retfd_imm16 => 4,
        _ => 8,
    };
    let step = width::to_u64(bytes);
    let more = if exec.insn.op_count() == 1 {
        u64::from(exec.insn.immediate16())
    } else {
        0
    };
    let offset = exec.peek(0, bytes)?;
    let selector = width::low_u16(exec.peek(step, bytes)?);
    let is_outward =
        !exec.is_real_mode() && width::low_u8(u64::from(selector & 3)) > exec.cpu.system.cpl;
    let stack = if is_outward {
        let pointer = exec.peek(2 * step + more, bytes)?;
        let segment = exec.peek(3 * step + more, bytes)?;
        Some((pointer.wrapping_add(more), width::low_u16(segment)))
    } else {
        None
    };
    let top_after = exec.stack_pointer().wrapping_add(2 * step + more);
    let to = Return {
        selector,
        offset,
        stack,
    };
    exec.follow(&to, top_after)?;
    Ok(Flow::Jump)
}

/// IRET, IRETD, IRETQ.
pub(super) fn interrupt_return<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.bus.system().is_none() {
        return Ok(Flow::Unsupported);
    }
    let bytes = match exec.insn.mnemonic() {
        Mnemonic::Iret => 2,
        Mnemonic::Iretd => 4,
        _ => 8,
    };
    let step = width::to_u64(bytes);
    let old_flags = exec.cpu.rflags();
    if !exec.is_real_mode() && old_flags & rflags::NT != 0 {
        // A return to another task, which long mode does not have.
        return Err(fault::protection(0));
    }
    let offset = exec.peek(0, bytes)?;
    let selector = width::low_u16(exec.peek(step, bytes)?);
    let flags = exec.peek(2 * step, bytes)?;
    let rpl = width::low_u8(u64::from(selector & 3));
    let is_outward = !exec.is_real_mode() && rpl > exec.cpu.system.cpl;
    let stack = if exec.is_64_bit() || is_outward {
        let pointer = exec.peek(3 * step, bytes)?;
        let segment = exec.peek(4 * step, bytes)?;
        Some((pointer, width::low_u16(segment)))
    } else {
        None
    };
    let old_cpl = exec.cpu.system.cpl;
    let top_after = exec.stack_pointer().wrapping_add(3 * step);
    let to = Return {
        selector,
        offset,
        stack,
    };
    exec.follow(&to, top_after)?;
    exec.cpu
        .set_rflags(returned_flags(old_flags, flags, old_cpl, bytes));
    Ok(Flow::Jump)
}

/// Flags that IRET takes from the frame at this privilege level; I/O privilege never exceeds zero at level three.
fn returned_flags(old: u64, new: u64, cpl: u8, bytes: usize) -> u64 {
    let common = rflags::ARITHMETIC
        | rflags::TF
        | rflags::DF
        | rflags::NT
        | rflags::RF
        | rflags::AC
        | rflags::ID;
    let iopl = (old & rflags::IOPL) >> 12;
    let mut changed = common;
    if u64::from(cpl) <= iopl {
        changed |= rflags::IF;
    }
    if cpl == 0 {
        changed |= rflags::IOPL | rflags::VIF | rflags::VIP;
    }
    let changed = changed & mask(bytes);
    (old & !changed) | (new & changed)
}

/// LLDT and LTR.
pub(super) fn load_system_segment<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_kernel()?;
    let selector = width::low_u16(exec.read_operand(0)?);
    let is_task = exec.insn.mnemonic() == Mnemonic::Ltr;
    let error = selector_error(selector);
    if is_null(selector) {
        if is_task {
            return Err(fault::protection(0));
        }
        exec.cpu.system.ldtr = Segment {
            selector,
            ..Segment::default()
        };
        return Ok(Flow::Next);
    }
    let bytes = if exec.cpu.system.is_long_mode() {
        16
    } else {
        8
    };
    let Some(mut descriptor) = exec.descriptor(selector, bytes)? else {
        return Err(fault::protection(error));
    };
    let kind = descriptor.segment.attributes & (attribute::KIND | attribute::NOT_SYSTEM);
    let wanted = if is_task {
        attribute::TSS_AVAILABLE
    } else {
        attribute::LDT
    };
    if kind != wanted || selector & 4 != 0 {
        return Err(fault::protection(error));
    }
    if !descriptor.has(attribute::PRESENT) {
        return Err(fault::not_present(error));
    }
    if is_task {
        exec.mark(&mut descriptor, attribute::TSS_BUSY_BIT)?;
        exec.cpu.system.tr = descriptor.segment;
    } else {
        exec.cpu.system.ldtr = descriptor.segment;
    }
    Ok(Flow::Next)
}

/// LAR, LSL, VERR, VERW: ZF says whether the selector names something visible.
pub(super) fn probe<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let operand = exec.insn.op_count() - 1;
    let selector = width::low_u16(if exec.is_memory(operand) {
        let addr = exec.memory_address(2)?;
        exec.load(addr, 2, AccessKind::Read)?
    } else {
        exec.read_operand(operand)?
    });
    let descriptor = exec.descriptor(selector, 8)?;
    let level = exec
        .cpu
        .system
        .cpl
        .max(width::low_u8(u64::from(selector & 3)));
    let visible = descriptor.filter(|found| found.is_conforming_code() || level <= found.dpl());
    let mnemonic = exec.insn.mnemonic();
    let found = visible.filter(|found| match mnemonic {
        Mnemonic::Verr => found.is_readable(),
        Mnemonic::Verw => found.is_writable_data(),
        _ => found.has(attribute::NOT_SYSTEM) || is_visible_system(*found, mnemonic),
    });
    if let Some(found) = found {
        let value = match mnemonic {
            Mnemonic::Lar => Some(u64::from(found.segment.attributes) << 8),
            Mnemonic::Lsl => Some(u64::from(found.segment.limit)),
            _ => None,
        };
        if let Some(value) = value {
            exec.cpu.set_gpr(exec.insn.op0_register(), value);
        }
    }
    let others = exec.cpu.flags.to_rflags() & !rflags::ZF;
    let zero = if found.is_some() { rflags::ZF } else { 0 };
    exec.cpu.flags = Flags::from_rflags(others | zero);
    Ok(Flow::Next)
}

/// System descriptors that LAR and LSL show: LDT and TSS, and call gates for LAR.
fn is_visible_system(descriptor: Descriptor, mnemonic: Mnemonic) -> bool {
    match descriptor.segment.attributes & attribute::KIND {
        2 | 9 | 11 => true,
        12 => mnemonic == Mnemonic::Lar,
        _ => false,
    }
}

/// LSS, LFS, LGS, LDS, LES: a far pointer.
pub(super) fn load_pointer<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.insn.op0_register().size();
    let addr = exec.memory_address(bytes + 2)?;
    let offset = exec.load(addr, bytes, AccessKind::Read)?;
    let selector = exec.load(addr.wrapping_add(width::to_u64(bytes)), 2, AccessKind::Read)?;
    let register = match exec.insn.mnemonic() {
        Mnemonic::Lss => Register::SS,
        Mnemonic::Lfs => Register::FS,
        Mnemonic::Lgs => Register::GS,
        Mnemonic::Lds => Register::DS,
        _ => Register::ES,
    };
    exec.load_segment(register, width::low_u16(selector))?;
    exec.cpu.set_gpr(exec.insn.op0_register(), offset);
    Ok(Flow::Next)
}

/// The code segment behind an interrupt gate: its descriptor and the privilege level it runs at.
pub(super) fn gate_target(
    system: &SystemState,
    segment: Segment,
    selector: u16,
) -> Result<u8, Fault> {
    let error = selector_error(selector);
    let descriptor = Descriptor { segment, addr: 0 };
    let is_wide = !system.is_long_mode()
        || descriptor.has(attribute::LONG) && !descriptor.has(attribute::BIG);
    if !descriptor.is_code() || descriptor.dpl() > system.cpl || !is_wide {
        return Err(fault::protection(error));
    }
    if !descriptor.has(attribute::PRESENT) {
        return Err(fault::not_present(error));
    }
    Ok(if descriptor.is_conforming_code() {
        system.cpl
    } else {
        descriptor.dpl()
    })
}

/// As `Exec::descriptor`, for deliveries outside an instruction: the global table only.
pub(super) fn global_descriptor(
    system: &SystemState,
    selector: u16,
    bus: &mut dyn super::SystemBus,
) -> Result<Option<Segment>, Fault> {
    let offset = selector & !7;
    if is_null(selector) || selector & 4 != 0 || offset > system.gdtr.limit.saturating_sub(7) {
        return Ok(None);
    }
    let mut raw = [0; 8];
    bus.read_supervisor(system.gdtr.base.wrapping_add(u64::from(offset)), &mut raw)?;
    Ok(Some(parse(u64::from_le_bytes(raw), selector)))
}
