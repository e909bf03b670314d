//! A fast 64-bit digest for comparing runs, not for security.

/// Order-sensitive digest of a sequence of words; the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Digest {
    /// Digest of a piece of data.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut digest = Self::default();
        digest.bytes(bytes);
        digest.value()
    }

    /// Appends one word.
    pub fn word(&mut self, word: u64) {
        let folded = u128::from(self.0 ^ word) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
        let (low, high) = crate::width::halves(folded);
        self.0 = low ^ high.wrapping_add(0xF39C_C060_5CED_C835).rotate_left(23);
    }

    /// Appends bytes; their number is part of the digest.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(crate::width::to_u64(bytes.len()));
    }

    /// The value so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_length_matter() {
        let of = |parts: &[&[u8]]| {
            let mut digest = Digest::default();
            parts.iter().for_each(|part| digest.bytes(part));
            digest.value()
        };
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"a\0"]), of(&[b"a"]));
        assert_eq!(of(&[b"abc"]), of(&[b"abc"]));
    }
}
