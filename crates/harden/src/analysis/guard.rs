//! Which locks guard which variables: those that every access to the variable in the module holds.
//!
//! Only for variables and locks that nothing but the code in sight can reach (internal, their address never handed on).
//! A lock is held at an instruction if every way there takes it last and nothing in between can release it; callers
//! count for functions all of whose calls are in sight. (The lockset idea of Eraser, but over all paths instead of one
//! run, so that it is a proof.)

use std::collections::{BTreeMap, BTreeSet};

use super::interproc::Body;
use super::model::{BlockId, Function, InstId, LockHow, LockId};

/// A variable, by number in the module.
pub type ObjectId = u32;

/// What the analysis must know beyond the bodies.
#[derive(Debug, Default)]
pub struct Module {
    /// Per function, its accesses to variables that only code in sight can reach.
    pub accesses: Vec<BTreeMap<InstId, ObjectId>>,
    /// Functions that may be called from elsewhere, or whose address is known.
    pub is_open: Vec<bool>,
}

type Locks = BTreeSet<LockId>;

/// Calls nest less deeply than this, or the analysis gives up.
const ROUNDS_MAX: usize = 50;

/// What was found.
#[derive(Debug, Default)]
pub struct Guards {
    /// The locks that guard each variable; variables without any are left out.
    pub of_object: BTreeMap<ObjectId, Locks>,
    /// Per function, the locks that it is sure to have taken when it returns.
    pub taken: Vec<Locks>,
}

/// Finds the locks of a module's variables.
pub fn find(bodies: &[Body], module: &Module) -> Guards {
    let all: Locks = bodies
        .iter()
        .flat_map(|body| {
            body.function
                .lock_uses
                .values()
                .filter_map(|using| using.id)
        })
        .collect();
    if all.is_empty() {
        return Guards::default();
    }
    let releases = Releases::find(bodies, module, &all);
    let entries = entries(bodies, module, &all, &releases);
    let mut guards: BTreeMap<ObjectId, Locks> = BTreeMap::new();
    for (index, body) in bodies.iter().enumerate() {
        if module.accesses[index].is_empty() {
            continue;
        }
        let flow = Flow {
            function: &body.function,
            releases: &releases,
            all: &all,
        };
        let held = flow.held(&entries[index]);
        for (&inst, &object) in &module.accesses[index] {
            let here = flow.held_at(&held, inst);
            guards
                .entry(object)
                .and_modify(|locks| *locks = locks.intersection(&here).copied().collect())
                .or_insert(here);
        }
    }
    guards.retain(|_, locks| !locks.is_empty());
    Guards {
        of_object: guards,
        taken: releases.taken,
    }
}

/// What calls do to the locks held: what may be released although the callee did not take it, and what is sure to have
/// been taken.
struct Releases {
    by_function: Vec<Locks>,
    taken: Vec<Locks>,
    /// Functions that are not in sight cannot reach these locks, except by calling back what is open to them.
    by_others: Locks,
}

impl Releases {
    /// What is released depends on what has been taken and the other way round. Any pair of answers that agree is sound,
    /// by induction over the length of an execution; this looks for one that knows much, from the assumption that calls
    /// release nothing.
    fn find(bodies: &[Body], module: &Module, all: &Locks) -> Self {
        let nothing = vec![Locks::new(); bodies.len()];
        let mut this = Self {
            by_function: nothing.clone(),
            taken: nothing.clone(),
            by_others: Locks::new(),
        };
        for _ in 0..ROUNDS_MAX {
            let before = this.taken.clone();
            this.taken.clone_from(&nothing);
            this.settle(bodies, all, |this, index, flow_taken, _| {
                let is_new = this.taken[index] != flow_taken;
                this.taken[index] = flow_taken;
                is_new
            });
            this.by_function.clone_from(&nothing);
            this.by_others.clear();
            this.settle(bodies, all, |this, index, _, flow_released| {
                let is_new = this.by_function[index] != flow_released;
                if module.is_open[index] {
                    this.by_others.extend(&flow_released);
                }
                this.by_function[index] = flow_released;
                is_new
            });
            if this.taken == before {
                return this;
            }
        }
        Self {
            by_function: vec![all.clone(); bodies.len()],
            taken: nothing,
            by_others: all.clone(),
        }
    }

    /// Visits all functions, with what they take and release by the present answers, until nothing changes.
    fn settle(
        &mut self,
        bodies: &[Body],
        all: &Locks,
        mut update: impl FnMut(&mut Self, usize, Locks, Locks) -> bool,
    ) {
        let mut changed = true;
        while changed {
            changed = false;
            for (index, body) in bodies.iter().enumerate() {
                let flow = Flow {
                    function: &body.function,
                    releases: self,
                    all,
                };
                let (taken, released) = (flow.taken(), flow.net_releases());
                changed |= update(self, index, taken, released);
            }
        }
    }
}

/// The locks held whenever a function is entered.
fn entries(bodies: &[Body], module: &Module, all: &Locks, releases: &Releases) -> Vec<Locks> {
    let mut entries: Vec<Locks> = module
        .is_open
        .iter()
        .map(|&is_open| if is_open { Locks::new() } else { all.clone() })
        .collect();
    loop {
        let mut next = entries.clone();
        for (index, body) in bodies.iter().enumerate() {
            let flow = Flow {
                function: &body.function,
                releases,
                all,
            };
            let held = flow.held(&entries[index]);
            for (&inst, &callee) in &body.function.calls {
                let here = flow.held_at(&held, inst);
                next[callee].retain(|lock| here.contains(lock));
            }
        }
        if next == entries {
            return entries;
        }
        entries = next;
    }
}

struct Flow<'a> {
    function: &'a Function,
    releases: &'a Releases,
    all: &'a Locks,
}

impl Flow<'_> {
    /// The locks held at the beginning of each block.
    fn held(&self, entry: &Locks) -> Vec<Locks> {
        let mut held = vec![self.all.clone(); self.function.blocks.len()];
        if held.is_empty() {
            return held;
        }
        held[0].clone_from(entry);
        let mut work: Vec<BlockId> = (0..held.len()).rev().collect();
        while let Some(block) = work.pop() {
            let mut now = held[block].clone();
            let span = &self.function.blocks[block];
            (span.first..span.end).for_each(|inst| self.step(inst, &mut now));
            for &succ in &span.succs {
                let before = held[succ].len();
                held[succ].retain(|lock| now.contains(lock));
                if held[succ].len() != before {
                    work.push(succ);
                }
            }
        }
        held
    }

    /// Locks that are held at every return, whatever was held at the entry.
    fn taken(&self) -> Locks {
        let held = self.held(&Locks::new());
        let mut returns = self.function.returns.iter();
        let Some(&first) = returns.next() else {
            return Locks::new();
        };
        let at = |block: BlockId| self.held_at(&held, self.function.terminator(block));
        returns.fold(at(first), |all, &block| {
            all.intersection(&at(block)).copied().collect()
        })
    }

    /// Locks that are released, here or in callees, where they need not have been taken since the entry.
    fn net_releases(&self) -> Locks {
        let function = self.function;
        let held = self.held(&Locks::new());
        let mut found = Locks::new();
        for (&inst, using) in &function.lock_uses {
            match (using.how, using.id) {
                (LockHow::Releases, Some(lock)) if !self.held_at(&held, inst).contains(&lock) => {
                    found.insert(lock);
                }
                _ => {}
            }
        }
        let calls = function
            .calls
            .iter()
            .map(|(&inst, &callee)| (inst, &self.releases.by_function[callee]));
        let unknown = function
            .unknown_calls
            .iter()
            .map(|&inst| (inst, &self.releases.by_others));
        for (inst, released) in calls.chain(unknown) {
            if !released.is_empty() {
                let here = self.held_at(&held, inst);
                found.extend(released.difference(&here));
            }
        }
        found
    }

    fn held_at(&self, held: &[Locks], inst: InstId) -> Locks {
        let block = self.function.block_of[inst];
        let mut now = held[block].clone();
        (self.function.blocks[block].first..inst).for_each(|before| self.step(before, &mut now));
        now
    }

    fn step(&self, inst: InstId, now: &mut Locks) {
        if let Some(using) = self.function.lock_uses.get(&inst) {
            match (using.how, using.id) {
                (LockHow::Takes, Some(lock)) => {
                    now.insert(lock);
                }
                (LockHow::Releases, Some(lock)) => {
                    now.remove(&lock);
                }
                (LockHow::Releases, None) => now.clear(),
                _ => {}
            }
            return;
        }
        if let Some(&callee) = self.function.calls.get(&inst) {
            let released = &self.releases.by_function[callee];
            now.retain(|lock| !released.contains(lock));
            now.extend(&self.releases.taken[callee]);
        } else if self.function.unknown_calls.contains(&inst) {
            now.retain(|lock| !self.releases.by_others.contains(lock));
        }
    }
}
