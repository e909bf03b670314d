//! What has to be known of an instruction before both sides execute it.

use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic, RflagsBits,
};

/// The instruction at `pc`.
pub(crate) fn decode(pc: u64, bytes: &[u8]) -> Instruction {
    Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode()
}

pub(crate) fn text(insn: &Instruction) -> String {
    let mut text = String::new();
    IntelFormatter::new().format(insn, &mut text);
    text
}

/// Who executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Both sides, and the results must be equal.
    Both,
    /// Only ours; the host is given the results, since its own differ by nature.
    Ours,
}

/// What asks for the kernel, the model of the processor or its time, shows that it is being stepped (the trap
/// flag in PUSHF), or gives results that vendors choose freely.
pub(crate) fn turn(insn: &Instruction) -> Turn {
    match insn.mnemonic() {
        Mnemonic::Syscall
        | Mnemonic::Cpuid
        | Mnemonic::Rdtsc
        | Mnemonic::Rdtscp
        | Mnemonic::Rdpid
        | Mnemonic::Rdrand
        | Mnemonic::Rdseed
        | Mnemonic::Xgetbv
        | Mnemonic::Pushf
        | Mnemonic::Pushfq
        | Mnemonic::Popf
        | Mnemonic::Popfq
        | Mnemonic::Fxsave
        | Mnemonic::Fxsave64
        | Mnemonic::Fnstenv
        | Mnemonic::Fnsave
        | Mnemonic::Rcpps
        | Mnemonic::Rcpss
        | Mnemonic::Rsqrtps
        | Mnemonic::Rsqrtss
        | Mnemonic::Xtest
        | Mnemonic::Int3
        | Mnemonic::Int
        | Mnemonic::INVALID => Turn::Ours,
        _ => Turn::Both,
    }
}

/// The bits of RFLAGS that an instruction leaves undefined.
pub(crate) fn undefined_flags(insn: &Instruction) -> u64 {
    let undefined = insn.rflags_undefined();
    [
        (RflagsBits::OF, 1 << 11),
        (RflagsBits::SF, 1 << 7),
        (RflagsBits::ZF, 1 << 6),
        (RflagsBits::AF, 1 << 4),
        (RflagsBits::CF, 1),
        (RflagsBits::PF, 1 << 2),
    ]
    .iter()
    .filter(|(bit, _)| undefined & bit != 0)
    .fold(0, |sum, (_, flag)| sum | flag)
}

/// The condition bits of the x87 status word that an instruction leaves undefined.
pub(crate) fn undefined_conditions(insn: &Instruction) -> u16 {
    let undefined = insn.rflags_undefined();
    [
        (RflagsBits::C0, 1 << 8),
        (RflagsBits::C1, 1 << 9),
        (RflagsBits::C2, 1 << 10),
        (RflagsBits::C3, 1 << 14),
    ]
    .iter()
    .filter(|(bit, _)| undefined & bit != 0)
    .fold(0, |sum, (_, flag)| sum | flag)
}
