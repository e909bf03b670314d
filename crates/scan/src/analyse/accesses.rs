//! Every access with its alias key, and the accesses of each key.

use rustc_hash::FxHashMap;

use super::keys::{Key, View};
use super::program::{EventId, FnId, Program};
use crate::front::ast::E;
use crate::front::event::{BY_CALL, Kind};
use crate::front::lex::{at, index};

/// The accesses of all functions.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// Key of each event of each function; unknown where it is no access.
    keys: Vec<Box<[Key]>>,
    writes: FxHashMap<Key, Vec<EventId>>,
    reads: FxHashMap<Key, Vec<EventId>>,
}

impl Accesses {
    pub(crate) fn new(program: &Program<'_>) -> Self {
        let mut accesses = Self::default();
        for id in program.function_ids() {
            accesses.add(program, id);
        }
        accesses
    }

    fn add(&mut self, program: &Program<'_>, id: FnId) {
        let view = View::new(program, id);
        let mut keys = Vec::with_capacity(program.events(id).len());
        // A statement often names the same object again.
        let mut last = (E::NONE, Key::UNKNOWN);
        for (position, event) in program.events(id).iter().enumerate() {
            if !matches!(event.kind, Kind::Read | Kind::Write) {
                keys.push(Key::UNKNOWN);
                continue;
            }
            if last.0 != event.expr {
                last = (event.expr, view.key(event.expr));
            }
            let key = if event.flags & BY_CALL != 0 {
                view.accessed_key(event.expr, E(event.aux))
            } else {
                last.1
            };
            keys.push(key);
            if !key.is_shared() || view.function.from_macro {
                continue;
            }
            let place = EventId {
                function: id,
                event: index(position),
            };
            let list = if event.kind == Kind::Write {
                &mut self.writes
            } else {
                &mut self.reads
            };
            list.entry(key).or_default().push(place);
        }
        self.keys.push(keys.into());
    }

    pub(crate) fn key(&self, place: EventId) -> Key {
        self.keys[at(place.function.0)][at(place.event)]
    }

    pub(crate) fn writes(&self, key: Key) -> &[EventId] {
        self.writes.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn reads(&self, key: Key) -> &[EventId] {
        self.reads.get(&key).map_or(&[], Vec::as_slice)
    }
}
