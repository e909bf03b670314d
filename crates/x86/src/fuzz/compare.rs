//! Finding differences that matter.

use iced_x86::{Instruction, Mnemonic, OpKind, RflagsBits};

use super::case::{Case, CaseResult, Ending};
use super::layout::{DATA, WINDOW_BYTES, WINDOWS};
use super::vendor::{
    forgive_flags_of_rounds, forgive_half_a_store, forgive_order_of_checks,
    forgive_untouched_halves, is_page_fault, undefined_flags,
};
use crate::flags::rflags;
use crate::generic::{Class, class_of};

/// What is undefined after an instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mask {
    rflags: u64,
    fsw: u16,
    mnemonic: Mnemonic,
    is_mmx: bool,
    is_x87: bool,
    /// It repeats a string instruction whose count has 32 bits.
    has_short_count: bool,
    operand_bytes: u64,
}

/// Operands beyond this are accessed in parts, in an order that is the processor's own.
const ONE_ACCESS: u64 = 16;
const LONG_DOUBLE: u64 = 10;
const SIMD_FAULT: u8 = 19;
const MASKS: u32 = 0x1F80;
const OVERFLOW: u32 = 1 << 3;
const UNDERFLOW: u32 = 1 << 4;
const PRECISION: u32 = 1 << 5;
/// MXCSR_MASK in an FXSAVE image.
const MASK_OFFSET: u64 = 28;

impl Mask {
    pub(super) fn of(insn: &Instruction) -> Self {
        Self {
            mnemonic: insn.mnemonic(),
            is_mmx: class_of(insn.code()) == Class::Mmx,
            is_x87: class_of(insn.code()) == Class::X87,
            has_short_count: has_short_count(insn),
            operand_bytes: insn.memory_size().size() as u64,
            ..Self::of_undefined(undefined_flags(insn))
        }
    }

    /// Only these flags, in iced's numbering, are undefined.
    pub(super) fn of_undefined(undefined: u32) -> Self {
        let pick = |pairs: &[(u32, u64)]| {
            pairs
                .iter()
                .filter(|(bit, _)| undefined & bit != 0)
                .fold(0, |sum, (_, flag)| sum | flag)
        };
        let flags = pick(&[
            (RflagsBits::OF, rflags::OF),
            (RflagsBits::SF, rflags::SF),
            (RflagsBits::ZF, rflags::ZF),
            (RflagsBits::AF, rflags::AF),
            (RflagsBits::CF, rflags::CF),
            (RflagsBits::PF, rflags::PF),
        ]);
        let conditions = pick(&[
            (RflagsBits::C0, 1 << 8),
            (RflagsBits::C1, 1 << 9),
            (RflagsBits::C2, 1 << 10),
            (RflagsBits::C3, 1 << 14),
        ]);
        Self {
            // A fault pushes RF set; nothing else shows it.
            rflags: !(flags | rflags::RF),
            fsw: !u16::try_from(conditions).unwrap_or(0),
            mnemonic: Mnemonic::INVALID,
            is_mmx: false,
            is_x87: false,
            has_short_count: false,
            operand_bytes: 0,
        }
    }

    /// Overwrites what processors of different vendors do differently, so that only real differences remain.
    pub(super) fn forgive(
        self,
        (case, operand): (&Case, u64),
        native: &mut CaseResult,
        ours: &CaseResult,
    ) {
        forgive_flags_of_rounds(self.mnemonic, native, ours);
        if self.has_short_count {
            forgive_untouched_halves(case, native, ours);
        }
        if self.is_x87 {
            forgive_order_of_checks(native, ours);
            if self.operand_bytes == LONG_DOUBLE {
                forgive_half_a_store(native, ours);
            }
        }
        let is_masked_store = matches!(self.mnemonic, Mnemonic::Maskmovq | Mnemonic::Maskmovdqu);
        // Which byte of a large or masked operand faults first.
        let is_short_environment = self.operand_bytes == 14;
        if self.operand_bytes > ONE_ACCESS || is_short_environment || is_masked_store {
            let inside = operand..operand.wrapping_add(self.operand_bytes.max(ONE_ACCESS));
            if let (
                Ending::Fault {
                    vector: 14, addr, ..
                },
                Ending::Fault {
                    vector: 14,
                    addr: our_addr,
                    ..
                },
            ) = (&mut native.ending, &ours.ending)
                && inside.contains(addr)
                && inside.contains(our_addr)
            {
                *addr = *our_addr;
            }
        }
        // Which of two bad operands faults first.
        let is_comparison = matches!(
            self.mnemonic,
            Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq
        );
        // ENTER pushes word by word, and keeps those before the one that faults; we push all or none.
        let is_frame = self.mnemonic == Mnemonic::Enter;
        if (is_comparison || is_frame) && is_page_fault(native) && is_page_fault(ours) {
            native.ending = ours.ending;
            if is_frame {
                native.memory.clone_from(&ours.memory);
            }
        }
        let is_simd = matches!(
            native.ending,
            Ending::Fault {
                vector: SIMD_FAULT,
                ..
            }
        );
        // Whether a faulting instruction has already turned the x87 stack into MMX registers.
        let is_fault = matches!(native.ending, Ending::Fault { .. });
        if self.is_mmx && is_fault {
            let mxcsr = native.fx.mxcsr;
            native.fx = ours.fx;
            native.fx.mxcsr = mxcsr;
        }
        // Whether the result that a handler of overflow or underflow would get was exact.
        if is_simd && native.fx.mxcsr & ours.fx.mxcsr & (OVERFLOW | UNDERFLOW) != 0 {
            native.fx.mxcsr = (native.fx.mxcsr & !PRECISION) | (ours.fx.mxcsr & PRECISION);
        }
        // Our stubs see only the sum of a dot product, not its steps.
        let is_dot_product = matches!(self.mnemonic, Mnemonic::Dpps | Mnemonic::Dppd);
        if is_dot_product && native.fx.mxcsr & MASKS != MASKS {
            native.fx.mxcsr = ours.fx.mxcsr;
            native.xmm = ours.xmm;
            native.ending = ours.ending;
        }
        if matches!(self.mnemonic, Mnemonic::Fxsave | Mnemonic::Fxsave64) {
            for byte in MASK_OFFSET..MASK_OFFSET + 4 {
                copy_byte(operand.wrapping_add(byte), native, ours);
            }
        }
    }
}

/// Whether an instruction is repeated as often as ECX says.
fn has_short_count(insn: &Instruction) -> bool {
    let is_repeated = insn.has_rep_prefix() || insn.has_repne_prefix();
    let is_short = [insn.op0_kind(), insn.op1_kind()].iter().any(|kind| {
        matches!(
            kind,
            OpKind::MemorySegESI | OpKind::MemorySegEDI | OpKind::MemoryESEDI
        )
    });
    is_repeated && is_short
}

/// Takes one byte of memory from the other side.
fn copy_byte(addr: u64, to: &mut CaseResult, from: &CaseResult) {
    for (index, offset) in WINDOWS.iter().enumerate() {
        let inside = addr.wrapping_sub(DATA + *offset as u64);
        if inside < WINDOW_BYTES as u64 {
            let inside = usize::try_from(inside).unwrap_or(0);
            to.memory[index][inside] = from.memory[index][inside];
        }
    }
}

/// A description of every difference; None if there is none.
pub(super) fn differences(
    case: &Case,
    mask: Mask,
    native: &CaseResult,
    ours: &CaseResult,
) -> Option<String> {
    let is_same = native.regs == ours.regs
        && (native.rflags ^ ours.rflags) & mask.rflags == 0
        && native.ending == ours.ending
        && native.memory == ours.memory
        && (!case.uses_vectors || is_same_vectors(mask, native, ours));
    (!is_same).then(|| describe(case, mask, native, ours))
}

fn is_same_vectors(mask: Mask, native: &CaseResult, ours: &CaseResult) -> bool {
    let (a, b) = (&native.fx, &ours.fx);
    native.xmm == ours.xmm
        && a.fcw == b.fcw
        && (a.fsw ^ b.fsw) & mask.fsw == 0
        && a.ftw == b.ftw
        && a.mxcsr == b.mxcsr
        && a.st.iter().zip(&b.st).all(|(a, b)| a[..10] == b[..10])
}

fn describe(case: &Case, mask: Mask, native: &CaseResult, ours: &CaseResult) -> String {
    let mut text = String::new();
    let mut line = |name: &str, before: String, native: String, ours: String| {
        if native != ours {
            text += &format!(
                "    {name}: before {before}, native {native}, ours {ours}
"
            );
        }
    };
    let ending = |result: &CaseResult| format!("{:x?}", result.ending);
    line("ending", String::from("-"), ending(native), ending(ours));
    for index in 0..16 {
        let hex = |regs: &[u64; 16]| format!("{:#x}", regs[index]);
        let name = format!("r{index}");
        line(&name, hex(&case.regs), hex(&native.regs), hex(&ours.regs));
    }
    let flags = |value: u64| format!("{:#x}", value & mask.rflags);
    line(
        "rflags",
        flags(case.rflags),
        flags(native.rflags),
        flags(ours.rflags),
    );
    for (offset, ((before, native), ours)) in WINDOWS.iter().zip(
        case.memory
            .iter()
            .zip(native.memory.iter())
            .zip(ours.memory.iter()),
    ) {
        if let Some(at) = (0..before.len()).find(|at| native[*at] != ours[*at]) {
            let end = (at + 16).min(before.len());
            let name = format!("memory at data + {:#x}", offset + at);
            let hex = |bytes: &[u8; WINDOW_BYTES]| format!("{:02x?}", &bytes[at..end]);
            line(&name, hex(before), hex(native), hex(ours));
        }
    }
    if case.uses_vectors {
        for index in 0..16 {
            let hex = |xmm: &[[u8; 16]; 16]| format!("{:02x?}", xmm[index]);
            line(
                &format!("xmm{index}"),
                hex(&case.xmm),
                hex(&native.xmm),
                hex(&ours.xmm),
            );
        }
        let (old, a, b) = (&case.fx, &native.fx, &ours.fx);
        let hex = |value: u32| format!("{value:#x}");
        line("mxcsr", hex(old.mxcsr), hex(a.mxcsr), hex(b.mxcsr));
        line(
            "fcw",
            hex(old.fcw.into()),
            hex(a.fcw.into()),
            hex(b.fcw.into()),
        );
        let fsw = |value: u16| hex(u32::from(value & mask.fsw));
        line("fsw", fsw(old.fsw), fsw(a.fsw), fsw(b.fsw));
        line(
            "ftw",
            hex(old.ftw.into()),
            hex(a.ftw.into()),
            hex(b.ftw.into()),
        );
        for index in 0..8 {
            let hex = |st: &[[u8; 16]; 8]| format!("{:02x?}", &st[index][..10]);
            line(&format!("st{index}"), hex(&old.st), hex(&a.st), hex(&b.st));
        }
    }
    text
}
