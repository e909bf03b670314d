//! Files by the digest of their content, compressed on the way.

use raddle_linux::ContentId;
use raddle_stdx::width::{to_u64, to_usize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Bytes of one file at most, compressed or not.
pub const CONTENT_BYTES_MAX: u64 = 8 << 30;

/// Why packed bytes are not what they should be.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Damaged {
    #[error("it is too short")]
    Short,
    #[error("it would have {0} bytes, more than the {1} that are allowed")]
    Large(u64, u64),
    #[error("it cannot be unpacked")]
    Packing,
    #[error("its digest is another one")]
    Digest,
}

/// The name of some bytes.
pub fn id_of(bytes: &[u8]) -> ContentId {
    let digits: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    ContentId::new(digits).expect("a SHA-256 has 64 digits")
}

/// Bytes for the journey: their number, then themselves, compressed.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = to_u64(bytes.len()).to_le_bytes().to_vec();
    packed.extend(lz4_flex::block::compress(bytes));
    packed
}

/// The bytes again, if there are no more than these.
///
/// # Errors
/// They were damaged on the way, or made by a stranger.
pub fn unpack(packed: &[u8], bytes_max: u64) -> Result<Vec<u8>, Damaged> {
    let (length, rest) = packed.split_first_chunk().ok_or(Damaged::Short)?;
    let length = u64::from_le_bytes(*length);
    if length > bytes_max {
        return Err(Damaged::Large(length, bytes_max));
    }
    // No byte of such a stream stands for more than 255: a lie about the length reserves no memory.
    if length / 255 > to_u64(rest.len()) + 16 {
        return Err(Damaged::Packing);
    }
    let bytes =
        lz4_flex::block::decompress(rest, to_usize(length)).map_err(|_| Damaged::Packing)?;
    if to_u64(bytes.len()) == length {
        Ok(bytes)
    } else {
        Err(Damaged::Packing)
    }
}

/// The bytes again, if they are those with this name.
///
/// # Errors
/// They were damaged on the way, or made by a stranger.
pub fn unpack_checked(packed: &[u8], id: &ContentId) -> Result<Vec<u8>, Damaged> {
    let bytes = unpack(packed, CONTENT_BYTES_MAX)?;
    if id_of(&bytes) == *id {
        Ok(bytes)
    } else {
        Err(Damaged::Digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_survives_the_journey_and_nothing_else_does() {
        let bytes = b"libc.so.6".repeat(1000);
        let packed = pack(&bytes);
        assert!(packed.len() < bytes.len() / 10);
        let id = id_of(&bytes);
        assert_eq!(unpack_checked(&packed, &id).unwrap(), bytes);
        let other = id_of(b"another file");
        assert_eq!(unpack_checked(&packed, &other), Err(Damaged::Digest));
        assert_eq!(unpack(&packed, 10), Err(Damaged::Large(9000, 10)));
        assert_eq!(unpack(&packed[..3], 10), Err(Damaged::Short));
        let lie = [&(1_u64 << 40).to_le_bytes()[..], b"xx"].concat();
        assert_eq!(unpack(&lie, 1 << 50), Err(Damaged::Packing));
    }
}
