//! What is known of locks and variables beyond one function: their numbers in the module, and names by which operations
//! on the same lock are recognised.

use std::collections::BTreeMap;

use raddle_harden::analysis::model::{InstId, LockHow, LockUse};

use super::Extractor;
use crate::ir::{Module, Opcode, Value};

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
        let using = LockUse {
            name: self.lock_name(pointer, 4),
            id: self.shared.lock(pointer, self.module),
            how,
        };
        self.model.lock_uses.insert(number, using);
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
    fn lock_name(&self, pointer: Value, depth: u32) -> Option<u64> {
        let (base, offset) = pointer.without_offset(self.module);
        let mut digest = raddle_stdx::Digest::default();
        digest.bytes(&offset.to_le_bytes());
        if base.is_instruction() && base.opcode() == Opcode::LLVMLoad && depth > 0 {
            digest.bytes(&self.lock_name(base.operand(0), depth - 1)?.to_le_bytes());
        } else {
            digest.bytes(&base.key().to_le_bytes());
        }
        Some(digest.value())
    }
}
