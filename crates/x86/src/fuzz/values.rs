//! Biased values: the edges where arithmetic goes wrong.
#![expect(
    clippy::cast_possible_truncation,
    reason = "parts of random words are wanted"
)]

use raddle_stdx::Prng;

use crate::cpu::FxState;
use crate::flags::rflags;

const EDGES: [u64; 24] = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x1_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
    u64::MAX - 1,
    0xFFFF_FFFF_8000_0000,
    0xFFFF_FFFF_FFFF_FF80,
    0x5555_5555_5555_5555,
    0x8080_8080_8080_8080,
    0x0F,
];

/// A 64-bit integer near something interesting.
pub(super) fn integer(prng: &mut Prng) -> u64 {
    let random = prng.next_u64();
    match random & 7 {
        0..=2 => EDGES[(random >> 8) as usize % EDGES.len()],
        3 => EDGES[(random >> 8) as usize % EDGES.len()].wrapping_add((random >> 60) & 3),
        4 => 1 << (random >> 8 & 63),
        5 => (random >> 8) & 0xFF,
        _ => random.rotate_left(17),
    }
}

const F32_EDGES: [u32; 20] = [
    0,
    0x8000_0000,
    0x3F80_0000,
    0xBF80_0000,
    0x7F80_0000,
    0xFF80_0000,
    0x7FC0_0000,
    0xFFC0_0001,
    0x7F80_0001,
    0xFFA0_0000,
    0x0000_0001,
    0x807F_FFFF,
    0x0080_0000,
    0x7F7F_FFFF,
    0x4F00_0000,
    0xCF00_0000,
    0x3F00_0000,
    0x4B00_0001,
    0x3FFF_FFFF,
    0x5F00_0000,
];

const F64_EDGES: [u64; 18] = [
    0,
    1 << 63,
    0x3FF0_0000_0000_0000,
    0xBFF8_0000_0000_0000,
    0x7FF0_0000_0000_0000,
    0xFFF0_0000_0000_0000,
    0x7FF8_0000_0000_0000,
    0x7FF0_0000_0000_0001,
    0xFFF4_0000_0000_0000,
    1,
    0x800F_FFFF_FFFF_FFFF,
    0x0010_0000_0000_0000,
    0x7FEF_FFFF_FFFF_FFFF,
    0x41E0_0000_0000_0000,
    0xC1E0_0000_0020_0000,
    0x43E0_0000_0000_0000,
    0x3690_0000_0000_0000,
    0x47F0_0000_0000_0000,
];

fn single(prng: &mut Prng) -> u32 {
    let random = prng.next_u64();
    let bits = (random >> 16) as u32;
    match random & 3 {
        0 | 1 => F32_EDGES[(random >> 8) as usize % F32_EDGES.len()],
        // Exponents near one, so that sums and products stay finite.
        2 => (bits & 0x807F_FFFF) | ((120 + (random >> 4 & 15) as u32) << 23),
        _ => bits,
    }
}

fn double(prng: &mut Prng) -> u64 {
    let random = prng.next_u64();
    match random & 3 {
        0 | 1 => F64_EDGES[(random >> 8) as usize % F64_EDGES.len()],
        2 => (random & 0x800F_FFFF_FFFF_FFF0) | ((1015 + (random >> 4 & 15)) << 52),
        _ => random.rotate_left(29),
    }
}

/// Sixteen bytes that are interesting as some type of element.
pub(super) fn vector(prng: &mut Prng) -> [u8; 16] {
    let mut bytes = [0; 16];
    match prng.next_u64() & 3 {
        0 => {
            for chunk in bytes.chunks_mut(4) {
                chunk.copy_from_slice(&single(prng).to_le_bytes());
            }
        }
        1 => {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&double(prng).to_le_bytes());
            }
        }
        2 => {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&integer(prng).to_le_bytes());
            }
        }
        // Few different bytes, as string comparisons like.
        _ => {
            let random = prng.next_u64();
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte = b"\0aabz\xFF\x80\x7F"[(random >> (3 * index) & 7) as usize];
            }
        }
    }
    bytes
}

/// An 80-bit number, or one of the encodings that are none.
pub(super) fn extended(prng: &mut Prng) -> [u8; 16] {
    let random = prng.next_u64();
    let significand = match random & 7 {
        0 => 1 << 63,
        1 => u64::MAX,
        2 => 0,
        3 => prng.next_u64(),
        4 => 0xC000_0000_0000_0000,
        5 => (1 << 63) | 1,
        _ => prng.next_u64() | 1 << 63,
    };
    let exponent = match random >> 3 & 7 {
        0 => 0,
        1 => 0x7FFF,
        2 => 0x3FFF,
        3 => 1,
        4 => 0x7FFE,
        5 => 0x3FFF + (random >> 16 & 63) as u16,
        6 => 0x3FFF - (random >> 16 & 63) as u16,
        _ => (random >> 16) as u16 & 0x7FFF,
    };
    let sign = (random >> 40) as u16 & 0x8000;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&significand.to_le_bytes());
    bytes[8..10].copy_from_slice(&(exponent | sign).to_le_bytes());
    bytes
}

/// Random arithmetic flags and direction.
pub(super) fn flags(prng: &mut Prng) -> u64 {
    let changeable = rflags::ARITHMETIC | rflags::DF;
    (prng.next_u64() & changeable) | rflags::FIXED | rflags::IF
}

/// MXCSR, control and status words, tags and stack. Mostly masked, so that most cases compute something.
pub(super) fn floating_point(prng: &mut Prng, state: &mut FxState) {
    let random = prng.next_u64();
    let masks = if random & 15 == 0 {
        (random >> 4) as u32 & 0x1F80
    } else {
        0x1F80
    };
    state.mxcsr = masks | (random >> 16) as u32 & 0xE07F;
    if random >> 40 & 3 != 0 {
        state.mxcsr &= !0x8040;
    }
    let random = prng.next_u64();
    let masks = if random & 15 == 0 {
        (random >> 4) as u16 & 0x3F
    } else {
        0x3F
    };
    state.fcw = masks | 0x40 | (random >> 16) as u16 & 0x0F00;
    state.fsw = (random >> 32) as u16 & 0x7F00;
    if random >> 10 & 7 == 0 {
        state.fsw |= (random >> 48) as u16 & 0x7F;
    }
    state.update_summary();
    state.ftw = match random >> 13 & 7 {
        0 => (random >> 56) as u8,
        1 => 0,
        _ => 0xFF,
    };
    for register in &mut state.st {
        *register = extended(prng);
    }
}
