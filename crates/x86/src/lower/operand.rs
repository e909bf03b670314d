//! Operands of decoded instructions in the form of ops.

use iced_x86::{ConditionCode, Instruction, OpKind, Register};

use crate::cpu::slot;
use crate::op::Op;

/// Byte offset of a general register in the register file.
pub(super) fn register(register: Register) -> Option<u8> {
    if !register.is_gpr() {
        return None;
    }
    let number = u8::try_from(register.full_register().number()).ok()?;
    let is_high = matches!(
        register,
        Register::AH | Register::CH | Register::DH | Register::BH
    );
    Some(number * 8 + u8::from(is_high))
}

/// Number of an XMM register.
pub(super) fn xmm(register: Register) -> Option<u8> {
    if register.is_xmm() {
        u8::try_from(register.number())
            .ok()
            .filter(|number| *number < 16)
    } else {
        None
    }
}

/// Puts the memory operand into `op`; tells whether index or segment are used, or gives up on forms that are
/// too rare for the fast path (32-bit addresses).
pub(super) fn memory(instruction: &Instruction, op: &mut Op) -> Option<bool> {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    op.disp = instruction.memory_displacement64();
    match base {
        Register::None => {}
        // The decoder has already added RIP.
        Register::RIP => {}
        base if base.is_gpr64() => op.base = register(base)?,
        _ => return None,
    }
    let mut full = false;
    match index {
        Register::None => {}
        index if index.is_gpr64() => {
            op.index = register(index)?;
            op.scale = u8::try_from(instruction.memory_index_scale().trailing_zeros()).ok()?;
            full = true;
        }
        _ => return None,
    }
    match instruction.segment_prefix() {
        Register::FS => {
            op.seg = slot::FS_BASE * 8;
            full = true;
        }
        Register::GS => {
            op.seg = slot::GS_BASE * 8;
            full = true;
        }
        _ => {}
    }
    Some(full)
}

/// An immediate operand, sign-extended as the instruction does.
pub(super) fn immediate(instruction: &Instruction, number: u32) -> Option<u64> {
    match instruction.op_kind(number) {
        OpKind::Immediate8
        | OpKind::Immediate16
        | OpKind::Immediate32
        | OpKind::Immediate64
        | OpKind::Immediate8to16
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32to64 => Some(instruction.immediate(number)),
        _ => None,
    }
}

/// Number of the condition in the low four bits of the opcode.
pub(super) fn condition(instruction: &Instruction) -> Option<u8> {
    (instruction.condition_code() as u8).checked_sub(ConditionCode::o as u8)
}
