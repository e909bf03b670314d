//! The failure sites among a function's instructions.

use std::collections::BTreeSet;

use raddle_harden::analysis::model::{Effect, InstId, LockHow, Operand, Site, SiteKind};

use raddle_harden::settings::SitePlace;

use super::{Candidate, Check, Extractor};
use crate::ir::{Opcode, Value};
use crate::names::{self, Callee, Checked, Lock, LockSite};

impl Extractor<'_> {
    pub(super) fn find_candidates(&mut self) {
        self.invariant_candidates();
        for number in 0..self.out.insts.len() {
            let inst = self.out.insts[number];
            match inst.opcode() {
                Opcode::LLVMCall | Opcode::LLVMInvoke => self.call_candidates(number, inst),
                Opcode::LLVMLoad => self.pointer_candidate(number, inst, inst.operand(0)),
                Opcode::LLVMStore => self.pointer_candidate(number, inst, inst.operand(1)),
                Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => {
                    self.pointer_candidate(number, inst, inst.operand(0));
                }
                _ => {}
            }
        }
    }

    /// Reads of which an inferred oracle says what they yield: the only one of its line that can be meant.
    fn invariant_candidates(&mut self) {
        for invariant in self.settings.invariants.clone() {
            let (Some(file), Some(line)) = (invariant.file, invariant.line) else {
                continue;
            };
            let place = SitePlace { file, line };
            let is_meant = |number: &InstId| {
                let inst = self.out.insts[*number];
                let ty = inst.ty();
                inst.opcode() == Opcode::LLVMLoad
                    && self.model.insts[*number].effect == Effect::SharedRead
                    && (ty.is_pointer() || ty.is_integer() && ty.bits() <= 64)
                    && inst
                        .places()
                        .iter()
                        .any(|at| place.matches(&at.path(), at.line))
            };
            let meant: Vec<InstId> = (0..self.out.insts.len()).filter(is_meant).collect();
            let [number] = meant[..] else {
                continue;
            };
            let read = self.out.insts[number];
            let check = Check::Invariant(read, invariant.expression);
            let critical = vec![Operand::Inst(number)];
            self.push(SiteKind::Oracle, number + 1, read, check, critical);
            if let Some(candidate) = self.out.candidates.last_mut() {
                candidate.inst = read.next();
            }
        }
    }

    fn push(
        &mut self,
        kind: SiteKind,
        at: InstId,
        inst: Value,
        check: Check,
        critical: Vec<Operand>,
    ) {
        let only_from_callers = kind == SiteKind::Dereference
            && critical
                .iter()
                .all(|value| matches!(value, Operand::Arg(_)));
        let places = inst.places();
        let place = places
            .iter()
            .find(|place| place.is_users())
            .or_else(|| places.first())
            .cloned()
            .unwrap_or_default();
        self.out.candidates.push(Candidate {
            site: Site {
                kind,
                at,
                critical,
                safe_edges: BTreeSet::new(),
            },
            inst,
            check,
            place,
            places,
            only_from_callers,
        });
    }

    fn call_candidates(&mut self, number: InstId, inst: Value) {
        let Some(name) = inst.callee_name() else {
            if !inst.called().is_inline_asm() {
                self.pointer_candidate(number, inst, inst.called());
            }
            return;
        };
        if name.starts_with("llvm.") {
            if name.starts_with("llvm.mem") {
                for pointer in inst.arguments().into_iter().take(2) {
                    if pointer.ty().is_pointer() {
                        self.pointer_candidate(number, inst, pointer);
                    }
                }
            }
            return;
        }
        match names::classify(&name, self.settings) {
            Callee::Assertion => self.assertion_candidate(number, inst),
            Callee::Other if inst.ends_in_nothing() && names::looks_like_assertion(&name) => {
                self.assertion_candidate(number, inst);
            }
            Callee::Oracle => {
                let value = inst.arguments()[0];
                let critical = self.operand(value).into_iter().collect();
                self.push(
                    SiteKind::Oracle,
                    number,
                    inst,
                    Check::Oracle(value),
                    critical,
                );
            }
            Callee::Output(checked) => self.output_candidate(number, inst, checked),
            Callee::Lock(lock)
                if lock.how != LockSite::AcquireOnly
                    && inst.opcode() == Opcode::LLVMCall
                    && !inst.arguments().is_empty()
                    && (lock.takes != LockHow::Tries
                        || self.is_retried(inst.arguments()[0], number)) =>
            {
                self.push(
                    SiteKind::Deadlock,
                    number,
                    inst,
                    Check::Mutex(lock),
                    Vec::new(),
                );
            }
            Callee::RustLock if inst.opcode() == Opcode::LLVMCall => {
                self.rust_lock_candidate(number, inst);
            }
            _ => {}
        }
    }

    fn assertion_candidate(&mut self, number: InstId, inst: Value) {
        let at = self.doomed_from(number);
        let is_known = self
            .out
            .candidates
            .iter()
            .any(|other| other.site.kind == SiteKind::Assertion && other.site.at == at);
        if !is_known {
            self.push(SiteKind::Assertion, at, inst, Check::Reached, Vec::new());
        }
    }

    /// Rust's mutex where it is contended. The failed compare-exchange on the same mutex holds nothing.
    fn rust_lock_candidate(&mut self, number: InstId, inst: Value) {
        let pointer = inst.arguments()[0];
        let own = self.out.insts.iter().position(|other| {
            other.opcode() == Opcode::LLVMAtomicCmpXchg && other.operand(0) == pointer
        });
        let critical = own.map(Operand::Inst).into_iter().collect();
        let check = Check::Mutex(Lock {
            unlock: names::RUST_UNLOCK.into(),
            how: LockSite::Watched("raddle_harden_rust_lock"),
            takes: LockHow::Takes,
        });
        self.push(SiteKind::Deadlock, number, inst, check, critical);
    }

    fn output_candidate(&mut self, number: InstId, inst: Value, checked: Checked) {
        let arguments = inst.arguments();
        let pointers: Vec<Value> = match checked {
            Checked::Nothing => Vec::new(),
            Checked::First => arguments.into_iter().take(1).collect(),
            Checked::AllPointers => arguments,
        }
        .into_iter()
        .filter(|value| value.ty().is_pointer() && !value.is_constant())
        .collect();
        let critical: Vec<Operand> = pointers
            .iter()
            .filter_map(|&value| self.operand(value))
            .collect();
        let check = if pointers.is_empty() {
            Check::Unchecked
        } else {
            Check::Pointers(pointers)
        };
        self.push(SiteKind::Output, number, inst, check, critical);
    }

    /// The first instruction from which the failing call at `number` is reached without a choice.
    fn doomed_from(&self, number: InstId) -> InstId {
        let model = &self.model;
        let mut block = model.block_of[number];
        while let [pred] = model.blocks[block].preds[..] {
            if model.blocks[pred].succs.len() != 1 || pred == block {
                break;
            }
            block = pred;
        }
        model.blocks[block].body
    }

    fn pointer_candidate(&mut self, number: InstId, inst: Value, pointer: Value) {
        let base = pointer.underlying();
        let Some(operand) = self.operand(base) else {
            return;
        };
        let is_shared = match operand {
            Operand::Arg(_) => true,
            Operand::Inst(inst) => self.comes_from_shared(inst, 4),
        };
        if is_shared {
            self.push(
                SiteKind::Dereference,
                number,
                inst,
                Check::Pointers(vec![base]),
                vec![operand],
            );
        }
    }

    fn comes_from_shared(&self, inst: InstId, depth: u32) -> bool {
        let details = &self.model.insts[inst];
        match self.out.insts[inst].opcode() {
            Opcode::LLVMLoad => details.effect == Effect::SharedRead,
            // Whether it only reads is known when all functions are.
            Opcode::LLVMCall => self
                .numbers
                .contains_key(&self.out.insts[inst].called().key()),
            // An atomic pointer of C++ is read as a number.
            Opcode::LLVMPHI | Opcode::LLVMSelect | Opcode::LLVMIntToPtr if depth > 0 => {
                details.operands.iter().any(|operand| match operand {
                    Operand::Inst(other) => {
                        *other != inst && self.comes_from_shared(*other, depth - 1)
                    }
                    Operand::Arg(_) => false,
                })
            }
            _ => false,
        }
    }
}
