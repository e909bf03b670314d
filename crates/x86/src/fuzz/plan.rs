//! One encoding, and states for it that reach its interesting paths.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register, RflagsBits};
use raddle_stdx::Prng;

use super::case::Case;
use super::layout::{CODE, DATA, DATA_BYTES, TAKEN, WINDOW_BYTES};
use super::operands::{self, Style};
use super::values;
use super::vendor::undefined_flags;
use crate::cpu::{FxState, Reg};
use crate::flags::rflags;
use crate::generic::{Class, class_of};

/// Encodings to try before a form counts as impossible.
const ATTEMPTS: usize = 200;

/// One encoding of a form.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) insn: Instruction,
    code: Vec<u8>,
    class: Class,
}

impl Plan {
    /// A random encoding of `code`; None if it has none that we can steer.
    pub(super) fn new(code: Code, prng: &mut Prng) -> Option<Self> {
        let (insn, encoded) =
            (0..ATTEMPTS).find_map(|_| operands::encode(code, CODE, Style::Anywhere, prng))?;
        let mut bytes = encoded;
        bytes.extend(branch_behind(&insn, prng).into_iter().flatten());
        Some(Self {
            insn,
            code: bytes,
            class: class_of(code),
        })
    }

    /// A case with random vector registers and memory, to be refilled by `fill`.
    pub(super) fn case(&self, prng: &mut Prng) -> Case {
        let mut case = Case {
            entry: CODE,
            code: self.code.clone(),
            regs: [0; 16],
            rflags: 0,
            xmm: [[0; 16]; 16],
            fx: FxState::default(),
            memory: Box::new([[0; WINDOW_BYTES]; 3]),
            uses_vectors: self.class != Class::Integer,
        };
        for register in &mut case.xmm {
            *register = values::vector(prng);
        }
        for window in case.memory.iter_mut() {
            prng.fill(window);
        }
        case
    }

    /// Gives the case new registers, flags and operands; returns the address of the memory operand.
    pub(super) fn fill(&self, case: &mut Case, prng: &mut Prng) -> u64 {
        for register in &mut case.regs {
            *register = values::integer(prng);
        }
        case.rflags = values::flags(prng);
        match self.class {
            Class::Integer | Class::Absent => {}
            Class::Vector => {
                self.fill_vectors(case, prng);
                let mut scratch = case.fx;
                values::floating_point(prng, &mut scratch);
                case.fx.mxcsr = scratch.mxcsr;
            }
            Class::Mmx | Class::X87 => {
                self.fill_vectors(case, prng);
                values::floating_point(prng, &mut case.fx);
            }
        }
        self.steer_registers(case, prng);
        let operand = self.steer_memory(case, prng);
        self.steer_pairs(case, prng);
        operand
    }

    fn fill_vectors(&self, case: &mut Case, prng: &mut Prng) {
        case.xmm[0] = values::vector(prng);
        for operand in 0..self.insn.op_count() {
            if self.insn.op_kind(operand) == OpKind::Register {
                let register = self.insn.op_register(operand);
                if register.is_xmm() {
                    case.xmm[register.number()] = values::vector(prng);
                }
            }
        }
    }

    fn is_addressed_by(&self, register: Register) -> bool {
        self.insn.memory_base().full_register() == register
            || self.insn.memory_index().full_register() == register
    }

    /// Registers with a fixed role.
    fn steer_registers(&self, case: &mut Case, prng: &mut Prng) {
        use Mnemonic as M;
        let mnemonic = self.insn.mnemonic();
        if self.insn.is_stack_instruction() && !self.is_addressed_by(Register::RSP) {
            let top = address(prng, 8, false);
            // Not canonical, now and then.
            let wild = u64::from(prng.chance(1, 128)) << (48 + prng.below(15));
            case.set(Reg::Rsp, top | wild);
        }
        if matches!(mnemonic, M::Enter | M::Leave) {
            let frame = address(prng, 8, false);
            case.set(Reg::Rbp, frame);
        }
        if self.insn.is_string_instruction() || matches!(mnemonic, M::Maskmovq | M::Maskmovdqu) {
            let bytes = self.insn.memory_size().size();
            let junk = if is_address_32(&self.insn) {
                prng.next_u64() << 32
            } else {
                0
            };
            let source = address(prng, bytes, false);
            let target = address(prng, bytes, false);
            case.set(Reg::Rsi, source | junk);
            case.set(Reg::Rdi, target | junk);
            case.set(Reg::Rcx, prng.below(6) | junk);
        }
        let is_counted = matches!(
            mnemonic,
            M::Loop | M::Loope | M::Loopne | M::Jrcxz | M::Jecxz
        );
        if is_counted {
            let junk = if prng.chance(1, 2) {
                prng.next_u64() << 32
            } else {
                0
            };
            case.set(Reg::Rcx, prng.below(3) | junk);
        }
        if matches!(mnemonic, M::Div | M::Idiv) && prng.chance(3, 4) {
            let sign = (case.get(Reg::Rax).cast_signed() >> 63).cast_unsigned();
            let high = if mnemonic == M::Idiv { sign } else { 0 };
            case.set(Reg::Rdx, high);
            if prng.chance(1, 2) {
                let low = case.get(Reg::Rax) & !0xFF00;
                case.set(Reg::Rax, low);
            }
        }
        if matches!(
            self.insn.code(),
            Code::Shld_rm16_r16_CL | Code::Shrd_rm16_r16_CL
        ) {
            let count = case.get(Reg::Rcx) & !0x10;
            case.set(Reg::Rcx, count);
        }
        let is_indirect = self.insn.is_jmp_near_indirect() || self.insn.is_call_near_indirect();
        if is_indirect && self.insn.op0_kind() == OpKind::Register {
            case.regs[self.insn.op0_register().number()] = TAKEN;
        }
    }

    /// Points the memory operand into the data and writes a biased value there.
    fn steer_memory(&self, case: &mut Case, prng: &mut Prng) -> u64 {
        let has_operand =
            (0..self.insn.op_count()).any(|index| self.insn.op_kind(index) == OpKind::Memory);
        let insn = &self.insn;
        let bytes = match insn.memory_size().size() {
            0 => 8,
            bytes => bytes,
        };
        let at = if has_operand {
            let is_vector = bytes >= 16;
            let at = address(prng, bytes, is_vector);
            self.point_at(case, prng, at)
        } else if insn.is_stack_instruction() {
            case.get(Reg::Rsp)
        } else if insn.is_string_instruction() {
            case.get(Reg::Rsi) & 0xFFFF_FFFF
        } else {
            return case.get(Reg::Rdi) & 0xFFFF_FFFF;
        };
        self.write_operand(case, prng, at, bytes);
        at
    }

    /// Sets base and index so that the operand is at `at`; gives the address it really has.
    fn point_at(&self, case: &mut Case, prng: &mut Prng, at: u64) -> u64 {
        let insn = &self.insn;
        let (base, index) = (insn.memory_base(), insn.memory_index());
        let is_offset_mutable =
            base != Register::None && base != Register::RIP && base != Register::EIP;
        let displacement = insn.memory_displacement64();
        if is_bit_test(insn) {
            self.shorten_bit_offset(case, prng);
        }
        if !is_offset_mutable {
            return displacement;
        }
        let mut rest = at.wrapping_sub(displacement);
        if index != Register::None {
            let is_byte = index == Register::AL;
            let value = if is_byte {
                case.get(Reg::Rax) & 0xFF
            } else {
                let small = prng.below(64).wrapping_sub(32);
                let small = if index.size() == 4 {
                    (small & 0xFFFF_FFFF) | prng.next_u64() << 32
                } else {
                    small
                };
                case.regs[index.number()] = small;
                small
            };
            rest = rest.wrapping_sub(value.wrapping_mul(u64::from(insn.memory_index_scale())));
        }
        let junk = if base.size() == 4 {
            rest &= 0xFFFF_FFFF;
            prng.next_u64() << 32
        } else if prng.chance(1, 100) {
            // Not canonical.
            1 << (48 + prng.below(15))
        } else {
            0
        };
        case.regs[base.number()] = rest.wrapping_add(junk);
        at
    }

    fn shorten_bit_offset(&self, case: &mut Case, prng: &mut Prng) {
        if self.insn.op1_kind() == OpKind::Register {
            let offset = prng.below(800).wrapping_sub(400);
            case.regs[self.insn.op1_register().number()] = offset;
        }
    }

    fn write_operand(&self, case: &mut Case, prng: &mut Prng, at: u64, bytes: usize) {
        use Mnemonic as M;
        let mut value = match self.class {
            Class::Vector | Class::Mmx => values::vector(prng),
            Class::X87 if bytes >= 10 => values::extended(prng),
            Class::X87 => values::vector(prng),
            _ => {
                let mut value = [0; 16];
                value[..8].copy_from_slice(&values::integer(prng).to_le_bytes());
                value[8..].copy_from_slice(&values::integer(prng).to_le_bytes());
                value
            }
        };
        match self.insn.mnemonic() {
            M::Jmp | M::Call | M::Ret => value[..8].copy_from_slice(&TAKEN.to_le_bytes()),
            M::Popf | M::Popfq => {
                // Traps and alignment checks would hit the trampoline.
                let flags = values::integer(prng) & !(rflags::TF | rflags::AC | rflags::NT);
                value[..8].copy_from_slice(&flags.to_le_bytes());
            }
            M::Ldmxcsr => value[2..4].fill(0),
            M::Fbld => {
                for byte in &mut value[..9] {
                    *byte = (prng.below(10) * 16 + prng.below(10)).to_le_bytes()[0];
                }
            }
            M::Fxrstor | M::Fxrstor64 => {
                let mxcsr = prng.below(0x1_0000).to_le_bytes();
                case.patch(at.wrapping_add(24), &mxcsr[..4]);
                return;
            }
            M::Fldenv | M::Frstor => return,
            _ => {}
        }
        case.patch(at, &value[..bytes.min(16)]);
        if let M::Cmpxchg8b | M::Cmpxchg16b = self.insn.mnemonic() {
            let half = bytes / 2;
            if prng.chance(1, 2) {
                let (low, high) = (case.get(Reg::Rax), case.get(Reg::Rdx));
                case.patch(at, &low.to_le_bytes()[..half]);
                case.patch(at.wrapping_add(half as u64), &high.to_le_bytes()[..half]);
            }
        }
    }

    /// Equal operands for comparisons and exchanges, now and then.
    fn steer_pairs(&self, case: &mut Case, prng: &mut Prng) {
        let insn = &self.insn;
        let is_exchange = insn.mnemonic() == Mnemonic::Cmpxchg && prng.chance(1, 2);
        if is_exchange && insn.op0_kind() == OpKind::Register {
            let register = insn.op0_register();
            let is_high = matches!(
                register,
                Register::AH | Register::BH | Register::CH | Register::DH
            );
            if !is_high && register.full_register() != Register::RSP {
                case.regs[register.full_register().number()] = case.get(Reg::Rax);
            }
        }
        let has_registers = insn.op_count() == 2
            && insn.op0_kind() == OpKind::Register
            && insn.op1_kind() == OpKind::Register;
        if !has_registers || !prng.chance(1, 8) {
            return;
        }
        let (first, second) = (insn.op0_register(), insn.op1_register());
        if first.is_xmm() && second.is_xmm() {
            case.xmm[first.number()] = case.xmm[second.number()];
        } else if first.is_gpr() && second.is_gpr() {
            case.regs[first.full_register().number()] = case.regs[second.full_register().number()];
        }
    }
}

/// Now and then a Jcc that only reads flags which are defined after the instruction: engines like to fuse the two.
fn branch_behind(insn: &Instruction, prng: &mut Prng) -> Option<[u8; 2]> {
    const READ: [u32; 8] = [
        RflagsBits::OF,
        RflagsBits::CF,
        RflagsBits::ZF,
        RflagsBits::CF | RflagsBits::ZF,
        RflagsBits::SF,
        RflagsBits::PF,
        RflagsBits::SF | RflagsBits::OF,
        RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF,
    ];
    let goes_on = insn.flow_control() == FlowControl::Next;
    let condition = prng.below(16).to_le_bytes()[0];
    let is_defined = READ[usize::from(condition >> 1)] & undefined_flags(insn) == 0;
    if !goes_on || !is_defined || !prng.chance(1, 4) {
        return None;
    }
    let end = CODE + insn.len() as u64 + 2;
    let displacement = TAKEN - end;
    Some([0x70 | condition, displacement.to_le_bytes()[0]])
}

fn is_bit_test(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(insn.mnemonic(), M::Bt | M::Bts | M::Btr | M::Btc)
}

fn is_address_32(insn: &Instruction) -> bool {
    (0..insn.op_count()).any(|index| {
        matches!(
            insn.op_kind(index),
            OpKind::MemorySegESI | OpKind::MemoryESEDI | OpKind::MemorySegEDI
        )
    })
}

/// An address for an operand of `bytes` bytes: inside, across the page boundary, at the very end, or just beyond.
fn address(prng: &mut Prng, bytes: usize, is_aligned: bool) -> u64 {
    let bytes = bytes as u64;
    let end = DATA + DATA_BYTES as u64;
    let middle = DATA + 4096;
    let at = match prng.below(128) {
        0..=79 => middle - bytes / 2 - 32 + prng.below(64),
        80..=103 if bytes <= 128 => middle - prng.below(bytes + 1),
        80..=103 => middle - bytes / 2,
        104..=121 => end - bytes,
        122..=124 => end - prng.below(bytes),
        _ => DATA - prng.below(bytes + 1),
    };
    if is_aligned && !prng.chance(1, 32) {
        at & !15
    } else {
        at
    }
}
