//! The kernel's state and the services that all system call families use.

use raddle_mem::{AddressSpace, Frames, GuestAddr, PageFault};
use raddle_stdx::IdMap;
use raddle_stdx::width::to_u64;
use raddle_world::{
    AccessKind, Choice, ChoiceSource, ContextTable, Crash, Event, EventKind, ImageId, Site,
    Unsupported, VirtualTime,
};

use crate::errno::Errno;
use crate::execution_timer::ExecutionTimers;
use crate::files::{self, HostFiles, ToldFiles};
use crate::futex::Futexes;
use crate::heap::Heap;
use crate::images::Images;
use crate::ipc::Ipc;
use crate::peers::Peers;
use crate::process::{Pid, Process, SpaceId};
use crate::serve::{self, Copied, Serving};
use crate::thread::{Thread, Tid};
use crate::time::Timers;
use crate::wait::Sleepers;
use crate::world::{Halt, Watch};

/// Everything below the threads.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Guest memory; undone by its own log.
    pub(crate) frames: Frames,
    /// Everything else that the guest can see.
    pub(crate) state: State,
    /// Which files are told at the end of a run.
    pub(crate) told: ToldFiles,
    /// Host files pinned at first use; not guest-visible state, kept across restores.
    pub(crate) host: HostFiles,
    /// What happened since the last `take_events`.
    pub(crate) events: Vec<Event>,
    /// Whether system calls and signals are events, too; output always is.
    pub(crate) is_tracing: bool,
    /// Whether memory accesses become events.
    pub(crate) is_observed: bool,
    /// The call that is being made: what is copied from and to the guest's memory is its program's doing.
    pub(crate) serving: Option<Serving>,
    pub(crate) config: Config,
    /// A limit was hit that the guest cannot be told about.
    pub(crate) exhausted: Option<Unsupported>,
    /// Where and why the first process died of an exception.
    pub(crate) crash: Option<Crash>,
    /// What is looked for while the program runs.
    pub(crate) watch: Watch,
    /// Whether freed memory is forbidden: from the first snapshot on.
    pub(crate) is_armed: bool,
    /// Blocks before that whose whole stack may still be kept.
    pub(crate) early_stacks: u32,
    /// Why the run was ended before the program did so.
    pub(crate) halt: Option<Halt>,
}

/// What is fixed for the life of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) memory_max: u64,
    pub(crate) processes_max: usize,
    pub(crate) cpus: u32,
}

/// Guest-visible state: plain data, saved and restored by `clone`.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) processes: IdMap<Pid, Process>,
    pub(crate) threads: IdMap<Tid, Thread>,
    pub(crate) spaces: IdMap<SpaceId, Space>,
    pub(crate) contexts: ContextTable,
    /// The thread of each context, by context number; a dead context keeps the id of its thread.
    pub(crate) context_threads: Vec<Tid>,
    pub(crate) choices: Box<dyn ChoiceSource>,
    pub(crate) files: files::State,
    pub(crate) sleepers: Sleepers,
    pub(crate) futexes: Futexes,
    pub(crate) timers: Timers,
    pub(crate) execution_timers: ExecutionTimers,
    /// Shared memory, semaphores and message queues of System V.
    pub(crate) ipc: Ipc,
    pub(crate) now: VirtualTime,
    /// The last id given to a thread or process.
    pub(crate) last_tid: u32,
    pub(crate) last_space: u32,
    pub(crate) images: Images,
    /// The process whose end is the end of the world.
    pub(crate) first: Pid,
    /// Its wait status, once it has ended.
    pub(crate) ended: Option<i32>,
    /// Scripted clients, if there are any.
    pub(crate) peers: Option<Peers>,
}

/// An address space with the number of processes that use it (more than one after vfork).
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) map: AddressSpace,
    pub(crate) users: u32,
    pub(crate) brk_start: u64,
    pub(crate) brk: u64,
    pub(crate) heap: Heap,
}

impl Kernel {
    pub(crate) fn thread(&self, tid: Tid) -> &Thread {
        &self.state.threads[&tid]
    }

    pub(crate) fn thread_mut(&mut self, tid: Tid) -> &mut Thread {
        self.state
            .threads
            .get_mut(&tid)
            .expect("the thread of a call exists")
    }

    pub(crate) fn process(&self, pid: Pid) -> &Process {
        &self.state.processes[&pid]
    }

    pub(crate) fn process_mut(&mut self, pid: Pid) -> &mut Process {
        self.state
            .processes
            .get_mut(&pid)
            .expect("the process of a call exists")
    }

    pub(crate) fn process_of(&self, tid: Tid) -> &Process {
        self.process(self.thread(tid).process)
    }

    pub(crate) fn process_of_mut(&mut self, tid: Tid) -> &mut Process {
        let pid = self.thread(tid).process;
        self.process_mut(pid)
    }

    /// The memory map of the thread's process.
    pub(crate) fn space_of(&self, tid: Tid) -> &Space {
        &self.state.spaces[&self.process_of(tid).space]
    }

    /// The frames together with the memory map of the thread's process.
    pub(crate) fn memory_of(&mut self, tid: Tid) -> (&mut Frames, &mut Space) {
        let id = self.process_of(tid).space;
        self.memory(id)
    }

    /// The frames together with one memory map.
    pub(crate) fn memory(&mut self, id: SpaceId) -> (&mut Frames, &mut Space) {
        let space = self
            .state
            .spaces
            .get_mut(&id)
            .expect("a process has an address space");
        (&mut self.frames, space)
    }

    /// Copies guest memory of the thread's process; EFAULT if it cannot be read.
    pub(crate) fn read_user(
        &mut self,
        tid: Tid,
        from: GuestAddr,
        into: &mut [u8],
    ) -> Result<(), Errno> {
        self.peek_user(tid, from, into)?;
        let copied = Copied {
            from,
            length: to_u64(into.len()),
            how: AccessKind::Read,
        };
        serve::note(self, tid, copied);
        Ok(())
    }

    /// The same where no detector is to know: more is read than was asked for.
    pub(crate) fn peek_user(
        &mut self,
        tid: Tid,
        from: GuestAddr,
        into: &mut [u8],
    ) -> Result<(), Errno> {
        let id = self.process_of(tid).space;
        loop {
            let (frames, space) = self.memory(id);
            match space.map.read(frames, from, into) {
                Ok(()) => return Ok(()),
                Err((at, fault)) => self.populate(id, at, fault)?,
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
        let id = self.process_of(tid).space;
        self.write_space(id, to, bytes)?;
        let copied = Copied {
            from: to,
            length: to_u64(bytes.len()),
            how: AccessKind::Write,
        };
        serve::note(self, tid, copied);
        Ok(())
    }

    /// Copies `bytes` to guest memory of one address space.
    pub(crate) fn write_space(
        &mut self,
        id: SpaceId,
        to: GuestAddr,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        loop {
            let (frames, space) = self.memory(id);
            match space.map.write(frames, to, bytes) {
                Ok(()) => return Ok(()),
                Err((at, fault)) => self.populate(id, at, fault)?,
            }
        }
    }

    /// Brings in the page of an object that a fault asked for; any other fault is EFAULT.
    pub(crate) fn populate(
        &mut self,
        id: SpaceId,
        at: GuestAddr,
        fault: PageFault,
    ) -> Result<(), Errno> {
        match fault {
            PageFault::NeedsObject { object, page } => {
                let frame = files::object_page(self, object, page)?;
                let (frames, space) = self.memory(id);
                space.map.install(frames, at.page(), frame);
                Ok(())
            }
            PageFault::OutOfFrames => {
                self.out_of_memory();
                Err(Errno::ENOMEM)
            }
            PageFault::NotMapped | PageFault::Protection | PageFault::Forbidden => {
                Err(Errno::EFAULT)
            }
        }
    }

    /// Notes that guest memory is used up: the run ends, since a guest has no way to be told.
    pub(crate) fn out_of_memory(&mut self) {
        let mebibytes = self.config.memory_max >> 20;
        self.exhausted
            .get_or_insert(Unsupported::Memory { mebibytes });
    }

    /// `libc.so.6 + 0x1234` for an address of code, if something is mapped there.
    pub(crate) fn describe_place(&self, tid: Tid, addr: u64) -> String {
        match self.space_of(tid).map.vma_at(GuestAddr(addr).page()) {
            None => "nothing is mapped there".into(),
            Some(vma) => {
                let file_offset = match vma.backing {
                    raddle_mem::Backing::Object { first_page, .. } => {
                        first_page << raddle_mem::PAGE_BITS
                    }
                    raddle_mem::Backing::Anonymous => 0,
                };
                let label: &str = if vma.label.is_empty() {
                    "anonymous memory"
                } else {
                    &vma.label
                };
                format!("{label} + {:#x}", addr - vma.start.start().0 + file_offset)
            }
        }
    }

    /// Appends an event of this thread.
    pub(crate) fn emit(&mut self, tid: Tid, kind: EventKind) {
        let thread = self.thread(tid);
        let context = thread.context;
        let site = self.site(tid, thread.cpu.rip);
        let step = self.state.contexts.get(context).steps;
        self.events.push(Event {
            context,
            step,
            site,
            kind,
        });
    }

    /// The program that a thread executes.
    pub(crate) fn image(&self, tid: Tid) -> ImageId {
        self.process_of(tid).image.id
    }

    /// An instruction of the program that a thread executes.
    pub(crate) fn site(&self, tid: Tid, pc: u64) -> Site {
        Site::new(self.image(tid), pc)
    }

    /// Bytes that a thread wrote to the outside (standard output is 1, standard error 2).
    pub(crate) fn output(&mut self, tid: Tid, descriptor: i32, bytes: &[u8]) {
        self.emit(
            tid,
            EventKind::Output {
                descriptor,
                bytes: bytes.to_vec(),
            },
        );
    }

    /// Fills `bytes` from the run's source of randomness.
    pub(crate) fn random_bytes(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.state.choices.choose(Choice::Random).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
