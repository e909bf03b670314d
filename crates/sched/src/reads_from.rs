//! Reads-from guided scheduling (Wolff, Shi, Duck, Mathur, Roychoudhury, "Greybox fuzzing for concurrency
//! testing", ASPLOS 2024): an *abstract schedule* says which read is to read from which write, and which is not
//! to; the scheduler holds contexts back to make it so, over partial-order sampling.
//!
//! The campaign mutates abstract schedules and keeps those whose runs showed a pair never seen before.
//! Deviation from the paper: a wish is granted once, then it is forgotten; wishes hold no context back for
//! ever, since if everybody is held back the one with the highest priority goes on.

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::{ContextId, Site};
use serde::{Deserialize, Serialize};

use crate::operation::touch;
use crate::pos::Pos;
use crate::reads_from_trace::{ReadsFromPair, ReadsFromTrace};
use crate::scheduler::{Scheduler, View};

/// Wishes in an abstract schedule.
const WISHES_MAX: usize = 8;

/// That a read reads from a write (0: from none), or that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wish {
    pub pair: ReadsFromPair,
    pub is_wanted: bool,
}

/// A set of wishes.
pub type AbstractSchedule = Vec<Wish>;

/// Changes an abstract schedule a little. `seen` are pairs that occurred, `possible` those that might.
pub fn mutate(
    prng: &mut Prng,
    parent: &[Wish],
    seen: &[ReadsFromPair],
    possible: &[ReadsFromPair],
) -> AbstractSchedule {
    let mut wishes = parent.to_vec();
    // Deep bugs need several wishes at once: mostly few changes, sometimes many.
    let changes = 1 << prng.below(4);
    for _ in 0..changes {
        let from = if prng.chance(1, 3) { seen } else { possible };
        let drawn = draw(prng, from).or_else(|| draw(prng, seen));
        let Some(pair) = drawn else { break };
        let is_full = wishes.len() >= WISHES_MAX;
        if !wishes.is_empty() && (is_full || prng.chance(1, 4)) {
            let index = to_usize(prng.below(to_u64(wishes.len())));
            wishes.remove(index);
        }
        let is_wanted = !prng.chance(1, 4);
        let wish = Wish { pair, is_wanted };
        let at = to_usize(prng.below(to_u64(wishes.len()) + 1));
        wishes.insert(at, wish);
    }
    wishes
}

fn draw(prng: &mut Prng, from: &[ReadsFromPair]) -> Option<ReadsFromPair> {
    if from.is_empty() {
        return None;
    }
    Some(from[to_usize(prng.below(to_u64(from.len())))])
}

/// The scheduler.
#[derive(Debug, Clone)]
pub struct ReadsFrom {
    base: Pos,
    wishes: AbstractSchedule,
    /// Where each context stands, by its number.
    sites: Vec<Site>,
    trace: ReadsFromTrace,
}

impl ReadsFrom {
    pub fn new(seed: u64, wishes: AbstractSchedule) -> Self {
        Self {
            base: Pos::new(seed),
            wishes,
            sites: Vec::new(),
            trace: ReadsFromTrace::default(),
        }
    }

    fn site(&self, who: ContextId) -> Site {
        let site = self.sites.get(who.0 as usize);
        site.copied().unwrap_or(Site::NOWHERE)
    }

    /// Whether a wish says that this context should wait.
    fn is_held(&self, who: ContextId, view: &View<'_>) -> bool {
        let Some(next) = view.next_of(who) else {
            return false;
        };
        let Some(touch) = touch(next) else {
            return false;
        };
        let site = self.site(who);
        let mut concerned = self.wishes.iter().filter(|wish| {
            let is_reader = wish.pair.1 == site;
            is_reader || wish.is_wanted && touch.writes
        });
        let source = || self.trace.source_of(&touch);
        concerned.any(|wish| {
            let (write, read) = wish.pair;
            if read == site {
                return (source() == write) != wish.is_wanted;
            }
            // A context is to read what stands there now: no context may overwrite it.
            source() == write
                && (write != Site::NOWHERE || self.waits_for(read, touch.object, view))
        })
    }

    /// Whether some context stands at this site and touches the same object.
    fn waits_for(&self, read: Site, object: u64, view: &View<'_>) -> bool {
        view.runnable.iter().any(|who| {
            let touches = || view.next_of(*who).and_then(touch).map(|t| t.object);
            self.site(*who) == read && touches() == Some(object)
        })
    }

    /// The chosen context does its operation: wishes that it grants are done with.
    fn note(&mut self, who: ContextId, view: &View<'_>) {
        let Some(next) = view.next_of(who) else {
            return;
        };
        let site = self.site(who);
        if let Some(touch) = touch(next).filter(|touch| touch.reads) {
            let granted = self.wishes.iter().position(|wish| {
                wish.is_wanted && wish.pair.1 == site && wish.pair.0 == self.trace.source_of(&touch)
            });
            if let Some(granted) = granted {
                self.wishes.remove(granted);
            }
        }
        self.trace.note(who, site, next, view.contexts);
    }
}

impl Scheduler for ReadsFrom {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let index = view.current.0 as usize;
        if self.sites.len() <= index {
            self.sites.resize(index + 1, Site::NOWHERE);
        }
        self.sites[index] = view.site;
        self.base.update(view);
        let free = view
            .runnable
            .iter()
            .copied()
            .filter(|who| !self.base.is_lowest(*who) && !self.is_held(*who, view));
        let chosen = self
            .base
            .highest(free)
            .or_else(|| self.base.highest(view.runnable.iter().copied()))
            .expect("there is always somebody to choose");
        self.note(chosen, view);
        self.base.goes_on(chosen, view);
        chosen
    }
}
