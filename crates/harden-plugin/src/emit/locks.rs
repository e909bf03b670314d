//! Lock sites: the runtime's lock function in place of the program's, and what was taken.

use raddle_harden::analysis::model::InstId;

use super::{Emitter, Work};
use crate::extract::Acquired;
use crate::ir::{Block, Opcode, Predicate, Value};
use crate::names::{Lock, LockSite};

/// What our lock functions return instead of waiting for ever; known to the runtime.
const DEADLOCK: u64 = 0x7_adde;
/// Milliseconds after which a lock of the program's own is taken for a deadlock.
const TIMED_MS: u64 = 100;

impl Emitter<'_> {
    /// The runtime's lock function in place of the call; after giving up, one that only tells of the deadlock. The runtime
    /// has a function for each kind of lock, and beside it one whose name ends in `_watch`.
    pub(super) fn mutex(&mut self, work: &Work<'_>, lock: &Lock) {
        let is_hardened = work.plan.is_some() || work.levels > 0;
        match &lock.how {
            LockSite::Watched(name) if is_hardened => self.watched_mutex(work, name),
            LockSite::Watched(name) => {
                let descriptor = self.descriptor(work);
                let call = work.candidate.inst;
                let result = self.watch(call, &format!("{name}_watch"), descriptor);
                self.replace(work.candidate.site.at, call, result);
            }
            LockSite::Timed(name) => self.timed_mutex(work, name),
            LockSite::AcquireOnly => {}
        }
    }

    /// A call of a lock function of the runtime, in front of the program's.
    fn watch(&self, call: Value, name: &str, descriptor: Value) -> Value {
        let (word, pointer) = (self.module.int_type(32), self.module.pointer_type());
        let ty = self.module.function_type(word, &[pointer, pointer]);
        let function = self.module.function(name, ty);
        self.builder.before(call);
        let result = self
            .builder
            .call(ty, function, &[call.arguments()[0], descriptor]);
        result.set_location_of(call, self.extracted.function);
        result
    }

    fn replace(&mut self, at: InstId, call: Value, result: Value) {
        if !call.ty().is_void() {
            call.replace_with(result);
        }
        call.erase();
        self.results.insert(at, result);
    }

    fn watched_mutex(&mut self, work: &Work<'_>, name: &str) {
        let call = work.candidate.inst;
        let word = self.module.int_type(32);
        let descriptor = self.descriptor(work);
        let result = self.watch(call, name, descriptor);
        let fails = self
            .builder
            .compare(Predicate::LLVMIntEQ, result, word.constant(DEADLOCK));
        let (failing, waits, tail) = self.branch_around(call, fails);
        let waited = self.watch(call, &format!("{name}_watch"), descriptor);
        self.builder.before(tail.first());
        let head = result.block();
        let phi = self.builder.phi(word, &[(result, head), (waited, waits)]);
        // The call lends its place to what the failing edge calls, so it goes last.
        self.failing_edge_of(work, descriptor, failing, waits);
        self.replace(work.candidate.site.at, call, phi);
    }

    fn timed_mutex(&mut self, work: &Work<'_>, name: &str) {
        let call = work.candidate.inst;
        let (word, pointer) = (self.module.int_type(32), self.module.pointer_type());
        let ty = self.module.function_type(word, &[pointer, word]);
        let function = self.module.function(name, ty);
        self.builder.before(call);
        let arguments = [call.arguments()[0], word.constant(TIMED_MS)];
        let result = self.builder.call(ty, function, &arguments);
        result.set_location_of(call, self.extracted.function);
        let fails = self
            .builder
            .compare(Predicate::LLVMIntNE, result, word.constant(0));
        let (failing, waits, tail) = self.branch_around(call, fails);
        let taken = if call.ty().is_void() {
            word.constant(0)
        } else {
            self.builder.before(tail.first());
            let phi = self
                .builder
                .phi(call.ty(), &[(call.ty().null(), result.block())]);
            call.replace_with(phi);
            phi.add_incoming(call, waits);
            phi
        };
        self.results.insert(work.candidate.site.at, taken);
        self.failing_edge(work, failing, waits);
    }

    /// Splits around a lock call: to the failing block if `fails` holds, else beyond the call. Returns the failing block,
    /// the one with the call, and the one behind it.
    fn branch_around(&mut self, call: Value, fails: Value) -> (Block, Block, Block) {
        let head = call.block();
        let waits = call.split_before("raddle.waits");
        let tail = call.next().split_before("raddle.locked");
        let failing = self.extracted.function.append_block("raddle.failing");
        head.terminator().erase();
        self.builder.at_end(head);
        self.builder.branch_if(fails, failing, tail).cold_edge(true);
        (failing, waits, tail)
    }

    /// After every acquisition that a failing edge may have to undo: note what was taken.
    pub(super) fn record_acquisitions(&mut self) {
        for (&(_, acquire), &held) in &self.held {
            let taken = self.taken(acquire);
            let now = if self.extracted.acquires[&acquire].is_try {
                // One that fails leaves what an earlier one took.
                let pointer = self.module.pointer_type();
                let before = self.builder.load(pointer, held);
                let is_taken = self
                    .builder
                    .compare(Predicate::LLVMIntNE, taken, pointer.null());
                self.builder.select(is_taken, taken, before)
            } else {
                taken
            };
            self.builder.store(now, held);
        }
    }

    /// What an acquisition took, or null; the builder stands behind it.
    pub(super) fn taken(&self, acquire: InstId) -> Value {
        let pointer = self.module.pointer_type();
        let details = &self.extracted.acquires[&acquire];
        let inst = self.extracted.insts[acquire];
        let result = self.results.get(&acquire).copied();
        let after = match result {
            Some(phi) if phi.is_instruction() && phi.opcode() == Opcode::LLVMPHI => {
                first_after_phis(phi)
            }
            Some(call) if call.is_instruction() => call.next(),
            Some(_) => inst.block().terminator().successors()[0].first(),
            None => inst.next(),
        };
        self.builder.before(after);
        match details.what {
            Acquired::Result => inst,
            Acquired::FirstArgument => {
                let object = self.lock_arguments[&acquire];
                let outcome = result.unwrap_or(inst);
                if outcome.ty().is_integer() && !outcome.is_constant() {
                    let ok =
                        self.builder
                            .compare(Predicate::LLVMIntEQ, outcome, outcome.ty().null());
                    self.builder.select(ok, object, pointer.null())
                } else {
                    object
                }
            }
            Acquired::Exchanged => {
                let ok = self.builder.extract(inst, 1);
                self.builder.select(ok, inst.operand(0), pointer.null())
            }
        }
    }
}

fn first_after_phis(phi: Value) -> Value {
    let mut at = phi;
    while at.opcode() == Opcode::LLVMPHI {
        at = at.next();
    }
    at
}
