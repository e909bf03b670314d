//! What a debugger asks of a world.

use std::collections::BTreeSet;

use raddle_x86::Cpu;

use crate::context::ContextId;
use crate::event::LockedKind;
use crate::locked::INSTRUCTION_BYTES_MAX;
use crate::site::{ImageId, Site};
use crate::world::World;

/// A program in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Where its first segment was loaded.
    pub at: u64,
    /// The auxiliary vector that it was given.
    pub auxv: Vec<u8>,
}

/// A world that a debugger can look into.
pub trait Inspect: World {
    /// The processor of a context; none if it has ended.
    fn cpu(&self, who: ContextId) -> Option<&Cpu>;
    /// Copies memory as a context sees it now; the number of bytes up to the first that cannot be read.
    fn read_bytes(&mut self, who: ContextId, addr: u64, into: &mut [u8]) -> usize;
    /// What the locked instruction that a context has made does.
    fn locked_kind(&mut self, who: ContextId, site: Site) -> LockedKind {
        let mut code = [0; INSTRUCTION_BYTES_MAX];
        let mut bytes = self.read_bytes(who, site.pc(), &mut code);
        if bytes == 0 && site.image() == ImageId::FIRST {
            // It has ended since; the first context has the same code.
            bytes = self.read_bytes(ContextId(0), site.pc(), &mut code);
        }
        LockedKind::of(&code[..bytes])
    }
    /// The context that a debugger shows as the thread in which this one runs.
    fn thread_of(&self, who: ContextId) -> ContextId {
        who
    }
    /// Makes runs stop before these instructions, in any context; or no longer.
    fn set_breakpoints(&mut self, at: &BTreeSet<u64>, are_set: bool);
    /// Whether every access to memory becomes an event from the next run on.
    fn observe_memory(&mut self, wanted: bool);
    /// Bytes of memory that were changed since the newest snapshot, which it keeps as they were.
    fn changed_bytes(&self) -> u64 {
        0
    }
    /// The program that is debugged, if it is one that a system has loaded.
    fn loaded(&mut self) -> Option<Loaded> {
        None
    }
}
