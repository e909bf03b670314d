//! A little kernel for unit tests: one process, one thread, 256 KiB of memory at a known address.

use std::sync::Arc;

use raddle_mem::{AddressSpace, Backing, Frames, GuestAddr, PageNo, Perm, Vma};
use raddle_world::SeededChoices;

use super::{Config, Start, State};
use crate::clone::insert_space;
use crate::kernel::{Kernel, Space};
use crate::setup::{FIRST, Setup, add_first_process, empty_kernel};
use crate::thread::Tid;

/// Where the memory of the test process begins.
pub(crate) const MEMORY: u64 = 0x10_0000;
const PAGES: u64 = 64;

/// The thread of the test process.
pub(crate) const TID: Tid = Tid(FIRST);

/// A kernel with one process whose current directory is `/`.
pub(crate) fn kernel(config: Config) -> Kernel {
    let setup = Setup {
        program: Vec::new(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: Vec::new(),
        mappings: Vec::new(),
        memory_max: 64 << 20,
        processes_max: 16,
        cpus: config.cpus,
        choices: Box::new(SeededChoices::new(0)),
    };
    let mut kernel = empty_kernel(&setup, Frames::new(setup.memory_max).unwrap());
    kernel.state.files = State::new(config);
    let start = Start {
        stdin: Some(b"standard input\n".to_vec()),
        cwd: b"/".to_vec(),
    };
    let (fds, fs) = super::start(&mut kernel, &start).unwrap();
    let mut map = AddressSpace::default();
    map.map(
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
    let space = Space {
        map,
        users: 1,
        brk_start: 0,
        brk: 0,
    };
    let space = insert_space(&mut kernel, space);
    add_first_process(&mut kernel, space, fds, fs);
    kernel
}
