//! Writing a log: an observer that streams.

use std::io::{self, Write};

use raddle_stdx::width::to_u64;
use raddle_world::{Event, EventKind};

use super::block::{self, Kind, RAW_MAX};
use super::record::Coder;
use super::{Fact, Head, MAGIC, VERSION};
use crate::facts::{Allocation, Facts};
use crate::observer::{Needs, Observation, Observer};

/// Bytes of one output record: longer ones are several.
const OUTPUT_BYTES_MAX: usize = 1 << 16;

/// Writes a log. It holds one block in memory, whatever the length of the run.
#[derive(Debug)]
pub struct LogWriter<W> {
    to: W,
    observation: Observation,
    block: Vec<u8>,
    coder: Coder,
    /// What went wrong; nothing is written after it.
    trouble: Option<io::Error>,
}

impl<W: Write> LogWriter<W> {
    pub fn new(mut to: W, head: &Head) -> io::Result<Self> {
        to.write_all(&MAGIC)?;
        to.write_all(&[VERSION])?;
        let json = serde_json::to_vec(head)?;
        if to_u64(json.len()) > u64::from(RAW_MAX) {
            let text = "the command line of the program is too long for a log";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        block::write(&mut to, Kind::Head, &json)?;
        Ok(Self {
            to,
            observation: head.observation,
            block: Vec::new(),
            coder: Coder::default(),
            trouble: None,
        })
    }

    /// Whether something could not be written: there is no use in going on.
    pub fn is_broken(&self) -> bool {
        self.trouble.is_some()
    }

    /// Ends the log with the digest of the run; what went wrong if anything did.
    pub fn finish(mut self, digest: u64) -> io::Result<W> {
        if let Some(error) = self.trouble {
            return Err(error);
        }
        self.end_block()?;
        block::write(&mut self.to, Kind::End, &digest.to_le_bytes())?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn write(&mut self, event: &Event, facts: &Facts) -> io::Result<()> {
        if let Some(kind) = facts.new_instruction() {
            let site = event.site;
            self.fact(event, &Fact::Instruction { site, kind })?;
        }
        match &event.kind {
            EventKind::Output { descriptor, bytes } if bytes.len() > OUTPUT_BYTES_MAX => {
                for piece in bytes.chunks(OUTPUT_BYTES_MAX) {
                    let (descriptor, bytes) = (*descriptor, piece.to_vec());
                    let kind = EventKind::Output { descriptor, bytes };
                    let event = Event {
                        context: event.context,
                        step: event.step,
                        site: event.site,
                        kind,
                    };
                    self.event_alone(&event)?;
                }
            }
            _ => self.event_alone(event)?,
        }
        if let EventKind::Alloc { addr, .. } = event.kind
            && let Some(within) = facts.allocation_at(addr)
        {
            let Allocation {
                ordinal,
                generation,
                ..
            } = *within.allocation;
            let fact = Fact::Allocated {
                ordinal,
                generation,
            };
            self.fact(event, &fact)?;
        }
        for change in facts.lock_changes() {
            self.fact(event, &Fact::Lock(change))?;
        }
        Ok(())
    }

    fn event_alone(&mut self, event: &Event) -> io::Result<()> {
        self.coder.event(&mut self.block, event);
        self.end_block_in_time()
    }

    fn fact(&mut self, event: &Event, fact: &Fact) -> io::Result<()> {
        self.coder.fact(&mut self.block, event, fact);
        self.end_block_in_time()
    }

    fn end_block_in_time(&mut self) -> io::Result<()> {
        if to_u64(self.block.len()) < u64::from(RAW_MAX / 4) {
            return Ok(());
        }
        self.end_block()
    }

    fn end_block(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            block::write(&mut self.to, Kind::Records, &self.block)?;
            self.block.clear();
        }
        self.coder = Coder::default();
        Ok(())
    }
}

impl<W: Write> Observer for LogWriter<W> {
    fn needs(&self) -> Needs {
        Needs::of(self.observation)
    }

    fn event(&mut self, event: &Event, facts: &Facts) {
        if self.trouble.is_none() {
            self.trouble = self.write(event, facts).err();
        }
    }
}
