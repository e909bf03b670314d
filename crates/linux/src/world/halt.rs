//! What ends a run before the program does: errors that are seen at the moment they happen.

use std::ops::Range;

use raddle_config::hooks::Effect;
use raddle_mem::Access;
use raddle_world::{ContextId, LockMode};
use raddle_x86::{MemoryFault, Reg};

use super::{Flow, LinuxWorld};
use crate::heap::{Block, HeapError, HeapErrorKind, HeapWatch};
use crate::kernel::Kernel;
use crate::thread::{Activity, Tid};

/// What is looked for while a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    pub heap: HeapWatch,
    /// A circle of threads that wait for each other's locks ends the run when it closes.
    pub cycles: bool,
}

/// Why a run was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    Heap(HeapError),
    /// These contexts wait for each other, each for the next one; the last one closed the circle.
    Cycle(Vec<ContextId>),
}

/// Wait status of a run that was ended: that of an abort.
pub(super) const HALT_STATUS: i32 = 6;

/// Functions of the C library that touch memory on behalf of their caller; the rest of it is trusted.
const ACCESSORS: [&str; 6] = ["mem", "str", "wmem", "wcs", "bcopy", "bzero"];

/// Those that look for a byte, and read on to the end of the line that holds it.
const SEARCHERS: [&str; 5] = ["str", "wcs", "memchr", "memrchr", "rawmemchr"];

/// Bytes of the smallest vector: loads of at least so many may read what the program did not ask for.
const VECTOR: u64 = 16;

/// How much glibc's string functions read in one go.
const STRING_LINE: u64 = 64;

impl LinuxWorld {
    /// Chooses what is looked for. Must be set before the program runs.
    pub fn set_watch(&mut self, watch: Watch) {
        self.kernel.watch = watch;
    }

    pub fn watch(&self) -> Watch {
        self.kernel.watch
    }

    /// From now on freed memory must not be touched.
    pub fn arm(&mut self) {
        self.kernel.is_armed = true;
        for space in self.kernel.state.spaces.values_mut() {
            space.heap.freeze();
        }
    }

    /// Why the run was ended, if it was.
    pub fn halt(&self) -> Option<&Halt> {
        self.kernel.halt.as_ref()
    }

    /// Whether forbidden memory is a fault for a thread now: not inside the allocator, and not while an
    /// instruction that was allowed to touch it is tried again.
    pub(super) fn is_guarded(&self, tid: Tid) -> bool {
        self.kernel.watch.heap.is_on
            && !self.kernel.thread(tid).is_excused
            && !self.hooks.is_allocating(&self.kernel, tid)
    }

    /// A thread is about to touch freed memory or a red zone.
    pub(super) fn forbidden_access(&mut self, tid: Tid, fault: MemoryFault) -> Flow {
        let pc = self.kernel.thread(tid).cpu.rip;
        let writes = fault.access == Access::Write;
        let (_, space) = self.kernel.memory_of(tid);
        let (kind, block) = space.heap.error_at(fault.addr.0, writes);
        let is_excused = self.is_line_of_the_living(tid, fault.addr.0, kind)
            || self.is_excusable(tid, pc, fault.addr.0, kind, block.as_ref());
        if is_excused {
            let thread = self.kernel.thread_mut(tid);
            thread.is_excused = true;
            // A program point here was passed already; to stop at it again would use up the excuse, for ever.
            thread.stopped_at_point = Some(pc);
            return Flow::On;
        }
        let error = HeapError {
            kind,
            context: self.kernel.thread(tid).context,
            pc,
            addr: fault.addr.0,
            block,
        };
        self.kernel.halt.get_or_insert(Halt::Heap(error));
        Flow::On
    }

    /// Whether unknown code reads a whole aligned line in which something is alive: raddle cannot tell whether it wants
    /// the dead part, and vectorised code reads what lies beside its data. What functions of the C library want is
    /// known.
    fn is_line_of_the_living(&mut self, tid: Tid, addr: u64, kind: HeapErrorKind) -> bool {
        if !matches!(kind, HeapErrorKind::UseAfterFree { writes: false }) {
            return false;
        }
        let pc = self.kernel.thread(tid).cpu.rip;
        let symbols = self.hooks.known_symbols(&self.kernel, tid);
        if symbols.is_some_and(|symbols| is_c_library(symbols, pc)) {
            return false;
        }
        let mut line = None;
        self.peek_accesses(tid, &mut |access| {
            let size = u64::from(access.size);
            let holds = addr.wrapping_sub(access.addr) < size;
            let is_line = size >= VECTOR && access.addr.is_multiple_of(size);
            if access.reads && holds && is_line {
                line = Some(access.addr..access.addr.saturating_add(size));
            }
        });
        line.is_some_and(|line| self.has_live_in(tid, line))
    }

    fn has_live_in(&self, tid: Tid, range: Range<u64>) -> bool {
        let space = self.kernel.process_of(tid).space;
        let space = self.kernel.state.spaces.get(&space);
        space.is_some_and(|space| space.heap.has_live_in(range))
    }

    /// The C library keeps lists in freed blocks and reads strings in whole lines.
    fn is_excusable(
        &self,
        tid: Tid,
        pc: u64,
        addr: u64,
        kind: HeapErrorKind,
        block: Option<&Block>,
    ) -> bool {
        let Some(symbols) = self.hooks.known_symbols(&self.kernel, tid) else {
            return true;
        };
        if !is_c_library(symbols, pc) {
            return false;
        }
        let function = symbols
            .symbolise(pc)
            .and_then(|place| place.symbol)
            .map(|(name, _)| name);
        let Some(bare) = function.as_deref().map(|name| name.trim_start_matches('_')) else {
            return true;
        };
        if !ACCESSORS.iter().any(|accessor| bare.starts_with(accessor)) {
            return true;
        }
        match kind {
            HeapErrorKind::Overflow { writes } => !writes,
            HeapErrorKind::UseAfterFree { writes: false } => {
                SEARCHERS.iter().any(|searcher| bare.starts_with(searcher))
                    && self.is_beyond_a_string(tid, addr, block)
            }
            _ => false,
        }
    }

    /// Whether a read by a searching function may be the rest of a line of a string that lies nearby: a live block
    /// is so close, and the function was not asked about the freed one.
    fn is_beyond_a_string(&self, tid: Tid, addr: u64, freed: Option<&Block>) -> bool {
        let cpu = &self.kernel.thread(tid).cpu;
        let is_asked_for = [Reg::Rdi, Reg::Rsi]
            .map(|register| cpu.reg(register))
            .into_iter()
            .any(|pointer| {
                let is_freed = freed.is_some_and(|block| block.range().contains(&pointer));
                is_freed && !self.may_be_rounded(tid, pointer)
            });
        // From one end of a string to the last byte of a line, whether or not lines are aligned.
        let near = addr.saturating_sub(STRING_LINE)..(addr | (STRING_LINE - 1)).saturating_add(1);
        !is_asked_for && self.has_live_in(tid, near)
    }

    /// Whether a pointer may be what a function made of a pointer into a living block, which begins later in the same
    /// line: the first load of a string begins where its line does.
    fn may_be_rounded(&self, tid: Tid, pointer: u64) -> bool {
        let rest = pointer.saturating_add(1)..pointer.saturating_add(VECTOR);
        pointer.is_multiple_of(VECTOR) && self.has_live_in(tid, rest)
    }

    /// The circle that this thread has just closed by beginning to wait.
    pub(super) fn note_cycle(&mut self, tid: Tid) {
        if !self.kernel.watch.cycles {
            return;
        }
        let mut path = vec![tid];
        let mut at = tid;
        while let Some(next) = self.waits_for(at) {
            if next == tid {
                let contexts = path.iter().map(|tid| self.kernel.thread(*tid).context);
                // The closing one last.
                let mut contexts: Vec<ContextId> = contexts.collect();
                contexts.rotate_left(1);
                self.kernel.halt.get_or_insert(Halt::Cycle(contexts));
                return;
            }
            if path.contains(&next) {
                return;
            }
            path.push(next);
            at = next;
        }
    }

    /// The thread without which a blocked thread can never go on.
    fn waits_for(&self, tid: Tid) -> Option<Tid> {
        let thread = self.kernel.thread(tid);
        let Activity::Waiting(waiting) = &thread.activity else {
            return None;
        };
        if waiting.is_woken || waiting.block.deadline.is_some() {
            return None;
        }
        let (call, mode) = self.hooks.innermost_with_mode(&self.kernel, tid)?;
        match call.effect {
            Effect::Acquire => holder(&self.kernel, tid, call.object, mode),
            Effect::JoinThread => {
                let handles = &self.kernel.process_of(tid).thread_handles;
                let child = *handles.get(&call.object)?;
                self.tid(child)
            }
            _ => None,
        }
    }
}

/// A thread of the same process that has a lock in a way that keeps another from having it.
fn holder(kernel: &Kernel, wanting: Tid, lock: u64, mode: LockMode) -> Option<Tid> {
    let keeps_out = |tid: &Tid| kernel.thread(*tid).held_locks.keeps_out(lock, mode);
    kernel
        .process_of(wanting)
        .threads
        .iter()
        .copied()
        .find(keeps_out)
}

/// Whether an instruction belongs to the C library or the loader.
pub(crate) fn is_c_library(symbols: &raddle_symbols::SymbolSpace, pc: u64) -> bool {
    symbols.mapping_at(pc).is_some_and(|mapping| {
        let file = mapping.name.rsplit('/').next().unwrap_or_default();
        ["libc.so", "libc-", "ld-linux", "ld-musl", "libpthread"]
            .iter()
            .any(|library| file.starts_with(library))
    })
}
