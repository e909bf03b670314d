//! SSE to SSE4.2: mostly native stubs, with the few instructions that a stub cannot do.

use iced_x86::{Mnemonic, OpKind};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, mask};
use super::{Flow, Step, fault, reciprocal};
use crate::cpu::Reg;
use crate::exit::Fault;
use crate::stub::{MemoryUse, OperandBuffer, StubRef};
use crate::system::{cr0, cr4};

/// Bits of MXCSR that our processor has (DAZ included).
const MXCSR_VALID: u32 = 0xFFFF;

impl<B: Bus> Exec<'_, B> {
    /// #UD or #NM where the kernel has switched SSE off.
    pub(super) fn require_sse(&self) -> Result<(), Fault> {
        let system = &self.cpu.system;
        if system.cr0 & cr0::EM != 0 || system.cr4 & cr4::OSFXSR == 0 {
            return Err(fault::undefined());
        }
        if system.cr0 & cr0::TS != 0 {
            return Err(fault::no_device());
        }
        Ok(())
    }
}

/// Any instruction with an XMM operand, and LDMXCSR, STMXCSR.
pub(super) fn execute<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    exec.require_sse()?;
    match exec.insn.mnemonic() {
        Mnemonic::Ldmxcsr => {
            let value = width::low_u32(exec.read_operand(0)?);
            if value & !MXCSR_VALID != 0 {
                return Err(fault::protection(0));
            }
            exec.cpu.fx.mxcsr = value;
            Ok(Flow::Next)
        }
        Mnemonic::Stmxcsr => {
            let place = exec.place(0)?;
            exec.write(place, u64::from(exec.cpu.fx.mxcsr), AccessKind::Write)?;
            Ok(Flow::Next)
        }
        Mnemonic::Rcpps | Mnemonic::Rcpss | Mnemonic::Rsqrtps | Mnemonic::Rsqrtss => estimate(exec),
        Mnemonic::Maskmovdqu => {
            let (source, selector) = (exec.insn.op1_register(), exec.insn.op2_register());
            let source = exec.cpu.xmm[source.number()];
            let selector = exec.cpu.xmm[selector.number()];
            masked_store(exec, &source, &selector)
        }
        _ => {
            let Some(stub) = exec.stubs.get(exec.insn) else {
                return Ok(Flow::Unsupported);
            };
            let mut operand = OperandBuffer::default();
            let addr = load_operand(exec, stub, &mut operand)?;
            exec.stubs.run(stub, exec.cpu, &mut operand)?;
            store_operand(exec, stub, addr, &operand)?;
            Ok(Flow::Next)
        }
    }
}

/// Loads the memory operand of a stub, and gives its address.
pub(super) fn load_operand<B: Bus>(
    exec: &mut Exec<'_, B>,
    stub: StubRef,
    operand: &mut OperandBuffer,
) -> Result<u64, Fault> {
    if stub.memory == MemoryUse::None {
        return Ok(0);
    }
    let bytes = usize::from(stub.bytes);
    let addr = exec.aligned_address(bytes, u64::from(stub.align))?;
    if stub.memory == MemoryUse::Read {
        exec.bus
            .read(addr, &mut operand.0[..bytes], AccessKind::Read)?;
    }
    Ok(addr)
}

/// Stores the memory operand of a stub. Instructions that store change nothing else.
pub(super) fn store_operand<B: Bus>(
    exec: &mut Exec<'_, B>,
    stub: StubRef,
    addr: u64,
    operand: &OperandBuffer,
) -> Result<(), Fault> {
    if stub.memory != MemoryUse::Write {
        return Ok(());
    }
    let bytes = usize::from(stub.bytes);
    exec.bus.write(addr, &operand.0[..bytes], AccessKind::Write)
}

/// MASKMOVDQU and MASKMOVQ: stores the bytes whose selector has its top bit set, at DS:RDI.
pub(super) fn masked_store<B: Bus>(exec: &mut Exec<'_, B>, source: &[u8], selector: &[u8]) -> Step {
    let wide = match exec.insn.op0_kind() {
        OpKind::MemorySegDI => 2,
        OpKind::MemorySegEDI => 4,
        _ => 8,
    };
    let offset = exec.cpu.reg(Reg::Rdi) & mask(wide);
    let start = exec.linear(exec.insn.memory_segment(), offset, source.len())?;
    // The whole operand must be writable, even where no byte is chosen.
    let mut merged = [0; 16];
    exec.bus
        .read(start, &mut merged[..source.len()], AccessKind::Probe)?;
    let chosen: Vec<usize> = (0..source.len())
        .filter(|index| selector[*index] & 0x80 != 0)
        .collect();
    for index in &chosen {
        merged[*index] = source[*index];
    }
    // One store from the first chosen byte to the last; those between keep their value.
    if let (Some(first), Some(last)) = (chosen.first(), chosen.last()) {
        let addr = start.wrapping_add(width::to_u64(*first));
        exec.bus
            .write(addr, &merged[*first..=*last], AccessKind::Write)?;
    }
    Ok(Flow::Next)
}

/// RCPPS, RCPSS, RSQRTPS, RSQRTSS in software, because processors differ.
fn estimate<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let mnemonic = exec.insn.mnemonic();
    let is_scalar = matches!(mnemonic, Mnemonic::Rcpss | Mnemonic::Rsqrtss);
    let bytes = if is_scalar { 4 } else { 16 };
    let mut source = [0; 16];
    if exec.is_memory(1) {
        let align = if is_scalar { 1 } else { 16 };
        let addr = exec.aligned_address(bytes, align)?;
        exec.bus
            .read(addr, &mut source[..bytes], AccessKind::Read)?;
    } else {
        source = exec.cpu.xmm[exec.insn.op1_register().number()];
    }
    let target = &mut exec.cpu.xmm[exec.insn.op0_register().number()];
    for (to, from) in target[..bytes].chunks_mut(4).zip(source.chunks(4)) {
        let value = u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
        let result = if matches!(mnemonic, Mnemonic::Rcpps | Mnemonic::Rcpss) {
            reciprocal::rcp(value)
        } else {
            reciprocal::rsqrt(value)
        };
        to.copy_from_slice(&result.to_le_bytes());
    }
    Ok(Flow::Next)
}
