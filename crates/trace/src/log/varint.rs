//! Integers of any size in as few bytes as they need.

use raddle_stdx::width::low_u8;

/// Appends an integer, seven bits a byte, the lowest first (LEB128).
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = low_u8(value & 0x7F);
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a difference, small ones of both signs in few bytes.
pub(super) fn put_difference(out: &mut Vec<u8>, from: u64, to: u64) {
    let delta = to.wrapping_sub(from).cast_signed();
    put(out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
}

/// Bytes that are taken from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// An integer; none if it does not end or does not fit.
    pub(super) fn integer(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                return None;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// An integer of a smaller type.
    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.integer()?).ok()
    }

    pub(super) fn difference(&mut self, from: u64) -> Option<u64> {
        let folded = self.integer()?;
        let delta = (folded >> 1) ^ (folded & 1).wrapping_neg();
        Some(from.wrapping_add(delta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_back() {
        for value in [0, 1, 127, 128, 1 << 32, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            put_difference(&mut out, 77, value);
            let mut bytes = Bytes(&out);
            assert_eq!(bytes.integer(), Some(value));
            assert_eq!(bytes.difference(77), Some(value));
            assert!(bytes.0.is_empty());
        }
    }

    #[test]
    fn what_does_not_end_or_fit_is_no_integer() {
        assert_eq!(Bytes(&[]).integer(), None);
        assert_eq!(Bytes(&[0x80; 9]).integer(), None);
        assert_eq!(Bytes(&[0xFF; 20]).integer(), None);
        let mut too_large = [0xFF; 10];
        too_large[9] = 0x02;
        assert_eq!(Bytes(&too_large).integer(), None);
        assert_eq!(Bytes(&[0x80, 0x02]).small::<u8>(), None);
    }
}
