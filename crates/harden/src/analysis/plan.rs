//! What to do at one site: the cheapest region that holds everything a re-execution could change, or the reason why
//! the site stays as it is.

use std::collections::BTreeSet;

use super::dominators;
use super::model::{Acquire, BlockId, Effect, Function, InstId, LockId, Operand, Site, SiteKind};
use super::region::{self, Extension, Form, Region};
use super::slice::{self, Slice};

/// Why a site is left untouched.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Pruned {
    /// No shared read that the failure depends on lies in the region.
    NoSharedRead,
    /// No lock is acquired in the region, so re-execution would release nothing.
    NoLockInRegion,
    /// An output without an oracle and without a checkable argument.
    NoOracle,
    /// The program itself tests this pointer before, or an earlier check covers it.
    AlreadyChecked,
    /// Fix mode was asked for other sites.
    NotSelected,
    /// Only many points by path would do, and keeping track of them costs too much in survival mode.
    TooManyPoints,
    /// The function holds something that cannot be proven safe to re-execute.
    UnsupportedFunction,
    /// The failing code is reached unconditionally.
    AlwaysFails,
    /// The pointer is a parameter and no caller can be re-executed.
    NoCallerToReexecute,
}

/// How a hardened site is re-executed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Points worth jumping back to; more than one needs a token.
    pub points: Vec<InstId>,
    /// Points of the region whose paths hold nothing that could change: reaching the site from there is final.
    pub useless: Vec<InstId>,
    /// Slot cells to restore and acquisitions to give back on the failing edge.
    pub cells: Vec<usize>,
    pub slots: Vec<usize>,
    pub acquires: Vec<InstId>,
    /// Writes to log, and calls that write into the log themselves.
    pub logs: Vec<InstId>,
    pub calls: Vec<InstId>,
    /// Calls that must turn out to be harmless, or the failing edge gives up.
    pub trusted: Vec<InstId>,
    /// A pad for deadlocks in callees, whose acquisitions and writes are in the log.
    pub serves_callees: bool,
    /// Instructions in the region and shared reads among them that matter.
    pub length: usize,
    pub reads: usize,
    /// A single dominating point would not have been enough.
    pub needs_paths: bool,
    region: Region,
}

impl Plan {
    /// Whether the region takes one of these locks on every way to `inst`.
    pub fn takes(&self, function: &Function, inst: InstId, locks: &BTreeSet<LockId>) -> bool {
        region::takes_before(function, &self.region, inst, locks)
    }
}

/// A plan is made of a region and what is useful in it.
struct Candidate {
    form: Form,
    region: Region,
    useful: BTreeSet<InstId>,
}

const PLAIN: Extension = Extension {
    restore: false,
    give_back: false,
    save: false,
    log: false,
    defers_shelter: false,
    trust: false,
};
const RESTORING: Extension = Extension {
    restore: true,
    ..PLAIN
};
const FULL: Extension = Extension {
    give_back: true,
    ..RESTORING
};
const SAVING: Extension = Extension { save: true, ..FULL };
const LOGGING: Extension = Extension {
    log: true,
    ..SAVING
};
const TRUSTING: Extension = Extension {
    trust: true,
    ..LOGGING
};
const UP: Extension = Extension {
    defers_shelter: true,
    ..LOGGING
};

/// Cheapest first; the last ones only where copies and the log are worth their price.
const FORMS: [(Form, Extension); 12] = [
    (Form::Dominating, PLAIN),
    (Form::Dominating, RESTORING),
    (Form::Dominating, FULL),
    (Form::All, PLAIN),
    (Form::All, RESTORING),
    (Form::All, FULL),
    (Form::Dominating, SAVING),
    (Form::All, SAVING),
    (Form::Dominating, LOGGING),
    (Form::All, LOGGING),
    (Form::Dominating, TRUSTING),
    (Form::All, TRUSTING),
];

/// What a site's region may hold at most. Between two locks code is not hot, and a deadlock is worse than a slow path;
/// oracles are few, and the user has asked for each; other sites log only where everything is wanted. Assertions are worth copies
/// of buffers, accesses through pointers are not.
fn fullest(site: &Site, reach: Reach, end: End) -> Extension {
    let logs =
        matches!(site.kind, SiteKind::Deadlock | SiteKind::Oracle) || reach == Reach::Longest;
    match end {
        End::Site if logs => TRUSTING,
        End::Pad if logs => LOGGING,
        End::Site if site.kind == SiteKind::Assertion => SAVING,
        _ => FULL,
    }
}

fn forms(site: &Site, reach: Reach, end: End) -> impl Iterator<Item = (Form, Extension)> {
    let most = fullest(site, reach, end);
    FORMS.into_iter().filter(move |(_, extension)| {
        (most.save || !extension.save)
            && (most.log || !extension.log)
            && (most.trust || !extension.trust)
    })
}

/// Where a region ends: at a site, whose failing edge can still give up, or at a call with a pad, which cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Site,
    Pad,
}

/// In survival mode, a token for more points than this would occupy a register where it is needed.
const CHEAP_POINTS_MAX: usize = 3;
/// In larger functions (interpreter loops) even that is too much: on SQLite it costs a tenth of the running time.
const CHEAP_BLOCKS_MAX: usize = 200;
/// Points that one call passes at most once cost next to nothing, however large the function is.
const RARE_POINTS_MAX: usize = 8;

/// Code that takes two locks is not hot, so a token may name more points there.
const LOCK_POINTS_MAX: usize = 16;

/// How much a region may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// A single dominating point wherever it repeats at least one read that matters; where it repeats none, a few points
    /// by path.
    Cheap,
    /// Everything that can be repeated: the most recent point on the path taken.
    Longest,
}

/// Plans one site inside its function.
pub fn intra(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    reach: Reach,
) -> Result<Plan, Pruned> {
    ending_at(function, idom, site, reach, End::Site)
}

fn ending_at(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    reach: Reach,
    end: End,
) -> Result<Plan, Pruned> {
    if !site.safe_edges.is_empty() {
        let region = region::before_failures(function, site, FULL);
        if slice::of_site(function, site, &region).reads.is_empty() {
            return Err(Pruned::NoSharedRead);
        }
    }
    if reach == Reach::Cheap
        && let Some(plan) = cheapest(function, idom, site, reach, end)
    {
        return Ok(plan);
    }
    let fullest = fullest(site, reach, end);
    let best = candidate(function, idom, site, Form::All, fullest);
    if best.useful.is_empty() {
        return Err(if site.kind == SiteKind::Deadlock {
            Pruned::NoLockInRegion
        } else {
            Pruned::NoSharedRead
        });
    }
    if reach == Reach::Cheap {
        return Err(Pruned::TooManyPoints);
    }
    for (form, extension) in forms(site, reach, end) {
        let cheaper = candidate(function, idom, site, form, extension);
        if cheaper.useful == best.useful
            && let Some(plan) = finish(function, idom, cheaper)
        {
            return Ok(plan);
        }
    }
    // No form has it all: the single point with the most to repeat is better than nothing.
    let single = candidate(function, idom, site, Form::Dominating, fullest);
    let is_worth_it = !single.useful.is_empty();
    let plan = is_worth_it
        .then(|| finish(function, idom, single))
        .flatten();
    plan.ok_or(Pruned::NoSharedRead)
}

/// The instructions that end the longest region of a site: what must change for the region to be longer.
pub fn ended_by(function: &Function, idom: &[Option<BlockId>], site: &Site) -> BTreeSet<InstId> {
    let region = candidate(function, idom, site, Form::All, TRUSTING).region;
    let mut found = BTreeSet::new();
    for &point in &region.points {
        let block = &function.blocks[function.block_of[point]];
        if point > block.body {
            found.insert(point - 1);
        } else {
            let lasts = block.preds.iter().map(|&pred| function.terminator(pred));
            let ends = |last: &InstId| {
                matches!(
                    function.insts[*last].effect,
                    Effect::Destroy | Effect::Release
                )
            };
            found.extend(lasts.filter(ends));
        }
    }
    found
}

/// What a site would get if nothing were left alone: the longest region with a single point.
pub fn unpruned(function: &Function, idom: &[Option<BlockId>], site: &Site) -> Option<Plan> {
    let single = candidate(function, idom, site, Form::Dominating, FULL);
    finish(function, idom, single)
}

/// Plans the return into a caller. The frames below are gone when its pad is entered, so there is no giving up any more:
/// every path must have a point that can be used.
pub fn for_pad(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    reach: Reach,
) -> Option<Plan> {
    let plan = ending_at(function, idom, site, reach, End::Pad).ok()?;
    let plan = if plan.useless.is_empty() {
        plan
    } else {
        let fullest = fullest(site, reach, End::Pad);
        let single = candidate(function, idom, site, Form::Dominating, fullest);
        if single.useful.is_empty() {
            return None;
        }
        finish(function, idom, single)?
    };
    Some(Plan {
        serves_callees: site.kind == SiteKind::Deadlock,
        ..plan
    })
}

/// The first form that repeats anything that matters. Of the dominating forms, one with more reads is taken only if it
/// has to pay nothing for them.
fn cheapest(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    reach: Reach,
    end: End,
) -> Option<Plan> {
    forms(site, reach, end).find_map(|(form, extension)| {
        let found = candidate(function, idom, site, form, extension);
        if found.useful.is_empty() {
            return None;
        }
        let late = late_starts(function, idom, site, &found)
            .map(|starts| starting_at(function, idom, site, form, extension, &starts))
            .filter(|late| !late.useful.is_empty());
        let chosen = late.unwrap_or(found);
        is_cheap(function, site.kind, &chosen.region)
            .then(|| finish(function, idom, chosen))
            .flatten()
    })
}

/// Whether keeping track of the region's points is worth it in survival mode.
fn is_cheap(function: &Function, kind: SiteKind, region: &Region) -> bool {
    let points_max = if kind == SiteKind::Deadlock {
        LOCK_POINTS_MAX
    } else if function.blocks.len() <= CHEAP_BLOCKS_MAX {
        CHEAP_POINTS_MAX
    } else {
        1
    };
    let is_rare = |&point: &InstId| !function.is_in_cycle(function.block_of[point]);
    let count = region.points.len();
    count <= points_max || count <= RARE_POINTS_MAX && region.points.iter().all(is_rare)
}

/// Where regions may begin so that nothing is repeated in vain: at the first read that matters, or with several points,
/// on each path at the last one. What lies before would need its inputs in registers. Of locks, the one that closes the
/// cycle may be any, so none of them is left out.
fn late_starts(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    found: &Candidate,
) -> Option<BTreeSet<InstId>> {
    match found.form {
        Form::All if site.kind == SiteKind::Deadlock => None,
        Form::All => Some(found.useful.clone()),
        Form::Dominating => late_start(function, idom, found).map(|start| BTreeSet::from([start])),
    }
}

/// The first read that matters, or the choice after which it may be one or another.
fn late_start(function: &Function, idom: &[Option<BlockId>], found: &Candidate) -> Option<InstId> {
    let is_above = |above: InstId, below: InstId| {
        let (a, b) = (function.block_of[above], function.block_of[below]);
        if a == b {
            above <= below
        } else {
            dominators::dominates(idom, a, b)
        }
    };
    let is_above_all = |start: InstId| found.useful.iter().all(|&read| is_above(start, read));
    let first = found
        .useful
        .iter()
        .copied()
        .find(|&read| is_above_all(read));
    let start = first.or_else(|| {
        // The last choice before the paths to the reads part.
        let mut block = found.useful.first().map(|&read| function.block_of[read]);
        loop {
            block = idom[block?];
            let choice = function.terminator(block?);
            if is_above_all(choice) {
                return Some(choice);
            }
        }
    });
    start.filter(|start| found.region.inside.contains(start))
}

/// The longest region of a site and its slice over it, for the question whether callers can be re-executed. What a
/// deadlock needs undone in frames that disappear comes from the log.
pub fn reach(function: &Function, idom: &[Option<BlockId>], site: &Site) -> (Region, Slice) {
    let extension = if site.kind == SiteKind::Deadlock {
        UP
    } else {
        FULL
    };
    let region = region::find(
        function,
        idom,
        site.at,
        Form::All,
        extension,
        &BTreeSet::new(),
    );
    let slice = slice::of_site(function, site, &region);
    (region, slice)
}

fn candidate(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    form: Form,
    extension: Extension,
) -> Candidate {
    starting_at(function, idom, site, form, extension, &BTreeSet::new())
}

fn starting_at(
    function: &Function,
    idom: &[Option<BlockId>],
    site: &Site,
    form: Form,
    extension: Extension,
    starts: &BTreeSet<InstId>,
) -> Candidate {
    let region = region::find(function, idom, site.at, form, extension, starts);
    let useful = if site.kind == SiteKind::Deadlock {
        let takes_lock = |&&inst: &&InstId| match function.insts[inst].effect {
            Effect::Acquire(kind) => kind == Acquire::Lock,
            _ => function.logged_calls[&inst].takes_lock,
        };
        let taken = region.acquires.iter().chain(&region.calls);
        taken
            .filter(takes_lock)
            .copied()
            .filter(|&inst| !site.critical.contains(&Operand::Inst(inst)))
            .collect()
    } else {
        slice::of_site(function, site, &region).reads
    };
    Candidate {
        form,
        region,
        useful,
    }
}

/// The plan for a region, or none if no point of it can be used.
fn finish(function: &Function, idom: &[Option<BlockId>], candidate: Candidate) -> Option<Plan> {
    let Candidate {
        form,
        region,
        useful,
    } = candidate;
    let (points, useless): (Vec<InstId>, Vec<InstId>) = region.points.iter().partition(|&&point| {
        form == Form::Dominating
            || region::reaches(function, &region, point, &|inst| useful.contains(&inst))
                && !redefines(function, idom, &region, point)
    });
    (!points.is_empty()).then(|| Plan {
        points,
        useless,
        cells: region.cells.iter().copied().collect(),
        slots: region.slots.iter().copied().collect(),
        acquires: region.acquires.iter().copied().collect(),
        logs: region.logs.iter().copied().collect(),
        calls: region.calls.iter().copied().collect(),
        trusted: region.trusted.iter().copied().collect(),
        serves_callees: false,
        length: region.inside.len(),
        reads: useful.len(),
        needs_paths: form == Form::All,
        region,
    })
}

/// Whether the region, after `point`, runs again what was computed before it: then the values with which the point was
/// passed are no longer there when the site fails. A point that dominates its site cannot have this trouble.
fn redefines(
    function: &Function,
    idom: &[Option<BlockId>],
    region: &Region,
    point: InstId,
) -> bool {
    let home = function.block_of[point];
    region::reaches(function, region, point, &|inst| {
        let block = function.block_of[inst];
        if block == home {
            inst < point
        } else {
            dominators::dominates(idom, block, home)
        }
    })
}
