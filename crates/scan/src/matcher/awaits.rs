//! Who waits for the end of which handlers, and what these start again.

use std::rc::Rc;

use super::Engine;
use super::handlers::Handlers;
use crate::analyse::keys::{Key, View};
use crate::analyse::program::{EventId, FnId};

/// Handlers of one item that are looked at.
const HANDLERS_MAX: usize = 8;

/// What a call waits for. A field of a general type is looked up by file, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Awaited {
    Item(Option<Key>, u32),
    Queue(Key),
    Interrupts(u32),
    Transfers(u32),
}

impl Handlers {
    fn awaited(&self, what: Awaited) -> Vec<FnId> {
        let of_item = |key: &Key| self.items.get(key).map(|item| item.handlers.as_slice());
        match what {
            Awaited::Item(key, _) => key
                .and_then(|key| of_item(&key))
                .unwrap_or_default()
                .to_vec(),
            Awaited::Interrupts(unit) => self.interrupts.get(&unit).cloned().unwrap_or_default(),
            Awaited::Transfers(unit) => self.transfers.get(&unit).cloned().unwrap_or_default(),
            Awaited::Queue(queue) => {
                let items = self.queues.get(&queue).into_iter().flatten();
                items.filter_map(of_item).flatten().copied().collect()
            }
        }
    }
}

impl Engine<'_> {
    /// The handlers that the call at `place` waits for and what they call, in the order of functions.
    pub(super) fn awaited(&self, place: EventId) -> Rc<Vec<FnId>> {
        let table = self.program.table;
        let is = |class: &str| self.classes_at(place) & table.class(class).unwrap_or(0) != 0;
        let unit = self.program.unit_of(place.function);
        let what = if is("waits_for_queue") {
            Awaited::Queue(self.first_key(place))
        } else if is("waits_for_transfers") {
            Awaited::Transfers(unit)
        } else if is("waits_for_interrupt") {
            Awaited::Interrupts(unit)
        } else {
            Awaited::Item(self.item_key(place), unit)
        };
        if let Some(known) = self.awaited.borrow().get(&what) {
            return known.clone();
        }
        let mut all = Vec::new();
        for handler in self.handlers_near(&self.handlers().awaited(what), unit) {
            all.extend(self.called_from(handler));
        }
        // What is done on release is done without the lock.
        all.retain(|id| !self.program.function_name(*id).contains("unlock"));
        all.sort_unstable();
        all.dedup();
        let all = Rc::new(all);
        self.awaited.borrow_mut().insert(what, all.clone());
        all
    }

    /// The key of the first argument.
    fn first_key(&self, place: EventId) -> Key {
        let view = View::new(self.program, place.function);
        let call = view.unit.named_call(self.program.event(place).expr);
        call.and_then(|(_, args)| args.first())
            .map_or(Key::UNKNOWN, |arg| view.key(*arg))
    }

    /// An item with many handlers is a field of a general type: only those of the same folder are meant.
    fn handlers_near(&self, found: &[FnId], unit: u32) -> Vec<FnId> {
        let mut near = found.to_vec();
        near.sort_unstable();
        near.dedup();
        if near.len() > HANDLERS_MAX {
            let folder = self.program.directory(unit);
            near.retain(|id| self.program.directory(self.program.unit_of(*id)) == folder);
        }
        if near.len() > HANDLERS_MAX {
            near.clear();
        }
        near
    }

    /// Whether what is ended at `ended` is started again by the handler that is waited for at `later`.
    pub(super) fn is_started_again(&self, ended: EventId, later: EventId) -> bool {
        let (Some(key), true) = (self.item_key(ended), ended.event < later.event) else {
            return false;
        };
        let Some(item) = self.handlers().items.get(&key) else {
            return false;
        };
        let is_armed_by = |waits: EventId| {
            let awaited = self.awaited(waits);
            let mut armed = item.armed.iter();
            self.item_key(waits) != Some(key)
                && armed.any(|place| awaited.binary_search(&place.function).is_ok())
        };
        self.waits_at(later).into_iter().any(is_armed_by)
            && !self.is_ended_behind(ended.function, later.event, key)
    }

    /// The calls that wait for handlers until control comes back from the call at `place`: itself, or those of
    /// a callee.
    fn waits_at(&self, place: EventId) -> Vec<EventId> {
        let class = "waits_for_handler";
        if self.classes_at(place) & self.program.table.class(class).unwrap_or(0) != 0 {
            return vec![place];
        }
        let direct = self.calls.callees_at(place.function, place.event);
        let direct = direct.filter(|call| !call.indirect).map(|call| call.callee);
        let mut waits = Vec::new();
        for callee in direct {
            waits.extend(self.calls_of_class(callee, class));
            for inner in self.calls.of(callee).iter().filter(|call| !call.indirect) {
                waits.extend(self.calls_of_class(inner.callee, class));
            }
        }
        waits
    }

    /// Whether the function, or what it calls, ends the item behind the event.
    fn is_ended_behind(&self, id: FnId, event: u32, key: Key) -> bool {
        let ends = |id: FnId| {
            let mut ended = self.calls_of_class(id, "ends_item");
            ended.any(|place| self.item_key(place) == Some(key))
        };
        let mut own = self.calls_of_class(id, "ends_item");
        own.any(|place| place.event > event && self.item_key(place) == Some(key))
            || self.calls.of(id).iter().any(|call| {
                // The callee that waits may end the item after it has waited.
                call.event >= event && self.called_from(call.callee).into_iter().any(ends)
            })
    }

    /// Whether the call waits for an item and stands in its handler; or for the only interrupt of the file. What a
    /// handler calls knows by some flag whether it may wait, mostly.
    pub(super) fn awaits_itself(&self, place: EventId) -> bool {
        let of_interrupt = self.program.table.class("waits_for_interrupt").unwrap_or(0);
        if self.classes_at(place) & of_interrupt != 0 {
            let unit = self.program.unit_of(place.function);
            let handlers = self.handlers().awaited(Awaited::Interrupts(unit));
            return handlers.contains(&place.function)
                && handlers.iter().all(|handler| *handler == place.function);
        }
        let Some(item) = self
            .item_key(place)
            .and_then(|key| self.handlers().items.get(&key))
        else {
            return false;
        };
        let unit = self.program.unit_of(place.function);
        let handlers = self.handlers_near(&item.handlers, unit);
        handlers.contains(&place.function)
    }
}
