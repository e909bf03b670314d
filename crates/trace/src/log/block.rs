//! Blocks: pieces of a log that are whole or not there.

use std::io::{self, Read, Write};

use raddle_stdx::Digest;
use raddle_stdx::width::{low_u32, to_u64};

/// Bytes of a block before compression at most: a writer ends a block when it has a quarter of it, and no record is as
/// large as the rest.
pub(super) const RAW_MAX: u32 = 1 << 20;

/// Bytes of a block's own head.
const HEAD_BYTES: usize = 1 + 4 + 4 + 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Head,
    Records,
    End,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Head, Self::Records, Self::End];

    fn number(self) -> u8 {
        match self {
            Self::Head => 0,
            Self::Records => 1,
            Self::End => 2,
        }
    }
}

pub(super) fn write(to: &mut dyn Write, kind: Kind, raw: &[u8]) -> io::Result<()> {
    assert!(
        to_u64(raw.len()) <= u64::from(RAW_MAX),
        "a block is ended in time"
    );
    let packed = lz4_flex::block::compress(raw);
    let bytes = if packed.len() < raw.len() {
        &packed
    } else {
        raw
    };
    let [raw_length, length] = [raw.len(), bytes.len()].map(|count| low_u32(to_u64(count)));
    to.write_all(&[kind.number()])?;
    to.write_all(&raw_length.to_le_bytes())?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&checksum(kind, raw_length, bytes).to_le_bytes())?;
    to.write_all(bytes)
}

/// What stands where a block should be.
#[derive(Debug)]
pub(super) enum Found {
    Block(Kind, Vec<u8>),
    /// The file ends with the block before.
    Nothing,
    /// The file ends in the middle of a block.
    Part,
    /// Something else.
    Damage,
}

pub(super) fn read(from: &mut dyn Read) -> io::Result<Found> {
    let mut head = [0; HEAD_BYTES];
    match fill(from, &mut head)? {
        HEAD_BYTES => {}
        0 => return Ok(Found::Nothing),
        _ => return Ok(Found::Part),
    }
    let [number, r0, r1, r2, r3, l0, l1, l2, l3, sum @ ..] = head;
    let raw_length = u32::from_le_bytes([r0, r1, r2, r3]);
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    let kind = Kind::ALL.into_iter().find(|kind| kind.number() == number);
    let Some(kind) = kind.filter(|_| raw_length <= RAW_MAX && length <= raw_length) else {
        return Ok(Found::Damage);
    };
    let mut bytes = vec![0; length as usize];
    if fill(from, &mut bytes)? < bytes.len() {
        return Ok(Found::Part);
    }
    if checksum(kind, raw_length, &bytes) != u64::from_le_bytes(sum) {
        return Ok(Found::Damage);
    }
    if length < raw_length {
        let mut raw = vec![0; raw_length as usize];
        match lz4_flex::block::decompress_into(&bytes, &mut raw) {
            Ok(count) if count == raw.len() => bytes = raw,
            _ => return Ok(Found::Damage),
        }
    }
    Ok(Found::Block(kind, bytes))
}

fn checksum(kind: Kind, raw_length: u32, bytes: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.word(u64::from(kind.number()) << 32 | u64::from(raw_length));
    digest.bytes(bytes);
    digest.value()
}

/// Reads as much as there is; the number of bytes.
fn fill(from: &mut dyn Read, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match from.read(&mut into[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
