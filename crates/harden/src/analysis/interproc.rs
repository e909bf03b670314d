//! Inter-procedural re-execution (section 5.4.3): when the region of a site reaches the function's entry and the
//! failure depends on a parameter, the caller may re-read what it passes.
//!
//! A call is marked [`Mark::Pad`] when the caller holds a region worth re-executing that ends at the call, and
//! [`Mark::Through`] when the caller only hands its own parameter on and did nothing destroying before: then its own
//! callers are looked at, up to a number of levels.
//!
//! For a deadlock it is a lock that the caller holds which matters. What the functions in between have taken and written
//! is undone from the log, because their frames are gone when the caller goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{BlockId, Function, InstId, LockId, Operand, Shape, Site, SiteKind};
use super::plan::{self, Plan, Reach};
use super::region::{self, Region};

/// A function with what the module-wide analysis needs of it.
#[derive(Debug)]
pub struct Body {
    pub function: Function,
    pub idom: Vec<Option<BlockId>>,
    /// Whether its code may be changed.
    pub is_supported: bool,
    /// Whether what is called is this very code. Of an inline function that several objects define, the linker may keep
    /// the copy of one that does not log what callers here count on.
    pub is_the_one: bool,
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
    Pad(Box<Plan>),
    Through,
}

/// All marks of a module.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    pub calls: BTreeMap<CallId, Mark>,
    /// Acquisitions and writes, by function, that must be logged although the function's own regions do not ask for it.
    pub logged: BTreeSet<(usize, InstId)>,
    /// Calls whose callees write into the log.
    pub logged_calls: BTreeSet<(usize, InstId)>,
}

impl Marks {
    fn has_pad(&self) -> bool {
        self.calls.values().any(|mark| matches!(mark, Mark::Pad(_)))
    }

    /// What the frame of a region that reaches its function's entry leaves in the log.
    fn log(&mut self, index: usize, region: &Region) {
        let logged = region.acquires.iter().chain(&region.logs);
        self.logged.extend(logged.map(|&inst| (index, inst)));
        self.logged_calls
            .extend(region.calls.iter().map(|&inst| (index, inst)));
    }

    /// A pad above a function that logs must undo what is in the log, whatever failure it was made for: the runtime does
    /// not choose pads by the kind of failure. The copy of a function from another object may log what this one does not.
    pub fn let_pads_undo(&mut self, program: &Program, logging: &BTreeSet<usize>) {
        let mut logs = logging.clone();
        let bodies = program.bodies.iter().enumerate();
        logs.extend(
            bodies
                .filter(|(_, body)| !body.is_the_one)
                .map(|(index, _)| index),
        );
        loop {
            let before = logs.len();
            for (index, body) in program.bodies.iter().enumerate() {
                if body
                    .function
                    .calls
                    .values()
                    .any(|callee| logs.contains(callee))
                {
                    logs.insert(index);
                }
            }
            if logs.len() == before {
                break;
            }
        }
        for (&(index, inst), mark) in &mut self.calls {
            let callee = program.bodies[index].function.calls.get(&inst);
            if let (Mark::Pad(plan), Some(callee)) = (mark, callee)
                && logs.contains(callee)
            {
                plan.serves_callees = true;
            }
        }
    }

    fn absorb(&mut self, other: Self) {
        for (call, mark) in other.calls {
            // A pad stays a pad: both are legal, but only one of them re-executes. One that releases locks helps against
            // every kind of failure.
            match (self.calls.get(&call), &mark) {
                (Some(Mark::Pad(_)), Mark::Through) => {}
                (Some(Mark::Pad(old)), Mark::Pad(new))
                    if old.serves_callees && !new.serves_callees => {}
                _ => {
                    self.calls.insert(call, mark);
                }
            }
        }
        self.logged.extend(other.logged);
        self.logged_calls.extend(other.logged_calls);
    }
}

/// What a failing callee asks of its callers.
#[derive(Debug, Clone)]
struct Wish {
    kind: SiteKind,
    /// Parameters whose change could avoid the failure.
    parameters: BTreeSet<usize>,
    /// Of each of these sets, one lock must have been taken since the point.
    needs: BTreeSet<BTreeSet<LockId>>,
    levels: usize,
}

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
    if !goes_up(body, &region, site.kind, &slice.args)
        || !has_hopeless_path(&body.function, &region, site, &slice.reads)
    {
        return false;
    }
    let wish = Wish {
        kind: site.kind,
        parameters: slice.args,
        needs: region.needs.clone(),
        levels,
    };
    let mut found = callers(program, index, &wish);
    let any = found.has_pad();
    if any {
        found.log(index, &region);
        marks.absorb(found);
    }
    any
}

/// Conditions 1 and 2: nothing destroys between the entry and the site, and a caller can change something. For failures
/// other than deadlocks nothing is logged, so nothing may have been taken either.
fn goes_up(body: &Body, region: &Region, kind: SiteKind, parameters: &BTreeSet<usize>) -> bool {
    let entry = body.function.blocks[0].body;
    let starts_at_entry = region.points.len() == 1 && region.points.contains(&entry);
    let can_log = body.is_the_one || !region.uses_log() && region.acquires.is_empty();
    let is_deadlock = kind == SiteKind::Deadlock;
    starts_at_entry
        && can_log
        && (is_deadlock || region.acquires.is_empty() && !parameters.is_empty())
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

fn callers(program: &Program, callee: usize, wish: &Wish) -> Marks {
    let mut marks = Marks::default();
    if wish.levels == 0 {
        return marks;
    }
    for &call in program.callers.get(&callee).into_iter().flatten() {
        let details = &program.bodies[call.0].function.insts[call.1];
        let Shape::Call { passed, .. } = &details.shape else {
            continue;
        };
        let values: Vec<Operand> = wish
            .parameters
            .iter()
            .filter_map(|&number| passed.get(number).copied().flatten())
            .collect();
        marks.absorb(one_call(program, call, values, wish));
    }
    marks
}

fn one_call(program: &Program, call: CallId, values: Vec<Operand>, wish: &Wish) -> Marks {
    let body = &program.bodies[call.0];
    // A dereference follows values only, which is what the critical parameters are.
    let is_deadlock = wish.kind == SiteKind::Deadlock;
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
    if let Some(plan) = plan::for_pad(&body.function, &body.idom, &site, program.reach)
        && wish
            .needs
            .iter()
            .all(|locks| plan.takes(&body.function, call.1, locks))
    {
        return Marks {
            calls: BTreeMap::from([(call, Mark::Pad(Box::new(plan)))]),
            ..Marks::default()
        };
    }
    let (region, slice) = plan::reach(&body.function, &body.idom, &site);
    if !goes_up(body, &region, site.kind, &slice.args) {
        return Marks::default();
    }
    let is_met =
        |locks: &&BTreeSet<LockId>| region::takes_before(&body.function, &region, call.1, locks);
    let mut needs = region.needs.clone();
    needs.extend(wish.needs.iter().filter(|locks| !is_met(locks)).cloned());
    let above = Wish {
        kind: wish.kind,
        parameters: slice.args,
        needs,
        levels: wish.levels - 1,
    };
    let mut marks = callers(program, call.0, &above);
    if !marks.has_pad() {
        return Marks::default();
    }
    marks.calls.insert(call, Mark::Through);
    marks.log(call.0, &region);
    marks
}
