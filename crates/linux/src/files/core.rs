//! What the file layer needs from the rest of the kernel, in one place.

use raddle_mem::Vma;

use crate::kernel::Kernel;
use crate::process::{Life, Pid};
use crate::signal::{SigInfo, SignalSet};
use crate::thread::Tid;

const RLIMIT_FSIZE: u32 = 1;

/// Whether a process is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Alive,
    Zombie,
    Gone,
}

/// What /proc tells about a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) state: char,
    pub(crate) threads: Vec<u32>,
    pub(crate) exe: Vec<u8>,
    pub(crate) command_line: Vec<u8>,
    pub(crate) environment: Vec<u8>,
    pub(crate) auxv: Vec<u8>,
    pub(crate) stack_start: u64,
    pub(crate) started_ns: u64,
    pub(crate) user_ns: u64,
}

/// Sends a signal to the calling thread.
pub(crate) fn signal(kernel: &mut Kernel, tid: Tid, number: u32) {
    kernel.signal_thread(tid, SigInfo::kernel(number));
}

/// Whether one of the signals in `mask` is pending for the thread.
pub(crate) fn has_signal(kernel: &Kernel, tid: Tid, mask: u64) -> bool {
    kernel.has_signal(tid, SignalSet(mask))
}

/// Takes a pending signal of `mask`: its `siginfo_t`.
pub(crate) fn take_signal(kernel: &mut Kernel, tid: Tid, mask: u64) -> Option<[u8; 128]> {
    kernel
        .take_signal(tid, SignalSet(mask))
        .map(|info| info.to_bytes())
}

/// Sets the mask of ppoll, pselect6 and epoll_pwait until the call ends.
pub(crate) fn set_temporary_mask(kernel: &mut Kernel, tid: Tid, mask: u64) {
    kernel.set_temporary_mask(tid, SignalSet(mask));
}

/// Bytes for standard output or standard error of the world.
pub(crate) fn output(kernel: &mut Kernel, tid: Tid, descriptor: i32, bytes: &[u8]) {
    kernel.output(tid, descriptor, bytes);
}

pub(crate) fn random_bytes(kernel: &mut Kernel, bytes: &mut [u8]) {
    kernel.random_bytes(bytes);
}

pub(crate) fn has_ended(kernel: &Kernel, pid: Pid) -> Ended {
    match kernel.state.processes.get(&pid) {
        None => Ended::Gone,
        Some(process) if process.is_zombie() => Ended::Zombie,
        Some(_) => Ended::Alive,
    }
}

/// The areas of a process's memory.
pub(crate) fn areas(kernel: &Kernel, pid: Pid) -> &[Vma] {
    kernel
        .state
        .processes
        .get(&pid)
        .and_then(|process| kernel.state.spaces.get(&process.space))
        .map_or(&[], |space| space.map.vmas())
}

/// Whether some address space maps pages of the object.
pub(crate) fn is_mapped(kernel: &Kernel, number: u64) -> bool {
    kernel.state.spaces.values().any(|space| {
        space.map.vmas().iter().any(|vma| {
            matches!(vma.backing, raddle_mem::Backing::Object { object, .. } if object.0 == number)
        })
    })
}

pub(crate) fn facts(kernel: &Kernel, pid: Pid) -> Option<Facts> {
    let process = kernel.state.processes.get(&pid)?;
    let state = match process.life {
        Life::Zombie(_) => 'Z',
        Life::Stopped(_) => 'T',
        Life::Running => {
            let is_runnable = process.threads.iter().any(|tid| {
                let context = kernel.thread(*tid).context;
                kernel.state.contexts.get(context).is_runnable()
            });
            if is_runnable { 'R' } else { 'S' }
        }
    };
    Some(Facts {
        parent: process.parent.0,
        group: process.group.0,
        session: process.session.0,
        state,
        threads: process.threads.iter().map(|tid| tid.0).collect(),
        exe: process.image.path.to_vec(),
        command_line: process.image.command_line.to_vec(),
        environment: process.image.environment.to_vec(),
        auxv: process.image.auxv.to_vec(),
        stack_start: process.image.stack_start,
        started_ns: crate::time::monotonic(process.started),
        user_ns: process.usage.steps,
    })
}

/// The file size limit of the caller (RLIMIT_FSIZE).
pub(crate) fn file_size_max(kernel: &Kernel, tid: Tid) -> u64 {
    kernel.process_of(tid).limit(RLIMIT_FSIZE)
}

/// Renames a thread; false if there is no such thread.
pub(crate) fn rename_thread(kernel: &mut Kernel, tid: Tid, name: &str) -> bool {
    match kernel.state.threads.get_mut(&tid) {
        Some(thread) => {
            thread.name = name.into();
            true
        }
        None => false,
    }
}
