//! Partial-order sampling (Yuan, Yang, Gu, "Partial order aware concurrency sampling", CAV 2018).
//!
//! Each pending operation has a random priority of its own, and the highest runs. When an operation has run,
//! its context draws for its next one, and pending operations that conflict with the one that ran draw anew:
//! so the order of any two conflicting operations is decided by fresh draws, and orders of independent
//! operations, which do not matter, cost nothing.
//!
//! Deviation from the paper: the next operation of a context that spins or yields gets the lowest priority.

use raddle_stdx::Prng;
use raddle_world::{ContextId, Pending};

use crate::operation::conflict;
use crate::scheduler::{Scheduler, View};

/// Random priorities per operation.
#[derive(Debug, Clone)]
pub struct Pos {
    prng: Prng,
    /// By context number; 0 is the lowest.
    priorities: Vec<u64>,
    /// What the context that was picked last stood before.
    running: Option<Pending>,
}

impl Pos {
    pub fn new(seed: u64) -> Self {
        Self {
            prng: Prng::new(seed),
            priorities: Vec::new(),
            running: None,
        }
    }

    fn draw(&mut self) -> u64 {
        self.prng.next_u64() | 1
    }

    /// Takes note of what has happened since the last choice.
    pub(crate) fn update(&mut self, view: &View<'_>) {
        let needed = view.contexts.len();
        while self.priorities.len() < needed {
            let priority = self.draw();
            self.priorities.push(priority);
        }
        let current = view.current.0 as usize;
        self.priorities[current] = if view.reason.asks_for_another() {
            0
        } else {
            self.draw()
        };
        let Some(done) = self.running.take() else {
            return;
        };
        for index in 0..needed {
            let next = view.next.get(index).and_then(Option::as_ref);
            if index != current && next.is_some_and(|next| conflict(next, &done)) {
                self.priorities[index] = self.draw();
            }
        }
    }

    /// The one with the highest priority among some.
    pub(crate) fn highest(&self, among: impl Iterator<Item = ContextId>) -> Option<ContextId> {
        among.max_by_key(|who| self.priorities[who.0 as usize])
    }

    /// Whether a context spins or yields.
    pub(crate) fn is_lowest(&self, who: ContextId) -> bool {
        self.priorities[who.0 as usize] == 0
    }

    /// This one goes on.
    pub(crate) fn goes_on(&mut self, who: ContextId, view: &View<'_>) {
        self.running = view.next_of(who).cloned();
    }
}

impl Scheduler for Pos {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.update(view);
        let best = self
            .highest(view.runnable.iter().copied())
            .expect("there is always somebody to choose");
        self.goes_on(best, view);
        best
    }
}
