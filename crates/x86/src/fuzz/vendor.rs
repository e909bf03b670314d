//! What Intel's and AMD's processors do differently when an instruction cannot be finished.

use iced_x86::{Instruction, Mnemonic, OpKind, RflagsBits};
use raddle_stdx::width::low_u32;

use super::case::{Case, CaseResult, Ending};

/// An x87 exception waits for its handler.
const FSW_ERROR: u16 = 1 << 7;
const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;

/// A repeated comparison that faults in a later round has the flags of the rounds before it on AMD, those of before all
/// rounds on Intel.
pub(super) fn forgive_flags_of_rounds(
    mnemonic: Mnemonic,
    native: &mut CaseResult,
    ours: &CaseResult,
) {
    let compares = matches!(
        mnemonic,
        Mnemonic::Scasb
            | Mnemonic::Scasw
            | Mnemonic::Scasd
            | Mnemonic::Scasq
            | Mnemonic::Cmpsb
            | Mnemonic::Cmpsw
            | Mnemonic::Cmpsd
            | Mnemonic::Cmpsq
    );
    if compares && is_page_fault(native) && is_page_fault(ours) {
        native.rflags = ours.rflags;
    }
}

/// A repetition with 32-bit addresses of which no round is finished clears the upper halves of its count and its addresses
/// on Intel and leaves them on AMD.
pub(super) fn forgive_untouched_halves(case: &Case, native: &mut CaseResult, ours: &CaseResult) {
    for register in [RCX, RSI, RDI] {
        let before = case.regs[register];
        let is_untouched = ours.regs[register] == before;
        if is_untouched && native.regs[register] == u64::from(low_u32(before)) {
            native.regs[register] = before;
        }
    }
}

/// The flags that are undefined behind an instruction, in iced's numbering. A rotation through the carry by as many bits as
/// there are leaves the overflow flag on Intel and computes it on AMD; the manuals define it for one bit only.
pub(super) fn undefined_flags(insn: &Instruction) -> u32 {
    let is_through_carry = matches!(insn.mnemonic(), Mnemonic::Rcl | Mnemonic::Rcr);
    let is_counted =
        insn.op1_kind() == OpKind::Immediate8 && !matches!(insn.immediate8() & 0x1F, 0 | 1);
    let overflow = if is_through_carry && is_counted {
        RflagsBits::OF
    } else {
        RflagsBits::NONE
    };
    insn.rflags_undefined() | overflow
}

/// Ten bytes that end in a page that is not there: Intel has written those in the page before by then.
pub(super) fn forgive_half_a_store(native: &mut CaseResult, ours: &CaseResult) {
    if is_page_fault(native) && native.ending == ours.ending {
        native.memory.clone_from(&ours.memory);
    }
}

/// A store of the x87 stack with an exception that is not masked and an address that cannot be written to: either may be
/// noticed first.
pub(super) fn forgive_order_of_checks(native: &mut CaseResult, ours: &CaseResult) {
    let has_error = native.fx.fsw & FSW_ERROR != 0 && matches!(native.ending, Ending::At(_));
    if has_error && matches!(ours.ending, Ending::Fault { .. }) {
        native.ending = ours.ending;
        native.fx = ours.fx;
    }
}

pub(super) fn is_page_fault(result: &CaseResult) -> bool {
    matches!(result.ending, Ending::Fault { vector: 14, .. })
}
