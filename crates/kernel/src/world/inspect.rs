//! What a debugger sees of a guest: processors as threads, memory through their page tables.

use std::collections::BTreeSet;

use raddle_mem::{GuestAddr, PAGE_SIZE};
use raddle_pc::machine::Keep;
use raddle_stdx::width::to_u64;
use raddle_world::{ContextId, Inspect};
use raddle_x86::{Cpu, Observe};

use super::KernelWorld;

impl Inspect for KernelWorld {
    fn cpu(&self, who: ContextId) -> Option<&Cpu> {
        Some(self.machine.cpu(self.processor(who)))
    }

    fn read_bytes(&mut self, who: ContextId, addr: u64, into: &mut [u8]) -> usize {
        let cpu = self.processor(who);
        let mut done = 0;
        while done < into.len() {
            let at = addr.wrapping_add(to_u64(done));
            let count = (PAGE_SIZE - GuestAddr(at).page_offset()).min(into.len() - done);
            let piece = &mut into[done..done + count];
            if !self.machine.read_virtual(cpu, at, piece) {
                break;
            }
            done += count;
        }
        done
    }

    /// An interrupt runs in its processor.
    fn thread_of(&self, who: ContextId) -> ContextId {
        self.processor_context(who)
    }

    fn set_breakpoints(&mut self, at: &BTreeSet<u64>, are_set: bool) {
        self.is_debugged = are_set;
        let points = if are_set { at.clone() } else { BTreeSet::new() };
        self.machine.engine_mut().set_points(points);
    }

    fn observe_memory(&mut self, wanted: bool) {
        self.is_debugged = wanted;
        let observe = if wanted {
            Observe::AddrValue
        } else {
            Observe::None
        };
        self.machine.set_observe(observe, Keep::All);
    }
}
