//! Balanced sections: what is taken inside a region and given back in it before the site. A critical section that only
//! reads, or memory that is allocated and freed again, leaves nothing behind, so running it once more harms nothing.
//!
//! A release is balanced if every way to it comes from an acquisition of the very same object since the point, and each of
//! these acquisitions is *settled*: every way from it to the site passes a release of that object. The same object means
//! the same computation from the same values, none of which is computed anew in between.

use std::collections::BTreeSet;

use super::model::{Effect, Function, InstId, LockHow, LockId};
use super::region::{self, Region};

/// The balanced sections of a region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections {
    /// Acquisitions that are sure to have been given back when the region ends.
    pub settled: BTreeSet<InstId>,
    /// The releases that belong to them.
    pub releases: BTreeSet<InstId>,
}

impl Sections {
    /// The sections of a region that ends at `end`.
    pub fn find(function: &Function, region: &Region, end: &BTreeSet<InstId>) -> Self {
        let mut found = Self::default();
        for &release in region.inside.range(..) {
            if function.insts[release].effect != Effect::Release {
                continue;
            }
            let Some(acquires) = acquires_before(function, region, release) else {
                continue;
            };
            if acquires
                .iter()
                .all(|&acquire| is_settled(function, region, acquire, end))
            {
                found.settled.extend(acquires);
                found.releases.insert(release);
            }
        }
        found
    }

    /// The sections of a whole function, from its entry to its returns.
    pub fn of_function(function: &Function, counting: &BTreeSet<InstId>) -> Self {
        let has_release = counting
            .iter()
            .any(|&inst| function.insts[inst].effect == Effect::Release);
        if !has_release {
            return Self::default();
        }
        let entry = function.blocks[0].body;
        let region = Region::between(BTreeSet::from([entry]), counting.clone());
        let ends = function
            .returns
            .iter()
            .map(|&block| function.terminator(block));
        Self::find(function, &region, &ends.collect())
    }

    /// Locks that the sections release.
    pub fn locks(&self, function: &Function) -> BTreeSet<LockId> {
        let uses = self.releases.iter();
        uses.filter_map(|release| function.lock_uses.get(release)?.id)
            .collect()
    }

    /// Whether something written at `inst` may be known to others when the region ends: a section that was entered before
    /// it is left after it. What was written before a section that itself writes nothing is not published by it: whatever
    /// reads it behind that section's release could as well have come before its beginning, and would be a data race.
    pub fn publish(&self, function: &Function, region: &Region, inst: InstId) -> bool {
        if self.releases.is_empty() {
            return false;
        }
        let mut open = region.clone();
        for acquire in &self.settled {
            open.inside.remove(acquire);
        }
        region::reaches(function, &open, inst + 1, &|other| {
            self.releases.contains(&other)
        })
    }
}

/// The latest acquisitions of the object that `release` gives back, one on each way; none if some way has none.
fn acquires_before(
    function: &Function,
    region: &Region,
    release: InstId,
) -> Option<BTreeSet<InstId>> {
    let object = function.objects.get(&release)?;
    let mut found = BTreeSet::new();
    let is_covered = region::is_covered(function, region, release, &mut |inst| {
        let is_same = function
            .objects
            .get(&inst)
            .is_some_and(|other| other.name == object.name);
        if is_same {
            // One that may have taken nothing, or another release, leaves open what this one gives back.
            let takes = matches!(function.insts[inst].effect, Effect::Acquire(_))
                && !may_fail(function, inst);
            if takes {
                found.insert(inst);
            }
            return Some(takes);
        }
        // A value that the object is computed from is another one beyond this.
        object.made_of.contains(&inst).then_some(false)
    });
    (is_covered && !found.is_empty()).then_some(found)
}

fn may_fail(function: &Function, acquire: InstId) -> bool {
    function
        .lock_uses
        .get(&acquire)
        .is_some_and(|using| using.how == LockHow::Tries)
}

/// Whether every way from an acquisition to the end passes a release of the same object.
fn is_settled(
    function: &Function,
    region: &Region,
    acquire: InstId,
    end: &BTreeSet<InstId>,
) -> bool {
    let Some(object) = function.objects.get(&acquire) else {
        return false;
    };
    let mut held = region.clone();
    held.inside.retain(|inst| {
        function.insts[*inst].effect != Effect::Release
            || function
                .objects
                .get(inst)
                .is_none_or(|other| other.name != object.name)
    });
    held.inside.extend(end);
    !region::reaches(function, &held, acquire + 1, &|inst| end.contains(&inst))
}
