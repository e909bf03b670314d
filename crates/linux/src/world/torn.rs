//! Instructions that read and write one place without a lock, done in two halves: no processor promises that nothing comes
//! between.

use raddle_mem::GuestAddr;

use super::LinuxWorld;
use crate::thread::{Activity, Tid, Torn};

impl LinuxWorld {
    /// Does the read of an instruction that reads and writes one place without a lock.
    pub(super) fn tear_next(&mut self, tid: Tid) -> bool {
        let thread = self.kernel.thread(tid);
        if thread.torn.is_some() || thread.activity != Activity::User {
            return false;
        }
        let pc = thread.cpu.rip;
        let (mut found, mut count) = (None, 0);
        self.peek_accesses(tid, &mut |access| {
            found = Some(access);
            count += 1;
        });
        let (Some(access), 1) = (found, count) else {
            return false;
        };
        if !access.reads || !access.writes || access.atomic || access.size > 16 {
            return false;
        }
        let mut torn = Torn {
            pc,
            addr: access.addr,
            bytes: [0; 16],
            size: access.size,
        };
        let into = &mut torn.bytes[..usize::from(access.size)];
        if self
            .kernel
            .read_user(tid, GuestAddr(torn.addr), into)
            .is_err()
        {
            return false;
        }
        self.kernel.thread_mut(tid).torn = Some(torn);
        true
    }

    /// Ends a torn instruction: it finds what it read before, whatever has been written since. Gives the steps
    /// that may be made: one, unless nothing was torn.
    pub(super) fn mend(&mut self, tid: Tid, steps: u64) -> u64 {
        let Some(torn) = self.kernel.thread_mut(tid).torn.take() else {
            return steps;
        };
        let bytes = &torn.bytes[..usize::from(torn.size)];
        let is_there = self.kernel.thread(tid).cpu.rip == torn.pc;
        // Memory that has gone makes the instruction fault, as it should.
        if is_there
            && self
                .kernel
                .write_user(tid, GuestAddr(torn.addr), bytes)
                .is_ok()
        {
            return 1;
        }
        steps
    }
}
