//! Whole libraries, and functions whose bytes are noise.

use crate::fixture::{assembled, loops};
use raddle_code::flow_graph::has_graph;
use raddle_code::{Dominators, FlowGraph, Instruction, Leave, NoReturn, spin_loops};
use raddle_stdx::Prng;
use raddle_stdx::width::to_usize;
use raddle_symbols::{LinkAddr, Module};

fn check(module: &Module, graph: &FlowGraph) {
    let dominators = Dominators::new(graph);
    for (index, block) in graph.blocks.iter().enumerate() {
        assert!(!block.instructions.is_empty());
        let follows = |pair: &[Instruction]| pair[0].next() == pair[1].address;
        assert!(block.instructions.windows(2).all(follows));
        assert!(
            !block.successors.is_empty() || !block.leaves.is_empty(),
            "{:?}",
            block.start()
        );
        for &to in &block.successors {
            let back = &graph.blocks[to.0].predecessors;
            assert_eq!(back.iter().filter(|from| from.0 == index).count(), 1);
        }
    }
    // Everything was found by following control, so that everything can be reached.
    assert_eq!(dominators.reverse_postorder().len(), graph.blocks.len());
    let loops = loops(graph);
    for natural in &loops.all {
        for &block in &natural.body {
            assert!(dominators.dominates(natural.header, block));
        }
    }
    spin_loops(module, graph, &dominators, &loops);
}

fn check_all(path: &str, functions_max: usize) -> (usize, usize) {
    let module = Module::parse_alone(std::fs::read(path).unwrap_or_default()).expect(path);
    let no_return = NoReturn::of_module(&module);
    let mut unknown = 0;
    let mut last = None;
    let mut n_functions = 0;
    for symbol in module.symbols().iter().filter(|symbol| has_graph(symbol)) {
        if last == Some(symbol.address) || n_functions == functions_max {
            continue;
        }
        last = Some(symbol.address);
        n_functions += 1;
        let graph =
            FlowGraph::of_function(&module, symbol, &no_return).expect("a function of a good file");
        check(&module, &graph);
        let leaves = graph.blocks.iter().flat_map(|block| &block.leaves);
        let kinds: Vec<&Leave> = leaves.collect();
        unknown += kinds
            .iter()
            .filter(|&&&leave| leave == Leave::Unknown)
            .count();
        assert!(!kinds.contains(&&Leave::Undecodable), "{symbol}");
    }
    (n_functions, unknown)
}

#[test]
fn every_function_of_the_c_library_has_a_sound_graph() {
    let (n_functions, unknown) = check_all("/lib/x86_64-linux-gnu/libc.so.6", 2000);
    assert!(n_functions > 1500, "{n_functions}");
    assert!(unknown < n_functions / 10, "{unknown} unresolved jumps");
}

#[test]
fn every_function_of_the_shell_has_a_sound_graph() {
    let (n_functions, unknown) = check_all("/bin/bash", 1000);
    assert!(n_functions > 900, "{n_functions}");
    assert!(unknown < n_functions / 10, "{unknown} unresolved jumps");
}

#[test]
fn graphs_are_the_same_every_time() {
    let module = assembled();
    let symbol = module.symbols().by_name("fixed_table")[0];
    let graph = || FlowGraph::of_function(&module, symbol, &NoReturn::of_libraries()).unwrap();
    assert_eq!(graph(), graph());
}

#[test]
fn noise_gives_a_graph_or_an_error() {
    let path = "/bin/bash";
    let good = std::fs::read(path).unwrap();
    let module = Module::parse_alone(good.clone()).unwrap();
    let code = module
        .segments()
        .iter()
        .find(|segment| segment.is_executable)
        .unwrap()
        .clone();
    let no_return = NoReturn::of_libraries();
    for round in 0..40 {
        let mut prng = Prng::new(Prng::derive_seed(0xC0DE, round));
        let mut bytes = good.clone();
        let start = to_usize(code.file_offset);
        prng.fill(&mut bytes[start..start + to_usize(code.file_size)]);
        let noisy = Module::parse_alone(bytes).unwrap();
        for _ in 0..100 {
            let entry = code.address.plus(prng.below(code.file_size));
            let size = prng.below(600) + 1;
            let range = entry..LinkAddr(entry.0 + size);
            if let Ok(graph) = FlowGraph::of_ranges(&noisy, entry, vec![range], &no_return) {
                check(&noisy, &graph);
            }
        }
    }
}
