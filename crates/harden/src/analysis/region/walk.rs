//! The walk backwards from a site, until something ends the region.

use std::collections::BTreeSet;

use super::{Extension, Region, region_of};
use crate::analysis::model::{Acquire, BlockId, Effect, Function, InstId};

pub(super) struct Walk<'a> {
    pub(super) function: &'a Function,
    pub(super) extension: Extension,
    pub(super) ended_by: &'a BTreeSet<InstId>,
    pub(super) starts: &'a BTreeSet<InstId>,
}

impl Walk<'_> {
    fn destroys(&self, inst: InstId) -> bool {
        if self.ended_by.contains(&inst) {
            return true;
        }
        match self.function.insts[inst].effect {
            Effect::Destroy => true,
            Effect::Acquire(Acquire::Lock | Acquire::Memory)
            | Effect::Release
            | Effect::FreshWrite { .. } => !self.extension.give_back,
            Effect::LoggedWrite { .. } | Effect::LoggedCall => !self.extension.log,
            Effect::PromisedCall => !self.extension.trust,
            _ => false,
        }
    }

    /// Scans `block` backwards from `end`; returns the point if the block holds one.
    fn scan(&self, block: BlockId, end: InstId, inside: &mut BTreeSet<InstId>) -> Option<InstId> {
        let span = &self.function.blocks[block];
        for inst in (span.first..end).rev() {
            if self.destroys(inst) {
                return Some(inst + 1);
            }
            inside.insert(inst);
            if self.starts.contains(&inst) {
                return Some(inst);
            }
        }
        let starts_here = block == 0
            || span.preds.is_empty()
            || span
                .preds
                .iter()
                .any(|&pred| self.destroys(self.function.terminator(pred)));
        starts_here.then(|| {
            (span.first..span.body).for_each(|inst| {
                inside.remove(&inst);
            });
            span.body
        })
    }

    /// One point per path, except those through the edges left out.
    pub(super) fn paths(&self, site: InstId, left_out: &BTreeSet<(BlockId, BlockId)>) -> Region {
        let mut points = BTreeSet::new();
        let mut inside = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut work = vec![(self.function.block_of[site], site)];
        while let Some((block, end)) = work.pop() {
            if let Some(point) = self.scan(block, end, &mut inside) {
                points.insert(point);
                continue;
            }
            for &pred in &self.function.blocks[block].preds {
                if !left_out.contains(&(pred, block)) && seen.insert(pred) {
                    work.push((pred, self.function.blocks[pred].end));
                }
            }
        }
        region_of(points, inside)
    }

    pub(super) fn dominating(&self, idom: &[Option<BlockId>], site: InstId) -> Region {
        let mut inside = BTreeSet::new();
        let mut current = self.function.block_of[site];
        if let Some(point) = self.scan(current, site, &mut inside) {
            return region_of(BTreeSet::from([point]), inside);
        }
        loop {
            let body = self.function.blocks[current].body;
            let Some(above) = idom[current] else {
                return region_of(BTreeSet::from([body]), inside);
            };
            let Some(between) = self.clean_between(above, current) else {
                let first = self.function.blocks[current].first;
                (first..body).for_each(|inst| {
                    inside.remove(&inst);
                });
                return region_of(BTreeSet::from([body]), inside);
            };
            for block in between {
                let span = &self.function.blocks[block];
                inside.extend(span.first..span.end);
            }
            let end = self.function.blocks[above].end;
            if let Some(point) = self.scan(above, end, &mut inside) {
                return region_of(BTreeSet::from([point]), inside);
            }
            current = above;
        }
    }

    /// The blocks on paths from `above` (exclusive) to the start of `block`, if nothing in them destroys.
    fn clean_between(&self, above: BlockId, block: BlockId) -> Option<BTreeSet<BlockId>> {
        let mut between = BTreeSet::new();
        let mut work = self.function.blocks[block].preds.clone();
        while let Some(at) = work.pop() {
            if at == above {
                if self.destroys(self.function.terminator(at)) {
                    return None;
                }
                continue;
            }
            if !between.insert(at) {
                continue;
            }
            let span = &self.function.blocks[at];
            if (span.first..span.end).any(|inst| self.destroys(inst)) {
                return None;
            }
            work.extend(&span.preds);
        }
        Some(between)
    }
}
