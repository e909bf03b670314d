//! Basic partial-order sampling (BasicPOS in Yuan, Yang, Gu, "Partial order aware concurrency sampling",
//! CAV 2018): each pending operation has a random priority of its own; the highest runs, and a context that has
//! run draws anew.
//!
//! Full POS also redraws the priorities of pending operations that race with the one that ran; that needs the
//! address of each context's next access.

use raddle_stdx::Prng;
use raddle_world::ContextId;

use crate::scheduler::{Scheduler, View};

/// Random priorities per operation.
#[derive(Debug, Clone)]
pub struct BasicPos {
    prng: Prng,
    /// By context number.
    priorities: Vec<u64>,
}

impl BasicPos {
    pub fn new(seed: u64) -> Self {
        Self {
            prng: Prng::new(seed),
            priorities: Vec::new(),
        }
    }
}

impl Scheduler for BasicPos {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let needed = view.contexts.iter().count();
        while self.priorities.len() < needed {
            self.priorities.push(self.prng.next_u64() | 1);
        }
        let fresh = if view.reason.asks_for_another() {
            0
        } else {
            self.prng.next_u64() | 1
        };
        self.priorities[view.current.0 as usize] = fresh;
        let priority = |who: &&ContextId| self.priorities[who.0 as usize];
        *view
            .runnable
            .iter()
            .max_by_key(priority)
            .expect("there is always somebody to choose")
    }
}
