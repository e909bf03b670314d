//! The control-flow graph of one function, found by following control from its entry.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use raddle_symbols::{LinkAddr, Module, Symbol, SymbolKind};

use crate::instruction::{Access, Disassembler, Flow, Instruction};
use crate::jump_table;
use crate::no_return::NoReturn;
use crate::register::{Register, RegisterSet};

/// A longer function is not analysed: the largest that compilers make have some hundred thousand instructions.
const INSTRUCTIONS_MAX: usize = 1 << 20;

/// A function without size ends here at the latest.
const UNSIZED_BYTES_MAX: u64 = 1 << 16;

/// No x86 instruction is longer.
const INSTRUCTION_BYTES_MAX: usize = 15;

/// Why a function cannot be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    #[error("{address} is not in an executable part of the file")]
    NotCode { address: LinkAddr },
    #[error("the function at {address} has more than {limit} instructions")]
    TooLarge { address: LinkAddr, limit: usize },
}

/// The index of a block in [`FlowGraph::blocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub usize);

/// Instructions that are executed one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Never empty.
    pub instructions: Vec<Instruction>,
    /// Ascending and distinct.
    pub successors: Vec<BlockId>,
    /// Ascending and distinct.
    pub predecessors: Vec<BlockId>,
    /// How control leaves the function here; empty in most blocks.
    pub leaves: Vec<Leave>,
}

impl Block {
    pub fn start(&self) -> LinkAddr {
        self.instructions
            .first()
            .map_or(LinkAddr(0), |first| first.address)
    }

    /// The instruction that decides where to go.
    pub fn last(&self) -> Option<&Instruction> {
        self.instructions.last()
    }
}

/// A way out of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Return,
    /// A jump to another function, or the end of the code where another function follows, which returns in our place.
    TailCall(LinkAddr),
    /// A jump through a slot of the global offset table to a function of another module.
    Import(LinkAddr),
    /// A call that does not come back, or an instruction that stops the program.
    Never,
    /// An indirect jump whose targets we do not know.
    Unknown,
    /// The bytes end or are no instruction.
    Undecodable,
}

/// The blocks of one function. Equal bytes and symbols give equal graphs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowGraph {
    /// The entry first, the others by ascending address.
    pub blocks: Vec<Block>,
    /// The parts of the file that belong to the function; the first one holds the entry.
    pub ranges: Vec<Range<LinkAddr>>,
    /// Whether the function begins by making RBP its frame pointer; otherwise RBP holds any value.
    pub has_frame_pointer: bool,
    /// Jumps whose table has no visible bound: their targets are those entries that look like targets.
    pub guessed_jumps: Vec<LinkAddr>,
}

impl FlowGraph {
    /// The block where the function begins.
    pub const ENTRY: BlockId = BlockId(0);

    /// The graph of a function with the parts that the compiler moved away as rarely used (`name.cold`).
    pub fn of_function(
        module: &Module,
        function: &Symbol,
        no_return: &NoReturn,
    ) -> Result<Self, CodeError> {
        let mut ranges = vec![range_of(module, function)];
        let cold = format!("{}.cold", function.name);
        for symbol in module.symbols().by_name(&cold) {
            ranges.push(range_of(module, symbol));
        }
        Self::of_ranges(module, function.address, ranges, no_return)
    }

    /// The graph of the code that can be reached from `entry` without leaving `ranges`.
    pub fn of_ranges(
        module: &Module,
        entry: LinkAddr,
        ranges: Vec<Range<LinkAddr>>,
        no_return: &NoReturn,
    ) -> Result<Self, CodeError> {
        if module.bytes_at(entry, 1).is_empty() || !module.is_code(entry) {
            return Err(CodeError::NotCode { address: entry });
        }
        let mut explorer = Explorer {
            module,
            no_return,
            ranges,
            disassembler: Disassembler::new(),
            instructions: BTreeMap::new(),
            leaders: BTreeSet::from([entry]),
            tables: BTreeMap::new(),
            guessed: Vec::new(),
            sweep: None,
            entry,
        };
        let mut open = vec![entry];
        loop {
            explorer.explore(open)?;
            let graph = explorer.graph();
            open = explorer.resolve_tables(&graph);
            if open.is_empty() {
                return Ok(graph);
            }
        }
    }

    /// Whether an access goes to the function's own stack frame, by way of the stack or frame pointer.
    pub fn is_stack(&self, access: &Access) -> bool {
        match access.base {
            Some(Register::RSP) => true,
            Some(Register::RBP) => self.has_frame_pointer,
            _ => false,
        }
    }

    /// The offset from the frame pointer of an access to one local variable.
    pub(crate) fn slot(&self, access: &Access) -> Option<i64> {
        let is_slot = access.base == Some(Register::RBP) && access.index.is_none();
        (is_slot && self.has_frame_pointer && !access.is_thread_local)
            .then_some(access.displacement)
    }

    /// All edges by ascending source and target.
    pub fn edges(&self) -> impl Iterator<Item = (BlockId, BlockId)> {
        self.blocks.iter().enumerate().flat_map(|(from, block)| {
            let from = BlockId(from);
            block.successors.iter().map(move |&to| (from, to))
        })
    }

    /// All instructions, block by block.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.blocks.iter().flat_map(|block| &block.instructions)
    }

    /// The block and the position in it of the instruction at an address.
    pub fn find(&self, address: LinkAddr) -> Option<(BlockId, usize)> {
        self.blocks.iter().enumerate().find_map(|(index, block)| {
            let at = block
                .instructions
                .iter()
                .position(|i| i.address == address)?;
            Some((BlockId(index), at))
        })
    }
}

/// The linker name of the function that a call or jump goes to, without `@plt`.
pub fn callee_name(module: &Module, instruction: &Instruction) -> Option<String> {
    let target = match instruction.flow {
        Flow::Call(target) | Flow::Jump(target) | Flow::Branch(target) => target,
        Flow::IndirectCall | Flow::IndirectJump => {
            let slot = instruction
                .accesses
                .iter()
                .find_map(|a| a.fixed_address())?;
            return module.import_at(slot).map(|import| import.name.clone());
        }
        _ => return None,
    };
    let symbol = module.symbols().function_at(target)?;
    let is_start = symbol.address == target;
    is_start.then(|| {
        symbol
            .name
            .strip_suffix("@plt")
            .unwrap_or(&symbol.name)
            .to_owned()
    })
}

fn range_of(module: &Module, function: &Symbol) -> Range<LinkAddr> {
    if function.size > 0 {
        return function.address..function.address.plus(function.size);
    }
    let is_later = |symbol: &&Symbol| symbol.address > function.address && symbol.kind.is_code();
    let next = module.symbols().iter().find(is_later);
    let limit = function.address.plus(UNSIZED_BYTES_MAX);
    let end = next.map_or(limit, |symbol| symbol.address.min(limit));
    function.address..end
}

/// `mov %rsp, %rbp` among the first instructions; ENDBR64 and pushes may come before it.
fn sets_frame_pointer(entry: &Block) -> bool {
    let rsp = RegisterSet::one(Register::RSP);
    let rbp = RegisterSet::one(Register::RBP);
    let is_move = |i: &Instruction| i.reads == rsp && i.writes == rbp && i.accesses.is_empty();
    entry.instructions.iter().take(4).any(is_move)
}

struct Explorer<'m> {
    module: &'m Module,
    no_return: &'m NoReturn,
    ranges: Vec<Range<LinkAddr>>,
    entry: LinkAddr,
    disassembler: Disassembler,
    instructions: BTreeMap<LinkAddr, Instruction>,
    /// Where blocks begin.
    leaders: BTreeSet<LinkAddr>,
    /// The targets of each indirect jump that was resolved.
    tables: BTreeMap<LinkAddr, Vec<LinkAddr>>,
    guessed: Vec<LinkAddr>,
    /// Made when the first table is looked for.
    sweep: Option<Sweep>,
}

/// All instructions of a function, reached or not.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) starts: BTreeSet<LinkAddr>,
    /// The addresses that they name.
    pub(crate) operands: BTreeSet<LinkAddr>,
}

impl<'m> Explorer<'m> {
    fn explore(&mut self, mut open: Vec<LinkAddr>) -> Result<(), CodeError> {
        while let Some(start) = open.pop() {
            let mut at = start;
            loop {
                if self.instructions.contains_key(&at) {
                    // Two paths meet here.
                    self.leaders.insert(at);
                    break;
                }
                if self.instructions.len() >= INSTRUCTIONS_MAX {
                    return Err(CodeError::TooLarge {
                        address: self.entry,
                        limit: INSTRUCTIONS_MAX,
                    });
                }
                let bytes = self.bytes(at);
                let mut instruction = self.disassembler.decode(at, bytes);
                self.see_through_pointer(&mut instruction);
                let next = instruction.next();
                let is_end = self.ends_block(&instruction);
                let targets = self.successors(&instruction);
                self.instructions.insert(at, instruction);
                if is_end {
                    for target in targets {
                        if self.leaders.insert(target) || !self.instructions.contains_key(&target) {
                            open.push(target);
                        }
                    }
                    break;
                }
                if !self.contains(next) {
                    break;
                }
                at = next;
            }
        }
        Ok(())
    }

    /// A jump or call through a pointer that the loader sets to a function of this module goes to that function.
    fn see_through_pointer(&self, instruction: &mut Instruction) {
        let Some(slot) = instruction.fixed_operand else {
            return;
        };
        // A variable of the program may hold something else by then.
        if !self.module.is_constant(slot) {
            return;
        }
        let target = self
            .module
            .pointer_at(slot)
            .filter(|&t| self.module.is_code(t));
        instruction.flow = match (instruction.flow, target) {
            (Flow::IndirectCall, Some(target)) => Flow::Call(target),
            (Flow::IndirectJump, Some(target)) => Flow::Jump(target),
            (flow, _) => flow,
        };
    }

    /// The bytes of an instruction, cut off at the end of the function.
    fn bytes(&self, at: LinkAddr) -> &'m [u8] {
        let range = self.ranges.iter().find(|range| range.contains(&at));
        let left = range.map_or(0, |range| range.end.0 - at.0);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        self.module.bytes_at(at, left.min(INSTRUCTION_BYTES_MAX))
    }

    fn contains(&self, address: LinkAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
    }

    fn ends_block(&self, instruction: &Instruction) -> bool {
        instruction.ends_block() || self.never_returns(instruction)
    }

    fn never_returns(&self, instruction: &Instruction) -> bool {
        instruction.is_call() && self.no_return.is_target_of(self.module, instruction)
    }

    /// Where control may go inside the function, ascending.
    fn successors(&self, instruction: &Instruction) -> Vec<LinkAddr> {
        let next = instruction.next();
        let mut targets = match instruction.flow {
            Flow::Jump(target) => vec![target],
            Flow::Branch(target) => vec![target, next],
            Flow::IndirectJump => self
                .tables
                .get(&instruction.address)
                .cloned()
                .unwrap_or_default(),
            Flow::Return | Flow::Stop | Flow::Invalid => Vec::new(),
            _ if self.never_returns(instruction) => Vec::new(),
            Flow::Next | Flow::Call(_) | Flow::IndirectCall | Flow::Syscall => vec![next],
        };
        targets.retain(|&target| self.contains(target));
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    fn leaves(&self, instruction: &Instruction) -> Vec<Leave> {
        let outside = |target: LinkAddr| !self.contains(target);
        let leave = match instruction.flow {
            Flow::Return => Some(Leave::Return),
            Flow::Stop => Some(Leave::Never),
            Flow::Invalid => Some(Leave::Undecodable),
            Flow::Jump(target)
                if outside(target) && self.no_return.is_target_of(self.module, instruction) =>
            {
                Some(Leave::Never)
            }
            Flow::Jump(target) | Flow::Branch(target) if outside(target) => {
                Some(Leave::TailCall(target))
            }
            Flow::IndirectJump if !self.tables.contains_key(&instruction.address) => {
                let slot = instruction.accesses.iter().find_map(Access::fixed_address);
                let slot = slot.filter(|&slot| self.module.import_at(slot).is_some());
                Some(slot.map_or(Leave::Unknown, Leave::Import))
            }
            _ if self.never_returns(instruction) => Some(Leave::Never),
            Flow::Jump(_) | Flow::IndirectJump => None,
            // The code simply ends; a call there does not come back.
            _ if outside(instruction.next()) && instruction.is_call() => Some(Leave::Never),
            _ if outside(instruction.next()) => Some(Leave::TailCall(instruction.next())),
            _ => None,
        };
        leave.into_iter().collect()
    }

    fn graph(&self) -> FlowGraph {
        let starts = self
            .leaders
            .iter()
            .filter(|at| self.instructions.contains_key(at));
        let others = starts.filter(|&&at| at != self.entry);
        let order: Vec<LinkAddr> = std::iter::once(self.entry).chain(others.copied()).collect();
        let ids: BTreeMap<LinkAddr, BlockId> = order
            .iter()
            .enumerate()
            .map(|(index, &at)| (at, BlockId(index)))
            .collect();
        let mut blocks: Vec<Block> = order.iter().map(|&at| self.block(at, &ids)).collect();
        for from in 0..blocks.len() {
            for to in blocks[from].successors.clone() {
                blocks[to.0].predecessors.push(BlockId(from));
            }
        }
        FlowGraph {
            has_frame_pointer: blocks.first().is_some_and(sets_frame_pointer),
            blocks,
            ranges: self.ranges.clone(),
            guessed_jumps: self.guessed.clone(),
        }
    }

    fn block(&self, start: LinkAddr, ids: &BTreeMap<LinkAddr, BlockId>) -> Block {
        let mut instructions = Vec::new();
        let mut at = start;
        while let Some(instruction) = self.instructions.get(&at) {
            instructions.push(instruction.clone());
            at = instruction.next();
            if self.ends_block(instruction) || self.leaders.contains(&at) {
                break;
            }
        }
        let last = instructions.last();
        let targets = last.map_or_else(Vec::new, |last| self.successors(last));
        let mut successors: Vec<BlockId> = targets
            .iter()
            .filter_map(|at| ids.get(at).copied())
            .collect();
        successors.sort_unstable();
        Block {
            leaves: last.map_or_else(Vec::new, |last| self.leaves(last)),
            instructions,
            successors,
            predecessors: Vec::new(),
        }
    }

    /// Decodes the function from end to end, as if it held nothing but instructions.
    fn sweep(&mut self) -> Sweep {
        let mut sweep = Sweep::default();
        for range in self.ranges.clone() {
            let mut at = range.start;
            while range.contains(&at) {
                let bytes = self.bytes(at);
                let instruction = self.disassembler.decode(at, bytes);
                sweep.operands.extend(instruction.fixed_operand);
                sweep.starts.insert(at);
                at = at.plus(u64::from(instruction.len.max(1)));
            }
        }
        sweep
    }

    /// Looks at indirect jumps again; returns the targets that are new.
    fn resolve_tables(&mut self, graph: &FlowGraph) -> Vec<LinkAddr> {
        let mut found = Vec::new();
        for (index, block) in graph.blocks.iter().enumerate() {
            let Some(last) = block.last() else {
                continue;
            };
            if last.flow != Flow::IndirectJump || self.tables.contains_key(&last.address) {
                continue;
            }
            if self.sweep.is_none() {
                self.sweep = Some(self.sweep());
            }
            let table = self
                .sweep
                .as_ref()
                .and_then(|sweep| jump_table::read(self.module, graph, BlockId(index), sweep));
            let Some(table) = table else {
                continue;
            };
            if table.is_guessed {
                self.guessed.push(last.address);
            }
            self.leaders.extend(&table.targets);
            found.extend(&table.targets);
            self.tables.insert(last.address, table.targets);
        }
        self.guessed.sort_unstable();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Whether a symbol names code that has a graph: stubs only jump away.
pub fn has_graph(symbol: &Symbol) -> bool {
    symbol.kind.is_code() && symbol.kind != SymbolKind::Plt
}
