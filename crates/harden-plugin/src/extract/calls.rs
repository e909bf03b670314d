//! Effects of calls of library functions that a region may hold.

use raddle_harden::analysis::model::{Effect, InstId, WHOLE_SLOT};
use raddle_harden::calls::Call;

use super::Extractor;
use crate::ir::Value;

impl Extractor<'_> {
    pub(super) fn harmless_effect(&mut self, inst: Value, number: InstId, call: Call) -> Effect {
        let to = match call {
            Call::Pure => return Effect::None,
            Call::Read => return self.read_effect(inst),
            Call::Write { to } => to,
        };
        let arguments = inst.arguments();
        let Some(&target) = arguments.get(to) else {
            return Effect::Destroy;
        };
        if target.is_null() {
            return Effect::None;
        }
        self.write_behind(target, number)
    }

    /// A call that reads behind its arguments: if there is one pointer among them and it is private, nothing shared.
    fn read_effect(&mut self, inst: Value) -> Effect {
        let pointers: Vec<Value> = inst
            .arguments()
            .into_iter()
            .filter(|argument| argument.ty().is_pointer())
            .collect();
        let slot = match pointers[..] {
            [pointer] => self.slot_of(pointer.underlying()),
            _ => None,
        };
        slot.map_or(Effect::SharedRead, |slot| Effect::SlotRead { slot })
    }

    /// A write of some bytes behind a pointer.
    pub(super) fn write_behind(&mut self, target: Value, number: InstId) -> Effect {
        self.note_access(target, number);
        let object = target.underlying();
        if let Some(slot) = self.slot_of(object) {
            return Effect::SlotWrite {
                slot,
                cell: WHOLE_SLOT,
            };
        }
        match self.fresh(object) {
            Some(alloc) => Effect::FreshWrite { alloc },
            None => Effect::Destroy,
        }
    }
}
