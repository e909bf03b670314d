//! One decoded instruction: a handler and its operands in one cache line.

use crate::cpu::Cpu;
use crate::run::Run;

/// Executes one op and jumps to the next. The arguments travel in registers through the whole block:
/// `cpu` the guest's registers, `op` the current op, `run` the TLB and everything rare, `log` the next free
/// word of the observation log, `budget` the steps left after the current block.
pub(crate) type Handler =
    unsafe extern "C" fn(cpu: *mut Cpu, op: *const Op, run: *mut Run, log: *mut u64, budget: i64);

/// A decoded instruction (or two that were fused, or a helper such as a link to another block).
///
/// Register operands are byte offsets into `Cpu`, so that AH to BH need no special case.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op {
    pub(crate) handler: Handler,
    /// See [`Meta`].
    pub(crate) meta: Meta,
    /// Immediate operand, target address of a link, or pointer to the decoded instruction of a generic op.
    pub(crate) imm: u64,
    /// Displacement; absolute for RIP-relative operands. Of the ops behind a block's last: which machine code leads
    /// there, see `native`.
    pub(crate) disp: u64,
    /// First op of the block to go to (branch taken).
    pub(crate) next: *const Op,
    /// First op of the block to go to (branch not taken).
    pub(crate) alt: *const Op,
    pub(crate) dst: u8,
    pub(crate) src: u8,
    pub(crate) base: u8,
    pub(crate) index: u8,
    pub(crate) seg: u8,
    pub(crate) scale: u8,
    /// Steps of the block behind `next`, charged on entry.
    pub(crate) next_steps: u8,
    /// Steps of the block behind `alt`.
    pub(crate) alt_steps: u8,
    /// Steps of the whole block of this op.
    pub(crate) block_steps: u8,
    pub(crate) spare: [u8; 3],
    /// Of a translated op: where its handler is, see `native`.
    pub(crate) original: i32,
}

/// Program counter and access description, packed so that one store puts it into the log:
/// bits 0..48 program counter, 48..52 kind, 52..56 log2 of the size, 56..64 index of the instruction in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta(pub(crate) u64);

const PC_BITS: u32 = 48;
const KIND_SHIFT: u32 = 48;
const SIZE_SHIFT: u32 = 52;
const INDEX_SHIFT: u32 = 56;

/// What a log record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LogKind {
    Read = 0,
    Write = 1,
    /// Read-modify-write without LOCK.
    Update = 2,
    /// Read-modify-write with LOCK, or XCHG.
    AtomicUpdate = 3,
    /// A block begins: the address word holds the steps left in the slice, before the block is charged.
    Block = 4,
}

impl Meta {
    pub(crate) fn new(pc: u64, index: u8) -> Self {
        Self((pc & ((1 << PC_BITS) - 1)) | (u64::from(index) << INDEX_SHIFT))
    }

    #[must_use]
    pub(crate) fn with_access(self, kind: LogKind, size: usize) -> Self {
        let cleared = self.0 & !(0xFF << KIND_SHIFT);
        Self(
            cleared
                | ((kind as u64) << KIND_SHIFT)
                | (u64::from(size.trailing_zeros()) << SIZE_SHIFT),
        )
    }

    /// The program counter, sign-extended as canonical addresses are.
    #[inline(always)]
    pub(crate) fn pc(self) -> u64 {
        (self.0 << (64 - PC_BITS))
            .cast_signed()
            .wrapping_shr(64 - PC_BITS)
            .cast_unsigned()
    }

    #[inline(always)]
    pub(crate) fn index(self) -> u8 {
        raddle_stdx::width::low_u8(self.0 >> INDEX_SHIFT)
    }

    pub(crate) fn kind(self) -> LogKind {
        match (self.0 >> KIND_SHIFT) & 0xF {
            0 => LogKind::Read,
            1 => LogKind::Write,
            2 => LogKind::Update,
            3 => LogKind::AtomicUpdate,
            _ => LogKind::Block,
        }
    }

    pub(crate) fn size(self) -> u16 {
        1 << ((self.0 >> SIZE_SHIFT) & 0xF)
    }
}

impl Op {
    /// An op with no operands.
    pub(crate) fn new(handler: Handler, pc: u64, index: u8) -> Self {
        use crate::cpu::slot::ZERO;
        Self {
            handler,
            meta: Meta::new(pc, index),
            imm: 0,
            disp: 0,
            next: std::ptr::null(),
            alt: std::ptr::null(),
            dst: 0,
            src: 0,
            base: ZERO * 8,
            index: ZERO * 8,
            seg: ZERO * 8,
            scale: 0,
            next_steps: 0,
            alt_steps: 0,
            block_steps: 0,
            spare: [0; 3],
            original: 0,
        }
    }

    /// Steps that were charged for the block but not made if this op is not executed.
    #[inline(always)]
    pub(crate) fn refund(&self) -> i64 {
        i64::from(self.block_steps) - i64::from(self.meta.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_fills_one_cache_line() {
        assert_eq!(size_of::<Op>(), 64);
    }

    #[test]
    fn meta_round_trips() {
        let meta = Meta::new(0xFFFF_FFFF_8100_0010, 200).with_access(LogKind::AtomicUpdate, 8);
        assert_eq!(meta.pc(), 0xFFFF_FFFF_8100_0010);
        assert_eq!(
            (meta.index(), meta.kind(), meta.size()),
            (200, LogKind::AtomicUpdate, 8)
        );
        assert_eq!(Meta::new(0x7FFF_F7DD_1234, 3).pc(), 0x7FFF_F7DD_1234);
    }
}
