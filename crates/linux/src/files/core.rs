//! What the file layer needs from the rest of the kernel, in one place.

use raddle_mem::Vma;

use crate::kernel::Kernel;
use crate::process::Pid;
use crate::thread::Tid;

pub(crate) const SIGPIPE: u32 = 13;

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
pub(crate) fn signal(_kernel: &mut Kernel, _tid: Tid, _number: u32) {}

/// Whether one of the signals in `mask` is pending for the thread.
pub(crate) fn has_signal(_kernel: &Kernel, _tid: Tid, _mask: u64) -> bool {
    false
}

/// Takes a pending signal of `mask`: its `siginfo_t`.
pub(crate) fn take_signal(_kernel: &mut Kernel, _tid: Tid, _mask: u64) -> Option<[u8; 128]> {
    None
}

/// Sets the mask of ppoll, pselect6 and epoll_pwait until the call ends.
pub(crate) fn set_temporary_mask(_kernel: &mut Kernel, _tid: Tid, _mask: u64) {}

/// Bytes for standard output or standard error of the world.
pub(crate) fn output(kernel: &mut Kernel, _tid: Tid, descriptor: i32, bytes: &[u8]) {
    kernel.written.push((descriptor, bytes.to_vec()));
}

pub(crate) fn random_bytes(_kernel: &mut Kernel, bytes: &mut [u8]) {
    bytes.fill(4);
}

pub(crate) fn has_ended(kernel: &Kernel, pid: Pid) -> Ended {
    if kernel.state.processes.contains_key(&pid) {
        Ended::Alive
    } else {
        Ended::Gone
    }
}

/// The areas of a process's memory.
pub(crate) fn areas(kernel: &Kernel, pid: Pid) -> &[Vma] {
    kernel
        .state
        .processes
        .get(&pid)
        .map_or(&[], |process| process.space.vmas())
}

/// Whether some address space maps pages of the object.
pub(crate) fn is_mapped(kernel: &Kernel, number: u64) -> bool {
    kernel.state.processes.values().any(|process| {
        process.space.vmas().iter().any(|vma| {
            matches!(vma.backing, raddle_mem::Backing::Object { object, .. } if object.0 == number)
        })
    })
}

pub(crate) fn facts(kernel: &Kernel, pid: Pid) -> Option<Facts> {
    let process = kernel.state.processes.get(&pid)?;
    Some(Facts {
        parent: process.parent.0,
        state: 'R',
        threads: process.threads.iter().map(|tid| tid.0).collect(),
        ..Facts::default()
    })
}

/// User ids as the guest sees them: real, effective, saved; users first, then groups.
pub(crate) fn credentials(_kernel: &Kernel, _pid: Pid) -> [[u32; 3]; 2] {
    [[0; 3]; 2]
}

/// The file size limit of the caller (RLIMIT_FSIZE).
pub(crate) fn file_size_max(_kernel: &Kernel, _tid: Tid) -> u64 {
    u64::MAX
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
