//! Scheduling calls. Priorities are kept and reported; who runs next is the scheduler's choice alone.

use raddle_stdx::width::{low_u32, to_u64, to_usize};
use raddle_world::{Duration, Lacking};

use crate::call::{Call, SysResult, Trouble};
use crate::credentials::Capability;
use crate::errno::Errno;
use crate::syscall::table::Entry;
use crate::thread::{Schedule, Tid};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("sched_yield", sched_yield),
    Entry::partial("getpriority", getpriority, "kept, without effect"),
    Entry::partial("setpriority", setpriority, "kept, without effect"),
    Entry::partial("sched_setparam", sched_setparam, "kept, without effect"),
    Entry::full("sched_getparam", sched_getparam),
    Entry::partial(
        "sched_setscheduler",
        sched_setscheduler,
        "kept, without effect",
    ),
    Entry::full("sched_getscheduler", sched_getscheduler),
    Entry::full("sched_get_priority_max", sched_get_priority_max),
    Entry::full("sched_get_priority_min", sched_get_priority_min),
    Entry::full("sched_rr_get_interval", sched_rr_get_interval),
    Entry::partial(
        "sched_setaffinity",
        sched_setaffinity,
        "kept, without effect",
    ),
    Entry::full("sched_getaffinity", sched_getaffinity),
    Entry::full("getcpu", getcpu),
    Entry::partial(
        "sched_setattr",
        sched_setattr,
        "policy and priority are kept, without effect",
    ),
    Entry::full("sched_getattr", sched_getattr),
    Entry::ignored("ioprio_set", super::succeed, "there is no disk to wait for"),
    Entry::partial("ioprio_get", ioprio_get, "always the default class"),
];

/// What a yield takes when all who could run have yielded, as if other programs of the machine ran meanwhile.
///
/// Without it, threads that yield until a sleeper has done its work make a call every few nanoseconds: millions of
/// them in a short sleep.
const IDLE_YIELD: Duration = Duration(50_000);

fn sched_yield(call: &mut Call<'_>) -> SysResult {
    let kernel = &mut *call.kernel;
    let context = kernel.thread(call.tid).context;
    let steps = kernel.state.contexts.get(context).steps;
    let thread = kernel.thread_mut(call.tid);
    thread.has_yielded = true;
    thread.yielded_at = Some(steps);
    if let Some(deadline) = kernel.next_deadline()
        && kernel.all_have_yielded()
    {
        let later = kernel.state.now.after(IDLE_YIELD);
        kernel.state.now = later.min(deadline).max(kernel.state.now);
    }
    Ok(0)
}

/// The thread that argument 0 names; 0 is the caller.
fn target(call: &Call<'_>) -> Result<Tid, Errno> {
    match call.int(0) {
        0 => Ok(call.tid),
        number if number > 0 => {
            let tid = Tid(number.cast_unsigned());
            if call.kernel.state.threads.contains_key(&tid) {
                Ok(tid)
            } else {
                Err(Errno::ESRCH)
            }
        }
        _ => Err(Errno::EINVAL),
    }
}

fn schedule_of<'a>(call: &'a mut Call<'_>, tid: Tid) -> &'a mut Schedule {
    &mut call.kernel.thread_mut(tid).schedule
}

/// Range of priorities of a policy.
fn priorities(policy: i32) -> Result<(u32, u32), Errno> {
    match policy {
        1 | 2 => Ok((1, 99)),
        0 | 3 | 5 | 6 => Ok((0, 0)),
        _ => Err(Errno::EINVAL),
    }
}

fn check_priority(policy: u32, priority: u32) -> Result<(), Errno> {
    let (low, high) = priorities(policy.cast_signed())?;
    if (low..=high).contains(&priority) {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

fn sched_setparam(call: &mut Call<'_>) -> SysResult {
    let tid = target(call)?;
    let priority = call.kernel.read_u32(call.tid, call.args[1])?;
    let policy = schedule_of(call, tid).policy;
    check_priority(policy, priority)?;
    schedule_of(call, tid).priority = priority;
    Ok(0)
}

fn sched_getparam(call: &mut Call<'_>) -> SysResult {
    let tid = target(call)?;
    let priority = schedule_of(call, tid).priority;
    call.write_bytes(call.args[1], &priority.to_le_bytes())?;
    Ok(0)
}

fn sched_setscheduler(call: &mut Call<'_>) -> SysResult {
    const RESET_ON_FORK: u32 = 0x4000_0000;
    let tid = target(call)?;
    let policy = low_u32(call.args[1]) & !RESET_ON_FORK;
    let priority = call.kernel.read_u32(call.tid, call.args[2])?;
    check_priority(policy, priority)?;
    let schedule = schedule_of(call, tid);
    schedule.policy = policy;
    schedule.priority = priority;
    Ok(0)
}

fn sched_getscheduler(call: &mut Call<'_>) -> SysResult {
    let tid = target(call)?;
    Ok(u64::from(schedule_of(call, tid).policy))
}

fn sched_get_priority_max(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(priorities(call.int(0))?.1))
}

fn sched_get_priority_min(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(priorities(call.int(0))?.0))
}

fn sched_rr_get_interval(call: &mut Call<'_>) -> SysResult {
    target(call)?;
    call.write_time(call.args[1], 0, 4_000_000)?;
    Ok(0)
}

fn sched_setaffinity(call: &mut Call<'_>) -> SysResult {
    let tid = target(call)?;
    let length = to_usize(call.args[1]).min(8);
    let mut bytes = [0; 8];
    call.kernel
        .read_user(call.tid, call.addr(2), &mut bytes[..length])?;
    let wanted = u64::from_le_bytes(bytes) & all_cpus(call);
    if wanted == 0 {
        return Err(Errno::EINVAL.into());
    }
    schedule_of(call, tid).affinity = wanted;
    Ok(0)
}

fn all_cpus(call: &Call<'_>) -> u64 {
    u64::MAX >> (64 - call.kernel.config.cpus.clamp(1, 64))
}

fn sched_getaffinity(call: &mut Call<'_>) -> SysResult {
    let tid = target(call)?;
    if call.args[1] < 8 || !call.args[1].is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    let mask = schedule_of(call, tid).affinity;
    call.write_words(call.args[2], &[mask])?;
    Ok(8)
}

fn getcpu(call: &mut Call<'_>) -> SysResult {
    // A thread's place among its siblings, spread over the CPUs it may use.
    let cpu = cpu_of(call);
    for index in [0, 1] {
        if call.args[index] != 0 {
            let value = if index == 0 { cpu } else { 0 };
            call.write_bytes(call.args[index], &value.to_le_bytes())?;
        }
    }
    Ok(0)
}

fn cpu_of(call: &Call<'_>) -> u32 {
    let thread = call.kernel.thread(call.tid);
    let allowed: Vec<u32> = (0..64)
        .filter(|cpu| thread.schedule.affinity >> cpu & 1 == 1)
        .collect();
    let index = to_u64(thread.context.0 as usize) % to_u64(allowed.len().max(1));
    allowed.get(to_usize(index)).copied().unwrap_or(0)
}

fn sched_setattr(call: &mut Call<'_>) -> SysResult {
    let tid = target(call)?;
    let bytes: [u8; 24] = call.read_bytes(call.args[1])?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let (policy, nice, priority) = (word(4), word(16).cast_signed(), word(20));
    if policy == 6 {
        return Err(Trouble::Unsupported(Lacking::Arguments(
            "sched_setattr with SCHED_DEADLINE".into(),
        )));
    }
    check_priority(policy, priority)?;
    let schedule = schedule_of(call, tid);
    schedule.policy = policy;
    schedule.priority = priority;
    schedule.nice = nice.clamp(-20, 19);
    Ok(0)
}

fn sched_getattr(call: &mut Call<'_>) -> SysResult {
    const SIZE: u64 = 56;
    let tid = target(call)?;
    if call.args[2] < 48 || call.args[3] != 0 {
        return Err(Errno::EINVAL.into());
    }
    let schedule = *schedule_of(call, tid);
    let size = SIZE.min(call.args[2]);
    let mut bytes = [0; 56];
    bytes[0..4].copy_from_slice(&low_u32(size).to_le_bytes());
    bytes[4..8].copy_from_slice(&schedule.policy.to_le_bytes());
    bytes[16..20].copy_from_slice(&schedule.nice.to_le_bytes());
    bytes[20..24].copy_from_slice(&schedule.priority.to_le_bytes());
    call.write_bytes(call.args[1], &bytes[..to_usize(size)])?;
    Ok(0)
}

/// The threads that getpriority and setpriority mean.
fn priority_targets(call: &Call<'_>) -> Result<Vec<Tid>, Errno> {
    let own = call.kernel.process_of(call.tid);
    let who = low_u32(call.args[1]);
    let threads: Vec<Tid> = match call.int(0) {
        0 if who == 0 => vec![call.tid],
        0 => call
            .kernel
            .state
            .threads
            .keys()
            .filter(|tid| tid.0 == who)
            .collect(),
        1 => {
            let group = if who == 0 { own.group.0 } else { who };
            let members = call.kernel.state.processes.values();
            members
                .filter(|process| process.group.0 == group)
                .flat_map(|process| process.threads.iter().copied())
                .collect()
        }
        2 => call.kernel.state.threads.keys().collect(),
        _ => return Err(Errno::EINVAL),
    };
    if threads.is_empty() {
        return Err(Errno::ESRCH);
    }
    Ok(threads)
}

fn getpriority(call: &mut Call<'_>) -> SysResult {
    let nice = priority_targets(call)?
        .into_iter()
        .map(|tid| call.kernel.thread(tid).schedule.nice)
        .min()
        .unwrap_or(0);
    // The call returns 20 - nice, so that it is never negative.
    Ok(u64::try_from(20 - nice).unwrap_or(20))
}

fn setpriority(call: &mut Call<'_>) -> SysResult {
    let nice = call.int(2).clamp(-20, 19);
    for tid in priority_targets(call)? {
        check_nice(call, tid, nice)?;
        schedule_of(call, tid).nice = nice;
    }
    Ok(0)
}

/// Only a privileged caller changes threads of other users, or makes any thread less nice (RLIMIT_NICE is 0).
fn check_nice(call: &Call<'_>, tid: Tid, nice: i32) -> Result<(), Errno> {
    let own = call.kernel.credentials(call.tid);
    if own.has(Capability::SYS_NICE) {
        return Ok(());
    }
    let target = call.kernel.thread(tid);
    let users = target.credentials.users;
    if ![users.real, users.effective].contains(&own.users.effective) {
        return Err(Errno::EPERM);
    }
    if nice < target.schedule.nice {
        return Err(Errno::EACCES);
    }
    Ok(())
}

fn ioprio_get(_: &mut Call<'_>) -> SysResult {
    Ok(0)
}
