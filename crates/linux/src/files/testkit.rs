//! A little kernel for unit tests: one process, one thread, 64 KiB of memory at a known address.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_mem::{AddressSpace, Backing, Frames, GuestAddr, PageNo, Perm, Vma};
use raddle_world::{ContextId, VirtualTime};
use raddle_x86::Cpu;

use super::{Config, HostFiles, Start, State};
use crate::kernel::{Kernel, State as KernelState};
use crate::process::{Pid, Process};
use crate::thread::{Thread, Tid};

/// Where the memory of the test process begins.
pub(crate) const MEMORY: u64 = 0x10_0000;
const PAGES: u64 = 64;

/// The thread of the test process.
pub(crate) const TID: Tid = Tid(100);

/// A kernel with one process, its current directory `/tmp/raddle-unit-test` (which the host does not have).
pub(crate) fn kernel(config: Config) -> Kernel {
    let mut kernel = Kernel {
        frames: Frames::new(64 << 20).unwrap(),
        state: KernelState {
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            files: State::new(config),
            now: VirtualTime(0),
        },
        host: HostFiles::default(),
        written: Vec::new(),
    };
    let start = Start {
        stdin: Some(b"standard input\n".to_vec()),
        cwd: b"/".to_vec(),
    };
    let (fds, fs) = super::start(&mut kernel, &start).unwrap();
    let mut space = AddressSpace::default();
    space.map(
        &mut kernel.frames,
        Vma {
            start: GuestAddr(MEMORY).page(),
            end: PageNo(GuestAddr(MEMORY).page().0 + PAGES),
            perm: Perm::RW,
            shared: false,
            backing: Backing::Anonymous,
            label: Arc::from(""),
        },
    );
    let pid = Pid(TID.0);
    kernel.state.processes.insert(
        pid,
        Process {
            pid,
            parent: Pid(1),
            space,
            fds,
            fs,
            threads: vec![TID],
        },
    );
    kernel.state.threads.insert(
        TID,
        Thread {
            tid: TID,
            process: pid,
            context: ContextId(0),
            cpu: Cpu::default(),
            name: Arc::from("test"),
        },
    );
    kernel
}
