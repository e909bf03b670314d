//! Replay: follows a schedule, and the default order where the schedule says nothing.

use std::collections::{BTreeMap, VecDeque};

use raddle_trace::{Path, Phase, Position, Schedule, Turn};
use raddle_world::{Context, ContextId, Fault};

use crate::scheduler::{Clock, Faults, Given, Scheduler, View};

/// Follows a schedule. A deviation that cannot be applied is skipped and counted.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// What is still to come, by context.
    coming: BTreeMap<Path, VecDeque<(Position, Turn)>>,
    /// Where an instruction was last to be torn apart.
    asked: Option<(Path, u64)>,
    missed: u64,
}

/// What comes before what at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Clock,
    Fault,
    Switch,
}

impl Rank {
    fn of(turn: &Turn) -> Self {
        match turn {
            Turn::Clock => Self::Clock,
            Turn::Fault(_) => Self::Fault,
            Turn::Context(_) => Self::Switch,
        }
    }
}

impl Follow {
    pub fn new(schedule: &Schedule) -> Self {
        let mut coming: BTreeMap<Path, VecDeque<(Position, Turn)>> = BTreeMap::new();
        for deviation in &schedule.deviations {
            coming
                .entry(deviation.context.clone())
                .or_default()
                .push_back((deviation.at, deviation.turn.clone()));
        }
        Self {
            coming,
            asked: None,
            missed: 0,
        }
    }

    /// The deviation that belongs here, if it is of the rank that is asked for. The clock jumps before a fault is met,
    /// and that happens before a context is picked: one of a lower rank that is still there could not be made.
    fn take(&mut self, view: &View<'_>, wanted: Rank) -> Option<Turn> {
        let path = &*view.contexts.get(view.current).path;
        let coming = self.coming.get_mut(path)?;
        while let Some((at, turn)) = coming.front()
            && (*at < view.at || (*at == view.at && Rank::of(turn) < wanted))
        {
            coming.pop_front();
            self.missed += 1;
        }
        let is_here =
            |(at, turn): &mut (Position, Turn)| *at == view.at && Rank::of(turn) == wanted;
        let (_, turn) = coming.pop_front_if(is_here)?;
        Some(turn)
    }

    /// Deviations that were passed without being applied, and those never reached.
    pub fn missed(&self) -> u64 {
        let left: usize = self.coming.values().map(VecDeque::len).sum();
        self.missed + raddle_stdx::width::to_u64(left)
    }
}

impl Scheduler for Follow {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let Some(turn) = self.take(view, Rank::Switch) else {
            return view.default;
        };
        let found = view
            .runnable
            .iter()
            .find(|id| turn.is_of(&view.contexts.get(**id).path));
        if found.is_none() {
            self.missed += 1;
        }
        found.copied().unwrap_or(view.default)
    }

    fn bound(&self, who: &Context) -> u64 {
        let next = self.coming.get(&*who.path).and_then(VecDeque::front);
        next.map_or(u64::MAX, |(at, _)| at.steps.saturating_sub(who.steps))
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }

    fn faults(&mut self) -> Option<&mut dyn Faults> {
        Some(self)
    }

    fn given(&mut self) -> Option<&mut dyn Given> {
        Some(self)
    }
}

impl Clock for Follow {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        self.take(view, Rank::Clock).is_some()
    }
}

impl Faults for Follow {
    fn fault(&mut self, view: &View<'_>, possible: &[Fault]) -> Option<Fault> {
        let Some(Turn::Fault(fault)) = self.take(view, Rank::Fault) else {
            return None;
        };
        let is_possible = possible.contains(&fault);
        self.missed += u64::from(!is_possible);
        is_possible.then_some(fault)
    }
}

impl Given for Follow {
    fn tears(&mut self, who: &Context) -> bool {
        let Some(coming) = self.coming.get_mut(&*who.path) else {
            return false;
        };
        let is_here = |(at, _): &(Position, Turn)| at.phase == Phase::Torn && at.steps == who.steps;
        if !coming.front().is_some_and(is_here) {
            return false;
        }
        // Asked for the same place again: there is nothing to tear.
        let question = (who.path.to_vec(), who.steps);
        if self.asked.as_ref() == Some(&question) {
            coming.pop_front();
            self.missed += 1;
            return false;
        }
        self.asked = Some(question);
        true
    }
}
