//! What system calls do to the memory of the program that makes them: accesses like those of its own instructions.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_u8, low_u16};
use raddle_world::{Access, AccessKind, Event, EventKind, Location};

use crate::heap::HeapError;
use crate::kernel::Kernel;
use crate::thread::Tid;
use crate::world::Halt;

/// Length of the instruction that makes a call.
const SYSCALL_BYTES: u64 = 2;

/// Bytes of one copy that become events.
const NOTED_MAX: u64 = 1 << 16;

/// A call has read or written so many bytes of its thread's memory.
pub(crate) fn note(kernel: &mut Kernel, tid: Tid, from: GuestAddr, length: u64, how: AccessKind) {
    if kernel.watch.heap.is_on {
        check_heap(kernel, tid, from, length, how);
    }
    if kernel.is_observed {
        note_access(kernel, tid, from, length, how);
    }
}

/// Freed memory must not be handed to the kernel either.
fn check_heap(kernel: &mut Kernel, tid: Tid, from: GuestAddr, length: u64, how: AccessKind) {
    let pc = pc_of_call(kernel, tid);
    let context = kernel.thread(tid).context;
    let (_, space) = kernel.memory_of(tid);
    let Some(addr) = space.map.first_forbidden(from, length) else {
        return;
    };
    let (kind, block) = space.heap.error_at(addr.0, how.writes());
    let error = HeapError {
        kind,
        context,
        pc,
        addr: addr.0,
        block,
    };
    kernel.halt.get_or_insert(Halt::Heap(error));
}

fn note_access(kernel: &mut Kernel, tid: Tid, from: GuestAddr, length: u64, how: AccessKind) {
    const PLACE: u64 = 1 << Location::PLACE_BITS;
    let pc = pc_of_call(kernel, tid);
    let context = kernel.thread(tid).context;
    let step = kernel.state.contexts.get(context).steps;
    let map = &kernel.state.spaces[&kernel.process_of(tid).space].map;
    let end = from.0.saturating_add(length.min(NOTED_MAX));
    let mut at = from.0;
    while at < end {
        let size = (PLACE - at % PLACE).min(end - at);
        if let Some(pte) = map.pte(GuestAddr(at).page()) {
            let access = Access {
                how,
                size: low_u8(size),
                location: Location {
                    frame: pte.frame.0,
                    offset: low_u16(at & 0xFFF),
                },
                addr: at,
                value: None,
            };
            kernel.events.push(Event {
                context,
                step,
                pc,
                kind: EventKind::Access(access),
            });
        }
        at += size;
    }
}

fn pc_of_call(kernel: &Kernel, tid: Tid) -> u64 {
    kernel.thread(tid).cpu.rip.wrapping_sub(SYSCALL_BYTES)
}
