//! Control dependence: which branches decide whether a block is executed.
//!
//! By the definition of Ferrante, Ottenstein and Warren, "The Program Dependence Graph and Its Use in Optimization"
//! (1987): a block depends on a branch if one way out of the branch always comes to the block and another may miss it.
//! Post-dominators are dominators of the reversed graph, from one exit that all ways out of the function lead to.

use std::collections::BTreeSet;

use crate::dominator::{Dominators, Edges};
use crate::flow_graph::{BlockId, FlowGraph};

/// What decides whether each block of a function is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlDependence {
    /// The blocks with the deciding branches, by block.
    on: Vec<BTreeSet<BlockId>>,
}

impl ControlDependence {
    pub fn new(graph: &FlowGraph) -> Self {
        let exit = BlockId(graph.blocks.len());
        let behind = Dominators::from(exit, &reversed(graph));
        let mut on = vec![BTreeSet::new(); graph.blocks.len()];
        for (from, to) in graph.edges() {
            let end = behind.immediate(from).unwrap_or(exit);
            let mut block = to;
            while block != end && block != exit {
                on[block.0].insert(from);
                let Some(next) = behind.immediate(block) else {
                    break;
                };
                block = next;
            }
        }
        Self { on }
    }

    /// The blocks whose last instruction decides whether `block` is executed, ascending.
    pub fn of(&self, block: BlockId) -> impl Iterator<Item = BlockId> {
        self.on[block.0].iter().copied()
    }
}

/// The graph with its edges turned round and one more block, the exit, in front of all ways out.
fn reversed(graph: &FlowGraph) -> Edges {
    let exit = BlockId(graph.blocks.len());
    let mut edges = Edges {
        successors: vec![Vec::new(); graph.blocks.len() + 1],
        predecessors: vec![Vec::new(); graph.blocks.len() + 1],
    };
    for (from, to) in graph.edges() {
        edges.successors[to.0].push(from);
        edges.predecessors[from.0].push(to);
    }
    let leaves = |index: &usize| {
        let block = &graph.blocks[*index];
        !block.leaves.is_empty() || block.successors.is_empty()
    };
    let ways_out: Vec<usize> = (0..graph.blocks.len()).filter(leaves).collect();
    let mut is_reached = vec![false; graph.blocks.len() + 1];
    for index in ways_out {
        lead_out(&mut edges, BlockId(index), exit, &mut is_reached);
    }
    // A loop without an exit: its last block counts as the way out that it does not have.
    for index in (0..graph.blocks.len()).rev() {
        if !is_reached[index] {
            lead_out(&mut edges, BlockId(index), exit, &mut is_reached);
        }
    }
    edges
}

/// Makes a block a way out and notes whatever leads to it.
fn lead_out(edges: &mut Edges, block: BlockId, exit: BlockId, is_reached: &mut [bool]) {
    edges.successors[exit.0].push(block);
    edges.predecessors[block.0].push(exit);
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut is_reached[block.0], true) {
            open.extend(&edges.successors[block.0]);
        }
    }
}
