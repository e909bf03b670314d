//! Futexes: queues of waiters by location, with exact wake order; robust lists.

use std::collections::BTreeMap;

use raddle_mem::{Backing, GuestAddr, ObjectId};
use raddle_world::{Choice, VirtualTime, WaitReason};

use crate::call::{Block, Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::SpaceId;
use crate::thread::Tid;

/// Where a futex is, the same for everybody who shares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Memory of one address space.
    Private { space: SpaceId, addr: u64 },
    /// A byte of a file or shared segment.
    Shared { object: ObjectId, offset: u64 },
}

/// One thread in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiter {
    ticket: u64,
    bits: u32,
}

/// All futex queues.
#[derive(Debug, Clone, Default)]
pub(crate) struct Futexes {
    queues: BTreeMap<Place, Vec<Waiter>>,
    last_ticket: u64,
    /// The next wake-up takes the last of those who wait.
    takes_last: bool,
}

/// What a call does with a futex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Wait,
    Wake,
}

impl Futexes {
    /// The next wake-up takes the last of those who wait.
    pub(crate) fn wakes_last(&mut self) {
        self.takes_last = true;
    }

    fn enqueue(&mut self, place: Place, bits: u32) -> u64 {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        self.queues
            .entry(place)
            .or_default()
            .push(Waiter { ticket, bits });
        ticket
    }

    fn is_queued(&self, ticket: u64) -> bool {
        self.queues
            .values()
            .flatten()
            .any(|waiter| waiter.ticket == ticket)
    }

    fn remove(&mut self, ticket: u64) {
        self.queues.retain(|_, queue| {
            queue.retain(|waiter| waiter.ticket != ticket);
            !queue.is_empty()
        });
    }

    /// Moves up to `count` waiters to the end of another queue.
    fn requeue(&mut self, from: Place, to: Place, count: u64) -> u64 {
        let Some(queue) = self.queues.get_mut(&from) else {
            return 0;
        };
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(queue.len());
        let moved: Vec<Waiter> = queue.drain(..count).collect();
        if queue.is_empty() {
            self.queues.remove(&from);
        }
        self.queues.entry(to).or_default().extend(moved);
        raddle_stdx::width::to_u64(count)
    }
}

/// The place of the futex at an address of the thread's memory.
pub(crate) fn place(kernel: &Kernel, tid: Tid, addr: u64) -> Result<Place, Errno> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    let page = GuestAddr(addr).page();
    let space = kernel.space_of(tid);
    let vma = space.map.vma_at(page).ok_or(Errno::EFAULT)?;
    Ok(match vma.backing {
        Backing::Object { object, first_page } if vma.shared => Place::Shared {
            object,
            offset: ((first_page + (page.0 - vma.start.0)) << raddle_mem::PAGE_BITS)
                + (addr & 0xFFF),
        },
        _ => Place::Private {
            space: kernel.process_of(tid).space,
            addr,
        },
    })
}

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) addr: u64,
    pub(crate) expected: u32,
    pub(crate) bits: u32,
    pub(crate) deadline: Option<VirtualTime>,
}

/// FUTEX_WAIT and FUTEX_WAIT_BITSET.
pub(crate) fn wait(call: &mut Call<'_>, wait: Wait) -> SysResult {
    let kernel = &mut *call.kernel;
    if let Some(ticket) = kernel.thread(call.tid).futex_ticket {
        if !kernel.state.futexes.is_queued(ticket) {
            kernel.thread_mut(call.tid).futex_ticket = None;
            return Ok(0);
        }
        if call
            .deadline
            .is_some_and(|deadline| deadline <= kernel.state.now)
        {
            kernel.cancel_futex_wait(call.tid);
            return Err(Errno::ETIMEDOUT.into());
        }
        return Err(block(wait.addr, ticket, call.deadline));
    }
    if wait.bits == 0 {
        return Err(Errno::EINVAL.into());
    }
    let place = place(kernel, call.tid, wait.addr)?;
    if kernel.read_u32(call.tid, wait.addr)? != wait.expected {
        return Err(Errno::EAGAIN.into());
    }
    if wait
        .deadline
        .is_some_and(|deadline| deadline <= kernel.state.now)
    {
        return Err(Errno::ETIMEDOUT.into());
    }
    let ticket = kernel.state.futexes.enqueue(place, wait.bits);
    kernel.thread_mut(call.tid).futex_ticket = Some(ticket);
    Err(block(wait.addr, ticket, wait.deadline))
}

fn block(addr: u64, ticket: u64, deadline: Option<VirtualTime>) -> Trouble {
    Trouble::Block(Block {
        reason: WaitReason::Futex { addr },
        keys: vec![WaitKey::FutexTicket(ticket)],
        deadline,
        on_signal: if deadline.is_some() {
            OnSignal::Interrupt
        } else {
            OnSignal::Restart
        },
    })
}

/// Wakes up to `count` waiters whose bits match; gives the number woken.
pub(crate) fn wake(kernel: &mut Kernel, place: Place, count: u64, bits: u32) -> u64 {
    let mut woken = 0;
    while woken < count {
        let Some(queue) = kernel.state.futexes.queues.get(&place) else {
            break;
        };
        let matching: Vec<u64> = queue
            .iter()
            .filter(|waiter| waiter.bits & bits != 0)
            .map(|waiter| waiter.ticket)
            .collect();
        if matching.is_empty() {
            break;
        }
        let candidates = raddle_stdx::width::low_u32(raddle_stdx::width::to_u64(matching.len()));
        // With as many wake-ups as waiters the order is theirs.
        let index = if count - woken >= u64::from(candidates) {
            0
        } else if std::mem::take(&mut kernel.state.futexes.takes_last) {
            u64::from(candidates) - 1
        } else {
            kernel
                .state
                .choices
                .choose(Choice::WakeOrder { count: candidates })
        };
        let ticket = matching[raddle_stdx::width::to_usize(index).min(matching.len() - 1)];
        kernel.state.futexes.remove(ticket);
        kernel.wake(WaitKey::FutexTicket(ticket));
        woken += 1;
    }
    woken
}

/// Those who wait at an address of the thread's memory.
pub(crate) fn waiters(kernel: &Kernel, tid: Tid, addr: u64) -> u64 {
    let place = place(kernel, tid, addr).ok();
    let queue = place.and_then(|place| kernel.state.futexes.queues.get(&place));
    queue.map_or(0, |queue| raddle_stdx::width::to_u64(queue.len()))
}

/// Wakes waiters at an address of the thread's memory; nothing happens if there is none.
pub(crate) fn wake_at(kernel: &mut Kernel, tid: Tid, addr: u64, count: u64, bits: u32) -> u64 {
    match place(kernel, tid, addr) {
        Ok(place) => wake(kernel, place, count, bits),
        Err(_) => 0,
    }
}

/// FUTEX_REQUEUE and FUTEX_CMP_REQUEUE: wakes some, moves others.
pub(crate) fn requeue(
    kernel: &mut Kernel,
    from: Place,
    to: Place,
    wake_count: u64,
    move_count: u64,
) -> (u64, u64) {
    let woken = wake(kernel, from, wake_count, u32::MAX);
    let moved = if from == to {
        0
    } else {
        kernel.state.futexes.requeue(from, to, move_count)
    };
    (woken, moved)
}

impl Kernel {
    /// Takes the thread out of its futex queue.
    pub(crate) fn cancel_futex_wait(&mut self, tid: Tid) {
        let Some(thread) = self.state.threads.get_mut(&tid) else {
            return;
        };
        if let Some(ticket) = thread.futex_ticket.take() {
            self.state.futexes.remove(ticket);
        }
    }
}

/// Bits of a robust futex word.
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
const TID_MASK: u32 = 0x3FFF_FFFF;
/// As many entries as Linux follows before it believes that the list is circular.
const ROBUST_LIMIT: usize = 2048;

/// Marks the robust futexes that a dying thread holds and wakes one waiter each (get_robust_list(2)).
pub(crate) fn release_robust_list(kernel: &mut Kernel, tid: Tid) {
    let head = std::mem::take(&mut kernel.thread_mut(tid).robust_list);
    if head == 0 {
        return;
    }
    let Ok(first) = kernel.read_u64(tid, head) else {
        return;
    };
    let Ok(offset) = kernel.read_u64(tid, head.wrapping_add(8)) else {
        return;
    };
    let pending = kernel.read_u64(tid, head.wrapping_add(16)).unwrap_or(0);
    let mut entry = first;
    for _ in 0..ROBUST_LIMIT {
        if entry & !1 == head {
            break;
        }
        let next = kernel.read_u64(tid, entry & !1);
        if entry != pending {
            release_robust_futex(kernel, tid, (entry & !1).wrapping_add(offset), false);
        }
        let Ok(next) = next else {
            break;
        };
        entry = next;
    }
    if pending & !1 != 0 {
        release_robust_futex(kernel, tid, (pending & !1).wrapping_add(offset), true);
    }
}

fn release_robust_futex(kernel: &mut Kernel, tid: Tid, addr: u64, is_pending: bool) {
    let Ok(value) = kernel.read_u32(tid, addr) else {
        return;
    };
    // A pending unlock that stored zero but had no time to wake anybody.
    if is_pending && value == 0 {
        wake_at(kernel, tid, addr, 1, u32::MAX);
        return;
    }
    if value & TID_MASK != tid.0 {
        return;
    }
    let marked = (value & WAITERS) | OWNER_DIED;
    let is_written = kernel
        .write_user(tid, GuestAddr(addr), &marked.to_le_bytes())
        .is_ok();
    if is_written && value & WAITERS != 0 {
        wake_at(kernel, tid, addr, 1, u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(addr: u64) -> Place {
        Place::Private {
            space: SpaceId(1),
            addr,
        }
    }

    #[test]
    fn requeue_moves_the_oldest_behind_those_already_there() {
        let mut futexes = Futexes::default();
        let other = futexes.enqueue(at(8), 1);
        let first = futexes.enqueue(at(4), 1);
        let second = futexes.enqueue(at(4), 1);
        let third = futexes.enqueue(at(4), 1);
        assert_eq!(futexes.requeue(at(4), at(8), 2), 2);
        let tickets = |place| {
            futexes.queues[&place]
                .iter()
                .map(|waiter| waiter.ticket)
                .collect::<Vec<_>>()
        };
        assert_eq!(tickets(at(8)), [other, first, second]);
        assert_eq!(tickets(at(4)), [third]);
    }

    #[test]
    fn removing_the_last_waiter_removes_the_queue() {
        let mut futexes = Futexes::default();
        let ticket = futexes.enqueue(at(4), 1);
        assert!(futexes.is_queued(ticket));
        futexes.remove(ticket);
        assert!(!futexes.is_queued(ticket));
        assert!(futexes.queues.is_empty());
    }
}
