//! Reading a log, one block in memory at a time.

use std::io::{self, Read};

use thiserror::Error;

use super::block::{self, Found, Kind};
use super::record::Coder;
use super::varint::Bytes;
use super::{Head, Item, MAGIC, VERSION};

/// Why a file cannot be read as a log at all.
#[derive(Debug, Error)]
pub enum LogError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is not an event log of raddle")]
    Foreign,
    #[error("it is an event log of format version {found}; this raddle reads version {VERSION}")]
    Version { found: u8 },
    #[error("its head is damaged")]
    Head,
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was written to its end; the digest is that of the run.
    Whole { digest: u64 },
    /// The file was cut off; all blocks before are whole.
    Truncated,
    /// There is something else behind the last whole block.
    Damaged,
}

/// Reads the items of a log in order.
#[derive(Debug)]
pub struct LogReader<R> {
    from: R,
    head: Head,
    block: Vec<u8>,
    /// Bytes of the block that were read.
    done: usize,
    coder: Coder,
    ending: Option<Ending>,
}

impl<R: Read> LogReader<R> {
    pub fn new(mut from: R) -> Result<Self, LogError> {
        let mut begin = [0; MAGIC.len() + 1];
        from.read_exact(&mut begin)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => LogError::Foreign,
                _ => LogError::Io(error),
            })?;
        let [magic @ .., version] = begin;
        if magic != MAGIC {
            return Err(LogError::Foreign);
        }
        if version != VERSION {
            return Err(LogError::Version { found: version });
        }
        let Found::Block(Kind::Head, json) = block::read(&mut from)? else {
            return Err(LogError::Head);
        };
        let head = serde_json::from_slice(&json).map_err(|_| LogError::Head)?;
        Ok(Self {
            from,
            head,
            block: Vec::new(),
            done: 0,
            coder: Coder::default(),
            ending: None,
        })
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// How it ends; none before all items were read.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The next item; none at the end.
    pub fn item(&mut self) -> io::Result<Option<Item>> {
        while self.ending.is_none() {
            if self.done == self.block.len() {
                self.next_block()?;
                continue;
            }
            let mut rest = Bytes(&self.block[self.done..]);
            let item = self.coder.item(&mut rest);
            self.done = self.block.len() - rest.0.len();
            if item.is_some() {
                return Ok(item);
            }
            // Its checksum is right and its content is not: it was not written by raddle.
            self.ending = Some(Ending::Damaged);
        }
        Ok(None)
    }

    fn next_block(&mut self) -> io::Result<()> {
        self.done = 0;
        self.block.clear();
        self.coder = Coder::default();
        match block::read(&mut self.from)? {
            Found::Block(Kind::Records, bytes) => self.block = bytes,
            Found::Block(Kind::End, bytes) => {
                let digest = bytes.try_into().map(u64::from_le_bytes);
                let whole = digest.map(|digest| Ending::Whole { digest });
                self.ending = Some(whole.unwrap_or(Ending::Damaged));
            }
            Found::Nothing | Found::Part => self.ending = Some(Ending::Truncated),
            Found::Block(Kind::Head, _) | Found::Damage => self.ending = Some(Ending::Damaged),
        }
        Ok(())
    }
}
