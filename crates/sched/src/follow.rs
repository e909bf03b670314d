//! Replay: follows a schedule, and the default order where the schedule says nothing.

use std::collections::{BTreeMap, VecDeque};

use raddle_trace::{Path, Position, Schedule};
use raddle_world::{Context, ContextId};

use crate::scheduler::{Scheduler, View};

/// Follows a schedule. A deviation that cannot be applied is skipped and counted.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// What is still to come, by context.
    coming: BTreeMap<Path, VecDeque<(Position, Path)>>,
    missed: u64,
}

impl Follow {
    pub fn new(schedule: &Schedule) -> Self {
        let mut coming: BTreeMap<Path, VecDeque<(Position, Path)>> = BTreeMap::new();
        for deviation in &schedule.deviations {
            coming
                .entry(deviation.context.clone())
                .or_default()
                .push_back((deviation.at, deviation.to.clone()));
        }
        Self { coming, missed: 0 }
    }

    /// Deviations that were passed without being applied, and those never reached.
    pub fn missed(&self) -> u64 {
        let left: usize = self.coming.values().map(VecDeque::len).sum();
        self.missed + raddle_stdx::width::to_u64(left)
    }
}

impl Scheduler for Follow {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let path = &*view.contexts.get(view.current).path;
        let Some(coming) = self.coming.get_mut(path) else {
            return view.default;
        };
        while let Some((at, _)) = coming.front()
            && *at < view.at
        {
            coming.pop_front();
            self.missed += 1;
        }
        let Some((_, to)) = coming.pop_front_if(|(at, _)| *at == view.at) else {
            return view.default;
        };
        let found = view
            .runnable
            .iter()
            .find(|id| *view.contexts.get(**id).path == *to);
        if found.is_none() {
            self.missed += 1;
        }
        found.copied().unwrap_or(view.default)
    }

    fn is_replay(&self) -> bool {
        true
    }

    fn bound(&self, who: &Context) -> u64 {
        let next = self.coming.get(&*who.path).and_then(VecDeque::front);
        next.map_or(u64::MAX, |(at, _)| at.steps.saturating_sub(who.steps))
    }
}
