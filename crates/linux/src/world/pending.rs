//! What a thread is about to do: the accesses of its next instruction, and the call that it makes.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_u16, low_u32};
use raddle_world::{Location, PendingKind};
use raddle_x86::{BYTES_MAX, NextAccess, Reg};

use super::LinuxWorld;
use crate::observe;
use crate::serve::FUTEX;
use crate::thread::Tid;

impl LinuxWorld {
    /// The memory accesses of a thread's next instruction.
    pub(super) fn peek_accesses(&mut self, tid: Tid, each: &mut dyn FnMut(NextAccess)) {
        let bytes = self.next_bytes(tid);
        self.accesses_of(tid, bytes, each);
    }

    /// The bytes of a thread's next instruction, and those behind it; none if there are too few.
    pub(super) fn next_bytes(&mut self, tid: Tid) -> Option<[u8; BYTES_MAX]> {
        let kernel = &mut self.kernel;
        let at = GuestAddr(kernel.thread(tid).cpu.rip);
        let mut bytes = [0; BYTES_MAX];
        if kernel.read_user(tid, at, &mut bytes).is_ok() {
            return Some(bytes);
        }
        // Code that has not been executed yet may still have to be fetched from its file.
        kernel.read_user(tid, at, &mut [0]).ok();
        None
    }

    /// The memory accesses of a thread's next instruction, which has these bytes.
    fn accesses_of(
        &mut self,
        tid: Tid,
        bytes: Option<[u8; BYTES_MAX]>,
        each: &mut dyn FnMut(NextAccess),
    ) {
        let kernel = &mut self.kernel;
        let thread = &kernel.state.threads[&tid];
        let space = kernel.state.processes[&thread.process].space;
        let Some(space) = kernel.state.spaces.get_mut(&space) else {
            return;
        };
        let (frames, map) = (&mut kernel.frames, &mut space.map);
        self.peek
            .next_accesses(&thread.cpu, bytes, frames, map, each);
    }

    /// Whether a thread's next instruction, which has these bytes, is SYSCALL.
    pub(super) fn is_syscall(&mut self, tid: Tid, bytes: Option<[u8; BYTES_MAX]>) -> bool {
        const SYSCALL: [u8; 2] = [0x0F, 0x05];
        if let Some(bytes) = bytes {
            return bytes.starts_with(&SYSCALL);
        }
        let at = GuestAddr(self.kernel.thread(tid).cpu.rip);
        let mut bytes = [0; SYSCALL.len()];
        self.kernel.read_user(tid, at, &mut bytes).is_ok() && bytes == SYSCALL
    }

    /// The first memory operand of the next instruction that is not on the thread's own stack, else the first.
    pub(super) fn pending_access(
        &mut self,
        tid: Tid,
        bytes: Option<[u8; BYTES_MAX]>,
    ) -> PendingKind {
        let sp = self.kernel.thread(tid).cpu.reg(Reg::Rsp);
        let is_local = |access: &NextAccess| access.addr.wrapping_sub(sp).wrapping_add(128) < 4096;
        let (mut first, mut shared) = (None, None);
        self.accesses_of(tid, bytes, &mut |access| {
            first = first.or(Some(access));
            if shared.is_none() && !is_local(&access) {
                shared = Some(access);
            }
        });
        let Some(access) = shared.or(first) else {
            return PendingKind::Local;
        };
        let location = self.location_of(tid, access.addr);
        let NextAccess {
            addr,
            size,
            reads,
            writes,
            atomic,
        } = access;
        PendingKind::Access {
            addr,
            location,
            size,
            reads,
            writes,
            atomic,
        }
    }

    /// What a call that a thread is about to make touches: a futex its word, others who knows what.
    pub(super) fn pending_call_kind(&self, tid: Tid) -> PendingKind {
        let cpu = &self.kernel.thread(tid).cpu;
        let number = low_u32(cpu.reg(Reg::Rax));
        if number != FUTEX {
            return PendingKind::Syscall { number };
        }
        let addr = cpu.reg(Reg::Rdi);
        PendingKind::Access {
            addr,
            location: self.location_of(tid, addr),
            size: 4,
            reads: true,
            writes: true,
            atomic: true,
        }
    }

    /// Where an address is, if its page is present.
    pub(crate) fn location_of(&self, tid: Tid, addr: u64) -> Option<Location> {
        let id = self.kernel.process_of(tid).space;
        let map = &self.kernel.state.spaces[&id].map;
        let page = observe::page_key(id, map, GuestAddr(addr).page())?;
        Some(Location::new(page, low_u16(addr & 0xFFF)))
    }
}
