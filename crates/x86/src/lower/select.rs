//! The handler for each instruction that has a specialised one.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::operand::{condition, immediate, memory, register};
use crate::fast::alu::{self, Exchange, Form, kind};
use crate::fast::{RBP, RSP, bits, branch, mov, shift, stack};
use crate::native::Template;
use crate::op::{Handler, LogKind, Op};

/// What an op does to the flags.
#[derive(Debug, Clone, Copy)]
pub(super) enum FlagUse {
    None,
    /// May leave the block, so that everything must be exact.
    Barrier,
    Reads,
    /// Sets flags; `without` does the same without them.
    Writes {
        keeps: Keeps,
        without: Handler,
    },
}

/// What an op that sets flags does with those that it found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keeps {
    /// It overwrites all.
    Nothing,
    /// Some stay, and the result does not depend on any.
    Some,
    /// The result depends on some.
    SomeAndReads,
}

/// An op with what the next passes need to know.
#[derive(Debug, Clone)]
pub(super) struct Lowered {
    pub(super) op: Op,
    pub(super) flags: FlagUse,
    /// What it means, if more than its handler knows it.
    pub(super) template: Template,
}

impl Lowered {
    pub(super) fn plain(op: Op) -> Self {
        Self {
            op,
            flags: FlagUse::None,
            template: Template::Interpreted,
        }
    }

    pub(super) fn barrier(op: Op) -> Self {
        Self {
            op,
            flags: FlagUse::Barrier,
            template: Template::Interpreted,
        }
    }

    pub(super) fn meaning(self, template: Template) -> Self {
        Self { template, ..self }
    }

    /// An op that sets flags, with the handler of one that does not.
    pub(super) fn writes(op: Op, keeps: Keeps, without: Handler) -> Self {
        Self {
            op,
            flags: FlagUse::Writes { keeps, without },
            template: Template::Interpreted,
        }
    }

    fn reads(op: Op) -> Self {
        Self {
            op,
            flags: FlagUse::Reads,
            template: Template::Interpreted,
        }
    }
}

/// An instruction being lowered.
pub(super) struct Context<'a> {
    pub(super) instruction: &'a Instruction,
    pub(super) op: Op,
}

/// Operand kinds that the fast path distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reg,
    Mem,
    Imm,
    Other,
}

/// The op for an instruction, if a specialised handler exists.
pub(super) fn lower_one<const OBS: u8>(instruction: &Instruction, index: u8) -> Option<Lowered> {
    let op = Op::new(mov::nothing, instruction.ip(), index);
    if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        let harmless = matches!(
            instruction.mnemonic(),
            Mnemonic::Ret | Mnemonic::Jmp | Mnemonic::Call
        ) || instruction.is_jcc_short_or_near();
        if !harmless {
            return None;
        }
    }
    let context = Context { instruction, op };
    context
        .data_movement::<OBS>()
        .or_else(|| context.arithmetic::<OBS>())
        .or_else(|| context.control::<OBS>())
        .or_else(|| context.vectors::<OBS>())
}

impl Context<'_> {
    pub(super) fn kind(&self, number: u32) -> Kind {
        if number >= self.instruction.op_count() {
            return Kind::Other;
        }
        match self.instruction.op_kind(number) {
            OpKind::Register => Kind::Reg,
            OpKind::Memory => Kind::Mem,
            _ if immediate(self.instruction, number).is_some() => Kind::Imm,
            _ => Kind::Other,
        }
    }

    pub(super) fn reg(&self, number: u32) -> Option<u8> {
        register(self.instruction.op_register(number))
    }

    /// Size in bytes of operand `number`.
    pub(super) fn size(&self, number: u32) -> usize {
        match self.instruction.op_kind(number) {
            OpKind::Register => self.instruction.op_register(number).size(),
            _ => self.instruction.memory_size().size(),
        }
    }

    /// The op with its memory operand and access description; tells whether the address is a full one.
    pub(super) fn with_memory(&self, access: LogKind, size: usize) -> Option<(Op, bool)> {
        let mut op = self.op;
        let full = memory(self.instruction, &mut op)?;
        op.meta = op.meta.with_access(access, size);
        Some((op, full))
    }

    fn update_kind(&self) -> LogKind {
        if self.instruction.has_lock_prefix() {
            LogKind::AtomicUpdate
        } else {
            LogKind::Update
        }
    }

    fn data_movement<const OBS: u8>(&self) -> Option<Lowered> {
        match self.instruction.mnemonic() {
            Mnemonic::Mov => self.mov::<OBS>(),
            Mnemonic::Movzx => self.extend::<OBS>(false),
            Mnemonic::Movsx | Mnemonic::Movsxd => self.extend::<OBS>(true),
            Mnemonic::Lea => {
                let mut op = self.op;
                op.dst = self.reg(0)?;
                // LEA ignores segments.
                if !matches!(
                    self.instruction.segment_prefix(),
                    Register::None | Register::DS | Register::SS
                ) {
                    return None;
                }
                let full = memory(self.instruction, &mut op)?;
                let size = self.size(0);
                op.handler = mov::select_lea(size, full);
                Some(Lowered::plain(op).meaning(Template::Address { size }))
            }
            Mnemonic::Push => self.push::<OBS>(),
            Mnemonic::Pop if self.kind(0) == Kind::Reg && self.size(0) == 8 => {
                let mut op = self.op;
                op.dst = self.reg(0)?;
                op.base = RSP;
                op.meta = op.meta.with_access(LogKind::Read, 8);
                op.handler = stack::pop_reg::<OBS>;
                Some(Lowered::barrier(op).meaning(Template::PopRegister))
            }
            Mnemonic::Leave if self.instruction.code() == iced_x86::Code::Leaveq => {
                let mut op = self.op;
                op.base = RBP;
                op.meta = op.meta.with_access(LogKind::Read, 8);
                op.handler = stack::leave_frame::<OBS>;
                Some(Lowered::barrier(op))
            }
            Mnemonic::Cdqe => Some(
                Lowered::plain(Op {
                    handler: mov::widen_accumulator::<u32, u64>,
                    ..self.op
                })
                .meaning(widening(4, 8)),
            ),
            Mnemonic::Cwde => Some(
                Lowered::plain(Op {
                    handler: mov::widen_accumulator::<u16, u32>,
                    ..self.op
                })
                .meaning(widening(2, 4)),
            ),
            Mnemonic::Cdq => Some(
                Lowered::plain(Op {
                    handler: mov::sign_to_rdx::<u32>,
                    ..self.op
                })
                .meaning(Template::SignToRdx { size: 4 }),
            ),
            Mnemonic::Cqo => Some(
                Lowered::plain(Op {
                    handler: mov::sign_to_rdx::<u64>,
                    ..self.op
                })
                .meaning(Template::SignToRdx { size: 8 }),
            ),
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Endbr32
                if !self.instruction.has_lock_prefix() =>
            {
                Some(Lowered::plain(self.op).meaning(Template::Nothing))
            }
            _ => None,
        }
    }

    fn mov<const OBS: u8>(&self) -> Option<Lowered> {
        let mut op = self.op;
        match (self.kind(0), self.kind(1)) {
            (Kind::Reg, Kind::Reg) => {
                let size = self.size(0);
                (op.dst, op.src) = (self.reg(0)?, self.reg(1)?);
                op.handler = mov::select_reg_reg(size);
                Some(Lowered::plain(op).meaning(Template::CopyRegister { size }))
            }
            (Kind::Reg, Kind::Imm) => {
                let size = self.size(0);
                (op.dst, op.imm) = (self.reg(0)?, immediate(self.instruction, 1)?);
                op.handler = mov::select_reg_imm(size);
                Some(Lowered::plain(op).meaning(Template::Constant { size }))
            }
            (Kind::Reg, Kind::Mem) => {
                let size = self.size(0);
                let dst = self.reg(0)?;
                let (op, full) = self.with_memory(LogKind::Read, size)?;
                let handler = mov::select_reg_mem::<OBS>(size, full);
                let op = Op { dst, handler, ..op };
                Some(Lowered::barrier(op).meaning(Template::Load { size }))
            }
            (Kind::Mem, Kind::Reg) => {
                let size = self.size(1);
                let src = self.reg(1)?;
                let (op, full) = self.with_memory(LogKind::Write, size)?;
                let handler = mov::select_mem_reg::<OBS>(size, full);
                let op = Op { src, handler, ..op };
                Some(Lowered::barrier(op).meaning(Template::StoreRegister { size }))
            }
            (Kind::Mem, Kind::Imm) => {
                let size = self.size(0);
                let imm = immediate(self.instruction, 1)?;
                let (op, full) = self.with_memory(LogKind::Write, size)?;
                let handler = mov::select_mem_imm::<OBS>(size, full);
                let op = Op { imm, handler, ..op };
                Some(Lowered::barrier(op).meaning(Template::StoreConstant { size }))
            }
            _ => None,
        }
    }

    fn extend<const OBS: u8>(&self, is_signed: bool) -> Option<Lowered> {
        let dst = self.reg(0)?;
        let (from, to) = (self.size(1), self.size(0));
        if from >= to {
            return None;
        }
        match self.kind(1) {
            Kind::Reg => {
                let handler = mov::select_extend_reg(from, to, is_signed);
                let template = Template::ExtendRegister {
                    from,
                    to,
                    is_signed,
                };
                let op = Op {
                    dst,
                    src: self.reg(1)?,
                    handler,
                    ..self.op
                };
                Some(Lowered::plain(op).meaning(template))
            }
            Kind::Mem => {
                let (op, _) = self.with_memory(LogKind::Read, from)?;
                let handler = mov::select_extend_mem::<OBS>(from, to, is_signed);
                let template = Template::ExtendMemory {
                    from,
                    to,
                    is_signed,
                };
                Some(Lowered::barrier(Op { dst, handler, ..op }).meaning(template))
            }
            _ => None,
        }
    }

    fn push<const OBS: u8>(&self) -> Option<Lowered> {
        let op = Op {
            base: RSP,
            meta: self.op.meta.with_access(LogKind::Write, 8),
            ..self.op
        };
        match self.kind(0) {
            Kind::Reg if self.size(0) == 8 => {
                let op = Op {
                    src: self.reg(0)?,
                    handler: stack::push_reg::<OBS>,
                    ..op
                };
                Some(Lowered::barrier(op).meaning(Template::PushRegister))
            }
            Kind::Imm if self.instruction.stack_pointer_increment() == -8 => {
                let op = Op {
                    imm: immediate(self.instruction, 0)?,
                    handler: stack::push_imm::<OBS>,
                    ..op
                };
                Some(Lowered::barrier(op).meaning(Template::PushConstant))
            }
            Kind::Mem if self.size(0) == 8 => {
                let (op, _) = self.with_memory(LogKind::Read, 8)?;
                Some(Lowered::barrier(Op {
                    handler: stack::push_mem::<OBS>,
                    ..op
                }))
            }
            _ => None,
        }
    }

    fn arithmetic<const OBS: u8>(&self) -> Option<Lowered> {
        let alu = match self.instruction.mnemonic() {
            Mnemonic::Add => kind::ADD,
            Mnemonic::Or => kind::OR,
            Mnemonic::Adc => kind::ADC,
            Mnemonic::Sbb => kind::SBB,
            Mnemonic::And => kind::AND,
            Mnemonic::Sub => kind::SUB,
            Mnemonic::Xor => kind::XOR,
            Mnemonic::Cmp => kind::CMP,
            Mnemonic::Test => kind::TEST,
            Mnemonic::Inc => kind::INC,
            Mnemonic::Dec => kind::DEC,
            Mnemonic::Neg => kind::NEG,
            Mnemonic::Not => kind::NOT,
            Mnemonic::Shl | Mnemonic::Sal => return self.shift(shift::kind::SHL),
            Mnemonic::Shr => return self.shift(shift::kind::SHR),
            Mnemonic::Sar => return self.shift(shift::kind::SAR),
            Mnemonic::Rol => return self.shift(shift::kind::ROL),
            Mnemonic::Ror => return self.shift(shift::kind::ROR),
            _ => {
                return self
                    .multiply::<OBS>()
                    .or_else(|| self.exchange::<OBS>())
                    .or_else(|| self.bit_operation());
            }
        };
        self.alu::<OBS>(alu)
    }

    fn alu<const OBS: u8>(&self, alu: u8) -> Option<Lowered> {
        let size = self.size(0);
        let form = match (self.kind(0), self.kind(1)) {
            (Kind::Reg, Kind::Reg) => Form::RegReg,
            (Kind::Reg, Kind::Imm) => Form::RegImm,
            (Kind::Reg, Kind::Mem) => Form::RegMem,
            (Kind::Mem, Kind::Reg) => Form::MemReg,
            (Kind::Mem, Kind::Imm) => Form::MemImm,
            // One operand: the other is not looked at.
            (Kind::Reg, Kind::Other) => Form::RegImm,
            (Kind::Mem, Kind::Other) => Form::MemImm,
            _ => return None,
        };
        let mut op = self.op;
        let template = Template::arithmetic(form, alu, size);
        if matches!(form, Form::RegReg | Form::RegImm) {
            op.dst = self.reg(0)?;
            if form == Form::RegReg {
                op.src = self.reg(1)?;
            } else {
                op.imm = immediate(self.instruction, 1).unwrap_or(0);
            }
            op.handler = alu::select_register(form, alu, size, true);
            let keeps = match alu {
                kind::ADC | kind::SBB => Keeps::SomeAndReads,
                kind::INC | kind::DEC => Keeps::Some,
                _ => Keeps::Nothing,
            };
            let flags = if alu == kind::NOT {
                FlagUse::None
            } else {
                FlagUse::Writes {
                    keeps,
                    without: alu::select_register(form, alu, size, false),
                }
            };
            return Some(Lowered {
                op,
                flags,
                template,
            });
        }
        let access = if matches!(form, Form::RegMem) || matches!(alu, kind::CMP | kind::TEST) {
            LogKind::Read
        } else {
            self.update_kind()
        };
        let (mut op, full) = self.with_memory(access, size)?;
        match form {
            Form::RegMem => op.dst = self.reg(0)?,
            Form::MemReg => op.src = self.reg(1)?,
            _ => op.imm = immediate(self.instruction, 1).unwrap_or(0),
        }
        op.handler = alu::select_memory::<OBS>(form, alu, size, full);
        Some(Lowered::barrier(op).meaning(template))
    }

    fn shift(&self, which: u8) -> Option<Lowered> {
        let size = self.size(0);
        if self.kind(0) != Kind::Reg || !matches!(size, 4 | 8) {
            return None;
        }
        let dst = self.reg(0)?;
        if self.kind(1) == Kind::Reg {
            let op = Op {
                dst,
                handler: shift::select_cl(which, size, true),
                ..self.op
            };
            let without = shift::select_cl(which, size, false);
            return Some(
                Lowered::writes(op, Keeps::Some, without).meaning(Template::ShiftByCl {
                    kind: which,
                    size,
                    sets_flags: true,
                }),
            );
        }
        let bits = if size == 8 { 63 } else { 31 };
        let imm = immediate(self.instruction, 1)? & bits;
        if imm == 0 {
            return None;
        }
        let op = Op {
            dst,
            imm,
            handler: shift::select_constant(which, size, true),
            ..self.op
        };
        let keeps = if matches!(which, shift::kind::ROL | shift::kind::ROR) {
            Keeps::Some
        } else {
            Keeps::Nothing
        };
        let without = shift::select_constant(which, size, false);
        Some(
            Lowered::writes(op, keeps, without).meaning(Template::Shift {
                kind: which,
                size,
                sets_flags: true,
            }),
        )
    }

    fn exchange<const OBS: u8>(&self) -> Option<Lowered> {
        let size = self.size(0);
        let which = match self.instruction.mnemonic() {
            Mnemonic::Xchg => Exchange::Xchg,
            Mnemonic::Xadd => Exchange::Xadd,
            Mnemonic::Cmpxchg => Exchange::Cmpxchg,
            _ => return None,
        };
        if self.kind(0) == Kind::Mem && self.kind(1) == Kind::Reg {
            // XCHG with memory is atomic even without the prefix (SDM vol. 2D).
            let access = if which == Exchange::Xchg {
                LogKind::AtomicUpdate
            } else {
                self.update_kind()
            };
            let (op, _) = self.with_memory(access, size)?;
            let handler = alu::select_exchange::<OBS>(which, size);
            return Some(Lowered::barrier(Op {
                src: self.reg(1)?,
                handler,
                ..op
            }));
        }
        if which == Exchange::Xchg && self.kind(0) == Kind::Reg && self.kind(1) == Kind::Reg {
            let op = Op {
                dst: self.reg(0)?,
                src: self.reg(1)?,
                handler: mov::select_xchg_reg(size),
                ..self.op
            };
            return Some(Lowered::plain(op).meaning(Template::ExchangeRegisters { size }));
        }
        None
    }

    fn bit_operation(&self) -> Option<Lowered> {
        let size = self.size(0);
        if self.kind(0) != Kind::Reg || !matches!(size, 4 | 8) {
            return None;
        }
        let op = Op {
            dst: self.reg(0)?,
            ..self.op
        };
        match (self.instruction.mnemonic(), self.kind(1)) {
            (Mnemonic::Bt, Kind::Reg) => Some(Lowered::reads(Op {
                src: self.reg(1)?,
                handler: bits::select_bt_reg(size),
                ..op
            })),
            (Mnemonic::Bt, Kind::Imm) => {
                let imm = immediate(self.instruction, 1)?;
                Some(Lowered::reads(Op {
                    imm,
                    handler: bits::select_bt_imm(size),
                    ..op
                }))
            }
            (Mnemonic::Bsf | Mnemonic::Bsr, Kind::Reg) => {
                let forward = self.instruction.mnemonic() == Mnemonic::Bsf;
                Some(Lowered::reads(Op {
                    src: self.reg(1)?,
                    handler: bits::select_scan_reg(size, forward),
                    ..op
                }))
            }
            (Mnemonic::Bswap, _) => {
                let handler = bits::select_bswap(size);
                Some(Lowered::plain(Op { handler, ..op }).meaning(Template::SwapBytes { size }))
            }
            _ => None,
        }
    }

    fn control<const OBS: u8>(&self) -> Option<Lowered> {
        let op = Op {
            imm: self.instruction.next_ip(),
            ..self.op
        };
        match self.instruction.mnemonic() {
            Mnemonic::Jmp => self.jump::<OBS>(op),
            Mnemonic::Call => self.call::<OBS>(op),
            Mnemonic::Ret
                if matches!(
                    self.instruction.code(),
                    iced_x86::Code::Retnq | iced_x86::Code::Retnq_imm16
                ) =>
            {
                let imm = immediate(self.instruction, 0).unwrap_or(0);
                let meta = op.meta.with_access(LogKind::Read, 8);
                let op = Op {
                    imm,
                    meta,
                    base: RSP,
                    handler: branch::ret::<OBS>,
                    ..op
                };
                Some(Lowered::barrier(op).meaning(Template::Return))
            }
            _ if self.instruction.is_jcc_short_or_near() => {
                let condition = condition(self.instruction)?;
                let handler = branch::select_jcc(condition);
                let template = Template::JumpIf { condition };
                Some(Lowered::barrier(Op { handler, ..op }).meaning(template))
            }
            _ => self.conditional_data::<OBS>(),
        }
    }

    fn jump<const OBS: u8>(&self, op: Op) -> Option<Lowered> {
        if self.instruction.is_jmp_short_or_near() {
            let op = Op {
                handler: branch::jmp,
                ..op
            };
            return Some(Lowered::barrier(op).meaning(Template::Jump));
        }
        let op = if !self.instruction.is_jmp_near_indirect() {
            return None;
        } else if self.kind(0) == Kind::Reg {
            Op {
                src: self.reg(0)?,
                handler: branch::jmp_reg,
                ..op
            }
        } else {
            Op {
                handler: branch::jmp_mem::<OBS>,
                ..self.with_memory(LogKind::Read, 8)?.0
            }
        };
        Some(Lowered::barrier(op))
    }

    fn call<const OBS: u8>(&self, op: Op) -> Option<Lowered> {
        let pushing = Op {
            base: RSP,
            meta: op.meta.with_access(LogKind::Write, 8),
            ..op
        };
        if self.instruction.is_call_near() {
            let op = Op {
                handler: branch::call::<OBS>,
                ..pushing
            };
            return Some(Lowered::barrier(op).meaning(Template::Call));
        }
        let op = if !self.instruction.is_call_near_indirect() {
            return None;
        } else if self.kind(0) == Kind::Reg {
            Op {
                src: self.reg(0)?,
                handler: branch::call_reg::<OBS>,
                ..pushing
            }
        } else {
            Op {
                imm: op.imm,
                handler: branch::call_mem::<OBS>,
                ..self.with_memory(LogKind::Read, 8)?.0
            }
        };
        Some(Lowered::barrier(op))
    }

    /// SETcc and CMOVcc.
    fn conditional_data<const OBS: u8>(&self) -> Option<Lowered> {
        let condition = condition(self.instruction)?;
        let info = self.instruction;
        let is_set = info.op_count() == 1
            && info.op0_kind() == OpKind::Register
            && info.op0_register().is_gpr8();
        if is_set {
            let op = Op {
                dst: self.reg(0)?,
                scale: condition,
                handler: branch::setcc_reg,
                ..self.op
            };
            return Some(Lowered::reads(op).meaning(Template::SetIf { condition }));
        }
        let size = self.size(0);
        if info.op_count() != 2 || self.kind(0) != Kind::Reg || !matches!(size, 4 | 8) {
            return None;
        }
        let dst = self.reg(0)?;
        match self.kind(1) {
            Kind::Reg => {
                let op = Op {
                    dst,
                    src: self.reg(1)?,
                    handler: branch::select_cmov_reg(condition, size),
                    ..self.op
                };
                Some(Lowered::reads(op).meaning(Template::CopyIf { condition, size }))
            }
            Kind::Mem => {
                let (op, _) = self.with_memory(LogKind::Read, size)?;
                let handler = if size == 4 {
                    branch::cmov_mem::<u32, OBS>
                } else {
                    branch::cmov_mem::<u64, OBS>
                };
                Some(Lowered::barrier(Op {
                    dst,
                    imm: u64::from(condition),
                    handler,
                    ..op
                }))
            }
            _ => None,
        }
    }
}

/// CDQE and CWDE: operands of the op are zero, which is RAX.
fn widening(from: usize, to: usize) -> Template {
    Template::ExtendRegister {
        from,
        to,
        is_signed: true,
    }
}
