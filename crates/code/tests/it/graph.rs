//! Blocks, jump tables, dominators and loops.

use crate::fixture::{assembled, at, compile, edges, graph, loops};
use raddle_code::{BlockId, CodeError, Dominators, FlowGraph, Leave, NoReturn};
use raddle_symbols::LinkAddr;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

fn leaves(graph: &FlowGraph) -> Vec<Leave> {
    graph
        .blocks
        .iter()
        .flat_map(|block| block.leaves.clone())
        .collect()
}

#[test]
fn straight_code_is_one_block_that_returns() {
    for level in LEVELS {
        let module = compile("shapes.c", &[level]);
        let graph = graph(&module, "straight");
        assert_eq!(graph.blocks.len(), 1);
        assert_eq!(leaves(&graph), [Leave::Return]);
        let bytes: u64 = graph.instructions().map(|i| u64::from(i.len)).sum();
        assert_eq!(bytes, crate::fixture::function(&module, "straight").size);
    }
}

#[test]
fn branches_meet_again_and_the_fork_dominates_the_meeting() {
    let module = compile("shapes.c", &["-O0"]);
    let graph = graph(&module, "diamond");
    assert_eq!(edges(&graph), "0>1 0>2 1>3 2>3");
    let dominators = Dominators::new(&graph);
    assert_eq!(dominators.immediate(BlockId(3)), Some(BlockId(0)));
    assert_eq!(dominators.immediate(BlockId(0)), None);
    assert!(dominators.dominates(BlockId(0), BlockId(3)));
    assert!(dominators.dominates(BlockId(3), BlockId(3)));
    assert!(!dominators.dominates(BlockId(1), BlockId(3)));
    assert!(!dominators.dominates(BlockId(3), BlockId(0)));
    assert_eq!(loops(&graph).all, []);
}

#[test]
fn nested_loops_know_their_parent_and_their_exits() {
    for level in ["-O0", "-O1"] {
        let module = compile("shapes.c", &[level]);
        let graph = graph(&module, "nested");
        let loops = loops(&graph);
        let [outer, inner] = loops.all.as_slice() else {
            panic!("{level}: {loops:?}");
        };
        assert_eq!((outer.depth, inner.depth), (1, 2));
        assert_eq!(inner.parent, Some(raddle_code::LoopId(0)));
        assert!(inner.body.is_subset(&outer.body) && inner.body != outer.body);
        assert_eq!(loops.innermost(inner.header), Some(raddle_code::LoopId(1)));
        assert_eq!(loops.innermost(BlockId(0)), None);
        assert_eq!(inner.exits.len(), 1, "{level}");
        assert!(loops.irreducible.is_empty());
    }
}

#[test]
fn switches_are_resolved_whatever_the_code_model() {
    let variants: &[&[&str]] = &[
        &["-O0"],
        &["-O0", "-no-pie", "-fno-pic"],
        &["-O2"],
        &["-O2", "-no-pie", "-fno-pic"],
        &["-O2", "-fcf-protection=branch"],
        &["-Os"],
    ];
    for flags in variants {
        let module = compile("shapes.c", flags);
        let graph = graph(&module, "pick");
        assert!(!leaves(&graph).contains(&Leave::Unknown), "{flags:?}");
        let widest = graph
            .blocks
            .iter()
            .map(|block| block.successors.len())
            .max();
        assert_eq!(widest, Some(7), "{flags:?}");
        let dominators = Dominators::new(&graph);
        assert_eq!(dominators.reverse_postorder().len(), graph.blocks.len());
    }
}

#[test]
fn hand_made_tables_have_exactly_their_targets() {
    let module = assembled();
    let masked = graph(&module, "masked");
    assert_eq!(edges(&masked), "0>1 0>2 0>3");
    let fixed = graph(&module, "fixed_table");
    // 0 compares, 1 jumps, 2 and 3 are the cases, 4 is the default.
    assert_eq!(edges(&fixed), "0>1 0>4 1>2 1>3");
}

#[test]
fn calls_that_do_not_return_and_calls_in_tail_position_leave() {
    for level in ["-O0", "-O2"] {
        let module = compile("shapes.c", &[level]);
        let graph = graph(&module, "checked");
        let mut all = leaves(&graph);
        all.sort_by_key(|leave| format!("{leave:?}"));
        assert_eq!(all, [Leave::Never, Leave::Return], "{level}");
    }
    let module = compile("shapes.c", &["-O2", "-fno-inline", "-fno-ipa-icf"]);
    let straight = at(&module, "straight", 0);
    let tail = leaves(&graph(&module, "tail"));
    assert_eq!(tail, [Leave::TailCall(straight)]);
}

#[test]
fn cold_parts_belong_to_their_function() {
    let module = compile("shapes.c", &["-O2"]);
    let graph = graph(&module, "checked");
    assert_eq!(graph.ranges.len(), 2, "GCC moves the call of abort away");
    let cold = graph
        .blocks
        .iter()
        .find(|block| graph.ranges[1].contains(&block.start()));
    assert_eq!(
        cold.map(|block| block.leaves.clone()),
        Some(vec![Leave::Never])
    );
}

#[test]
fn cycles_with_two_entries_are_reported_as_such() {
    let module = assembled();
    let graph = graph(&module, "irreducible");
    let loops = loops(&graph);
    assert_eq!(loops.all, []);
    assert_eq!(loops.irreducible.len(), 1);
}

#[test]
fn overlapping_instructions_are_two_blocks_that_meet() {
    let module = assembled();
    let graph = graph(&module, "overlap");
    let starts: Vec<u64> = graph
        .blocks
        .iter()
        .map(|block| block.start().0 - graph.ranges[0].start.0)
        .collect();
    // The MOV at 4, the INC inside it at 5, the RET at 9 where both go on.
    assert_eq!(starts, [0, 4, 5, 9]);
    assert_eq!(edges(&graph), "0>1 0>2 1>3 2>3");
}

#[test]
fn code_that_ends_early_leaves_undecodable() {
    let module = assembled();
    assert_eq!(leaves(&graph(&module, "truncated")), [Leave::Undecodable]);
    let start = graph(&module, "_start");
    assert_eq!(leaves(&start), [Leave::Never]);
    assert_eq!(start.blocks.len(), 1);
}

#[test]
fn what_is_not_code_is_refused() {
    let module = assembled();
    let address = LinkAddr(0x10);
    let refused = FlowGraph::of_ranges(
        &module,
        address,
        vec![address..address.plus(4)],
        &NoReturn::of_libraries(),
    );
    assert_eq!(refused, Err(CodeError::NotCode { address }));
}

#[test]
fn matches_without_a_bound_are_guessed_and_pointers_to_own_functions_seen_through() {
    let module = compile("shapes.rs", &["-Copt-level=2", "-Coverflow-checks=off"]);
    let graph = graph(&module, "dispatch");
    assert_eq!(graph.guessed_jumps.len(), 1);
    let widest = graph
        .blocks
        .iter()
        .map(|block| block.successors.len())
        .max();
    assert_eq!(widest, Some(8));
    assert!(!leaves(&graph).contains(&Leave::Unknown));
    // Vec::push and Vec::insert grow the vector through the global offset table.
    let calls = graph.instructions().filter(|i| i.is_call());
    let names: Vec<String> = calls
        .filter_map(|call| raddle_code::flow_graph::callee_name(&module, call))
        .collect();
    assert!(
        names.iter().any(|name| name.contains("grow_one")),
        "{names:?}"
    );
}

#[test]
fn functions_of_the_program_that_never_return_are_found() {
    for level in LEVELS {
        let module = compile("shapes.c", &[level, "-fno-inline", "-fno-ipa-icf"]);
        let found: Vec<LinkAddr> = NoReturn::of_module(&module).found().collect();
        for name in ["die", "die_harder", "forever"] {
            assert!(found.contains(&at(&module, name, 0)), "{level} {name}");
        }
        for name in ["checked", "main", "straight", "strict", "_start"] {
            let is_start = name == "_start";
            assert_eq!(
                found.contains(&at(&module, name, 0)),
                is_start,
                "{level} {name}"
            );
        }
        let strict = crate::fixture::function(&module, "strict");
        let known = NoReturn::of_module(&module);
        let graph = FlowGraph::of_function(&module, strict, &known).unwrap();
        let mut all = leaves(&graph);
        all.retain(|leave| *leave != Leave::Return);
        assert_eq!(all, [Leave::Never], "{level}");
    }
}
