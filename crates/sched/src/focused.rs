//! Concentrates a scheduler's decisions on given code: elsewhere the current context goes on as long as it can.

use std::ops::Range;

use raddle_world::{Context, ContextId};

use crate::scheduler::{Scheduler, View};

/// A scheduler that decides only inside some ranges of code.
#[derive(Debug)]
pub struct Focused<S> {
    inner: S,
    /// Sorted, not overlapping.
    ranges: Vec<Range<u64>>,
}

impl<S: Scheduler> Focused<S> {
    pub fn new(inner: S, ranges: Vec<Range<u64>>) -> Self {
        debug_assert!(ranges.is_sorted_by_key(|range| range.start));
        Self { inner, ranges }
    }

    fn is_inside(&self, place: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= place);
        after > 0 && self.ranges[after - 1].contains(&place)
    }
}

impl<S: Scheduler> Scheduler for Focused<S> {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        if view.can_stay() && !self.is_inside(view.place) {
            return view.current;
        }
        self.inner.pick(view)
    }

    fn jumps(&mut self, view: &View<'_>) -> bool {
        self.inner.jumps(view)
    }

    fn tears(&mut self, who: &Context) -> bool {
        self.inner.tears(who)
    }

    fn is_replay(&self) -> bool {
        self.inner.is_replay()
    }

    fn bound(&self, who: &Context) -> u64 {
        self.inner.bound(who)
    }
}
