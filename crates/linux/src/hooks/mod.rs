//! Function hooks: calls of known functions become synchronisation, allocation and thread events.
//!
//! A hooked function's entry is a flagged program point of the engine; guest memory is never patched. At the
//! entry the arguments are noted together with the return address, which becomes a point, too; at the return
//! (same thread, same address, stack pointer just above the noted one) the result is known and the event
//! happens. A noted call is dropped when the stack pointer passes it (`longjmp`, exceptions, thread exit).

mod blocks;
mod effect;
mod modules;

use std::ops::Range;
use std::sync::Arc;

use raddle_config::hooks::{Effect, Hook};
use raddle_stdx::IdMap;
use raddle_stdx::width::to_usize;
use raddle_symbols::{ModuleStore, SymbolSpace};
use raddle_world::{ContextId, EventKind, Fault, LockMode};
use raddle_x86::{Engine, Reg};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::kernel::Kernel;
use crate::process::SpaceId;
use crate::thread::Tid;
use crate::world::halt::is_c_library;
pub(crate) use blocks::EARLY_STACKS;
pub(crate) use modules::Modules;

/// Allocators whose callers must bear that they give nothing.
const FALLIBLE: [&str; 3] = ["malloc", "calloc", "realloc"];

/// A hooked call in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingCall {
    /// Number of the rule.
    rule: usize,
    return_pc: u64,
    /// RSP right after the return.
    return_sp: u64,
    args: [u64; 6],
    /// Children the thread had created when the call began.
    children: u32,
}

impl PendingCall {
    fn argument(&self, number: u8) -> u64 {
        self.args.get(usize::from(number)).copied().unwrap_or(0)
    }
}

/// The rules and where they apply.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    rules: Vec<Hook>,
    modules: Modules,
    /// Entries of hooked functions in each address space.
    entries: IdMap<SpaceId, Entries>,
    /// Return addresses at which a point was set; kept, since calls come back to the same places.
    returns: FxHashSet<u64>,
    /// Whether the last point was about memory allocation only, which synchronises nothing.
    is_quiet: bool,
}

#[derive(Debug, Default)]
struct Entries {
    /// What the entries were found in.
    layout: u64,
    rules: FxHashMap<u64, usize>,
    /// The code of functions that wrap others, and their rules.
    wrappers: Vec<(Range<u64>, usize)>,
    symbols: SymbolSpace,
}

impl Hooks {
    pub(crate) fn new(rules: Vec<Hook>, store: Arc<ModuleStore>) -> Self {
        Self {
            rules,
            modules: Modules::of(store),
            ..Self::default()
        }
    }

    /// Looks for hooked functions if the code of the thread's process changed.
    pub(crate) fn refresh(&mut self, kernel: &mut Kernel, engine: &mut Engine, tid: Tid) {
        if self.rules.is_empty() {
            return;
        }
        let id = kernel.process_of(tid).space;
        let layout = kernel.space_of(tid).map.code_layout();
        if self
            .entries
            .get(&id)
            .is_some_and(|entries| entries.layout == layout)
        {
            return;
        }
        let symbols = self.modules.space(kernel, tid);
        let mut rules = FxHashMap::default();
        let mut wrappers = Vec::new();
        for (number, rule) in self.rules.iter().enumerate() {
            for name in &rule.functions {
                if rule.wraps {
                    let ranges = symbols.ranges_of_function(name);
                    wrappers.extend(ranges.into_iter().map(|range| (range, number)));
                }
                let by_name = symbols.addresses_of(name);
                let found = if by_name.is_empty() {
                    symbols.addresses_of_path(name)
                } else {
                    by_name
                };
                for pc in found {
                    // The first rule wins where one function has several names.
                    rules.entry(pc).or_insert(number);
                    engine.add_point(pc);
                }
            }
        }
        let entries = Entries {
            layout,
            rules,
            wrappers,
            symbols,
        };
        self.entries.insert(id, entries);
    }

    /// Deals with a point that the engine stopped at; true if it was one of ours.
    pub(crate) fn at_point(
        &mut self,
        kernel: &mut Kernel,
        engine: &mut Engine,
        tid: Tid,
        pc: u64,
    ) -> bool {
        self.is_quiet = true;
        let mut is_ours = self.at_return(kernel, tid, pc);
        let space = kernel.process_of(tid).space;
        let rule = self
            .entries
            .get(&space)
            .and_then(|entries| entries.rules.get(&pc))
            .copied();
        if let Some(rule) = rule {
            self.at_entry(kernel, engine, tid, rule);
            is_ours = true;
        }
        is_ours || self.returns.contains(&pc)
    }

    /// Whether a known function begins here, or one may return to here.
    pub(crate) fn is_hook(&self, kernel: &Kernel, tid: Tid, pc: u64) -> bool {
        let space = kernel.process_of(tid).space;
        let entries = self.entries.get(&space);
        self.returns.contains(&pc) || entries.is_some_and(|entries| entries.rules.contains_key(&pc))
    }

    fn at_entry(&mut self, kernel: &mut Kernel, engine: &mut Engine, tid: Tid, rule: usize) {
        if kernel.is_observed {
            kernel.emit(tid, EventKind::KnownCall);
        }
        let cpu = &kernel.thread(tid).cpu;
        let sp = cpu.reg(Reg::Rsp);
        let args =
            [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::Rcx, Reg::R8, Reg::R9].map(|reg| cpu.reg(reg));
        let Ok(return_pc) = kernel.read_u64(tid, sp) else {
            return;
        };
        let hook = &self.rules[rule];
        let pending = &kernel.thread(tid).hooked_calls;
        let is_nested = pending
            .iter()
            .any(|call| call.return_sp > sp && effect::is_allocation(self.rules[call.rule].effect));
        if is_nested && effect::is_allocation(hook.effect) {
            return;
        }
        if self.is_wrapped(kernel, tid, hook, sp, return_pc) {
            return;
        }
        self.is_quiet &= effect::is_allocation(hook.effect);
        effect::entry(kernel, tid, hook, &args);
        let context = kernel.thread(tid).context;
        let children = kernel.state.contexts.get(context).children;
        let call = PendingCall {
            rule,
            return_pc,
            return_sp: sp.wrapping_add(8),
            args,
            children,
        };
        if effect::is_allocation(hook.effect) {
            let space = kernel.process_of(tid).space;
            let symbols = &self.entries[&space].symbols;
            let is_trusted = is_c_library(symbols, return_pc);
            blocks::entry(kernel, tid, hook, &call, symbols, is_trusted);
        }
        if !effect::needs_return(hook.effect) {
            return;
        }
        if self.returns.insert(return_pc) {
            engine.add_point(return_pc);
        }
        kernel.thread_mut(tid).hooked_calls.push(call);
    }

    /// Whether a function is called, or jumped to, by a wrapper that has told the same already.
    fn is_wrapped(&self, kernel: &Kernel, tid: Tid, hook: &Hook, sp: u64, return_pc: u64) -> bool {
        let tells_the_same = |rule: usize| {
            let wrapper = &self.rules[rule];
            wrapper.wraps && wrapper.effect == hook.effect
        };
        let entries = &self.entries[&kernel.process_of(tid).space];
        let mut callers = entries.wrappers.iter();
        let mut pending = kernel.thread(tid).hooked_calls.iter();
        callers.any(|(code, rule)| code.contains(&return_pc) && tells_the_same(*rule))
            || pending.any(|call| {
                call.return_sp == sp.wrapping_add(8)
                    && call.return_pc == return_pc
                    && tells_the_same(call.rule)
            })
    }

    fn at_return(&mut self, kernel: &mut Kernel, tid: Tid, pc: u64) -> bool {
        let thread = kernel.thread_mut(tid);
        let (sp, result) = (thread.cpu.reg(Reg::Rsp), thread.cpu.reg(Reg::Rax));
        // Stacks grow down: a call whose return address lies below the stack pointer will never return.
        thread.hooked_calls.retain(|call| call.return_sp >= sp);
        let found = thread
            .hooked_calls
            .iter()
            .rposition(|call| call.return_pc == pc && call.return_sp == sp);
        let Some(index) = found else { return false };
        let call = thread.hooked_calls.remove(index);
        let hook = &self.rules[call.rule];
        self.is_quiet &= effect::is_allocation(hook.effect);
        if hook.effect == Effect::Once {
            self.publish_initialisers(kernel, tid, call.argument(hook.object));
        }
        effect::exit(kernel, tid, hook, &call.args, result);
        if effect::is_allocation(hook.effect) {
            let space = kernel.process_of(tid).space;
            let symbols = &self.entries[&space].symbols;
            blocks::exit(kernel, tid, hook, &call, symbols, result);
        }
        if hook.effect == Effect::CreateThread {
            note_handle(kernel, tid, &call);
        }
        true
    }

    /// Who has initialised something may not have returned yet when others know of it.
    fn publish_initialisers(&self, kernel: &mut Kernel, returning: Tid, object: u64) {
        let pid = kernel.thread(returning).process;
        let is_inside = |call: &PendingCall| {
            let hook = &self.rules[call.rule];
            hook.effect == Effect::Once && call.argument(hook.object) == object
        };
        for tid in kernel.process(pid).threads.clone() {
            if tid != returning && kernel.thread(tid).hooked_calls.iter().any(is_inside) {
                kernel.emit(tid, EventKind::Publish { object });
            }
        }
    }

    /// Whether a thread is inside the allocator.
    pub(crate) fn is_allocating(&self, kernel: &Kernel, tid: Tid) -> bool {
        let calls = &kernel.thread(tid).hooked_calls;
        calls
            .iter()
            .any(|call| effect::is_allocation(self.rules[call.rule].effect))
    }

    /// Whether the last point was about memory allocation only.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Whether a program point is needed by a hook.
    pub(crate) fn uses(&self, pc: u64) -> bool {
        self.returns.contains(&pc)
            || self
                .entries
                .values()
                .any(|entries| entries.rules.contains_key(&pc))
    }

    /// The innermost hooked call that a thread is in.
    pub(crate) fn innermost(&self, kernel: &Kernel, tid: Tid) -> Option<crate::PendingCall> {
        Some(self.innermost_with_mode(kernel, tid)?.0)
    }

    /// The same, with how a lock is wanted.
    pub(crate) fn innermost_with_mode(
        &self,
        kernel: &Kernel,
        tid: Tid,
    ) -> Option<(crate::PendingCall, LockMode)> {
        let call = kernel.thread(tid).hooked_calls.last()?;
        let hook = &self.rules[call.rule];
        let pending = crate::PendingCall {
            effect: hook.effect,
            object: call.argument(hook.object),
            return_pc: call.return_pc,
        };
        Some((pending, effect::lock_mode(hook.mode)))
    }

    /// Symbols of the thread's process as they were when its code last changed.
    pub(crate) fn known_symbols(&self, kernel: &Kernel, tid: Tid) -> Option<&SymbolSpace> {
        let space = kernel.process_of(tid).space;
        Some(&self.entries.get(&space)?.symbols)
    }

    /// The object of the hooked function at whose entry a thread stands; none if it synchronises nothing.
    pub(crate) fn object_at_entry(&self, kernel: &Kernel, tid: Tid) -> Option<u64> {
        let thread = kernel.thread(tid);
        let entries = self.entries.get(&kernel.process_of(tid).space)?;
        let hook = &self.rules[*entries.rules.get(&thread.cpu.rip)?];
        if effect::is_allocation(hook.effect) {
            return None;
        }
        let registers = [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::Rcx, Reg::R8, Reg::R9];
        let register = registers.get(usize::from(hook.object))?;
        Some(thread.cpu.reg(*register))
    }

    /// The fault that a thread may meet in the function at whose entry it stands: a wait for a condition may end for
    /// nothing, and C's allocator may have nothing left. Of allocations of the C library itself none fails.
    pub(crate) fn fault_at_entry(&self, kernel: &Kernel, tid: Tid) -> Option<Fault> {
        let call = self.call_at_entry(kernel, tid)?;
        let hook = &self.rules[call.rule];
        match hook.effect {
            Effect::ConditionWait => Some(Fault::SpuriousWakeUp),
            Effect::Allocate | Effect::Reallocate => {
                let mut names = hook.functions.iter();
                let is_of_c = names.any(|name| FALLIBLE.contains(&name.as_str()));
                let symbols = &self.entries.get(&kernel.process_of(tid).space)?.symbols;
                (is_of_c && !is_c_library(symbols, call.return_pc)).then_some(Fault::NoMemory)
            }
            _ => None,
        }
    }

    /// The call of the function at whose entry a thread stands.
    fn call_at_entry<'a>(&self, kernel: &'a Kernel, tid: Tid) -> Option<&'a PendingCall> {
        let thread = kernel.thread(tid);
        let entries = self.entries.get(&kernel.process_of(tid).space)?;
        let rule = *entries.rules.get(&thread.cpu.rip)?;
        let after = thread.cpu.reg(Reg::Rsp).wrapping_add(8);
        let call = thread.hooked_calls.last()?;
        (call.rule == rule && call.return_sp == after).then_some(call)
    }

    /// Lets the function at whose entry a thread stands return zero without having done anything.
    pub(crate) fn return_at_once(&self, kernel: &mut Kernel, tid: Tid) {
        let Some(call) = self.call_at_entry(kernel, tid).cloned() else {
            return;
        };
        let thread = kernel.thread_mut(tid);
        thread.cpu.rip = call.return_pc;
        thread.cpu.set_reg(Reg::Rsp, call.return_sp);
        thread.cpu.set_reg(Reg::Rax, 0);
        thread.stopped_at_point = None;
    }

    /// Symbols of the thread's process, for reports.
    pub(crate) fn symbols(&mut self, kernel: &mut Kernel, tid: Tid) -> raddle_symbols::SymbolSpace {
        self.modules.space(kernel, tid)
    }
}

/// Remembers which context the handle of a new thread stands for, so that a join can name it.
fn note_handle(kernel: &mut Kernel, tid: Tid, call: &PendingCall) {
    let creator = kernel.thread(tid).context;
    let child: Option<ContextId> = kernel
        .state
        .contexts
        .iter()
        .filter(|(_, context)| context.parent == Some(creator))
        .nth(to_usize(u64::from(call.children)))
        .map(|(id, _)| id);
    let handle = kernel.read_u64(tid, call.args[0]);
    if let (Some(child), Ok(handle)) = (child, handle) {
        let pid = kernel.thread(tid).process;
        kernel.process_mut(pid).thread_handles.insert(handle, child);
    }
}
