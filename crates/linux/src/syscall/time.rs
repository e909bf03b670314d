//! Clocks, sleeps and timers.

use raddle_world::{Duration, Lacking, VirtualTime, WaitReason};

use crate::call::{Block, Call, OnSignal, SysResult, Trouble};
use crate::errno::Errno;
use crate::execution_timer::Which;
use crate::process::Pid;
use crate::signal::{SIGALRM, SIGMAX};
use crate::syscall::not_permitted;
use crate::syscall::table::Entry;
use crate::thread::Tid;
use crate::time::{self, INTERVAL_TIMER, Notify, SECOND, Timer, TimerId, clock};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("nanosleep", nanosleep),
    Entry::full("getitimer", getitimer),
    Entry::full("alarm", alarm),
    Entry::full("setitimer", setitimer),
    Entry::full("gettimeofday", gettimeofday),
    Entry::refused("settimeofday", not_permitted, "EPERM: time cannot be set"),
    Entry::refused("clock_settime", not_permitted, "EPERM: time cannot be set"),
    Entry::full("time", time_call),
    Entry::partial(
        "timer_create",
        timer_create,
        "SIGEV_SIGNAL, SIGEV_THREAD_ID and SIGEV_NONE on clocks of time, not of execution",
    ),
    Entry::full("timer_settime", timer_settime),
    Entry::full("timer_gettime", timer_gettime),
    Entry::full("timer_getoverrun", timer_getoverrun),
    Entry::full("timer_delete", timer_delete),
    Entry::full("clock_gettime", clock_gettime),
    Entry::full("clock_getres", clock_getres),
    Entry::partial(
        "clock_nanosleep",
        clock_nanosleep,
        "not on clocks of execution",
    ),
    Entry::partial("adjtimex", adjtimex, "reads only: an unsynchronised clock"),
    Entry::partial(
        "clock_adjtime",
        clock_adjtime,
        "reads only: an unsynchronised clock",
    ),
];

fn sleep_until(deadline: VirtualTime) -> Trouble {
    Trouble::Block(Block {
        reason: WaitReason::Sleep,
        keys: Vec::new(),
        deadline: Some(deadline),
        on_signal: OnSignal::Interrupt,
    })
}

/// Sleeps until the deadline. What is left after an interruption is written by `time::note_interrupted_sleep`.
fn sleep(call: &Call<'_>, deadline: VirtualTime) -> SysResult {
    if deadline <= call.kernel.state.now {
        return Ok(0);
    }
    Err(sleep_until(deadline))
}

fn nanosleep(call: &mut Call<'_>) -> SysResult {
    let deadline = match call.deadline {
        Some(deadline) => deadline,
        None => {
            let span = time::timespec(call.read_time(call.args[0])?)?;
            call.kernel.state.now.after(Duration(span))
        }
    };
    sleep(call, deadline)
}

fn clock_nanosleep(call: &mut Call<'_>) -> SysResult {
    const ABSOLUTE: i32 = 1;
    let is_absolute = call.int(1) & ABSOLUTE != 0;
    let deadline = match call.deadline {
        Some(deadline) => deadline,
        None => {
            let span = time::timespec(call.read_time(call.args[2])?)?;
            let absolute = time::moment(call.int(0), span)?;
            if is_absolute {
                absolute
            } else {
                call.kernel.state.now.after(Duration(span))
            }
        }
    };
    sleep(call, deadline)
}

fn gettimeofday(call: &mut Call<'_>) -> SysResult {
    let (seconds, nanoseconds) = time::split(time::realtime(call.kernel.state.now));
    if call.args[0] != 0 {
        call.write_time(call.args[0], seconds, nanoseconds / 1000)?;
    }
    if call.args[1] != 0 {
        call.write_words(call.args[1], &[0])?;
    }
    Ok(0)
}

fn time_call(call: &mut Call<'_>) -> SysResult {
    let seconds = time::realtime(call.kernel.state.now) / SECOND;
    if call.args[0] != 0 {
        call.write_words(call.args[0], &[seconds])?;
    }
    Ok(seconds)
}

fn clock_gettime(call: &mut Call<'_>) -> SysResult {
    let value = time::read_clock(call.kernel, call.tid, call.int(0))?;
    let (seconds, nanoseconds) = time::split(value);
    call.write_time(call.args[1], seconds, nanoseconds)?;
    Ok(0)
}

fn clock_getres(call: &mut Call<'_>) -> SysResult {
    time::read_clock(call.kernel, call.tid, call.int(0))?;
    if call.args[1] != 0 {
        call.write_time(call.args[1], 0, 1)?;
    }
    Ok(0)
}

/// Time left and interval, in nanoseconds.
fn state_of(call: &Call<'_>, id: TimerId) -> (u64, u64) {
    let now = call.kernel.state.now;
    call.kernel.state.timers.get(id).map_or((0, 0), |timer| {
        let left = timer
            .expiry
            .map_or(0, |expiry| expiry.0.saturating_sub(now.0).max(1));
        (left, timer.interval)
    })
}

fn interval_timer(call: &Call<'_>) -> TimerId {
    (call.kernel.thread(call.tid).process, INTERVAL_TIMER)
}

fn write_itimerval(call: &mut Call<'_>, at: u64, (left, interval): (u64, u64)) -> SysResult {
    // A timer that runs never shows zero.
    let micros = |value: u64| {
        let (seconds, nanoseconds) = time::split(value);
        (seconds, (nanoseconds + 999) / 1000)
    };
    let (seconds, fraction) = micros(interval);
    call.write_time(at, seconds, fraction)?;
    let (seconds, fraction) = micros(left);
    call.write_time(at.wrapping_add(16), seconds, fraction)?;
    Ok(0)
}

fn getitimer(call: &mut Call<'_>) -> SysResult {
    let state = match call.int(0) {
        0 => state_of(call, interval_timer(call)),
        1 => execution_state(call, Which::Virtual),
        2 => execution_state(call, Which::Profile),
        _ => return Err(Errno::EINVAL.into()),
    };
    write_itimerval(call, call.args[1], state)
}

fn setitimer(call: &mut Call<'_>) -> SysResult {
    let [which, new_at, old_at, ..] = call.args;
    let (interval, value) = if new_at == 0 {
        (0, 0)
    } else {
        (
            time::timeval(call.read_time(new_at)?)?,
            time::timeval(call.read_time(new_at.wrapping_add(16))?)?,
        )
    };
    let old = match which {
        0 => {
            let id = interval_timer(call);
            let old = state_of(call, id);
            arm_interval_timer(call, id, value, interval);
            old
        }
        1 => set_execution_timer(call, Which::Virtual, value, interval),
        2 => set_execution_timer(call, Which::Profile, value, interval),
        _ => return Err(Errno::EINVAL.into()),
    };
    if old_at != 0 {
        write_itimerval(call, old_at, old)?;
    }
    Ok(0)
}

/// Time left and interval of a timer of execution time.
fn execution_state(call: &Call<'_>, which: Which) -> (u64, u64) {
    let process = call.kernel.process_of(call.tid);
    let timers = &call.kernel.state.execution_timers;
    timers.state(process.pid, which, process.usage.steps)
}

/// Sets a timer of execution time; gives what it was.
fn set_execution_timer(call: &mut Call<'_>, which: Which, value: u64, interval: u64) -> (u64, u64) {
    let old = execution_state(call, which);
    let process = call.kernel.process_of(call.tid);
    let (pid, steps) = (process.pid, process.usage.steps);
    let timers = &mut call.kernel.state.execution_timers;
    timers.set(pid, which, steps, (value, interval));
    old
}

fn arm_interval_timer(call: &mut Call<'_>, id: TimerId, value: u64, interval: u64) {
    let expiry = (value > 0).then(|| call.kernel.state.now.after(Duration(value)));
    call.kernel.state.timers.set(
        id,
        Timer {
            clock: clock::REALTIME,
            notify: Notify::Process {
                signal: SIGALRM,
                value: 0,
            },
            expiry,
            interval,
            overrun: 0,
        },
    );
}

fn alarm(call: &mut Call<'_>) -> SysResult {
    let id = interval_timer(call);
    let (left, _) = state_of(call, id);
    let seconds = u64::from(raddle_stdx::width::low_u32(call.args[0]));
    arm_interval_timer(call, id, seconds * SECOND, 0);
    // Rounded, but never to zero for a timer that runs.
    let rounded = (left + SECOND / 2) / SECOND;
    Ok(if left > 0 { rounded.max(1) } else { 0 })
}

fn timer_create(call: &mut Call<'_>) -> SysResult {
    let [_, event_at, id_at, ..] = call.args;
    let number = call.int(0);
    if time::moment(number, 0).is_err() {
        time::read_clock(call.kernel, call.tid, number)?;
        return Err(Trouble::Unsupported(Lacking::TimerOnClock(number)));
    }
    let pid = call.kernel.thread(call.tid).process;
    let timer = call.kernel.process(pid).next_timer;
    let notify = if event_at == 0 {
        Notify::Process {
            signal: SIGALRM,
            value: u64::from(timer.cast_unsigned()),
        }
    } else {
        read_notify(call, event_at, pid)?
    };
    call.write_bytes(id_at, &timer.to_le_bytes())?;
    call.kernel.process_mut(pid).next_timer += 1;
    call.kernel.state.timers.set(
        (pid, timer),
        Timer {
            clock: number,
            notify,
            expiry: None,
            interval: 0,
            overrun: 0,
        },
    );
    Ok(0)
}

/// Reads a `struct sigevent`.
fn read_notify(call: &mut Call<'_>, at: u64, pid: Pid) -> Result<Notify, Errno> {
    let bytes: [u8; 24] = call.read_bytes(at)?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let value = u64::from_le_bytes(std::array::from_fn(|index| bytes[index]));
    let signal = word(8);
    match word(12) {
        1 => Ok(Notify::Nothing),
        0 | 2 if (1..=SIGMAX).contains(&signal) => Ok(Notify::Process { signal, value }),
        4 if (1..=SIGMAX).contains(&signal) => {
            let tid = Tid(word(16));
            let is_sibling = call
                .kernel
                .state
                .threads
                .get(&tid)
                .is_some_and(|thread| thread.process == pid);
            if is_sibling {
                Ok(Notify::Thread { tid, signal, value })
            } else {
                Err(Errno::EINVAL)
            }
        }
        _ => Err(Errno::EINVAL),
    }
}

fn timer_argument(call: &Call<'_>) -> Result<(TimerId, Timer), Errno> {
    let id = (call.kernel.thread(call.tid).process, call.int(0));
    if id.1 < 0 {
        return Err(Errno::EINVAL);
    }
    let timer = call.kernel.state.timers.get(id).ok_or(Errno::EINVAL)?;
    Ok((id, *timer))
}

fn write_itimerspec(call: &mut Call<'_>, at: u64, (left, interval): (u64, u64)) -> SysResult {
    let (seconds, nanoseconds) = time::split(interval);
    call.write_time(at, seconds, nanoseconds)?;
    let (seconds, nanoseconds) = time::split(left);
    call.write_time(at.wrapping_add(16), seconds, nanoseconds)?;
    Ok(0)
}

fn timer_settime(call: &mut Call<'_>) -> SysResult {
    const ABSOLUTE: i32 = 1;
    let (id, timer) = timer_argument(call)?;
    let [_, _, new_at, old_at, ..] = call.args;
    let interval = time::timespec(call.read_time(new_at)?)?;
    let value = time::timespec(call.read_time(new_at.wrapping_add(16))?)?;
    let old = state_of(call, id);
    let expiry = if value == 0 {
        None
    } else if call.int(1) & ABSOLUTE != 0 {
        Some(time::moment(timer.clock, value)?)
    } else {
        Some(call.kernel.state.now.after(Duration(value)))
    };
    call.kernel.state.timers.set(
        id,
        Timer {
            expiry,
            interval,
            overrun: 0,
            ..timer
        },
    );
    if old_at != 0 {
        write_itimerspec(call, old_at, old)?;
    }
    Ok(0)
}

fn timer_gettime(call: &mut Call<'_>) -> SysResult {
    let (id, _) = timer_argument(call)?;
    let state = state_of(call, id);
    write_itimerspec(call, call.args[1], state)
}

fn timer_getoverrun(call: &mut Call<'_>) -> SysResult {
    let (_, timer) = timer_argument(call)?;
    Ok(u64::from(timer.overrun.cast_unsigned()))
}

fn timer_delete(call: &mut Call<'_>) -> SysResult {
    let (id, _) = timer_argument(call)?;
    call.kernel.state.timers.remove(id);
    Ok(0)
}

/// Bytes of `struct timex`.
const TIMEX_SIZE: usize = 208;
/// `TIME_ERROR`: the clock is not synchronised.
const TIME_ERROR: u64 = 5;

fn read_timex(call: &mut Call<'_>, at: u64) -> SysResult {
    let [modes] = call
        .read_bytes::<4>(at)
        .map(|bytes| [u32::from_le_bytes(bytes)])?;
    if modes != 0 {
        return Err(Errno::EPERM.into());
    }
    let mut bytes = [0; TIMEX_SIZE];
    let (seconds, nanoseconds) = time::split(time::realtime(call.kernel.state.now));
    // status: STA_UNSYNC; precision 1; tolerance 500 ppm; time; tick 10,000.
    for (offset, value) in [
        (40, 0x40_i64),
        (56, 1),
        (64, 32_768_000),
        (72, seconds),
        (80, nanoseconds / 1000),
        (88, 10_000),
    ] {
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }
    call.write_bytes(at, &bytes)?;
    Ok(TIME_ERROR)
}

fn adjtimex(call: &mut Call<'_>) -> SysResult {
    read_timex(call, call.args[0])
}

fn clock_adjtime(call: &mut Call<'_>) -> SysResult {
    read_timex(call, call.args[1])
}
