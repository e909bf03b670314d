//! A little kernel for unit tests: one process, one thread, 256 KiB of memory at a known address.

use std::sync::Arc;

use raddle_mem::{AddressSpace, Backing, Frames, GuestAddr, PageNo, Perm, Vma};
use raddle_world::SeededChoices;

use crate::clone::insert_space;
use crate::files;
use crate::heap::Heap;
use crate::kernel::{Kernel, Space};
use crate::setup::{self, Mapping, Setup};
use crate::thread::Tid;

/// Where the memory of the test process begins.
pub(crate) const MEMORY: u64 = 0x10_0000;
const PAGES: u64 = 64;

/// The thread of the test process.
pub(crate) const TID: Tid = Tid(setup::FIRST);

/// A kernel with one process whose current directory is `/`.
pub(crate) fn kernel(mappings: Vec<Mapping>, stdin: &[u8]) -> Kernel {
    let setup = Setup {
        program: b"/none".to_vec(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: b"/".to_vec(),
        stdin: stdin.to_vec(),
        mappings,
        visible: None,
        elsewhere: None,
        memory_max: 64 << 20,
        processes_max: 10,
        cpus: 4,
        choices: Box::new(SeededChoices::new(1)),
    };
    let mut kernel = setup::empty_kernel(&setup, Frames::new(setup.memory_max).unwrap());
    let (fds, fs) = files::first_process(&mut kernel, &setup).unwrap();
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
        heap: Heap::default(),
    };
    let space = insert_space(&mut kernel, space);
    setup::add_first_process(&mut kernel, space, fds, fs);
    kernel.thread_mut(TID).name = Arc::from("test");
    kernel
}
