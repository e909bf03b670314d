//! The arithmetic flags, kept lazily as a result and a vector of carries.
//!
//! Two words hold all six flags, whatever instruction set them, so that reading one never needs to know which:
//!
//! ```text
//!   result  sign-extended to 64 bits      ZF = (result == 0)   SF = bit 63 xor aux.SIGN_FLIP
//!                                         PF = even parity of (result ^ aux >> 8) & 0xff
//!   aux     bit 63 CF   bit 62 CF ^ OF (carry into the sign)   bits 15..8 parity delta
//!           bit 3 AF    bit 0 SIGN_FLIP
//! ```
//! The idea is that of Bochs ("lazy flags", Mihocka and Shwartsman, 2008). Translated code is lazier still: it leaves
//! the operands in the two words and says in a third what is to be done with them, since most flags are never read.

/// Bits of RFLAGS.
pub mod rflags {
    pub const CF: u64 = 1 << 0;
    pub const FIXED: u64 = 1 << 1;
    pub const PF: u64 = 1 << 2;
    pub const AF: u64 = 1 << 4;
    pub const ZF: u64 = 1 << 6;
    pub const SF: u64 = 1 << 7;
    pub const TF: u64 = 1 << 8;
    pub const IF: u64 = 1 << 9;
    pub const DF: u64 = 1 << 10;
    pub const OF: u64 = 1 << 11;
    pub const IOPL: u64 = 3 << 12;
    pub const NT: u64 = 1 << 14;
    pub const RF: u64 = 1 << 16;
    pub const VM: u64 = 1 << 17;
    pub const AC: u64 = 1 << 18;
    pub const VIF: u64 = 1 << 19;
    pub const VIP: u64 = 1 << 20;
    pub const ID: u64 = 1 << 21;
    /// The six arithmetic flags.
    pub const ARITHMETIC: u64 = CF | PF | AF | ZF | SF | OF;
}

const CARRY: u64 = 1 << 63;
const OVERFLOW_DELTA: u64 = 1 << 62;
const ADJUST: u64 = 1 << 3;
const SIGN_FLIP: u64 = 1;
const KEPT_OF_CARRIES: u64 = CARRY | OVERFLOW_DELTA | ADJUST;

/// What is still to be done with the two words: a multiple of four, plus the size of the operands as a power of two.
pub(crate) mod pending {
    /// Nothing.
    pub(crate) const NONE: u32 = 0;
    /// The flags of the sum of the two words.
    pub(crate) const SUM: u32 = 4;
    /// The flags of the first word minus the second.
    pub(crate) const DIFFERENCE: u32 = 8;
    /// The flags of a logical operation with this result, not extended; the second word means nothing.
    pub(crate) const LOGIC: u32 = 12;
}

/// The arithmetic flags of one context. The alignment keeps that of the vector registers behind them.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub struct Flags {
    result: u64,
    aux: u64,
    /// See [`pending`].
    pending: u32,
}

impl Default for Flags {
    fn default() -> Self {
        Self::from_rflags(0)
    }
}

/// Equal if the six flags are equal; the lazy form is not unique.
impl PartialEq for Flags {
    fn eq(&self, other: &Self) -> bool {
        self.to_rflags() == other.to_rflags()
    }
}

impl Eq for Flags {}

impl Flags {
    /// Where its words are, for translated code.
    pub(crate) const RESULT_OFFSET: usize = std::mem::offset_of!(Self, result);
    pub(crate) const AUX_OFFSET: usize = std::mem::offset_of!(Self, aux);
    pub(crate) const PENDING_OFFSET: usize = std::mem::offset_of!(Self, pending);

    #[inline(always)]
    fn new(result: u64, aux: u64) -> Self {
        Self {
            result,
            aux,
            pending: pending::NONE,
        }
    }

    /// The same flags with nothing left to do.
    #[inline(always)]
    fn settled(self) -> Self {
        if self.pending == pending::NONE {
            self
        } else {
            self.settle()
        }
    }

    #[inline(never)]
    fn settle(self) -> Self {
        let bits = 8 << (self.pending & 3);
        let unused = 64 - bits;
        let extend = |value: u64| ((value << unused).cast_signed() >> unused).cast_unsigned();
        let cut = |value: u64| value << unused >> unused;
        let (a, b) = (self.result, self.aux);
        match self.pending & !3 {
            pending::SUM => {
                let r = cut(a.wrapping_add(b));
                Self::from_carries(extend(r), (a & b) | ((a | b) & !r), bits)
            }
            pending::DIFFERENCE => {
                let r = cut(a.wrapping_sub(b));
                Self::from_carries(extend(r), (!a & b) | ((!a | b) & r), bits)
            }
            _ => Self::from_logic(extend(a)),
        }
    }

    /// From a result (sign-extended from `bits` bits) and the carries out of each bit of the operation.
    #[inline(always)]
    pub fn from_carries(result: u64, carries: u64, bits: u32) -> Self {
        let aux = if bits == 64 {
            carries & KEPT_OF_CARRIES
        } else {
            ((carries << (64 - bits)) & (CARRY | OVERFLOW_DELTA)) | (carries & ADJUST)
        };
        Self::new(result, aux)
    }

    /// After AND, OR, XOR, TEST: no carry, no overflow; AF is undefined and reads as zero.
    #[inline(always)]
    pub fn from_logic(result: u64) -> Self {
        Self::new(result, 0)
    }

    /// From a sign-extended result with carry and overflow given; AF reads as zero.
    #[inline(always)]
    pub fn from_result(result: u64, carry: bool, overflow: bool) -> Self {
        let aux = (u64::from(carry) << 63) | (u64::from(carry ^ overflow) << 62);
        Self::new(result, aux)
    }

    /// From the bits of RFLAGS.
    pub fn from_rflags(bits: u64) -> Self {
        use rflags::{AF, CF, OF, PF, SF, ZF};
        let has = |bit| bits & bit != 0;
        let result = u64::from(!has(ZF));
        let low_is_even = result.count_ones().is_multiple_of(2);
        let aux = (u64::from(has(CF)) << 63)
            | (u64::from(has(CF) ^ has(OF)) << 62)
            | (u64::from(has(AF)) << 3)
            | (u64::from(has(PF) != low_is_even) << 8)
            | u64::from(has(SF));
        Self::new(result, aux)
    }

    /// As bits of RFLAGS.
    pub fn to_rflags(self) -> u64 {
        use rflags::{AF, CF, OF, PF, SF, ZF};
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        let flags = self.settled();
        bit(flags.carry(), CF)
            | bit(flags.parity(), PF)
            | bit(flags.adjust(), AF)
            | bit(flags.zero(), ZF)
            | bit(flags.sign(), SF)
            | bit(flags.overflow(), OF)
    }

    #[inline(always)]
    pub fn carry(self) -> bool {
        let flags = self.settled();
        flags.aux & CARRY != 0
    }

    #[inline(always)]
    pub fn overflow(self) -> bool {
        let flags = self.settled();
        (flags.aux ^ (flags.aux << 1)) & CARRY != 0
    }

    #[inline(always)]
    pub fn zero(self) -> bool {
        let flags = self.settled();
        flags.result == 0
    }

    #[inline(always)]
    pub fn sign(self) -> bool {
        let flags = self.settled();
        ((flags.result >> 63) ^ flags.aux) & SIGN_FLIP != 0
    }

    #[inline(always)]
    pub fn adjust(self) -> bool {
        let flags = self.settled();
        flags.aux & ADJUST != 0
    }

    #[inline(always)]
    pub fn parity(self) -> bool {
        let flags = self.settled();
        ((flags.result ^ (flags.aux >> 8)) & 0xFF)
            .count_ones()
            .is_multiple_of(2)
    }

    /// The same flags with another carry.
    #[inline(always)]
    #[must_use]
    pub fn with_carry(self, carry: bool) -> Self {
        let flags = self.settled();
        let (old, new) = (flags.aux >> 63, u64::from(carry));
        // CF ^ OF must change along with CF, so that OF stays.
        let change = (old ^ new) * (CARRY | OVERFLOW_DELTA);
        Self::new(flags.result, flags.aux ^ change)
    }

    /// The same flags with another overflow.
    #[inline(always)]
    #[must_use]
    pub fn with_overflow(self, overflow: bool) -> Self {
        let flags = self.settled();
        let flip = u64::from(flags.overflow() != overflow);
        Self::new(flags.result, flags.aux ^ (flip * OVERFLOW_DELTA))
    }

    /// The condition with this number in the low four bits of Jcc, SETcc and CMOVcc opcodes.
    #[inline(always)]
    pub fn condition(self, number: u8) -> bool {
        let flags = self.settled();
        let holds = match number >> 1 {
            0 => flags.overflow(),
            1 => flags.carry(),
            2 => flags.zero(),
            3 => flags.carry() || flags.zero(),
            4 => flags.sign(),
            5 => flags.parity(),
            6 => flags.sign() != flags.overflow(),
            _ => flags.zero() || flags.sign() != flags.overflow(),
        };
        holds != (number & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::alu::{compute, kind};
    use crate::int::Int;

    #[test]
    fn every_combination_survives_the_round_trip() {
        for pick in 0..64_u64 {
            let bits = [
                rflags::CF,
                rflags::PF,
                rflags::AF,
                rflags::ZF,
                rflags::SF,
                rflags::OF,
            ];
            let value = bits
                .iter()
                .enumerate()
                .filter(|(i, _)| pick >> i & 1 != 0)
                .map(|(_, bit)| bit)
                .sum();
            assert_eq!(Flags::from_rflags(value).to_rflags(), value);
        }
    }

    #[test]
    fn changing_the_carry_leaves_the_others() {
        for value in [
            0,
            rflags::OF,
            rflags::CF | rflags::OF,
            rflags::ZF | rflags::CF,
            rflags::ARITHMETIC,
        ] {
            for carry in [false, true] {
                let expected = (value & !rflags::CF) | u64::from(carry);
                assert_eq!(
                    Flags::from_rflags(value).with_carry(carry).to_rflags(),
                    expected
                );
            }
        }
    }

    /// Operands of a size, and what they give at once and when flags are asked for.
    fn check_pending<T: Int>(size: u32) {
        let edges = [
            0,
            1,
            2,
            0x7F,
            0x80,
            0xFF,
            0x7FFF,
            0x8000,
            0x8000_0000,
            u64::MAX,
            1 << 63,
        ];
        let all = || edges.iter().map(|edge| T::cut(*edge));
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            let old = Flags::from_rflags(0);
            let later = |result: T, aux: T, what| Flags {
                result: result.zx(),
                aux: aux.zx(),
                pending: what | size,
            };
            let (and, at_once) = compute::<T, { kind::AND }>(old, a, b);
            assert_eq!(later(and, b, pending::LOGIC), at_once);
            let (_, at_once) = compute::<T, { kind::ADD }>(old, a, b);
            assert_eq!(later(a, b, pending::SUM), at_once);
            let (_, at_once) = compute::<T, { kind::SUB }>(old, a, b);
            let later = later(a, b, pending::DIFFERENCE);
            assert_eq!(later, at_once);
            assert_eq!(later.with_carry(true), at_once.with_carry(true));
            assert_eq!(later.with_overflow(true), at_once.with_overflow(true));
            for condition in 0..16 {
                assert_eq!(later.condition(condition), at_once.condition(condition));
            }
        }
    }

    #[test]
    fn flags_that_are_put_off_are_those_of_the_operation() {
        check_pending::<u8>(0);
        check_pending::<u16>(1);
        check_pending::<u32>(2);
        check_pending::<u64>(3);
    }

    #[test]
    fn narrow_additions_set_carry_overflow_and_adjust() {
        let (a, b) = (0x7F_u64, 0x01_u64);
        let sum = a + b;
        let carries = (a & b) | ((a | b) & !sum);
        let flags = Flags::from_carries(u64::MAX << 7, carries, 8);
        assert_eq!(flags.to_rflags(), rflags::SF | rflags::OF | rflags::AF);
    }
}
