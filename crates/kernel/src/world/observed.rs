//! The memory accesses of a run: who wants to see them, and what becomes of them.

use raddle_pc::machine::Keep;
use raddle_stdx::Digest;
use raddle_world::{Access, AccessKind, ContextId, Event, EventKind, JudgeLiveness, Site};
use raddle_x86::{LogKind, Observe};

use super::explored::location;
use super::interrupt::processor_and_vector;
use super::ski_liveness::{SkiLiveness, Windows};
use super::{KERNEL_HALF, KernelWorld, Phase};

impl KernelWorld {
    /// Watches memory accesses of the kernel from the next run on.
    pub fn set_observe(&mut self, observes: bool) {
        self.tells_accesses = observes;
        let judges = self.ski.is_some() && self.state.phase == Phase::Test;
        let mode = if judges || observes && self.tells_values {
            Observe::AddrValue
        } else if observes {
            Observe::Addr
        } else {
            Observe::None
        };
        let keep = if self.tells_user || judges {
            Keep::All
        } else {
            Keep::Kernel
        };
        self.machine.set_observe(mode, keep);
    }

    /// Whether accesses of the test's own threads in user space are told, too: so they are where decisions are made.
    pub fn tell_user(&mut self, wanted: bool) {
        self.tells_user = wanted;
    }

    /// Whether accesses are told with their values, from the next time on that they are watched.
    pub fn tell_values(&mut self, wanted: bool) {
        self.tells_values = wanted;
    }

    /// Whether accesses of processors whose threads have ended are told, too.
    pub fn tell_asides(&mut self, wanted: bool) {
        self.tells_asides = wanted;
    }

    /// Whether what the kernel reads from and writes to the memory of the test is told.
    pub fn tell_copies(&mut self, wanted: bool) {
        self.tells_copies = wanted;
    }

    /// After a run: what happened in it at a moment that no choice of contexts decides.
    pub fn unvaried(&self) -> Option<&'static str> {
        if self.state.has_slept {
            Some("a thread slept, and the moment of its wake-up is the clock's or an interrupt's")
        } else if self.state.interrupts.is_empty() {
            None
        } else {
            Some("interrupts came when the clock or a processor sent them, and at no other moment")
        }
    }

    /// Digests every memory access from now on, the kernel's and the user's, with its value.
    pub fn begin_trace(&mut self) {
        self.machine.set_observe(Observe::AddrValue, Keep::All);
        self.trace = Some((Digest::default(), 0));
    }

    /// The digest of all accesses since [`Self::begin_trace`] and of the run, and the number of accesses.
    pub fn end_trace(&mut self) -> (u64, u64) {
        self.digest_accesses();
        self.set_observe(false);
        let (mut digest, accesses) = self.trace.take().unwrap_or_default();
        digest.word(self.run_digest());
        (digest.value(), accesses)
    }

    /// Adds what was observed to the digest, if there is one.
    pub(super) fn digest_accesses(&mut self) {
        let Some((trace, accesses)) = &mut self.trace else {
            return;
        };
        self.machine.drain_accesses(|access| {
            *accesses += 1;
            trace.word(u64::from(access.cpu) << 32 | u64::from(access.size) << 8);
            trace.word(access.kind as u64);
            trace.word(access.step);
            trace.word(access.pc);
            trace.word(access.physical);
            trace.word(access.value.unwrap_or_default());
        });
    }

    /// Whether liveness is inferred as SKI does, with these windows: h2, h3 and h4. It begins anew.
    pub fn infer_as_ski(&mut self, windows: Option<[u64; 3]>) {
        self.ski = windows.map(|[pause, looping, starving]| {
            SkiLiveness::new(Windows {
                pause,
                looping,
                starving,
            })
        });
    }

    /// Shows the accesses of a run to SKI's heuristics.
    pub(super) fn judge_accesses(&mut self, context: ContextId, steps: u64) {
        let Some(ski) = &mut self.ski else {
            return;
        };
        let (heuristics, machine) = (&mut self.heuristics, &mut self.machine);
        machine.visit_accesses(|access| {
            if let Some(which) = ski.access(context, access) {
                heuristics.note(which, access.pc);
            }
        });
        if let Some(which) = ski.ran(context, steps) {
            let cpu = processor_and_vector(&self.state.contexts, context).0;
            self.heuristics.note(which, self.machine.cpu(cpu).rip);
        }
    }

    /// Turns the accesses of a run of `context` into events. `steps` are those of the processor and of the context
    /// when it began.
    pub(super) fn drain_accesses(&mut self, context: ContextId, steps: (u64, u64)) {
        self.digest_accesses();
        if !self.machine.has_accesses() {
            return;
        }
        // What a processor itself does after its thread's end is the same for every test; interrupts are not.
        let is_aside =
            self.has_ended(self.processor(context)) && self.processor_context(context) == context;
        let is_dropped = is_aside && !self.tells_asides;
        let keeps_user = self.is_debugged || self.tells_user;
        let keeps_copies = self.tells_copies;
        let keeps_none = !self.tells_accesses && !self.is_debugged;
        let events = &mut self.events;
        self.machine.drain_accesses(|access| {
            let is_user = access.addr < KERNEL_HALF && !keeps_copies || access.pc < KERNEL_HALF;
            if is_dropped || keeps_none || is_user && !keeps_user {
                return;
            }
            let told = Access {
                how: access_kind(access.kind),
                size: access.size,
                location: location(access.physical),
                addr: access.addr,
                value: access.value,
            };
            events.push(Event {
                context,
                step: steps.1 + (access.step - steps.0),
                site: Site::first(access.pc),
                kind: if is_aside {
                    EventKind::Aside(told)
                } else {
                    EventKind::Access(told)
                },
            });
        });
    }
}

impl JudgeLiveness for KernelWorld {
    fn is_waiting(&mut self, who: ContextId) -> bool {
        let cpu = self.processor(who);
        // Its own context takes the interrupt.
        let is_interrupted = !self.schedules_interrupts && self.machine.dispatchable(cpu).is_some();
        let ski = self.ski.as_ref();
        !is_interrupted && ski.is_some_and(|ski| ski.is_waiting(who))
    }

    fn revive_all(&mut self) {
        if let Some(ski) = &mut self.ski {
            ski.revive_all();
        }
    }
}

fn access_kind(kind: LogKind) -> AccessKind {
    match kind {
        LogKind::Read | LogKind::Block => AccessKind::Read,
        LogKind::Write => AccessKind::Write,
        LogKind::Update => AccessKind::Update,
        LogKind::AtomicUpdate => AccessKind::AtomicUpdate,
    }
}
