//! What translated code knows of an op: the meaning that its handler has in its type.

use crate::fast::alu::{Form, kind};
use crate::fast::shift;
use crate::stub::MemoryUse;

/// Number of the parity conditions, without the bit that negates.
const PARITY: u8 = 5;

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
    /// A shift or rotation by CL.
    ShiftByCl {
        kind: u8,
        size: usize,
        sets_flags: bool,
    },
    Multiply {
        product: Product,
        size: usize,
        sets_flags: bool,
    },
    SwapBytes {
        size: usize,
    },
    ExchangeRegisters {
        size: usize,
    },
    /// CDQ, CQO.
    SignToRdx {
        size: usize,
    },
    /// Sixteen bytes from one XMM register to another.
    CopyVector,
    XorVector,
    LoadVector {
        is_aligned: bool,
    },
    StoreVector {
        is_aligned: bool,
    },
    /// The low bytes of an XMM register from memory or a general register; the others become zero.
    LoadLow {
        size: usize,
    },
    LowFromRegister {
        size: usize,
    },
    /// The low bytes of an XMM register to memory or a general register.
    StoreLow {
        size: usize,
    },
    LowToRegister {
        size: usize,
    },
    /// An SSE instruction by its native stub, which begins where the op's `next` says and has so many bytes before
    /// its end; `src` and `dst` of the op are as `fast::vector` has them.
    Stub {
        length: u8,
        memory: MemoryUse,
        is_float: bool,
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

/// What is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    OfRegisters,
    /// The source with a constant.
    WithConstant,
    /// RAX with the source into RDX:RAX.
    Wide,
    WideSigned,
}

impl Template {
    /// That of an arithmetic operation.
    pub(crate) fn arithmetic(form: Form, kind: u8, size: usize) -> Self {
        Self::Arithmetic {
            form,
            kind,
            size,
            sets_flags: true,
        }
    }

    /// Whether there is code for it: not where the parity of flags of whatever kind is needed, nor where some flags are
    /// to be set and others stay.
    pub(crate) fn is_translated(self) -> bool {
        match self {
            Self::Interpreted => false,
            Self::Arithmetic {
                kind: kind::ADC | kind::SBB,
                form,
                sets_flags,
                ..
            } => !sets_flags && matches!(form, Form::RegReg | Form::RegImm),
            Self::Shift {
                kind: shift::kind::ROL | shift::kind::ROR,
                sets_flags,
                ..
            }
            | Self::ShiftByCl { sets_flags, .. }
            | Self::Multiply { sets_flags, .. } => !sets_flags,
            Self::SetIf { condition }
            | Self::CopyIf { condition, .. }
            | Self::JumpIf { condition } => condition >> 1 != PARITY,
            _ => true,
        }
    }

    /// The same without flags, where no instruction reads them.
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
            Self::ShiftByCl { kind, size, .. } => Self::ShiftByCl {
                kind,
                size,
                sets_flags: false,
            },
            Self::Multiply { product, size, .. } => Self::Multiply {
                product,
                size,
                sets_flags: false,
            },
            other => other,
        }
    }

    /// Whether it does different things for different flags.
    pub(super) fn reads_flags(self) -> bool {
        matches!(
            self,
            Self::JumpIf { .. }
                | Self::SetIf { .. }
                | Self::CopyIf { .. }
                | Self::Arithmetic {
                    kind: kind::ADC | kind::SBB,
                    ..
                }
        )
    }

    /// Whether it ends its block.
    pub(super) fn is_last(self) -> bool {
        matches!(
            self,
            Self::Branch { .. } | Self::JumpIf { .. } | Self::Jump | Self::Call | Self::Return
        )
    }
}
