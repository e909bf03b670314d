//! Pieces of code that many templates need, and routines that all blocks share.

use std::mem::offset_of;

use super::code::host::{R8, R9, R10, R11, RAX, RDX, RSI};
use super::code::{At, Code, Target, alu, condition, shift};
use super::emit::{aux, result};
use crate::cache::{JUMP_ENTRIES, JumpEntry};
use crate::fast::branch;
use crate::op::{Handler, Op};
use crate::run::{Run, TLB_ENTRIES, TlbEntry};

/// Bytes of a TLB entry and of a jump cache entry, as a power of two.
const ENTRY_BITS: u8 = 5;
const _: () = assert!(size_of::<TlbEntry>() == 1 << ENTRY_BITS);
const _: () = assert!(size_of::<JumpEntry>() == 1 << ENTRY_BITS);
const PAGE_BITS: u8 = 12;
const _: () = assert!(raddle_mem::PAGE_SIZE == 1 << PAGE_BITS);

/// What an access needs of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Read,
    Write,
}

/// Where the routines are.
#[derive(Debug)]
pub(super) struct Routines {
    /// Goes to the block at RSI by its first op; its RAX steps were taken from R8 already, and may be too many.
    pub(super) by_op: Target,
    /// Goes to the block of the jump cache entry at R9 by its first op.
    pub(super) by_jump: Target,
    /// Goes to the handler of the op whose distance in bytes from the one at RAX is in RSI.
    pub(super) to_handler: Target,
}

impl Routines {
    /// Puts the routines at the beginning of `code`. `base` is what handlers' distances are measured from.
    pub(super) fn new(code: &mut Code, base: Handler) -> Self {
        let by_op = emit_by_op(code);
        Self {
            by_op,
            by_jump: emit_by_jump(code, by_op),
            to_handler: emit_to_handler(code, base),
        }
    }
}

/// Looks for the page of the guest address in RAX: "equal" if the TLB knows it for all bytes of the access. Changes R9
/// and R10, which [`host_address`] needs.
pub(super) fn look_up(code: &mut Code, size: usize, need: Need) {
    let last = i32::try_from(size).expect("operands are small") - 1;
    code.offset(R9, RAX, last);
    code.copy(R10, RAX);
    code.arithmetic_constant(8, alu::AND, R9, -(1 << PAGE_BITS));
    code.shift(8, shift::SHR, R10, PAGE_BITS - ENTRY_BITS);
    let mask = i32::try_from((TLB_ENTRIES - 1) << ENTRY_BITS).expect("the TLB is small");
    code.arithmetic_constant(4, alu::AND, R10, mask);
    let tag = match need {
        Need::Read => offset_of!(TlbEntry, read),
        Need::Write => offset_of!(TlbEntry, write),
    };
    let tag = offset_of!(Run, tlb) + tag;
    code.arithmetic_memory(8, alu::CMP, R9, At::indexed(RDX, R10, tag));
}

/// Turns the guest address in RAX that was found into a host address.
pub(super) fn host_address(code: &mut Code) {
    let addend = offset_of!(Run, tlb) + offset_of!(TlbEntry, addend);
    code.arithmetic_memory(8, alu::ADD, RAX, At::indexed(RDX, R10, addend));
}

/// The flags of R10 = RAX + 1 or RAX - 1, with R9 = 1, but for the carry, which stays. There is nothing pending.
/// Changes all of the three, and R11.
pub(super) fn increment_flags(code: &mut Code, is_sum: bool, size: usize) {
    code.extend_signed(size, R11, R10);
    code.store(8, R11, result());
    // Carries of a sum are (a & b) | ((a | b) & !r), borrows of a difference (!a & b) | ((!a | b) & r).
    code.not(if is_sum { R10 } else { RAX });
    code.copy(R11, RAX);
    code.arithmetic(8, alu::AND, R11, R9);
    code.arithmetic(8, alu::OR, RAX, R9);
    code.arithmetic(8, alu::AND, RAX, R10);
    code.arithmetic(8, alu::OR, RAX, R11);
    // Bit 3 stays where it is, the two highest go to the top.
    code.copy(R11, RAX);
    code.arithmetic_constant(4, alu::AND, R11, 8);
    if size < 8 {
        let up = u8::try_from(64 - size * 8).expect("at most 56");
        code.shift(8, shift::SHL, RAX, up);
    }
    code.shift(8, shift::SHR, RAX, 62);
    code.shift(8, shift::SHL, RAX, 62);
    code.arithmetic(8, alu::OR, RAX, R11);
    // Where the old carry is another one, both of the highest bits change.
    code.load(8, R11, aux());
    code.arithmetic(8, alu::XOR, R11, RAX);
    code.shift(8, shift::SAR, R11, 63);
    code.shift(8, shift::SHL, R11, 62);
    code.arithmetic(8, alu::XOR, RAX, R11);
    code.store(8, RAX, aux());
}

/// Looks for the block at the address in RAX in the jump cache, as `cache::jump_index` does: "equal" if it is the
/// one at R9.
pub(super) fn find_target(code: &mut Code) {
    code.copy(R9, RAX);
    code.shift(8, shift::SHR, R9, 12);
    code.arithmetic(8, alu::XOR, R9, RAX);
    let mask = i32::try_from(JUMP_ENTRIES - 1).expect("the jump cache is small");
    code.arithmetic_constant(4, alu::AND, R9, mask);
    code.shift(8, shift::SHL, R9, ENTRY_BITS);
    code.arithmetic_memory(8, alu::ADD, R9, At::new(RDX, offset_of!(Run, jumps)));
    code.arithmetic_memory(8, alu::CMP, RAX, At::new(R9, offset_of!(JumpEntry, pc)));
}

fn emit_by_jump(code: &mut Code, by_op: Target) -> Target {
    let start = code.here();
    code.load(8, RAX, At::new(R9, offset_of!(JumpEntry, steps)));
    code.load(8, RSI, At::new(R9, offset_of!(JumpEntry, op)));
    code.arithmetic(8, alu::SUB, R8, RAX);
    code.jump_to(by_op);
    start
}

fn emit_by_op(code: &mut Code) -> Target {
    let start = code.here();
    code.test(8, R8, R8);
    let over = code.jump_if(condition::SIGN);
    code.jump_memory(At::new(RSI, offset_of!(Op, handler)));
    code.land(over);
    code.arithmetic(8, alu::ADD, R8, RAX);
    code.constant(RAX, address_of(branch::out_of_budget));
    code.jump_register(RAX);
    start
}

fn emit_to_handler(code: &mut Code, base: Handler) -> Target {
    let start = code.here();
    code.arithmetic(8, alu::ADD, RSI, RAX);
    code.load_signed(4, RAX, At::new(RSI, offset_of!(Op, original)));
    code.constant(R9, address_of(base));
    code.arithmetic(8, alu::ADD, RAX, R9);
    code.jump_register(RAX);
    start
}

/// The address of a handler's code.
pub(super) fn address_of(handler: Handler) -> u64 {
    (handler as *const ()).expose_provenance() as u64
}
