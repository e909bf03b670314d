//! Backward slices inside a region (section 5.4.2): which shared reads can change the outcome at a site.
//!
//! A region writes nothing but registers and private slots, so the slice needs no alias analysis: a read of shared
//! memory is a leaf whose address is followed, a read of a private slot continues at the region's writes to that slot.

use std::collections::BTreeSet;

use super::model::{BlockId, Effect, Function, InstId, Operand, Shape, Site, SiteKind};
use super::region::Region;

/// What a failure depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// Shared reads inside the region.
    pub reads: BTreeSet<InstId>,
    /// Parameters of the function.
    pub args: BTreeSet<usize>,
}

/// The slice of a site.
///
/// Assertions depend on the branches that lead to them. For pointers and output arguments only the value itself is
/// followed (with the branches that choose between the inputs of a phi): whether the access is reached at all depends
/// on nearly everything, and a check that rests on that alone costs more than it saves.
pub fn of_site(function: &Function, site: &Site, region: &Region) -> Slice {
    let mut start = site.critical.clone();
    if matches!(site.kind, SiteKind::Assertion | SiteKind::Oracle) {
        for branch in controlling(function, region, function.block_of[site.at]) {
            start.extend(&function.insts[branch].operands);
        }
    }
    of_values(function, &start, region)
}

/// The slice of given values.
pub fn of_values(function: &Function, start: &[Operand], region: &Region) -> Slice {
    let mut slice = Slice::default();
    let mut seen = BTreeSet::new();
    let mut work = start.to_vec();
    while let Some(value) = work.pop() {
        let inst = match value {
            Operand::Arg(number) => {
                slice.args.insert(number);
                continue;
            }
            Operand::Inst(inst) => inst,
        };
        if !region.inside.contains(&inst) || !seen.insert(inst) {
            continue;
        }
        let details = &function.insts[inst];
        work.extend(&details.operands);
        match details.effect {
            Effect::SharedRead => {
                slice.reads.insert(inst);
            }
            Effect::SlotRead { slot } => {
                work.extend(slot_writes(function, region, slot));
            }
            _ => {}
        }
        if details.shape == Shape::Phi {
            for branch in controlling(function, region, function.block_of[inst]) {
                work.extend(&function.insts[branch].operands);
            }
        }
    }
    slice
}

fn slot_writes<'a>(
    function: &'a Function,
    region: &'a Region,
    wanted: usize,
) -> impl Iterator<Item = &'a Operand> {
    region
        .inside
        .iter()
        .filter(move |&&inst| {
            matches!(function.insts[inst].effect, Effect::SlotWrite { slot, .. } if slot == wanted)
        })
        .flat_map(|&inst| &function.insts[inst].operands)
}

/// Choices inside the region on the way to `target`. Some of them may lead there either way; counting those too only
/// keeps a site that might have been pruned.
fn controlling(function: &Function, region: &Region, target: BlockId) -> Vec<InstId> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut work = function.blocks[target].preds.clone();
    while let Some(block) = work.pop() {
        let terminator = function.terminator(block);
        if !region.inside.contains(&terminator) || !seen.insert(block) {
            continue;
        }
        if function.insts[terminator].shape == Shape::Choice {
            found.push(terminator);
        }
        work.extend(&function.blocks[block].preds);
    }
    found
}
