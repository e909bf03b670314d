//! Clocks and timers, all in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use raddle_mem::GuestAddr;
use raddle_world::VirtualTime;

use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;
use crate::signal::SigInfo;
use crate::thread::{Tid, Waiting};

/// Realtime when the world begins: 2026-01-01T00:00:00Z. Host files are never shown younger, so an epoch in the
/// past would tear the times of installed files from those that caches (`.pyc`) remember.
pub(crate) const EPOCH_SECONDS: u64 = 1_767_225_600;
/// The world begins this long after its machine was switched on.
pub(crate) const UPTIME_SECONDS: u64 = 1000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Clock numbers of clock_gettime(2).
pub(crate) mod clock {
    pub(crate) const REALTIME: i32 = 0;
    pub(crate) const MONOTONIC: i32 = 1;
    pub(crate) const PROCESS: i32 = 2;
    pub(crate) const THREAD: i32 = 3;
    pub(crate) const MONOTONIC_RAW: i32 = 4;
    pub(crate) const REALTIME_COARSE: i32 = 5;
    pub(crate) const MONOTONIC_COARSE: i32 = 6;
    pub(crate) const BOOTTIME: i32 = 7;
    pub(crate) const REALTIME_ALARM: i32 = 8;
    pub(crate) const BOOTTIME_ALARM: i32 = 9;
    pub(crate) const TAI: i32 = 11;
}

/// Nanoseconds since 1970.
pub(crate) fn realtime(now: VirtualTime) -> u64 {
    (EPOCH_SECONDS * SECOND).saturating_add(now.0)
}

/// Nanoseconds since the machine was switched on.
pub(crate) fn monotonic(now: VirtualTime) -> u64 {
    (UPTIME_SECONDS * SECOND).saturating_add(now.0)
}

/// What a clock shows, in nanoseconds.
pub(crate) fn read_clock(kernel: &Kernel, tid: Tid, number: i32) -> Result<u64, Errno> {
    let now = kernel.state.now;
    match number {
        clock::REALTIME | clock::REALTIME_COARSE | clock::REALTIME_ALARM | clock::TAI => {
            Ok(realtime(now))
        }
        clock::MONOTONIC
        | clock::MONOTONIC_RAW
        | clock::MONOTONIC_COARSE
        | clock::BOOTTIME
        | clock::BOOTTIME_ALARM => Ok(monotonic(now)),
        clock::PROCESS => Ok(kernel.process_of(tid).usage.steps),
        clock::THREAD => Ok(thread_time(kernel, tid)),
        _ if number < 0 => cpu_clock(kernel, tid, number),
        _ => Err(Errno::EINVAL),
    }
}

fn thread_time(kernel: &Kernel, tid: Tid) -> u64 {
    kernel.state.contexts.get(kernel.thread(tid).context).steps
}

/// Clocks of other processes and threads: the id is inverted in the upper 29 bits (clock_getcpuclockid(3)).
fn cpu_clock(kernel: &Kernel, tid: Tid, number: i32) -> Result<u64, Errno> {
    let id = (!(number >> 3)).cast_unsigned();
    if number & 7 > 6 {
        return Err(Errno::EINVAL);
    }
    if number & 4 != 0 {
        let target = if id == 0 { tid } else { Tid(id) };
        let exists = kernel.state.threads.contains_key(&target);
        return if exists {
            Ok(thread_time(kernel, target))
        } else {
            Err(Errno::EINVAL)
        };
    }
    let target = if id == 0 {
        kernel.thread(tid).process
    } else {
        Pid(id)
    };
    kernel
        .state
        .processes
        .get(&target)
        .map(|process| process.usage.steps)
        .ok_or(Errno::EINVAL)
}

/// The moment at which a clock will show `nanoseconds`. Clocks of execution time cannot be waited for.
pub(crate) fn moment(number: i32, nanoseconds: u64) -> Result<VirtualTime, Errno> {
    let start = match number {
        clock::REALTIME | clock::REALTIME_COARSE | clock::REALTIME_ALARM | clock::TAI => {
            EPOCH_SECONDS
        }
        clock::MONOTONIC
        | clock::MONOTONIC_RAW
        | clock::MONOTONIC_COARSE
        | clock::BOOTTIME
        | clock::BOOTTIME_ALARM => UPTIME_SECONDS,
        _ => return Err(Errno::EOPNOTSUPP),
    };
    Ok(VirtualTime(nanoseconds.saturating_sub(start * SECOND)))
}

/// Nanoseconds of a `struct timespec`; EINVAL if it is not normal.
pub(crate) fn timespec((seconds, nanoseconds): (i64, i64)) -> Result<u64, Errno> {
    let seconds = u64::try_from(seconds).map_err(|_| Errno::EINVAL)?;
    let nanoseconds = u64::try_from(nanoseconds).map_err(|_| Errno::EINVAL)?;
    if nanoseconds >= SECOND {
        return Err(Errno::EINVAL);
    }
    Ok(seconds.saturating_mul(SECOND).saturating_add(nanoseconds))
}

/// Nanoseconds of a `struct timeval`; EINVAL if it is not normal.
pub(crate) fn timeval((seconds, microseconds): (i64, i64)) -> Result<u64, Errno> {
    let nanoseconds = microseconds.checked_mul(1000).ok_or(Errno::EINVAL)?;
    timespec((seconds, nanoseconds))
}

/// Seconds and the rest in nanoseconds.
pub(crate) fn split(nanoseconds: u64) -> (i64, i64) {
    (
        (nanoseconds / SECOND).cast_signed(),
        (nanoseconds % SECOND).cast_signed(),
    )
}

/// A signal handler ends a relative sleep: tells the program how much of it is left.
pub(crate) fn note_interrupted_sleep(kernel: &mut Kernel, tid: Tid, waiting: &Waiting) {
    const NANOSLEEP: u32 = raddle_calls::number("nanosleep");
    const CLOCK_NANOSLEEP: u32 = raddle_calls::number("clock_nanosleep");
    let rest_at = match waiting.number {
        NANOSLEEP => waiting.args[1],
        CLOCK_NANOSLEEP if waiting.args[1] & 1 == 0 => waiting.args[3],
        _ => 0,
    };
    let (Some(deadline), true) = (waiting.block.deadline, rest_at != 0) else {
        return;
    };
    let (seconds, nanoseconds) = split(deadline.0.saturating_sub(kernel.state.now.0));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    // A bad address cannot be reported any more: the call ends with EINTR either way.
    kernel.write_user(tid, GuestAddr(rest_at), &bytes).ok();
}

/// What an expired timer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notify {
    Nothing,
    /// A signal to the process.
    Process {
        signal: u32,
        value: u64,
    },
    /// A signal to one thread.
    Thread {
        tid: Tid,
        signal: u32,
        value: u64,
    },
}

/// Name of a timer: its process, and its number (negative for the timer of setitimer).
pub(crate) type TimerId = (Pid, i32);

/// Number of the ITIMER_REAL timer.
pub(crate) const INTERVAL_TIMER: i32 = -1;

/// One timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) clock: i32,
    pub(crate) notify: Notify,
    pub(crate) expiry: Option<VirtualTime>,
    /// Nanoseconds between expirations; 0 for a single one.
    pub(crate) interval: u64,
    /// Expirations that were not signalled, because an earlier signal was still pending.
    pub(crate) overrun: i32,
}

/// All timers that send signals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    timers: BTreeMap<TimerId, Timer>,
    deadlines: BTreeSet<(VirtualTime, TimerId)>,
}

impl Timers {
    pub(crate) fn get(&self, id: TimerId) -> Option<&Timer> {
        self.timers.get(&id)
    }

    /// Adds or replaces a timer.
    pub(crate) fn set(&mut self, id: TimerId, timer: Timer) {
        self.remove(id);
        if let Some(expiry) = timer.expiry {
            self.deadlines.insert((expiry, id));
        }
        self.timers.insert(id, timer);
    }

    pub(crate) fn remove(&mut self, id: TimerId) -> bool {
        let Some(timer) = self.timers.remove(&id) else {
            return false;
        };
        if let Some(expiry) = timer.expiry {
            self.deadlines.remove(&(expiry, id));
        }
        true
    }

    pub(crate) fn next_deadline(&self) -> Option<VirtualTime> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn of_process(&self, pid: Pid) -> Vec<TimerId> {
        self.timers
            .range((pid, i32::MIN)..=(pid, i32::MAX))
            .map(|(id, _)| *id)
            .collect()
    }
}

/// Lets the first timer expire whose time has come; false if there is none.
pub(crate) fn fire_next(kernel: &mut Kernel) -> bool {
    let now = kernel.state.now;
    let Some((deadline, id)) = kernel.state.timers.deadlines.first().copied() else {
        return false;
    };
    if deadline > now {
        return false;
    }
    let mut timer = kernel.state.timers.timers[&id];
    timer.expiry = None;
    // Expirations that lie in the past already are overruns.
    if let Some(missed) = (now.0 - deadline.0).checked_div(timer.interval) {
        timer.overrun = timer
            .overrun
            .saturating_add(i32::try_from(missed).unwrap_or(i32::MAX));
        timer.expiry = Some(VirtualTime(
            deadline
                .0
                .saturating_add((missed + 1).saturating_mul(timer.interval)),
        ));
    }
    let info = notification(&timer, id.1);
    if let Some((signal, info)) = info {
        if is_pending(kernel, id.0, &timer, signal) {
            timer.overrun = timer.overrun.saturating_add(1);
        } else {
            timer.overrun = 0;
            kernel.state.timers.set(id, timer);
            match timer.notify {
                Notify::Thread { tid, .. } => kernel.signal_thread(tid, info),
                _ => kernel.signal_process(id.0, info),
            }
            return true;
        }
    }
    kernel.state.timers.set(id, timer);
    true
}

fn notification(timer: &Timer, number: i32) -> Option<(u32, SigInfo)> {
    let (signal, value) = match timer.notify {
        Notify::Nothing => return None,
        Notify::Process { signal, value } | Notify::Thread { signal, value, .. } => (signal, value),
    };
    let info = if number == INTERVAL_TIMER {
        SigInfo::kernel(signal)
    } else {
        SigInfo::timer(signal, number, timer.overrun, value)
    };
    Some((signal, info))
}

fn is_pending(kernel: &Kernel, pid: Pid, timer: &Timer, signal: u32) -> bool {
    match timer.notify {
        Notify::Thread { tid, .. } => kernel
            .state
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.pending.set().contains(signal)),
        _ => kernel
            .state
            .processes
            .get(&pid)
            .is_some_and(|process| process.pending.set().contains(signal)),
    }
}

/// A process has ended: so have its timers.
pub(crate) fn forget_process(kernel: &mut Kernel, pid: Pid) {
    for id in kernel.state.timers.of_process(pid) {
        kernel.state.timers.remove(id);
    }
}

/// execve keeps the interval timer and deletes all others.
pub(crate) fn forget_posix_timers(kernel: &mut Kernel, pid: Pid) {
    for id in kernel.state.timers.of_process(pid) {
        if id.1 != INTERVAL_TIMER {
            kernel.state.timers.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_must_be_normal() {
        assert_eq!(timespec((1, 5)), Ok(SECOND + 5));
        assert_eq!(timespec((1, 1_000_000_000)), Err(Errno::EINVAL));
        assert_eq!(timespec((-1, 0)), Err(Errno::EINVAL));
        assert_eq!(timeval((0, 1_000_000)), Err(Errno::EINVAL));
        assert_eq!(timespec((i64::MAX, 0)), Ok(u64::MAX));
    }

    #[test]
    fn moments_are_relative_to_the_start_of_the_clock() {
        let now = VirtualTime(123);
        assert_eq!(moment(clock::REALTIME, realtime(now)), Ok(now));
        assert_eq!(moment(clock::MONOTONIC, monotonic(now)), Ok(now));
        assert_eq!(moment(clock::MONOTONIC, 0), Ok(VirtualTime(0)));
    }

    #[test]
    fn replacing_a_timer_moves_its_deadline() {
        let mut timers = Timers::default();
        let timer = |expiry| Timer {
            clock: 0,
            notify: Notify::Nothing,
            expiry: Some(VirtualTime(expiry)),
            interval: 0,
            overrun: 0,
        };
        timers.set((Pid(1), 0), timer(10));
        timers.set((Pid(1), 0), timer(20));
        assert_eq!(timers.next_deadline(), Some(VirtualTime(20)));
        assert!(timers.remove((Pid(1), 0)));
        assert_eq!(timers.next_deadline(), None);
    }
}
