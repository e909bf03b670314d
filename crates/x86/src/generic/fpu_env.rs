//! Images of the floating-point state in memory. We build them ourselves, with all pointers zero.

use iced_x86::Code;
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::fault;
use super::operand::Exec;
use crate::cpu::FxState;
use crate::exit::Fault;

/// Sizes of the environment with 16-bit and 32-bit fields.
const SHORT: usize = 14;
const LONG: usize = 28;
/// Bytes of FXSAVE that the processor writes: x87, MXCSR and sixteen XMM registers.
const FXSAVE_USED: usize = 416;
/// Bytes of FXSAVE that must be accessible.
const FXSAVE_BYTES: usize = 512;
const XMM_OFFSET: usize = 160;
const EMPTY_TAG: u16 = 3;

impl FxState {
    /// The tag word of FNSTENV, two bits per physical register.
    pub fn full_tags(&self) -> u16 {
        (0..8).fold(0, |tags, physical: u16| {
            let tag = if self.ftw >> physical & 1 == 0 {
                EMPTY_TAG
            } else {
                let slot = usize::from((physical + 8 - self.top()) & 7);
                tag_of(&self.st[slot])
            };
            tags | tag << (2 * physical)
        })
    }
}

/// Valid 0, zero 1, special 2 (SDM vol. 1, 8.1.7).
fn tag_of(register: &[u8; 16]) -> u16 {
    let exponent = u16::from_le_bytes([register[8], register[9]]) & 0x7FFF;
    let is_integer_bit_set = register[7] & 0x80 != 0;
    let is_zero = register[..8].iter().all(|byte| *byte == 0);
    match exponent {
        0 if is_zero => 1,
        0 | 0x7FFF => 2,
        _ if is_integer_bit_set => 0,
        _ => 2,
    }
}

fn abridged_tags(full: u16) -> u8 {
    (0..8).fold(0, |tags, physical| {
        tags | u8::from(full >> (2 * physical) & 3 != EMPTY_TAG) << physical
    })
}

/// Size of the environment part of this instruction's image.
fn environment_size(code: Code) -> usize {
    match code {
        Code::Fnstenv_m14byte
        | Code::Fstenv_m14byte
        | Code::Fldenv_m14byte
        | Code::Fnsave_m94byte
        | Code::Fsave_m94byte
        | Code::Frstor_m94byte => SHORT,
        _ => LONG,
    }
}

/// Control, status and tag word, then pointers; the unused halves of 32-bit fields are ones.
fn environment(state: &FxState, size: usize) -> [u8; LONG] {
    let words = [state.fcw, state.fsw, state.full_tags()];
    let mut image = [0; LONG];
    for (index, word) in words.into_iter().enumerate() {
        if size == SHORT {
            image[2 * index..][..2].copy_from_slice(&word.to_le_bytes());
        } else {
            image[4 * index..][..2].copy_from_slice(&word.to_le_bytes());
            image[4 * index + 2..][..2].fill(0xFF);
        }
    }
    if size == LONG {
        image[26..28].fill(0xFF);
    }
    image
}

fn set_environment(state: &mut FxState, image: &[u8], size: usize) {
    let word = |index: usize| {
        let at = index * if size == SHORT { 2 } else { 4 };
        u16::from_le_bytes([image[at], image[at + 1]])
    };
    let status = word(1);
    state.set_top(status >> 11 & 7);
    state.fsw = status;
    state.ftw = abridged_tags(word(2));
    state.set_control(word(0));
}

/// FNSTENV: stores the environment, then masks all exceptions.
pub(super) fn store_environment<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(), Fault> {
    let size = environment_size(exec.insn.code());
    let addr = exec.memory_address(size)?;
    let image = environment(&exec.cpu.fx, size);
    exec.bus.write(addr, &image[..size], AccessKind::Write)?;
    let control = exec.cpu.fx.fcw | super::fpu::SW_EXCEPTIONS;
    exec.cpu.fx.set_control(control);
    Ok(())
}

/// FLDENV.
pub(super) fn load_environment<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(), Fault> {
    let size = environment_size(exec.insn.code());
    let addr = exec.memory_address(size)?;
    let mut image = [0; LONG];
    exec.bus.read(addr, &mut image[..size], AccessKind::Read)?;
    set_environment(&mut exec.cpu.fx, &image, size);
    Ok(())
}

/// FNSAVE: environment and registers, then FNINIT.
pub(super) fn save<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(), Fault> {
    let size = environment_size(exec.insn.code());
    let addr = exec.memory_address(size + 80)?;
    let mut image = [0; LONG + 80];
    image[..size].copy_from_slice(&environment(&exec.cpu.fx, size)[..size]);
    for (index, register) in exec.cpu.fx.st.iter().enumerate() {
        image[size + 10 * index..][..10].copy_from_slice(&register[..10]);
    }
    exec.bus
        .write(addr, &image[..size + 80], AccessKind::Write)?;
    exec.cpu.fx.reset_x87();
    Ok(())
}

/// FRSTOR.
pub(super) fn restore<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(), Fault> {
    let size = environment_size(exec.insn.code());
    let addr = exec.memory_address(size + 80)?;
    let mut image = [0; LONG + 80];
    exec.bus
        .read(addr, &mut image[..size + 80], AccessKind::Read)?;
    set_environment(&mut exec.cpu.fx, &image, size);
    for (index, register) in exec.cpu.fx.st.iter_mut().enumerate() {
        register[..10].copy_from_slice(&image[size + 10 * index..][..10]);
    }
    Ok(())
}

/// FXSAVE and FXSAVE64, which differ only in the pointers.
pub(super) fn fxsave<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(), Fault> {
    let addr = image_address(exec)?;
    // The last part is not written, but must be writable.
    let last = addr.wrapping_add(width::to_u64(FXSAVE_BYTES - 1));
    exec.load(last, 1, AccessKind::Probe)?;
    let state = &exec.cpu.fx;
    let mut image = [0; FXSAVE_USED];
    image[0..2].copy_from_slice(&state.fcw.to_le_bytes());
    image[2..4].copy_from_slice(&state.fsw.to_le_bytes());
    image[4] = state.ftw;
    image[24..28].copy_from_slice(&state.mxcsr.to_le_bytes());
    image[28..32].copy_from_slice(&state.mxcsr_mask.to_le_bytes());
    let registers = state.st.iter().chain(&exec.cpu.xmm);
    for (to, from) in image[32..].chunks_mut(16).zip(registers) {
        to.copy_from_slice(from);
    }
    exec.bus.write(addr, &image, AccessKind::Write)
}

/// FXRSTOR and FXRSTOR64.
pub(super) fn fxrstor<B: Bus>(exec: &mut Exec<'_, B>) -> Result<(), Fault> {
    let addr = image_address(exec)?;
    let mut image = [0; FXSAVE_BYTES];
    exec.bus.read(addr, &mut image, AccessKind::Read)?;
    let word = |at: usize| u16::from_le_bytes([image[at], image[at + 1]]);
    let mxcsr = u32::from_le_bytes([image[24], image[25], image[26], image[27]]);
    if mxcsr & !0xFFFF != 0 {
        return Err(fault::protection(0));
    }
    let state = &mut exec.cpu.fx;
    state.fsw = word(2);
    state.ftw = image[4];
    state.mxcsr = mxcsr;
    state.set_control(word(0));
    for (register, from) in state.st.iter_mut().zip(image[32..].chunks(16)) {
        register[..10].copy_from_slice(&from[..10]);
        register[10..].fill(0);
    }
    for (register, from) in exec.cpu.xmm.iter_mut().zip(image[XMM_OFFSET..].chunks(16)) {
        register.copy_from_slice(from);
    }
    Ok(())
}

/// Unlike for SSE operands, an address that is not canonical counts before one that is not aligned.
fn image_address<B: Bus>(exec: &Exec<'_, B>) -> Result<u64, Fault> {
    let addr = exec.memory_address(FXSAVE_BYTES)?;
    if addr.is_multiple_of(16) {
        Ok(addr)
    } else {
        Err(fault::protection(0))
    }
}
