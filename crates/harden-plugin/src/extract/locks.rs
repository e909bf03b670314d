//! What is known of locks and variables beyond one function: their numbers in the module, and names by which operations
//! on the same lock are recognised.

use std::collections::{BTreeMap, BTreeSet};

use raddle_harden::analysis::model::{InstId, LockHow, LockUse, Object};

use super::Extractor;
use crate::ir::{Module, Opcode, Value};

/// How deep the expressions are compared that compute two locks.
const NAME_DEPTH: u32 = 8;

/// Numbers of a module's locks and variables that nothing else can reach.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// By variable and offset.
    locks: BTreeMap<(usize, i64), u32>,
    /// None for a variable that others can reach.
    variables: BTreeMap<usize, Option<u32>>,
    lock_globals: BTreeMap<usize, bool>,
}

impl Shared {
    /// The number of a lock that only this module can reach.
    fn lock(&mut self, pointer: Value, module: Module) -> Option<u32> {
        let (base, offset) = pointer.without_offset(module);
        let is_closed = *self
            .lock_globals
            .entry(base.key())
            .or_insert_with(|| base.is_closed_lock());
        if !is_closed {
            return None;
        }
        let next = u32::try_from(self.locks.len()).ok()?;
        Some(*self.locks.entry((base.key(), offset)).or_insert(next))
    }

    fn variable(&mut self, object: Value) -> Option<u32> {
        if let Some(&known) = self.variables.get(&object.key()) {
            return known;
        }
        let next = u32::try_from(self.variables.len()).ok()?;
        let number = object.is_closed_variable().then_some(next);
        self.variables.insert(object.key(), number);
        number
    }
}

impl Extractor<'_> {
    pub(super) fn note_lock(&mut self, pointer: Value, number: InstId, how: LockHow) {
        let (base, _) = pointer.without_offset(self.module);
        let using = LockUse {
            name: self.lock_name(pointer, NAME_DEPTH),
            is_global: base.is_constant(),
            id: self.shared.lock(pointer, self.module),
            how,
        };
        self.model.lock_uses.insert(number, using);
        self.note_object(pointer, number);
    }

    /// Notes what an instruction takes or gives back.
    pub(super) fn note_object(&mut self, value: Value, number: InstId) {
        let mut made_of = BTreeSet::new();
        let name = self.object_name(value, NAME_DEPTH, &mut made_of);
        self.model.objects.insert(number, Object { name, made_of });
    }

    /// Equal only for the same computation from the same values, which are noted. Unlike a lock's name it takes no two
    /// reads for the same.
    fn object_name(&self, value: Value, depth: u32, made_of: &mut BTreeSet<InstId>) -> u64 {
        let mut digest = raddle_stdx::Digest::default();
        let computed = value
            .is_instruction()
            .then(|| value.computes_with())
            .flatten()
            .filter(|_| depth > 0);
        if let Some(with) = computed {
            digest.bytes(format!("{:?}{with:?}", value.opcode()).as_bytes());
            for operand in value.operands() {
                digest.word(self.object_name(operand, depth - 1, made_of));
            }
        } else {
            made_of.extend(self.inst_numbers.get(&value.key()));
            digest.bytes(&value.key().to_le_bytes());
        }
        digest.value()
    }

    /// Notes an access to a variable that only this module can reach.
    pub(super) fn note_access(&mut self, pointer: Value, number: InstId) {
        let object = pointer.underlying();
        if object.is_instruction() {
            return;
        }
        if let Some(variable) = self.shared.variable(object) {
            self.out.accesses.insert(number, variable);
        }
    }

    /// Equal for pointers that are computed in the same way: a reload of the same field is taken for the same lock.
    fn lock_name(&self, value: Value, depth: u32) -> u64 {
        let mut digest = raddle_stdx::Digest::default();
        let is_computed = value.is_instruction()
            && !matches!(
                value.opcode(),
                Opcode::LLVMPHI | Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMAlloca
            );
        if is_computed && depth > 0 {
            digest.bytes(format!("{:?}", value.opcode()).as_bytes());
            for operand in value.operands() {
                digest.word(self.lock_name(operand, depth - 1));
            }
        } else {
            digest.bytes(&value.key().to_le_bytes());
        }
        digest.value()
    }

    /// Whether a trylock is tried again and again for the same lock.
    pub(super) fn is_retried(&self, pointer: Value, number: InstId) -> bool {
        let is_in_cycle = |inst: InstId| self.model.is_in_cycle(self.model.block_of[inst]);
        let is_same = self
            .inst_numbers
            .get(&pointer.key())
            .is_none_or(|&inst| !is_in_cycle(inst));
        is_same && is_in_cycle(number)
    }
}
