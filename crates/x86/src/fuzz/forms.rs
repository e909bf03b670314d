//! Which instruction forms are compared, and why the others are not.

use iced_x86::{Code, Mnemonic, OpCodeOperandKind};

use crate::generic::is_implemented_form;

/// Why a form is not compared with the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exempt {
    /// The answer is ours by design: CPUID, time, estimates, the encodings of newer instructions.
    OwnAnswer,
    /// It would leave the process or needs a kernel: traps, far transfers, segment loads.
    LeavesProcess,
    /// The decoder never gives it: WAIT followed by another instruction, or a shorter encoding wins.
    NotDecoded,
    /// Hosts of different vendors decode it differently.
    VendorDecoding,
}

/// All forms to compare, in iced's order.
pub(super) fn all() -> Vec<Code> {
    Code::values()
        .filter(|code| is_implemented_form(*code) && exemption(*code).is_none())
        .collect()
}

/// Forms that are implemented but not compared.
pub(super) fn exempt() -> Vec<(Code, Exempt)> {
    Code::values()
        .filter(|code| is_implemented_form(*code))
        .filter_map(|code| exemption(code).map(|why| (code, why)))
        .collect()
}

fn exemption(code: Code) -> Option<Exempt> {
    use Mnemonic as M;
    let name = format!("{code:?}");
    let kinds = code.op_code().op_kinds();
    let names_16_bit_branch = kinds
        .iter()
        .any(|kind| matches!(kind, OpCodeOperandKind::br16_1 | OpCodeOperandKind::br16_2));
    if names_16_bit_branch || name.starts_with("Loop") && name.contains("_16_") {
        return Some(Exempt::VendorDecoding);
    }
    match code.mnemonic() {
        M::Cpuid
        | M::Rdtsc
        | M::Rcpps
        | M::Rcpss
        | M::Rsqrtps
        | M::Rsqrtss
        | M::Tzcnt
        | M::Lzcnt
        | M::Sgdt
        | M::Sidt
        | M::Sldt
        | M::Str
        | M::Smsw
        | M::Lar
        | M::Lsl
        | M::Verr
        | M::Verw
        | M::Reservednop
        | M::Rdsspd
        | M::Rdsspq => Some(Exempt::OwnAnswer),
        M::Fstenv
        | M::Fstcw
        | M::Feni
        | M::Fdisi
        | M::Fclex
        | M::Finit
        | M::Fsetpm
        | M::Fsave
        | M::Fstsw => Some(Exempt::NotDecoded),
        M::Syscall | M::Int | M::Int3 | M::Int1 | M::Lss | M::Lfs | M::Lgs | M::Retf => {
            Some(Exempt::LeavesProcess)
        }
        M::Iret | M::Iretd | M::Iretq => Some(Exempt::LeavesProcess),
        _ if code.is_jmp_far() || code.is_jmp_far_indirect() || code.is_call_far_indirect() => {
            Some(Exempt::LeavesProcess)
        }
        _ => odd_exemption(code),
    }
}

/// Single forms of mnemonics that are compared otherwise.
fn odd_exemption(code: Code) -> Option<Exempt> {
    match code {
        Code::Mov_Sreg_rm16
        | Code::Mov_Sreg_r32m16
        | Code::Mov_Sreg_r64m16
        | Code::Popw_FS
        | Code::Popq_FS
        | Code::Popw_GS
        | Code::Popq_GS => Some(Exempt::LeavesProcess),
        // Near branches with 16-bit operands exist on AMD's processors only; MOVSXD to 16 bits loads two or four
        // bytes.
        Code::Movsxd_r16_rm16
        | Code::Jmp_rm16
        | Code::Call_rm16
        | Code::Retnw
        | Code::Retnw_imm16 => Some(Exempt::VendorDecoding),
        Code::Ud0 => Some(Exempt::NotDecoded),
        _ => None,
    }
}
