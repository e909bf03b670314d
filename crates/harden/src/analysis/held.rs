//! Where a lock may be held: which lock sites can be reached with another lock held, in the function or up the chain of
//! callers in sight. This counts sites for the report; no decision rests on it.

use std::collections::BTreeSet;

use super::interproc::Body;
use super::model::{Function, InstId, LockHow};

type Taken = BTreeSet<InstId>;

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
fn leaves_held(bodies: &[Body]) -> Vec<bool> {
    let mut leaves = vec![false; bodies.len()];
    loop {
        let next: Vec<bool> = bodies
            .iter()
            .map(|body| {
                let function = &body.function;
                let held = flow(function, &leaves);
                function.returns.iter().any(|&block| {
                    !at(function, &held, function.terminator(block), &leaves).is_empty()
                })
            })
            .collect();
        if next == leaves {
            return leaves;
        }
        leaves = next;
    }
}

/// Functions that some caller enters with a lock held.
fn enters_held(bodies: &[Body], flows: &[Vec<Taken>], leaves: &[bool]) -> Vec<bool> {
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
fn flow(function: &Function, leaves: &[bool]) -> Vec<Taken> {
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

fn at(function: &Function, held: &[Taken], inst: InstId, leaves: &[bool]) -> Taken {
    let block = function.block_of[inst];
    let mut now = held[block].clone();
    let first = function.blocks[block].first;
    (first..inst).for_each(|before| step(function, before, leaves, &mut now));
    now
}

fn step(function: &Function, inst: InstId, leaves: &[bool], now: &mut Taken) {
    if let Some(using) = function.lock_uses.get(&inst) {
        if using.how == LockHow::Releases {
            let name = |other: &InstId| function.lock_uses.get(other).and_then(|using| using.name);
            now.retain(|other| name(other).is_none() || name(other) != using.name);
        } else {
            now.insert(inst);
        }
    } else if function
        .calls
        .get(&inst)
        .is_some_and(|&callee| leaves[callee])
    {
        now.insert(inst);
    }
}
