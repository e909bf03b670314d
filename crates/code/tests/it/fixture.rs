//! Compiles the sources of `test_data`.

use std::path::Path;

use raddle_code::{Dominators, FlowGraph, Loops, NoReturn};
use raddle_symbols::{LinkAddr, Module, Symbol};
use raddle_testkit::temporary;

pub(crate) fn compile(name: &str, flags: &[&str]) -> Module {
    let folder = temporary();
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("test_data")
        .join(name);
    let path = raddle_testkit::compile(&source, &folder.path().join("program"), flags);
    let bytes = std::fs::read(path).expect("the compiler has just written it");
    Module::parse_alone(bytes).expect("compilers write good files")
}

pub(crate) fn assembled() -> Module {
    compile("shapes.s", &["-nostdlib", "-static", "-no-pie"])
}

pub(crate) fn function<'m>(module: &'m Module, name: &str) -> &'m Symbol {
    let found = module.symbols().by_name(name);
    found
        .first()
        .unwrap_or_else(|| panic!("no function {name}"))
}

pub(crate) fn graph(module: &Module, name: &str) -> FlowGraph {
    let no_return = NoReturn::of_libraries();
    FlowGraph::of_function(module, function(module, name), &no_return).expect("a compiled function")
}

pub(crate) fn loops(graph: &FlowGraph) -> Loops {
    Loops::new(graph, &Dominators::new(graph))
}

/// Block edges as `0>1 0>2`.
pub(crate) fn edges(graph: &FlowGraph) -> String {
    let edges = graph
        .edges()
        .map(|(from, to)| format!("{}>{}", from.0, to.0));
    edges.collect::<Vec<_>>().join(" ")
}

/// The address `offset` bytes into a function.
pub(crate) fn at(module: &Module, name: &str, offset: u64) -> LinkAddr {
    function(module, name).address.plus(offset)
}
