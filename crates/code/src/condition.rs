//! What would happen if a read gave another value: does control come to a failure site?
//!
//! The code behind the read is followed with that one value known and everything else unknown. As soon as a branch
//! depends on something unknown, so does the answer.

use std::collections::BTreeSet;

use iced_x86::{ConditionCode, Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};
use raddle_symbols::{LinkAddr, Module};

use crate::flow_graph::{BlockId, FlowGraph};
use crate::instruction::Flow;
use crate::register::{Register, RegisterSet};

/// Where control would come in a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// To this instruction.
    Instruction(LinkAddr),
    /// Into another round of a loop, whose blocks begin here.
    Stay {
        header: LinkAddr,
        body: BTreeSet<LinkAddr>,
    },
}

/// Whether control comes to its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    Comes,
    Unknown,
    Misses,
}

/// Instructions that are followed at most.
const STEPS_MAX: usize = 256;
/// No x86 instruction is longer.
const INSTRUCTION_BYTES_MAX: usize = 15;

/// Whether control comes to its goal if the instruction at an address reads this value from memory.
pub fn fate(
    module: &Module,
    graph: &FlowGraph,
    (read, value): (LinkAddr, u64),
    goal: &Goal,
) -> Fate {
    let Some((mut block, mut index)) = graph.find(read) else {
        return Fate::Unknown;
    };
    let mut values = Values::default();
    for _ in 0..STEPS_MAX {
        let instructions = &graph.blocks[block.0].instructions;
        let Some(instruction) = instructions.get(index) else {
            let [next] = graph.blocks[block.0].successors[..] else {
                return Fate::Misses;
            };
            match arrive(graph, block, next, goal) {
                Some(fate) => return fate,
                None => (block, index) = (next, 0),
            }
            continue;
        };
        if *goal == Goal::Instruction(instruction.address) {
            return Fate::Comes;
        }
        let bytes = module.bytes_at(instruction.address, INSTRUCTION_BYTES_MAX);
        let raw = Decoder::with_ip(64, bytes, instruction.address.0, DecoderOptions::NONE).decode();
        if let Flow::Branch(target) = instruction.flow {
            let Some(is_taken) = values.decide(raw.condition_code()) else {
                return Fate::Unknown;
            };
            let to = if is_taken { target } else { instruction.next() };
            let mut successors = graph.blocks[block.0].successors.iter();
            let Some(next) = successors.find(|next| graph.blocks[next.0].start() == to) else {
                return Fate::Misses;
            };
            match arrive(graph, block, *next, goal) {
                Some(fate) => return fate,
                None => (block, index) = (*next, 0),
            }
            continue;
        }
        let known = (instruction.address == read).then_some(value);
        values.step(&raw, known);
        if raw.flow_control() != FlowControl::Next {
            values.forget(RegisterSet::CALL_CLOBBERED);
        } else if !values.is_understood {
            values.forget(instruction.writes.union(instruction.partial_writes));
        }
        index += 1;
    }
    Fate::Unknown
}

/// What a step from one block to another settles.
fn arrive(graph: &FlowGraph, from: BlockId, to: BlockId, goal: &Goal) -> Option<Fate> {
    let Goal::Stay { header, body } = goal else {
        return None;
    };
    let start = graph.blocks[to.0].start();
    let is_inside = body.contains(&graph.blocks[from.0].start());
    if is_inside && !body.contains(&start) {
        Some(Fate::Misses)
    } else {
        (is_inside && start == *header).then_some(Fate::Comes)
    }
}

/// Registers and flags as far as they are known.
#[derive(Debug, Default)]
struct Values {
    registers: [Option<u64>; 16],
    flags: Option<Flags>,
    /// Whether the last step was followed, so that what it wrote is right.
    is_understood: bool,
}

#[derive(Debug, Clone, Copy)]
struct Flags {
    zero: bool,
    sign: bool,
    carry: bool,
    overflow: bool,
}

fn mask(bytes: usize) -> u64 {
    match bytes {
        1 => 0xFF,
        2 => 0xFFFF,
        4 => 0xFFFF_FFFF,
        _ => u64::MAX,
    }
}

fn sign_extended(value: u64, bytes: usize) -> u64 {
    let bits = 8 * u32::try_from(bytes).unwrap_or(8).min(8);
    let shift = 64 - bits;
    (value << shift)
        .cast_signed()
        .wrapping_shr(shift)
        .cast_unsigned()
}

fn is_negative(value: u64, bytes: usize) -> bool {
    sign_extended(value, bytes).cast_signed() < 0
}

impl Values {
    fn forget(&mut self, registers: RegisterSet) {
        for (number, value) in self.registers.iter_mut().enumerate() {
            if registers.contains(Register::general(number)) {
                *value = None;
            }
        }
        if registers.contains(Register::FLAGS) {
            self.flags = None;
        }
    }

    /// The width of an operand in bytes.
    fn width(raw: &iced_x86::Instruction, operand: u32) -> usize {
        match raw.op_kind(operand) {
            OpKind::Register => raw.op_register(operand).size(),
            OpKind::Memory => raw.memory_size().size(),
            _ => 8,
        }
    }

    fn operand(
        &self,
        raw: &iced_x86::Instruction,
        operand: u32,
        memory: Option<u64>,
    ) -> Option<u64> {
        match raw.op_kind(operand) {
            OpKind::Register => {
                let register = raw.op_register(operand);
                let is_high = register.is_gpr8()
                    && (iced_x86::Register::AH..=iced_x86::Register::BH).contains(&register);
                if !register.is_gpr() || is_high {
                    return None;
                }
                let value = self.registers[register.full_register().number()]?;
                Some(value & mask(register.size()))
            }
            OpKind::Memory => memory.map(|value| value & mask(raw.memory_size().size())),
            kind => matches!(
                kind,
                OpKind::Immediate8
                    | OpKind::Immediate16
                    | OpKind::Immediate32
                    | OpKind::Immediate64
                    | OpKind::Immediate8to16
                    | OpKind::Immediate8to32
                    | OpKind::Immediate8to64
                    | OpKind::Immediate32to64
            )
            .then(|| raw.immediate(operand)),
        }
    }

    /// Stores a result in the first operand.
    fn set(&mut self, raw: &iced_x86::Instruction, value: Option<u64>) {
        if raw.op_kind(0) != OpKind::Register || !raw.op_register(0).is_gpr() {
            return;
        }
        let register = raw.op_register(0);
        let slot = &mut self.registers[register.full_register().number()];
        *slot = match (register.size(), value) {
            // Writing 32 bits clears the rest; writing fewer keeps it.
            (4 | 8, Some(value)) => Some(value & mask(register.size())),
            (size, Some(value)) => {
                slot.map(|old| (old & !mask(size)) | (value & mask(size)))
                    // Only the low part is known, and mostly only that is used.
                    .or(Some(value & mask(size)))
            }
            (_, None) => None,
        };
    }

    /// Executes an instruction as far as what it uses is known; `memory` is what it reads from memory.
    fn step(&mut self, raw: &iced_x86::Instruction, memory: Option<u64>) {
        self.is_understood = true;
        let first = |values: &Self| values.operand(raw, 0, memory);
        let second = |values: &Self| values.operand(raw, 1, memory);
        match raw.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = second(self);
                self.set(raw, value);
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let width = Self::width(raw, 1);
                let value = second(self).map(|value| sign_extended(value, width));
                self.set(raw, value);
            }
            Mnemonic::Cmp => self.subtract(raw, memory),
            Mnemonic::Sub => {
                let value = first(self).zip(second(self));
                self.subtract(raw, memory);
                self.set(raw, value.map(|(a, b)| a.wrapping_sub(b)));
            }
            Mnemonic::Test => {
                let value = first(self).zip(second(self));
                self.logical(raw, value.map(|(a, b)| a & b));
            }
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                let is_cleared = raw.mnemonic() == Mnemonic::Xor
                    && raw.op_kind(1) == OpKind::Register
                    && raw.op_kind(0) == OpKind::Register
                    && raw.op_register(0) == raw.op_register(1);
                let value = first(self)
                    .zip(second(self))
                    .map(|(a, b)| match raw.mnemonic() {
                        Mnemonic::And => a & b,
                        Mnemonic::Or => a | b,
                        _ => a ^ b,
                    });
                let value = if is_cleared { Some(0) } else { value };
                self.logical(raw, value);
                self.set(raw, value);
            }
            Mnemonic::Nop | Mnemonic::Endbr64 => {}
            _ if raw.condition_code() != ConditionCode::None && raw.op_count() == 1 => {
                let value = self.decide(raw.condition_code()).map(u64::from);
                self.set(raw, value);
            }
            _ => self.is_understood = false,
        }
    }

    fn subtract(&mut self, raw: &iced_x86::Instruction, memory: Option<u64>) {
        let width = Self::width(raw, 0);
        let operands = self.operand(raw, 0, memory);
        let operands = operands.zip(self.operand(raw, 1, memory));
        self.flags = operands.map(|(a, b)| {
            let (a, b) = (a & mask(width), b & mask(width));
            let result = a.wrapping_sub(b) & mask(width);
            let [x, y, z] = [a, b, result].map(|value| is_negative(value, width));
            Flags {
                zero: result == 0,
                sign: z,
                carry: a < b,
                overflow: x != y && z != x,
            }
        });
    }

    fn logical(&mut self, raw: &iced_x86::Instruction, value: Option<u64>) {
        let width = Self::width(raw, 0);
        self.flags = value.map(|value| Flags {
            zero: value & mask(width) == 0,
            sign: is_negative(value, width),
            carry: false,
            overflow: false,
        });
    }

    fn decide(&self, condition: ConditionCode) -> Option<bool> {
        let Flags {
            zero,
            sign,
            carry,
            overflow,
        } = self.flags?;
        Some(match condition {
            ConditionCode::o => overflow,
            ConditionCode::no => !overflow,
            ConditionCode::b => carry,
            ConditionCode::ae => !carry,
            ConditionCode::e => zero,
            ConditionCode::ne => !zero,
            ConditionCode::be => carry || zero,
            ConditionCode::a => !carry && !zero,
            ConditionCode::s => sign,
            ConditionCode::ns => !sign,
            ConditionCode::l => sign != overflow,
            ConditionCode::ge => sign == overflow,
            ConditionCode::le => zero || sign != overflow,
            ConditionCode::g => !zero && sign == overflow,
            ConditionCode::None | ConditionCode::p | ConditionCode::np => return None,
        })
    }
}
