//! The event log: everything that happened in a run, and what it meant, streamed to a file and read back.
//!
//! ```text
//!   file    = "RDLTRACE" version:u8 block*
//!   block   = kind:u8 raw:u32 packed:u32 checksum:u64 bytes[packed]
//!   kind    = 0 head (JSON), 1 records, 2 end (digest of the run:u64)
//!   record  = tag:u8 context:varint step:zigzag site:zigzag fields
//! ```
//! Integers of blocks are little-endian; those of records are LEB128. Steps, sites and addresses are differences to
//! the last record of the same context in the same block; a block needs none before it. Blocks are compressed with LZ4
//! if that makes them smaller (`packed` is below `raw` then). The checksum covers kind, lengths and bytes.
//!
//! A writer holds one block in memory, a reader one block. Lengths are limited (`RAW_MAX` in `block`), so that a file
//! from elsewhere cannot make a reader allocate more; a file that was cut off is read up to its last whole block.
//! Reading order: [`Item`], `write`, `read`, `record` (the form of one item), `block`, `varint`.

mod block;
mod mark;
mod read;
mod record;
#[cfg(test)]
mod tests;
mod varint;
mod write;

use raddle_world::{ContextId, Event, LockedKind, Site};
use serde::{Deserialize, Serialize};

use crate::facts::LockChange;
use crate::observer::Observation;

pub use read::{Ending, LogError, LogReader};
pub use write::LogWriter;

const MAGIC: [u8; 8] = *b"RDLTRACE";
/// 1 was without blocks, and nothing read it.
const VERSION: u8 = 2;

/// What a log is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// The raddle that wrote it.
    pub writer: String,
    /// The program with its arguments, or the test.
    pub subject: Vec<String>,
    pub seed: u64,
    pub observation: Observation,
    /// What was in memory when the run began.
    pub images: Vec<Image>,
}

/// A file whose code ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Image {
    pub path: String,
    /// As the linker has it, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// One thing that a log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Event(Event),
    /// What the event before it means.
    Fact {
        context: ContextId,
        fact: Fact,
    },
}

/// What an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    Lock(LockChange),
    /// The block that was allocated: its numbers at its site and in the run.
    Allocated {
        ordinal: u64,
        generation: u64,
    },
    /// What a locked instruction does, told before the first event that it makes.
    Instruction {
        site: Site,
        kind: LockedKind,
    },
}
