//! What is undone from the log, and under which conditions.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::analysis::guard;
use crate::analysis::model::{LockHow, LockId, LockUse, Object, Shelter};
use crate::analysis::region::LOG_MAX;
use crate::analysis::summary::{self, Summary};

/// One straight line; locks and unlocks are named by number.
pub(super) enum Step {
    Take(LockId),
    Release(LockId),
    /// A write that these locks shelter.
    Write(&'static [LockId]),
    Plain(Inst),
    Call(usize),
}
use Step::{Call, Plain, Release, Take, Write};

pub(super) fn line(steps: Vec<Step>) -> Function {
    let mut model = function(vec![(
        steps
            .iter()
            .map(|step| match step {
                Take(_) => inst(LOCK, &[]),
                Release(_) => inst(Effect::Release, &[]),
                Call(_) | Write(_) => destroy(),
                Plain(inst) => inst.clone(),
            })
            .chain([go()])
            .collect(),
        vec![],
    )]);
    model.returns.insert(0);
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Take(lock) => lock_use(&mut model, number, lock, LockHow::Takes),
            Release(lock) => lock_use(&mut model, number, lock, LockHow::Releases),
            Write(locks) => {
                let locks = locks.iter().copied().collect();
                model.shelters.push(Shelter::Locks(locks));
                let shelter = model.shelters.len() - 1;
                model.insts[number].effect = Effect::LoggedWrite { shelter };
                model.log_entries.insert(number, 1);
            }
            Call(callee) => {
                model.calls.insert(number, callee);
            }
            Plain(_) => {}
        }
    }
    model
}

fn lock_use(model: &mut Function, inst: InstId, lock: LockId, how: LockHow) {
    let using = LockUse {
        name: u64::from(lock),
        is_global: true,
        id: Some(lock),
        how,
    };
    model.lock_uses.insert(inst, using);
    let object = Object {
        name: u64::from(lock),
        made_of: BTreeSet::new(),
    };
    model.objects.insert(inst, object);
}

pub(super) fn deadlock(function: &Function, at: InstId) -> Result<Plan, Pruned> {
    plan_of(function, &site(SiteKind::Deadlock, at, &[]), Reach::Cheap)
}

#[test]
fn a_write_is_logged_only_under_a_lock_of_the_region() {
    let sheltered = line(vec![Take(1), Write(&[1]), Take(2)]);
    let plan = deadlock(&sheltered, 2).unwrap();
    assert_eq!((plan.logs, plan.acquires), (vec![1], vec![0]));
    let elsewhere = line(vec![Take(1), Write(&[3]), Take(2)]);
    assert_eq!(deadlock(&elsewhere, 2).unwrap_err(), Pruned::NoLockInRegion);
    // The lock was taken before something that ends the region, so others may have seen the write.
    let before = line(vec![
        Take(1),
        Plain(destroy()),
        Write(&[1]),
        Take(2),
        Take(4),
    ]);
    let plan = deadlock(&before, 4).unwrap();
    assert_eq!((plan.logs, plan.acquires), (vec![], vec![3]));
}

#[test]
fn the_log_has_a_bound() {
    let mut steps = vec![Take(1)];
    steps.extend((0..LOG_MAX).map(|_| Write(&[1])));
    steps.push(Take(2));
    let full = line(steps);
    assert_eq!(
        deadlock(&full, LOG_MAX + 1).unwrap_err(),
        Pruned::NoLockInRegion
    );
}

pub(super) fn apply(functions: Vec<Function>) -> (Vec<Body>, Vec<Summary>) {
    let mut bodies: Vec<Body> = functions.into_iter().map(body).collect();
    let summaries = summary::apply(&mut bodies, &|_| true, &[]);
    (bodies, summaries)
}

#[test]
fn summaries_go_from_callees_to_callers() {
    let (bodies, summaries) = apply(vec![
        line(vec![Plain(read()), Call(0)]),
        line(vec![Take(1), Call(0)]),
        line(vec![Call(1), Take(2)]),
        line(vec![Take(1), Write(&[1]), Release(1)]),
        line(vec![Call(3)]),
    ]);
    assert_eq!(
        summaries[0],
        Summary::Harmless,
        "recursion of reads is harmless"
    );
    let Summary::Logged(log) = &summaries[1] else {
        panic!("{:?}", summaries[1]);
    };
    assert_eq!((log.entries, log.takes_lock), (1, true));
    assert_eq!(
        summaries[3],
        Summary::Destroys,
        "a release shows what was written"
    );
    assert_eq!(summaries[4], Summary::Destroys);
    let plan = deadlock(&bodies[2].function, 1).unwrap();
    assert_eq!((plan.calls, plan.acquires), (vec![0], vec![]));
}

/// Another object's copy of the function may be linked, and that need not log.
#[test]
fn a_function_that_has_copies_elsewhere_is_not_counted_on_to_log() {
    let mut bodies = vec![body(line(vec![Take(1)]))];
    bodies[0].is_the_one = false;
    let summaries = summary::apply(&mut bodies, &|_| true, &[]);
    assert_eq!(summaries[0], Summary::Destroys);
}

#[test]
fn a_recursive_function_that_takes_a_lock_has_no_bound() {
    let (_, summaries) = apply(vec![line(vec![Take(1), Call(0)])]);
    assert_eq!(summaries[0], Summary::Destroys);
}

fn guards(
    functions: Vec<Function>,
    accesses: &[&[InstId]],
    open: &[bool],
) -> Option<BTreeSet<LockId>> {
    let bodies: Vec<Body> = functions.into_iter().map(body).collect();
    let module = guard::Module {
        accesses: accesses
            .iter()
            .map(|insts| {
                insts
                    .iter()
                    .map(|&inst| (inst, 0))
                    .collect::<BTreeMap<_, _>>()
            })
            .collect(),
        is_open: open.to_vec(),
    };
    guard::find(&bodies, &module).of_object.get(&0).cloned()
}

#[test]
fn a_variable_is_guarded_by_what_every_access_holds() {
    let both = line(vec![
        Take(1),
        Take(2),
        Plain(read()),
        Release(2),
        Release(1),
    ]);
    let one = line(vec![Take(1), Plain(read()), Release(1)]);
    let none = line(vec![Plain(read())]);
    let open = [true, true];
    let found = guards(vec![both.clone(), one.clone()], &[&[2], &[1]], &open);
    assert_eq!(found, Some(BTreeSet::from([1])));
    assert_eq!(guards(vec![both, none.clone()], &[&[2], &[0]], &open), None);
    // Released by a function that is called in between, or that others may call back.
    let releases = line(vec![Release(1)]);
    let calls = line(vec![Take(1), Call(0), Plain(read())]);
    assert_eq!(
        guards(vec![releases.clone(), calls], &[&[], &[2]], &open),
        None
    );
    let mut unknown = line(vec![Take(1), Plain(destroy()), Plain(read())]);
    unknown.unknown_calls.insert(1);
    assert_eq!(
        guards(vec![releases.clone(), unknown.clone()], &[&[], &[2]], &open),
        None
    );
    let found = guards(vec![releases, unknown], &[&[], &[2]], &[false, true]);
    assert_eq!(found, Some(BTreeSet::from([1])), "nobody can call it back");
}

#[test]
fn locks_taken_by_helpers_and_callers_count() {
    let helper = line(vec![Take(1)]);
    let inner = line(vec![Plain(read())]);
    let outer = line(vec![Call(0), Call(1), Release(1)]);
    let functions = vec![helper, inner, outer];
    let accesses: [&[InstId]; 3] = [&[], &[0], &[]];
    let found = guards(functions.clone(), &accesses, &[false, false, true]);
    assert_eq!(found, Some(BTreeSet::from([1])));
    // If others may call the inner function, they need not hold the lock.
    assert_eq!(guards(functions, &accesses, &[false, true, true]), None);
}

/// Function 0 takes lock 2 after a write that lock 1 shelters; function 1 takes lock 1 and calls it.
#[test]
fn a_callers_lock_is_released_and_what_the_callee_did_is_logged() {
    let callee = line(vec![Write(&[1]), Take(3), Take(2)]);
    let mut caller = line(vec![Take(1), Call(0)]);
    caller.insts[1] = call(0, Operand::Arg(0));
    let program = Program::new(vec![body(callee.clone()), body(caller)], Reach::Cheap);
    let at = site(SiteKind::Deadlock, 2, &[]);
    let mut marks = Marks::default();
    assert!(interproc::extend(&program, 0, &at, 3, &mut marks));
    let Some(Mark::Pad(plan)) = marks.calls.get(&(1, 1)) else {
        panic!("{:?}", marks.calls);
    };
    assert!(plan.serves_callees);
    assert_eq!(plan.acquires, [0]);
    assert_eq!(marks.logged, BTreeSet::from([(0, 0), (0, 1)]));
    // A caller that holds another lock does not shelter the write.
    let mut other = line(vec![Take(4), Call(0)]);
    other.insts[1] = call(0, Operand::Arg(0));
    let program = Program::new(vec![body(callee), body(other)], Reach::Cheap);
    let mut marks = Marks::default();
    assert!(!interproc::extend(&program, 0, &at, 3, &mut marks));
}
