//! Random programs: straight-line code with forward branches, inside a counted loop.
//!
//! ```text
//!   start:  cmp r13d, r12d          ; every flag is defined here, in each round
//!           ...                     ; anything that touches neither RSP (but by PUSH and POP) nor R13 to R15
//!           jcc over                ; reads only flags that are defined
//!           ...
//!   over:   ...                     ; undefined: what was at the branch or is now
//!           sub r13d, 1
//!           jnz start
//! ```
//! Memory operands are near R14 and R15, which point into the data.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, RflagsBits,
};
use raddle_stdx::Prng;

use super::case::Case;
use super::compare::Mask;
use super::layout::{DATA, PROGRAM, PROGRAM_BYTES, WINDOW_BYTES, WINDOWS};
use super::operands::{self, Style};
use super::vendor::undefined_flags;
use super::{forms, values};
use crate::cpu::{FxState, Reg};
use crate::generic::{Class, class_of};

const LENGTH_MAX: u64 = 24;
/// cmp r13d, r12d
const HEAD: [u8; 3] = [0x45, 0x39, 0xE5];
/// sub r13d, 1; jnz start (displacement to be filled in)
const TAIL: [u8; 10] = [0x41, 0x83, 0xED, 0x01, 0x0F, 0x85, 0, 0, 0, 0];
/// Flags that a condition reads, by half its number.
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

/// Common and rare forms.
type Forms = (Vec<Code>, Vec<Code>);

/// One random program.
#[derive(Debug, Clone)]
pub(super) struct Program {
    code: Vec<u8>,
}

/// A branch whose target is not yet reached.
struct Pending {
    /// Where its displacement is.
    at: usize,
    /// Instructions still to be skipped.
    left: u64,
    undefined: u32,
}

impl Program {
    /// Forms that can stand anywhere.
    pub(super) fn forms() -> Forms {
        forms::all()
            .into_iter()
            .filter(|code| is_usable(*code))
            .partition(|code| is_common(*code))
    }

    pub(super) fn new(forms: &Forms, prng: &mut Prng) -> Self {
        let mut code = HEAD.to_vec();
        let mut undefined = 0;
        let mut pending: Vec<Pending> = Vec::new();
        let length = 2 + prng.below(LENGTH_MAX);
        let mut depth = 0_i64;
        for _ in 0..length {
            undefined = settle(&mut code, &mut pending, undefined);
            if prng.chance(1, 6)
                && let Some(branch) = branch(prng, undefined)
            {
                code.extend(branch);
                pending.push(Pending {
                    at: code.len() - 1,
                    left: 1 + prng.below(3),
                    undefined,
                });
                continue;
            }
            let ip = PROGRAM + code.len() as u64;
            let Some((insn, bytes)) = instruction(forms, ip, undefined, prng) else {
                continue;
            };
            // The stack must stay near where it began, in all rounds.
            let change = i64::from(insn.stack_pointer_increment());
            if change != 0 && (!pending.is_empty() || (depth + change).abs() > 32) {
                continue;
            }
            depth += change;
            code.extend(bytes);
            undefined = after(&insn, undefined);
            pending
                .iter_mut()
                .for_each(|branch| branch.left = branch.left.saturating_sub(1));
        }
        for branch in &mut pending {
            branch.left = 0;
        }
        settle(&mut code, &mut pending, undefined);
        code.extend(TAIL);
        let back = (code.len() as u64).wrapping_neg();
        let at = code.len() - 4;
        code[at..].copy_from_slice(&back.to_le_bytes()[..4]);
        assert!(code.len() < PROGRAM_BYTES, "programs are short");
        Self { code }
    }

    /// After the loop every flag is defined; in the midst of it, any may be undefined.
    pub(super) fn mask(is_fault: bool) -> Mask {
        Mask::of_undefined(if is_fault { u32::MAX } else { 0 })
    }

    /// The instructions, one after the other.
    pub(super) fn text(&self) -> String {
        let decoder = Decoder::with_ip(64, &self.code, PROGRAM, DecoderOptions::NONE);
        let lines: Vec<String> = decoder
            .into_iter()
            .map(|insn| format!("{:#x} {insn}", insn.ip()))
            .collect();
        lines.join("; ")
    }

    pub(super) fn case(&self, prng: &mut Prng) -> Case {
        let mut case = Case {
            entry: PROGRAM,
            code: self.code.clone(),
            regs: [0; 16],
            rflags: 0,
            xmm: [[0; 16]; 16],
            fx: FxState::default(),
            memory: Box::new([[0; WINDOW_BYTES]; 3]),
            uses_vectors: true,
        };
        for window in case.memory.iter_mut() {
            prng.fill(window);
        }
        case
    }

    /// New registers; most programs end without a fault.
    pub(super) fn fill(&self, case: &mut Case, prng: &mut Prng) {
        for register in &mut case.regs {
            *register = values::integer(prng);
        }
        for register in &mut case.xmm {
            *register = values::vector(prng);
        }
        case.rflags = values::flags(prng);
        case.fx.mxcsr = 0x1F80 | raddle_stdx::width::low_u32(prng.below(4) << 13);
        case.set(Reg::R13, 1 + prng.below(4));
        let window = |index: usize| DATA + WINDOWS[index] as u64 + WINDOW_BYTES as u64 / 2;
        case.set(Reg::Rsp, window(0));
        case.set(Reg::R14, window(1));
        case.set(Reg::R15, window(2));
    }
}

/// Fills in the branches that lead here; gives what is undefined where they join.
fn settle(code: &mut [u8], pending: &mut Vec<Pending>, undefined: u32) -> u32 {
    let end = code.len();
    let mut joined = undefined;
    pending.retain(|branch| {
        if branch.left > 0 {
            return true;
        }
        let distance = end - branch.at - 1;
        code[branch.at] = u8::try_from(distance).expect("a branch skips few instructions");
        joined |= branch.undefined;
        false
    });
    joined
}

/// A Jcc rel8 that reads only what is defined.
fn branch(prng: &mut Prng, undefined: u32) -> Option<[u8; 2]> {
    let condition = prng.below(16).to_le_bytes()[0];
    let is_defined = READ[usize::from(condition >> 1)] & undefined == 0;
    is_defined.then_some([0x70 | condition, 0])
}

/// An instruction that keeps the pinned registers and reads no undefined flag.
fn instruction(
    forms: &Forms,
    ip: u64,
    undefined: u32,
    prng: &mut Prng,
) -> Option<(Instruction, Vec<u8>)> {
    let (common, rare) = forms;
    let forms = if prng.chance(2, 3) { common } else { rare };
    let code = forms[usize::try_from(prng.below(forms.len() as u64)).ok()?];
    let (insn, bytes) = operands::encode(code, ip, Style::Pinned, prng)?;
    let is_far_bit_test = insn.op_count() == 2
        && matches!(
            insn.mnemonic(),
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
        )
        && insn.op0_kind() == OpKind::Memory
        && insn.op1_kind() == OpKind::Register;
    let is_fine = insn.rflags_read() & undefined == 0 && !is_far_bit_test && keeps_pinned(&insn);
    is_fine.then_some((insn, bytes))
}

fn keeps_pinned(insn: &Instruction) -> bool {
    let is_stack = insn.is_stack_instruction();
    let mut factory = InstructionInfoFactory::new();
    factory.info(insn).used_registers().iter().all(|used| {
        let is_read = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        match used.register().full_register() {
            Register::RSP => is_read || is_stack && insn.op0_register() != Register::RSP,
            Register::R13 | Register::R14 | Register::R15 => is_read,
            _ => true,
        }
    })
}

/// The undefined flags behind an instruction. A shift by zero leaves them all, so shifts define none.
fn after(insn: &Instruction, undefined: u32) -> u32 {
    use Mnemonic as M;
    let is_shift = matches!(
        insn.mnemonic(),
        M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shl | M::Sal | M::Shr | M::Sar | M::Shld | M::Shrd
    );
    let kept = if is_shift {
        undefined
    } else {
        undefined & !insn.rflags_modified()
    };
    kept | undefined_flags(insn)
}

/// What compilers emit most, and engines therefore treat specially.
fn is_common(code: Code) -> bool {
    use Mnemonic as M;
    let is_conditional = code.condition_code() != iced_x86::ConditionCode::None;
    is_conditional
        || matches!(
            code.mnemonic(),
            M::Add
                | M::Sub
                | M::Cmp
                | M::Test
                | M::And
                | M::Or
                | M::Xor
                | M::Adc
                | M::Sbb
                | M::Inc
                | M::Dec
                | M::Neg
                | M::Mov
                | M::Movzx
                | M::Movsx
                | M::Movsxd
                | M::Lea
                | M::Shl
                | M::Shr
                | M::Sar
                | M::Rol
                | M::Ror
                | M::Imul
                | M::Mul
                | M::Bswap
                | M::Xchg
                | M::Push
                | M::Pop
        )
}

fn is_usable(code: Code) -> bool {
    use Mnemonic as M;
    let is_stack = matches!(
        code,
        Code::Push_r64 | Code::Pop_r64 | Code::Push_rm64 | Code::Pushq_imm32 | Code::Pushq_imm8
    );
    let is_plain = matches!(class_of(code), Class::Integer | Class::Vector)
        && code.flow_control() == FlowControl::Next
        && !code.is_privileged()
        && !code.is_string_instruction()
        && (is_stack || !code.is_stack_instruction());
    // These need more care with their operands or state than a program gives.
    let is_special = matches!(
        code.mnemonic(),
        M::In | M::Out | M::Cli | M::Sti | M::Maskmovdqu | M::Xlatb | M::Ldmxcsr | M::Rdpmc
    ) || code.mnemonic() == M::Mov && is_system_move(code);
    // A 16-bit double shift by more than its width has no defined result.
    let is_undefined = matches!(
        code,
        Code::Shld_rm16_r16_CL | Code::Shrd_rm16_r16_CL | Code::Bswap_r16
    );
    is_plain && !is_special && !is_undefined
}

fn is_system_move(code: Code) -> bool {
    let name = format!("{code:?}");
    name.contains("cr") || name.contains("dr") || name.contains("moffs") || name.contains("Sreg")
}
