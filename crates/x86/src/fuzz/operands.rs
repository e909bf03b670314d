//! Random operands for a form: registers, immediates, all shapes of memory operand.

use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, Instruction, Mnemonic, OpCodeOperandKind as K, OpKind,
    Register,
};
use raddle_stdx::Prng;

use super::layout::{DATA, TAKEN};
use super::values;

/// What memory operands look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Any shape; the plan sets the registers.
    Anywhere,
    /// Near R14 or R15, which programs never change.
    Pinned,
}

/// Encodes and decodes `code` with random operands for address `ip`; None if this choice has no encoding.
pub(super) fn encode(
    code: Code,
    ip: u64,
    style: Style,
    prng: &mut Prng,
) -> Option<(Instruction, Vec<u8>)> {
    let mut builder = Builder {
        style,
        insn: Instruction::default(),
        is_address_32: style == Style::Anywhere && prng.chance(1, 8),
        has_memory: prng.chance(1, 2),
        prng,
    };
    builder.insn.set_code(code);
    builder.insn.set_ip(ip);
    let kinds = code.op_code().op_kinds();
    for (operand, kind) in kinds.iter().enumerate() {
        builder.operand(u32::try_from(operand).ok()?, *kind, code)?;
    }
    builder.prefixes(code);
    let insn = builder.insn;
    let mut encoder = Encoder::new(64);
    encoder.encode(&insn, ip).ok()?;
    let bytes = encoder.take_buffer();
    let mut decoder = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE);
    let decoded = decoder.decode();
    let is_usable =
        decoded.code() == code && decoded.len() == bytes.len() && !uses_offset_as_address(&decoded);
    is_usable.then_some((decoded, bytes))
}

/// BT with its bit offset in an address register would reach anywhere; a 16-bit SHLD must have a small count.
fn uses_offset_as_address(insn: &Instruction) -> bool {
    if matches!(insn.code(), Code::Shld_rm16_r16_CL | Code::Shrd_rm16_r16_CL) {
        return insn.memory_base().full_register() == Register::RCX
            || insn.memory_index().full_register() == Register::RCX;
    }
    let is_bit_test = matches!(
        insn.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    );
    if !is_bit_test || insn.op0_kind() != OpKind::Memory || insn.op1_kind() != OpKind::Register {
        return false;
    }
    let offset = insn.op1_register().full_register();
    offset == insn.memory_base().full_register() || offset == insn.memory_index().full_register()
}

struct Builder<'a> {
    style: Style,
    insn: Instruction,
    is_address_32: bool,
    has_memory: bool,
    prng: &'a mut Prng,
}

impl Builder<'_> {
    fn pick(&mut self, count: u64) -> usize {
        usize::try_from(self.prng.below(count)).unwrap_or(0)
    }

    /// Register number `0..16` of the row that starts at `first`.
    fn of_row(&mut self, first: Register, count: u64) -> Register {
        let offset = self.pick(count);
        Register::values()
            .nth(first as usize + offset)
            .unwrap_or(first)
    }

    fn operand(&mut self, operand: u32, kind: K, code: Code) -> Option<()> {
        let register = match kind {
            K::r8_or_mem if !self.has_memory => self.of_row(Register::AL, 20),
            K::r16_or_mem if !self.has_memory => self.of_row(Register::AX, 16),
            K::r32_or_mem if !self.has_memory => self.of_row(Register::EAX, 16),
            K::r64_or_mem if !self.has_memory => self.of_row(Register::RAX, 16),
            K::mm_or_mem if !self.has_memory => self.of_row(Register::MM0, 8),
            K::xmm_or_mem if !self.has_memory => self.of_row(Register::XMM0, 16),
            K::r8_reg | K::r8_opcode => self.of_row(Register::AL, 20),
            K::r16_reg | K::r16_rm | K::r16_opcode => self.of_row(Register::AX, 16),
            K::r32_reg | K::r32_rm | K::r32_opcode => self.of_row(Register::EAX, 16),
            K::r64_reg | K::r64_rm | K::r64_opcode => self.of_row(Register::RAX, 16),
            K::mm_reg | K::mm_rm => self.of_row(Register::MM0, 8),
            K::xmm_reg | K::xmm_rm => self.of_row(Register::XMM0, 16),
            K::seg_reg => self.of_row(Register::ES, 6),
            K::cr_reg => [Register::CR0, Register::CR2, Register::CR3, Register::CR4][self.pick(4)],
            K::dr_reg => Register::DR0,
            K::sti_opcode => self.of_row(Register::ST0, 8),
            K::es => Register::ES,
            K::cs => Register::CS,
            K::ss => Register::SS,
            K::ds => Register::DS,
            K::fs => Register::FS,
            K::gs => Register::GS,
            K::al => Register::AL,
            K::cl => Register::CL,
            K::ax => Register::AX,
            K::dx => Register::DX,
            K::eax => Register::EAX,
            K::rax => Register::RAX,
            K::st0 => Register::ST0,
            _ => return self.other_operand(operand, kind, code),
        };
        self.insn.set_op_kind(operand, OpKind::Register);
        self.insn.set_op_register(operand, register);
        Some(())
    }

    fn other_operand(&mut self, operand: u32, kind: K, code: Code) -> Option<()> {
        match kind {
            K::imm8
            | K::imm8_const_1
            | K::imm8sex16
            | K::imm8sex32
            | K::imm8sex64
            | K::imm16
            | K::imm32
            | K::imm32sex64
            | K::imm64 => self.immediate(operand, kind, code),
            K::br64_1 | K::br64_4 => {
                self.insn.set_op_kind(operand, OpKind::NearBranch64);
                self.insn.set_near_branch64(TAKEN);
            }
            K::seg_rSI | K::es_rDI | K::seg_rDI => {
                let kind = match (kind, self.is_address_32) {
                    (K::seg_rSI, false) => OpKind::MemorySegRSI,
                    (K::seg_rSI, true) => OpKind::MemorySegESI,
                    (K::es_rDI, false) => OpKind::MemoryESRDI,
                    (K::es_rDI, true) => OpKind::MemoryESEDI,
                    (_, false) => OpKind::MemorySegRDI,
                    (_, true) => OpKind::MemorySegEDI,
                };
                self.insn.set_op_kind(operand, kind);
            }
            K::seg_rBX_al => {
                self.insn.set_op_kind(operand, OpKind::Memory);
                self.insn.set_memory_base(if self.is_address_32 {
                    Register::EBX
                } else {
                    Register::RBX
                });
                self.insn.set_memory_index(Register::AL);
                self.insn.set_memory_index_scale(1);
            }
            K::mem_offs => {
                self.insn.set_op_kind(operand, OpKind::Memory);
                self.insn.set_memory_displ_size(8);
                let at = self.near_middle();
                self.insn.set_memory_displacement64(at);
            }
            K::mem
            | K::r8_or_mem
            | K::r16_or_mem
            | K::r32_or_mem
            | K::r64_or_mem
            | K::mm_or_mem
            | K::xmm_or_mem => {
                self.insn.set_op_kind(operand, OpKind::Memory);
                self.memory();
            }
            _ => return None,
        }
        Some(())
    }

    /// An address for encodings whose address is fixed.
    fn near_middle(&mut self) -> u64 {
        DATA + 4096 - 64 + self.prng.below(8) * 16
    }

    fn immediate(&mut self, operand: u32, kind: K, code: Code) {
        let value = values::integer(self.prng);
        let low = value & 0xFF;
        let signed = (low << 56).cast_signed() >> 56;
        let insn = &mut self.insn;
        match kind {
            K::imm8 if operand > 0 && insn.op_kind(operand - 1) == OpKind::Immediate16 => {
                insn.set_op_kind(operand, OpKind::Immediate8_2nd);
                let level = if value >> 60 == 0 { low } else { low & 3 };
                insn.set_immediate8_2nd(level.to_le_bytes()[0]);
            }
            K::imm8 | K::imm8_const_1 => {
                let is_double_shift_16 =
                    matches!(code, Code::Shld_rm16_r16_imm8 | Code::Shrd_rm16_r16_imm8);
                let low = match kind {
                    K::imm8_const_1 => 1,
                    _ if is_double_shift_16 => low & 0xEF,
                    _ => low,
                };
                insn.set_op_kind(operand, OpKind::Immediate8);
                insn.set_immediate8(low.to_le_bytes()[0]);
            }
            K::imm8sex16 => {
                insn.set_op_kind(operand, OpKind::Immediate8to16);
                insn.set_immediate8to16(i16::try_from(signed).unwrap_or(0));
            }
            K::imm8sex32 => {
                insn.set_op_kind(operand, OpKind::Immediate8to32);
                insn.set_immediate8to32(i32::try_from(signed).unwrap_or(0));
            }
            K::imm8sex64 => {
                insn.set_op_kind(operand, OpKind::Immediate8to64);
                insn.set_immediate8to64(signed);
            }
            K::imm16 => {
                let is_frame = matches!(code.mnemonic(), Mnemonic::Enter | Mnemonic::Ret);
                let value = if is_frame {
                    value & 0x3F
                } else {
                    value & 0xFFFF
                };
                insn.set_op_kind(operand, OpKind::Immediate16);
                insn.set_immediate16(u16::try_from(value).unwrap_or(0));
            }
            K::imm32 => {
                insn.set_op_kind(operand, OpKind::Immediate32);
                insn.set_immediate32(raddle_stdx::width::low_u32(value));
            }
            K::imm32sex64 => {
                insn.set_op_kind(operand, OpKind::Immediate32to64);
                insn.set_immediate32to64(i64::from(raddle_stdx::width::low_i32(value)));
            }
            _ => {
                insn.set_op_kind(operand, OpKind::Immediate64);
                insn.set_immediate64(value);
            }
        }
    }

    /// Any shape of ModRM memory operand whose address the plan can steer into the data.
    fn memory(&mut self) {
        if self.style == Style::Pinned {
            let base = [Register::R14, Register::R15][self.pick(2)];
            let bytes = self.insn.memory_size().size();
            // Small operands may lie anywhere, across each other.
            let offset = match bytes {
                0..16 => self.prng.below(128),
                _ => self.prng.below(8) * 16,
            };
            self.insn.set_memory_base(base);
            self.insn.set_memory_displ_size(1);
            self.insn.set_memory_displacement64(offset.wrapping_sub(64));
            return;
        }
        let (row, bytes) = if self.is_address_32 {
            (Register::EAX, 4)
        } else {
            (Register::RAX, 8)
        };
        let shape = self.pick(10);
        match shape {
            0 => {
                let at = self.near_middle();
                self.insn.set_memory_base(Register::RIP);
                self.insn.set_memory_displ_size(8);
                self.insn.set_memory_displacement64(at);
                return;
            }
            1 => {
                let at = self.near_middle();
                self.insn.set_memory_displ_size(bytes);
                self.insn.set_memory_displacement64(at);
                return;
            }
            _ => {}
        }
        let base = self.of_row(row, 16);
        self.insn.set_memory_base(base);
        if shape < 5 {
            let index = self.of_row(row, 16);
            let is_stack = index.number() == 4;
            if !is_stack && index != base {
                self.insn.set_memory_index(index);
                let scale = 1 << self.pick(4);
                self.insn.set_memory_index_scale(scale);
            }
        }
        match self.pick(3) {
            0 => {}
            1 => {
                let displacement = self.prng.below(256).wrapping_sub(128);
                self.insn.set_memory_displ_size(1);
                self.set_displacement(displacement);
            }
            _ => {
                let displacement = self.prng.below(1 << 32).wrapping_sub(1 << 31);
                self.insn.set_memory_displ_size(bytes);
                self.set_displacement(displacement);
            }
        }
    }

    fn set_displacement(&mut self, value: u64) {
        let value = if self.is_address_32 {
            value & 0xFFFF_FFFF
        } else {
            value
        };
        self.insn.set_memory_displacement64(value);
    }

    fn prefixes(&mut self, code: Code) {
        let info = code.op_code();
        let insn = &mut self.insn;
        let op0_in_memory = insn.op_count() > 0 && insn.op0_kind() == OpKind::Memory;
        if op0_in_memory && info.can_use_lock_prefix() && self.prng.chance(1, 3) {
            insn.set_has_lock_prefix(true);
        }
        if code.is_string_instruction() {
            match self.prng.below(3) {
                0 => insn.set_has_rep_prefix(true),
                1 if info.can_use_repne_prefix() => insn.set_has_repne_prefix(true),
                _ => {}
            }
        }
    }
}
