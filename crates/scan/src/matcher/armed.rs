//! What is left running when its object goes away: items that nothing ends, found by struct and by the function of
//! the opposite name.

use std::rc::Rc;

use super::Engine;
use super::conditions::Ask;
use super::handlers::Item;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::program::{EventId, FnId};
use crate::analyse::types::Def;
use crate::front::lex::at;

/// How far callers are looked at that may end an item, and how many of them.
const CALLERS_DEPTH: u32 = 3;
const CALLERS_NEAR_MAX: usize = 24;

/// Words of names that say that something is set up, and that it is undone.
const DOING: &[&str] = &[
    "init",
    "start",
    "attach",
    "probe",
    "create",
    "register",
    "open",
    "enable",
    "setup",
    "alloc",
    "connect",
    "bind",
    "add",
    "up",
    "new",
    "install",
    "begin",
    "prepare",
    "activate",
    "initialize",
    "initialise",
];
const UNDOING: &[&str] = &[
    "deinit",
    "exit",
    "stop",
    "cleanup",
    "detach",
    "remove",
    "free",
    "release",
    "close",
    "destroy",
    "uninit",
    "unregister",
    "teardown",
    "fini",
    "disable",
    "shutdown",
    "term",
    "disconnect",
    "unbind",
    "del",
    "down",
    "delete",
    "uninstall",
    "end",
    "unprepare",
    "deactivate",
    "deinitialize",
    "deinitialise",
    "uninitialize",
];

/// The words of a function's name without the one that says what it does, if there is one.
fn stem(name: &str, verbs: &[&str]) -> Option<Vec<String>> {
    let words: Vec<String> = name
        .split('_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let verb = words
        .iter()
        .rposition(|word| verbs.contains(&word.as_str()))?;
    let rest: Vec<String> = words
        .into_iter()
        .enumerate()
        .filter(|(place, _)| *place != verb)
        .map(|(_, word)| word)
        .collect();
    (!rest.is_empty()).then_some(rest)
}

impl Engine<'_> {
    /// Calls that start what is still running when the object of the function at `place` goes away.
    pub(super) fn left_armed(&self, place: EventId) -> Rc<Vec<EventId>> {
        if let Some(known) = self.left_armed.borrow().get(&place.function) {
            return known.clone();
        }
        let found = Rc::new(self.find_left_armed(place.function));
        self.left_armed
            .borrow_mut()
            .insert(place.function, found.clone());
        found
    }

    fn find_left_armed(&self, id: FnId) -> Vec<EventId> {
        let view = View::new(self.program, id);
        let handlers = self.handlers();
        let mut out = Vec::new();
        if self.ends_all_work(id) {
            return out;
        }
        let mut defs = self.structs_of_locals(&view);
        defs.extend(self.structs_of_ended(id));
        defs.sort_unstable();
        defs.dedup();
        for def in defs {
            for key in handlers.by_struct.get(&def).into_iter().flatten() {
                let item = &handlers.items[key];
                let is_own = item
                    .handlers
                    .iter()
                    .any(|handler| self.called_from(*handler).contains(&id));
                let is_left = self.is_left_alone(item) || self.is_forgotten(id, *key, item);
                if is_left && !is_own {
                    out.extend(item.armed.first().copied());
                }
            }
        }
        out.extend(self.armed_by_counterpart(id));
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Whether nothing ends the item, and its handlers hold no reference of their own that keeps the object.
    fn is_left_alone(&self, item: &Item) -> bool {
        !item.is_ended() && self.runs_without_reference(item)
    }

    fn runs_without_reference(&self, item: &Item) -> bool {
        let table = self.program.table;
        let drops =
            table.class("counter_put").unwrap_or(0) | table.class("refcount_put").unwrap_or(0);
        let mut handlers = item.handlers.iter();
        !item.handlers.is_empty()
            && !handlers.any(|handler| self.calls.classes[at(handler.0)] & drops != 0)
    }

    /// Whether the item is ended by others, but neither by the function, which ends another item of the object,
    /// nor by what it calls or by what its callers call.
    fn is_forgotten(&self, id: FnId, key: Key, item: &Item) -> bool {
        let KeyParts::Field(owner, _) = key.parts() else {
            return false;
        };
        if !item.is_ended() || !self.runs_without_reference(item) {
            return false;
        }
        let ended = self.calls_of_class(id, "ends_item");
        let mut ended = ended.filter_map(|place| self.item_key(place));
        let ends_other =
            ended.any(|other| matches!(other.parts(), KeyParts::Field(def, _) if def == owner));
        ends_other && !self.is_ended_near(id, item)
    }

    /// Whether one of the functions that end the item is called by the function or by one of its callers.
    fn is_ended_near(&self, id: FnId, item: &Item) -> bool {
        let mut near = vec![id];
        let mut start = 0;
        for _ in 0..CALLERS_DEPTH {
            let end = near.len();
            for position in start..end {
                for caller in &self.calls.callers[at(near[position].0)] {
                    if !near.contains(caller) && near.len() < CALLERS_NEAR_MAX {
                        near.push(*caller);
                    }
                }
            }
            start = end;
        }
        let ends = |callee: &FnId| item.ended.contains(callee);
        near.iter()
            .any(|caller| self.called_from(*caller).iter().any(ends))
    }

    /// Whether the item that the call starts is ended by some function.
    pub(super) fn is_ended_elsewhere(&self, started: EventId) -> bool {
        let key = self.item_key(started);
        let item = key.and_then(|key| self.handlers().items.get(&key));
        item.is_some_and(Item::is_ended)
    }

    /// Items that nothing ends and that the function of the opposite name sets up: `x_init` for `x_exit`.
    fn armed_by_counterpart(&self, id: FnId) -> Vec<EventId> {
        let handlers = self.handlers();
        let unit = self.program.unit_of(id);
        let Some(stem) = stem(&self.program.function_name(id), UNDOING) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for maker in handlers.makers.get(&unit).into_iter().flatten() {
            let is_opposite = self::stem(&self.program.function_name(*maker), DOING)
                .is_some_and(|own| own == stem);
            if !is_opposite {
                continue;
            }
            for key in handlers.by_maker.get(maker).into_iter().flatten() {
                let item = &handlers.items[key];
                if self.is_left_alone(item) {
                    found.extend(item.armed.first().copied());
                }
            }
        }
        found
    }

    /// Whether the function is the opposite of one that sets up what is started at `started`.
    pub(super) fn undoes_set_up(&self, id: FnId, started: EventId) -> bool {
        self.armed_by_counterpart(id).contains(&started)
    }

    /// Structs of which the function ends an item.
    fn structs_of_ended(&self, id: FnId) -> Vec<Def> {
        let ended = self.calls_of_class(id, "ends_item");
        let keys = ended.filter_map(|place| self.item_key(place));
        keys.filter_map(|key| match key.parts() {
            KeyParts::Field(def, _) => Some(def),
            _ => None,
        })
        .collect()
    }

    fn structs_of_locals(&self, view: &View<'_>) -> Vec<Def> {
        let mut defs = Vec::new();
        for local in view.unit.locals_of(view.function) {
            if let Some(ty) = view.local(local.name) {
                let def = self.program.types.def(ty, self.program);
                if def != Def::NONE && !defs.contains(&def) {
                    defs.push(def);
                }
            }
        }
        defs
    }

    /// Whether the function or what it calls flushes or destroys a whole work queue.
    fn ends_all_work(&self, id: FnId) -> bool {
        let wanted = self.program.table.class("ends_all_work").unwrap_or(0);
        self.called_from(id)
            .iter()
            .any(|callee| self.calls.classes[at(callee.0)] & wanted != 0)
    }
}

impl Ask<'_, '_, '_> {
    /// Whether the item started by the call at the second statement is left running at the first.
    pub(super) fn leaves_armed(&self) -> Option<bool> {
        let (place, started) = (self.place(0)?, self.place(1)?);
        Some(self.engine.left_armed(place).contains(&started))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_opposite_names_have_the_same_stem() {
        let are_opposite = |maker: &str, other: &str| {
            let own = stem(maker, DOING);
            own.is_some() && own == stem(other, UNDOING)
        };
        assert!(are_opposite("meter_stats_init", "meter_stats_deinit"));
        assert!(are_opposite(
            "q_attach_mailbox_work",
            "q_detach_mailbox_work"
        ));
        assert!(!are_opposite("meter_stats_init", "meter_exit"));
        assert!(!are_opposite("init", "exit"));
        assert!(!are_opposite("meter_read", "meter_exit"));
    }
}
