//! Targets of `switch` statements: tables of addresses or of offsets, as GCC, Clang and rustc lay them out.
//!
//! ```text
//! position-independent          fixed
//!   cmp  $N, i                    cmp  $N, i
//!   ja   default                  ja   default
//!   lea  table(%rip), t           jmp  *table(,i,8)
//!   movslq (t,i,4), x
//!   add  t, x
//!   jmp  *x
//! ```

use iced_x86::{Decoder, DecoderOptions, Instruction as Raw, Mnemonic, OpKind, Register as Iced};
use raddle_stdx::width::{sign_extend_32, to_u64, to_usize};
use raddle_symbols::{LinkAddr, Module};

use crate::flow_graph::{BlockId, FlowGraph, Sweep};
use crate::register::{Register, RegisterSet};
use crate::slice::{Source, backward_slice};

/// Blocks searched before the one with the jump.
const BLOCKS_BACK_MAX: usize = 4;

/// Entries of one table; more are not a `switch`.
const ENTRIES_MAX: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entries {
    /// Eight-byte addresses.
    Addresses,
    /// Four-byte offsets from the table itself.
    Offsets,
}

/// A jump table that was read from the file.
pub(crate) struct Table {
    /// Distinct and ascending; all in the function.
    pub(crate) targets: Vec<LinkAddr>,
    /// Whether the number of entries is not known but only where they cease to look like targets.
    pub(crate) is_guessed: bool,
}

/// The targets of the indirect jump at the end of a block; `None` if the code is not understood.
///
/// A table ends where the next one begins, and targets are where instructions begin: `sweep` knows both.
pub(crate) fn read(
    module: &Module,
    graph: &FlowGraph,
    block: BlockId,
    sweep: &Sweep,
) -> Option<Table> {
    let path = path_to(module, graph, block);
    let (jump, before) = path.split_last()?;
    let code = Code {
        module,
        graph,
        sweep,
    };
    let (table, entries) = code.table_of(jump, before)?;
    let count = count_of(before);
    let all = code.entries(
        table,
        entries,
        count.unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX),
    );
    let is_target = |at: &LinkAddr| graph.ranges.iter().any(|range| range.contains(at));
    let mut targets = match count {
        // A bound that is wrong shows in targets outside the function.
        Some(count) if to_u64(all.len()) < count || !all.iter().all(is_target) => return None,
        Some(_) => all,
        None => {
            let is_likely = |at: &LinkAddr| is_target(at) && sweep.starts.contains(at);
            all.into_iter().take_while(is_likely).collect()
        }
    };
    targets.sort_unstable();
    targets.dedup();
    (!targets.is_empty()).then_some(Table {
        targets,
        is_guessed: count.is_none(),
    })
}

/// The instructions that lead to the end of a block, as far back as there is only one way.
fn path_to(module: &Module, graph: &FlowGraph, block: BlockId) -> Vec<Raw> {
    let mut blocks = vec![block];
    while blocks.len() <= BLOCKS_BACK_MAX
        && let Some(first) = blocks.last()
        && let [before] = graph.blocks[first.0].predecessors.as_slice()
        && !blocks.contains(before)
    {
        blocks.push(*before);
    }
    let blocks = blocks.iter().rev();
    let instructions = blocks.flat_map(|block| &graph.blocks[block.0].instructions);
    instructions
        .map(|instruction| decode(module, instruction.address))
        .collect()
}

/// The code that tables are looked for in.
struct Code<'c> {
    module: &'c Module,
    graph: &'c FlowGraph,
    sweep: &'c Sweep,
}

impl Code<'_> {
    fn table_of(&self, jump: &Raw, before: &[Raw]) -> Option<(LinkAddr, Entries)> {
        if jump.op0_kind() == OpKind::Memory {
            return self.table_of_operand(jump, before, Entries::Addresses);
        }
        let target = jump.op0_register();
        let (load_or_add, earlier) = definition(before, target)?;
        match load_or_add.mnemonic() {
            Mnemonic::Mov => self.table_of_operand(load_or_add, earlier, Entries::Addresses),
            Mnemonic::Add => {
                // Either operand may hold the table's address; the other one holds the offset.
                let operands = [load_or_add.op0_register(), load_or_add.op1_register()];
                operands.iter().find_map(|&offset| {
                    let (mut load, mut earlier) = definition(earlier, offset)?;
                    if load.mnemonic() == Mnemonic::Cdqe {
                        // Without optimisation the load and its sign extension are two instructions.
                        (load, earlier) = definition(earlier, Iced::RAX)?;
                        let is_narrow =
                            load.mnemonic() == Mnemonic::Mov && load.op0_register().size() == 4;
                        return is_narrow
                            .then(|| self.table_of_operand(load, earlier, Entries::Offsets))?;
                    }
                    let is_load = load.mnemonic() == Mnemonic::Movsxd;
                    is_load.then(|| self.table_of_operand(load, earlier, Entries::Offsets))?
                })
            }
            _ => None,
        }
    }

    /// The table that a memory operand with a scaled index reads.
    fn table_of_operand(
        &self,
        load: &Raw,
        before: &[Raw],
        entries: Entries,
    ) -> Option<(LinkAddr, Entries)> {
        let scale = match entries {
            Entries::Addresses => 8,
            Entries::Offsets => 4,
        };
        let has_index = load.memory_index() != Iced::None && load.memory_index_scale() == scale;
        let displacement = load.memory_displacement64();
        if load.memory_base() == Iced::None {
            return has_index.then_some((LinkAddr(displacement), entries));
        }
        let start = |register: Iced| {
            let near = definition(before, register).map(|(near, _)| *near);
            let setter = near.or_else(|| self.far_definition(load, register))?;
            let fixed = match setter.mnemonic() {
                Mnemonic::Lea if setter.is_ip_rel_memory_operand() => {
                    setter.ip_rel_memory_address()
                }
                Mnemonic::Mov if is_immediate(&setter) => setter.immediate(1),
                _ => return None,
            };
            Some(LinkAddr(fixed.wrapping_add(displacement)))
        };
        // GCC without optimisation scales the index itself and adds it as a plain register.
        let is_plain = load.memory_index() != Iced::None && load.memory_index_scale() == 1;
        let table = match (has_index, is_plain) {
            (true, _) => start(load.memory_base()),
            (false, true) => start(load.memory_base()).or_else(|| start(load.memory_index())),
            (false, false) => None,
        };
        Some((table?, entries))
    }

    /// The one instruction that sets a register, however far before `at`: compilers move it out of loops.
    fn far_definition(&self, at: &Raw, register: Iced) -> Option<Raw> {
        let wanted = RegisterSet::one(Register::of(register)?);
        let place = self.graph.find(LinkAddr(at.ip()))?;
        let slice = backward_slice(self.graph, place, wanted);
        let mut sources = slice.sources.iter();
        match (sources.next(), sources.next()) {
            (Some(&Source::Constant(only)), None) => Some(decode(self.module, only)),
            _ => None,
        }
    }

    /// Up to `count` entries; fewer where another table or the end of the file begins.
    fn entries(&self, table: LinkAddr, entries: Entries, count: u64) -> Vec<LinkAddr> {
        let width = match entries {
            Entries::Addresses => 8,
            Entries::Offsets => 4,
        };
        let next = self.sweep.operands.range(table.plus(1)..).next();
        let room = next.map_or(u64::MAX, |next| (next.0 - table.0) / to_u64(width));
        let bytes = self
            .module
            .bytes_at(table, to_usize(count.min(room)) * width);
        let entry = |entry: &[u8]| match (entries, entry.first_chunk(), entry.first_chunk()) {
            (Entries::Addresses, Some(word), _) => LinkAddr(u64::from_le_bytes(*word)),
            (_, _, Some(word)) => table.plus(sign_extend_32(u32::from_le_bytes(*word).into())),
            _ => LinkAddr(0),
        };
        bytes.chunks_exact(width).map(entry).collect()
    }
}

fn decode(module: &Module, address: LinkAddr) -> Raw {
    let bytes = module.bytes_at(address, 15);
    Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE).decode()
}

fn is_immediate(instruction: &Raw) -> bool {
    instruction.op_count() == 2
        && !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory)
}

/// The last instruction that writes a register as its first operand, and what is before it.
fn definition(path: &[Raw], register: Iced) -> Option<(&Raw, &[Raw])> {
    let at = path.iter().rposition(|instruction| {
        let is_compare = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        let is_first_operand = instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == register.full_register();
        let is_extension =
            instruction.mnemonic() == Mnemonic::Cdqe && register.full_register() == Iced::RAX;
        (is_first_operand && !is_compare) || is_extension
    })?;
    Some((&path[at], &path[..at]))
}

/// How many entries the table has: by the comparison that guards it, or by the mask of its index.
fn count_of(before: &[Raw]) -> Option<u64> {
    for (at, instruction) in before.iter().enumerate().rev() {
        if instruction.mnemonic() == Mnemonic::And && is_immediate(instruction) {
            let mask = instruction.immediate(1);
            if mask < ENTRIES_MAX && (mask + 1).is_power_of_two() {
                return Some(mask + 1);
            }
        }
        let is_above = matches!(instruction.mnemonic(), Mnemonic::Ja | Mnemonic::Jbe);
        let is_not_below = matches!(instruction.mnemonic(), Mnemonic::Jae | Mnemonic::Jb);
        if is_above || is_not_below {
            let compare = before[..at]
                .iter()
                .rev()
                .find(|i| i.rflags_modified() != 0)?;
            let is_bound = compare.mnemonic() == Mnemonic::Cmp && is_immediate(compare);
            let bound = compare.immediate(if is_bound { 1 } else { return None });
            return Some(bound.saturating_add(u64::from(is_above)));
        }
    }
    None
}
