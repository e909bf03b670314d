//! Concentrates a scheduler's decisions on given code: elsewhere the current context goes on as long as it can.

use std::ops::Range;

use raddle_world::{ContextId, Site};

use crate::scheduler::{Passing, Scheduler, View};
use crate::wrap::Wrap;

/// A scheduler that decides only inside some ranges of code.
#[derive(Debug)]
pub struct Focused<S> {
    inner: S,
    /// Sorted, not overlapping.
    ranges: Vec<Range<Site>>,
}

impl<S: Scheduler> Focused<S> {
    pub fn new(inner: S, ranges: Vec<Range<Site>>) -> Self {
        debug_assert!(ranges.is_sorted_by_key(|range| range.start));
        Self { inner, ranges }
    }

    fn is_inside(&self, site: Site) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= site);
        after > 0 && self.ranges[after - 1].contains(&site)
    }
}

impl<S: Scheduler> Wrap for Focused<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// What the inner scheduler foresees is not what it is asked.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        if view.can_stay() && !self.is_inside(view.site) {
            return view.current;
        }
        self.inner.pick(view)
    }
}
