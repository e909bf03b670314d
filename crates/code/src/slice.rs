//! Backward slices: which instructions of a function feed the registers at a point.
//!
//! A slice stops where a value comes out of memory, out of a call or system call, or in from the caller: what is
//! behind those is another analysis's business. Values that go through the stack, as in unoptimised code, therefore
//! end at the load from the stack.

use std::collections::{BTreeMap, BTreeSet};

use raddle_symbols::LinkAddr;

use crate::flow_graph::{BlockId, FlowGraph};
use crate::instruction::{Flow, Instruction};
use crate::natural_loop::NaturalLoop;
use crate::register::{Register, RegisterSet};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The instruction that reads it from memory.
    Load(LinkAddr),
    /// The call that returns or destroys it.
    Call(LinkAddr),
    Syscall(LinkAddr),
    /// The instruction that makes it out of nothing.
    Constant(LinkAddr),
    /// The register that holds it when the function, or the loop that the slice was limited to, is entered.
    Entry(Register),
}

/// What feeds some registers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    /// The instructions that take part.
    pub instructions: BTreeSet<LinkAddr>,
    pub sources: BTreeSet<Source>,
    /// In a slice within a loop: registers that the value of this iteration takes over from the one before.
    pub carried: RegisterSet,
}

/// What feeds `registers` just before the instruction at position `index` of a block.
pub fn backward_slice(
    graph: &FlowGraph,
    (block, index): (BlockId, usize),
    registers: RegisterSet,
) -> Slice {
    Slicer::new(graph, None).run((block, index), registers)
}

/// The same, looking no further than one iteration of a loop.
pub fn backward_slice_in_loop(
    graph: &FlowGraph,
    within: &NaturalLoop,
    (block, index): (BlockId, usize),
    registers: RegisterSet,
) -> Slice {
    Slicer::new(graph, Some(within)).run((block, index), registers)
}

struct Slicer<'g> {
    graph: &'g FlowGraph,
    within: Option<&'g NaturalLoop>,
    written_in_loop: RegisterSet,
    /// What has been asked for at the end of each block.
    asked: BTreeMap<BlockId, RegisterSet>,
    open: Vec<(BlockId, usize, RegisterSet)>,
    slice: Slice,
}

impl<'g> Slicer<'g> {
    fn new(graph: &'g FlowGraph, within: Option<&'g NaturalLoop>) -> Self {
        let body = within.into_iter().flat_map(|natural| &natural.body);
        let instructions = body.flat_map(|block| &graph.blocks[block.0].instructions);
        let written = instructions.fold(RegisterSet::EMPTY, |set, i| set.union(written_by(i)));
        Self {
            graph,
            within,
            written_in_loop: written,
            asked: BTreeMap::new(),
            open: Vec::new(),
            slice: Slice::default(),
        }
    }

    fn run(mut self, (block, index): (BlockId, usize), registers: RegisterSet) -> Slice {
        self.open.push((block, index, registers));
        while let Some((block, end, wanted)) = self.open.pop() {
            let instructions = &self.graph.blocks[block.0].instructions;
            let end = end.min(instructions.len());
            let mut wanted = wanted;
            for instruction in instructions[..end].iter().rev() {
                wanted = self.step(instruction, wanted);
                if wanted.is_empty() {
                    break;
                }
            }
            if !wanted.is_empty() {
                self.go_back(block, wanted);
            }
        }
        self.slice
    }

    /// What is wanted before an instruction if `wanted` is wanted after it.
    fn step(&mut self, instruction: &Instruction, wanted: RegisterSet) -> RegisterSet {
        // The stack pointer moves all the time and means nothing but itself.
        let mut wanted = wanted;
        if wanted.contains(Register::RSP) {
            self.slice.sources.insert(Source::Entry(Register::RSP));
            wanted = wanted.minus(RegisterSet::one(Register::RSP));
        }
        let hit = wanted.common(written_by(instruction));
        if hit.is_empty() {
            return wanted;
        }
        self.slice.instructions.insert(instruction.address);
        let lost = wanted.minus(hit);
        if instruction.is_call() {
            self.slice.sources.insert(Source::Call(instruction.address));
            return lost;
        }
        if instruction.flow == Flow::Syscall {
            self.slice
                .sources
                .insert(Source::Syscall(instruction.address));
            return lost;
        }
        let kept = wanted.minus(instruction.writes);
        let inputs = self.inputs(instruction);
        if inputs.is_empty() && !instruction.reads_memory() {
            self.slice
                .sources
                .insert(Source::Constant(instruction.address));
        }
        kept.union(inputs)
    }

    /// The registers whose values go into what an instruction computes, notwithstanding addresses.
    fn inputs(&mut self, instruction: &Instruction) -> RegisterSet {
        if !instruction.reads_memory() {
            return instruction.reads.minus(RegisterSet::one(Register::RSP));
        }
        self.slice.sources.insert(Source::Load(instruction.address));
        let addresses = instruction.accesses.iter();
        let addresses = addresses.fold(RegisterSet::EMPTY, |set, a| {
            set.union(a.address_registers())
        });
        // An operand that is read and written, as in `add (%rdi), %eax`, is an input even if it is an address too.
        let updated = instruction.reads.common(instruction.writes);
        instruction
            .reads
            .minus(addresses)
            .union(updated)
            .minus(RegisterSet::one(Register::RSP))
    }

    fn go_back(&mut self, block: BlockId, wanted: RegisterSet) {
        let is_header = self.within.is_some_and(|natural| natural.header == block);
        if block == FlowGraph::ENTRY || is_header {
            self.slice.sources.extend(wanted.iter().map(Source::Entry));
        }
        if is_header {
            let carried = wanted.common(self.written_in_loop);
            self.slice.carried = self.slice.carried.union(carried);
        }
        for &before in &self.graph.blocks[block.0].predecessors {
            if self
                .within
                .is_some_and(|natural| !natural.body.contains(&before))
            {
                continue;
            }
            let asked = self.asked.entry(before).or_default();
            let new = wanted.minus(*asked);
            if !new.is_empty() {
                *asked = asked.union(new);
                self.open.push((before, usize::MAX, new));
            }
        }
    }
}

/// Registers that differ after an instruction, with what a called function or the kernel may change.
fn written_by(instruction: &Instruction) -> RegisterSet {
    let own = instruction.writes.union(instruction.partial_writes);
    if instruction.is_call() {
        return own.union(RegisterSet::CALL_CLOBBERED);
    }
    if instruction.flow == Flow::Syscall {
        return own
            .with(Register::RAX)
            .with(Register::RCX)
            .with(Register::R11);
    }
    own
}
