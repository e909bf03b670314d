//! The search from below: which orders with few preemptions fail in the same way?
//!
//! Taking things away from a long order ends where every single step makes the failure vanish, because a thread
//! that finds a lock free makes other steps than one that had to wait, and then the places of the remaining
//! preemptions do not fit any more. So the default order is taken and preemptions are added to it (iterative
//! context bounding: Musuvathi and Qadeer, PLDI 2007), those at instructions first at which the failing order
//! had one. Which context goes on after one that blocks is free.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use raddle_sched::{Clock, Follow, Passing, Scheduler, View, Wrap};
use raddle_trace::{Deviation, Path, Phase, Position, Schedule, Turn};
use raddle_world::{ContextId, Site};

/// Contexts that are tried instead of the default one at a stop.
const OTHERS_MAX: usize = 4;
/// Deviations beyond this many, free ones included, are unlikely to be needed.
const LENGTH_LIKELY: usize = 3;
/// Stops of a run that are looked at.
const STOPS_MAX: usize = 4_000;
/// Orders that wait for their turn at most.
const QUEUE_MAX: usize = 200_000;

/// A stop of a run and what could have come instead.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    context: Path,
    at: Position,
    site: Site,
    /// What else could have come.
    others: Vec<Turn>,
    /// Whether the one that ran had to stop anyway.
    is_free: bool,
}

/// Follows an order and writes down all choices after its last deviation, and the sites of its preemptions.
#[derive(Debug)]
pub(super) struct Noted {
    follow: Follow,
    choices: Vec<Choice>,
    /// Places at which a context was preempted, and whether in the middle of the instruction.
    sites: BTreeSet<(Site, bool)>,
}

impl Noted {
    pub(super) fn new(schedule: &Schedule) -> Self {
        Self {
            follow: Follow::new(schedule),
            choices: Vec::new(),
            sites: BTreeSet::new(),
        }
    }

    fn note(&mut self, view: &View<'_>, others: Vec<Turn>, is_free: bool) {
        if self.choices.len() < STOPS_MAX && !others.is_empty() {
            self.choices.push(Choice {
                context: view.contexts.get(view.current).path.to_vec(),
                at: view.at,
                site: view.site,
                others,
                is_free,
            });
        }
    }

    fn deviates(&mut self, view: &View<'_>) {
        self.choices.clear();
        let is_torn = view.at.phase == Phase::Torn;
        self.sites.insert((view.site, is_torn));
    }

    /// Sites of preemptions, for [`Queue::new`].
    pub(super) fn into_sites(self) -> BTreeSet<(Site, bool)> {
        self.sites
    }
}

impl Wrap for Noted {
    type Inner = Follow;

    fn inner(&self) -> &Follow {
        &self.follow
    }

    fn inner_mut(&mut self) -> &mut Follow {
        &mut self.follow
    }

    /// All stops are written down.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let next = self.follow.pick(view);
        if next != view.default {
            self.deviates(view);
        }
        // To stay with one that asks for another makes a run only longer.
        let gives_way = view.reason.asks_for_another();
        let can_go_on = view.runnable.contains(&view.current) && !gives_way;
        let start = view.runnable.partition_point(|id| *id <= next);
        let others = view.runnable[start..]
            .iter()
            .chain(&view.runnable[..start])
            .filter(|id| **id != next && !(gives_way && **id == view.current))
            .take(OTHERS_MAX)
            .map(|id| Turn::Context(view.contexts.get(*id).path.to_vec()))
            .collect();
        // A place where the order deviates already has had its alternatives.
        if next == view.default {
            self.note(view, others, !can_go_on);
        }
        next
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

impl Clock for Noted {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        let jumps = self.follow.jumps(view);
        if jumps {
            self.deviates(view);
        } else {
            self.note(view, vec![Turn::Clock], false);
        }
        jumps
    }
}

/// An order to try: that of its parent and one deviation more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Order {
    parent: Arc<Schedule>,
    added: Deviation,
    preemptions: u64,
    /// Preemptions at places where the failing order has none.
    unlikely: u64,
}

/// Orders that were not tried yet, the most promising first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Places of the preemptions of the failing order, and whether in the middle of the instruction.
    likely: BTreeSet<(Site, bool)>,
    orders: Vec<Order>,
    /// Rank, number of the order.
    ranked: BinaryHeap<Reverse<(u64, u64, usize)>>,
}

/// An order that is to be run.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) schedule: Schedule,
    pub(super) preemptions: u64,
    unlikely: u64,
}

impl Candidate {
    /// The default order, with which the search begins.
    pub(super) fn default_order() -> Self {
        Self {
            schedule: Schedule::default(),
            preemptions: 0,
            unlikely: 0,
        }
    }
}

impl Queue {
    pub(super) fn new(likely: BTreeSet<(Site, bool)>) -> Self {
        Self {
            likely,
            ..Self::default()
        }
    }

    /// The next order to try with fewer preemptions than this.
    pub(super) fn next(&mut self, below: u64) -> Option<Candidate> {
        while let Some(Reverse((_, _, number))) = self.ranked.pop() {
            let order = &self.orders[number];
            if order.preemptions < below {
                let mut schedule = Schedule::clone(&order.parent);
                schedule.deviations.push(order.added.clone());
                return Some(Candidate {
                    schedule,
                    preemptions: order.preemptions,
                    unlikely: order.unlikely,
                });
            }
        }
        None
    }

    /// Adds all orders that differ from one that was run by one more deviation, later than its last.
    pub(super) fn grow(&mut self, run: &Candidate, noted: &Noted, below: u64) {
        let parent = Arc::new(run.schedule.clone());
        for choice in &noted.choices {
            let preemptions = run.preemptions + u64::from(!choice.is_free);
            if preemptions >= below {
                continue;
            }
            let is_long = run.schedule.len() >= LENGTH_LIKELY;
            for (at, is_likely) in self.positions(choice) {
                let unlikely = run.unlikely + u64::from(!is_likely || is_long);
                for other in &choice.others {
                    let added = Deviation {
                        context: choice.context.clone(),
                        at,
                        turn: other.clone(),
                    };
                    self.push(Order {
                        parent: Arc::clone(&parent),
                        added,
                        preemptions,
                        unlikely,
                    });
                }
            }
        }
    }

    /// Where exactly a choice can be made, and whether that is likely to help.
    fn positions(&self, choice: &Choice) -> impl Iterator<Item = (Position, bool)> + use<> {
        let is_likely = choice.is_free || self.likely.contains(&(choice.site, false));
        let torn = Position {
            phase: Phase::Torn,
            ..choice.at
        };
        let is_torn = choice.at.phase == Phase::Plain
            && !choice.is_free
            && self.likely.contains(&(choice.site, true));
        [
            Some((choice.at, is_likely)),
            is_torn.then_some((torn, true)),
        ]
        .into_iter()
        .flatten()
    }

    fn push(&mut self, order: Order) {
        let number = self.orders.len();
        if number < QUEUE_MAX {
            let rank = order.preemptions + order.unlikely;
            self.ranked.push(Reverse((rank, order.preemptions, number)));
            self.orders.push(order);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(steps: u64, pc: u64, is_free: bool) -> Choice {
        Choice {
            context: vec![0],
            at: Position {
                steps,
                phase: Phase::Plain,
            },
            site: Site::first(pc),
            others: vec![Turn::Context(vec![1])],
            is_free,
        }
    }

    #[test]
    fn free_choices_come_first_then_likely_places_and_nothing_is_tried_that_is_no_smaller() {
        let mut queue = Queue::new(BTreeSet::from([
            (Site::first(7), false),
            (Site::first(9), true),
        ]));
        let mut noted = Noted::new(&Schedule::default());
        noted.choices = vec![
            choice(1, 5, false),
            choice(2, 7, false),
            choice(3, 6, true),
            choice(4, 9, false),
        ];
        queue.grow(&Candidate::default_order(), &noted, 2);
        let mut tried = Vec::new();
        while let Some(candidate) = queue.next(2) {
            let at = candidate.schedule.deviations[0].at;
            tried.push((at.steps, at.phase == Phase::Torn));
        }
        let expected = [(3, false), (2, false), (4, true), (1, false), (4, false)];
        assert_eq!(tried, expected);
        queue.grow(&Candidate::default_order(), &noted, 1);
        let only = queue.next(1).expect("the free choice");
        assert_eq!(only.schedule.deviations[0].at.steps, 3);
        assert!(queue.next(1).is_none());
    }
}
