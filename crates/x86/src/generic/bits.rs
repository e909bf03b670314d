//! Bit tests, scans, counts, CRC32 and BSWAP.

use iced_x86::{Mnemonic, OpKind};
use raddle_stdx::width;

use super::access::{AccessKind, Bus};
use super::operand::{Exec, Operand, bits, mask, sign_extend};
use super::{Flow, Step};
use crate::flags::{Flags, rflags};

/// BT, BTS, BTR, BTC. With a register as bit number, the memory operand may lie far from its address.
pub(super) fn bit_test<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let number = exec.read_operand(1)?;
    let place = if exec.insn.op0_kind() == OpKind::Memory {
        let shift = bits(bytes).trailing_zeros();
        let step = if exec.insn.op1_kind() == OpKind::Register {
            (sign_extend(number, bytes).cast_signed() >> shift)
                .wrapping_mul(i64::try_from(bytes).unwrap_or(0))
        } else {
            0
        };
        let offset = exec.offset_plus(step.cast_unsigned());
        let addr = exec.linear(exec.insn.memory_segment(), offset, bytes)?;
        Operand::Memory { addr, bytes }
    } else {
        exec.place(0)?
    };
    let bit = 1 << (number & u64::from(bits(bytes) - 1));
    let atomic = exec.insn.has_lock_prefix();
    let old = if exec.insn.mnemonic() == Mnemonic::Bt {
        exec.read(place, AccessKind::Read)?
    } else {
        let old = exec.read(place, AccessKind::UpdateRead { atomic })?;
        let new = match exec.insn.mnemonic() {
            Mnemonic::Bts => old | bit,
            Mnemonic::Btr => old & !bit,
            _ => old ^ bit,
        };
        exec.write(place, new, AccessKind::UpdateWrite { atomic })?;
        old
    };
    exec.cpu.flags = exec.cpu.flags.with_carry(old & bit != 0);
    Ok(Flow::Next)
}

/// BSF and BSR; the encodings of TZCNT and LZCNT mean them on a processor without BMI1 and LZCNT.
pub(super) fn scan<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let bytes = exec.bytes_of(0);
    let source = exec.read_operand(1)?;
    if source != 0 {
        let is_forward = matches!(exec.insn.mnemonic(), Mnemonic::Bsf | Mnemonic::Tzcnt);
        let found = if is_forward {
            source.trailing_zeros()
        } else {
            63 - source.leading_zeros()
        };
        exec.cpu.set_gpr(exec.insn.op0_register(), u64::from(found));
    }
    exec.cpu.flags = Flags::from_logic(sign_extend(source, bytes));
    Ok(Flow::Next)
}

/// POPCNT, CRC32, BSWAP.
pub(super) fn other<B: Bus>(exec: &mut Exec<'_, B>) -> Step {
    let target = exec.insn.op0_register();
    match exec.insn.mnemonic() {
        Mnemonic::Popcnt => {
            let source = exec.read_operand(1)?;
            exec.cpu.set_gpr(target, u64::from(source.count_ones()));
            let zero = if source == 0 { rflags::ZF } else { 0 };
            exec.cpu.flags = Flags::from_rflags(zero);
        }
        Mnemonic::Crc32 => {
            let bytes = exec.bytes_of(1);
            let source = exec.read_operand(1)?;
            let start = width::low_u32(exec.cpu.gpr(target));
            let crc = crc32c(start, &source.to_le_bytes()[..bytes]);
            exec.cpu.set_gpr(target, u64::from(crc));
        }
        _ => {
            let value = exec.cpu.gpr(target);
            let swapped = match target.size() {
                // Undefined; processors clear the register.
                2 => 0,
                4 => value.swap_bytes() >> 32,
                _ => value.swap_bytes(),
            };
            exec.cpu.set_gpr(target, swapped & mask(target.size()));
        }
    }
    Ok(Flow::Next)
}

/// The CRC of iSCSI (polynomial 11EDC6F41h), bit-reflected, without the usual inversions.
fn crc32c(start: u32, bytes: &[u8]) -> u32 {
    const REFLECTED: u32 = 0x82F6_3B78;
    bytes.iter().fold(start, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (REFLECTED & (crc & 1).wrapping_neg())
        })
    })
}
