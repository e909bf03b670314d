//! Signal handlers come between any two instructions of the thread that they interrupt, as another thread does: what both
//! touch is a place where contexts meet, though it is one context.

use raddle_detect::Communication;
use raddle_linux::LinuxWorld;
use raddle_world::{ContextId, Event, EventKind};

use crate::attribution::Territory;

/// Signals that an instruction of the thread itself causes: their handlers come where that instruction stands.
const OF_OWN_INSTRUCTION: [u32; 6] = [4, 5, 7, 8, 11, 31];
/// What a context is called while it is in a handler; no context has so high a number.
const INTERRUPTING: u32 = 1 << 31;
/// What is added for each goroutine that a context goes on with; fewer contexts live at one time. A goroutine that a
/// thread comes back to counts as another one, which makes some more places where contexts meet.
const GOROUTINE: u32 = 1 << 16;

/// Follows the contexts of one run in and out of handlers.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    /// For each context the handlers that it is in, and whether they came from outside.
    inside: Vec<Vec<bool>>,
    /// How often each context went on with another goroutine.
    goroutines: Vec<u32>,
    /// Whether a handler came from outside at all.
    pub(crate) has_interrupted: bool,
}

impl Handlers {
    pub(crate) fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::SignalEnter { number } => {
                let is_from_outside = !OF_OWN_INSTRUCTION.contains(&number);
                self.has_interrupted |= is_from_outside;
                self.of(event.context).push(is_from_outside);
            }
            // A handler that was left by a jump is never told to end; the next one to end is taken for it.
            EventKind::SignalLeave => {
                self.of(event.context).pop();
            }
            _ => {}
        }
    }

    /// Takes an event in among those of all contexts. Handlers borrow the stack that they interrupt: what they do there
    /// is their context's own.
    pub(crate) fn communicate(
        &self,
        communication: &mut Communication,
        (world, territory): (&LinuxWorld, &Territory),
        event: &Event,
    ) {
        let EventKind::Access(access) = &event.kind else {
            return;
        };
        let is_interrupting = self.is_interrupting(event.context)
            && territory.is_own_memory(world, event.context, access.addr);
        let goroutine = self.goroutines.get(event.context.0 as usize);
        let goroutine = goroutine.map_or(0, |number| number % (INTERRUPTING / GOROUTINE));
        let mut user = event.context.0 | (goroutine * GOROUTINE);
        if is_interrupting {
            user |= INTERRUPTING;
        }
        let user = ContextId(user);
        communication.access(user, event.site, access);
    }

    /// A context goes on with another goroutine, which meets the one before as another thread would.
    pub(crate) fn change_goroutine(&mut self, who: ContextId) {
        let index = who.0 as usize;
        if self.goroutines.len() <= index {
            self.goroutines.resize(index + 1, 0);
        }
        self.goroutines[index] += 1;
    }

    fn is_interrupting(&self, who: ContextId) -> bool {
        let inside = self.inside.get(who.0 as usize);
        inside.is_some_and(|handlers| handlers.contains(&true))
    }

    fn of(&mut self, who: ContextId) -> &mut Vec<bool> {
        let index = who.0 as usize;
        if self.inside.len() <= index {
            self.inside.resize(index + 1, Vec::new());
        }
        &mut self.inside[index]
    }
}
