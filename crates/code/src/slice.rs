//! Backward slices: which instructions of a function feed the registers at a point.
//!
//! A slice stops where a value comes out of memory, out of a call or system call, or in from the caller: what is
//! behind those is another analysis's business. Local variables in a frame with a frame pointer, as unoptimised code
//! keeps them, are followed like registers as long as they are accessed at one fixed offset.

use std::collections::{BTreeMap, BTreeSet};

use raddle_symbols::LinkAddr;

use crate::flow_graph::{BlockId, FlowGraph};
use crate::instruction::{AccessKind, Flow, Instruction};
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
    /// In a slice within a loop: whether it takes over values that the iteration before has computed.
    pub is_carried: bool,
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

/// Registers and local variables whose values are asked for.
#[derive(Debug, Clone, Default)]
struct Wanted {
    registers: RegisterSet,
    /// Offsets from the frame pointer.
    slots: BTreeSet<i64>,
}

impl Wanted {
    fn is_empty(&self) -> bool {
        self.registers.is_empty() && self.slots.is_empty()
    }

    /// What is here but not in `other`.
    fn minus(&self, other: &Self) -> Self {
        Self {
            registers: self.registers.minus(other.registers),
            slots: self.slots.difference(&other.slots).copied().collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.registers = self.registers.union(other.registers);
        self.slots.extend(&other.slots);
    }

    fn meets(&self, other: &Self) -> bool {
        !self.registers.common(other.registers).is_empty() || !self.slots.is_disjoint(&other.slots)
    }
}

struct Slicer<'g> {
    graph: &'g FlowGraph,
    within: Option<&'g NaturalLoop>,
    written_in_loop: Wanted,
    /// What has been asked for at the end of each block.
    asked: BTreeMap<BlockId, Wanted>,
    open: Vec<(BlockId, usize, Wanted)>,
    /// The instructions that read each local variable, which are its sources if nothing here writes it.
    slot_loads: BTreeMap<i64, BTreeSet<LinkAddr>>,
    slice: Slice,
}

impl<'g> Slicer<'g> {
    fn new(graph: &'g FlowGraph, within: Option<&'g NaturalLoop>) -> Self {
        let body = within.into_iter().flat_map(|natural| &natural.body);
        let mut written = Wanted::default();
        for instruction in body.flat_map(|block| &graph.blocks[block.0].instructions) {
            written.registers = written.registers.union(written_by(instruction));
            let writes = instruction
                .accesses
                .iter()
                .filter(|access| access.kind.writes());
            written
                .slots
                .extend(writes.filter_map(|access| graph.slot(access)));
        }
        Self {
            graph,
            within,
            written_in_loop: written,
            asked: BTreeMap::new(),
            open: Vec::new(),
            slot_loads: BTreeMap::new(),
            slice: Slice::default(),
        }
    }

    fn run(mut self, (block, index): (BlockId, usize), registers: RegisterSet) -> Slice {
        let slots = BTreeSet::new();
        self.open.push((block, index, Wanted { registers, slots }));
        while let Some((block, end, mut wanted)) = self.open.pop() {
            let instructions = &self.graph.blocks[block.0].instructions;
            let end = end.min(instructions.len());
            for instruction in instructions[..end].iter().rev() {
                self.step(instruction, &mut wanted);
                if wanted.is_empty() {
                    break;
                }
            }
            if !wanted.is_empty() {
                self.go_back(block, &wanted);
            }
        }
        self.slice
    }

    /// Turns what is wanted after an instruction into what is wanted before it.
    fn step(&mut self, instruction: &Instruction, wanted: &mut Wanted) {
        // The stack pointer moves all the time and means nothing but itself; so does a frame pointer.
        let mut frame = RegisterSet::one(Register::RSP);
        if self.graph.has_frame_pointer {
            frame = frame.with(Register::RBP);
        }
        let frame = wanted.registers.common(frame);
        self.slice.sources.extend(frame.iter().map(Source::Entry));
        wanted.registers = wanted.registers.minus(frame);

        let hit = wanted.registers.common(written_by(instruction));
        let stores: Vec<(i64, AccessKind)> = instruction
            .accesses
            .iter()
            .filter(|access| access.kind.writes())
            .filter_map(|access| Some((self.graph.slot(access)?, access.kind)))
            .filter(|(slot, _)| wanted.slots.contains(slot))
            .collect();
        if hit.is_empty() && stores.is_empty() {
            return;
        }
        self.slice.instructions.insert(instruction.address);
        let opaque = match instruction.flow {
            Flow::Call(_) | Flow::IndirectCall => Some(Source::Call(instruction.address)),
            Flow::Syscall => Some(Source::Syscall(instruction.address)),
            _ => None,
        };
        if let Some(source) = opaque {
            self.slice.sources.insert(source);
            wanted.registers = wanted.registers.minus(hit);
            return;
        }
        wanted.registers = wanted.registers.minus(instruction.writes);
        for (slot, kind) in stores {
            if kind == AccessKind::Write {
                wanted.slots.remove(&slot);
            }
        }
        let inputs = self.inputs(instruction);
        if inputs.is_empty() && !instruction.reads_memory() {
            self.slice
                .sources
                .insert(Source::Constant(instruction.address));
        }
        wanted.add(&inputs);
    }

    /// The registers and local variables whose values go into what an instruction computes, not into addresses.
    fn inputs(&mut self, instruction: &Instruction) -> Wanted {
        let mut inputs = Wanted::default();
        let mut addresses = RegisterSet::one(Register::RSP);
        for access in &instruction.accesses {
            addresses = addresses.union(access.address_registers());
            if !access.kind.reads() {
                continue;
            }
            if let Some(slot) = self.graph.slot(access) {
                inputs.slots.insert(slot);
                self.slot_loads
                    .entry(slot)
                    .or_default()
                    .insert(instruction.address);
            } else {
                self.slice.sources.insert(Source::Load(instruction.address));
            }
        }
        // An operand that is read and written, as in `add (%rdi), %eax`, is an input even if it is an address too.
        let updated = instruction.reads.common(instruction.writes);
        inputs.registers = instruction.reads.minus(addresses).union(updated);
        inputs
    }

    fn go_back(&mut self, block: BlockId, wanted: &Wanted) {
        let is_header = self.within.is_some_and(|natural| natural.header == block);
        if block == FlowGraph::ENTRY || is_header {
            self.slice
                .sources
                .extend(wanted.registers.iter().map(Source::Entry));
            let loads = wanted
                .slots
                .iter()
                .filter_map(|slot| self.slot_loads.get(slot));
            self.slice
                .sources
                .extend(loads.flatten().map(|&at| Source::Load(at)));
        }
        self.slice.is_carried |= is_header && wanted.meets(&self.written_in_loop);
        for &before in &self.graph.blocks[block.0].predecessors {
            if self
                .within
                .is_some_and(|natural| !natural.body.contains(&before))
            {
                continue;
            }
            let asked = self.asked.entry(before).or_default();
            let new = wanted.minus(asked);
            if !new.is_empty() {
                asked.add(&new);
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
