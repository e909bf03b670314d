//! Width conversions whose names say what happens to the bits, so that no bare `as` is needed elsewhere.

#[expect(
    clippy::cast_possible_truncation,
    reason = "truncation is what the name says"
)]
/// The low and the high half.
pub fn halves(value: u128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}

/// A length or index as a 64-bit value; we only build for 64-bit hosts.
pub fn to_u64(value: usize) -> u64 {
    value as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "we only build for 64-bit hosts"
)]
/// A 64-bit value as a length or index; we only build for 64-bit hosts.
pub fn to_usize(value: u64) -> usize {
    value as usize
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "truncation is what the name says"
)]
/// The low 32 bits.
pub fn low_u32(value: u64) -> u32 {
    value as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "truncation is what the name says"
)]
/// The low 16 bits.
pub fn low_u16(value: u64) -> u16 {
    value as u16
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "truncation is what the name says"
)]
/// The low 8 bits.
pub fn low_u8(value: u64) -> u8 {
    value as u8
}

/// The same 64 bits, read as two's complement.
pub fn as_i64(value: u64) -> i64 {
    value.cast_signed()
}

/// The same 64 bits, read as unsigned.
pub fn as_u64(value: i64) -> u64 {
    value.cast_unsigned()
}

/// The low 32 bits of `value`, read as two's complement.
pub fn low_i32(value: u64) -> i32 {
    low_u32(value).cast_signed()
}

/// The low 32 bits of `value`, sign-extended to 64.
pub fn sign_extend_32(value: u64) -> u64 {
    i64::from(low_i32(value)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_extension_keeps_the_value() {
        assert_eq!(sign_extend_32(0xFFFF_FFFF), u64::MAX);
        assert_eq!(sign_extend_32(0x7FFF_FFFF), 0x7FFF_FFFF);
        assert_eq!(low_i32(u64::MAX), -1);
    }

    #[test]
    fn halves_split_in_order() {
        assert_eq!(halves(0x1_0000_0000_0000_0002), (2, 1));
    }
}
