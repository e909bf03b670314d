//! Ends of threads and processes, orphans, zombies, and what parents are told.

use raddle_mem::GuestAddr;
use raddle_world::{EventKind, Liveness};

use crate::call::WaitKey;
use crate::files;
use crate::futex;
use crate::ipc;
use crate::kernel::Kernel;
use crate::process::{INIT, Life, Pid, Report, SpaceId};
use crate::signal::{HANDLER_IGNORE, SIGCHLD, SIGCONT, SigInfo, action_flags, code};
use crate::thread::Tid;
use crate::time;

/// Wait status of a process that called exit.
pub(crate) fn exit_status(exit_code: i32) -> i32 {
    (exit_code & 0xFF) << 8
}

/// One thread ends by itself (`exit`).
pub(crate) fn exit_thread(kernel: &mut Kernel, tid: Tid, exit_code: i32) {
    let pid = kernel.thread(tid).process;
    if tid.0 == pid.0 {
        kernel.process_mut(pid).leader_status = Some(exit_status(exit_code));
    }
    let is_last = kernel.process(pid).threads.len() == 1;
    remove_thread(kernel, tid);
    if is_last {
        let status = kernel
            .process(pid)
            .leader_status
            .unwrap_or_else(|| exit_status(exit_code));
        end_process(kernel, pid, status);
    }
}

/// All threads of a process end (`exit_group`).
pub(crate) fn exit_process(kernel: &mut Kernel, pid: Pid, status: i32) {
    if kernel.process(pid).is_zombie() {
        return;
    }
    for tid in kernel.process(pid).threads.clone() {
        remove_thread(kernel, tid);
    }
    end_process(kernel, pid, status);
}

/// A signal ends a process.
pub(crate) fn kill_process(kernel: &mut Kernel, pid: Pid, signal: u32) {
    exit_process(kernel, pid, signal.cast_signed());
}

/// Ends every thread of the process but one (execve).
pub(crate) fn end_other_threads(kernel: &mut Kernel, survivor: Tid) {
    let others: Vec<Tid> = kernel
        .process_of(survivor)
        .threads
        .iter()
        .copied()
        .filter(|tid| *tid != survivor)
        .collect();
    for tid in others {
        remove_thread(kernel, tid);
    }
}

/// Takes a thread out of everything that knows it and tells the threads that wait for it.
fn remove_thread(kernel: &mut Kernel, tid: Tid) {
    kernel.cancel_futex_wait(tid);
    kernel.end_wait(tid);
    futex::release_robust_list(kernel, tid);
    clear_child_tid(kernel, tid);
    kernel.emit(tid, EventKind::Exit);
    let Some(thread) = kernel.state.threads.remove(&tid) else {
        return;
    };
    let process = kernel.process_mut(thread.process);
    process.threads.retain(|other| *other != tid);
    kernel
        .state
        .contexts
        .set_liveness(thread.context, Liveness::Done);
    // Signals it was to take are left for its siblings.
    for other in kernel.process(thread.process).threads.clone() {
        kernel.refresh_liveness(other);
    }
}

/// Stores zero where pthread_join waits, and wakes it.
pub(crate) fn clear_child_tid(kernel: &mut Kernel, tid: Tid) {
    let addr = std::mem::take(&mut kernel.thread_mut(tid).clear_child_tid);
    if addr == 0 {
        return;
    }
    let id = kernel.process_of(tid).space;
    let has_witness =
        kernel.process_of(tid).threads.len() > 1 || kernel.state.spaces[&id].users > 1;
    if has_witness && kernel.write_user(tid, GuestAddr(addr), &[0; 4]).is_ok() {
        futex::wake_at(kernel, tid, addr, 1, u32::MAX);
    }
}

/// The last thread is gone: gives resources back, finds new parents for children, tells the parent.
fn end_process(kernel: &mut Kernel, pid: Pid, status: i32) {
    files::release_process(kernel, pid);
    time::forget_process(kernel, pid);
    kernel.state.execution_timers.forget(pid);
    ipc::undo_all(kernel, pid);
    let space = kernel.process(pid).space;
    release_space(kernel, space);
    release_vfork_parent(kernel, pid);
    let usage = kernel.process(pid).usage;
    let process = kernel.process_mut(pid);
    process.life = Life::Zombie(status);
    process.usage = usage;
    reparent_children(kernel, pid);
    if pid == kernel.state.first {
        kernel.state.ended = Some(status);
        files::tell_at_end(kernel);
    }
    report_end(kernel, pid, status);
}

/// One process fewer uses the address space; the last one frees it.
pub(crate) fn release_space(kernel: &mut Kernel, id: SpaceId) {
    let (frames, space) = kernel.memory(id);
    space.users -= 1;
    if space.users == 0 {
        space.map.clear(frames);
        kernel.state.spaces.remove(&id);
    }
}

/// The child of a vfork has its own memory now, or none at all.
pub(crate) fn release_vfork_parent(kernel: &mut Kernel, pid: Pid) {
    let process = kernel.process_mut(pid);
    if std::mem::take(&mut process.is_vfork_child) {
        kernel.wake(WaitKey::VforkOf(pid.0));
    }
}

/// Orphans go to the nearest subreaper, or to init.
fn reparent_children(kernel: &mut Kernel, pid: Pid) {
    let mut heir = kernel.process(pid).parent;
    while let Some(process) = kernel.state.processes.get(&heir) {
        if process.is_subreaper && !process.is_zombie() {
            break;
        }
        heir = process.parent;
    }
    let children: Vec<Pid> = kernel
        .state
        .processes
        .values()
        .filter(|process| process.parent == pid)
        .map(|process| process.pid)
        .collect();
    for child in children {
        let process = kernel.process_mut(child);
        process.parent = heir;
        let (signal, life) = (process.parent_death_signal, process.life);
        if signal != 0 {
            kernel.signal_process(child, SigInfo::kernel(signal));
        }
        if let Life::Zombie(status) = life {
            report_end(kernel, child, status);
        }
    }
}

/// Tells the parent that a child has ended; without a parent to tell, the zombie goes at once.
fn report_end(kernel: &mut Kernel, pid: Pid, status: i32) {
    let process = kernel.process(pid);
    let (parent, exit_signal) = (process.parent, process.exit_signal);
    if parent == INIT || !kernel.state.processes.contains_key(&parent) {
        if pid != kernel.state.first {
            kernel.state.processes.remove(&pid);
        }
        return;
    }
    let action = kernel.action(parent, SIGCHLD);
    let is_unwanted = exit_signal == SIGCHLD
        && (action.handler == HANDLER_IGNORE || action.flags & action_flags::NOCLDWAIT != 0);
    let signal_code = if status & 0x7F == 0 {
        code::CLD_EXITED
    } else {
        code::CLD_KILLED
    };
    if exit_signal != 0 {
        let info = child_info(exit_signal, signal_code, pid, status);
        kernel.signal_process(parent, info);
    }
    if is_unwanted {
        kernel.state.processes.remove(&pid);
    }
    kernel.wake(WaitKey::ChildOf(parent.0));
}

/// `siginfo` about a child; `si_status` is the exit code or the signal.
pub(crate) fn child_info(signal: u32, signal_code: i32, pid: Pid, status: i32) -> SigInfo {
    let value = if signal_code == code::CLD_EXITED {
        status >> 8 & 0xFF
    } else {
        status & 0x7F
    };
    SigInfo::child(signal, signal_code, pid.0, 0, value)
}

/// A child was stopped or continued.
pub(crate) fn notify_parent_of_change(kernel: &mut Kernel, pid: Pid, report: Report) {
    let parent = kernel.process(pid).parent;
    if !kernel.state.processes.contains_key(&parent) {
        return;
    }
    let (signal_code, signal) = match report {
        Report::Stopped(signal) => (code::CLD_STOPPED, signal),
        Report::Continued => (code::CLD_CONTINUED, SIGCONT),
    };
    if kernel.action(parent, SIGCHLD).flags & action_flags::NOCLDSTOP == 0 {
        let info = SigInfo::child(SIGCHLD, signal_code, pid.0, 0, signal.cast_signed());
        kernel.signal_process(parent, info);
    }
    kernel.wake(WaitKey::ChildOf(parent.0));
}
