//! Inter-procedural re-execution (section 5.4.3): when the region of a site reaches the function's entry and the
//! failure depends on a parameter, the caller may re-read what it passes.
//!
//! A call is marked [`Mark::Pad`] when the caller holds a region worth re-executing that ends at the call, and
//! [`Mark::Through`] when the caller only hands its own parameter on and did nothing destroying before: then its own
//! callers are looked at, up to a number of levels.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{BlockId, Function, InstId, Operand, Shape, Site, SiteKind};
use super::plan::{self, Plan, Reach};
use super::region::{self, Region};

/// A function with what the module-wide analysis needs of it.
#[derive(Debug)]
pub struct Body {
    pub function: Function,
    pub idom: Vec<Option<BlockId>>,
    /// Whether its code may be changed.
    pub is_supported: bool,
}

/// A module's bodies, and who calls whom.
#[derive(Debug)]
pub struct Program {
    pub bodies: Vec<Body>,
    /// For the regions in callers.
    reach: Reach,
    callers: BTreeMap<usize, Vec<CallId>>,
}

impl Program {
    pub fn new(bodies: Vec<Body>, reach: Reach) -> Self {
        let mut callers: BTreeMap<usize, Vec<CallId>> = BTreeMap::new();
        for (index, body) in bodies.iter().enumerate() {
            if !body.is_supported {
                continue;
            }
            for (inst, details) in body.function.insts.iter().enumerate() {
                if let Shape::Call { callee, .. } = &details.shape {
                    callers.entry(*callee).or_default().push((index, inst));
                }
            }
        }
        Self {
            bodies,
            reach,
            callers,
        }
    }
}

/// A call, by caller and instruction.
pub type CallId = (usize, InstId);

/// What is done at a call.
#[derive(Debug, Clone)]
pub enum Mark {
    Pad(Plan),
    Through,
}

/// All marks of a module.
pub type Marks = BTreeMap<CallId, Mark>;

/// Looks for callers that can be re-executed when `site` of body `index` fails; adds marks and says whether there are
/// any.
pub fn extend(
    program: &Program,
    index: usize,
    site: &Site,
    levels: usize,
    marks: &mut Marks,
) -> bool {
    let body = &program.bodies[index];
    let (region, slice) = plan::reach(&body.function, &body.idom, site);
    if !starts_at_entry(&body.function, &region) || region_undoes(&region) {
        return false;
    }
    let is_deadlock = site.kind == SiteKind::Deadlock;
    if !is_deadlock && slice.args.is_empty() {
        return false;
    }
    if !has_hopeless_path(&body.function, &region, site, &slice.reads) {
        return false;
    }
    let found = callers(program, index, &slice.args, is_deadlock, levels);
    let any = found.values().any(|mark| matches!(mark, Mark::Pad(_)));
    if any {
        for (call, mark) in found {
            // A pad stays a pad: both are legal, but only one of them re-executes.
            match (marks.get(&call), &mark) {
                (Some(Mark::Pad(_)), Mark::Through) => {}
                _ => {
                    marks.insert(call, mark);
                }
            }
        }
    }
    any
}

/// Condition 1: no destroying operation between the entry and the site.
fn starts_at_entry(function: &Function, region: &Region) -> bool {
    region.points.len() == 1 && region.points.contains(&function.blocks[0].body)
}

/// The callee's own frame disappears, so nothing in it could be given back or restored.
fn region_undoes(region: &Region) -> bool {
    !region.acquires.is_empty()
}

/// Condition 3: at least one path from the entry to the site holds nothing that could change.
fn has_hopeless_path(
    function: &Function,
    region: &Region,
    site: &Site,
    reads: &BTreeSet<InstId>,
) -> bool {
    if reads.is_empty() {
        return true;
    }
    let mut without = region.clone();
    for read in reads {
        without.inside.remove(read);
    }
    without.inside.insert(site.at);
    region::reaches(function, &without, function.blocks[0].body, &|inst| {
        inst == site.at
    })
}

fn callers(
    program: &Program,
    callee: usize,
    critical: &BTreeSet<usize>,
    is_deadlock: bool,
    levels: usize,
) -> Marks {
    let mut marks = Marks::new();
    if levels == 0 {
        return marks;
    }
    for &call in program.callers.get(&callee).into_iter().flatten() {
        let details = &program.bodies[call.0].function.insts[call.1];
        let Shape::Call { passed, .. } = &details.shape else {
            continue;
        };
        let values: Vec<Operand> = critical
            .iter()
            .filter_map(|&number| passed.get(number).copied().flatten())
            .collect();
        marks.extend(one_call(program, call, values, is_deadlock, levels));
    }
    marks
}

fn one_call(
    program: &Program,
    call: CallId,
    values: Vec<Operand>,
    is_deadlock: bool,
    levels: usize,
) -> Marks {
    let body = &program.bodies[call.0];
    // A dereference follows values only, which is what the critical parameters are.
    let site = Site {
        kind: if is_deadlock {
            SiteKind::Deadlock
        } else {
            SiteKind::Dereference
        },
        at: call.1,
        critical: values,
        safe_edges: BTreeSet::new(),
    };
    if let Some(plan) = plan::for_pad(&body.function, &body.idom, &site, program.reach) {
        return Marks::from([(call, Mark::Pad(plan))]);
    }
    let (region, slice) = plan::reach(&body.function, &body.idom, &site);
    let goes_on = starts_at_entry(&body.function, &region)
        && !region_undoes(&region)
        && (is_deadlock || !slice.args.is_empty());
    if !goes_on {
        return Marks::new();
    }
    let mut above = callers(program, call.0, &slice.args, is_deadlock, levels - 1);
    if above.values().any(|mark| matches!(mark, Mark::Pad(_))) {
        above.insert(call, Mark::Through);
        above
    } else {
        Marks::new()
    }
}
