//! What Intel's and AMD's processors do differently when an instruction cannot be finished.

use iced_x86::Mnemonic;
use raddle_stdx::width::low_u32;

use super::case::{Case, CaseResult, Ending};

/// An x87 exception waits for its handler.
const FSW_ERROR: u16 = 1 << 7;
const RCX: usize = 1;

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

/// A repetition with a 32-bit count of which no round is finished clears the upper half of the count on Intel and leaves it
/// on AMD.
pub(super) fn forgive_untouched_count(case: &Case, native: &mut CaseResult, ours: &CaseResult) {
    let before = case.regs[RCX];
    let is_untouched = ours.regs[RCX] == before;
    if is_untouched && native.regs[RCX] == u64::from(low_u32(before)) {
        native.regs[RCX] = before;
    }
}

/// A store of the x87 stack with an exception that is not masked and a page that is not there: either may be noticed
/// first.
pub(super) fn forgive_order_of_checks(native: &mut CaseResult, ours: &CaseResult) {
    let has_error = native.fx.fsw & FSW_ERROR != 0 && matches!(native.ending, Ending::At(_));
    if has_error && is_page_fault(ours) {
        native.ending = ours.ending;
        native.fx = ours.fx;
    }
}

pub(super) fn is_page_fault(result: &CaseResult) -> bool {
    matches!(result.ending, Ending::Fault { vector: 14, .. })
}
