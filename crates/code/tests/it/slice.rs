//! What feeds a register.

use std::collections::BTreeSet;

use crate::fixture::{assembled, at, compile, graph, loops};
use raddle_code::{BlockId, Register, RegisterSet, Source, backward_slice};

#[test]
fn a_condition_is_fed_by_the_load_and_the_parameter() {
    let module = assembled();
    let graph = graph(&module, "flags_through");
    let block = &graph.blocks[0];
    let end = block.instructions.len() - 1;
    let flags = RegisterSet::one(Register::FLAGS);
    let slice = backward_slice(&graph, (BlockId(0), end), flags);
    let offset = |offset| at(&module, "flags_through", offset);
    // movl (%rdi), %eax; addl %esi, %eax; cmpl $5, %eax.
    let instructions = BTreeSet::from([offset(0), offset(4), offset(6)]);
    assert_eq!(slice.instructions, instructions);
    let sources = BTreeSet::from([Source::Load(offset(0)), Source::Entry(Register::RSI)]);
    assert_eq!(slice.sources, sources);
    assert!(!slice.is_carried);
}

#[test]
fn values_join_from_both_ways() {
    let module = assembled();
    let graph = graph(&module, "flags_through");
    let last = BlockId(graph.blocks.len() - 1);
    let slice = backward_slice(&graph, (last, 0), RegisterSet::one(Register::RCX));
    let zero = graph.blocks[1].start();
    let sources = BTreeSet::from([Source::Constant(zero), Source::Entry(Register::RDX)]);
    assert_eq!(slice.sources, sources);
}

#[test]
fn calls_give_their_result_and_destroy_the_rest() {
    let module = compile("shapes.c", &["-O1", "-fno-inline"]);
    let graph = graph(&module, "main");
    let calls: Vec<_> = graph.instructions().filter(|i| i.is_call()).collect();
    assert_eq!(calls.len(), 2);
    let last = BlockId(graph.blocks.len() - 1);
    let end = graph.blocks[last.0].instructions.len() - 1;
    let slice = backward_slice(&graph, (last, end), RegisterSet::one(Register::RAX));
    let both: BTreeSet<Source> = calls
        .iter()
        .map(|call| Source::Call(call.address))
        .collect();
    assert_eq!(slice.sources, both);
}

#[test]
fn loop_counters_are_carried_and_invariants_are_not() {
    let module = compile("shapes.c", &["-O1"]);
    let graph = graph(&module, "no_spin_count");
    let loops = loops(&graph);
    let natural = &loops.all[0];
    let (from, _) = natural.exits[0];
    let end = graph.blocks[from.0].instructions.len() - 1;
    let flags = RegisterSet::one(Register::FLAGS);
    let slice = raddle_code::slice::backward_slice_in_loop(&graph, natural, (from, end), flags);
    assert!(slice.is_carried, "{slice:?}");
    let entries = slice
        .sources
        .iter()
        .filter(|s| matches!(s, Source::Entry(_)))
        .count();
    assert_eq!(entries, 2, "the counter and its bound: {slice:?}");
}

#[test]
fn locals_in_memory_are_followed_in_unoptimised_code() {
    let module = compile("shapes.c", &["-O0"]);
    let graph = graph(&module, "straight");
    let end = graph.blocks[0].instructions.len() - 1;
    let slice = backward_slice(&graph, (BlockId(0), end), RegisterSet::one(Register::RAX));
    assert_eq!(
        slice.sources,
        BTreeSet::from([Source::Entry(Register::RDI)])
    );
}
