//! Slices with distances: which instructions decide what happens at a place, and in how many steps.
//!
//! A step is one edge of the program dependence graph: from an instruction to one that computes what it uses, or to the
//! branch that decides whether it is executed. What a called function returns is one step away from its user, however
//! the value travels back. Slices leave a function only by way of such results, as deep as the distance allows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use raddle_symbols::{LinkAddr, Module};

use crate::control_dependence::ControlDependence;
use crate::flow_graph::{BlockId, FlowGraph, Leave, has_graph};
use crate::instruction::{AccessKind, Flow, Instruction};
use crate::no_return::NoReturn;
use crate::register::{Register, RegisterSet};

/// An instruction in a graph.
pub type At = (BlockId, usize);

/// A function with what its slices need.
#[derive(Debug)]
pub struct Function {
    pub graph: FlowGraph,
    pub control: ControlDependence,
}

/// The functions of a module, looked at when they are needed.
#[derive(Debug)]
pub struct Functions {
    pub module: Arc<Module>,
    no_return: NoReturn,
    known: BTreeMap<LinkAddr, Option<Rc<Function>>>,
}

/// Distances from where a slice begins, by instruction.
pub type Distances = BTreeMap<LinkAddr, u32>;

impl Functions {
    pub fn new(module: &Arc<Module>) -> Self {
        Self {
            module: Arc::clone(module),
            no_return: NoReturn::of_module(module),
            known: BTreeMap::new(),
        }
    }

    /// The function that holds an address; none if it cannot be analysed.
    pub fn around(&mut self, address: LinkAddr) -> Option<Rc<Function>> {
        let module = Arc::clone(&self.module);
        let symbols = module.symbols();
        let symbol = symbols.function_at(address)?;
        // The part that a compiler moved away belongs to the function that it was taken from.
        let whole = symbol.name.strip_suffix(".cold");
        let whole = whole.and_then(|name| symbols.by_name(name).first().copied());
        let symbol = whole.unwrap_or(symbol);
        let no_return = &self.no_return;
        let entry = self.known.entry(symbol.address).or_insert_with(|| {
            let graph = FlowGraph::of_function(&module, symbol, no_return).ok()?;
            let control = ControlDependence::new(&graph);
            Some(Rc::new(Function { graph, control }))
        });
        entry.clone()
    }

    /// Whether an instruction goes to a function of the module itself that never comes back: compilers move the failing
    /// half of an assertion there.
    pub(crate) fn gives_up(&self, instruction: &Instruction) -> bool {
        let (Flow::Call(target) | Flow::Jump(target)) = instruction.flow else {
            return false;
        };
        let symbols = self.module.symbols();
        let symbol = symbols.function_at(target);
        let is_own = symbol.is_some_and(|symbol| symbol.address == target && has_graph(symbol));
        is_own && self.no_return.is_target_of(&self.module, instruction)
    }

    /// All instructions no more than `most` steps behind those that a slice starts with, which have their own distances.
    pub fn slice(&mut self, starts: &[(LinkAddr, u32)], most: u32) -> Distances {
        let mut distances = Distances::new();
        let mut open: VecDeque<(LinkAddr, u32)> = starts.iter().copied().collect();
        while let Some((address, distance)) = open.pop_front() {
            if distance > most || distances.contains_key(&address) {
                continue;
            }
            distances.insert(address, distance);
            let Some(function) = self.around(address) else {
                continue;
            };
            let Some(at) = function.graph.find(address) else {
                continue;
            };
            for before in self.feeders(&function, at) {
                open.push_back((before, distance + 1));
            }
            for block in function.control.of(at.0) {
                let branch = function.graph.blocks[block.0].last();
                open.extend(branch.map(|branch| (branch.address, distance + 1)));
            }
        }
        distances
    }

    /// What decides whether an instruction is executed: the first step of a slice from a call.
    pub fn deciders(function: &Function, at: At) -> Vec<LinkAddr> {
        let blocks = function.control.of(at.0);
        let branches = blocks.filter_map(|block| function.graph.blocks[block.0].last());
        branches.map(|branch| branch.address).collect()
    }

    /// The instructions that set up registers for an instruction.
    pub fn set_up(&mut self, function: &Function, at: At, registers: RegisterSet) -> Vec<LinkAddr> {
        let wanted = registers.iter().map(Place::Register);
        self.makers(function, at, wanted.collect())
    }

    /// The instructions whose results an instruction uses, for values and for addresses.
    fn feeders(&mut self, function: &Function, at: At) -> Vec<LinkAddr> {
        let instruction = &function.graph.blocks[at.0.0].instructions[at.1];
        // What a called function uses is its own business.
        if instruction.is_call() && instruction.accesses.iter().all(|a| !a.kind.reads()) {
            return Vec::new();
        }
        let registers = instruction.reads.minus(frame(&function.graph));
        let slots = instruction.accesses.iter();
        let slots = slots.filter(|access| access.kind.reads());
        let slots = slots.filter_map(|access| function.graph.slot(access));
        let wanted = registers.iter().map(Place::Register);
        let wanted = wanted.chain(slots.map(Place::Slot)).collect();
        self.makers(function, at, wanted)
    }

    /// The instructions that made the values of places before an instruction.
    fn makers(&mut self, function: &Function, at: At, wanted: Vec<Place>) -> Vec<LinkAddr> {
        let mut found = BTreeSet::new();
        for place in wanted {
            for maker in definitions(&function.graph, at, place) {
                let instruction = &function.graph.blocks[maker.0.0].instructions[maker.1];
                found.insert(instruction.address);
                found.extend(self.results(instruction));
            }
        }
        found.into_iter().collect()
    }

    /// The instructions of a called function that make what it returns.
    fn results(&mut self, call: &Instruction) -> Vec<LinkAddr> {
        let Flow::Call(target) = call.flow else {
            return Vec::new();
        };
        let Some(callee) = self.around(target) else {
            return Vec::new();
        };
        let returns = callee.graph.blocks.iter().enumerate();
        let returns = returns.filter(|(_, block)| block.leaves.contains(&Leave::Return));
        let ends = returns.map(|(index, block)| (BlockId(index), block.instructions.len()));
        let makers =
            ends.flat_map(|at| definitions(&callee.graph, at, Place::Register(Register::RAX)));
        let makers =
            makers.map(|(block, index)| callee.graph.blocks[block.0].instructions[index].address);
        makers.collect()
    }
}

/// What can hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Register(Register),
    /// A local variable, by its offset from the frame pointer.
    Slot(i64),
}

/// Registers that point to the stack: they mean nothing but themselves.
pub(crate) fn frame(graph: &FlowGraph) -> RegisterSet {
    let rsp = RegisterSet::one(Register::RSP);
    if graph.has_frame_pointer {
        rsp.with(Register::RBP)
    } else {
        rsp
    }
}

/// The instructions whose value a place may hold before another one: the nearest on every path.
pub(crate) fn definitions(graph: &FlowGraph, (block, index): At, place: Place) -> BTreeSet<At> {
    let mut found = BTreeSet::new();
    let mut is_seen = vec![false; graph.blocks.len()];
    let mut open = vec![(block, index)];
    while let Some((block, end)) = open.pop() {
        let instructions = &graph.blocks[block.0].instructions;
        let mut is_settled = false;
        for at in (0..end.min(instructions.len())).rev() {
            match definition(graph, &instructions[at], place) {
                Definition::None => continue,
                Definition::Part => {
                    found.insert((block, at));
                    continue;
                }
                Definition::Whole => found.insert((block, at)),
                // A register that a call destroyed holds nothing that anybody may use.
                Definition::Lost => false,
            };
            is_settled = true;
            break;
        }
        if is_settled {
            continue;
        }
        for &before in &graph.blocks[block.0].predecessors {
            if !std::mem::replace(&mut is_seen[before.0], true) {
                open.push((before, usize::MAX));
            }
        }
    }
    found
}

/// What an instruction does to a place.
enum Definition {
    None,
    /// The old value may remain, or a part of it.
    Part,
    Whole,
    Lost,
}

fn definition(graph: &FlowGraph, instruction: &Instruction, place: Place) -> Definition {
    match place {
        Place::Register(register) => {
            let results = RegisterSet::one(Register::RAX);
            let is_call = instruction.is_call();
            if is_call && results.contains(register) {
                Definition::Whole
            } else if is_call && RegisterSet::CALL_CLOBBERED.contains(register) {
                Definition::Lost
            } else if instruction.writes.contains(register)
                || (instruction.flow == Flow::Syscall && results.contains(register))
            {
                Definition::Whole
            } else if instruction.partial_writes.contains(register) {
                Definition::Part
            } else {
                Definition::None
            }
        }
        Place::Slot(slot) => {
            let stores = instruction
                .accesses
                .iter()
                .filter(|access| graph.slot(access) == Some(slot));
            match stores.map(|access| access.kind).find(|kind| kind.writes()) {
                Some(AccessKind::Write) => Definition::Whole,
                Some(_) => Definition::Part,
                None => Definition::None,
            }
        }
    }
}
