//! What translated code knows of an op: the meaning that its handler has in its type.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

use crate::fast::alu::{Form, kind};
use crate::fast::shift;

/// The meaning of an op whose handler is one of the specialised ones; operands are in the op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Template {
    /// Only its handler knows.
    Interpreted,
    Nothing,
    /// A flagged program point.
    Point,
    /// The record of a block in the log.
    BlockHead,
    CopyRegister {
        size: usize,
    },
    Constant {
        size: usize,
    },
    Load {
        size: usize,
    },
    StoreRegister {
        size: usize,
    },
    StoreConstant {
        size: usize,
    },
    ExtendRegister {
        from: usize,
        to: usize,
        is_signed: bool,
    },
    ExtendMemory {
        from: usize,
        to: usize,
        is_signed: bool,
    },
    Address {
        size: usize,
    },
    PushRegister,
    PushConstant,
    PopRegister,
    Arithmetic {
        form: Form,
        kind: u8,
        size: usize,
        sets_flags: bool,
    },
    Shift {
        kind: u8,
        size: usize,
        sets_flags: bool,
    },
    SetIf {
        condition: u8,
    },
    CopyIf {
        condition: u8,
        size: usize,
    },
    /// A comparison and the conditional jump behind it.
    Branch {
        form: Form,
        kind: u8,
        size: usize,
        condition: u8,
    },
    JumpIf {
        condition: u8,
    },
    Jump,
    Call,
    Return,
}

impl Template {
    /// The template of an instruction for which there is a specialised handler.
    pub(crate) fn of(instruction: &Instruction) -> Self {
        let mnemonic = instruction.mnemonic();
        match mnemonic {
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Endbr32 => Self::Nothing,
            Mnemonic::Mov => mov(instruction),
            Mnemonic::Movzx => extend(instruction, false),
            Mnemonic::Movsx | Mnemonic::Movsxd => extend(instruction, true),
            Mnemonic::Lea => Self::Address {
                size: size(instruction, 0),
            },
            Mnemonic::Push => match instruction.op0_kind() {
                OpKind::Register => Self::PushRegister,
                OpKind::Memory => Self::Interpreted,
                _ => Self::PushConstant,
            },
            Mnemonic::Pop => Self::PopRegister,
            Mnemonic::Jmp if instruction.is_jmp_short_or_near() => Self::Jump,
            Mnemonic::Call if instruction.is_call_near() => Self::Call,
            Mnemonic::Ret => Self::Return,
            Mnemonic::Shl | Mnemonic::Sal => shifted(instruction, shift::kind::SHL),
            Mnemonic::Shr => shifted(instruction, shift::kind::SHR),
            Mnemonic::Sar => shifted(instruction, shift::kind::SAR),
            _ => arithmetic(instruction).unwrap_or_else(|| conditional(instruction)),
        }
    }

    /// The same without flags, where nobody reads them.
    pub(crate) fn without_flags(self) -> Self {
        match self {
            Self::Arithmetic {
                form, kind, size, ..
            } => Self::Arithmetic {
                form,
                kind,
                size,
                sets_flags: false,
            },
            Self::Shift { kind, size, .. } => Self::Shift {
                kind,
                size,
                sets_flags: false,
            },
            other => other,
        }
    }

    /// Whether it ends its block.
    pub(super) fn is_last(self) -> bool {
        matches!(
            self,
            Self::Branch { .. } | Self::JumpIf { .. } | Self::Jump | Self::Call | Self::Return
        )
    }
}

/// Size in bytes of an operand.
fn size(instruction: &Instruction, operand: u32) -> usize {
    match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).size(),
        _ => instruction.memory_size().size(),
    }
}

fn is_register(instruction: &Instruction, operand: u32) -> bool {
    instruction.op_kind(operand) == OpKind::Register
}

fn is_memory(instruction: &Instruction, operand: u32) -> bool {
    instruction.op_kind(operand) == OpKind::Memory
}

fn mov(instruction: &Instruction) -> Template {
    if is_memory(instruction, 0) {
        if is_register(instruction, 1) {
            let size = size(instruction, 1);
            return Template::StoreRegister { size };
        }
        let size = size(instruction, 0);
        return Template::StoreConstant { size };
    }
    let size = size(instruction, 0);
    if is_memory(instruction, 1) {
        Template::Load { size }
    } else if is_register(instruction, 1) {
        Template::CopyRegister { size }
    } else {
        Template::Constant { size }
    }
}

fn extend(instruction: &Instruction, is_signed: bool) -> Template {
    let (from, to) = (size(instruction, 1), size(instruction, 0));
    if is_memory(instruction, 1) {
        Template::ExtendMemory {
            from,
            to,
            is_signed,
        }
    } else {
        Template::ExtendRegister {
            from,
            to,
            is_signed,
        }
    }
}

/// Shifts by CL keep their handlers: what they do to the flags depends on the count.
fn shifted(instruction: &Instruction, kind: u8) -> Template {
    if is_register(instruction, 1) {
        return Template::Interpreted;
    }
    Template::Shift {
        kind,
        size: size(instruction, 0),
        sets_flags: true,
    }
}

/// ADC and SBB keep their handlers.
fn arithmetic(instruction: &Instruction) -> Option<Template> {
    let kind = match instruction.mnemonic() {
        Mnemonic::Add => kind::ADD,
        Mnemonic::Or => kind::OR,
        Mnemonic::And => kind::AND,
        Mnemonic::Sub => kind::SUB,
        Mnemonic::Xor => kind::XOR,
        Mnemonic::Cmp => kind::CMP,
        Mnemonic::Test => kind::TEST,
        Mnemonic::Inc => kind::INC,
        Mnemonic::Dec => kind::DEC,
        Mnemonic::Neg => kind::NEG,
        Mnemonic::Not => kind::NOT,
        _ => return None,
    };
    let has_second = instruction.op_count() > 1;
    let form = if is_memory(instruction, 0) {
        if has_second && is_register(instruction, 1) {
            Form::MemReg
        } else {
            Form::MemImm
        }
    } else if has_second && is_register(instruction, 1) {
        Form::RegReg
    } else if has_second && is_memory(instruction, 1) {
        Form::RegMem
    } else {
        Form::RegImm
    };
    Some(Template::Arithmetic {
        form,
        kind,
        size: size(instruction, 0),
        sets_flags: true,
    })
}

/// Number of the parity conditions, without the bit that negates.
const PARITY: u8 = 5;

fn conditional(instruction: &Instruction) -> Template {
    let number = (instruction.condition_code() as u8).checked_sub(ConditionCode::o as u8);
    let Some(condition) = number.filter(|number| number >> 1 != PARITY) else {
        return Template::Interpreted;
    };
    if instruction.is_jcc_short_or_near() {
        Template::JumpIf { condition }
    } else if instruction.op_count() == 1 && is_register(instruction, 0) {
        Template::SetIf { condition }
    } else if instruction.op_count() == 2 && is_register(instruction, 1) {
        let size = size(instruction, 0);
        Template::CopyIf { condition, size }
    } else {
        Template::Interpreted
    }
}
