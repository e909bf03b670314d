//! Dominators by the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).

use crate::flow_graph::{BlockId, FlowGraph};

/// Which blocks every path from the entry must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dominators {
    /// The immediate dominator of each block; the entry is its own. `None` for blocks that nothing reaches.
    immediate: Vec<Option<BlockId>>,
    /// The position of each block in reverse postorder; `None` for blocks that nothing reaches.
    position: Vec<Option<usize>>,
    order: Vec<BlockId>,
}

impl Dominators {
    pub fn new(graph: &FlowGraph) -> Self {
        let order = reverse_postorder(graph);
        let mut position = vec![None; graph.blocks.len()];
        for (at, block) in order.iter().enumerate() {
            position[block.0] = Some(at);
        }
        let mut dominators = Self {
            immediate: vec![None; graph.blocks.len()],
            position,
            order,
        };
        dominators.immediate[FlowGraph::ENTRY.0] = Some(FlowGraph::ENTRY);
        while dominators.improve(graph) {}
        dominators
    }

    /// Blocks reachable from the entry, each before its successors except along back edges.
    pub fn reverse_postorder(&self) -> &[BlockId] {
        &self.order
    }

    /// The nearest other block that every path to `block` passes; `None` for the entry and unreachable blocks.
    pub fn immediate(&self, block: BlockId) -> Option<BlockId> {
        self.immediate[block.0].filter(|&dominator| dominator != block)
    }

    /// Whether every path to `block` passes `dominator`; every reachable block dominates itself.
    pub fn dominates(&self, dominator: BlockId, block: BlockId) -> bool {
        let (Some(limit), Some(_)) = (self.position[dominator.0], self.position[block.0]) else {
            return false;
        };
        let mut current = block;
        while self.position[current.0].is_some_and(|at| at > limit) {
            let Some(next) = self.immediate(current) else {
                return false;
            };
            current = next;
        }
        current == dominator
    }

    /// Whether an edge goes back in reverse postorder.
    pub(crate) fn is_retreating(&self, from: BlockId, to: BlockId) -> bool {
        match (self.position[from.0], self.position[to.0]) {
            (Some(from), Some(to)) => to <= from,
            _ => false,
        }
    }

    fn improve(&mut self, graph: &FlowGraph) -> bool {
        let mut is_changed = false;
        for at in 1..self.order.len() {
            let block = self.order[at];
            let known = |p: &&BlockId| self.immediate[p.0].is_some();
            let mut predecessors = graph.blocks[block.0].predecessors.iter().filter(known);
            let Some(&first) = predecessors.next() else {
                continue;
            };
            let common = predecessors.fold(first, |a, &b| self.intersect(a, b));
            if self.immediate[block.0] != Some(common) {
                self.immediate[block.0] = Some(common);
                is_changed = true;
            }
        }
        is_changed
    }

    fn intersect(&self, mut a: BlockId, mut b: BlockId) -> BlockId {
        let up = |block: BlockId| self.immediate[block.0].unwrap_or(FlowGraph::ENTRY);
        while a != b {
            while self.position[a.0] > self.position[b.0] {
                a = up(a);
            }
            while self.position[b.0] > self.position[a.0] {
                b = up(b);
            }
        }
        a
    }
}

fn reverse_postorder(graph: &FlowGraph) -> Vec<BlockId> {
    let mut order = Vec::new();
    if graph.blocks.is_empty() {
        return order;
    }
    let mut is_seen = vec![false; graph.blocks.len()];
    let mut stack = vec![(FlowGraph::ENTRY, 0)];
    is_seen[FlowGraph::ENTRY.0] = true;
    while let Some((block, next)) = stack.last_mut() {
        let successors = &graph.blocks[block.0].successors;
        if let Some(&successor) = successors.get(*next) {
            *next += 1;
            if !is_seen[successor.0] {
                is_seen[successor.0] = true;
                stack.push((successor, 0));
            }
        } else {
            order.push(*block);
            stack.pop();
        }
    }
    order.reverse();
    order
}
