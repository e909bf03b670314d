//! Claims that two threads can make at once, and references that come too late for what they should keep.

use super::Engine;
use super::conditions::Ask;
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::View;
use crate::analyse::program::EventId;
use crate::front::ast::E;
use crate::front::event::{BY_CALL, UPDATE};
use crate::front::lex::at;

/// Events between starting an item and the reference that it needs.
const NEAR: u32 = 12;

impl Ask<'_, '_, '_> {
    /// Whether the write makes the object something other than zero: a flag is raised, a bit set, an owner named.
    pub(super) fn raises(&self) -> Option<bool> {
        Some(self.engine.sets_bit(self.place(0)?, "set_bit") || self.writes_something()?)
    }

    fn writes_something(&self) -> Option<bool> {
        let (place, event) = (self.place(0)?, self.event(0)?);
        let view = View::new(self.engine.program, place.function);
        Some(
            event.flags & (BY_CALL | UPDATE) == 0
                && event.aux != 0
                && !self.engine.is_nothing(&view, E(event.aux)),
        )
    }

    /// Whether the write makes the object zero again.
    pub(super) fn lowers(&self) -> Option<bool> {
        let (place, event) = (self.place(0)?, self.event(0)?);
        let view = View::new(self.engine.program, place.function);
        let is_zeroed = event.flags & BY_CALL == 0
            && event.aux != 0
            && self.engine.is_nothing(&view, E(event.aux));
        Some(is_zeroed || self.engine.sets_bit(place, "clear_bit"))
    }

    /// Whether the call at the second statement takes a reference on the object whose item was started at the
    /// first.
    pub(super) fn late_reference(&self) -> Option<bool> {
        let (started, taken) = (self.place(0)?, self.place(1)?);
        let is_near = started.function == taken.function
            && (started.event..started.event + NEAR).contains(&taken.event);
        if !is_near {
            return Some(false);
        }
        let engine = self.engine;
        let view = View::new(engine.program, started.function);
        let events = engine.program.events(started.function);
        let (_, armed) = view.unit.named_call(events[at(started.event)].expr)?;
        let (name, given) = view.unit.named_call(events[at(taken.event)].expr)?;
        let root = view.root(*given.first()?)?;
        let is_same = armed.iter().any(|arg| view.root(*arg) == Some(root));
        // One that was taken before is the one that the item drops.
        let is_kept = (0..started.event).any(|event| {
            let earlier = view.unit.named_call(events[at(event)].expr);
            earlier.is_some_and(|(other, args)| {
                other == name && args.first().and_then(|arg| view.root(*arg)) == Some(root)
            })
        });
        let cfg = Cfg::new(events);
        Some(is_same && !is_kept && cfg.reaches(started.event, taken.event))
    }
}

impl Engine<'_> {
    /// Whether an access is made by the bit operation whose name begins so.
    fn sets_bit(&self, place: EventId, start: &str) -> bool {
        let event = self.program.event(place);
        if event.flags & BY_CALL == 0 {
            return false;
        }
        let view = View::new(self.program, place.function);
        let call = view.unit.named_call(E(event.aux));
        call.is_some_and(|(name, _)| {
            let text = self.program.names.bytes(view.name(name));
            text.starts_with(start.as_bytes())
        })
    }
}
