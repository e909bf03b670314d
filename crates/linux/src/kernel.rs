//! The kernel's state and the services that all system call families use.

use std::collections::BTreeMap;

use raddle_mem::{Frames, GuestAddr, PageFault};
use raddle_world::VirtualTime;

use crate::call::WaitKey;
use crate::errno::Errno;
use crate::files::{self, HostFiles};
use crate::process::{Pid, Process};
use crate::thread::{Thread, Tid};

/// Everything below the threads.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Guest memory; undone by its own log.
    pub(crate) frames: Frames,
    /// Everything else that the guest can see.
    pub(crate) state: State,
    /// Host files pinned at first use; not guest-visible state, kept across restores.
    pub(crate) host: HostFiles,
    /// What the guest wrote to the outside.
    pub(crate) written: Vec<(i32, Vec<u8>)>,
}

/// Guest-visible state: plain data, saved and restored by `clone`.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) processes: BTreeMap<Pid, Process>,
    pub(crate) threads: BTreeMap<Tid, Thread>,
    pub(crate) files: files::State,
    pub(crate) now: VirtualTime,
}

impl Kernel {
    pub(crate) fn thread(&self, tid: Tid) -> &Thread {
        &self.state.threads[&tid]
    }

    pub(crate) fn process_of(&self, tid: Tid) -> &Process {
        &self.state.processes[&self.thread(tid).process]
    }

    pub(crate) fn process_of_mut(&mut self, tid: Tid) -> &mut Process {
        let pid = self.thread(tid).process;
        self.state
            .processes
            .get_mut(&pid)
            .expect("a thread's process exists")
    }

    /// Copies guest memory of the thread's process; EFAULT if it cannot be read.
    pub(crate) fn read_user(
        &mut self,
        tid: Tid,
        from: GuestAddr,
        into: &mut [u8],
    ) -> Result<(), Errno> {
        loop {
            let pid = self.thread(tid).process;
            let process = self
                .state
                .processes
                .get_mut(&pid)
                .expect("a thread's process exists");
            match process.space.read(&mut self.frames, from, into) {
                Ok(()) => return Ok(()),
                Err((at, fault)) => self.populate(pid, at, fault)?,
            }
        }
    }

    /// Copies `bytes` to guest memory of the thread's process; EFAULT if it cannot be written.
    pub(crate) fn write_user(
        &mut self,
        tid: Tid,
        to: GuestAddr,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        loop {
            let pid = self.thread(tid).process;
            let process = self
                .state
                .processes
                .get_mut(&pid)
                .expect("a thread's process exists");
            match process.space.write(&mut self.frames, to, bytes) {
                Ok(()) => return Ok(()),
                Err((at, fault)) => self.populate(pid, at, fault)?,
            }
        }
    }

    /// Brings in the page of an object that a fault asked for; any other fault is EFAULT.
    pub(crate) fn populate(
        &mut self,
        pid: Pid,
        at: GuestAddr,
        fault: PageFault,
    ) -> Result<(), Errno> {
        let PageFault::NeedsObject { object, page } = fault else {
            return Err(Errno::EFAULT);
        };
        let frame = files::object_page(self, object, page)?;
        let process = self
            .state
            .processes
            .get_mut(&pid)
            .expect("the process of a fault exists");
        process.space.install(&mut self.frames, at.page(), frame);
        Ok(())
    }

    /// Wakes every thread that sleeps on `key`.
    pub(crate) fn wake(&mut self, _key: WaitKey) {}
}
