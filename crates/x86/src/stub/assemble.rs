//! The machine code of one stub.

use std::mem::offset_of;

use iced_x86::{
    CpuidFeature, Encoder, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits,
};

use super::{Control, Elements, MemoryUse, StubRef};
use crate::cpu::{Cpu, FxState};

/// Where things are, relative to RDI.
const XMM: usize = offset_of!(Cpu, xmm);
const _: () = assert!(XMM.is_multiple_of(16), "MOVAPS needs it");
const MM: usize = offset_of!(Cpu, fx) + offset_of!(FxState, st);
const REGS: usize = offset_of!(Cpu, regs);
const MXCSR: usize = offset_of!(Cpu, fx) + offset_of!(FxState, mxcsr);
/// MXCSR in an FXSAVE image.
const IMAGE_MXCSR: u8 = 24;

/// Bytes of code under construction.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// `opcode reg, [rdi + offset]` for an opcode behind 0Fh.
    fn with_cpu(&mut self, opcode: u8, reg: u8, offset: usize) {
        if reg >= 8 {
            self.bytes(&[0x44]);
        }
        self.bytes(&[0x0F, opcode, 0x80 | (reg & 7) << 3 | 7]);
        self.displacement(offset);
    }

    /// `mov reg, [rdi + offset]` (8Bh) or `mov [rdi + offset], reg` (89h), 64 bits wide, for RAX to RDI.
    fn mov_cpu(&mut self, opcode: u8, reg: u8, offset: usize) {
        self.bytes(&[0x48, opcode, 0x80 | reg << 3 | 7]);
        self.displacement(offset);
    }

    fn displacement(&mut self, offset: usize) {
        let offset = u32::try_from(offset).expect("the processor state is small");
        self.bytes(&offset.to_le_bytes());
    }
}

/// Registers of one kind that an instruction reads and writes, as bit sets.
#[derive(Default, Clone, Copy)]
struct Uses {
    read: u16,
    written: u16,
}

impl Uses {
    fn add(&mut self, number: usize, access: OpAccess) {
        let bit = 1 << number;
        match access {
            OpAccess::Read | OpAccess::CondRead => self.read |= bit,
            OpAccess::Write => self.written |= bit,
            // A partial or conditional write keeps the rest.
            OpAccess::ReadWrite | OpAccess::ReadCondWrite | OpAccess::CondWrite => {
                self.read |= bit;
                self.written |= bit;
            }
            _ => {}
        }
    }

    fn all(self) -> impl Iterator<Item = u8> {
        let set = self.read | self.written;
        (0..16).filter(move |number| set >> number & 1 != 0)
    }
}

/// Code and description (with a placeholder as entry) of the stub of an instruction.
pub(super) fn assemble(instruction: &Instruction, control: Control) -> Option<(Vec<u8>, StubRef)> {
    let (memory, bytes) = memory_use(instruction);
    let mut template = StubRef {
        entry: placeholder,
        length: 0,
        memory,
        bytes,
        align: if needs_alignment(instruction) { 16 } else { 1 },
        sets_flags: sets_flags(instruction),
        uses_mxcsr: false,
        written_xmm: 0,
        written_mm: 0,
        written_gpr: None,
        underflows: None,
    };
    let is_x87 = instruction.cpuid_features().contains(&CpuidFeature::FPU);
    let is_x87 = is_x87 || instruction.cpuid_features().contains(&CpuidFeature::FPU387);
    let code = if is_x87 {
        x87(instruction, template.sets_flags)?
    } else {
        vector(instruction, &mut template, control)?
    };
    Some((code, template))
}

unsafe extern "C" fn placeholder(_: *mut u8, _: *mut u8) -> u64 {
    0
}

fn memory_use(instruction: &Instruction) -> (MemoryUse, u8) {
    let bytes = u8::try_from(instruction.memory_size().size()).unwrap_or(0);
    for operand in 0..instruction.op_count() {
        if instruction.op_kind(operand) == OpKind::Memory {
            let mut factory = InstructionInfoFactory::new();
            let info = factory.info(instruction);
            let is_write = info.op_access(operand) == OpAccess::Write;
            return if is_write {
                (MemoryUse::Write, bytes)
            } else {
                (MemoryUse::Read, bytes)
            };
        }
    }
    (MemoryUse::None, 0)
}

/// Legacy SSE demands aligned 16-byte operands, with these exceptions (SDM vol. 1, 4.1.1 and vol. 2).
fn needs_alignment(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    instruction.memory_size().size() == 16
        && !matches!(
            instruction.mnemonic(),
            M::Movups
                | M::Movupd
                | M::Movdqu
                | M::Lddqu
                | M::Pcmpestri
                | M::Pcmpestrm
                | M::Pcmpestri64
                | M::Pcmpestrm64
                | M::Pcmpistri
                | M::Pcmpistrm
        )
}

/// The six arithmetic flags; iced counts the x87 condition codes among the flags, too.
const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

fn sets_flags(instruction: &Instruction) -> bool {
    instruction.rflags_modified() & ARITHMETIC != 0
}

/// The instruction with its memory operand at `[rsi]` and its general register replaced by RAX, and that register.
fn normalise(instruction: &Instruction) -> (Instruction, Option<Register>) {
    let mut normal = *instruction;
    let mut gpr = None;
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory => {
                normal.set_memory_base(Register::RSI);
                normal.set_memory_index(Register::None);
                normal.set_memory_index_scale(1);
                normal.set_memory_displacement64(0);
                normal.set_memory_displ_size(0);
                normal.set_segment_prefix(Register::None);
            }
            OpKind::Register => {
                let register = instruction.op_register(operand);
                if register.is_gpr() {
                    gpr = Some(register);
                    let stand_in = if register.size() == 8 {
                        Register::RAX
                    } else {
                        Register::EAX
                    };
                    normal.set_op_register(operand, stand_in);
                }
            }
            _ => {}
        }
    }
    (normal, gpr)
}

fn encode(instruction: &Instruction) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0).ok()?;
    Some(encoder.take_buffer())
}

/// All registers of an instruction whose general register has become RAX.
struct Registers {
    xmm: Uses,
    mm: Uses,
    /// The guest's general register, and whether it changes.
    gpr: Option<Register>,
    is_gpr_written: bool,
}

impl Registers {
    fn of(normal: &Instruction, gpr: Option<Register>) -> Self {
        let mut registers = Self {
            xmm: Uses::default(),
            mm: Uses::default(),
            gpr,
            is_gpr_written: false,
        };
        let mut factory = InstructionInfoFactory::new();
        for used in factory.info(normal).used_registers() {
            let register = used.register();
            if register.is_xmm() {
                registers.xmm.add(register.number(), used.access());
            } else if register.is_mm() {
                registers.mm.add(register.number(), used.access());
            } else if register.full_register() == Register::RAX && gpr.is_some() {
                registers.is_gpr_written |=
                    matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite);
            }
        }
        registers
    }

    /// Loads everything, whether read or only partly written.
    fn load(&self, code: &mut Code, mnemonic: Mnemonic) {
        for n in self.xmm.all() {
            code.with_cpu(0x28, n, XMM + 16 * usize::from(n));
        }
        for n in self.mm.all() {
            code.with_cpu(0x6F, n, MM + 16 * usize::from(n));
        }
        if let Some(gpr) = self.gpr {
            code.mov_cpu(0x8B, 0, REGS + 8 * gpr.number());
        }
        let takes_lengths = matches!(
            mnemonic,
            Mnemonic::Pcmpestri
                | Mnemonic::Pcmpestrm
                | Mnemonic::Pcmpestri64
                | Mnemonic::Pcmpestrm64
        );
        if takes_lengths {
            code.mov_cpu(0x8B, 0, REGS);
            code.mov_cpu(0x8B, 2, REGS + 16);
        }
    }

    /// Stores what changed; gives the number of the general register among it.
    fn store(&self, code: &mut Code, mnemonic: Mnemonic) -> Option<u8> {
        for n in (0..16).filter(|n| self.xmm.written >> n & 1 != 0) {
            code.with_cpu(0x29, n, XMM + 16 * usize::from(n));
        }
        for n in (0..8).filter(|n| self.mm.written >> n & 1 != 0) {
            code.with_cpu(0x7F, n, MM + 16 * usize::from(n));
        }
        if self.mm.read | self.mm.written != 0 {
            // emms
            code.bytes(&[0x0F, 0x77]);
        }
        let gives_index = matches!(
            mnemonic,
            Mnemonic::Pcmpestri | Mnemonic::Pcmpestri64 | Mnemonic::Pcmpistri
        );
        if gives_index {
            code.mov_cpu(0x89, 1, REGS + 8);
            return Some(1);
        }
        let gpr = self.gpr.filter(|_| self.is_gpr_written)?;
        code.mov_cpu(0x89, 0, REGS + 8 * gpr.number());
        u8::try_from(gpr.number()).ok()
    }
}

fn vector(instruction: &Instruction, template: &mut StubRef, control: Control) -> Option<Vec<u8>> {
    let (normal, gpr) = normalise(instruction);
    let registers = Registers::of(&normal, gpr);
    template.uses_mxcsr = uses_mxcsr(instruction);
    template.underflows = underflows(instruction);
    template.written_xmm = registers.xmm.written;
    template.written_mm = registers.mm.written.to_le_bytes()[0];

    let mut code = Code::default();
    registers.load(&mut code, instruction.mnemonic());
    let switches = template.uses_mxcsr && control == Control::Switched;
    if switches {
        // stmxcsr [rsp-16]; ldmxcsr [rdi+guest]
        code.bytes(&[0x0F, 0xAE, 0x5C, 0x24, 0xF0]);
        code.with_cpu(0xAE, 2, MXCSR);
    }
    code.bytes(&encode(&normal)?);
    if template.sets_flags {
        // pushfq; pop r8
        code.bytes(&[0x9C, 0x41, 0x58]);
    }
    if switches {
        // stmxcsr [rdi+guest]; ldmxcsr [rsp-16]
        code.with_cpu(0xAE, 3, MXCSR);
        code.bytes(&[0x0F, 0xAE, 0x54, 0x24, 0xF0]);
    }
    template.written_gpr = registers.store(&mut code, instruction.mnemonic());
    template.length = u8::try_from(code.0.len()).ok()?;
    // mov rax, r8; ret
    code.bytes(&[0x4C, 0x89, 0xC0, 0xC3]);
    Some(code.0)
}

fn x87(instruction: &Instruction, sets_flags: bool) -> Option<Vec<u8>> {
    let (normal, _) = normalise(instruction);
    let mut code = Code::default();
    // stmxcsr [rdi+24]; fxrstor64 [rdi]
    code.bytes(&[0x0F, 0xAE, 0x5F, IMAGE_MXCSR, 0x48, 0x0F, 0xAE, 0x0F]);
    if instruction.rflags_read() & ARITHMETIC != 0 {
        // FCMOVcc: push rsi; popfq
        code.bytes(&[0x56, 0x9D]);
    }
    code.bytes(&encode(&normal)?);
    if sets_flags {
        // pushfq; pop r8
        code.bytes(&[0x9C, 0x41, 0x58]);
    }
    // fxsave64 [rdi]; fninit; mov rax, r8; ret
    code.bytes(&[0x48, 0x0F, 0xAE, 0x07, 0xDB, 0xE3, 0x4C, 0x89, 0xC0, 0xC3]);
    Some(code.0)
}

/// Arithmetic, comparison and conversion of floating-point numbers; `Mnemonic` has no such attribute, but its names
/// are regular.
fn uses_mxcsr(instruction: &Instruction) -> bool {
    const FAMILIES: [&str; 15] = [
        "Add", "Sub", "Mul", "Div", "Sqrt", "Max", "Min", "Cmp", "Comis", "Ucomis", "Cvt", "Round",
        "Dpp", "Hadd", "Hsub",
    ];
    let name = format!("{:?}", instruction.mnemonic());
    FAMILIES.iter().any(|family| name.starts_with(family))
}

fn underflows(instruction: &Instruction) -> Option<Elements> {
    const FAMILIES: [&str; 9] = [
        "Add", "Sub", "Mul", "Div", "Cvtpd2ps", "Cvtsd2ss", "Dpp", "Hadd", "Hsub",
    ];
    let name = format!("{:?}", instruction.mnemonic());
    if !FAMILIES.iter().any(|family| name.starts_with(family)) {
        return None;
    }
    let (bytes, count) = match &name[name.len() - 2..] {
        "ps" => (4, 4),
        "ss" => (4, 1),
        "pd" => (8, 2),
        _ => (8, 1),
    };
    Some(Elements { bytes, count })
}
