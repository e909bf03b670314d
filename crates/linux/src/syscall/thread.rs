//! Threads and processes are made and ended; thread ids, TLS.

use std::sync::Arc;

use raddle_stdx::width::low_u32;

use crate::call::{Call, SysResult, Trouble};
use crate::clone::{self, Request, flags};
use crate::errno::Errno;
use crate::life;
use crate::syscall::no_such_call;
use crate::syscall::table::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial(
        "clone",
        clone_call,
        "namespaces are EPERM; threads share descriptors and directory",
    ),
    Entry::full("fork", fork),
    Entry::full("vfork", vfork),
    Entry::full("exit", exit),
    Entry::full("exit_group", exit_group),
    Entry::partial("clone3", clone3, "as clone; set_tid and cgroup are EINVAL"),
    Entry::full("gettid", gettid),
    Entry::full("set_tid_address", set_tid_address),
    Entry::partial(
        "arch_prctl",
        arch_prctl,
        "FS and GS base; other codes are EINVAL",
    ),
    Entry::refused(
        "rseq",
        no_such_call,
        "ENOSYS: restartable sequences; C libraries do without",
    ),
    Entry::refused(
        "set_thread_area",
        no_such_call,
        "ENOSYS: 32-bit thread areas",
    ),
    Entry::refused(
        "get_thread_area",
        no_such_call,
        "ENOSYS: 32-bit thread areas",
    ),
];

fn clone_call(call: &mut Call<'_>) -> SysResult {
    let [raw, stack, parent_tid, child_tid, tls, _] = call.args;
    clone::clone(
        call,
        Request {
            flags: raw & !0xFF,
            exit_signal: low_u32(raw & 0xFF),
            stack,
            stack_size: 0,
            parent_tid,
            child_tid,
            tls,
            // clone(2) uses one argument for both.
            pidfd: parent_tid,
        },
    )
}

fn simple(call: &mut Call<'_>, flags: u64) -> SysResult {
    clone::clone(
        call,
        Request {
            flags,
            exit_signal: crate::signal::SIGCHLD,
            stack: 0,
            stack_size: 0,
            parent_tid: 0,
            child_tid: 0,
            tls: 0,
            pidfd: 0,
        },
    )
}

fn fork(call: &mut Call<'_>) -> SysResult {
    simple(call, 0)
}

fn vfork(call: &mut Call<'_>) -> SysResult {
    simple(call, flags::VM | flags::VFORK)
}

fn clone3(call: &mut Call<'_>) -> SysResult {
    let size = call.args[1];
    if size < 64 {
        return Err(Errno::EINVAL.into());
    }
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    let words: [u64; 8] = call.read_words(call.args[0])?;
    let [
        raw,
        pidfd,
        child_tid,
        parent_tid,
        exit_signal,
        stack,
        stack_size,
        tls,
    ] = words;
    for at in (64..size & !7).step_by(8) {
        if call
            .kernel
            .read_u64(call.tid, call.args[0].wrapping_add(at))?
            != 0
        {
            return Err(Errno::EINVAL.into());
        }
    }
    if exit_signal > 64 || raw & (flags::DETACHED | 0xFF) != 0 || (stack == 0) != (stack_size == 0)
    {
        return Err(Errno::EINVAL.into());
    }
    clone::clone(
        call,
        Request {
            flags: raw,
            exit_signal: low_u32(exit_signal),
            stack: stack.checked_add(stack_size).ok_or(Errno::EINVAL)?,
            stack_size,
            parent_tid,
            child_tid,
            tls,
            pidfd,
        },
    )
}

fn exit(call: &mut Call<'_>) -> SysResult {
    life::exit_thread(call.kernel, call.tid, call.int(0));
    Err(Trouble::NoReturn)
}

fn exit_group(call: &mut Call<'_>) -> SysResult {
    let pid = call.kernel.thread(call.tid).process;
    life::exit_process(call.kernel, pid, life::exit_status(call.int(0)));
    Err(Trouble::NoReturn)
}

fn gettid(call: &mut Call<'_>) -> SysResult {
    Ok(u64::from(call.tid.0))
}

fn set_tid_address(call: &mut Call<'_>) -> SysResult {
    call.kernel.thread_mut(call.tid).clear_child_tid = call.args[0];
    Ok(u64::from(call.tid.0))
}

fn arch_prctl(call: &mut Call<'_>) -> SysResult {
    const SET_GS: u64 = 0x1001;
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    const GET_GS: u64 = 0x1004;
    let value = call.args[1];
    let cpu = &mut call.kernel.thread_mut(call.tid).cpu;
    match call.args[0] {
        SET_FS | SET_GS if value >= crate::elf::USER_END => return Err(Errno::EPERM.into()),
        SET_FS => cpu.set_fs_base(value),
        SET_GS => cpu.set_gs_base(value),
        GET_FS => {
            let base = cpu.fs_base();
            call.write_words(value, &[base])?;
        }
        GET_GS => {
            let base = cpu.gs_base();
            call.write_words(value, &[base])?;
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

/// Sets `comm`, cut to fifteen bytes.
pub(super) fn set_name(call: &mut Call<'_>, name: &[u8]) {
    let cut = &name[..name.len().min(15)];
    let name: Arc<str> = String::from_utf8_lossy(cut).into();
    let thread = call.kernel.thread_mut(call.tid);
    thread.name = Arc::clone(&name);
    let context = thread.context;
    call.kernel.state.contexts.get_mut(context).name = name;
}
