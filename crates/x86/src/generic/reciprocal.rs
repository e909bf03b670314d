//! RCPPS and RSQRTPS with one answer everywhere: the value as IEEE arithmetic gives it, cut to twelve fraction bits.
//!
//! Processors only promise a relative error below 1.5 * 2^-12, and Intel's and AMD's tables differ. Zero, infinity,
//! NaN and denormal operands follow the manual: denormals count as zero, and results that would be denormal are zero.

const FRACTION: u32 = 0x007F_FFFF;
const EXPONENT: u32 = 0x7F80_0000;
const SIGN: u32 = 0x8000_0000;
const QUIET: u32 = 0x0040_0000;
const DEFAULT_NAN: u32 = 0xFFC0_0000;
/// Fraction bits that remain.
const KEPT: u32 = !((1 << 11) - 1);

fn is_nan(bits: u32) -> bool {
    bits & EXPONENT == EXPONENT && bits & FRACTION != 0
}

/// An approximation of `1 / value`.
pub(super) fn rcp(bits: u32) -> u32 {
    let sign = bits & SIGN;
    match bits & EXPONENT {
        _ if is_nan(bits) => bits | QUIET,
        EXPONENT => sign,
        0 => sign | EXPONENT,
        _ => flush((1.0 / f32::from_bits(bits)).to_bits() & KEPT),
    }
}

/// An approximation of `1 / sqrt(value)`.
pub(super) fn rsqrt(bits: u32) -> u32 {
    match bits & EXPONENT {
        _ if is_nan(bits) => bits | QUIET,
        0 => bits & SIGN | EXPONENT,
        _ if bits & SIGN != 0 => DEFAULT_NAN,
        EXPONENT => 0,
        _ => {
            // IEEE arithmetic in double precision is the same on every host, and so is the cut.
            let root = f64::from(f32::from_bits(bits)).sqrt();
            narrow(1.0 / root) & KEPT
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to single precision is the purpose"
)]
fn narrow(value: f64) -> u32 {
    (value as f32).to_bits()
}

fn flush(bits: u32) -> u32 {
    if bits & EXPONENT == 0 {
        bits & SIGN
    } else {
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_within_what_the_manual_promises() {
        let limit = 1.5 / 4096.0;
        let mut bits = 0x0080_0000_u32;
        while bits < 0x7E00_0000 {
            let x = f64::from(f32::from_bits(bits));
            let inverse = f64::from(f32::from_bits(rcp(bits)));
            assert!((inverse * x - 1.0).abs() <= limit, "rcp of {bits:#x}");
            let root = f64::from(f32::from_bits(rsqrt(bits)));
            assert!((root * x.sqrt() - 1.0).abs() <= limit, "rsqrt of {bits:#x}");
            bits += 0x0001_2345;
        }
    }

    #[test]
    fn special_operands_follow_the_manual() {
        assert_eq!(rcp(0), EXPONENT);
        assert_eq!(rcp(SIGN), SIGN | EXPONENT);
        assert_eq!(rcp(SIGN | EXPONENT), SIGN);
        assert_eq!(rcp(0x7F80_0001), 0x7FC0_0001);
        assert_eq!(rcp(0x7F00_0000), 0, "a denormal result becomes zero");
        assert_eq!(rsqrt(0xBF80_0000), DEFAULT_NAN);
        assert_eq!(rsqrt(SIGN), SIGN | EXPONENT);
        assert_eq!(rsqrt(EXPONENT), 0);
        assert_eq!(rsqrt(0x3F80_0000), 0x3F80_0000);
    }
}
