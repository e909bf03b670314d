//! What a call of a function of the program does to a region, bottom-up over the module.
//!
//! A function is *harmless* if nothing on its way back to the caller writes, takes or releases anything that others can
//! see: recursion among harmless functions is harmless, so this is a greatest fixed point. It is *logged* if all it does
//! beyond that can be undone from the log, at most once per call and within the log's size: a least fixed point, because
//! a recursive function has no bound. What runs into an end of the program (a failed assertion) does not count: nothing
//! is re-executed after it.

use std::collections::BTreeSet;

use super::interproc::Body;
use super::model::{Acquire, CallLog, Effect, Function, InstId, LockId, Shelter};
use super::region::{LOG_MAX, Region};
use super::sections::Sections;

/// What a function does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Summary {
    Harmless,
    Logged(CallLog),
    Destroys,
}

/// Whether the definition at hand is the one that will be called.
pub type IsExact<'a> = &'a dyn Fn(usize) -> bool;

/// Computes the summaries of all bodies and gives their direct calls the effects that follow.
/// `takes` are the locks that each function is sure to have taken when it returns.
pub fn apply(
    bodies: &mut [Body],
    is_exact: IsExact<'_>,
    takes: &[BTreeSet<LockId>],
) -> Vec<Summary> {
    let mut summaries = harmless(bodies, is_exact);
    loop {
        let mut changed = false;
        for index in 0..bodies.len() {
            if summaries[index] == Summary::Destroys
                && bodies[index].is_the_one
                && bodies[index].is_supported
            {
                let mut found = logged(&bodies[index].function, index, &summaries);
                if let (Summary::Logged(log), Some(taken)) = (&mut found, takes.get(index)) {
                    log.takes.clone_from(taken);
                }
                changed |= found != Summary::Destroys;
                summaries[index] = found;
            }
        }
        if !changed {
            break;
        }
    }
    for body in bodies.iter_mut() {
        patch(&mut body.function, &summaries);
    }
    summaries
}

fn patch(function: &mut Function, summaries: &[Summary]) {
    for (inst, callee) in function.calls.clone() {
        if function.insts[inst].effect != Effect::Destroy {
            continue;
        }
        match &summaries[callee] {
            Summary::Harmless => function.insts[inst].effect = Effect::SharedRead,
            // A logged call may throw where its log entries are not expected; only plain calls are taken.
            Summary::Logged(log) if function.terminator(function.block_of[inst]) != inst => {
                function.insts[inst].effect = Effect::LoggedCall;
                function.logged_calls.insert(inst, log.clone());
            }
            Summary::Logged(_) | Summary::Destroys => {}
        }
    }
}

/// Instructions on a way back to the caller.
fn counting(function: &Function) -> impl Iterator<Item = InstId> {
    let returning = function.returning();
    (0..function.insts.len()).filter(move |&inst| returning.contains(&function.block_of[inst]))
}

fn harmless(bodies: &[Body], is_exact: IsExact<'_>) -> Vec<Summary> {
    let mut is_harmless: Vec<bool> = (0..bodies.len()).map(is_exact).collect();
    loop {
        let next: Vec<bool> = bodies
            .iter()
            .enumerate()
            .map(|(index, body)| {
                is_harmless[index] && is_harmless_given(&body.function, &is_harmless)
            })
            .collect();
        if next == is_harmless {
            break;
        }
        is_harmless = next;
    }
    is_harmless
        .into_iter()
        .map(|is_harmless| {
            if is_harmless {
                Summary::Harmless
            } else {
                Summary::Destroys
            }
        })
        .collect()
}

fn is_harmless_given(function: &Function, known: &[bool]) -> bool {
    let counting: BTreeSet<InstId> = counting(function).collect();
    let sections = Sections::of_function(function, &counting);
    counting
        .iter()
        .all(|&inst| match function.insts[inst].effect {
            Effect::Acquire(_) if sections.settled.contains(&inst) => true,
            Effect::Release => sections.releases.contains(&inst),
            // Into memory that is freed before the function returns.
            Effect::FreshWrite { alloc } => sections.settled.contains(&alloc),
            Effect::Destroy => function
                .calls
                .get(&inst)
                .is_some_and(|&callee| known[callee]),
            Effect::Acquire(_)
            | Effect::LoggedWrite { .. }
            | Effect::LoggedCall
            | Effect::PromisedCall => false,
            Effect::None
            | Effect::SharedRead
            | Effect::SlotWrite { .. }
            | Effect::SlotRead { .. }
            | Effect::SlotBegin { .. }
            | Effect::SlotEnd { .. } => true,
        })
}

fn logged(function: &Function, index: usize, summaries: &[Summary]) -> Summary {
    let mut log = CallLog {
        callee: index,
        ..CallLog::default()
    };
    let counting: BTreeSet<InstId> = counting(function).collect();
    let sections = Sections::of_function(function, &counting);
    let entry = function.blocks.first().map_or(0, |block| block.body);
    let whole = Region::between(BTreeSet::from([entry]), counting.clone());
    let released = sections.locks(function);
    for &inst in &counting {
        let is_legal = match function.insts[inst].effect {
            Effect::Acquire(_) if sections.settled.contains(&inst) => {
                log.entries += 1;
                true
            }
            Effect::Release => sections.releases.contains(&inst),
            Effect::Destroy => match function.calls.get(&inst).map(|&callee| &summaries[callee]) {
                Some(Summary::Harmless) => true,
                Some(Summary::Logged(below)) => {
                    log.entries += below.entries;
                    log.takes_lock |= below.takes_lock;
                    log.writes_anywhere |= below.writes_anywhere;
                    log.needs.extend(below.needs.iter().cloned());
                    is_once(function, inst)
                        && !(below.writes_anywhere && sections.publish(function, &whole, inst))
                        && below.needs.iter().all(|locks| locks.is_disjoint(&released))
                }
                Some(Summary::Destroys) | None => false,
            },
            Effect::Acquire(kind) => {
                log.entries += 1;
                log.takes_lock |= kind == Acquire::Lock;
                is_once(function, inst)
            }
            Effect::LoggedWrite { shelter } => {
                log.entries += function
                    .log_entries
                    .get(&inst)
                    .copied()
                    .unwrap_or(LOG_MAX + 1);
                let is_kept = match &function.shelters[shelter] {
                    Shelter::Locks(locks) => {
                        log.needs.insert(locks.clone());
                        locks.is_disjoint(&released)
                    }
                    Shelter::Anywhere => {
                        log.writes_anywhere = true;
                        !sections.publish(function, &whole, inst)
                    }
                };
                is_kept && is_once(function, inst)
            }
            Effect::PromisedCall => false,
            _ => true,
        };
        if !is_legal || log.entries > LOG_MAX {
            return Summary::Destroys;
        }
    }
    log.needs = unmet(function, log.needs);
    Summary::Logged(log)
}

/// Locks that the function itself takes at its very beginning need no caller.
fn unmet(function: &Function, needs: BTreeSet<BTreeSet<LockId>>) -> BTreeSet<BTreeSet<LockId>> {
    let Some(entry) = function.blocks.first() else {
        return needs;
    };
    let is_met = |locks: &BTreeSet<LockId>| {
        (entry.first..entry.end)
            .take_while(|&inst| !matches!(function.insts[inst].effect, Effect::LoggedWrite { .. }))
            .any(|inst| function.takes_one_of(inst, locks))
    };
    needs.into_iter().filter(|locks| !is_met(locks)).collect()
}

/// Whether one call runs the instruction at most once, and a call that may throw at all is none.
fn is_once(function: &Function, inst: InstId) -> bool {
    let block = function.block_of[inst];
    !function.is_in_cycle(block) && function.terminator(block) != inst
}

/// The writes and acquisitions that a logged function must log, and its calls of other logged functions.
pub fn log_of(function: &Function) -> (BTreeSet<InstId>, BTreeSet<InstId>) {
    let mut writes = BTreeSet::new();
    let mut calls = BTreeSet::new();
    let counting: BTreeSet<InstId> = counting(function).collect();
    let sections = Sections::of_function(function, &counting);
    for inst in counting {
        match function.insts[inst].effect {
            Effect::Acquire(_) if sections.settled.contains(&inst) => {}
            Effect::Acquire(_) | Effect::LoggedWrite { .. } => {
                writes.insert(inst);
            }
            Effect::LoggedCall => {
                calls.insert(inst);
            }
            _ => {}
        }
    }
    (writes, calls)
}
