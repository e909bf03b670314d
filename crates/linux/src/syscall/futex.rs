//! futex and robust lists.

use raddle_world::{Duration, VirtualTime};

use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::futex::{self, Place, Use, Wait};
use crate::syscall::no_such_call;
use crate::syscall::table::Entry;
use crate::thread::Tid;
use crate::time::{self, clock};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial(
        "futex",
        futex,
        "priority-inheritance operations are ENOSYS, which glibc reports as ENOTSUP when such a mutex is made",
    ),
    Entry::full("set_robust_list", set_robust_list),
    Entry::full("get_robust_list", get_robust_list),
    Entry::refused("futex_waitv", no_such_call, "ENOSYS: futex_waitv"),
];

/// Operations of futex(2).
mod op {
    pub(super) const WAIT: i32 = 0;
    pub(super) const WAKE: i32 = 1;
    pub(super) const REQUEUE: i32 = 3;
    pub(super) const CMP_REQUEUE: i32 = 4;
    pub(super) const WAKE_OP: i32 = 5;
    pub(super) const WAIT_BITSET: i32 = 9;
    pub(super) const WAKE_BITSET: i32 = 10;
    pub(super) const PRIVATE: i32 = 128;
    pub(super) const REALTIME: i32 = 256;
}

/// Whether a futex is waited for or woken by a call with this command.
pub(crate) fn use_of(command: i32) -> Option<Use> {
    match command & !(op::PRIVATE | op::REALTIME) {
        op::WAIT | op::WAIT_BITSET => Some(Use::Wait),
        op::WAKE | op::WAKE_BITSET => Some(Use::Wake),
        _ => None,
    }
}

fn futex(call: &mut Call<'_>) -> SysResult {
    let command = call.int(1);
    let operation = command & !(op::PRIVATE | op::REALTIME);
    let value = raddle_stdx::width::low_u32(call.args[2]);
    let last = raddle_stdx::width::low_u32(call.args[5]);
    match operation {
        op::WAIT => wait(call, u32::MAX, false),
        op::WAIT_BITSET => wait(call, last, true),
        op::WAKE => wake(call, value, u32::MAX),
        op::WAKE_BITSET if last == 0 => Err(Errno::EINVAL.into()),
        op::WAKE_BITSET => wake(call, value, last),
        op::REQUEUE => requeue(call, None),
        op::CMP_REQUEUE => requeue(call, Some(last)),
        op::WAKE_OP => wake_op(call),
        _ => Err(Errno::ENOSYS.into()),
    }
}

fn wait(call: &mut Call<'_>, bits: u32, is_absolute: bool) -> SysResult {
    let deadline = if call.is_retry {
        call.deadline
    } else {
        deadline(call, is_absolute)?
    };
    let wait = Wait {
        addr: call.args[0],
        expected: raddle_stdx::width::low_u32(call.args[2]),
        bits,
        deadline,
    };
    futex::wait(call, wait)
}

fn deadline(call: &mut Call<'_>, is_absolute: bool) -> Result<Option<VirtualTime>, Errno> {
    if call.args[3] == 0 {
        return Ok(None);
    }
    let span = time::timespec(call.read_time(call.args[3])?)?;
    if !is_absolute {
        return Ok(Some(call.kernel.state.now.after(Duration(span))));
    }
    let number = if call.int(1) & op::REALTIME != 0 {
        clock::REALTIME
    } else {
        clock::MONOTONIC
    };
    Ok(Some(time::moment(number, span)?))
}

/// As Linux does: at least one waiter is woken, even for a count of zero or less.
fn count(value: u32) -> u64 {
    u64::try_from(value.cast_signed()).unwrap_or(0)
}

fn wake(call: &mut Call<'_>, value: u32, bits: u32) -> SysResult {
    let place = futex::place(call.kernel, call.tid, call.args[0])?;
    Ok(futex::wake(call.kernel, place, count(value).max(1), bits))
}

fn requeue(call: &mut Call<'_>, expected: Option<u32>) -> SysResult {
    let from = futex::place(call.kernel, call.tid, call.args[0])?;
    let to = futex::place(call.kernel, call.tid, call.args[4])?;
    let wake_count = raddle_stdx::width::low_i32(call.args[2]);
    let move_count = raddle_stdx::width::low_i32(call.args[3]);
    if wake_count < 0 || move_count < 0 {
        return Err(Errno::EINVAL.into());
    }
    if let Some(expected) = expected
        && call.kernel.read_u32(call.tid, call.args[0])? != expected
    {
        return Err(Errno::EAGAIN.into());
    }
    let (woken, moved) = futex::requeue(
        call.kernel,
        from,
        to,
        u64::from(wake_count.cast_unsigned()),
        u64::from(move_count.cast_unsigned()),
    );
    // FUTEX_REQUEUE counts only the woken ones.
    Ok(if expected.is_some() {
        woken + moved
    } else {
        woken
    })
}

/// FUTEX_WAKE_OP: changes a second word and wakes its waiters if the old value compares.
fn wake_op(call: &mut Call<'_>) -> SysResult {
    let first = futex::place(call.kernel, call.tid, call.args[0])?;
    let second = futex::place(call.kernel, call.tid, call.args[4])?;
    let encoded = raddle_stdx::width::low_u32(call.args[5]);
    let old = call.kernel.read_u32(call.tid, call.args[4])?;
    let (new, is_met) = decode_wake_op(encoded, old)?;
    call.write_bytes(call.args[4], &new.to_le_bytes())?;
    let first_count = raddle_stdx::width::low_u32(call.args[2]);
    let second_count = raddle_stdx::width::low_u32(call.args[3]);
    let mut woken = wake_all(call, first, first_count);
    if is_met {
        woken += wake_all(call, second, second_count);
    }
    Ok(woken)
}

fn wake_all(call: &mut Call<'_>, place: Place, value: u32) -> u64 {
    futex::wake(call.kernel, place, count(value).max(1), u32::MAX)
}

/// The new value of the word, and whether the comparison with the old one holds.
fn decode_wake_op(encoded: u32, old: u32) -> Result<(u32, bool), Errno> {
    let sign_extend = |value: u32| ((value << 20).cast_signed() >> 20).cast_unsigned();
    let mut operand = sign_extend(encoded >> 12 & 0xFFF);
    let comparand = sign_extend(encoded & 0xFFF).cast_signed();
    let operation = encoded >> 28;
    if operation & 8 != 0 {
        operand = 1 << (operand & 31);
    }
    let new = match operation & 7 {
        0 => operand,
        1 => old.wrapping_add(operand),
        2 => old | operand,
        3 => old & !operand,
        4 => old ^ operand,
        _ => return Err(Errno::ENOSYS),
    };
    let value = old.cast_signed();
    let is_met = match encoded >> 24 & 0xF {
        0 => value == comparand,
        1 => value != comparand,
        2 => value < comparand,
        3 => value <= comparand,
        4 => value > comparand,
        5 => value >= comparand,
        _ => return Err(Errno::ENOSYS),
    };
    Ok((new, is_met))
}

fn set_robust_list(call: &mut Call<'_>) -> SysResult {
    if call.args[1] != 24 {
        return Err(Errno::EINVAL.into());
    }
    call.kernel.thread_mut(call.tid).robust_list = call.args[0];
    Ok(0)
}

fn get_robust_list(call: &mut Call<'_>) -> SysResult {
    let tid = match call.int(0) {
        0 => call.tid,
        other => Tid(other.cast_unsigned()),
    };
    let head = call
        .kernel
        .state
        .threads
        .get(&tid)
        .ok_or(Errno::ESRCH)?
        .robust_list;
    call.write_words(call.args[1], &[head])?;
    call.write_words(call.args[2], &[24])?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_op_decodes_operation_and_comparison() {
        // FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_GT, 1), as glibc's condition variables used it.
        assert_eq!(decode_wake_op(4 << 24 | 1, 2), Ok((0, true)));
        assert_eq!(decode_wake_op(4 << 24 | 1, 1), Ok((0, false)));
        // Add 1 << 3, compare not equal to -1.
        let encoded = 9 << 28 | 1 << 24 | 3 << 12 | 0xFFF;
        assert_eq!(decode_wake_op(encoded, 5), Ok((13, true)));
        assert_eq!(decode_wake_op(15 << 28, 0), Err(Errno::ENOSYS));
    }
}
