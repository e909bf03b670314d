//! PUSH, POP and their kin, ENTER, LEAVE.

use iced_x86::{Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, mask, merge, segment_index};
use super::{Flow, Step, fault};
use crate::cpu::Reg;
use crate::exit::Fault;
use crate::flags::rflags;
use crate::system::attribute;

/// What PUSHF hides.
const HIDDEN_FROM_PUSHF: u64 = rflags::VM | rflags::RF;
/// What POPF may change at any privilege level.
const POPPED: u64 =
    rflags::ARITHMETIC | rflags::TF | rflags::DF | rflags::NT | rflags::AC | rflags::ID;

impl<B: Bus> Exec<'_, B> {
    /// Width of the stack pointer in bytes.
    pub(super) fn stack_bytes(&self) -> usize {
        if self.is_64_bit() {
            8
        } else if self.cpu.system.segments[segment_index(Register::SS)].attributes & attribute::BIG
            != 0
        {
            4
        } else {
            2
        }
    }

    pub(super) fn stack_pointer(&self) -> u64 {
        self.cpu.reg(Reg::Rsp) & mask(self.stack_bytes())
    }

    pub(super) fn set_stack_pointer(&mut self, value: u64) {
        let merged = merge(self.cpu.reg(Reg::Rsp), value, self.stack_bytes());
        self.cpu.set_reg(Reg::Rsp, merged);
    }

    /// Linear address of `offset` on the stack.
    pub(super) fn stack_address(&self, offset: u64, bytes: usize) -> Result<u64, Fault> {
        self.linear(Register::SS, offset & mask(self.stack_bytes()), bytes)
    }

    /// Stores below the stack pointer, then moves it.
    pub(super) fn push(&mut self, value: u64, bytes: usize) -> Result<(), Fault> {
        let top = self.stack_pointer().wrapping_sub(width::to_u64(bytes));
        let addr = self.stack_address(top, bytes)?;
        self.store(addr, value, bytes, AccessKind::Write)?;
        self.set_stack_pointer(top);
        Ok(())
    }

    /// The value at `offset` above the stack pointer, which does not move.
    pub(super) fn peek(&mut self, offset: u64, bytes: usize) -> Result<u64, Fault> {
        let addr = self.stack_address(self.stack_pointer().wrapping_add(offset), bytes)?;
        self.load(addr, bytes, AccessKind::Read)
    }

    /// Moves the stack pointer up.
    pub(super) fn drop_stack(&mut self, bytes: u64) {
        self.set_stack_pointer(self.stack_pointer().wrapping_add(bytes));
    }
}

/// PUSH, POP, PUSHF, POPF.
pub(super) fn push_pop<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = width::to_usize(u64::from(
        exec.insn.stack_pointer_increment().unsigned_abs(),
    ));
    match exec.insn.mnemonic() {
        Mnemonic::Push => {
            let value = if is_segment(exec) {
                let index = segment_index(exec.insn.op0_register());
                u64::from(exec.cpu.system.segments[index].selector)
            } else {
                exec.read_operand(0)?
            };
            exec.push(value, bytes)?;
        }
        Mnemonic::Pop => return pop(exec, bytes),
        Mnemonic::Pushf | Mnemonic::Pushfq | Mnemonic::Pushfd => {
            let value = exec.cpu.rflags() & !HIDDEN_FROM_PUSHF;
            exec.push(value, bytes)?;
        }
        _ => {
            let value = exec.peek(0, bytes)?;
            exec.drop_stack(width::to_u64(bytes));
            let allowed = match exec.cpu.system.cpl {
                0 => POPPED | rflags::IF | rflags::IOPL,
                _ => POPPED,
            };
            let changed = allowed & mask(bytes);
            let old = exec.cpu.rflags() & !rflags::RF;
            exec.cpu.set_rflags((old & !changed) | (value & changed));
        }
    }
    Ok(Flow::Next)
}

fn is_segment<B: Bus>(exec: &Exec<'_, B>) -> bool {
    exec.insn.op0_kind() == OpKind::Register && exec.insn.op0_register().is_segment_register()
}

/// POP: a memory destination is addressed with the stack pointer already moved.
fn pop<B: Bus>(exec: &mut Exec<'_, B>, bytes: usize) -> Step {
    let value = exec.peek(0, bytes)?;
    let old = exec.cpu.reg(Reg::Rsp);
    if is_segment(exec) {
        exec.load_segment(exec.insn.op0_register(), width::low_u16(value))?;
        exec.drop_stack(width::to_u64(bytes));
        return Ok(Flow::Next);
    }
    exec.drop_stack(width::to_u64(bytes));
    let stored = exec
        .place(0)
        .and_then(|place| exec.write(place, value, AccessKind::Write));
    if let Err(fault) = stored {
        exec.cpu.set_reg(Reg::Rsp, old);
        return Err(fault);
    }
    Ok(Flow::Next)
}

/// PUSHA and POPA, which 64-bit mode does not have.
pub(super) fn all_registers<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let (is_push, bytes) = match exec.insn.mnemonic() {
        Mnemonic::Pusha => (true, 2),
        Mnemonic::Pushad => (true, 4),
        Mnemonic::Popa => (false, 2),
        _ => (false, 4),
    };
    let step = width::to_u64(bytes);
    if is_push {
        let top = exec.stack_pointer().wrapping_sub(8 * step);
        let mut image = [0; 32];
        for (index, chunk) in image[..8 * bytes].chunks_mut(bytes).enumerate() {
            chunk.copy_from_slice(&exec.cpu.regs[7 - index].to_le_bytes()[..bytes]);
        }
        let addr = exec.stack_address(top, 8 * bytes)?;
        exec.bus
            .write(addr, &image[..8 * bytes], AccessKind::Write)?;
        exec.set_stack_pointer(top);
        return Ok(Flow::Next);
    }
    let mut image = [0; 32];
    let addr = exec.stack_address(exec.stack_pointer(), 8 * bytes)?;
    exec.bus
        .read(addr, &mut image[..8 * bytes], AccessKind::Read)?;
    for (index, chunk) in image[..8 * bytes].chunks(bytes).enumerate() {
        // The saved stack pointer is skipped.
        if 7 - index != Reg::Rsp as usize {
            let mut word = [0; 8];
            word[..bytes].copy_from_slice(chunk);
            let old = exec.cpu.regs[7 - index];
            exec.cpu.regs[7 - index] = merge(old, u64::from_le_bytes(word), bytes);
        }
    }
    exec.drop_stack(8 * step);
    Ok(Flow::Next)
}

/// Bytes of the largest frame head that ENTER stores: 32 words.
const FRAME_HEAD_MAX: usize = 32 * 8;

/// ENTER: a frame, with copies of outer frame pointers if nested. One load and one store, however deep.
pub(super) fn enter<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let size = u64::from(exec.insn.immediate16());
    let level = usize::from(exec.insn.immediate8_2nd() & 31);
    let bytes = match exec.insn.code() {
        iced_x86::Code::Enterw_imm16_imm8 => 2,
        iced_x86::Code::Enterd_imm16_imm8 => 4,
        _ => 8,
    };
    let step = width::to_u64(bytes);
    let rbp = exec.cpu.reg(Reg::Rbp);
    let frame = exec.stack_pointer().wrapping_sub(step);
    let top = frame.wrapping_sub(width::to_u64(level) * step);
    // From the first push down to the new top of stack, where nothing is stored.
    for slot in 0..=level {
        let addr = exec.stack_address(frame.wrapping_sub(width::to_u64(slot) * step), bytes)?;
        exec.bus
            .read(addr, &mut [0; 8][..bytes], AccessKind::Probe)?;
    }
    let probe = exec.stack_address(top.wrapping_sub(size), 1)?;
    exec.load(probe, 1, AccessKind::Probe)?;

    let outer_bytes = level.saturating_sub(1) * bytes;
    let outer_start = exec.stack_address(rbp.wrapping_sub(width::to_u64(outer_bytes)), 1)?;
    let mut outer = [0; FRAME_HEAD_MAX];
    if outer_bytes > 0 {
        exec.bus
            .read(outer_start, &mut outer[..outer_bytes], AccessKind::Read)?;
    }
    let head_start = exec.stack_address(top, bytes)?;
    let head_bytes = (level + 1) * bytes;
    let mut head = [0; FRAME_HEAD_MAX];
    head[head_bytes - bytes..head_bytes].copy_from_slice(&rbp.to_le_bytes()[..bytes]);
    for slot in 1..level {
        // The words are pushed in turn, so one that was just pushed may be the next to be copied.
        let from = outer_start.wrapping_add(width::to_u64(outer_bytes - slot * bytes));
        let to = head_bytes - (slot + 1) * bytes;
        for index in 0..bytes {
            let at = from.wrapping_add(width::to_u64(index));
            let pushed = width::to_usize(at.wrapping_sub(head_start));
            head[to + index] = if (to + bytes..head_bytes).contains(&pushed) {
                head[pushed]
            } else {
                outer[outer_bytes - slot * bytes + index]
            };
        }
    }
    if level > 0 {
        head[..bytes].copy_from_slice(&frame.to_le_bytes()[..bytes]);
    }
    exec.bus
        .write(head_start, &head[..head_bytes], AccessKind::Write)?;
    exec.set_stack_pointer(top.wrapping_sub(size));
    exec.cpu.set_reg(Reg::Rbp, merge(rbp, frame, bytes));
    Ok(Flow::Next)
}

/// LEAVE: RSP from RBP, then POP RBP.
pub(super) fn leave<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = match exec.insn.code() {
        iced_x86::Code::Leavew => 2,
        iced_x86::Code::Leaved => 4,
        iced_x86::Code::Leaveq => 8,
        _ => return Err(fault::undefined()),
    };
    let rbp = exec.cpu.reg(Reg::Rbp);
    let addr = exec.stack_address(rbp, bytes)?;
    let value = exec.load(addr, bytes, AccessKind::Read)?;
    exec.set_stack_pointer(rbp.wrapping_add(width::to_u64(bytes)));
    exec.cpu.set_reg(Reg::Rbp, merge(rbp, value, bytes));
    Ok(Flow::Next)
}
