//! Creation of threads and processes.

use std::collections::BTreeMap;

use std::ops::Range;
use std::sync::Arc;

use raddle_mem::GuestAddr;
use raddle_world::{EventKind, HeldLocks, Lacking, WaitReason};
use raddle_x86::Reg;

use crate::call::{Block, Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::errno::Errno;
use crate::files;
use crate::kernel::{Kernel, Space};
use crate::life;
use crate::process::{Life, Pid, Process, SpaceId, Usage};
use crate::signal::{AltStack, PendingSignals, SIGKILL, SIGMAX};
use crate::syscall::make_pidfd;
use crate::thread::{Activity, Thread, Tid};

/// Flags of clone(2).
pub(crate) mod flags {
    pub(crate) const VM: u64 = 0x100;
    pub(crate) const FS: u64 = 0x200;
    pub(crate) const FILES: u64 = 0x400;
    pub(crate) const SIGHAND: u64 = 0x800;
    pub(crate) const PIDFD: u64 = 0x1000;
    pub(crate) const VFORK: u64 = 0x4000;
    pub(crate) const PARENT: u64 = 0x8000;
    pub(crate) const THREAD: u64 = 0x1_0000;
    pub(crate) const SETTLS: u64 = 0x8_0000;
    pub(crate) const PARENT_SETTID: u64 = 0x10_0000;
    pub(crate) const CHILD_CLEARTID: u64 = 0x20_0000;
    pub(crate) const DETACHED: u64 = 0x40_0000;
    pub(crate) const CHILD_SETTID: u64 = 0x100_0000;
    pub(crate) const CLEAR_SIGHAND: u64 = 0x1_0000_0000;
    /// All that asks for namespaces or groups of their own.
    pub(crate) const NAMESPACES: u64 = 0x2_0000
        | 0x80
        | 0x200_0000
        | 0x400_0000
        | 0x800_0000
        | 0x1000_0000
        | 0x2000_0000
        | 0x4000_0000
        | 0x2_0000_0000;
}

/// What a new thread or process is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) flags: u64,
    /// Sent to the parent at its end.
    pub(crate) exit_signal: u32,
    /// New stack pointer; 0 keeps the parent's.
    pub(crate) stack: u64,
    /// How much memory below it is the stack; 0 if the caller does not say.
    pub(crate) stack_size: u64,
    pub(crate) parent_tid: u64,
    pub(crate) child_tid: u64,
    pub(crate) tls: u64,
    /// Where the descriptor of CLONE_PIDFD goes.
    pub(crate) pidfd: u64,
}

/// Makes the thread or process; the caller goes on, unless it lent its memory (vfork).
pub(crate) fn clone(call: &mut Call<'_>, request: Request) -> SysResult {
    if call.is_retry {
        return finish_vfork(call);
    }
    check(&request)?;
    let kernel = &mut *call.kernel;
    let live = kernel.state.threads.len();
    if live >= kernel.config.processes_max {
        let limit = kernel.config.processes_max;
        return Err(Trouble::Unsupported(Lacking::Contexts { live, limit }));
    }
    let tid = next_tid(kernel);
    let is_thread = request.flags & flags::THREAD != 0;
    let pid = if is_thread {
        kernel.thread(call.tid).process
    } else {
        make_process(kernel, call.tid, Pid(tid.0), &request)
    };
    make_thread(kernel, call.tid, tid, pid, &request);
    store_ids(kernel, call.tid, tid, &request);
    if request.flags & flags::PIDFD != 0 {
        give_pidfd(call, pid, &request)?;
    }
    let kernel = &mut *call.kernel;
    if request.flags & flags::VFORK != 0 && !is_thread {
        kernel.process_mut(pid).is_vfork_child = true;
        kernel.thread_mut(call.tid).vfork_child = Some(pid);
        return Err(vfork_block(pid));
    }
    Ok(u64::from(tid.0))
}

/// The creator gets a descriptor for its child; without one there is no child.
fn give_pidfd(call: &mut Call<'_>, pid: Pid, request: &Request) -> Result<(), Trouble> {
    let given = make_pidfd(call, pid).and_then(|fd| {
        call.kernel
            .write_user(call.tid, GuestAddr(request.pidfd), &fd.to_le_bytes())
    });
    if let Err(errno) = given {
        life::kill_process(call.kernel, pid, SIGKILL);
        call.kernel.state.processes.remove(&pid);
        return Err(errno.into());
    }
    Ok(())
}

fn check(request: &Request) -> Result<(), Trouble> {
    let has = |flag: u64| request.flags & flag != 0;
    if has(flags::SIGHAND) && !has(flags::VM) || has(flags::THREAD) && !has(flags::SIGHAND) {
        return Err(Errno::EINVAL.into());
    }
    if has(flags::NAMESPACES) {
        return Err(Errno::EPERM.into());
    }
    if has(flags::PIDFD) && has(flags::THREAD) {
        return Err(Errno::EINVAL.into());
    }
    if has(flags::THREAD) && !(has(flags::FILES) && has(flags::FS)) {
        return Err(Trouble::Unsupported(Lacking::Arguments(
            "clone of a thread with descriptors or a directory of its own (CLONE_THREAD without CLONE_FILES or CLONE_FS)".into(),
        )));
    }
    Ok(())
}

fn vfork_block(child: Pid) -> Trouble {
    Trouble::Block(Block {
        reason: WaitReason::Vfork,
        keys: vec![WaitKey::VforkOf(child.0)],
        deadline: None,
        on_signal: OnSignal::Hold,
    })
}

fn finish_vfork(call: &mut Call<'_>) -> SysResult {
    let thread = call.kernel.thread_mut(call.tid);
    let child = thread.vfork_child.ok_or(Errno::EINVAL)?;
    let is_waiting = call
        .kernel
        .state
        .processes
        .get(&child)
        .is_some_and(|process| process.is_vfork_child);
    if is_waiting {
        return Err(vfork_block(child));
    }
    call.kernel.thread_mut(call.tid).vfork_child = None;
    Ok(u64::from(child.0))
}

/// Ids are given in order and never reused: 2^22 of them are more than a run needs.
fn next_tid(kernel: &mut Kernel) -> Tid {
    kernel.state.last_tid += 1;
    Tid(kernel.state.last_tid)
}

fn make_process(kernel: &mut Kernel, creator: Tid, pid: Pid, request: &Request) -> Pid {
    let space = if request.flags & flags::VM != 0 {
        let id = kernel.process_of(creator).space;
        kernel.memory(id).1.users += 1;
        id
    } else {
        fork_space(kernel, creator)
    };
    let (fds, fs) = (
        kernel.process_of(creator).fds,
        kernel.process_of(creator).fs,
    );
    let fds = files::fork_table(kernel, fds, request.flags & flags::FILES != 0);
    let fs = files::fork_context(kernel, fs, request.flags & flags::FS != 0);
    let parent = kernel.process_of(creator);
    let mut actions = Arc::clone(&parent.actions);
    if request.flags & flags::CLEAR_SIGHAND != 0 {
        for action in Arc::make_mut(&mut actions) {
            if action.is_handler() {
                *action = crate::signal::Action::default();
            }
        }
    }
    let child = Process {
        pid,
        parent: if request.flags & flags::PARENT != 0 {
            parent.parent
        } else {
            parent.pid
        },
        space,
        fds,
        fs,
        threads: Vec::new(),
        actions,
        pending: PendingSignals::default(),
        // As in Linux a number that is no signal is accepted and never sent.
        exit_signal: if request.exit_signal <= SIGMAX {
            request.exit_signal
        } else {
            0
        },
        is_vfork_child: false,
        life: Life::Running,
        unreported: None,
        parent_death_signal: 0,
        is_subreaper: false,
        usage: Usage::default(),
        children_usage: Usage::default(),
        started: kernel.state.now,
        leader_status: None,
        next_timer: 0,
        thread_handles: BTreeMap::new(),
        ..parent.clone()
    };
    kernel.state.processes.insert(pid, child);
    pid
}

fn fork_space(kernel: &mut Kernel, creator: Tid) -> SpaceId {
    let (frames, space) = kernel.memory_of(creator);
    let copy = Space {
        map: space.map.fork(frames),
        users: 1,
        brk_start: space.brk_start,
        brk: space.brk,
        heap: space.heap.clone(),
    };
    insert_space(kernel, copy)
}

/// Files an address space under a new id.
pub(crate) fn insert_space(kernel: &mut Kernel, space: Space) -> SpaceId {
    kernel.state.last_space += 1;
    let id = SpaceId(kernel.state.last_space);
    kernel.state.spaces.insert(id, space);
    id
}

fn make_thread(kernel: &mut Kernel, creator: Tid, tid: Tid, pid: Pid, request: &Request) {
    let parent = kernel.thread(creator).clone();
    let context = kernel
        .state
        .contexts
        .create(Some(parent.context), Arc::clone(&parent.name));
    kernel.state.context_threads.push(tid);
    let mut cpu = parent.cpu.clone();
    cpu.set_reg(Reg::Rax, 0);
    if request.stack != 0 {
        cpu.set_reg(Reg::Rsp, request.stack);
    }
    if request.flags & flags::SETTLS != 0 {
        cpu.set_fs_base(request.tls);
    }
    let has = |flag: u64| request.flags & flag != 0;
    // A thread gets no alternate stack; a process inherits it, unless it shares memory without waiting.
    let keeps_stack = !has(flags::VM) || has(flags::VFORK);
    let thread = Thread {
        tid,
        process: pid,
        context,
        cpu,
        activity: Activity::User,
        clear_child_tid: if has(flags::CHILD_CLEARTID) {
            request.child_tid
        } else {
            0
        },
        robust_list: 0,
        saved_mask: None,
        pending: PendingSignals::default(),
        alt_stack: if keeps_stack {
            parent.alt_stack
        } else {
            AltStack::NONE
        },
        futex_ticket: None,
        vfork_child: None,
        is_stopped: false,
        has_yielded: false,
        yielded_at: None,
        torn: None,
        fault: None,
        stopped_at_point: None,
        stack: stack_of(kernel, pid, request),
        hooked_calls: Vec::new(),
        moving: None,
        is_excused: false,
        held_locks: HeldLocks::default(),
        ..parent
    };
    kernel.state.threads.insert(tid, thread);
    kernel.process_mut(pid).threads.push(tid);
    kernel.emit(creator, EventKind::Create { child: context });
}

/// The memory that is a new thread's own: its stack, and its thread-local variables if they lie right above.
fn stack_of(kernel: &Kernel, pid: Pid, request: &Request) -> Range<u64> {
    let stack = request.stack - request.stack_size..request.stack;
    if stack.is_empty() || request.flags & flags::SETTLS == 0 {
        return stack;
    }
    let map = &kernel.state.spaces[&kernel.process(pid).space].map;
    let area = map.vma_at(GuestAddr(stack.end - 1).page());
    let has_locals =
        area.is_some_and(|area| (stack.end..area.end.start().0).contains(&request.tls));
    if has_locals {
        stack.start..request.tls
    } else {
        stack
    }
}

fn store_ids(kernel: &mut Kernel, creator: Tid, tid: Tid, request: &Request) {
    let bytes = tid.0.to_le_bytes();
    // As in Linux a bad address here is not reported: the thread exists already.
    if request.flags & flags::PARENT_SETTID != 0 {
        kernel
            .write_user(creator, GuestAddr(request.parent_tid), &bytes)
            .ok();
    }
    if request.flags & flags::CHILD_SETTID != 0 {
        kernel
            .write_user(tid, GuestAddr(request.child_tid), &bytes)
            .ok();
    }
}
