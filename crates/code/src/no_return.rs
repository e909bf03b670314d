//! Functions that never come back to their caller; code after a call of them is not reached by that call.

use std::collections::{BTreeMap, BTreeSet};

use raddle_symbols::{LinkAddr, Module, Symbol};

use crate::flow_graph::{FlowGraph, Leave, callee_name, has_graph};
use crate::instruction::{Flow, Instruction};

/// Functions of the C and C++ libraries that never return.
const LIBRARY: &[&str] = &[
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "pthread_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "__stack_chk_fail",
    "__chk_fail",
    "__fortify_fail",
    "__assert_fail",
    "__assert_perror_fail",
    "__assert",
    "err",
    "errx",
    "verr",
    "verrx",
    "_Unwind_Resume",
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_bad_cast",
    "__cxa_throw_bad_array_new_length",
    "_ZSt9terminatev",
    "_ZSt17__throw_bad_allocv",
    "_ZSt20__throw_length_errorPKc",
    "_ZSt19__throw_logic_errorPKc",
    "_ZSt24__throw_out_of_range_fmtPKcz",
];

/// What is known about functions that never return: those of the libraries, and those found in a module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NoReturn {
    found: BTreeSet<LinkAddr>,
}

impl NoReturn {
    /// Only the functions of the libraries, by name.
    pub fn of_libraries() -> Self {
        Self::default()
    }

    /// Also the functions of a module that end only in such functions, found by looking at all of them.
    ///
    /// Functions that call each other in a circle and never return are not found.
    pub fn of_module(module: &Module) -> Self {
        let mut known = Self::default();
        let mut callers: BTreeMap<LinkAddr, BTreeSet<LinkAddr>> = BTreeMap::new();
        let mut functions: BTreeMap<LinkAddr, &Symbol> = BTreeMap::new();
        for symbol in module.symbols().iter().filter(|symbol| has_graph(symbol)) {
            functions.entry(symbol.address).or_insert(symbol);
        }
        let mut open: BTreeSet<LinkAddr> = functions.keys().copied().collect();
        while let Some(address) = open.pop_first() {
            let Some(symbol) = functions.get(&address) else {
                continue;
            };
            // What cannot be analysed may return.
            let Ok(graph) = FlowGraph::of_function(module, symbol, &known) else {
                continue;
            };
            for callee in callees(&graph) {
                callers.entry(callee).or_default().insert(address);
            }
            if !known.may_return(&graph) && known.found.insert(address) {
                open.extend(callers.get(&address).into_iter().flatten());
            }
        }
        known
    }

    /// The functions found in the module, ascending.
    pub fn found(&self) -> impl Iterator<Item = LinkAddr> {
        self.found.iter().copied()
    }

    /// Whether a call or jump goes to such a function.
    pub(crate) fn is_target_of(&self, module: &Module, instruction: &Instruction) -> bool {
        let is_found = match instruction.flow {
            Flow::Call(target) | Flow::Jump(target) => self.found.contains(&target),
            _ => false,
        };
        let name = || callee_name(module, instruction);
        is_found || name().is_some_and(|name| LIBRARY.contains(&name.as_str()))
    }

    fn may_return(&self, graph: &FlowGraph) -> bool {
        let leaves = graph.blocks.iter().flat_map(|block| &block.leaves);
        let mut ways = leaves.filter(|leave| match leave {
            Leave::Never => false,
            Leave::TailCall(target) => !self.found.contains(target),
            Leave::Return | Leave::Import(_) | Leave::Unknown | Leave::Undecodable => true,
        });
        ways.next().is_some()
    }
}

fn callees(graph: &FlowGraph) -> impl Iterator<Item = LinkAddr> {
    let targets = graph
        .instructions()
        .filter_map(|instruction| match instruction.flow {
            Flow::Call(target) => Some(target),
            _ => None,
        });
    let tails = graph.blocks.iter().flat_map(|block| &block.leaves);
    targets.chain(tails.filter_map(|leave| match leave {
        Leave::TailCall(target) => Some(*target),
        _ => None,
    }))
}
