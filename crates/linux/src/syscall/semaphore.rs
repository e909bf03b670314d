//! System V semaphores: semget, semop, semtimedop, semctl.

use raddle_stdx::width::{as_u64, low_i32, low_u32, to_u64, to_usize};
use raddle_world::{Duration, WaitReason};

use super::shared_memory::{command, seconds, set_permission};
use super::table::Entry;
use crate::call::{Block, Call, OnSignal, SysResult, Trouble};
use crate::errno::Errno;
use crate::ipc::semaphore::{Refusal, UNDO, VALUE_MAX};
use crate::ipc::{Asked, Operation, Permission, SemaphoreSet, flags, semaphore_key};
use crate::serve;
use crate::thread::{Activity, Tid};
use crate::time;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("semget", semget),
    Entry::partial(
        "semop",
        semop,
        "a waiter that is chosen to run takes a semaphore before one that waited longer",
    ),
    Entry::partial(
        "semtimedop",
        semtimedop,
        "a waiter that is chosen to run takes a semaphore before one that waited longer",
    ),
    Entry::full("semctl", semctl),
];

/// Semaphores of one set at most (`SEMMSL`).
const SET_MAX: i32 = 32_000;
/// Operations of one call at most (`SEMOPM`).
const OPERATIONS_MAX: u64 = 500;

fn semget(call: &mut Call<'_>) -> SysResult {
    let (key, count, wanted) = (call.int(0), call.int(1), call.word(2));
    if !(0..=SET_MAX).contains(&count) {
        return Err(Errno::EINVAL.into());
    }
    let size = to_usize(as_u64(i64::from(count)));
    let who = call.kernel.credentials(call.tid);
    let sets = &call.kernel.state.ipc.semaphores;
    let known = sets.find(who, key, wanted, |set| size <= set.values.len())?;
    if let Some(id) = known {
        return Ok(as_u64(i64::from(id)));
    }
    if count == 0 {
        return Err(Errno::EINVAL.into());
    }
    let set = SemaphoreSet {
        permission: Permission::of_new(who, key, wanted),
        values: vec![0; size],
        last: vec![0; size],
        used: 0,
        changed: seconds(call),
    };
    Ok(as_u64(i64::from(
        call.kernel.state.ipc.semaphores.insert(set),
    )))
}

fn semop(call: &mut Call<'_>) -> SysResult {
    operate(call)
}

fn semtimedop(call: &mut Call<'_>) -> SysResult {
    if !call.is_retry && call.args[3] != 0 {
        let span = time::timespec(call.read_time(call.args[3])?)?;
        call.deadline = Some(call.kernel.state.now.after(Duration(span)));
    }
    operate(call)
}

fn operations(
    kernel: &mut crate::kernel::Kernel,
    tid: Tid,
    at: u64,
    count: u64,
) -> Result<Vec<Operation>, Errno> {
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if count > OPERATIONS_MAX {
        return Err(Errno::E2BIG);
    }
    let mut bytes = vec![0; to_usize(count) * 6];
    // Also asked for those who wait: their memory is not read for the caller.
    kernel.peek_user(tid, raddle_mem::GuestAddr(at), &mut bytes)?;
    let half = |piece: &[u8], at: usize| u16::from_le_bytes([piece[at], piece[at + 1]]);
    Ok(bytes
        .chunks_exact(6)
        .map(|piece| Operation {
            index: half(piece, 0),
            change: half(piece, 2).cast_signed(),
            flags: u32::from(half(piece, 4)),
        })
        .collect())
}

fn operate(call: &mut Call<'_>) -> SysResult {
    let id = call.int(0);
    let wanted = operations(call.kernel, call.tid, call.args[1], call.args[2])?;
    let set = match call.kernel.state.ipc.semaphores.get(id) {
        // The set was there when the wait began.
        Err(_) if call.is_retry => return Err(Errno::EIDRM.into()),
        set => set?,
    };
    let changes = wanted.iter().any(|operation| operation.change != 0);
    let asked = if changes { Asked::Write } else { Asked::Read };
    set.permission
        .check(call.kernel.credentials(call.tid), asked)?;
    match set.after(&wanted) {
        Ok(values) => {
            carry_out(call, id, &wanted, values)?;
            Ok(0)
        }
        Err(Refusal::Errno(errno)) => Err(errno.into()),
        Err(Refusal::Waits(operation)) if operation.flags & flags::NO_WAIT != 0 => {
            Err(Errno::EAGAIN.into())
        }
        Err(Refusal::Waits(_)) if call.has_timed_out() => Err(Errno::EAGAIN.into()),
        Err(Refusal::Waits(_)) => Err(Trouble::Block(Block {
            reason: WaitReason::Io {
                descriptors: Vec::new(),
            },
            keys: vec![semaphore_key(id)],
            deadline: call.deadline,
            on_signal: OnSignal::Interrupt,
        })),
    }
}

fn carry_out(
    call: &mut Call<'_>,
    id: i32,
    operations: &[Operation],
    values: Vec<i32>,
) -> Result<(), Errno> {
    let pid = call.kernel.thread(call.tid).process;
    let now = seconds(call);
    let ipc = &mut call.kernel.state.ipc;
    let undone = operations
        .iter()
        .filter(|operation| operation.flags & UNDO != 0 && operation.change != 0);
    for operation in undone {
        let own = ipc.undo.entry((pid, id)).or_default();
        *own.entry(operation.index).or_default() -= i32::from(operation.change);
    }
    let set = ipc.semaphores.get_mut(id)?;
    set.values = values;
    set.used = now;
    for operation in operations {
        set.last[usize::from(operation.index)] = pid.0;
    }
    // What the caller did before it gave is known to the thread that takes.
    if operations.iter().any(|operation| operation.change <= 0) {
        serve::obtain(call.kernel, call.tid, semaphore_key(id));
    }
    if operations.iter().any(|operation| operation.change != 0) {
        call.kernel.wake(semaphore_key(id));
    }
    Ok(())
}

/// Commands of semctl(2) beyond the common ones.
mod ask {
    pub(super) const LAST: i32 = 11;
    pub(super) const VALUE: i32 = 12;
    pub(super) const ALL: i32 = 13;
    pub(super) const WAIT_MORE: i32 = 14;
    pub(super) const WAIT_ZERO: i32 = 15;
    pub(super) const SET_VALUE: i32 = 16;
    pub(super) const SET_ALL: i32 = 17;
    pub(super) const STAT_INDEX: i32 = 18;
    pub(super) const USAGE: i32 = 19;
    pub(super) const STAT_ANY: i32 = 20;
}

fn semctl(call: &mut Call<'_>) -> SysResult {
    let (id, wanted) = (call.int(0), call.int(2));
    match wanted {
        command::REMOVE => remove(call, id),
        command::SET => {
            set_permission(call, call.args[3], |ipc, id| {
                Ok(ipc.semaphores.get_mut(id)?)
            })?;
            let now = seconds(call);
            call.kernel.state.ipc.semaphores.get_mut(id)?.changed = now;
            Ok(0)
        }
        command::STAT | ask::STAT_INDEX | ask::STAT_ANY => put_status(call, id),
        command::INFO | ask::USAGE => put_limits(call, wanted == ask::USAGE),
        ask::SET_VALUE => {
            let value = low_i32(call.args[3]);
            let index = semaphore_index(call, id)?;
            set_values(call, id, |values| values[index] = value)
        }
        ask::SET_ALL => set_all(call, id),
        ask::ALL => get_all(call, id),
        ask::LAST | ask::VALUE | ask::WAIT_MORE | ask::WAIT_ZERO => get_one(call, id, wanted),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn check(call: &Call<'_>, id: i32, asked: Asked) -> Result<(), Errno> {
    let set = call.kernel.state.ipc.semaphores.get(id)?;
    set.permission
        .check(call.kernel.credentials(call.tid), asked)
}

fn semaphore_index(call: &Call<'_>, id: i32) -> Result<usize, Errno> {
    let set = call.kernel.state.ipc.semaphores.get(id)?;
    usize::try_from(call.int(1))
        .ok()
        .filter(|index| *index < set.values.len())
        .ok_or(Errno::EINVAL)
}

fn get_one(call: &mut Call<'_>, id: i32, wanted: i32) -> SysResult {
    check(call, id, Asked::Read)?;
    let index = semaphore_index(call, id)?;
    let set = call.kernel.state.ipc.semaphores.get(id)?;
    Ok(match wanted {
        ask::LAST => u64::from(set.last[index]),
        ask::VALUE => as_u64(i64::from(set.values[index])),
        _ => waiters(call, id, index, wanted == ask::WAIT_ZERO),
    })
}

/// How many threads wait for this semaphore to become zero, or to grow.
fn waiters(call: &mut Call<'_>, id: i32, index: usize, for_zero: bool) -> u64 {
    const SEMOP: u32 = raddle_calls::number("semop");
    const SEMTIMEDOP: u32 = raddle_calls::number("semtimedop");
    let waiting: Vec<(Tid, u64, u64)> = call
        .kernel
        .state
        .threads
        .values()
        .filter_map(|thread| match &thread.activity {
            Activity::Waiting(waiting)
                if matches!(waiting.number, SEMOP | SEMTIMEDOP)
                    && low_i32(waiting.args[0]) == id =>
            {
                Some((thread.tid, waiting.args[1], waiting.args[2]))
            }
            _ => None,
        })
        .collect();
    let mut count = 0;
    for (tid, at, length) in waiting {
        let Ok(wanted) = operations(call.kernel, tid, at, length) else {
            continue;
        };
        let Ok(set) = call.kernel.state.ipc.semaphores.get(id) else {
            continue;
        };
        if let Err(Refusal::Waits(operation)) = set.after(&wanted)
            && usize::from(operation.index) == index
            && (operation.change == 0) == for_zero
        {
            count += 1;
        }
    }
    count
}

fn get_all(call: &mut Call<'_>, id: i32) -> SysResult {
    check(call, id, Asked::Read)?;
    let set = call.kernel.state.ipc.semaphores.get(id)?;
    let bytes: Vec<u8> = set
        .values
        .iter()
        .flat_map(|value| u16::try_from(*value).unwrap_or(0).to_le_bytes())
        .collect();
    call.write_bytes(call.args[3], &bytes)?;
    Ok(0)
}

fn set_all(call: &mut Call<'_>, id: i32) -> SysResult {
    let count = call.kernel.state.ipc.semaphores.get(id)?.values.len();
    let mut bytes = vec![0; count * 2];
    call.kernel.read_user(call.tid, call.addr(3), &mut bytes)?;
    let new: Vec<i32> = bytes
        .chunks_exact(2)
        .map(|piece| i32::from(u16::from_le_bytes([piece[0], piece[1]])))
        .collect();
    set_values(call, id, |values| values.copy_from_slice(&new))
}

/// Sets values; what processes would have taken back of them is forgotten.
fn set_values(call: &mut Call<'_>, id: i32, set: impl FnOnce(&mut [i32])) -> SysResult {
    check(call, id, Asked::Write)?;
    let (pid, now) = (call.kernel.thread(call.tid).process.0, seconds(call));
    let ipc = &mut call.kernel.state.ipc;
    let found = ipc.semaphores.get_mut(id)?;
    let mut values = found.values.clone();
    set(&mut values);
    if values.iter().any(|value| !(0..=VALUE_MAX).contains(value)) {
        return Err(Errno::ERANGE.into());
    }
    for (index, value) in values.iter().enumerate() {
        if *value != found.values[index] {
            found.last[index] = pid;
        }
    }
    found.values = values;
    found.changed = now;
    ipc.undo.retain(|(_, set), _| *set != id);
    call.kernel.wake(semaphore_key(id));
    Ok(0)
}

fn remove(call: &mut Call<'_>, id: i32) -> SysResult {
    let set = call.kernel.state.ipc.semaphores.get(id)?;
    set.permission
        .check_owner(call.kernel.credentials(call.tid))?;
    let ipc = &mut call.kernel.state.ipc;
    ipc.semaphores.remove(id);
    ipc.undo.retain(|(_, set), _| *set != id);
    call.kernel.wake(semaphore_key(id));
    Ok(0)
}

/// Writes a `struct semid64_ds`. Asked by index, it gives the identifier, which is the same here.
fn put_status(call: &mut Call<'_>, id: i32) -> SysResult {
    if call.int(2) != ask::STAT_ANY {
        check(call, id, Asked::Read)?;
    }
    let set = call.kernel.state.ipc.semaphores.get(id)?;
    let mut bytes = set.permission.encode(0).to_vec();
    let count = to_u64(set.values.len());
    for word in [set.used, 0, set.changed, 0, count, 0, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    call.write_bytes(call.args[3], &bytes)?;
    Ok(if call.int(2) == command::STAT {
        0
    } else {
        u64::from(id.cast_unsigned())
    })
}

/// Writes a `struct seminfo`; its last fields tell limits or what is in use.
fn put_limits(call: &mut Call<'_>, in_use: bool) -> SysResult {
    let sets = &call.kernel.state.ipc.semaphores;
    let semaphores: usize = sets.iter().map(|(_, set)| set.values.len()).sum();
    let (uses, total) = if in_use {
        (to_u64(sets.len()), to_u64(semaphores))
    } else {
        (20, 32_767)
    };
    let highest = sets.highest();
    let max = as_u64(i64::from(SET_MAX));
    let words = [
        max * 32_000,
        32_000,
        max * 32_000,
        max * 32_000,
        max,
        OPERATIONS_MAX,
        OPERATIONS_MAX,
        uses,
        32_767,
        total,
    ];
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word| low_u32(*word).to_le_bytes())
        .collect();
    call.write_bytes(call.args[3], &bytes)?;
    Ok(u64::from(highest.cast_unsigned()))
}
