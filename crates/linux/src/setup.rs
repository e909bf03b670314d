//! What a world is made from, and the first process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use raddle_mem::{AddressSpace, Frames};
use raddle_stdx::IdMap;
use raddle_world::{ChoiceSource, ContextTable, HeldLocks, ImageId, VirtualTime};
use raddle_x86::Cpu;
use thiserror::Error;

use crate::clone::insert_space;
use crate::credentials::Credentials;
use crate::exec::{self, ExecError, Request};
use crate::execution_timer::ExecutionTimers;
use crate::files::{self, Elsewhere, HostFiles, ToldFiles};
use crate::futex::Futexes;
use crate::heap::Heap;
use crate::images::Images;
use crate::ipc::Ipc;
use crate::kernel::{Config, Kernel, Space, State};
use crate::process::{INIT, Image, Life, Pid, Process, SpaceId, Usage};
use crate::signal::{Action, AltStack, PendingSignals, SignalSet};
use crate::syscall::default_limits;
use crate::thread::{Activity, ExceptionInfo, Schedule, Thread, Tid};
use crate::time::Timers;
use crate::wait::Sleepers;
use crate::world::Watch;

/// A host directory or file that the guest sees at another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub host: PathBuf,
    pub guest: Vec<u8>,
}

/// Everything that determines a run, besides the choices.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Path of the program as the guest sees it.
    pub program: Vec<u8>,
    /// Arguments, the program's name first.
    pub arguments: Vec<Vec<u8>>,
    /// `NAME=value` strings.
    pub environment: Vec<Vec<u8>>,
    /// Current directory as the guest sees it.
    pub directory: Vec<u8>,
    /// What standard input holds.
    pub stdin: Vec<u8>,
    pub mappings: Vec<Mapping>,
    /// The host files and directories that the guest can see, besides what is mapped; none for all that the user can
    /// read.
    pub visible: Option<Vec<PathBuf>>,
    /// What the guest sees instead of this machine: what a world elsewhere has learned of its own.
    pub elsewhere: Option<Arc<Elsewhere>>,
    /// Bytes of guest memory.
    pub memory_max: u64,
    /// Threads and processes at one time.
    pub processes_max: usize,
    /// Processors that the guest is told of.
    pub cpus: u32,
    pub choices: Box<dyn ChoiceSource>,
}

/// Why a world cannot begin.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("cannot reserve {bytes} bytes for guest memory: {source}; try a smaller --max-memory")]
    Memory { bytes: u64, source: std::io::Error },
    #[error("cannot run `{program}`: {reason}")]
    Program { program: String, reason: String },
    #[error("cannot use the directory `{directory}`: {reason}")]
    Directory { directory: String, reason: String },
}

/// The id of the first process.
pub(crate) const FIRST: u32 = 1000;

/// Makes a kernel with one process that stands at the first instruction of the program.
pub(crate) fn start(setup: Setup) -> Result<Kernel, StartError> {
    let frames = Frames::new(setup.memory_max).map_err(|source| StartError::Memory {
        bytes: setup.memory_max,
        source,
    })?;
    let program = String::from_utf8_lossy(&setup.program).into_owned();
    let mut kernel = empty_kernel(&setup, frames);
    let (fds, fs) =
        files::first_process(&mut kernel, &setup).map_err(|errno| StartError::Directory {
            directory: String::from_utf8_lossy(&setup.directory).into_owned(),
            reason: errno.message().into(),
        })?;
    let space = insert_space(
        &mut kernel,
        Space {
            map: AddressSpace::default(),
            users: 1,
            brk_start: 0,
            brk: 0,
            heap: Heap::default(),
        },
    );
    add_first_process(&mut kernel, space, fds, fs);
    let request = Request {
        path: setup.program,
        arguments: setup.arguments,
        environment: setup.environment,
    };
    exec::exec(&mut kernel, Tid(FIRST), request).map_err(|error: ExecError| {
        StartError::Program {
            program,
            reason: error.to_string(),
        }
    })?;
    kernel.events.clear();
    Ok(kernel)
}

pub(crate) fn empty_kernel(setup: &Setup, frames: Frames) -> Kernel {
    Kernel {
        frames,
        state: State {
            processes: IdMap::default(),
            threads: IdMap::default(),
            spaces: IdMap::default(),
            contexts: ContextTable::default(),
            context_threads: Vec::new(),
            choices: setup.choices.clone(),
            files: files::new_state(setup),
            sleepers: Sleepers::default(),
            futexes: Futexes::default(),
            timers: Timers::default(),
            execution_timers: ExecutionTimers::default(),
            ipc: Ipc::default(),
            now: VirtualTime(0),
            last_tid: FIRST,
            last_space: 0,
            images: Images::default(),
            first: Pid(FIRST),
            ended: None,
            peers: None,
        },
        told: ToldFiles::default(),
        host: host_files(setup),
        events: Vec::new(),
        is_tracing: false,
        is_observed: false,
        serving: None,
        config: Config {
            memory_max: setup.memory_max,
            processes_max: setup.processes_max,
            cpus: setup.cpus,
        },
        exhausted: None,
        crash: None,
        watch: Watch::default(),
        is_armed: false,
        early_stacks: crate::hooks::EARLY_STACKS,
        halt: None,
    }
}

/// The host as the guest sees it: what is mapped is always among it.
fn host_files(setup: &Setup) -> HostFiles {
    if let Some(elsewhere) = &setup.elsewhere {
        return HostFiles::of_catalogue(Arc::clone(elsewhere), setup.visible.is_some());
    }
    let mapped = setup.mappings.iter().map(|mapping| mapping.host.clone());
    let visible: Option<Vec<PathBuf>> = setup
        .visible
        .as_ref()
        .map(|paths| paths.iter().cloned().chain(mapped).collect());
    HostFiles::showing(visible.as_deref())
}

pub(crate) fn add_first_process(
    kernel: &mut Kernel,
    space: SpaceId,
    fds: files::TableId,
    fs: files::FsId,
) {
    let (pid, tid) = (Pid(FIRST), Tid(FIRST));
    kernel.state.processes.insert(
        pid,
        Process {
            pid,
            parent: INIT,
            space,
            fds,
            fs,
            threads: vec![tid],
            group: pid,
            session: pid,
            image: Image {
                id: ImageId::FIRST,
                path: Arc::from([]),
                command_line: Arc::from([]),
                environment: Arc::from([]),
                auxv: Arc::from([]),
                stack_start: 0,
            },
            actions: Arc::new([Action::default(); 64]),
            pending: PendingSignals::default(),
            exit_signal: crate::signal::SIGCHLD,
            is_vfork_child: false,
            life: Life::Running,
            unreported: None,
            limits: default_limits(),
            parent_death_signal: 0,
            is_subreaper: false,
            is_dumpable: true,
            no_new_privileges: false,
            personality: 0,
            usage: Usage::default(),
            children_usage: Usage::default(),
            started: VirtualTime(0),
            leader_status: None,
            next_timer: 0,
            thread_handles: BTreeMap::new(),
        },
    );
    add_first_thread(kernel, pid, tid);
}

fn add_first_thread(kernel: &mut Kernel, pid: Pid, tid: Tid) {
    let context = kernel.state.contexts.create(None, "".into());
    kernel.state.context_threads.push(tid);
    kernel.state.threads.insert(
        tid,
        Thread {
            tid,
            process: pid,
            credentials: Arc::new(Credentials::root()),
            context,
            cpu: Cpu::default(),
            name: "".into(),
            activity: Activity::User,
            clear_child_tid: 0,
            robust_list: 0,
            mask: SignalSet::default(),
            saved_mask: None,
            pending: PendingSignals::default(),
            alt_stack: AltStack::NONE,
            stack: 0..0,
            last_exception: ExceptionInfo::default(),
            futex_ticket: None,
            vfork_child: None,
            is_stopped: false,
            has_yielded: false,
            yielded_at: None,
            torn: None,
            fault: None,
            stopped_at_point: None,
            hooked_calls: Vec::new(),
            moving: None,
            is_excused: false,
            held_locks: HeldLocks::default(),
            schedule: Schedule {
                policy: 0,
                priority: 0,
                nice: 0,
                affinity: u64::MAX >> (64 - kernel.config.cpus.clamp(1, 64)),
            },
        },
    );
}
