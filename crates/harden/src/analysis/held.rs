//! Where a lock may be held: which lock sites can be reached with another lock held, in the function or up the chain of
//! callers in sight. This counts sites for the report; no decision rests on it.

use std::collections::BTreeSet;

use super::interproc::Body;
use super::model::{Function, InstId, LockHow};

/// Acquisitions of a function: where, and the name of the lock if it means the same after a call.
type Taken = BTreeSet<(InstId, Option<u64>)>;
/// Names of locks as a caller knows them.
type Names = BTreeSet<Option<u64>>;

/// What a call of a function does to the locks held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Call {
    /// It may return with these, which it took.
    leaves: Names,
    /// It releases these, which it did not take.
    releases: Names,
}

/// Per function.
type Left = Vec<Call>;

/// Per function, the lock sites that are reached with another lock held on some way.
pub fn nested(bodies: &[Body]) -> Vec<BTreeSet<InstId>> {
    let leaves = leaves_held(bodies);
    let flows: Vec<Vec<Taken>> = bodies
        .iter()
        .map(|body| flow(&body.function, &leaves))
        .collect();
    let enters = enters_held(bodies, &flows, &leaves);
    bodies
        .iter()
        .enumerate()
        .map(|(index, body)| {
            let function = &body.function;
            function
                .lock_uses
                .iter()
                .filter(|(_, using)| using.how != LockHow::Releases)
                .map(|(&inst, _)| inst)
                .filter(|&inst| {
                    enters[index] || !at(function, &flows[index], inst, &leaves).is_empty()
                })
                .collect()
        })
        .collect()
}

/// Calls nest less deeply than this where it matters; functions that call each other may never settle.
const ROUNDS_MAX: usize = 50;

/// Functions that may return with a lock held which they took, or without one that their caller took.
fn leaves_held(bodies: &[Body]) -> Left {
    let mut leaves: Left = vec![Call::default(); bodies.len()];
    for _ in 0..ROUNDS_MAX {
        let next: Left = bodies
            .iter()
            .map(|body| call_of(&body.function, &leaves))
            .collect();
        if next == leaves {
            break;
        }
        leaves = next;
    }
    leaves
}

fn call_of(function: &Function, leaves: &Left) -> Call {
    let held = flow(function, leaves);
    let outside = |inst: InstId, name: Option<u64>| {
        let using = function.lock_uses.get(&inst);
        name.filter(|_| using.is_none_or(|using| using.is_global))
    };
    let returns = function.returns.iter();
    let left = returns
        .flat_map(|&block| at(function, &held, function.terminator(block), leaves))
        .map(|(inst, name)| outside(inst, name))
        .collect();
    let mut releases = Names::new();
    for (&inst, using) in &function.lock_uses {
        let is_release = using.how == LockHow::Releases;
        if is_release && at(function, &held, inst, leaves).is_empty() {
            releases.insert(outside(inst, Some(using.name)));
        }
    }
    for (&inst, &callee) in &function.calls {
        let below = &leaves[callee].releases;
        if !below.is_empty() && at(function, &held, inst, leaves).is_empty() {
            releases.extend(below);
        }
    }
    Call {
        leaves: left,
        releases,
    }
}

/// Functions that some caller enters with a lock held.
fn enters_held(bodies: &[Body], flows: &[Vec<Taken>], leaves: &Left) -> Vec<bool> {
    let mut enters = vec![false; bodies.len()];
    loop {
        let mut next = enters.clone();
        for (index, body) in bodies.iter().enumerate() {
            for (&inst, &callee) in &body.function.calls {
                next[callee] |=
                    enters[index] || !at(&body.function, &flows[index], inst, leaves).is_empty();
            }
        }
        if next == enters {
            return enters;
        }
        enters = next;
    }
}

/// What may be held at the beginning of each block: acquisitions of this function.
fn flow(function: &Function, leaves: &Left) -> Vec<Taken> {
    let mut held = vec![Taken::new(); function.blocks.len()];
    let mut work: Vec<usize> = (0..held.len()).rev().collect();
    while let Some(block) = work.pop() {
        let span = &function.blocks[block];
        let mut now = held[block].clone();
        (span.first..span.end).for_each(|inst| step(function, inst, leaves, &mut now));
        for &succ in &span.succs {
            let before = held[succ].len();
            held[succ].extend(&now);
            if held[succ].len() != before {
                work.push(succ);
            }
        }
    }
    held
}

fn at(function: &Function, held: &[Taken], inst: InstId, leaves: &Left) -> Taken {
    let block = function.block_of[inst];
    let mut now = held[block].clone();
    let first = function.blocks[block].first;
    (first..inst).for_each(|before| step(function, before, leaves, &mut now));
    now
}

fn step(function: &Function, inst: InstId, leaves: &Left, now: &mut Taken) {
    if let Some(using) = function.lock_uses.get(&inst) {
        if using.how == LockHow::Releases {
            let is_known = now.iter().any(|(_, name)| *name == Some(using.name));
            now.retain(|(_, name)| match name {
                Some(name) => *name != using.name,
                // Taken by a callee under a name of its own: this is its release, if nothing else is.
                None => is_known,
            });
        } else {
            now.insert((inst, Some(using.name)));
        }
    } else if let Some(&callee) = function.calls.get(&inst) {
        for name in &leaves[callee].releases {
            // Of locks without a name that both sides know, the one taken last.
            let latest = now.iter().rev().find(|(_, other)| other == name).copied();
            match name {
                Some(_) => now.retain(|(_, other)| other != name),
                None => now.retain(|one| Some(*one) != latest),
            }
        }
        now.extend(leaves[callee].leaves.iter().map(|&name| (inst, name)));
    }
}
