//! What is remembered of eight bytes: who wrote each of them last, and who has read it since.
//!
//! Variables share these bytes: a flag beside the data that it guards must not hide who wrote the data.

use crate::race::Side;

/// Reads of a place that are all remembered; of more, those that can still race.
pub(crate) const READS_KEPT: usize = 8;

/// An access as it is remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    pub(crate) clock: u32,
    /// Number among all accesses of the run.
    pub(crate) number: u64,
    /// The bytes for which it is remembered.
    pub(crate) mask: u8,
    /// Whether it is no other access's rival.
    pub(crate) is_aside: bool,
    pub(crate) side: Side,
}

#[derive(Debug, Default)]
pub(crate) struct Shadow {
    last_write: Option<Epoch>,
    /// Writes before it, of bytes that no later one touched.
    earlier_writes: Vec<Epoch>,
    /// Reads of bytes that no context wrote since.
    reads: Vec<Epoch>,
}

impl Shadow {
    /// The latest write for which something holds.
    pub(crate) fn find_write(&self, holds: impl Fn(&Epoch) -> bool) -> Option<Epoch> {
        let writes = self.last_write.iter();
        let mut writes = writes.chain(self.earlier_writes.iter().rev());
        writes.find(|old| holds(old)).copied()
    }

    /// The first read for which something holds.
    pub(crate) fn find_read(&self, holds: impl Fn(&Epoch) -> bool) -> Option<Epoch> {
        self.reads.iter().find(|old| holds(old)).copied()
    }

    pub(crate) fn write(&mut self, now: Epoch) {
        forget(&mut self.reads, now.mask, |_| true);
        forget(&mut self.earlier_writes, now.mask, |_| true);
        if let Some(mut last) = self.last_write.replace(now) {
            last.mask &= !now.mask;
            if last.mask != 0 {
                self.earlier_writes.push(last);
            }
        }
    }

    /// Remembers a read; `is_known` says whether its context comes after another access.
    pub(crate) fn read(&mut self, now: Epoch, is_known: impl Fn(&Epoch) -> bool) {
        let is_long = self.reads.len() >= READS_KEPT;
        forget(&mut self.reads, now.mask, |old| {
            // An access that comes after this read comes after those before it.
            old.side.context == now.side.context || is_long && is_known(old)
        });
        self.reads.push(now);
    }
}

/// Forgets these bytes of some accesses.
fn forget(accesses: &mut Vec<Epoch>, bytes: u8, which: impl Fn(&Epoch) -> bool) {
    accesses.retain_mut(|old| {
        if which(old) {
            old.mask &= !bytes;
        }
        old.mask != 0
    });
}
