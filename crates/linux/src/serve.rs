//! What system calls mean for others: accesses to the memory of the program that makes them, and the order that goes
//! through the kernel.
//!
//! ```text
//!   write(pipe) ──Publish──▶ pipe ──Obtain──▶ read, poll, epoll_wait
//!   kill        ──Publish──▶ signals of a thread ──Obtain──▶ handler
//!   exit        ──Publish──▶ children of a process ──Obtain──▶ wait4
//! ```

use raddle_calls::Learns;
use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_i32, low_u8, low_u16, low_u32};
use raddle_world::{
    Access, AccessKind, ContextId, Event, EventKind, GRANULE_BYTES, Location, Site,
};

use crate::call::WaitKey;
use crate::files::{open, ready};
use crate::heap::HeapError;
use crate::kernel::Kernel;
use crate::observe::page_key;
use crate::thread::Tid;
use crate::world::Halt;

/// Length of the instruction that makes a call.
const SYSCALL_BYTES: u64 = 2;

/// Bytes of one copy that become events.
const NOTED_MAX: u64 = 1 << 16;

/// Descriptors that are looked at after one `poll` or `select`.
const POLLED_MAX: u64 = 1024;

/// The call whose object is a word of memory: what it means is told by the functions and instructions that use it.
pub(crate) const FUTEX: u32 = raddle_calls::number("futex");

/// A call that is being made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    context: ContextId,
    step: u64,
    site: Site,
    number: u32,
}

/// Bytes of the guest's memory that a call has read or written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copied {
    pub(crate) from: GuestAddr,
    pub(crate) length: u64,
    pub(crate) how: AccessKind,
}

/// A call begins, or is tried again.
pub(crate) fn begin(kernel: &mut Kernel, tid: Tid, number: u32, args: &[u64; 6]) {
    let thread = kernel.thread(tid);
    let context = thread.context;
    kernel.serving = Some(Serving {
        context,
        step: kernel.state.contexts.get(context).steps,
        site: kernel.site(tid, thread.cpu.rip.wrapping_sub(SYSCALL_BYTES)),
        number,
    });
    if kernel.is_observed && raddle_calls::of(number).is_some_and(|call| call.sends) {
        let mut keys = Vec::new();
        add_keys(kernel, tid, args[0], &mut keys);
        keys.into_iter().for_each(|key| publish(kernel, key));
    }
}

/// A call ends; it has given `value`, if it did not fail, block or end its thread.
pub(crate) fn end(kernel: &mut Kernel, tid: Tid, args: &[u64; 6], value: Option<&u64>) {
    let serving = kernel.serving.take();
    if let (true, Some(serving), Some(value)) = (kernel.is_observed, serving, value) {
        let lives = kernel.state.threads.get(&tid);
        if lives.is_some_and(|thread| thread.context == serving.context) {
            for key in obtained(kernel, tid, serving.number, args, *value) {
                obtain(kernel, tid, key);
            }
        }
    }
}

/// What the call that is being made hands to the contexts that wait for this.
pub(crate) fn publish(kernel: &mut Kernel, key: WaitKey) {
    if !kernel.is_observed {
        return;
    }
    if let (Some(serving), Some(object)) = (kernel.serving, name(key)) {
        kernel.events.push(Event {
            context: serving.context,
            step: serving.step,
            site: serving.site,
            kind: EventKind::Publish { object },
        });
    }
}

/// A thread gets what others have handed over.
pub(crate) fn obtain(kernel: &mut Kernel, tid: Tid, key: WaitKey) {
    if let (true, Some(object)) = (kernel.is_observed, name(key)) {
        kernel.emit(tid, EventKind::Obtain { object });
    }
}

/// No lock has such an address.
fn name(key: WaitKey) -> Option<u64> {
    const KIND_BITS: u32 = 56;
    let (kind, number) = match key {
        WaitKey::Object(inode) => (1, u64::from(inode)),
        WaitKey::ChildOf(parent) => (2, u64::from(parent)),
        WaitKey::SignalFor(thread) => (3, u64::from(thread)),
        WaitKey::FileLock(inode) => (4, inode),
        WaitKey::VforkOf(child) => (5, u64::from(child)),
        WaitKey::SemaphoreSet(id) => (6, u64::from(id.cast_unsigned())),
        WaitKey::MessageQueue(id) => (7, u64::from(id.cast_unsigned())),
        WaitKey::FutexTicket(_) => return None,
    };
    Some(kind << KIND_BITS | number)
}

/// What a call that has succeeded has learned of.
fn obtained(
    kernel: &mut Kernel,
    tid: Tid,
    number: u32,
    args: &[u64; 6],
    value: u64,
) -> Vec<WaitKey> {
    let mut keys = Vec::new();
    match raddle_calls::of(number).map_or(Learns::Nothing, |call| call.learns) {
        Learns::Nothing => {}
        Learns::File => add_keys(kernel, tid, args[0], &mut keys),
        Learns::PollList => {
            for index in 0..args[1].min(POLLED_MAX) {
                let fd = kernel.read_u32(tid, args[0].wrapping_add(8 * index));
                add_keys(kernel, tid, fd.map_or(u64::MAX, u64::from), &mut keys);
            }
        }
        Learns::SelectSet => {
            for fd in 0..args[0].min(POLLED_MAX) {
                let word = kernel.read_u64(tid, args[1].wrapping_add(fd / 64 * 8));
                if word.is_ok_and(|word| word >> (fd % 64) & 1 != 0) {
                    add_keys(kernel, tid, fd, &mut keys);
                }
            }
        }
        Learns::FileLock => {
            add_keys(kernel, tid, args[0], &mut keys);
            for key in &mut keys {
                if let WaitKey::Object(inode) = *key {
                    *key = WaitKey::FileLock(u64::from(inode));
                }
            }
        }
        Learns::Children => {
            keys.push(WaitKey::ChildOf(kernel.thread(tid).process.0));
        }
        Learns::NewProcess => keys.push(WaitKey::VforkOf(low_u32(value))),
        Learns::Signals => keys.push(WaitKey::SignalFor(tid.0)),
    }
    keys
}

/// Whatever a thread that waits for a descriptor would sleep on.
fn add_keys(kernel: &Kernel, tid: Tid, fd: u64, keys: &mut Vec<WaitKey>) {
    if let Ok(open) = open::lookup(kernel, tid, low_i32(fd)) {
        ready::keys_of(kernel, tid, open, keys);
    }
}

/// A call, if one is being made, has read or written its thread's memory.
pub(crate) fn note(kernel: &mut Kernel, tid: Tid, copied: Copied) {
    let Some(serving) = kernel.serving.filter(|serving| serving.number != FUTEX) else {
        return;
    };
    if kernel.watch.heap.is_on {
        check_heap(kernel, tid, serving, copied);
    }
    if kernel.is_observed {
        note_access(kernel, tid, serving, copied);
    }
}

/// Freed memory must not be handed to the kernel either.
fn check_heap(kernel: &mut Kernel, tid: Tid, serving: Serving, copied: Copied) {
    let (_, space) = kernel.memory_of(tid);
    let Some(addr) = space.map.first_forbidden(copied.from, copied.length) else {
        return;
    };
    let (kind, block) = space.heap.error_at(addr.0, copied.how.writes());
    let error = HeapError {
        kind,
        context: serving.context,
        pc: serving.site.pc(),
        addr: addr.0,
        block,
    };
    kernel.halt.get_or_insert(Halt::Heap(error));
}

fn note_access(kernel: &mut Kernel, tid: Tid, serving: Serving, copied: Copied) {
    const GRANULE: u64 = GRANULE_BYTES as u64;
    let id = kernel.process_of(tid).space;
    let map = &kernel.state.spaces[&id].map;
    let Copied { from, length, how } = copied;
    let end = from.0.saturating_add(length.min(NOTED_MAX));
    let mut at = from.0;
    while at < end {
        let size = (GRANULE - at % GRANULE).min(end - at);
        if let Some(page) = page_key(id, map, GuestAddr(at).page()) {
            let access = Access {
                how,
                size: low_u8(size),
                location: Location::new(page, low_u16(at & 0xFFF)),
                addr: at,
                value: None,
            };
            kernel.events.push(Event {
                context: serving.context,
                step: serving.step,
                site: serving.site,
                kind: EventKind::Access(access),
            });
        }
        at += size;
    }
}
