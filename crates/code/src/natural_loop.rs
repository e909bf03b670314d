//! Natural loops: the blocks that reach a back edge without passing the loop's header.

use std::collections::{BTreeMap, BTreeSet};

use crate::dominator::Dominators;
use crate::flow_graph::{BlockId, FlowGraph};

/// The index of a loop in [`Loops::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub usize);

/// A loop with one entry. Loops that share a header are one loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaturalLoop {
    pub header: BlockId,
    /// With the header, ascending.
    pub body: BTreeSet<BlockId>,
    /// The blocks that jump back to the header, ascending.
    pub latches: Vec<BlockId>,
    /// Edges that leave the loop inside the function, ascending.
    pub exits: Vec<(BlockId, BlockId)>,
    /// The innermost loop around this one.
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: usize,
}

/// All loops of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loops {
    /// Outer loops before the loops in them, then by header.
    pub all: Vec<NaturalLoop>,
    /// Edges that go back into the middle of a cycle with several entries; such cycles are no natural loops.
    pub irreducible: Vec<(BlockId, BlockId)>,
    innermost: BTreeMap<BlockId, LoopId>,
}

impl Loops {
    pub fn new(graph: &FlowGraph, dominators: &Dominators) -> Self {
        let mut latches: BTreeMap<BlockId, Vec<BlockId>> = BTreeMap::new();
        let mut irreducible = Vec::new();
        for (from, to) in graph.edges() {
            if dominators.dominates(to, from) {
                latches.entry(to).or_default().push(from);
            } else if dominators.is_retreating(from, to) {
                irreducible.push((from, to));
            }
        }
        let mut all: Vec<NaturalLoop> = latches
            .into_iter()
            .map(|(header, latches)| natural_loop(graph, dominators, header, latches))
            .collect();
        // A loop inside another is smaller, so that this puts outer ones first.
        all.sort_by_key(|l| (std::cmp::Reverse(l.body.len()), l.header));
        let mut innermost: BTreeMap<BlockId, LoopId> = BTreeMap::new();
        for index in 0..all.len() {
            let parent = innermost.get(&all[index].header).copied();
            all[index].parent = parent;
            all[index].depth = parent.map_or(1, |LoopId(outer)| all[outer].depth + 1);
            for &block in &all[index].body {
                innermost.insert(block, LoopId(index));
            }
        }
        Self {
            all,
            irreducible,
            innermost,
        }
    }

    /// The innermost loop that contains a block.
    pub fn innermost(&self, block: BlockId) -> Option<LoopId> {
        self.innermost.get(&block).copied()
    }

    pub fn get(&self, id: LoopId) -> &NaturalLoop {
        &self.all[id.0]
    }
}

fn natural_loop(
    graph: &FlowGraph,
    dominators: &Dominators,
    header: BlockId,
    latches: Vec<BlockId>,
) -> NaturalLoop {
    let mut body = BTreeSet::from([header]);
    let mut open = latches.clone();
    while let Some(block) = open.pop() {
        if body.insert(block) {
            let predecessors = graph.blocks[block.0].predecessors.iter();
            // Blocks that nothing reaches belong to no loop, though they may jump into one.
            open.extend(predecessors.filter(|&&p| dominators.dominates(header, p)));
        }
    }
    let exits = body.iter().flat_map(|&from| {
        let successors = graph.blocks[from.0].successors.iter();
        successors.map(move |&to| (from, to))
    });
    let exits = exits.filter(|(_, to)| !body.contains(to)).collect();
    NaturalLoop {
        header,
        latches,
        exits,
        body,
        parent: None,
        depth: 0,
    }
}
