//! Where a lock may be held: which lock sites can be reached with another lock held, in the function or up the chain of
//! callers in sight. This counts sites for the report; no decision rests on it.

use std::collections::BTreeSet;

use super::interproc::Body;
use super::model::{Function, InstId, LockHow};

/// Acquisitions of a function: where, and the name of the lock if it means the same after a call.
type Taken = BTreeSet<(InstId, Option<u64>)>;
/// Per function, the locks that it may hold when it returns.
type Left = Vec<BTreeSet<Option<u64>>>;

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

/// Functions that may return with a lock held which they took.
fn leaves_held(bodies: &[Body]) -> Left {
    let mut leaves: Left = vec![BTreeSet::new(); bodies.len()];
    loop {
        let next: Left = bodies
            .iter()
            .map(|body| {
                let function = &body.function;
                let held = flow(function, &leaves);
                let outside = |(inst, name): (InstId, Option<u64>)| {
                    let is_global = function
                        .lock_uses
                        .get(&inst)
                        .is_none_or(|using| using.is_global);
                    name.filter(|_| is_global)
                };
                let returns = function.returns.iter();
                returns
                    .flat_map(|&block| at(function, &held, function.terminator(block), &leaves))
                    .map(outside)
                    .collect()
            })
            .collect();
        if next == leaves {
            return leaves;
        }
        leaves = next;
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
        now.extend(leaves[callee].iter().map(|&name| (inst, name)));
    }
}
