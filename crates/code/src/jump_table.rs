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
use raddle_stdx::width::{sign_extend_32, to_usize};
use raddle_symbols::{LinkAddr, Module};

use crate::flow_graph::{BlockId, FlowGraph};

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

/// The distinct targets of the indirect jump at the end of a block, ascending; `None` if the code is not understood.
pub(crate) fn targets(module: &Module, graph: &FlowGraph, block: BlockId) -> Option<Vec<LinkAddr>> {
    let path = path_to(module, graph, block);
    let (jump, before) = path.split_last()?;
    let (table, entries) = table_of(jump, before)?;
    let count = count_of(before)?.min(ENTRIES_MAX);
    let width = match entries {
        Entries::Addresses => 8,
        Entries::Offsets => 4,
    };
    let len = to_usize(count) * width;
    let bytes = module.bytes_at(table, len);
    if bytes.len() < len || len == 0 {
        return None;
    }
    let mut targets: Vec<LinkAddr> = bytes
        .chunks_exact(width)
        .map(
            |entry| match (entries, entry.first_chunk::<8>(), entry.first_chunk::<4>()) {
                (Entries::Addresses, Some(word), _) => LinkAddr(u64::from_le_bytes(*word)),
                (_, _, Some(word)) => table.plus(sign_extend_32(u32::from_le_bytes(*word).into())),
                _ => LinkAddr(0),
            },
        )
        .collect();
    targets.sort_unstable();
    targets.dedup();
    Some(targets)
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
    let decode = |address: LinkAddr| {
        let bytes = module.bytes_at(address, 15);
        Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE).decode()
    };
    let blocks = blocks.iter().rev();
    let instructions = blocks.flat_map(|block| &graph.blocks[block.0].instructions);
    instructions
        .map(|instruction| decode(instruction.address))
        .collect()
}

fn table_of(jump: &Raw, before: &[Raw]) -> Option<(LinkAddr, Entries)> {
    if jump.op0_kind() == OpKind::Memory {
        return table_of_operand(jump, before, Entries::Addresses);
    }
    let target = jump.op0_register();
    let (load_or_add, earlier) = definition(before, target)?;
    match load_or_add.mnemonic() {
        Mnemonic::Mov => table_of_operand(load_or_add, earlier, Entries::Addresses),
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
                    return is_narrow.then(|| table_of_operand(load, earlier, Entries::Offsets))?;
                }
                let is_load = load.mnemonic() == Mnemonic::Movsxd;
                is_load.then(|| table_of_operand(load, earlier, Entries::Offsets))?
            })
        }
        _ => None,
    }
}

/// The table that a memory operand with a scaled index reads.
fn table_of_operand(load: &Raw, before: &[Raw], entries: Entries) -> Option<(LinkAddr, Entries)> {
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
        let (lea, _) = definition(before, register)?;
        let is_address = lea.mnemonic() == Mnemonic::Lea && lea.is_ip_rel_memory_operand();
        let fixed = match lea.mnemonic() {
            Mnemonic::Lea if is_address => lea.ip_rel_memory_address(),
            Mnemonic::Mov if is_immediate(lea) => lea.immediate(1),
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
