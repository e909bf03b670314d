//! By which way an instruction is executed, for those who look for what is slow.

use iced_x86::{Decoder, DecoderOptions};

use super::{Builder, Source, select};
use crate::engine::Observe;
use crate::fast::OBSERVE_NONE;
use crate::stub::StubCache;

/// How the engine executes an instruction, the fastest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// As machine code of its block.
    Translated,
    /// The same where no instruction reads the flags that it sets; else by its handler.
    TranslatedWithoutFlags,
    /// By a handler of its own.
    Handler,
    /// By a handler that calls a native stub.
    Stub,
    /// By the generic interpreter.
    Generic,
}

impl Path {
    /// The form of the instruction that begins with these bytes, and its way. None if they are no instruction.
    pub fn of(bytes: &[u8], pc: u64) -> Option<(String, Self)> {
        let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let mut stubs = StubCache::default();
        let source = Source {
            pc,
            instructions: std::slice::from_ref(&instruction),
            points: &std::collections::BTreeSet::new(),
            observe: Observe::None,
            limit: None,
        };
        let specialised = select::lower_one::<OBSERVE_NONE>(&instruction, 0);
        let has_handler =
            specialised.is_some() || super::special::<OBSERVE_NONE>(&instruction).is_some();
        let lowered = specialised.unwrap_or_else(|| {
            Builder::<OBSERVE_NONE>::new(&source, &mut stubs).generic(&instruction, 0)
        });
        let path = if lowered.template.is_translated() {
            Self::Translated
        } else if lowered.template.without_flags().is_translated() {
            Self::TranslatedWithoutFlags
        } else if has_handler {
            Self::Handler
        } else if lowered.op.next.is_null() {
            Self::Generic
        } else {
            Self::Stub
        };
        Some((format!("{:?}", instruction.code()), path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> Path {
        Path::of(bytes, 0x1000).unwrap().1
    }

    #[test]
    fn every_way_is_taken_by_some_instruction() {
        // add eax, ecx; pshufb xmm0, [rax]
        assert_eq!(path(&[0x01, 0xC8]), Path::Translated);
        assert_eq!(path(&[0x66, 0x0F, 0x38, 0x00, 0x00]), Path::Translated);
        // ror eax, 7
        assert_eq!(path(&[0xC1, 0xC8, 0x07]), Path::TranslatedWithoutFlags);
        // div ecx
        assert_eq!(path(&[0xF7, 0xF1]), Path::Handler);
        // ucomisd xmm0, xmm1
        assert_eq!(path(&[0x66, 0x0F, 0x2E, 0xC1]), Path::Stub);
        // cpuid
        assert_eq!(path(&[0x0F, 0xA2]), Path::Generic);
        assert_eq!(Path::of(&[0x06], 0), None);
    }
}
