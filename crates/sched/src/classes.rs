//! Partial-order sampling over classes of operations.
//!
//! A sampler that draws among contexts draws mostly among those that are many and alike: with a hundred writers and one
//! reader, the reader's turn comes when it is too late. What matters is *what* happens next, not which of several like
//! contexts does it. So contexts that stand before the same instruction on the same object form a class; classes have
//! random priorities, as operations have in partial-order sampling (`pos.rs`), and draw anew when a conflicting
//! operation has run. The probability of an order of k conflicting classes then depends on k, not on the number of
//! contexts. Which member of a class goes on is decided the same way throughout a run: the oldest, the youngest or any.
//!
//! In most runs, what concerns no other context comes first: contexts start, allocate and create others until each
//! stands before something shared. Otherwise the first of many contexts have ended before the last one exists, since
//! creating a context takes more stops than most races do.

use std::collections::BTreeMap;

use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::{ContextId, Site};

use crate::operation::{Touch, touch};
use crate::scheduler::{Reason, Scheduler, View};

/// Operations of a context that may come first because they concern no other: a context that makes calls for ever
/// must not keep all others from running.
const AHEAD_MAX: u32 = 256;

/// Where a context stands, and the object that its next operation touches.
type Class = (Site, u64);
/// The classes that are present: what their operation touches, and their members in the order of creation.
type Present = BTreeMap<Class, (Option<Touch>, Vec<ContextId>)>;

/// Which member of a class goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Oldest,
    Youngest,
    Any,
}

/// The scheduler.
#[derive(Debug, Clone)]
pub struct Classes {
    prng: Prng,
    member: Member,
    /// Whether what concerns no other context comes first, and whether system calls count as such.
    runs_ahead: bool,
    calls_run_ahead: bool,
    /// Of the classes that are present; the highest goes on.
    priorities: BTreeMap<Class, u64>,
    /// Operations that came first, and where each context stands, by context number.
    ahead: Vec<u32>,
    sites: Vec<Site>,
    /// Contexts that have asked for another and have not been chosen since.
    lowered: Vec<ContextId>,
    /// What the context that was picked last stood before.
    running: Option<Touch>,
}

impl Classes {
    pub fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let member = match prng.below(4) {
            0 => Member::Oldest,
            1 => Member::Youngest,
            _ => Member::Any,
        };
        Self {
            member,
            runs_ahead: prng.chance(7, 8),
            calls_run_ahead: prng.chance(3, 4),
            prng,
            priorities: BTreeMap::new(),
            ahead: Vec::new(),
            sites: Vec::new(),
            lowered: Vec::new(),
            running: None,
        }
    }

    /// Whether the next operation of a context comes before all draws.
    fn is_ahead(&self, who: ContextId, view: &View<'_>) -> bool {
        let has_yielded = who == view.current && view.reason == Reason::Yielded;
        if !self.runs_ahead || has_yielded || self.lowered.contains(&who) {
            return false;
        }
        if self.ahead[who.0 as usize] >= AHEAD_MAX {
            return false;
        }
        match view.next_of(who).map(|next| (next, touch(next))) {
            None | Some((_, None)) => true,
            Some((next, Some(_))) => self.calls_run_ahead && next.is_call(),
        }
    }

    /// The one whose operation comes before all draws: rather the current one, so that it is not left for nothing.
    fn one_ahead(&mut self, view: &View<'_>) -> Option<ContextId> {
        let current = view
            .runnable
            .contains(&view.current)
            .then_some(view.current);
        let others = view.runnable.iter().copied();
        let found = current
            .into_iter()
            .chain(others)
            .find(|who| self.is_ahead(*who, view))?;
        self.ahead[found.0 as usize] += 1;
        Some(found)
    }

    /// What can be chosen; those that have asked for another only if there is no other.
    fn present(&self, view: &View<'_>) -> Present {
        let mut present = Present::new();
        let is_low = |who: &ContextId| self.lowered.contains(who);
        let all_low = view.runnable.iter().all(is_low);
        for who in view.runnable.iter().filter(|who| all_low || !is_low(who)) {
            let next = view.next_of(*who);
            let touch = next.and_then(touch);
            // A context of which nothing is known is alone.
            let object = touch.map_or(u64::from(who.0), |touch| touch.object);
            let class = (self.sites[who.0 as usize], object);
            let entry = present.entry(class).or_insert((touch, Vec::new()));
            entry.1.push(*who);
        }
        present
    }

    /// Classes that came, and those whose order with what has just run was decided, draw.
    fn draw(&mut self, present: &Present, current: ContextId) {
        self.priorities
            .retain(|class, _| present.contains_key(class));
        let done = self.running.take();
        for (class, (touch, members)) in present {
            let is_new = !self.priorities.contains_key(class) || *members == [current];
            let conflicts = || {
                let pair = touch.as_ref().zip(done.as_ref());
                pair.is_some_and(|(touch, done)| touch.conflicts(done))
            };
            if is_new || conflicts() {
                let drawn = self.prng.next_u64();
                self.priorities.insert(*class, drawn);
            }
        }
    }

    fn member(&mut self, members: &[ContextId]) -> ContextId {
        let index = match self.member {
            Member::Oldest => 0,
            Member::Youngest => members.len() - 1,
            Member::Any => to_usize(self.prng.below(to_u64(members.len()))),
        };
        members[index]
    }
}

impl Scheduler for Classes {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.ahead.resize(view.contexts.len(), 0);
        self.sites.resize(view.contexts.len(), Site::NOWHERE);
        self.sites[view.current.0 as usize] = view.site;
        if view.reason.asks_for_another() {
            self.lowered.push(view.current);
        }
        if let Some(who) = self.one_ahead(view) {
            return who;
        }
        let present = self.present(view);
        self.draw(&present, view.current);
        let best = self
            .priorities
            .iter()
            .max_by_key(|(_, priority)| **priority)
            .and_then(|(class, _)| present.get(class))
            .expect("there is always a context to choose");
        let chosen = self.member(&best.1);
        self.lowered.retain(|who| *who != chosen);
        self.running = view.next_of(chosen).and_then(touch);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::Limits;

    use super::*;
    use crate::toy::{Do, Toy};
    use crate::{End, Pos, drive};

    /// Failures in a hundred runs of many like setters of two cells and one who looks between.
    fn failures(setters: usize, scheduler: &dyn Fn(u64) -> Box<dyn Scheduler>) -> usize {
        let limits = Limits {
            patience: 1_000,
            steps: 100_000,
        };
        let mut programs = vec![vec![Do::Set(0), Do::Set(1)]; setters];
        programs.push(vec![Do::Work, Do::Work, Do::FailIf([1, 0])]);
        let mut toy = Toy::new(programs);
        toy.is_one_program = true;
        let fails = |seed: &u64| {
            let driven = drive(
                &mut toy.clone(),
                &mut scheduler(*seed),
                limits,
                &mut |_, _| {},
            );
            driven.end != End::Exited { status: 0 }
        };
        (0..100).filter(fails).count()
    }

    #[test]
    fn the_number_of_like_contexts_does_not_matter() {
        let classes: &dyn Fn(u64) -> Box<dyn Scheduler> = &|seed| Box::new(Classes::new(seed));
        let (few, many) = (failures(3, classes), failures(40, classes));
        // With a true share of one in six, fewer than 7 of 100 come once in a thousand draws of seeds.
        assert!(few >= 7 && many >= 7, "{few} and {many} of 100");
        let by_context = failures(40, &|seed| Box::new(Pos::new(seed)));
        assert!(many > by_context, "{many} against {by_context} of 100");
    }
}
