//! The world itself: runs threads on the engine and answers what they ask for.

mod calls;
mod clients;
mod describe;
mod exceptions;
mod faults;
pub(crate) mod halt;
mod pending;
mod private_call;
mod programs;
mod rehearsal;
mod run_digest;
mod torn;

use std::sync::Arc;

use raddle_config::hooks::Hook;
use raddle_mem::{Frames, SnapshotDepth};
use raddle_stdx::Digest;
use raddle_stdx::width::to_u64;
use raddle_symbols::{ModuleStore, SymbolSpace};
use raddle_world::{
    Choice, ContextId, ContextTable, Crash, Duration, Event, ImageId, MeetFaults, Pending,
    PendingKind, Rehearse, Section, Site, Snapshot, Stop, TakeTurns, TearInstructions, Until,
    VirtualTime, World,
};
use raddle_x86::{Engine, Exit, Fault, Memory, Observe, Peek, Slice};
use rustc_hash::FxHashMap;

use crate::execution_timer;
use crate::hooks::Hooks;
use crate::kernel::{Kernel, State};
use crate::marks::Marks;
use crate::observe;
use crate::setup::{self, Setup, StartError};
use crate::signal::exception_signal;
use crate::thread::{Activity, ExceptionInfo, Tid};
use crate::time;

pub use describe::describe_status;
pub use halt::{Halt, Watch};
use run_digest::{Reached, RunDigest};

/// Linux processes on one host thread.
#[derive(Debug)]
pub struct LinuxWorld {
    kernel: Kernel,
    engine: Engine,
    saved: Vec<Saved>,
    digest: RunDigest,
    statistics: Statistics,
    hooks: Hooks,
    marks: Marks,
    peek: Peek,
    observe: Observe,
    /// Whether calls of the allocator are stops.
    stops_at_allocations: bool,
    /// Program points that the caller set, besides those of hooks.
    points: FxHashMap<u64, Vec<ImageId>>,
}

/// What a snapshot keeps beside the undo log of guest memory.
#[derive(Debug)]
struct Saved {
    depth: SnapshotDepth,
    state: State,
    digest: RunDigest,
}

/// Counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    pub steps: u64,
    /// Slices in which another context ran than in the one before.
    pub switches: u64,
    pub syscalls: u64,
    pub signals: u64,
    /// Pages brought in from files and shared segments.
    pub pages_fetched: u64,
    /// Pages in use now.
    pub pages_used: u64,
    pub restores: u64,
    pub restored_pages: u64,
    last: Option<ContextId>,
}

/// What is to happen after a step of work.
enum Flow {
    /// Go on with the same thread.
    On,
    Stop(Stop),
}

impl LinuxWorld {
    /// A world whose first process stands at the first instruction of its program.
    pub fn new(setup: Setup) -> Result<Self, StartError> {
        Ok(Self {
            kernel: setup::start(setup)?,
            engine: Engine::default(),
            saved: Vec::new(),
            digest: RunDigest::default(),
            statistics: Statistics::default(),
            hooks: Hooks::default(),
            marks: Marks::default(),
            peek: Peek::default(),
            observe: Observe::None,
            stops_at_allocations: false,
            points: FxHashMap::default(),
        })
    }

    /// Makes system calls, signals and mappings events, too.
    pub fn set_tracing(&mut self, is_on: bool) {
        self.kernel.is_tracing = is_on;
    }

    /// Turns calls of these functions into events.
    pub fn set_hooks(&mut self, rules: Vec<Hook>) {
        self.set_hooks_with(rules, Arc::default());
    }

    /// The same, with the symbols that other worlds have read.
    pub fn set_hooks_with(&mut self, rules: Vec<Hook>, modules: Arc<ModuleStore>) {
        self.hooks = Hooks::new(rules, modules);
    }

    /// Chooses whether memory accesses become events.
    pub fn set_observe(&mut self, observe: Observe) {
        self.observe = observe;
        self.kernel.is_observed = observe != Observe::None;
        self.engine.set_observe(observe);
    }

    /// The symbols of the process of a live context, as it is mapped now.
    pub fn symbols(&mut self, who: ContextId) -> Option<SymbolSpace> {
        let tid = self.tid(who)?;
        Some(self.hooks.symbols(&mut self.kernel, tid))
    }

    /// Locks that a live context holds, as far as hooked functions tell, oldest first.
    pub fn held_locks(&self, who: ContextId) -> &[Section] {
        let tid = self.tid(who);
        tid.map_or(&[], |tid| self.kernel.thread(tid).held_locks.sections())
    }

    /// Digest of the run so far: who ran how far before another did, system calls and results.
    pub fn run_digest(&self) -> u64 {
        self.digest.value()
    }

    pub fn statistics(&self) -> Statistics {
        Statistics {
            pages_used: to_u64(self.kernel.frames.in_use()),
            restored_pages: self.kernel.frames.restored_pages(),
            ..self.statistics
        }
    }

    /// Virtual time now.
    pub fn now(&self) -> VirtualTime {
        self.kernel.state.now
    }

    /// Flags a program point: a slice with [`Until::Point`] ends before it is executed.
    pub fn add_point(&mut self, site: Site) {
        let images = self.points.entry(site.pc()).or_default();
        if !images.contains(&site.image()) {
            images.push(site.image());
        }
        self.engine.add_point(site.pc());
    }

    /// Whether the caller has flagged a program point.
    pub fn is_point(&self, site: Site) -> bool {
        let images = self.points.get(&site.pc());
        images.is_some_and(|images| images.contains(&site.image()))
    }

    /// Removes a flag.
    pub fn remove_point(&mut self, site: Site) {
        let pc = site.pc();
        let Some(images) = self.points.get_mut(&pc) else {
            return;
        };
        images.retain(|image| *image != site.image());
        if !images.is_empty() {
            return;
        }
        self.points.remove(&pc);
        if !self.hooks.uses(pc) && !self.marks.uses(pc) {
            self.engine.remove_point(pc);
        }
    }

    /// Removes the flags of all programs at an address.
    pub(crate) fn remove_points_at(&mut self, pc: u64) {
        let images = self.points.get(&pc).cloned().unwrap_or_default();
        for image in images {
            self.remove_point(Site::new(image, pc));
        }
    }

    /// The program that a context executes; that of the world's beginning if it has ended.
    pub fn image(&self, who: ContextId) -> ImageId {
        let tid = self.tid(who);
        tid.map_or(ImageId::FIRST, |tid| self.kernel.image(tid))
    }

    /// The path of a program that was started.
    pub fn image_path(&self, image: ImageId) -> Option<String> {
        let path = self.kernel.state.images.path(image)?;
        Some(String::from_utf8_lossy(path).into_owned())
    }

    /// Wait status of the first process, once it has ended.
    pub fn ended(&self) -> Option<i32> {
        self.kernel.state.ended
    }

    /// Where and why the first process died of an exception, if it did.
    pub fn crash(&self) -> Option<&Crash> {
        self.kernel.crash.as_ref()
    }

    /// Writes what the guest made or changed out below a host directory, and nothing anywhere else. FIFOs, and set-id
    /// and sticky bits, only `with_special`.
    pub fn export(
        &mut self,
        to: &std::path::Path,
        with_special: bool,
    ) -> std::io::Result<crate::files::Exported> {
        crate::files::export(&mut self.kernel, to, with_special)
    }

    /// The host files that this run has read, and whether they are still what they were.
    pub fn host_files(&self) -> Vec<crate::files::PinnedFile> {
        self.kernel.host.pinned()
    }

    /// All that this world has learned of its host, for one that is to run elsewhere; `keep` is given the path of each
    /// file whose content belongs to it, and says by which digest it is known.
    ///
    /// # Errors
    /// A name is no text, or `keep` fails.
    pub fn catalogue<E: From<crate::files::NotText>>(
        &self,
        keep: &mut dyn FnMut(&std::path::Path) -> Result<crate::files::ContentId, E>,
    ) -> Result<crate::files::Catalogue, E> {
        self.kernel.host.catalogue(keep)
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(crate) fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    pub(crate) fn tid(&self, who: ContextId) -> Option<Tid> {
        let tid = *self.kernel.state.context_threads.get(who.0 as usize)?;
        let thread = self.kernel.state.threads.get(&tid)?;
        (thread.context == who).then_some(tid)
    }

    fn run_until(&mut self, who: ContextId, until: Until) -> Stop {
        let mut left = until.steps_max();
        loop {
            self.kernel.fire_due();
            self.kernel.look_for_replies();
            if let Some(stop) = self.finished() {
                return stop;
            }
            let Some(tid) = self.tid(who) else {
                return Stop::Done;
            };
            if self.kernel.may_take_signal(tid) {
                self.statistics.signals += 1;
                self.kernel.deliver_signals(tid);
                if self.kernel.state.ended.is_some() || self.tid(who).is_none() {
                    continue;
                }
            }
            let thread = self.kernel.thread(tid);
            if thread.is_stopped {
                return Stop::Blocked;
            }
            let flow = match &thread.activity {
                Activity::Waiting(waiting) if waiting.is_woken => self.retry(tid),
                Activity::Waiting(_) => return Stop::Blocked,
                Activity::Entered => self.enter(tid),
                Activity::User if left == 0 => {
                    self.settle(tid);
                    return Stop::Steps;
                }
                Activity::User => self.execute(tid, until, &mut left),
            };
            if let Flow::Stop(stop) = flow {
                return stop;
            }
        }
    }

    /// Whether the whole world is over.
    fn finished(&self) -> Option<Stop> {
        if let Some(limit) = &self.kernel.exhausted {
            return Some(Stop::Unsupported(Box::new(limit.clone())));
        }
        if let Some(path) = &self.kernel.host.missed {
            let path = path.display().to_string();
            return Some(Stop::Unsupported(Box::new(
                raddle_world::Unsupported::Elsewhere { path },
            )));
        }
        if self.kernel.halt.is_some() {
            return Some(Stop::WorldDone {
                status: halt::HALT_STATUS,
            });
        }
        self.kernel
            .state
            .ended
            .map(|status| Stop::WorldDone { status })
    }

    /// Runs the thread's own instructions for a while.
    fn execute(&mut self, tid: Tid, until: Until, left: &mut u64) -> Flow {
        self.hooks.refresh(&mut self.kernel, &mut self.engine, tid);
        self.marks
            .refresh(&mut self.kernel, &mut self.engine, &mut self.hooks, tid);
        let kernel = &mut self.kernel;
        let now = kernel.state.now;
        let quiet = kernel
            .next_deadline()
            .map_or(u64::MAX, |deadline| deadline.0.saturating_sub(now.0))
            .min(kernel.steps_before_execution_timer(tid));
        let is_excused = std::mem::take(&mut kernel.thread_mut(tid).is_excused);
        let is_guarded = !is_excused && self.is_guarded(tid);
        let steps_max = if is_excused { 1 } else { u64::MAX };
        let steps = (*left).min(quiet.max(1)).min(steps_max);
        let steps = self.mend(tid, steps);
        let kernel = &mut self.kernel;
        let thread = kernel
            .state
            .threads
            .get_mut(&tid)
            .expect("the running thread exists");
        let pid = thread.process;
        let context = thread.context;
        let skip_point = thread.stopped_at_point.take() == Some(thread.cpu.rip);
        let space = kernel.state.processes[&pid].space;
        let space = kernel
            .state
            .spaces
            .get_mut(&space)
            .expect("a process has an address space");
        space.map.set_guarded(is_guarded);
        let outcome = self.engine.run(
            &mut thread.cpu,
            Memory {
                frames: &mut kernel.frames,
                space: &mut space.map,
            },
            Slice {
                steps,
                tsc: time::monotonic(now),
                skip_point,
            },
        );
        if self.observe != Observe::None {
            observe::drain(&mut self.engine, kernel, tid);
        }
        let kernel = &mut self.kernel;
        *left -= outcome.steps.min(*left);
        kernel.state.now = now.after(Duration(outcome.steps));
        kernel.state.contexts.get_mut(context).steps += outcome.steps;
        kernel.process_mut(pid).usage.steps += outcome.steps;
        execution_timer::notice(kernel, pid);
        self.statistics.steps += outcome.steps;
        self.leave(tid, outcome.exit, until, *left)
    }

    /// Deals with why the engine came back, with so many steps left.
    fn leave(&mut self, tid: Tid, exit: Exit, until: Until, left: u64) -> Flow {
        match exit {
            Exit::StepsDone | Exit::LogFull => Flow::On,
            Exit::Syscall => {
                self.kernel.thread_mut(tid).activity = Activity::Entered;
                let is_asked_for = matches!(until, Until::Sync { .. });
                if is_asked_for && (left == 0 || !self.is_private_call(tid)) {
                    Flow::Stop(Stop::Sync)
                } else {
                    Flow::On
                }
            }
            Exit::SoftwareInterrupt(vector) => self.software_interrupt(tid, vector),
            Exit::Fault(Fault::Memory(fault)) => self.memory_fault(tid, fault),
            Exit::Fault(Fault::Exception { vector, error_code }) => {
                let cpu = &self.kernel.thread(tid).cpu;
                let info = exception_signal(vector, cpu);
                let exception = ExceptionInfo {
                    vector: u64::from(vector as u8),
                    error_code: u64::from(error_code),
                    addr: 0,
                };
                self.kernel.force_signal(tid, info, exception);
                Flow::On
            }
            Exit::Halt => {
                self.general_protection(tid);
                Flow::On
            }
            Exit::Point(addr) => self.at_point(tid, addr.0, until),
            Exit::Unsupported { bytes } => Flow::Stop(Stop::Unsupported(Box::new(
                self.unsupported_instruction(tid, &bytes),
            ))),
        }
    }

    /// A flagged program point: a hooked function, a mark, a point that the caller set, or several of them.
    fn at_point(&mut self, tid: Tid, pc: u64, until: Until) -> Flow {
        self.kernel.thread_mut(tid).stopped_at_point = Some(pc);
        let is_hook = self
            .hooks
            .at_point(&mut self.kernel, &mut self.engine, tid, pc);
        let mark = self.marks.at_point(&mut self.kernel, tid, pc);
        let is_quiet = self.hooks.is_quiet() && mark != Some(true) && !self.stops_at_allocations;
        let is_hook = is_hook || mark.is_some();
        let site = self.kernel.site(tid, pc);
        let is_point = self.is_point(site);
        // The engine knows addresses only.
        let is_of_another_image = !is_point && self.points.contains_key(&pc);
        match until {
            Until::Point { .. } if is_point || !(is_hook || is_of_another_image) => {
                Flow::Stop(Stop::Point { site })
            }
            Until::Sync { .. } if is_hook && !is_quiet => Flow::Stop(Stop::Sync),
            Until::Sync { .. } if is_point => Flow::Stop(Stop::Point { site }),
            _ => Flow::On,
        }
    }

    /// A thread stops because its steps are used up, where a known function begins or has returned: what that means for
    /// locks and blocks is so now, as if it had been stopped by the point. Otherwise a run would depend on how it is cut
    /// into slices, and a replay cuts it differently.
    fn settle(&mut self, tid: Tid) {
        let thread = self.kernel.thread(tid);
        let pc = thread.cpu.rip;
        let is_known =
            self.hooks.is_hook(&self.kernel, tid, pc) || self.marks.is_mark(&self.kernel, tid, pc);
        if thread.stopped_at_point == Some(pc) || !is_known {
            return;
        }
        self.kernel.thread_mut(tid).stopped_at_point = Some(pc);
        self.hooks
            .at_point(&mut self.kernel, &mut self.engine, tid, pc);
        self.marks.at_point(&mut self.kernel, tid, pc);
    }
}

impl TakeTurns for LinuxWorld {
    fn turn_length(&mut self, steps_max: u64) -> u64 {
        let choices = &mut self.kernel.state.choices;
        choices.choose(Choice::Quantum { steps_max })
    }

    fn close_output(&mut self, descriptor: i32) {
        self.kernel.state.files.closed_outputs.insert(descriptor);
    }
}

impl World for LinuxWorld {
    fn contexts(&self) -> &ContextTable {
        &self.kernel.state.contexts
    }

    fn pending(&mut self, who: ContextId) -> Pending {
        let Some(tid) = self.tid(who) else {
            return Pending {
                site: Site::NOWHERE,
                kind: PendingKind::Local,
            };
        };
        let thread = self.kernel.thread(tid);
        let pc = thread.cpu.rip;
        let site = self.kernel.site(tid, pc);
        let kind = match &thread.activity {
            Activity::Entered => self.pending_call_kind(tid),
            Activity::Waiting(waiting) => PendingKind::Syscall {
                number: waiting.number,
            },
            Activity::User => {
                if thread.stopped_at_point == Some(pc)
                    && let Some(object) = self.hooks.object_at_entry(&self.kernel, tid)
                {
                    let kind = PendingKind::Sync { object };
                    return Pending { site, kind };
                }
                let bytes = self.next_bytes(tid);
                if self.is_syscall(tid, bytes) {
                    self.pending_call_kind(tid)
                } else {
                    self.pending_access(tid, bytes)
                }
            }
        };
        Pending { site, kind }
    }

    fn run(&mut self, who: ContextId, until: Until) -> Stop {
        if self.statistics.last != Some(who) {
            self.statistics.switches += 1;
            self.statistics.last = Some(who);
        }
        self.digest.begins(who);
        let stop = match self.kernel.peer_of(who) {
            Some(peer) => self.kernel.run_peer(peer),
            None => self.run_until(who, until),
        };
        self.kernel.look_for_replies();
        self.digest.reached(Reached {
            context: who,
            steps: self.kernel.state.contexts.get(who).steps,
            pc: self
                .tid(who)
                .map_or(0, |tid| self.kernel.thread(tid).cpu.rip),
        });
        stop
    }

    fn is_entering_call(&self, who: ContextId) -> bool {
        self.tid(who)
            .is_some_and(|tid| self.kernel.thread(tid).activity == Activity::Entered)
    }

    fn register_digest(&self, who: ContextId) -> u64 {
        let mut digest = Digest::default();
        if let Some(tid) = self.tid(who) {
            let cpu = &self.kernel.thread(tid).cpu;
            digest.word(cpu.rip);
            cpu.general().iter().for_each(|value| digest.word(*value));
        }
        digest.value()
    }

    fn advance_time(&mut self) -> bool {
        if self.kernel.contexts_are_quiet() && self.kernel.next_act() {
            return true;
        }
        let Some(deadline) = self.kernel.next_deadline() else {
            return false;
        };
        self.kernel.state.now = self.kernel.state.now.max(deadline);
        self.kernel.fire_due();
        true
    }

    fn until_deadline(&self) -> Option<Duration> {
        let deadline = self.kernel.next_deadline()?;
        Some(self.kernel.state.now.until(deadline))
    }

    fn tearing(&mut self) -> Option<&mut dyn TearInstructions> {
        Some(self)
    }

    fn faulting(&mut self) -> Option<&mut dyn MeetFaults> {
        Some(self)
    }

    fn rehearsing(&mut self) -> Option<&mut dyn Rehearse> {
        Some(self)
    }

    fn turns(&mut self) -> Option<&mut dyn TakeTurns> {
        Some(self)
    }

    fn site(&self, who: ContextId) -> Site {
        let Some(tid) = self.tid(who) else {
            return Site::NOWHERE;
        };
        let pc = match self.hooks.innermost(&self.kernel, tid) {
            Some(call) => call.return_pc,
            None => self.kernel.thread(tid).cpu.rip,
        };
        self.kernel.site(tid, pc)
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.kernel.events)
    }

    fn recycle_events(&mut self, mut events: Vec<Event>) {
        if self.kernel.events.is_empty() {
            events.clear();
            self.kernel.events = events;
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.saved.push(Saved {
            depth: self.kernel.frames.snapshot(),
            state: self.kernel.state.clone(),
            digest: self.digest,
        });
        Snapshot(self.saved.len() - 1)
    }

    fn restore(&mut self, to: Snapshot) {
        self.saved.truncate(to.0 + 1);
        let saved = &self.saved[to.0];
        self.kernel.frames.restore(saved.depth);
        self.kernel.state.clone_from(&saved.state);
        self.kernel.events.clear();
        self.kernel.exhausted = None;
        self.kernel.host.missed = None;
        self.kernel.crash = None;
        self.kernel.halt = None;
        self.digest = saved.digest;
        self.statistics.restores += 1;
    }

    fn state_digest(&mut self) -> u64 {
        let mut digest = Digest::default();
        let state = &self.kernel.state;
        digest.word(state.now.0);
        for thread in state.threads.values() {
            digest.word(u64::from(thread.tid.0));
            digest.word(thread.cpu.rip);
            digest.word(thread.cpu.rflags());
            thread
                .cpu
                .general()
                .iter()
                .for_each(|value| digest.word(*value));
            thread.cpu.xmm.iter().for_each(|value| digest.bytes(value));
        }
        for space in state.spaces.values() {
            digest_memory(&mut digest, &self.kernel.frames, &space.map);
        }
        digest.value()
    }
}

impl TearInstructions for LinuxWorld {
    fn tear(&mut self, who: ContextId) -> bool {
        let Some(tid) = self.tid(who) else {
            return false;
        };
        self.tear_next(tid)
    }
}

/// What a program could read. Pages that are only looked at, and those that are zero, may be present or not:
/// code that was decoded in an earlier run is not fetched again.
fn digest_memory(digest: &mut Digest, frames: &Frames, map: &raddle_mem::AddressSpace) {
    for (page, pte) in map.present_pages() {
        let is_file = map
            .vma_at(page)
            .is_some_and(|vma| matches!(vma.backing, raddle_mem::Backing::Object { .. }));
        let is_untouched = is_file && pte.copy_on_write;
        if is_untouched || frames.bytes(pte.frame).iter().all(|byte| *byte == 0) {
            continue;
        }
        digest.word(page.0);
        digest.bytes(frames.bytes(pte.frame));
    }
}
