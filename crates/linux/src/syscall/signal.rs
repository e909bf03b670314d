//! Signal dispositions, masks, sending and waiting.

use std::sync::Arc;

use raddle_world::{Duration, WaitReason};

use crate::call::{Block, Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::process::Pid;
use crate::signal::{
    Action, AltStack, PENDING_MAX, SIGKILL, SIGMAX, SIGSEGV, SIGSTOP, SigInfo, SignalSet,
    action_flags, return_from_handler,
};
use crate::syscall::table::Entry;
use crate::thread::{ExceptionInfo, Tid};
use crate::time;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("rt_sigaction", rt_sigaction),
    Entry::full("rt_sigprocmask", rt_sigprocmask),
    Entry::full("rt_sigreturn", rt_sigreturn),
    Entry::full("pause", pause),
    Entry::full("kill", kill),
    Entry::full("rt_sigpending", rt_sigpending),
    Entry::full("rt_sigtimedwait", rt_sigtimedwait),
    Entry::full("rt_sigqueueinfo", rt_sigqueueinfo),
    Entry::full("rt_sigsuspend", rt_sigsuspend),
    Entry::full("sigaltstack", sigaltstack),
    Entry::full("tkill", tkill),
    Entry::full("tgkill", tgkill),
    Entry::full("rt_tgsigqueueinfo", rt_tgsigqueueinfo),
];

fn signal_argument(call: &Call<'_>, index: usize) -> Result<u32, Errno> {
    u32::try_from(call.int(index))
        .ok()
        .filter(|number| *number <= SIGMAX)
        .ok_or(Errno::EINVAL)
}

fn check_set_size(call: &Call<'_>, index: usize) -> Result<(), Errno> {
    if call.args[index] == 8 {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

fn rt_sigaction(call: &mut Call<'_>) -> SysResult {
    check_set_size(call, 3)?;
    let number = signal_argument(call, 0)?;
    let [_, new_at, old_at, ..] = call.args;
    let is_fixed = number == SIGKILL || number == SIGSTOP;
    if number == 0 || (is_fixed && new_at != 0) {
        return Err(Errno::EINVAL.into());
    }
    let pid = call.kernel.thread(call.tid).process;
    let old = call.kernel.action(pid, number);
    if new_at != 0 {
        let [handler, flags, restorer, mask] = call.read_words(new_at)?;
        let new = Action {
            handler,
            flags: flags & action_flags::KNOWN,
            restorer,
            mask: SignalSet(mask).minus(SignalSet::UNBLOCKABLE),
        };
        Arc::make_mut(&mut call.kernel.process_mut(pid).actions)[number as usize - 1] = new;
        if new.ignores(number) {
            discard(call, pid, number);
        }
    }
    if old_at != 0 {
        call.write_words(old_at, &[old.handler, old.flags, old.restorer, old.mask.0])?;
    }
    Ok(0)
}

/// A signal that becomes ignored is no longer pending (POSIX).
fn discard(call: &mut Call<'_>, pid: Pid, number: u32) {
    let set = SignalSet::of(&[number]);
    let process = call.kernel.process_mut(pid);
    process.pending.discard(set);
    for tid in process.threads.clone() {
        call.kernel.thread_mut(tid).pending.discard(set);
    }
}

fn rt_sigprocmask(call: &mut Call<'_>) -> SysResult {
    check_set_size(call, 3)?;
    let [_, set_at, old_at, ..] = call.args;
    let old = call.kernel.thread(call.tid).mask;
    if set_at != 0 {
        let [bits] = call.read_words(set_at)?;
        let set = SignalSet(bits);
        let new = match call.int(0) {
            0 => old.union(set),
            1 => old.minus(set),
            2 => set,
            _ => return Err(Errno::EINVAL.into()),
        };
        call.kernel.set_mask(call.tid, new);
    }
    if old_at != 0 {
        call.write_words(old_at, &[old.0])?;
    }
    Ok(0)
}

fn rt_sigreturn(call: &mut Call<'_>) -> SysResult {
    if return_from_handler(call.kernel, call.tid).is_err() {
        call.kernel
            .force_signal(call.tid, SigInfo::kernel(SIGSEGV), ExceptionInfo::default());
    }
    Err(Trouble::NoReturn)
}

fn wait_for_signal(call: &Call<'_>) -> Trouble {
    Trouble::Block(Block {
        reason: WaitReason::Signal,
        keys: vec![WaitKey::SignalFor(call.tid.0)],
        deadline: call.deadline,
        on_signal: OnSignal::Interrupt,
    })
}

fn pause(call: &mut Call<'_>) -> SysResult {
    Err(wait_for_signal(call))
}

fn rt_sigsuspend(call: &mut Call<'_>) -> SysResult {
    check_set_size(call, 1)?;
    let [bits] = call.read_words(call.args[0])?;
    call.kernel.set_temporary_mask(call.tid, SignalSet(bits));
    Err(wait_for_signal(call))
}

fn rt_sigpending(call: &mut Call<'_>) -> SysResult {
    if call.args[1] > 8 {
        return Err(Errno::EINVAL.into());
    }
    let thread = call.kernel.thread(call.tid);
    let process = call.kernel.process(thread.process);
    let pending = thread.pending.set().union(process.pending.set());
    let blocked = SignalSet(pending.0 & thread.mask.0);
    call.write_words(call.args[0], &[blocked.0])?;
    Ok(0)
}

fn rt_sigtimedwait(call: &mut Call<'_>) -> SysResult {
    check_set_size(call, 3)?;
    let [set_at, info_at, timeout_at, ..] = call.args;
    let [bits] = call.read_words(set_at)?;
    let set = SignalSet(bits).minus(SignalSet::UNBLOCKABLE);
    if let Some(info) = call.kernel.take_signal(call.tid, set) {
        if info_at != 0 {
            call.write_bytes(info_at, &info.to_bytes())?;
        }
        return Ok(u64::from(info.number));
    }
    if !call.is_retry && timeout_at != 0 {
        let span = time::timespec(call.read_time(timeout_at)?)?;
        call.deadline = Some(call.kernel.state.now.after(Duration(span)));
    }
    if call
        .deadline
        .is_some_and(|deadline| deadline <= call.kernel.state.now)
    {
        return Err(Errno::EAGAIN.into());
    }
    Err(wait_for_signal(call))
}

fn sender(call: &Call<'_>) -> (u32, u32) {
    let pid = call.kernel.thread(call.tid).process;
    (pid.0, call.kernel.credentials(call.tid).users.real)
}

fn kill(call: &mut Call<'_>) -> SysResult {
    let number = signal_argument(call, 1)?;
    let (pid, uid) = sender(call);
    let info = SigInfo::user(number, pid, uid);
    let own = call.kernel.thread(call.tid).process;
    match call.int(0) {
        -1 => kill_everybody(call, own, number, &info),
        0 => {
            let group = call.kernel.process(own).group;
            kill_group(call, group, number, &info)
        }
        target if target > 0 => {
            let pid = Pid(target.cast_unsigned());
            if !call.kernel.state.processes.contains_key(&pid) {
                return Err(Errno::ESRCH.into());
            }
            if !call.kernel.may_signal(call.tid, pid, number) {
                return Err(Errno::EPERM.into());
            }
            if number != 0 {
                call.kernel.signal_process(pid, info);
            }
            Ok(0)
        }
        group => kill_group(call, Pid(group.unsigned_abs()), number, &info),
    }
}

fn kill_group(call: &mut Call<'_>, group: Pid, number: u32, info: &SigInfo) -> SysResult {
    let members = call
        .kernel
        .state
        .processes
        .values()
        .filter(|process| process.group == group)
        .map(|process| process.pid)
        .collect();
    kill_those_allowed(call, members, number, info)
}

fn kill_everybody(call: &mut Call<'_>, own: Pid, number: u32, info: &SigInfo) -> SysResult {
    let others = call
        .kernel
        .state
        .processes
        .keys()
        .filter(|pid| *pid != own)
        .collect();
    kill_those_allowed(call, others, number, info)
}

/// Sends to those processes that the caller may signal; EPERM if there are some and none is among them.
fn kill_those_allowed(
    call: &mut Call<'_>,
    targets: Vec<Pid>,
    number: u32,
    info: &SigInfo,
) -> SysResult {
    if targets.is_empty() {
        return Err(Errno::ESRCH.into());
    }
    let allowed: Vec<Pid> = targets
        .into_iter()
        .filter(|pid| call.kernel.may_signal(call.tid, *pid, number))
        .collect();
    if allowed.is_empty() {
        return Err(Errno::EPERM.into());
    }
    if number != 0 {
        for pid in allowed {
            call.kernel.signal_process(pid, info.clone());
        }
    }
    Ok(0)
}

/// The thread that an argument names.
fn thread_argument(call: &Call<'_>, index: usize) -> Result<Tid, Errno> {
    let number = call.int(index);
    if number <= 0 {
        return Err(Errno::EINVAL);
    }
    let tid = Tid(number.cast_unsigned());
    if call.kernel.state.threads.contains_key(&tid) {
        Ok(tid)
    } else {
        Err(Errno::ESRCH)
    }
}

fn tkill(call: &mut Call<'_>) -> SysResult {
    let number = signal_argument(call, 1)?;
    let tid = thread_argument(call, 0)?;
    send_to_thread(call, tid, number)
}

fn tgkill(call: &mut Call<'_>) -> SysResult {
    let number = signal_argument(call, 2)?;
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let tid = thread_argument(call, 1)?;
    if call.kernel.thread(tid).process.0 != call.int(0).cast_unsigned() {
        return Err(Errno::ESRCH.into());
    }
    send_to_thread(call, tid, number)
}

fn send_to_thread(call: &mut Call<'_>, tid: Tid, number: u32) -> SysResult {
    let (pid, uid) = sender(call);
    let target = call.kernel.thread(tid).process;
    if !call.kernel.may_signal(call.tid, target, number) {
        return Err(Errno::EPERM.into());
    }
    if number != 0 {
        call.kernel
            .signal_thread(tid, SigInfo::thread(number, pid, uid));
    }
    Ok(0)
}

fn queued_info(call: &mut Call<'_>, number: u32, at: u64) -> Result<SigInfo, Errno> {
    let bytes = call.read_bytes(at)?;
    Ok(SigInfo::from_bytes(number, &bytes))
}

fn rt_sigqueueinfo(call: &mut Call<'_>) -> SysResult {
    let number = signal_argument(call, 1)?;
    let info = queued_info(call, number, call.args[2])?;
    let pid = Pid(call.int(0).cast_unsigned());
    let Some(process) = call.kernel.state.processes.get(&pid) else {
        return Err(Errno::ESRCH.into());
    };
    let is_own = pid == call.kernel.thread(call.tid).process;
    if !is_own && (info.code >= 0 || info.code == crate::signal::code::TKILL) {
        return Err(Errno::EPERM.into());
    }
    if !call.kernel.may_signal(call.tid, pid, number) {
        return Err(Errno::EPERM.into());
    }
    if process.pending.len() >= PENDING_MAX {
        return Err(Errno::EAGAIN.into());
    }
    if number != 0 {
        call.kernel.signal_process(pid, info);
    }
    Ok(0)
}

fn rt_tgsigqueueinfo(call: &mut Call<'_>) -> SysResult {
    let number = signal_argument(call, 2)?;
    let tid = thread_argument(call, 1)?;
    if call.kernel.thread(tid).process.0 != call.int(0).cast_unsigned() {
        return Err(Errno::ESRCH.into());
    }
    let info = queued_info(call, number, call.args[3])?;
    if call.kernel.thread(tid).pending.len() >= PENDING_MAX {
        return Err(Errno::EAGAIN.into());
    }
    if number != 0 {
        call.kernel.signal_thread(tid, info);
    }
    Ok(0)
}

fn sigaltstack(call: &mut Call<'_>) -> SysResult {
    const SIZE_MIN: u64 = 2048;
    let [new_at, old_at, ..] = call.args;
    let thread = call.kernel.thread(call.tid);
    let sp = thread.cpu.reg(raddle_x86::Reg::Rsp);
    let old = thread.alt_stack;
    if new_at != 0 {
        let [start, flags, size] = call.read_words(new_at)?;
        let flags = raddle_stdx::width::low_u32(flags);
        let mode = flags & !AltStack::AUTO_DISARM;
        if old.contains(sp) {
            return Err(Errno::EPERM.into());
        }
        if mode != 0 && mode != AltStack::DISABLE && mode != AltStack::ON_STACK {
            return Err(Errno::EINVAL.into());
        }
        let new = if mode == AltStack::DISABLE {
            AltStack::NONE
        } else if size < SIZE_MIN {
            return Err(Errno::ENOMEM.into());
        } else {
            AltStack { start, flags, size }
        };
        call.kernel.thread_mut(call.tid).alt_stack = new;
    }
    if old_at != 0 {
        let status = old.status(sp);
        call.write_words(old_at, &[old.start, u64::from(status), old.size])?;
    }
    Ok(0)
}
