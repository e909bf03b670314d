//! Loops that only wait: whether they end depends on memory that another context must write.
//!
//! A loop is a spin loop if each of its exits depends only on loads whose address is the same in every iteration and
//! whose memory the loop does not write, or on atomic instructions that try to take a lock. It may compute, count
//! and keep local variables on the stack, and may call functions that only give up the processor. If it also has
//! exits that depend on a counter, it is a spin loop that gives up.

use std::collections::BTreeSet;

use raddle_symbols::{LinkAddr, Module};

use crate::dominator::Dominators;
use crate::flow_graph::{BlockId, FlowGraph, callee_name};
use crate::instruction::{Access, Atomic, Flow, Instruction, Special};
use crate::natural_loop::{LoopId, Loops, NaturalLoop};
use crate::register::{Register, RegisterSet};
use crate::slice::{Slice, Source, backward_slice_in_loop};

/// Functions that only give up the processor for a while.
const YIELDING: &[&str] = &[
    "sched_yield",
    "__sched_yield",
    "pthread_yield",
    "thrd_yield",
    "usleep",
    "nanosleep",
    "__nanosleep",
    "clock_nanosleep",
    "__clock_nanosleep",
    "sleep",
    "thrd_sleep",
];

/// A loop that waits for memory to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpinLoop {
    pub id: LoopId,
    /// The first instruction of the loop.
    pub header: LinkAddr,
    /// The loads on whose values the exits and other branches depend: what a waiting context reads.
    pub loads: BTreeSet<LinkAddr>,
    /// Atomic instructions that try to take something, as in a spin lock.
    pub attempts: BTreeSet<LinkAddr>,
    pub has_pause: bool,
    /// Whether it calls a function that gives up the processor.
    pub yields: bool,
    /// Whether it may also end by itself, as after a number of rounds.
    pub gives_up: bool,
}

/// All spin loops of a function, in the order of its loops.
pub fn spin_loops(
    module: &Module,
    graph: &FlowGraph,
    dominators: &Dominators,
    loops: &Loops,
) -> Vec<SpinLoop> {
    let spin = |(index, natural)| {
        let waiting = Waiting {
            graph,
            dominators,
            natural,
        };
        spin_loop(module, &waiting, LoopId(index))
    };
    loops.all.iter().enumerate().filter_map(spin).collect()
}

fn spin_loop(module: &Module, waiting: &Waiting<'_>, id: LoopId) -> Option<SpinLoop> {
    let header = &waiting.graph.blocks[waiting.natural.header.0];
    let yields = waiting.only_waits(module)?;
    let mut spin = SpinLoop {
        id,
        header: header.start(),
        loads: BTreeSet::new(),
        attempts: BTreeSet::new(),
        has_pause: waiting
            .instructions()
            .any(|i| i.special == Some(Special::Pause)),
        yields,
        gives_up: false,
    };
    let mut waiting_exits = 0;
    for block in waiting.exit_blocks() {
        let mut reads = BTreeSet::new();
        match waiting.exit(block, &mut reads)? {
            Exit::Waits => waiting_exits += 1,
            Exit::Counts => spin.gives_up = true,
        }
        spin.loads.extend(reads);
    }
    // Branches inside the loop decide whether it tries at all.
    for &block in &waiting.natural.body {
        let mut reads = BTreeSet::new();
        if let Some(Exit::Waits) = waiting.exit(block, &mut reads) {
            spin.loads.extend(reads);
        }
    }
    for &load in &spin.loads {
        if waiting
            .at(load)
            .is_some_and(|instruction| instruction.is_atomic())
        {
            spin.attempts.insert(load);
        }
    }
    // A loop that counts and happens to look at memory is an ordinary search unless it says that it waits.
    let says_so = spin.has_pause || spin.yields;
    (waiting_exits > 0 && (!spin.gives_up || says_so)).then_some(spin)
}

enum Exit {
    /// Depends on memory that others write.
    Waits,
    /// Depends on what the loop itself computes.
    Counts,
}

struct Waiting<'g> {
    graph: &'g FlowGraph,
    dominators: &'g Dominators,
    natural: &'g NaturalLoop,
}

impl<'g> Waiting<'g> {
    fn instructions(&self) -> impl Iterator<Item = &'g Instruction> {
        let blocks = self.natural.body.iter();
        blocks.flat_map(|block| &self.graph.blocks[block.0].instructions)
    }

    fn at(&self, address: LinkAddr) -> Option<&'g Instruction> {
        self.instructions()
            .find(|instruction| instruction.address == address)
    }

    /// Whether the loop does nothing that others could notice, and if so whether it yields.
    fn only_waits(&self, module: &Module) -> Option<bool> {
        let mut yields = false;
        for instruction in self.instructions() {
            if instruction.is_call() {
                let name = callee_name(module, instruction)?;
                if !YIELDING.contains(&name.as_str()) {
                    return None;
                }
                yields = true;
                continue;
            }
            if instruction.flow == Flow::Syscall {
                return None;
            }
            let writes = instruction
                .accesses
                .iter()
                .filter(|access| access.kind.writes());
            let is_attempt = instruction
                .atomic
                .is_some_and(|atomic| atomic != Atomic::Update);
            let is_quiet = |access: &Access| self.graph.is_stack(access) || is_attempt;
            if !writes.into_iter().all(is_quiet) {
                return None;
            }
        }
        Some(yields)
    }

    /// Blocks of the loop from which control may leave it.
    fn exit_blocks(&self) -> BTreeSet<BlockId> {
        let edges = self.natural.exits.iter().map(|&(from, _)| from);
        let leaves = self.natural.body.iter().copied();
        let leaves = leaves.filter(|block| !self.graph.blocks[block.0].leaves.is_empty());
        edges.chain(leaves).collect()
    }

    /// What the exit at the end of a block depends on; `None` if on something that is not waiting.
    fn exit(&self, block: BlockId, reads: &mut BTreeSet<LinkAddr>) -> Option<Exit> {
        let instructions = &self.graph.blocks[block.0].instructions;
        let last = instructions.last()?;
        let Flow::Branch(_) = last.flow else {
            return None;
        };
        let end = (block, instructions.len() - 1);
        let slice = backward_slice_in_loop(self.graph, self.natural, end, last.reads);
        let mut loads = BTreeSet::new();
        let is_fed_by_loads = self.is_invariant(&slice, &mut loads, &mut BTreeSet::new());
        if is_fed_by_loads && !loads.is_empty() {
            reads.extend(loads);
            return Some(Exit::Waits);
        }
        let is_own = |source: &Source| match *source {
            Source::Constant(_) | Source::Entry(_) => true,
            Source::Call(_) | Source::Syscall(_) => false,
            Source::Load(at) => {
                let load = self.at(at);
                load.is_some_and(|i| i.accesses.iter().all(|a| self.graph.is_stack(a)))
            }
        };
        slice.sources.iter().all(is_own).then_some(Exit::Counts)
    }

    /// Whether a value is made only of loads at fixed places, constants and what the loop found at its start.
    fn is_invariant(
        &self,
        slice: &Slice,
        loads: &mut BTreeSet<LinkAddr>,
        in_progress: &mut BTreeSet<LinkAddr>,
    ) -> bool {
        let is_good = |source: &Source| match *source {
            Source::Constant(_) | Source::Entry(_) => true,
            Source::Call(_) | Source::Syscall(_) => false,
            Source::Load(at) => self.is_waiting_load(at, loads, in_progress),
        };
        !slice.is_carried && slice.sources.iter().all(is_good)
    }

    fn is_waiting_load(
        &self,
        at: LinkAddr,
        loads: &mut BTreeSet<LinkAddr>,
        in_progress: &mut BTreeSet<LinkAddr>,
    ) -> bool {
        let Some((block, index)) = self.graph.find(at) else {
            return false;
        };
        // A load that feeds its own address walks a list.
        if !in_progress.insert(at) {
            return false;
        }
        let instruction = &self.graph.blocks[block.0].instructions[index];
        if instruction.atomic == Some(Atomic::CompareExchange) && self.is_retry((block, index)) {
            return false;
        }
        let read = instruction
            .accesses
            .iter()
            .filter(|access| access.kind.reads());
        let read: Vec<&Access> = read.collect();
        let addresses = read.iter().fold(RegisterSet::EMPTY, |set, a| {
            set.union(a.address_registers())
        });
        let slice = backward_slice_in_loop(self.graph, self.natural, (block, index), addresses);
        let mut pointers = BTreeSet::new();
        let is_fixed = self.is_invariant(&slice, &mut pointers, in_progress);
        in_progress.remove(&at);
        let is_good = is_fixed
            && read
                .iter()
                .all(|access| !self.is_overwritten(access, instruction));
        if is_good {
            loads.insert(at);
            loads.extend(pointers);
        }
        is_good
    }

    /// Whether a compare-and-exchange expects what the loop has just read, in every iteration: it fails only if
    /// others interfere, and so the loop repeats an update rather than waits.
    fn is_retry(&self, (block, index): (BlockId, usize)) -> bool {
        let mut latches = self.natural.latches.iter();
        if !latches.all(|&latch| self.dominators.dominates(block, latch)) {
            return false;
        }
        let expected = RegisterSet::one(Register::RAX);
        let slice = backward_slice_in_loop(self.graph, self.natural, (block, index), expected);
        let mut sources = slice.sources.iter();
        sources.any(|source| matches!(source, Source::Load(_)))
    }

    /// Whether the loop itself stores where it looks; an atomic attempt may.
    fn is_overwritten(&self, access: &Access, by: &Instruction) -> bool {
        let others = self
            .instructions()
            .filter(|other| other.address != by.address);
        let stores = others
            .filter(|other| !other.is_atomic())
            .flat_map(|other| &other.accesses);
        stores
            .filter(|store| store.kind.writes())
            .any(|store| store.is_same_place(access))
    }
}
