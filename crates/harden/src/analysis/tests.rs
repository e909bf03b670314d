//! Small functions, written down as blocks of effects, and what the analysis says of them.

use std::collections::BTreeSet;

use super::dominators;
use super::interproc::{self, Body, Mark, Marks, Program};
use super::model::{
    Acquire, Block, Effect, Function, Inst, InstId, Operand, Shape, Site, SiteKind,
};
use super::plan::{self, Plan, Pruned, Reach};

const LOCK: Effect = Effect::Acquire(Acquire::Lock);

fn inst(effect: Effect, operands: &[Operand]) -> Inst {
    Inst {
        effect,
        operands: operands.to_vec(),
        shape: Shape::Plain,
    }
}

/// A terminator that chooses by a value.
fn choice(by: InstId) -> Inst {
    Inst {
        effect: Effect::None,
        operands: vec![Operand::Inst(by)],
        shape: Shape::Choice,
    }
}

fn go() -> Inst {
    inst(Effect::None, &[])
}

fn read() -> Inst {
    inst(Effect::SharedRead, &[])
}

fn destroy() -> Inst {
    inst(Effect::Destroy, &[])
}

fn function(blocks: Vec<(Vec<Inst>, Vec<usize>)>) -> Function {
    let mut function = Function::default();
    for (insts, succs) in blocks {
        let first = function.insts.len();
        function.insts.extend(insts);
        function.blocks.push(Block {
            first,
            end: function.insts.len(),
            body: first,
            succs,
            preds: Vec::new(),
        });
    }
    function.link();
    function
}

fn site(kind: SiteKind, at: InstId, critical: &[Operand]) -> Site {
    Site {
        kind,
        at,
        critical: critical.to_vec(),
        safe_edges: BTreeSet::new(),
    }
}

fn plan_of(function: &Function, site: &Site, reach: Reach) -> Result<Plan, Pruned> {
    plan::intra(function, &dominators::immediate(function), site, reach)
}

#[test]
fn the_region_starts_after_the_last_destroying_instruction() {
    let function = function(vec![(vec![read(), destroy(), read(), go(), go()], vec![])]);
    let site = site(SiteKind::Dereference, 3, &[Operand::Inst(2)]);
    let plan = plan_of(&function, &site, Reach::Cheap).unwrap();
    assert_eq!((plan.points, plan.reads, plan.length), (vec![2], 1, 1));
}

#[test]
fn a_read_before_the_region_is_no_reason_to_re_execute() {
    let function = function(vec![(vec![read(), destroy(), go(), go()], vec![])]);
    let site = site(SiteKind::Dereference, 2, &[Operand::Inst(0)]);
    assert_eq!(
        plan_of(&function, &site, Reach::Longest).unwrap_err(),
        Pruned::NoSharedRead
    );
}

#[test]
fn an_assertion_depends_on_the_branch_that_leads_to_it() {
    // 0: read, choose -> 1 (fails) or 2.
    let function = function(vec![
        (vec![read(), choice(0)], vec![1, 2]),
        (vec![go()], vec![]),
        (vec![go()], vec![]),
    ]);
    let plan = plan_of(&function, &site(SiteKind::Assertion, 2, &[]), Reach::Cheap).unwrap();
    assert_eq!((plan.points, plan.reads), (vec![0], 1));
}

/// Entry reads a value and chooses; one arm destroys; both meet where the value is used.
fn diamond() -> Function {
    function(vec![
        (vec![read(), choice(0)], vec![1, 2]),
        (vec![destroy(), go()], vec![3]),
        (vec![go()], vec![3]),
        (vec![go(), go()], vec![]),
    ])
}

#[test]
fn the_point_depends_on_the_path_taken() {
    let function = diamond();
    let site = site(SiteKind::Dereference, 5, &[Operand::Inst(0)]);
    let plan = plan_of(&function, &site, Reach::Longest).unwrap();
    assert!(plan.needs_paths);
    // From the entry the read is repeated; after the destroying arm nothing is.
    assert_eq!((plan.points, plan.useless), (vec![0], vec![3]));
}

/// Five paths, each of which destroys, reads and meets the others at the site; `again` is where the site's block goes.
fn five_paths(again: Vec<usize>) -> (Function, Site) {
    let reads: Vec<Operand> = (0..5).map(|path| Operand::Inst(4 + 3 * path)).collect();
    let meets = Inst {
        shape: Shape::Phi,
        ..inst(Effect::None, &reads)
    };
    let mut blocks = vec![
        (vec![go()], vec![1]),
        (vec![read(), choice(1)], vec![2, 3, 4, 5, 6]),
    ];
    blocks.extend((0..5).map(|_| (vec![destroy(), read(), go()], vec![7])));
    blocks.push((vec![meets, go()], again));
    let function = function(blocks);
    let at = function.insts.len() - 1;
    (
        function,
        site(SiteKind::Dereference, at, &[Operand::Inst(at - 1)]),
    )
}

#[test]
fn many_points_are_kept_track_of_where_they_are_passed_once() {
    let (function, site) = five_paths(vec![]);
    let plan = plan_of(&function, &site, Reach::Cheap).unwrap();
    assert_eq!(plan.points.len(), 5);
    let (function, site) = five_paths(vec![1]);
    let pruned = plan_of(&function, &site, Reach::Cheap).unwrap_err();
    assert_eq!(pruned, Pruned::TooManyPoints);
    plan_of(&function, &site, Reach::Longest).unwrap();
}

#[test]
fn a_loop_that_redefines_what_a_point_needs_is_not_jumped_back_into() {
    // 1 is a loop header with a phi, 2 its body, which ends with a point behind a store; the site is in the header.
    let phi = Inst {
        shape: Shape::Phi,
        ..inst(Effect::None, &[Operand::Inst(4)])
    };
    let function = function(vec![
        (vec![destroy(), go()], vec![1]),
        (vec![phi, go(), choice(2)], vec![2, 3]),
        (vec![destroy(), read(), go()], vec![1]),
        (vec![go()], vec![]),
    ]);
    let site = site(
        SiteKind::Dereference,
        4,
        &[Operand::Inst(2), Operand::Inst(6)],
    );
    let found = plan_of(&function, &site, Reach::Longest);
    assert!(
        !matches!(&found, Ok(plan) if plan.points.contains(&6)),
        "{found:?}"
    );
}

#[test]
fn a_deadlock_needs_a_lock_to_release() {
    let alone = function(vec![(vec![destroy(), inst(LOCK, &[]), go()], vec![])]);
    assert_eq!(
        plan_of(&alone, &site(SiteKind::Deadlock, 1, &[]), Reach::Cheap).unwrap_err(),
        Pruned::NoLockInRegion
    );
    let nested = function(vec![(
        vec![destroy(), inst(LOCK, &[]), read(), inst(LOCK, &[]), go()],
        vec![],
    )]);
    let plan = plan_of(&nested, &site(SiteKind::Deadlock, 3, &[]), Reach::Cheap).unwrap();
    assert_eq!((plan.points, plan.acquires), (vec![1], vec![1]));
}

#[test]
fn a_lock_that_the_region_takes_repeatedly_ends_it() {
    // Block 1 is a loop that takes a lock; the site comes after the loop.
    let function = function(vec![
        (vec![destroy(), go()], vec![1]),
        (vec![inst(LOCK, &[]), read(), choice(3)], vec![1, 2]),
        (vec![inst(LOCK, &[]), go()], vec![]),
    ]);
    assert_eq!(
        plan_of(&function, &site(SiteKind::Deadlock, 5, &[]), Reach::Longest).unwrap_err(),
        Pruned::NoLockInRegion
    );
}

#[test]
fn a_failure_that_only_a_path_without_reads_can_bring_is_left_alone() {
    // p = read(); if (!p) p = call(); *p
    let phi = Inst {
        effect: Effect::None,
        operands: vec![Operand::Inst(1), Operand::Inst(3)],
        shape: Shape::Phi,
    };
    let function = function(vec![
        (vec![destroy(), read(), choice(1)], vec![1, 2]),
        (vec![destroy(), go()], vec![2]),
        (vec![phi, go(), go()], vec![]),
    ]);
    let open = site(SiteKind::Dereference, 6, &[Operand::Inst(5)]);
    plan_of(&function, &open, Reach::Longest).unwrap();
    let tested = Site {
        safe_edges: BTreeSet::from([(0, 2)]),
        ..open.clone()
    };
    let plan = plan_of(&function, &tested, Reach::Longest);
    assert_eq!(plan.err(), Some(Pruned::NoSharedRead));
    // The other way round, the read may have been null.
    let untested = Site {
        safe_edges: BTreeSet::from([(1, 2)]),
        ..open
    };
    plan_of(&function, &untested, Reach::Longest).unwrap();
}

#[test]
fn a_private_slot_is_restored_or_needs_no_restoring() {
    let write = Effect::SlotWrite { slot: 0, cell: 3 };
    let body = vec![destroy(), read(), inst(write, &[]), go(), go()];
    let site = site(SiteKind::Dereference, 3, &[Operand::Inst(1)]);
    let plan = plan_of(&function(vec![(body.clone(), vec![])]), &site, Reach::Cheap).unwrap();
    assert_eq!((plan.points, plan.cells), (vec![1], vec![3]));

    let mut begun = body;
    begun[1] = inst(Effect::SlotBegin { slot: 0 }, &[]);
    begun[3] = read();
    let site = super::model::Site {
        at: 4,
        critical: vec![Operand::Inst(3)],
        ..site
    };
    let plan = plan_of(&function(vec![(begun, vec![])]), &site, Reach::Longest).unwrap();
    assert_eq!((plan.points, plan.cells), (vec![1], vec![]));
}

#[test]
fn fresh_memory_may_be_written_only_where_it_was_allocated() {
    let alloc = inst(Effect::Acquire(Acquire::Memory), &[]);
    let write = inst(Effect::FreshWrite { alloc: 1 }, &[]);
    let inside = function(vec![(
        vec![destroy(), alloc.clone(), read(), write.clone(), go(), go()],
        vec![],
    )]);
    let plan = plan_of(
        &inside,
        &site(SiteKind::Dereference, 4, &[Operand::Inst(2)]),
        Reach::Cheap,
    )
    .unwrap();
    assert_eq!((plan.points, plan.acquires), (vec![1], vec![1]));
    let outside = function(vec![(
        vec![destroy(), alloc, destroy(), read(), write, go(), go()],
        vec![],
    )]);
    assert_eq!(
        plan_of(
            &outside,
            &site(SiteKind::Dereference, 5, &[Operand::Inst(3)]),
            Reach::Longest
        )
        .unwrap_err(),
        Pruned::NoSharedRead
    );
}

fn body(function: Function) -> Body {
    Body {
        idom: dominators::immediate(&function),
        function,
        is_supported: true,
        is_the_one: true,
    }
}

fn call(callee: usize, passed: Operand) -> Inst {
    Inst {
        effect: Effect::Destroy,
        operands: vec![passed],
        shape: Shape::Call {
            callee,
            passed: vec![Some(passed)],
        },
    }
}

/// Function 0 dereferences its parameter; each next one passes its own on; the last one reads it.
fn chain(links: usize) -> Program {
    let mut bodies = vec![body(function(vec![(vec![go(), go()], vec![])]))];
    for link in 0..links {
        bodies.push(body(function(vec![(
            vec![call(link, Operand::Arg(0)), go()],
            vec![],
        )])));
    }
    bodies.push(body(function(vec![(
        vec![read(), call(links, Operand::Inst(0)), go()],
        vec![],
    )])));
    Program::new(bodies, Reach::Cheap)
}

#[test]
fn callers_are_re_executed_up_to_the_limit() {
    let site = site(SiteKind::Dereference, 0, &[Operand::Arg(0)]);
    for (links, levels, is_found) in [
        (0, 1, true),
        (1, 1, false),
        (1, 2, true),
        (2, 3, true),
        (3, 3, false),
    ] {
        let program = chain(links);
        let mut marks = Marks::default();
        let found = interproc::extend(&program, 0, &site, levels, &mut marks);
        assert_eq!(found, is_found, "{links} links, {levels} levels");
        let pads = marks
            .calls
            .values()
            .filter(|mark| matches!(mark, Mark::Pad(_)))
            .count();
        let through = marks
            .calls
            .values()
            .filter(|mark| matches!(mark, Mark::Through))
            .count();
        assert_eq!((pads, through), if is_found { (1, links) } else { (0, 0) });
    }
}

#[test]
fn a_callee_that_destroys_first_keeps_its_callers_out() {
    let callee = body(function(vec![(vec![destroy(), go(), go()], vec![])]));
    let caller = body(function(vec![(
        vec![read(), call(0, Operand::Inst(0)), go()],
        vec![],
    )]));
    let program = Program::new(vec![callee, caller], Reach::Cheap);
    let site = site(SiteKind::Dereference, 1, &[Operand::Arg(0)]);
    let mut marks = Marks::default();
    assert!(!interproc::extend(&program, 0, &site, 3, &mut marks));
    assert!(marks.calls.is_empty());
}

#[test]
fn a_caller_with_a_final_path_has_no_pad() {
    let mut caller = diamond();
    caller.insts[5] = call(0, Operand::Inst(0));
    let callee = body(function(vec![(vec![go(), go()], vec![])]));
    let program = Program::new(vec![callee, body(caller)], Reach::Longest);
    let site = site(SiteKind::Dereference, 0, &[Operand::Arg(0)]);
    let mut marks = Marks::default();
    assert!(!interproc::extend(&program, 0, &site, 3, &mut marks));
}

mod log;
mod sections;

#[test]
fn dominators_of_a_diamond() {
    assert_eq!(
        dominators::immediate(&diamond()),
        [None, Some(0), Some(0), Some(0)]
    );
}
