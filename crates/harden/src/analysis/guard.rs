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

/// The locks that guard each variable; variables without any are left out.
pub fn find(bodies: &[Body], module: &Module) -> BTreeMap<ObjectId, Locks> {
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
        return BTreeMap::new();
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
    guards
}

/// Locks that a call may release although the callee did not take them.
struct Releases {
    by_function: Vec<Locks>,
    /// Functions that are not in sight cannot reach these locks, except by calling back what is open to them.
    by_others: Locks,
}

impl Releases {
    fn find(bodies: &[Body], module: &Module, all: &Locks) -> Self {
        let mut this = Self {
            by_function: vec![Locks::new(); bodies.len()],
            by_others: Locks::new(),
        };
        loop {
            let mut changed = false;
            for (index, body) in bodies.iter().enumerate() {
                let flow = Flow {
                    function: &body.function,
                    releases: &this,
                    all,
                };
                let found = flow.net_releases();
                if module.is_open[index] && !found.is_subset(&this.by_others) {
                    this.by_others.extend(&found);
                    changed = true;
                }
                changed |= this.by_function[index] != found;
                this.by_function[index] = found;
            }
            if !changed {
                return this;
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
        } else if self.function.unknown_calls.contains(&inst) {
            now.retain(|lock| !self.releases.by_others.contains(lock));
        }
    }
}
