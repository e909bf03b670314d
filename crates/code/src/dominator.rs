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
    root: BlockId,
}

/// Edges between blocks in both directions, by block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edges {
    pub(crate) successors: Vec<Vec<BlockId>>,
    pub(crate) predecessors: Vec<Vec<BlockId>>,
}

impl Edges {
    fn of(graph: &FlowGraph) -> Self {
        let blocks = graph.blocks.iter();
        let (successors, predecessors) = blocks
            .map(|block| (block.successors.clone(), block.predecessors.clone()))
            .unzip();
        Self {
            successors,
            predecessors,
        }
    }
}

impl Dominators {
    pub fn new(graph: &FlowGraph) -> Self {
        Self::from(FlowGraph::ENTRY, &Edges::of(graph))
    }

    /// Which blocks every path from `root` must pass.
    pub(crate) fn from(root: BlockId, edges: &Edges) -> Self {
        let order = reverse_postorder(root, edges);
        let mut position = vec![None; edges.successors.len()];
        for (at, block) in order.iter().enumerate() {
            position[block.0] = Some(at);
        }
        let mut dominators = Self {
            immediate: vec![None; edges.successors.len()],
            position,
            order,
            root,
        };
        if let Some(immediate) = dominators.immediate.get_mut(root.0) {
            *immediate = Some(root);
        }
        while dominators.improve(edges) {}
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

    fn improve(&mut self, edges: &Edges) -> bool {
        let mut is_changed = false;
        for at in 1..self.order.len() {
            let block = self.order[at];
            let known = |p: &&BlockId| self.immediate[p.0].is_some();
            let mut predecessors = edges.predecessors[block.0].iter().filter(known);
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
        let up = |block: BlockId| self.immediate[block.0].unwrap_or(self.root);
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

fn reverse_postorder(root: BlockId, edges: &Edges) -> Vec<BlockId> {
    let mut order = Vec::new();
    if edges.successors.is_empty() {
        return order;
    }
    let mut is_seen = vec![false; edges.successors.len()];
    let mut stack = vec![(root, 0)];
    is_seen[root.0] = true;
    while let Some((block, next)) = stack.last_mut() {
        let successors = &edges.successors[block.0];
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
