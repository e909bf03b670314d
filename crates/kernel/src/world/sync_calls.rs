//! Calls of the kernel's functions become events of synchronisation and allocation.
//!
//! The entries of known functions are program points that are never passed; at one of them the arguments are noted
//! with the return address, which becomes a point, too. Guest memory is never patched, and the run is the same.
//!
//! Events are told of the context (the processor, or its interrupt). Who holds a lock is the owner of the stack: a
//! thread of the kernel that sleeps keeps its mutexes while another one runs on its processor.

use std::collections::{BTreeMap, BTreeSet};

use raddle_stdx::width::to_u64;
use raddle_trace::facts::{Allocations, Within};
use raddle_world::{
    ContextId, Event, EventKind, HeldLocks, Inspect, LockMode, LockSource, Obtained, Section, Site,
    WaitKind, World,
};
use raddle_x86::Reg;
use rustc_hash::{FxHashMap, FxHashSet};

use super::sync_functions::{Meaning, RULES, Rule, Success};
use super::{KERNEL_HALF, KernelWorld};
use crate::symbols::Symbols;

/// Bytes of a stack of the kernel; those that look for errors in memory need more.
const STACK_BYTES: u64 = 16 << 10;
const STACK_BYTES_KASAN: u64 = 32 << 10;

/// Where a cache of the allocator has the size of its objects, with and without what lies between them.
const SIZES_OFFSET: u64 = 24;
/// Objects of a cache are not larger.
const OBJECT_MAX: u32 = 1 << 20;

/// Without one of these functions a kernel gives its locks up in line, and what is held is unknown.
const GIVE_UP: [&str; 3] = ["_raw_spin_unlock", "mutex_unlock", "up_write"];

/// Registers of arguments.
const ARGUMENTS: [Reg; 3] = [Reg::Rdi, Reg::Rsi, Reg::Rdx];

/// Where the functions are.
#[derive(Debug, Clone, Default)]
pub struct SyncCalls {
    entries: FxHashMap<u64, &'static Rule>,
    /// Return addresses at which a point was set; kept, since calls come back to the same places.
    returns: FxHashSet<u64>,
    /// Points that a scheduler wants.
    scheduled: BTreeSet<u64>,
    stack_bytes: u64,
    /// Whether locks are given up by functions, too, and not in line.
    is_complete: bool,
}

/// What the stacks of the guest hold; restored with it.
#[derive(Debug, Clone, Default)]
pub(super) struct SyncState {
    calls: BTreeMap<u64, Vec<PendingCall>>,
    held: BTreeMap<u64, HeldLocks>,
    blocks: Allocations,
}

#[derive(Debug, Clone, Copy)]
struct PendingCall {
    rule: &'static Rule,
    arguments: [u64; 3],
    return_pc: u64,
    /// RSP right after the return.
    return_sp: u64,
}

impl PendingCall {
    fn object(&self) -> u64 {
        match self.rule.object {
            Some(number) => self.arguments[number],
            // One for all of its kind: its own code names it.
            None => RCU,
        }
    }
}

/// The name of all RCU read sides; nothing else has this address.
pub(crate) const RCU: u64 = KERNEL_HALF;

impl SyncCalls {
    /// The functions of a kernel.
    pub fn new(symbols: &Symbols) -> Self {
        let mut entries = FxHashMap::default();
        for rule in &RULES {
            for name in rule.functions {
                for address in symbols.functions_named(name) {
                    entries.insert(address, rule);
                }
            }
        }
        let is_kasan = !symbols.functions_named("kasan_report").is_empty();
        Self {
            entries,
            returns: FxHashSet::default(),
            scheduled: BTreeSet::new(),
            stack_bytes: if is_kasan {
                STACK_BYTES_KASAN
            } else {
                STACK_BYTES
            },
            is_complete: GIVE_UP
                .iter()
                .all(|name| !symbols.functions_named(name).is_empty()),
        }
    }

    /// All its points.
    fn points(&self) -> impl Iterator<Item = u64> {
        self.entries.keys().chain(&self.returns).copied()
    }

    fn stack_of(&self, sp: u64) -> u64 {
        sp & !(self.stack_bytes - 1)
    }
}

impl KernelWorld {
    /// Tells synchronisation from now on, or no longer.
    pub fn tell_synchronisation(&mut self, calls: Option<SyncCalls>) {
        self.synchronisation = calls.map(Box::new);
        self.state.synchronisation = SyncState::default();
        self.refresh_points(Some(&[]));
    }

    /// Locks that the thread or interrupt on a processor holds, oldest first; none if synchronisation is not told or the kernel does
    /// not show it, and nothing while the processor runs a program.
    pub fn held_locks(&self, cpu: usize) -> Option<&[Section]> {
        let calls = self.synchronisation.as_ref()?;
        if !calls.is_complete {
            return None;
        }
        let stack = calls.stack_of(self.machine.cpu(cpu).reg(Reg::Rsp));
        let held = self.state.synchronisation.held.get(&stack);
        Some(held.map_or(&[], HeldLocks::sections))
    }

    /// The block that an address belongs to, if it was allocated while allocations were told.
    pub fn block_at(&self, addr: u64) -> Option<Within<'_>> {
        self.state.synchronisation.blocks.at(addr)
    }

    /// Flags the points that a scheduler wants, these if they are new, and those of synchronisation.
    pub(super) fn refresh_points(&mut self, scheduled: Option<&[u64]>) {
        let mut all: BTreeSet<u64> = scheduled.into_iter().flatten().copied().collect();
        if let Some(calls) = &mut self.synchronisation {
            if scheduled.is_some() {
                calls.scheduled.clone_from(&all);
            }
            all.extend(calls.scheduled.iter().copied().chain(calls.points()));
        }
        self.machine.engine_mut().set_points(all);
        self.refresh_interest();
    }

    /// Names the points that are never passed: those of the scheduler and those of synchronisation.
    pub(super) fn refresh_interest(&mut self) {
        let own = self.synchronisation.iter().flat_map(|calls| calls.points());
        let scheduled = self.interest.iter().map(|site| site.pc());
        let mut all: Vec<u64> = scheduled.chain(own).collect();
        all.sort_unstable();
        self.machine.engine_mut().set_interest(&all);
    }

    /// A processor stands at a point: tells what it means. Whether a scheduler wants the point, too.
    pub(super) fn at_sync_point(&mut self, cpu: usize, pc: u64) -> bool {
        let Some(mut calls) = self.synchronisation.take() else {
            return true;
        };
        let who = self.executing(cpu);
        self.at_return(&calls, who, cpu, pc);
        let rule = calls.entries.get(&pc).copied();
        let returns_to = rule.and_then(|rule| self.at_entry(&calls, who, cpu, rule));
        let is_new = returns_to.is_some_and(|return_pc| calls.returns.insert(return_pc));
        let is_scheduled = calls.scheduled.contains(&pc);
        self.synchronisation = Some(calls);
        if is_new {
            self.refresh_points(None);
        }
        is_scheduled
    }

    /// The return address, if something happens there.
    fn at_entry(
        &mut self,
        calls: &SyncCalls,
        who: ContextId,
        cpu: usize,
        rule: &'static Rule,
    ) -> Option<u64> {
        let registers = self.machine.cpu(cpu);
        let arguments = ARGUMENTS.map(|register| registers.reg(register));
        let sp = registers.reg(Reg::Rsp);
        let mut word = [0; 8];
        if self.read_bytes(who, sp, &mut word) < word.len() {
            return None;
        }
        let call = PendingCall {
            rule,
            arguments,
            return_pc: u64::from_le_bytes(word),
            return_sp: sp.wrapping_add(8),
        };
        let stack = calls.stack_of(sp);
        let object = call.object();
        let kinds = match rule.meaning {
            Meaning::Release => vec![release(&self.state.synchronisation, stack, object)],
            Meaning::Downgrade => vec![
                release(&self.state.synchronisation, stack, object),
                EventKind::Acquire {
                    object,
                    mode: LockMode::Shared,
                },
            ],
            Meaning::WaitBegin => vec![wait_begin(object, WaitKind::Event)],
            Meaning::WaitEnd => vec![EventKind::WaitEnd {
                object,
                on: WaitKind::Event,
            }],
            Meaning::Notify { on, everyone } => vec![EventKind::Notify {
                object,
                on,
                everyone,
            }],
            Meaning::Free if object != 0 => vec![EventKind::Free { addr: object }],
            Meaning::Free => vec![],
            Meaning::Waits(on) => vec![wait_begin(object, on)],
            Meaning::Acquire(_) | Meaning::Allocate(_) => vec![],
        };
        for kind in kinds {
            self.tell(who, cpu, stack, kind);
        }
        let returns = matches!(
            rule.meaning,
            Meaning::Acquire(_) | Meaning::Waits(_) | Meaning::Allocate(_)
        );
        returns.then(|| {
            let pending = &mut self.state.synchronisation.calls;
            pending.entry(stack).or_default().push(call);
            call.return_pc
        })
    }

    fn at_return(&mut self, calls: &SyncCalls, who: ContextId, cpu: usize, pc: u64) {
        let registers = self.machine.cpu(cpu);
        let (sp, result) = (registers.reg(Reg::Rsp), registers.reg(Reg::Rax));
        let stack = calls.stack_of(sp);
        let Some(pending) = self.state.synchronisation.calls.get_mut(&stack) else {
            return;
        };
        // Stacks grow down: a call whose return address lies below the stack pointer will never return.
        pending.retain(|call| call.return_sp >= sp);
        let is_this = |call: &PendingCall| call.return_pc == pc && call.return_sp == sp;
        let Some(index) = pending.iter().rposition(is_this) else {
            return;
        };
        let call = pending.remove(index);
        let did = match call.rule.success {
            Success::Always => true,
            // They return `int`: the upper half is not part of the value.
            Success::Zero => result & 0xFFFF_FFFF == 0,
            Success::NonZero => result & 0xFFFF_FFFF != 0,
        };
        let object = call.object();
        let kind = match call.rule.meaning {
            Meaning::Acquire(mode) => EventKind::Acquire { object, mode },
            Meaning::Waits(on) => EventKind::WaitEnd { object, on },
            Meaning::Allocate(size) if is_block(result) => EventKind::Alloc {
                addr: result,
                size: match size {
                    Some(number) => call.arguments[number],
                    None => self.size_in_cache(who, call.arguments[0]),
                },
            },
            _ => return,
        };
        if did {
            self.tell(who, cpu, stack, kind);
        }
    }

    /// Bytes of the objects in a cache of the allocator, as its descriptor says (the same place in Linux 6.1 to 6.12);
    /// zero if that is no size.
    fn size_in_cache(&mut self, who: ContextId, cache: u64) -> u64 {
        let mut sizes = [0; 8];
        let is_read = self.read_bytes(who, cache.wrapping_add(SIZES_OFFSET), &mut sizes) == 8;
        let [s0, s1, s2, s3, o0, o1, o2, o3] = sizes;
        let with_rest = u32::from_le_bytes([s0, s1, s2, s3]);
        let object = u32::from_le_bytes([o0, o1, o2, o3]);
        let is_size = is_read && object > 0 && with_rest >= object && with_rest <= OBJECT_MAX;
        if is_size { u64::from(object) } else { 0 }
    }

    fn tell(&mut self, who: ContextId, cpu: usize, stack: u64, kind: EventKind) {
        let site = Site::first(self.machine.cpu(cpu).rip);
        let step = self.contexts().get(who).steps;
        let SyncState { held, blocks, .. } = &mut self.state.synchronisation;
        match kind {
            EventKind::Acquire { object, mode } => {
                held.entry(stack).or_default().obtain(Obtained {
                    lock: object,
                    mode,
                    source: LockSource::Function,
                    context: who,
                    site,
                    step,
                });
            }
            EventKind::Release { object, .. } => {
                let own = held.get_mut(&stack).and_then(|held| held.give_up(object));
                if own.is_none() {
                    // A lock may be given up by another thread than the one that obtained it.
                    held.values_mut().find_map(|held| held.give_up(object));
                }
            }
            EventKind::Alloc { addr, size } => {
                let caller = Site::first(site.pc().wrapping_sub(1));
                blocks.allocate(who, caller, addr, size);
            }
            EventKind::Free { addr } => blocks.free(who, site, addr),
            _ => {}
        }
        self.events.push(Event {
            context: who,
            step,
            site,
            kind,
        });
    }
}

fn release(state: &SyncState, stack: u64, object: u64) -> EventKind {
    let held = state.held.get(&stack);
    let section = held.and_then(|held| held.section_of(object));
    EventKind::Release {
        object,
        mode: section.map_or(LockMode::Exclusive, |section| section.mode),
    }
}

fn wait_begin(object: u64, on: WaitKind) -> EventKind {
    EventKind::WaitBegin { object, on }
}

/// Whether an allocator has returned a block: neither nothing nor one of the small numbers for empty blocks.
fn is_block(addr: u64) -> bool {
    addr >= KERNEL_HALF && addr < to_u64(usize::MAX) - 4095
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_names() {
        let symbols = Symbols::new(Some(
            "ffffffff81000000 T _stext\nffffffff81000100 T mutex_lock\nffffffff81000200 T mutex_unlock\nffffffff81000300 t try_to_wake_up\nffffffff81000400 T do_work\n",
        ));
        let calls = SyncCalls::new(&symbols);
        let meaning = |pc: u64| calls.entries.get(&pc).map(|rule| rule.meaning);
        let exclusive = Meaning::Acquire(LockMode::Exclusive);
        assert_eq!(meaning(0xffff_ffff_8100_0100), Some(exclusive));
        assert_eq!(meaning(0xffff_ffff_8100_0200), Some(Meaning::Release));
        assert_eq!(calls.entries.len(), 3);
        // Spin locks are given up in line: what is held is unknown.
        assert!(!calls.is_complete);
        assert!(SyncCalls::new(&Symbols::new(None)).entries.is_empty());
    }

    #[test]
    fn each_function_has_one_meaning() {
        let mut names: Vec<&str> = RULES
            .iter()
            .flat_map(|rule| rule.functions)
            .copied()
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_stack_is_its_pages() {
        let calls = SyncCalls {
            stack_bytes: STACK_BYTES,
            ..SyncCalls::default()
        };
        let top = 0xffff_c900_0001_4000;
        assert_eq!(calls.stack_of(top - 8), top - STACK_BYTES);
        assert_eq!(calls.stack_of(top - STACK_BYTES), top - STACK_BYTES);
        assert_ne!(calls.stack_of(top), calls.stack_of(top - 8));
    }
}
