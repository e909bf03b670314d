//! String instructions, one iteration at a time.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::arith::subtract;
use super::operand::{Exec, mask, merge};
use super::{Flow, Step, fault};
use crate::cpu::Reg;
use crate::exit::Fault;
use crate::flags::rflags;

/// Width of the address registers in bytes.
fn address_bytes(insn: &Instruction) -> usize {
    for operand in 0..insn.op_count() {
        match insn.op_kind(operand) {
            OpKind::MemorySegSI | OpKind::MemoryESDI => return 2,
            OpKind::MemorySegESI | OpKind::MemoryESEDI => return 4,
            OpKind::MemorySegRSI | OpKind::MemoryESRDI => return 8,
            _ => {}
        }
    }
    8
}

impl<B: Bus> Exec<'_, B> {
    fn source_address(&self, wide: usize, bytes: usize) -> Result<u64, Fault> {
        let offset = self.cpu.reg(Reg::Rsi) & mask(wide);
        self.linear(self.insn.memory_segment(), offset, bytes)
    }

    fn target_address(&self, wide: usize, bytes: usize) -> Result<u64, Fault> {
        let offset = self.cpu.reg(Reg::Rdi) & mask(wide);
        self.linear(Register::ES, offset, bytes)
    }

    /// Moves an index register by one element, in the direction of DF.
    fn advance(&mut self, reg: Reg, wide: usize, bytes: usize) {
        let step = width::to_u64(bytes);
        let old = self.cpu.reg(reg);
        let new = if self.cpu.system_flags & rflags::DF == 0 {
            old.wrapping_add(step)
        } else {
            old.wrapping_sub(step)
        };
        self.cpu.set_reg(reg, merge(old, new, wide));
    }

    fn is_repeated(&self) -> bool {
        self.insn.has_rep_prefix() || self.insn.has_repne_prefix()
    }

    fn is_exhausted(&self, wide: usize) -> bool {
        self.is_repeated() && self.cpu.reg(Reg::Rcx) & mask(wide) == 0
    }

    /// Counts the iteration; `again` is what the comparison says.
    fn count_down(&mut self, wide: usize, again: bool) -> Flow {
        if !self.is_repeated() {
            return Flow::Next;
        }
        let old = self.cpu.reg(Reg::Rcx);
        let left = old.wrapping_sub(1) & mask(wide);
        self.cpu.set_reg(Reg::Rcx, merge(old, left, wide));
        if left != 0 && again {
            Flow::Repeat
        } else {
            Flow::Next
        }
    }
}

/// MOVS, STOS, LODS, SCAS, CMPS.
pub(super) fn execute<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    use Mnemonic as M;
    let wide = address_bytes(exec.insn);
    if exec.is_exhausted(wide) {
        return Ok(Flow::Next);
    }
    let bytes = exec.insn.memory_size().size();
    let mut again = true;
    match exec.insn.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => {
            let from = exec.source_address(wide, bytes)?;
            let to = exec.target_address(wide, bytes)?;
            let value = exec.load(from, bytes, AccessKind::Read)?;
            exec.store(to, value, bytes, AccessKind::Write)?;
            exec.advance(Reg::Rsi, wide, bytes);
            exec.advance(Reg::Rdi, wide, bytes);
        }
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => {
            let to = exec.target_address(wide, bytes)?;
            let value = exec.cpu.reg(Reg::Rax);
            exec.store(to, value, bytes, AccessKind::Write)?;
            exec.advance(Reg::Rdi, wide, bytes);
        }
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => {
            let from = exec.source_address(wide, bytes)?;
            let value = exec.load(from, bytes, AccessKind::Read)?;
            let rax = exec.cpu.reg(Reg::Rax);
            exec.cpu.set_reg(Reg::Rax, merge(rax, value, bytes));
            exec.advance(Reg::Rsi, wide, bytes);
        }
        M::Scasb | M::Scasw | M::Scasd | M::Scasq => {
            let at = exec.target_address(wide, bytes)?;
            let value = exec.load(at, bytes, AccessKind::Read)?;
            again = exec.compare(exec.cpu.reg(Reg::Rax) & mask(bytes), value, bytes);
            exec.advance(Reg::Rdi, wide, bytes);
        }
        _ => {
            let first = exec.source_address(wide, bytes)?;
            let second = exec.target_address(wide, bytes)?;
            let a = exec.load(first, bytes, AccessKind::Read)?;
            let b = exec.load(second, bytes, AccessKind::Read)?;
            again = exec.compare(a, b, bytes);
            exec.advance(Reg::Rsi, wide, bytes);
            exec.advance(Reg::Rdi, wide, bytes);
        }
    }
    Ok(exec.count_down(wide, again))
}

impl<B: Bus> Exec<'_, B> {
    /// Sets the flags; true if REPE or REPNE would go on.
    fn compare(&mut self, a: u64, b: u64, bytes: usize) -> bool {
        let (_, flags) = subtract(a, b, false, bytes);
        self.cpu.flags = flags;
        flags.zero() != self.insn.has_repne_prefix()
    }
}

/// INS and OUTS.
pub(super) fn port<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_ports()?;
    let wide = address_bytes(exec.insn);
    if exec.is_exhausted(wide) {
        return Ok(Flow::Next);
    }
    let bytes = exec.insn.memory_size().size();
    let count = u8::try_from(bytes).unwrap_or(4);
    let number = width::low_u16(exec.cpu.reg(Reg::Rdx));
    let is_input = matches!(
        exec.insn.mnemonic(),
        Mnemonic::Insb | Mnemonic::Insw | Mnemonic::Insd
    );
    if is_input {
        let to = exec.target_address(wide, bytes)?;
        // The store must be known to succeed before the port is touched.
        exec.load(to, bytes, AccessKind::Probe)?;
        let Some(system) = exec.bus.system() else {
            return Err(fault::protection(0));
        };
        let value = system.port_in(number, count);
        exec.store(to, u64::from(value), bytes, AccessKind::Write)?;
        exec.advance(Reg::Rdi, wide, bytes);
    } else {
        let from = exec.source_address(wide, bytes)?;
        let value = exec.load(from, bytes, AccessKind::Read)?;
        let Some(system) = exec.bus.system() else {
            return Err(fault::protection(0));
        };
        system.port_out(number, width::low_u32(value), count);
        exec.advance(Reg::Rsi, wide, bytes);
    }
    Ok(exec.count_down(wide, true))
}
