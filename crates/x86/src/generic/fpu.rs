//! x87 and MMX: the arithmetic is native, the control instructions are ours.

use iced_x86::{Mnemonic, OpKind, Register};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::Exec;
use super::{Flow, Step, fault, fpu_env, vector};
use crate::cpu::FxState;
use crate::exit::Fault;
use crate::flags::Flags;
use crate::stub::{FxImage, MemoryUse, OperandBuffer};
use crate::system::cr0;

/// Status word: exception flags, stack fault, error summary, busy (SDM vol. 1, 8.1.3).
pub(super) const SW_EXCEPTIONS: u16 = 0x3F;
const SW_ERROR_SUMMARY: u16 = 1 << 7;
const SW_BUSY: u16 = 1 << 15;
const SW_CLEARED_BY_FNCLEX: u16 = 0xFF | SW_BUSY;
const SW_TOP: u16 = 7 << 11;
/// Control word after FNINIT, and the bits that can be set; bit 6 always reads as one.
const CW_INITIAL: u16 = 0x37F;
const CW_VALID: u16 = 0x1F3F;
const CW_FIXED: u16 = 0x40;

impl FxState {
    /// Number of the physical register that is ST(0).
    pub(super) fn top(&self) -> u16 {
        self.fsw >> 11 & 7
    }

    /// Changes the top of stack without moving any physical register.
    pub(super) fn set_top(&mut self, top: u16) {
        let turn = usize::from((top + 8 - self.top()) & 7);
        self.st.rotate_left(turn);
        self.fsw = (self.fsw & !SW_TOP) | top << 11;
    }

    /// Stores the control word, as far as its bits exist.
    pub(super) fn set_control(&mut self, value: u16) {
        self.fcw = (value & CW_VALID) | CW_FIXED;
        self.update_summary();
    }

    /// The summary and busy bits say whether an unmasked exception is pending.
    pub(crate) fn update_summary(&mut self) {
        let bits = SW_ERROR_SUMMARY | SW_BUSY;
        if self.fsw & !self.fcw & SW_EXCEPTIONS != 0 {
            self.fsw |= bits;
        } else {
            self.fsw &= !bits;
        }
    }

    /// FNINIT: the registers keep their bits.
    pub(super) fn reset_x87(&mut self) {
        self.set_top(0);
        self.fcw = CW_INITIAL;
        self.fsw = 0;
        self.ftw = 0;
    }
}

impl<B: Bus> Exec<'_, B> {
    fn require_x87(&self) -> Result<(), Fault> {
        if self.cpu.system.cr0 & (cr0::EM | cr0::TS) != 0 {
            return Err(fault::no_device());
        }
        Ok(())
    }

    /// #MF if an unmasked exception is pending.
    fn require_no_pending(&self) -> Result<(), Fault> {
        if self.cpu.fx.fsw & SW_ERROR_SUMMARY != 0 {
            return Err(fault::x87());
        }
        Ok(())
    }
}

/// The x87 instructions, EMMS, WAIT, FXSAVE and FXRSTOR.
pub(super) fn x87<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    use Mnemonic as M;
    let mnemonic = exec.insn.mnemonic();
    if mnemonic == M::Wait {
        let both = cr0::MP | cr0::TS;
        if exec.cpu.system.cr0 & both == both {
            return Err(fault::no_device());
        }
        exec.require_no_pending()?;
        return Ok(Flow::Next);
    }
    exec.require_x87()?;
    let is_patient = matches!(
        mnemonic,
        M::Fninit
            | M::Fnclex
            | M::Fnstcw
            | M::Fnstsw
            | M::Fnstenv
            | M::Fnsave
            | M::Fndisi
            | M::Fneni
            | M::Fnsetpm
            | M::Fxsave
            | M::Fxsave64
            | M::Fxrstor
            | M::Fxrstor64
    );
    if !is_patient {
        exec.require_no_pending()?;
    }
    match mnemonic {
        M::Fninit | M::Finit => exec.cpu.fx.reset_x87(),
        M::Fnclex | M::Fclex => exec.cpu.fx.fsw &= !SW_CLEARED_BY_FNCLEX,
        M::Fnop | M::Fndisi | M::Fdisi | M::Fneni | M::Feni | M::Fnsetpm | M::Fsetpm => {}
        M::Emms => {
            exec.cpu.fx.set_top(0);
            exec.cpu.fx.ftw = 0;
        }
        M::Fnstcw | M::Fstcw => store_word(exec, exec.cpu.fx.fcw)?,
        M::Fnstsw | M::Fstsw => store_word(exec, exec.cpu.fx.fsw)?,
        M::Fldcw => {
            let value = width::low_u16(exec.read_operand(0)?);
            exec.cpu.fx.set_control(value);
        }
        M::Fnstenv | M::Fstenv => fpu_env::store_environment(exec)?,
        M::Fldenv => fpu_env::load_environment(exec)?,
        M::Fnsave | M::Fsave => fpu_env::save(exec)?,
        M::Frstor => fpu_env::restore(exec)?,
        M::Fxsave | M::Fxsave64 => fpu_env::fxsave(exec)?,
        M::Fxrstor | M::Fxrstor64 => fpu_env::fxrstor(exec)?,
        _ => return native(exec),
    }
    Ok(Flow::Next)
}

fn store_word<B: Bus>(exec: &mut Exec<'_, B>, value: u16) -> Result<(), Fault> {
    if exec.insn.op0_kind() == OpKind::Register {
        exec.cpu.set_gpr(Register::AX, u64::from(value));
        return Ok(());
    }
    let place = exec.place(0)?;
    exec.write(place, u64::from(value), AccessKind::Write)
}

/// Runs the stub on a copy of the state, stores, and only then keeps the copy.
fn native<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let Some(stub) = exec.stubs.get(exec.insn) else {
        return Ok(Flow::Unsupported);
    };
    let mut operand = OperandBuffer::default();
    let addr = vector::load_operand(exec, stub, &mut operand)?;
    let mut image = FxImage::new(exec.cpu.fx);
    let flags = exec.cpu.flags.to_rflags();
    let outcome = exec.stubs.run_x87(stub, &mut image, &mut operand, flags);
    let mut state = image.state;
    // An unmasked exception other than loss of precision suppresses the store.
    let is_suppressed = state.fsw & !state.fcw & 0x1F != 0;
    if stub.memory == MemoryUse::Write && is_suppressed {
        // The place must be writable all the same.
        let bytes = usize::from(stub.bytes);
        exec.bus
            .read(addr, &mut operand.0[..bytes], AccessKind::Probe)?;
    } else {
        vector::store_operand(exec, stub, addr, &operand)?;
    }
    clean(&mut state, &exec.cpu.fx);
    exec.cpu.fx = state;
    if let Some(rflags) = outcome.rflags {
        exec.cpu.flags = Flags::from_rflags(rflags);
    }
    Ok(Flow::Next)
}

/// Removes everything that depends on the host.
fn clean(state: &mut FxState, before: &FxState) {
    state.mxcsr = before.mxcsr;
    state.mxcsr_mask = before.mxcsr_mask;
    state.reserved = 0;
    state.fop = 0;
    state.fip = 0;
    state.fdp = 0;
    for register in &mut state.st {
        register[10..].fill(0);
    }
}

/// Any instruction with an MMX operand: the x87 stack becomes eight flat registers.
pub(super) fn mmx<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.cpu.system.cr0 & cr0::EM != 0 {
        return Err(fault::undefined());
    }
    exec.require_x87()?;
    if is_conversion_from_memory(exec) {
        return mmx_body(exec);
    }
    exec.require_no_pending()?;
    let saved = exec.cpu.fx;
    exec.cpu.fx.set_top(0);
    exec.cpu.fx.ftw = 0xFF;
    let result = mmx_body(exec);
    if result.is_err() {
        let mxcsr = exec.cpu.fx.mxcsr;
        exec.cpu.fx = saved;
        exec.cpu.fx.mxcsr = mxcsr;
    }
    result
}

/// CVTPI2PD and CVTPI2PS with a memory operand use no MMX register, so the x87 stack stays.
fn is_conversion_from_memory<B: Bus>(exec: &Exec<'_, B>) -> bool {
    matches!(
        exec.insn.mnemonic(),
        Mnemonic::Cvtpi2pd | Mnemonic::Cvtpi2ps
    ) && exec.is_memory(1)
}

fn mmx_body<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    if exec.insn.mnemonic() == Mnemonic::Maskmovq {
        let source = exec.cpu.fx.st[exec.insn.op1_register().number()];
        let selector = exec.cpu.fx.st[exec.insn.op2_register().number()];
        return vector::masked_store(exec, &source[..8], &selector[..8]);
    }
    let Some(stub) = exec.stubs.get(exec.insn) else {
        return Ok(Flow::Unsupported);
    };
    let mut operand = OperandBuffer::default();
    let addr = vector::load_operand(exec, stub, &mut operand)?;
    exec.stubs.run(stub, exec.cpu, &mut operand)?;
    vector::store_operand(exec, stub, addr, &operand)?;
    Ok(Flow::Next)
}
