//! Re-execution regions (section 5.3.2 of the ConAir chapter): what may be repeated before a failure site.
//!
//! A region is found backwards from the site. It ends, on each path, right after the nearest instruction that must not
//! be repeated, or at the function's entry; those places are the re-execution points. There are two forms:
//!
//! * [`Form::All`]: one point per path, the most recent one on the path taken (the paper's form);
//! * [`Form::Dominating`]: the highest single point that every path to the site passes, with nothing destroying in
//!   between. Its region may be shorter, but jumping back to it needs no bookkeeping at all.

use std::collections::BTreeSet;

use super::model::{BlockId, Effect, Function, InstId, LockId, Shelter, Site, WHOLE_SLOT};
use super::sections::Sections;

mod walk;

use walk::Walk;

/// Log entries that the regions of one function may need; known to the runtime, whose log holds those of a function and
/// its callers.
pub const LOG_MAX: usize = 24;

/// How the points are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Dominating,
    All,
}

/// What may lie inside a region, at a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    /// Stores to private stack slots, restored on the failing edge.
    pub restore: bool,
    /// Allocations and lock acquisitions, given back on the failing edge.
    pub give_back: bool,
    /// Private buffers of which any part may be written, restored from a copy.
    pub save: bool,
    /// Writes that are put back from the log, and calls of functions that write into it.
    pub log: bool,
    /// Locks that shelter those writes may have been taken by a caller.
    pub defers_shelter: bool,
    /// Calls of functions of other objects, if the linker finds the promise that they harm nothing.
    pub trust: bool,
}

/// A region that ends at a site.
#[derive(Debug, Clone)]
pub struct Region {
    /// Each point is the instruction before which re-execution starts.
    pub points: BTreeSet<InstId>,
    /// Instructions that run between a point and the site.
    pub inside: BTreeSet<InstId>,
    /// Cells of private slots to restore, and slots of which everything must be.
    pub cells: BTreeSet<usize>,
    pub slots: BTreeSet<usize>,
    /// Acquisitions to give back.
    pub acquires: BTreeSet<InstId>,
    /// Writes to log.
    pub logs: BTreeSet<InstId>,
    /// Calls that write into the log themselves.
    pub calls: BTreeSet<InstId>,
    /// Calls that must turn out to be harmless.
    pub trusted: BTreeSet<InstId>,
    /// Of each of these sets, a caller must have taken one lock.
    pub needs: BTreeSet<BTreeSet<LockId>>,
    /// Locks that are released in it, having been taken in it.
    pub released: BTreeSet<LockId>,
}

impl Region {
    /// A region of which nothing else is known yet.
    pub(super) fn between(points: BTreeSet<InstId>, inside: BTreeSet<InstId>) -> Self {
        region_of(points, inside)
    }

    /// Whether something in it is undone from the log.
    pub fn uses_log(&self) -> bool {
        !self.logs.is_empty() || !self.calls.is_empty()
    }
}

/// The region of `site` in the given form, legal by construction. It does not go back beyond any of
/// `starts`.
pub fn find(
    function: &Function,
    idom: &[Option<BlockId>],
    site: InstId,
    form: Form,
    extension: Extension,
    starts: &BTreeSet<InstId>,
) -> Region {
    let mut ended_by = BTreeSet::new();
    loop {
        let walk = Walk {
            function,
            extension,
            ended_by: &ended_by,
            starts,
        };
        let mut region = match form {
            Form::All => walk.paths(site, &BTreeSet::new()),
            Form::Dominating => walk.dominating(idom, site),
        };
        let offenders = offenders(function, &mut region, site, extension);
        if offenders.is_empty() {
            return region;
        }
        ended_by.extend(offenders);
    }
}

/// At least what a re-execution could repeat on the paths on which the site may fail.
pub fn before_failures(function: &Function, site: &Site, extension: Extension) -> Region {
    let walk = Walk {
        function,
        extension,
        ended_by: &BTreeSet::new(),
        starts: &BTreeSet::new(),
    };
    walk.paths(site.at, &site.safe_edges)
}

/// Instructions inside the region that are legal only under conditions which do not hold; fills in what the failing
/// edge must undo.
fn offenders(
    function: &Function,
    region: &mut Region,
    site: InstId,
    extension: Extension,
) -> Vec<InstId> {
    let mut found = Vec::new();
    let mut undone = region_of(BTreeSet::new(), BTreeSet::new());
    let sections = if extension.give_back {
        Sections::find(function, region, &BTreeSet::from([site]))
    } else {
        Sections::default()
    };
    region.released = sections.locks(function);
    // What lies behind such a release may be legal in the shorter region that remains.
    let unbalanced: Vec<InstId> = region
        .inside
        .iter()
        .copied()
        .filter(|inst| function.insts[*inst].effect == Effect::Release)
        .filter(|inst| !sections.releases.contains(inst))
        .collect();
    if !unbalanced.is_empty() {
        return unbalanced;
    }
    for &inst in &region.inside {
        let is_legal = match function.insts[inst].effect {
            Effect::SlotEnd { slot } => {
                is_covered(function, region, inst, &mut begins(function, slot))
            }
            Effect::SlotWrite { slot, cell } => {
                is_covered(function, region, inst, &mut begins(function, slot))
                    || slot_is_restored(function, region, extension, (slot, cell), &mut undone)
            }
            Effect::FreshWrite { alloc } => is_covered(function, region, inst, &mut |other| {
                (other == alloc).then_some(true)
            }),
            // A trylock that is tried again has taken nothing before; only the last time can.
            Effect::Acquire(_) if inst == site && function.tries(inst) => {
                undone.acquires.insert(inst)
            }
            Effect::Acquire(_) if sections.settled.contains(&inst) => true,
            Effect::Acquire(_) if repeats(function, region, inst) => false,
            Effect::Acquire(_) => undone.acquires.insert(inst),
            Effect::LoggedWrite { .. } | Effect::LoggedCall => {
                let found = (&*region, &sections);
                is_logged(function, found, inst, extension, &mut undone)
            }
            Effect::PromisedCall => undone.trusted.insert(inst),
            _ => true,
        };
        if !is_legal {
            found.push(inst);
        }
    }
    if found.is_empty() {
        found.extend(beyond_the_log(function, region, &undone, &sections));
    }
    region.cells = undone.cells;
    region.slots = undone.slots;
    region.acquires = undone.acquires;
    region.logs = undone.logs;
    region.calls = undone.calls;
    region.trusted = undone.trusted;
    region.needs = undone.needs;
    found
}

/// The last instruction, going back, for which the log has no place any more.
fn beyond_the_log(
    function: &Function,
    region: &Region,
    undone: &Region,
    sections: &Sections,
) -> Option<InstId> {
    let mut entries = 0;
    region.inside.iter().rev().copied().find(|&inst| {
        entries += entries_of(function, undone, inst);
        entries += usize::from(sections.settled.contains(&inst));
        entries > LOG_MAX
    })
}

/// Whether a write, or a call that writes, can be undone from the log: no other thread can have seen it, and it happens
/// once.
fn is_logged(
    function: &Function,
    (region, sections): (&Region, &Sections),
    inst: InstId,
    extension: Extension,
    undone: &mut Region,
) -> bool {
    let (shelters, is_vouched_for): (Vec<Shelter>, bool) = match function.insts[inst].effect {
        Effect::LoggedWrite { shelter } => {
            let shelter = function.shelters[shelter].clone();
            let is_vouched_for = shelter == Shelter::Anywhere;
            (vec![shelter], is_vouched_for)
        }
        _ => {
            let log = &function.logged_calls[&inst];
            let shelters = log.needs.iter().cloned().map(Shelter::Locks).collect();
            (shelters, log.writes_anywhere)
        }
    };
    let is_hidden = !(is_vouched_for && sections.publish(function, region, inst))
        && shelters
            .iter()
            .all(|shelter| is_sheltered(function, region, inst, shelter, extension, undone))
        && !repeats(function, region, inst);
    let is_write = matches!(function.insts[inst].effect, Effect::LoggedWrite { .. });
    if is_hidden && is_write {
        undone.logs.insert(inst);
    } else if is_hidden {
        undone.calls.insert(inst);
    }
    is_hidden
}

/// What an instruction adds to the log, acquisitions counted in because a caller may have them logged.
fn entries_of(function: &Function, undone: &Region, inst: InstId) -> usize {
    if undone.logs.contains(&inst) {
        function
            .log_entries
            .get(&inst)
            .copied()
            .unwrap_or(LOG_MAX + 1)
    } else if undone.calls.contains(&inst) {
        function.logged_calls[&inst].entries
    } else {
        usize::from(undone.acquires.contains(&inst))
    }
}

/// Whether a write to a private slot whose lifetime is longer than the region can be taken back: from a copy of its cell
/// or, at a higher price, of the whole slot.
fn slot_is_restored(
    function: &Function,
    region: &Region,
    extension: Extension,
    (slot, cell): (usize, usize),
    undone: &mut Region,
) -> bool {
    let begins_somewhere = region
        .inside
        .iter()
        .any(|&other| begins(function, slot)(other).is_some());
    if begins_somewhere {
        return false;
    }
    if extension.restore && cell != WHOLE_SLOT {
        undone.cells.insert(cell);
        return true;
    }
    let is_saved = extension.save && function.small_slots.contains(&slot);
    if is_saved {
        undone.slots.insert(slot);
    }
    is_saved
}

/// Whether the locks that shelter a write are taken in the region, or, where that is left to callers, are noted.
fn is_sheltered(
    function: &Function,
    region: &Region,
    inst: InstId,
    shelter: &Shelter,
    extension: Extension,
    undone: &mut Region,
) -> bool {
    let Shelter::Locks(locks) = shelter else {
        return true;
    };
    if takes_before(function, region, inst, locks) {
        return true;
    }
    let kept: BTreeSet<LockId> = locks.difference(&region.released).copied().collect();
    extension.defers_shelter && !kept.is_empty() && {
        undone.needs.insert(kept);
        true
    }
}

/// Whether every path from a point to `inst` takes one of these locks, and the region keeps it.
pub fn takes_before(
    function: &Function,
    region: &Region,
    inst: InstId,
    locks: &BTreeSet<LockId>,
) -> bool {
    let kept: BTreeSet<LockId> = locks.difference(&region.released).copied().collect();
    is_covered(function, region, inst, &mut |other| {
        function.takes_one_of(other, &kept).then_some(true)
    })
}

fn begins(function: &Function, slot: usize) -> impl FnMut(InstId) -> Option<bool> {
    move |inst| (function.insts[inst].effect == Effect::SlotBegin { slot }).then_some(true)
}

/// Whether every path backwards from `inst` meets an instruction of which `by` says yes before it meets one of which it
/// says no, or a point of the region.
pub(super) fn is_covered(
    function: &Function,
    region: &Region,
    inst: InstId,
    by: &mut dyn FnMut(InstId) -> Option<bool>,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![inst];
    while let Some(end) = work.pop() {
        let block = function.block_of[end.min(function.insts.len() - 1)];
        match scan_back(function, region, block, end, by) {
            Scan::Covered => {}
            Scan::Point => return false,
            Scan::Start => {
                if block == 0 {
                    return false;
                }
                for &pred in &function.blocks[block].preds {
                    if seen.insert(pred) {
                        let terminator = function.terminator(pred);
                        match by(terminator) {
                            Some(true) => {}
                            Some(false) => return false,
                            None => work.push(terminator),
                        }
                    }
                }
            }
        }
    }
    true
}

enum Scan {
    Covered,
    Point,
    Start,
}

fn scan_back(
    function: &Function,
    region: &Region,
    block: BlockId,
    end: InstId,
    by: &mut dyn FnMut(InstId) -> Option<bool>,
) -> Scan {
    if region.points.contains(&end) {
        return Scan::Point;
    }
    for inst in (function.blocks[block].first..end).rev() {
        match by(inst) {
            Some(true) => return Scan::Covered,
            Some(false) => return Scan::Point,
            None => {}
        }
        if region.points.contains(&inst) {
            return Scan::Point;
        }
    }
    Scan::Start
}

/// Whether the region runs `inst` more than once without passing a point in between.
fn repeats(function: &Function, region: &Region, inst: InstId) -> bool {
    reaches(function, region, inst + 1, &|other| other == inst)
}

/// Whether, going forward inside the region from `start` without passing a point, `wanted` is met.
pub fn reaches(
    function: &Function,
    region: &Region,
    start: InstId,
    wanted: &dyn Fn(InstId) -> bool,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![(start, true)];
    while let Some((from, is_first)) = work.pop() {
        let block = function.block_of[from];
        let mut inst = from;
        loop {
            if inst == function.blocks[block].end {
                break;
            }
            let is_start = is_first && inst == from;
            if !is_start && region.points.contains(&inst) || !region.inside.contains(&inst) {
                break;
            }
            if wanted(inst) {
                return true;
            }
            inst += 1;
        }
        if inst == function.blocks[block].end {
            for &succ in &function.blocks[block].succs {
                if seen.insert(succ) {
                    work.push((function.blocks[succ].first, false));
                }
            }
        }
    }
    false
}

fn region_of(points: BTreeSet<InstId>, inside: BTreeSet<InstId>) -> Region {
    Region {
        points,
        inside,
        cells: BTreeSet::new(),
        slots: BTreeSet::new(),
        acquires: BTreeSet::new(),
        logs: BTreeSet::new(),
        calls: BTreeSet::new(),
        trusted: BTreeSet::new(),
        needs: BTreeSet::new(),
        released: BTreeSet::new(),
    }
}
