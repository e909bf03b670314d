//! Which unit executes an instruction, and whether our processor has it at all.

use std::sync::LazyLock;

use iced_x86::{Code, CpuidFeature, EncodingKind, Mnemonic, OpCodeOperandKind};

/// The unit that executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// General registers, flags and system state.
    Integer,
    /// XMM registers.
    Vector,
    /// At least one MMX register.
    Mmx,
    /// The x87 stack.
    X87,
    /// #UD: beyond x86-64-v2.
    Absent,
}

static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| Code::values().map(classify).collect());

pub(crate) fn of(code: Code) -> Class {
    CLASSES[code as usize]
}

/// True if the processor we present executes this form in 64-bit mode.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn is_implemented_form(code: Code) -> bool {
    code.op_code().mode64() && of(code) != Class::Absent
}

fn classify(code: Code) -> Class {
    let info = code.op_code();
    if !info.is_instruction() || code.encoding() != EncodingKind::Legacy {
        return Class::Absent;
    }
    if is_x87(code) {
        return Class::X87;
    }
    let kinds = info.op_kinds();
    if kinds.iter().any(|kind| is_mmx(*kind)) {
        return if is_offered(code) {
            Class::Mmx
        } else {
            Class::Absent
        };
    }
    if !is_offered(code) {
        return Class::Absent;
    }
    let is_vector = kinds.iter().any(|kind| is_xmm(*kind))
        || matches!(code.mnemonic(), Mnemonic::Ldmxcsr | Mnemonic::Stmxcsr);
    if is_vector {
        Class::Vector
    } else {
        Class::Integer
    }
}

fn is_x87(code: Code) -> bool {
    use CpuidFeature as F;
    let has_unit = code
        .cpuid_features()
        .iter()
        .any(|feature| matches!(feature, F::FPU | F::FPU287 | F::FPU387 | F::FXSR));
    has_unit || matches!(code.mnemonic(), Mnemonic::Wait | Mnemonic::Emms)
}

fn is_mmx(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind as K;
    matches!(kind, K::mm_reg | K::mm_rm | K::mm_or_mem)
}

fn is_xmm(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind as K;
    matches!(kind, K::xmm_reg | K::xmm_rm | K::xmm_or_mem)
}

/// True if the features that CPUID reports include the instruction, or if an older processor gives its encoding
/// another harmless meaning (hints, TZCNT as BSF, LZCNT as BSR, WBNOINVD as WBINVD).
fn is_offered(code: Code) -> bool {
    use CpuidFeature as F;
    code.cpuid_features().iter().all(|feature| match feature {
        F::INTEL8086
        | F::INTEL186
        | F::INTEL286
        | F::INTEL386
        | F::INTEL486
        | F::X64
        | F::CMOV
        | F::CPUID
        | F::CX8
        | F::CMPXCHG16B
        | F::MSR
        | F::TSC
        | F::RDPMC
        | F::PAUSE
        | F::MULTIBYTENOP
        | F::POPCNT
        | F::BMI1
        | F::LZCNT
        | F::CET_IBT
        | F::CLFSH
        | F::CLDEMOTE
        | F::PREFETCHW
        | F::PREFETCHWT1
        | F::PREFETCHITI
        | F::SYSCALL
        | F::WBNOINVD
        | F::MMX
        | F::SSE
        | F::SSE2
        | F::SSE3
        | F::SSSE3
        | F::SSE4_1
        | F::SSE4_2 => true,
        F::CET_SS => matches!(code.mnemonic(), Mnemonic::Rdsspd | Mnemonic::Rdsspq),
        _ => false,
    })
}
