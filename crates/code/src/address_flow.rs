//! Reads whose values become addresses: indices, offsets, lengths and texts that are copied without a bound.
//!
//! ConMem's Con-Overflow (Zhang, Sun, Lu, ASPLOS 2010) takes a variable for an index if a value that was read from it
//! takes part in an address within three steps of data dependence. The paper follows the data of a second run; here the
//! machine code is asked, going back from every address of the function that reads. A step is an instruction that
//! computes something: copies and changes of width are none, or the answer would depend on how a program is compiled.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use raddle_symbols::{LinkAddr, Module};

use crate::dependence::{At, Function, Functions, Place, definitions, frame};
use crate::failure_site::ARGUMENTS;
use crate::flow_graph::{BlockId, FlowGraph, callee_name};
use crate::register::{Register, RegisterSet};

/// What a value that was read is used for, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It points to what is copied until its end, however long that is.
    Text,
    /// It says how much is copied.
    Length,
    /// It takes part in an address.
    Index,
}

/// A read whose value becomes an address or decides how far a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexRead {
    pub role: Role,
    /// The instruction that uses the address.
    pub sink: LinkAddr,
    /// Computations between the read and the address.
    pub steps: u32,
}

/// The reads of a module that become addresses, function by function as they are asked for.
#[derive(Debug)]
pub struct IndexReads {
    functions: Functions,
    most: u32,
    /// By the entry of their function.
    known: BTreeMap<LinkAddr, BTreeMap<LinkAddr, IndexRead>>,
}

/// A function of the C library that copies: which of its arguments are what.
struct Copies {
    name: &'static str,
    indices: &'static [usize],
    lengths: &'static [usize],
    texts: &'static [usize],
}

const fn copies(
    name: &'static str,
    indices: &'static [usize],
    lengths: &'static [usize],
    texts: &'static [usize],
) -> Copies {
    Copies {
        name,
        indices,
        lengths,
        texts,
    }
}

const COPYING: &[Copies] = &[
    copies("memcpy", &[0, 1], &[2], &[]),
    copies("memmove", &[0, 1], &[2], &[]),
    copies("mempcpy", &[0, 1], &[2], &[]),
    copies("memset", &[0], &[2], &[]),
    copies("bcopy", &[0, 1], &[2], &[]),
    copies("strcpy", &[0, 1], &[], &[1]),
    copies("stpcpy", &[0, 1], &[], &[1]),
    copies("strcat", &[0, 1], &[], &[1]),
    copies("strncpy", &[0, 1], &[2], &[]),
    copies("strncat", &[0, 1], &[2], &[]),
    copies("sprintf", &[0], &[], &[2, 3, 4, 5]),
    copies("snprintf", &[0], &[1], &[]),
    copies("fgets", &[0], &[1], &[]),
    copies("fread", &[0], &[1, 2], &[]),
    copies("read", &[1], &[2], &[]),
    copies("recv", &[1], &[2], &[]),
];

impl Copies {
    /// By linker name; the checking forms of the C library have the same first arguments.
    fn named(name: &str) -> Option<&'static Self> {
        let plain = name.strip_prefix("__").and_then(|n| n.strip_suffix("_chk"));
        let plain = plain.unwrap_or(name);
        COPYING.iter().find(|copies| copies.name == plain)
    }

    fn arguments(&self) -> impl Iterator<Item = (Role, Register)> {
        let of = |role: Role, arguments: &'static [usize]| {
            let registers = arguments.iter().map(|number| ARGUMENTS[*number]);
            registers.map(move |register| (role, register))
        };
        of(Role::Text, self.texts)
            .chain(of(Role::Length, self.lengths))
            .chain(of(Role::Index, self.indices))
    }
}

impl IndexReads {
    /// Those of a module that are no more than `most` computations away from their addresses.
    pub fn new(module: &Arc<Module>, most: u32) -> Self {
        Self {
            functions: Functions::new(module),
            most,
            known: BTreeMap::new(),
        }
    }

    /// What becomes of the value of a read; none if it becomes no address.
    pub fn of(&mut self, read: LinkAddr) -> Option<IndexRead> {
        let function = self.functions.around(read)?;
        let entry = function.graph.blocks[FlowGraph::ENTRY.0].start();
        if !self.known.contains_key(&entry) {
            let found = self.of_function(&function);
            self.known.insert(entry, found);
        }
        self.known[&entry].get(&read).copied()
    }

    fn of_function(&self, function: &Rc<Function>) -> BTreeMap<LinkAddr, IndexRead> {
        let mut found: BTreeMap<LinkAddr, IndexRead> = BTreeMap::new();
        let graph = &function.graph;
        for (index, block) in graph.blocks.iter().enumerate() {
            for position in 0..block.instructions.len() {
                let at = (BlockId(index), position);
                for (role, register) in self.sinks(function, at) {
                    let sink = block.instructions[position].address;
                    for (read, steps) in reads_into(function, at, register, self.most) {
                        let new = IndexRead { role, sink, steps };
                        let known = found.entry(read).or_insert(new);
                        if (new.role, new.steps) < (known.role, known.steps) {
                            *known = new;
                        }
                    }
                }
            }
        }
        found
    }

    /// The registers of an instruction that are addresses or decide how far a copy goes.
    fn sinks(&self, function: &Function, (block, position): At) -> Vec<(Role, Register)> {
        let instruction = &function.graph.blocks[block.0].instructions[position];
        if let Some(name) = callee_name(&self.functions.module, instruction) {
            let copies = Copies::named(&name);
            return copies.into_iter().flat_map(Copies::arguments).collect();
        }
        let accesses = instruction.accesses.iter();
        let registers = accesses.fold(RegisterSet::EMPTY, |all, access| {
            all.union(access.address_registers())
        });
        let registers = registers.minus(frame(&function.graph));
        registers
            .iter()
            .map(|register| (Role::Index, register))
            .collect()
    }
}

/// The reads of memory that may be shared whose values go into a register before an instruction, with the computations
/// in between.
fn reads_into(
    function: &Function,
    at: At,
    register: Register,
    most: u32,
) -> BTreeMap<LinkAddr, u32> {
    let graph = &function.graph;
    let mut reads = BTreeMap::new();
    let mut seen: BTreeSet<At> = BTreeSet::new();
    let mut open: VecDeque<(At, u32)> = VecDeque::new();
    let reach = |open: &mut VecDeque<(At, u32)>, from: At, place: Place, steps: u32| {
        for maker in definitions(graph, from, place) {
            let is_copy = graph.blocks[maker.0.0].instructions[maker.1].is_copy;
            // What costs nothing is looked at first, so that the first visit is the shortest way.
            if is_copy {
                open.push_front((maker, steps));
            } else {
                open.push_back((maker, steps + 1));
            }
        }
    };
    reach(&mut open, at, Place::Register(register), 0);
    while let Some((at, steps)) = open.pop_front() {
        if steps > most || !seen.insert(at) {
            continue;
        }
        let instruction = &graph.blocks[at.0.0].instructions[at.1];
        if instruction.is_call() {
            continue;
        }
        let mut addresses = frame(graph).with(Register::FLAGS);
        for access in &instruction.accesses {
            addresses = addresses.union(access.address_registers());
            if !access.kind.reads() {
                continue;
            }
            if let Some(slot) = graph.slot(access) {
                reach(&mut open, at, Place::Slot(slot), steps);
            } else if !graph.is_stack(access) && !access.is_thread_local {
                reads.entry(instruction.address).or_insert(steps);
            }
        }
        let updated = instruction.reads.common(instruction.writes);
        let updated = updated.minus(RegisterSet::one(Register::FLAGS));
        for register in instruction.reads.minus(addresses).union(updated).iter() {
            reach(&mut open, at, Place::Register(register), steps);
        }
    }
    reads
}
