//! The scheduler of serial orders: an operation begins only when the one before is over and no other context has
//! anything to do. A context that comes to the beginning of an operation is held there; the order says which is let go
//! next.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use raddle_sched::{Clock, Scheduler, View};
use raddle_world::{ContextId, ContextTable, Event, EventKind, Mark};

use crate::history::Client;

/// How far a serial run is; the scheduler decides by it, and the events of the run change it.
#[derive(Debug, Default)]
pub struct Turns {
    /// Who stands before the beginning of an operation.
    waiting: BTreeSet<ContextId>,
    /// Whose operation is going on.
    busy: Option<ContextId>,
    /// Who is to come next; when it is used up, the first that waits.
    wanted: VecDeque<Client>,
    /// How many operations came to their end in the wanted order.
    over: usize,
    /// The order cannot be had: an operation waits for one that comes later, or a client did not come.
    is_blocked: bool,
    /// A probe begins.
    asks_for_state: bool,
}

impl Turns {
    pub fn in_order(wanted: &[Client]) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            wanted: wanted.iter().cloned().collect(),
            ..Self::default()
        }))
    }

    /// How many operations came to their end in the wanted order.
    pub fn over(&self) -> usize {
        self.over
    }

    /// Takes in an event of the run.
    pub fn event(&mut self, event: &Event) {
        let who = event.context;
        match &event.kind {
            EventKind::Mark(mark) => match &**mark {
                Mark::Begin {
                    is_probe: false, ..
                } => drop(self.waiting.insert(who)),
                Mark::Begin { is_probe: true, .. } => self.asks_for_state = true,
                Mark::End => self.is_over(who),
                Mark::Argument(_) | Mark::Result(_) => {}
            },
            EventKind::Exit => {
                self.waiting.remove(&who);
                self.is_over(who);
            }
            _ => {}
        }
    }

    fn is_over(&mut self, who: ContextId) {
        if self.busy == Some(who) {
            self.busy = None;
            self.over += usize::from(!self.is_blocked);
        }
    }

    fn is_free(&self, who: ContextId) -> bool {
        !self.waiting.contains(&who)
    }

    /// Who waits and is to come next, if it has come.
    fn next(&self, view: &View<'_>) -> Option<ContextId> {
        let mut waiting = view.runnable.iter().filter(|who| !self.is_free(**who));
        match self.wanted.front() {
            Some(wanted) => waiting
                .find(|who| view.contexts.get(**who).path == *wanted)
                .copied(),
            None => {
                let path = |who: &&ContextId| Arc::clone(&view.contexts.get(**who).path);
                waiting.min_by_key(path).copied()
            }
        }
    }

    /// Whether the operation before is over, and everybody who can run waits for the next one's turn, or asks for the state.
    pub fn is_between(&self, contexts: &ContextTable) -> bool {
        if self.busy.is_some() {
            return false;
        }
        let mut runnable = contexts.iter().filter(|(_, one)| one.is_runnable());
        self.asks_for_state || runnable.all(|(who, _)| !self.is_free(who))
    }

    /// No context that can run is free.
    fn are_all_waiting(&self, view: &View<'_>) -> bool {
        !view.runnable.iter().any(|who| self.is_free(*who))
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let is_tired = |who: ContextId| who == view.current && view.reason.asks_for_another();
        if let Some(busy) = self.busy
            && view.runnable.contains(&busy)
            && !is_tired(busy)
        {
            return busy;
        }
        let default = view.sensible_default();
        if self.is_free(default) {
            return default;
        }
        let mut free = view.runnable.iter().filter(|who| self.is_free(**who));
        let rested = free.clone().find(|who| !is_tired(**who));
        if let Some(who) = rested.or_else(|| free.next()) {
            return *who;
        }
        self.let_go(view)
    }

    /// Everybody is quiet: the next operation begins.
    fn let_go(&mut self, view: &View<'_>) -> ContextId {
        let next = self.next(view);
        self.is_blocked |= self.busy.is_some() || next.is_none();
        let next = next.unwrap_or(view.runnable[0]);
        self.waiting.remove(&next);
        self.wanted.pop_front();
        self.busy = Some(next);
        next
    }
}

/// Runs operations one at a time.
#[derive(Debug)]
pub struct OneAtATime(Rc<RefCell<Turns>>);

impl OneAtATime {
    pub fn new(turns: &Rc<RefCell<Turns>>) -> Self {
        Self(Rc::clone(turns))
    }
}

impl Scheduler for OneAtATime {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.0.borrow_mut().pick(view)
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

/// Time passes where no context but those that wait their turn could go on, and the operation that is going on sleeps,
/// or the client that is to come next does.
impl Clock for OneAtATime {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        let turns = self.0.borrow();
        let is_missing = turns.busy.is_some() || turns.next(view).is_none();
        turns.are_all_waiting(view) && is_missing
    }
}
