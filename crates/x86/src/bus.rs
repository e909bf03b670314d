//! The memory of a run as the generic interpreter sees it.

use raddle_mem::Access;

use crate::access;
use crate::engine::Observe;
use crate::exit::Fault;
use crate::generic::{AccessKind, Bus, SystemBus};
use crate::op::{LogKind, Meta};
use crate::run::Run;

/// Memory accesses of one instruction, checked, observed, and visible to the code cache.
#[derive(Debug)]
pub(crate) struct RunBus<'a> {
    pub(crate) run: &'a mut Run,
    /// Next free words of the log; written back by the caller only if the instruction completes.
    pub(crate) log: *mut u64,
    pub(crate) meta: Meta,
    pub(crate) tsc: u64,
}

impl RunBus<'_> {
    fn record(&mut self, addr: u64, bytes: &[u8], kind: LogKind) {
        let size = bytes.len().next_power_of_two();
        let meta = self.meta.with_access(kind, size);
        let mut word = [0; 8];
        let count = bytes.len().min(8);
        word[..count].copy_from_slice(&bytes[..count]);
        let value = u64::from_le_bytes(word);
        access::append(self.run.observe, &mut self.log, addr, meta, value);
    }
}

impl Bus for RunBus<'_> {
    fn read(&mut self, addr: u64, into: &mut [u8], kind: AccessKind) -> Result<(), Fault> {
        let access = if matches!(kind, AccessKind::UpdateRead { .. } | AccessKind::Probe) {
            Access::Write
        } else {
            Access::Read
        };
        access::read_bytes(self.run, addr, into, access)?;
        if self.run.observe != Observe::None && kind != AccessKind::Probe {
            let kind = match kind {
                AccessKind::UpdateRead { atomic: true } => LogKind::AtomicUpdate,
                AccessKind::UpdateRead { atomic: false } => LogKind::Update,
                _ => LogKind::Read,
            };
            self.record(addr, into, kind);
        }
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8], kind: AccessKind) -> Result<(), Fault> {
        access::write_bytes(self.run, addr, bytes)?;
        // The record of an update was made when it was read.
        if self.run.observe != Observe::None && kind == AccessKind::Write {
            self.record(addr, bytes, LogKind::Write);
        }
        Ok(())
    }

    fn tsc(&mut self) -> u64 {
        self.tsc
    }

    fn system(&mut self) -> Option<&mut dyn SystemBus> {
        if self.run.system.is_null() {
            None
        } else {
            Some(self)
        }
    }
}
