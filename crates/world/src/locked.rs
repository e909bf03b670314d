//! What locked instructions do to memory, by their bytes.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use crate::event::LockedKind;

/// Bytes that hold every instruction.
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 15;

impl LockedKind {
    /// What the instruction that these bytes begin with does, if it is a locked one.
    pub fn of(code: &[u8]) -> Self {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        let mnemonic = instruction.mnemonic();
        if mnemonic == Mnemonic::Xchg {
            return Self::Exchange;
        }
        if !instruction.has_lock_prefix() {
            return Self::Unknown;
        }
        match mnemonic {
            Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => Self::CompareExchange,
            Mnemonic::Bts => Self::SetBit,
            Mnemonic::Btr | Mnemonic::And => Self::ClearBits,
            Mnemonic::Xadd
            | Mnemonic::Add
            | Mnemonic::Adc
            | Mnemonic::Sub
            | Mnemonic::Sbb
            | Mnemonic::Inc
            | Mnemonic::Dec
            | Mnemonic::Neg => Self::Arithmetic,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_by_what_they_do() {
        let cases: [(&[u8], LockedKind); 8] = [
            // lock cmpxchg [rdi], ecx; cmpxchg [rdi], ecx
            (&[0xF0, 0x0F, 0xB1, 0x0F], LockedKind::CompareExchange),
            (&[0x0F, 0xB1, 0x0F], LockedKind::Unknown),
            // xchg [rdi], al
            (&[0x86, 0x07], LockedKind::Exchange),
            // lock bts [rdi], 0; lock btr [rdi], 0
            (&[0xF0, 0x0F, 0xBA, 0x2F, 0x00], LockedKind::SetBit),
            (&[0xF0, 0x0F, 0xBA, 0x37, 0x00], LockedKind::ClearBits),
            // lock xadd [rdi], rax; lock dec [rdi]
            (&[0xF0, 0x48, 0x0F, 0xC1, 0x07], LockedKind::Arithmetic),
            (&[0xF0, 0xFF, 0x0F], LockedKind::Arithmetic),
            (&[], LockedKind::Unknown),
        ];
        for (code, kind) in cases {
            assert_eq!(LockedKind::of(code), kind, "{code:x?}");
        }
    }
}
