//! Coming back to a moment, in memory.

use raddle_mem::SnapshotDepth;

use super::{Core, Machine};
use crate::devices::Bus;

/// A moment of a machine. Moments nest as a stack: restoring one forgets later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineSnapshot(usize);

/// Everything but RAM, which has its own undo log.
#[derive(Debug)]
pub(super) struct Saved {
    ram: SnapshotDepth,
    cores: Vec<Core>,
    bus: Bus,
    now: u64,
}

impl Machine {
    /// Remembers this moment.
    pub fn snapshot(&mut self) -> MachineSnapshot {
        let saved = Saved {
            ram: self.frames.snapshot(),
            cores: self.cores.clone(),
            bus: self.bus.clone(),
            now: self.now,
        };
        self.saved.push(saved);
        MachineSnapshot(self.saved.len() - 1)
    }

    /// Comes back to a moment, which can be restored again.
    ///
    /// # Panics
    /// If an earlier moment has been restored since.
    pub fn restore(&mut self, to: MachineSnapshot) {
        assert!(to.0 < self.saved.len(), "the moment is still on the stack");
        self.saved.truncate(to.0 + 1);
        let saved = &self.saved[to.0];
        self.frames.restore(saved.ram);
        self.cores.clone_from(&saved.cores);
        self.bus.clone_from(&saved.bus);
        self.now = saved.now;
    }

    /// Pages of RAM copied back by restores so far.
    pub fn restored_pages(&self) -> u64 {
        self.frames.restored_pages()
    }
}
