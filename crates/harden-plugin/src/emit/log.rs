//! The log from which writes are put back and acquisitions given back that no variable of the function remembers: in a
//! region that holds calls, and in frames that are gone when a caller is re-executed.

use std::collections::BTreeSet;

use raddle_harden::analysis::model::InstId;
use raddle_harden::analysis::plan::Plan;

use super::{Emitter, point_set};
use crate::extract::Acquired;
use crate::ir::Value;

/// How long this thread's log is; known to the runtime.
const POSITION: &str = "raddle_harden_log_position";

impl Emitter<'_> {
    /// Whether a re-execution by this plan has anything to undo from the log. A pad has: what callees took.
    pub(super) fn uses_log(&self, plan: &Plan) -> bool {
        !plan.logs.is_empty()
            || !plan.calls.is_empty()
            || plan.serves_callees
            || plan
                .acquires
                .iter()
                .any(|acquire| self.logged.contains(acquire))
    }

    /// Acquisitions that variables of the function remember. The others must not be given back twice.
    pub(super) fn own_acquires(&self, plan: &Plan) -> Vec<InstId> {
        plan.acquires
            .iter()
            .copied()
            .filter(|acquire| !self.logged.contains(acquire))
            .collect()
    }

    /// Whether a re-execution by this plan releases a lock, so that the pause must come after that.
    pub(super) fn releases(&self, plan: &Plan) -> bool {
        !plan.calls.is_empty()
            || plan.serves_callees
            || plan
                .acquires
                .iter()
                .any(|acquire| self.extracted.acquires[acquire].what != Acquired::Result)
    }

    /// Notes at each point how long the log is.
    pub(super) fn prepare_log(&mut self, plan: &Plan, points: &[InstId]) {
        let key = point_set(plan);
        if self.log_marks.contains_key(&key) {
            return;
        }
        let ty = self.module.int_type(64);
        let mark = self.variable(ty);
        self.log_marks.insert(key, mark);
        let position = self.module.named_global(POSITION).unwrap_or_else(|| {
            let global = self.module.add_global(POSITION, ty);
            global.set_thread_local();
            global
        });
        for &point in points {
            self.builder.before(self.extracted.insts[point]);
            let length = self.builder.load(ty, position);
            self.builder.store(length, mark);
        }
    }

    /// Saves, at each point, private slots of which the region may write any part.
    pub(super) fn save_slots(&mut self, plan: &Plan, points: &[InstId]) {
        for &slot in &plan.slots {
            let key = (point_set(plan), slot);
            if self.saved_slots.contains_key(&key) {
                continue;
            }
            let original = self.extracted.slots[slot];
            let Some(bytes) = original.slot_size() else {
                continue;
            };
            let words = self
                .module
                .array_type(self.module.int_type(64), bytes.div_ceil(8));
            let entry = self.extracted.function.blocks()[0].first();
            self.builder.before(entry);
            let copy = self.builder.alloca(words, "raddle");
            self.saved_slots.insert(key, copy);
            for &point in points {
                self.builder.before(self.extracted.insts[point]);
                self.builder.copy(original, copy, bytes);
            }
        }
    }

    pub(super) fn restore_slots(&self, plan: &Plan) {
        for &slot in &plan.slots {
            let original = self.extracted.slots[slot];
            let copy = self.saved_slots.get(&(point_set(plan), slot));
            if let (Some(&copy), Some(bytes)) = (copy, original.slot_size()) {
                self.builder.copy(copy, original, bytes);
            }
        }
    }

    /// Undoes everything that was logged since the point.
    pub(super) fn roll_back(&self, plan: &Plan, near: Value) {
        let ty = self.module.int_type(64);
        let length = self.builder.load(ty, self.log_marks[&point_set(plan)]);
        self.call_runtime("raddle_harden_roll_back", &[length], near);
    }

    /// Logs what was found to need it: writes before they happen, acquisitions after.
    pub(super) fn write_log(&self) {
        for &inst in &self.logged {
            if let Some(details) = self.extracted.acquires.get(&inst) {
                let taken = self.taken(inst);
                let void = self
                    .module
                    .function_type(self.module.void_type(), &[self.module.pointer_type()]);
                let undo = self.module.function(&details.function, void);
                let near = self.extracted.function.blocks()[0].terminator();
                self.call_runtime("raddle_harden_log_undo", &[taken, undo], near);
            } else {
                self.log_write(inst);
            }
        }
        self.drop_entries();
    }

    /// What the program gives back itself must not be given back from the log as well.
    fn drop_entries(&self) {
        let names = &self.extracted.object_names;
        let logged: BTreeSet<u64> = self
            .logged
            .iter()
            .filter_map(|inst| names.get(inst).copied())
            .collect();
        for &inst in &self.extracted.releases {
            if names.get(&inst).is_some_and(|name| logged.contains(name)) {
                let release = self.extracted.insts[inst];
                self.builder.before(release);
                self.call_runtime("raddle_harden_log_drop", &[release.arguments()[0]], release);
            }
        }
    }

    fn log_write(&self, inst: InstId) {
        let write = self.extracted.insts[inst];
        let size = self
            .module
            .int_type(64)
            .constant(self.extracted.log_bytes[&inst]);
        self.builder.before(write);
        self.call_runtime("raddle_harden_log_bytes", &[write.operand(1), size], write);
    }

    fn call_runtime(&self, name: &str, arguments: &[Value], near: Value) {
        let types: Vec<_> = arguments.iter().map(|value| value.ty()).collect();
        let ty = self.module.function_type(self.module.void_type(), &types);
        let function = self.module.function(name, ty);
        let call = self.builder.call(ty, function, arguments);
        call.set_location_of(near, self.extracted.function);
    }
}
