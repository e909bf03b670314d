//! The machine code of a block's ops.
//!
//! All of the guest's state is where handlers have it, so that every op is an entry, and every op can be left to
//! its handler: that is what happens when an access misses the TLB, or when a point may not be passed.

mod integer;
mod stack;
mod vector;

use std::mem::offset_of;

use raddle_stdx::width::{low_u8, to_usize};

use super::code::host::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
use super::code::{At, Code, Target, alu, condition as host_condition, shift as host_shift};
use super::routines::{self, Need, Routines};
use super::template::Template;
use crate::cpu::{Cpu, slot};
use crate::fast::alu::{Form, kind};
use crate::fast::shift;
use crate::flags::{Flags, pending};
use crate::op::Op;
use crate::run::{Run, interest_bit};

const ZERO: u8 = slot::ZERO * 8;
const FLAGS: usize = offset_of!(Cpu, flags);

/// The code of some ops of a block.
#[derive(Debug)]
pub(super) struct Emitter<'a> {
    ops: &'a [Op],
    /// Accesses are recorded, without values.
    records: bool,
    routines: &'a Routines,
    code: Code,
    /// What is seldom executed, elsewhere.
    cold: Code,
    /// Where each op begins, by its number; none if it is left to its handler.
    entries: Vec<Option<Target>>,
    /// Where the block's ops are left to their handlers.
    leaving: Option<Target>,
    /// The way to the handler of the op that is being translated.
    given_up: Option<Target>,
    /// The op that is being translated.
    at: usize,
    /// What is [`pending`] of the flags if the ops before were executed by this code and not by their handlers.
    pending: u32,
    /// The flags of the host are those of the guest here, unless the block is entered from elsewhere.
    has_host_flags: bool,
    exits: Exits,
}

/// Where the distances of the jumps out of a block are, by the way out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exits {
    pub(super) taken: Option<Target>,
    pub(super) not_taken: Option<Target>,
}

/// Machine code and where each op begins in it.
#[derive(Debug)]
pub(super) struct Emitted {
    pub(super) code: Vec<u8>,
    pub(super) cold: Vec<u8>,
    pub(super) entries: Vec<Option<Target>>,
    pub(super) exits: Exits,
}

/// Bytes before the jump in [`Emitter::charge`].
pub(super) const CHARGE_BYTES: usize = 4;

impl<'a> Emitter<'a> {
    /// Code that will be at the two places.
    pub(super) fn new(
        ops: &'a [Op],
        records: bool,
        routines: &'a Routines,
        code: Target,
        cold: Target,
    ) -> Self {
        Self {
            ops,
            records,
            routines,
            code: Code::at(code),
            cold: Code::at(cold),
            entries: Vec::with_capacity(ops.len()),
            leaving: None,
            given_up: None,
            at: 0,
            pending: pending::NONE,
            has_host_flags: false,
            exits: Exits::default(),
        }
    }

    /// The code of all ops that have a template.
    pub(super) fn emit(mut self, templates: &[Template]) -> Emitted {
        self.charge();
        if templates.first().is_none_or(|first| !first.is_translated()) {
            self.go_on_with(0);
        }
        let mut at = 0;
        while at < templates.len() {
            let count = self.stack_run(templates, at);
            self.together(&templates[at..], at, count);
            at += count;
        }
        Emitted {
            code: self.code.bytes,
            cold: self.cold.bytes,
            entries: self.entries,
            exits: self.exits,
        }
    }

    /// The code of so many ops from `at` on, which have the first of these templates. The first is an entry; a run that
    /// comes to another one from elsewhere takes its handler.
    fn together(&mut self, templates: &[Template], at: usize, count: usize) {
        let template = templates[0];
        (self.at, self.given_up) = (at, None);
        if !template.is_translated() {
            self.entries.push(None);
            (self.pending, self.has_host_flags) = (pending::NONE, false);
            return;
        }
        // Nor does a run that comes from elsewhere bring the host's flags.
        let is_inside = template.reads_flags() && self.has_host_flags;
        let entry = (!is_inside).then(|| self.code.here());
        self.entries.push(entry);
        self.entries.resize(at + count, None);
        self.has_host_flags &= is_inside;
        match template {
            Template::PushRegister | Template::PushConstant => self.pushes(&templates[..count]),
            Template::PopRegister | Template::Return => self.pops(&templates[..count]),
            other => self.one(other),
        }
        let next = templates.get(count);
        if !templates[count - 1].is_last() && next.is_none_or(|next| !next.is_translated()) {
            self.go_on_with(at + count);
        }
    }

    /// Takes the block's steps from the budget. Machine code comes here from other blocks, handlers go to the first op
    /// and have done it themselves. The jump is taken if there are not enough steps left, and always when the block is
    /// no longer true (`Translator::retire`).
    fn charge(&mut self) {
        let first = &self.ops[0];
        let elsewhere = self.cold.here();
        self.cold.constant(RSI, address_of(first));
        self.cold.constant(RAX, u64::from(first.block_steps));
        self.cold.jump_to(self.routines.by_op);
        self.code
            .arithmetic_constant(8, alu::SUB, R8, i32::from(first.block_steps));
        assert_eq!(self.code.bytes.len(), CHARGE_BYTES, "retiring relies on it");
        self.code.jump_if_to(host_condition::SIGN, elsewhere);
    }

    fn op(&self) -> &'a Op {
        &self.ops[self.at]
    }

    /// Continues with an op that is not translated, or no longer true.
    fn go_on_with(&mut self, at: usize) {
        self.code.constant(RSI, address_of(&self.ops[at]));
        self.code.jump_memory(At::new(RSI, offset_of!(Op, handler)));
    }

    /// Leaves the op to its handler under a condition.
    fn give_up_if(&mut self, condition: u8) {
        let to = match self.given_up {
            Some(to) => to,
            None => self.way_to_handler(),
        };
        self.given_up = Some(to);
        self.code.jump_if_to(condition, to);
    }

    fn way_to_handler(&mut self) -> Target {
        let leaving = match self.leaving {
            Some(leaving) => leaving,
            None => {
                let here = self.cold.here();
                self.cold.constant(RAX, address_of(&self.ops[0]));
                self.cold.jump_to(self.routines.to_handler);
                here
            }
        };
        self.leaving = Some(leaving);
        let here = self.cold.here();
        self.cold.constant(RSI, (self.at * size_of::<Op>()) as u64);
        self.cold.jump_to(leaving);
        here
    }

    fn one(&mut self, template: Template) {
        match template {
            Template::Interpreted | Template::Nothing => {}
            Template::Point => self.point(),
            Template::BlockHead => self.block_head(),
            Template::Arithmetic {
                form,
                kind,
                size,
                sets_flags,
            } => self.arithmetic(form, kind, size, sets_flags),
            Template::Shift {
                kind,
                size,
                sets_flags,
            } => self.shift(kind, size, sets_flags),
            Template::Branch {
                form,
                kind,
                size,
                condition,
            } => self.branch(form, kind, size, condition),
            Template::JumpIf { condition } => {
                let holds = self.condition(condition);
                self.exits(holds);
            }
            Template::Jump => self.exit(),
            Template::Call => {
                self.pushes(&[Template::PushConstant]);
                self.exit();
            }
            Template::ShiftByCl { .. }
            | Template::Multiply { .. }
            | Template::SwapBytes { .. }
            | Template::ExchangeRegisters { .. }
            | Template::SignToRdx { .. } => self.integer(template),
            Template::CopyVector
            | Template::XorVector
            | Template::LoadVector { .. }
            | Template::StoreVector { .. }
            | Template::LoadLow { .. }
            | Template::LowFromRegister { .. }
            | Template::StoreLow { .. }
            | Template::LowToRegister { .. }
            | Template::Stub { .. } => self.vector(template),
            moving => self.movement(moving),
        }
    }

    /// An op that only moves data.
    fn movement(&mut self, template: Template) {
        let op = self.op();
        match template {
            Template::CopyRegister { size } => {
                self.code.load(size, RAX, register(op.src));
                self.set(size, op.dst, RAX);
            }
            Template::Constant { size } => {
                self.code.constant(RAX, cut(op.imm, size));
                self.set(size, op.dst, RAX);
            }
            Template::Load { size } => {
                self.access(size, Need::Read);
                self.code.load(size, RAX, At::plain(RAX));
                self.set(size, op.dst, RAX);
            }
            Template::StoreRegister { size } => {
                self.access(size, Need::Write);
                self.code.load(size, R9, register(op.src));
                self.code.store(size, R9, At::plain(RAX));
            }
            Template::StoreConstant { size } => {
                self.access(size, Need::Write);
                self.code.constant(R9, cut(op.imm, size));
                self.code.store(size, R9, At::plain(RAX));
            }
            Template::ExtendRegister {
                from,
                to,
                is_signed,
            } => self.extend(register(op.src), from, to, is_signed),
            Template::ExtendMemory {
                from,
                to,
                is_signed,
            } => {
                self.access(from, Need::Read);
                self.extend(At::plain(RAX), from, to, is_signed);
            }
            Template::Address { size } => {
                self.address();
                self.code.extend(size, RAX, RAX);
                self.set(size, op.dst, RAX);
            }
            Template::SetIf { condition } => {
                let holds = self.condition(condition);
                self.code.set_if(holds, RAX);
                self.set(1, op.dst, RAX);
            }
            Template::CopyIf { condition, size } => {
                let holds = self.condition(condition);
                self.code.load(size, RAX, register(op.dst));
                self.code.load(size, R9, register(op.src));
                self.code.copy_if(holds, RAX, R9);
                self.set(size, op.dst, RAX);
            }
            other => unreachable!("{other:?} does more than move data"),
        }
    }

    /// Writes a register operand whose value is zero-extended; 32-bit writes clear the upper half.
    fn set(&mut self, size: usize, operand: u8, from: u8) {
        let size = if size == 4 { 8 } else { size };
        self.code.store(size, from, register(operand));
    }

    fn extend(&mut self, source: At, from: usize, to: usize, is_signed: bool) {
        if is_signed {
            self.code.load_signed(from, RAX, source);
            self.code.extend(to, RAX, RAX);
        } else {
            self.code.load(from, RAX, source);
        }
        self.set(to, self.op().dst, RAX);
    }

    /// The effective address into RAX.
    fn address(&mut self) {
        let op = self.op();
        let disp = i32::try_from(op.disp.cast_signed());
        if op.base == ZERO && op.index == ZERO {
            self.code.constant(RAX, op.disp);
        } else {
            self.code.load(8, RAX, register(op.base));
            if op.index != ZERO {
                self.code.load(8, R9, register(op.index));
                self.code.sum(RAX, RAX, R9, op.scale, disp.unwrap_or(0));
            } else if let Ok(disp) = disp
                && disp != 0
            {
                self.code.arithmetic_constant(8, alu::ADD, RAX, disp);
            }
            if disp.is_err() {
                self.code.constant(R9, op.disp);
                self.code.arithmetic(8, alu::ADD, RAX, R9);
            }
        }
        if op.seg != ZERO {
            self.code
                .arithmetic_memory(8, alu::ADD, RAX, register(op.seg));
        }
    }

    /// The host address of the memory operand into RAX, with its record.
    fn access(&mut self, size: usize, need: Need) {
        self.address();
        if self.records {
            self.code.copy(R11, RAX);
        }
        self.translate(size, need);
        if self.records {
            self.record(self.at);
        }
    }

    /// Turns the guest address in RAX into a host address, or leaves the op to its handler. R11 stays.
    fn translate(&mut self, size: usize, need: Need) {
        routines::look_up(&mut self.code, size, need);
        self.give_up_if(host_condition::NOT_EQUAL);
        routines::host_address(&mut self.code);
    }

    /// A record of an op's access to the guest address in R11.
    fn record(&mut self, at: usize) {
        self.code.store(8, R11, At::plain(RCX));
        self.code.constant(R11, self.ops[at].meta.0);
        self.code.store(8, R11, At::new(RCX, 8));
        self.code.arithmetic_constant(8, alu::ADD, RCX, 16);
    }

    fn block_head(&mut self) {
        let steps = i32::from(self.op().block_steps);
        self.code.offset(R11, R8, steps);
        self.record(self.at);
    }

    /// Passes a flagged point if it may be passed.
    fn point(&mut self) {
        let pc = self.op().meta.pc();
        self.code.constant(RAX, pc);
        self.code
            .arithmetic_memory(8, alu::CMP, RAX, At::new(RDX, offset_of!(Run, skip_point)));
        self.give_up_if(host_condition::EQUAL);
        let left = At::new(RDX, offset_of!(Run, points_left));
        self.code.compare_memory(8, left, 0);
        self.give_up_if(host_condition::EQUAL);
        self.code
            .load(8, RAX, At::new(RDX, offset_of!(Run, interest)));
        let (word, bit) = interest_bit(pc);
        let byte = bit.trailing_zeros() / 8;
        let bit = low_u8(bit >> (byte * 8));
        let at = At::new(RAX, word * 8 + to_usize(u64::from(byte)));
        self.code.test_byte(at, bit);
        self.give_up_if(host_condition::NOT_EQUAL);
        self.code.decrement_memory(left);
    }

    fn arithmetic(&mut self, form: Form, kind: u8, size: usize, sets_flags: bool) {
        let writes = !matches!(kind, kind::CMP | kind::TEST);
        if !writes && !sets_flags {
            return;
        }
        if matches!(kind, kind::ADC | kind::SBB) {
            self.with_carry(form, kind, size);
            return;
        }
        let keeps_carry = sets_flags && matches!(kind, kind::INC | kind::DEC);
        if keeps_carry {
            self.code.compare_memory(4, pending_at(), 0);
            self.give_up_if(host_condition::NOT_EQUAL);
        }
        let op = self.op();
        let result = match form {
            Form::RegReg | Form::RegImm => {
                self.operands(form, kind, size);
                register(op.dst)
            }
            Form::RegMem => {
                self.access(size, Need::Read);
                self.code.load(size, R9, At::plain(RAX));
                self.code.load(size, RAX, register(op.dst));
                register(op.dst)
            }
            Form::MemReg | Form::MemImm => {
                self.access(size, if writes { Need::Write } else { Need::Read });
                self.code.copy(RSI, RAX);
                self.code.load(size, RAX, At::plain(RSI));
                self.second(form, kind, size);
                At::plain(RSI)
            }
        };
        self.compute(kind, size);
        if writes && matches!(form, Form::MemReg | Form::MemImm) {
            self.code.store(size, R10, result);
        } else if writes {
            self.set(size, op.dst, R10);
        }
        if keeps_carry {
            routines::increment_flags(&mut self.code, kind == kind::INC, size);
            self.pending = pending::NONE;
        } else if sets_flags && kind != kind::NOT {
            self.put_off(kind, size);
        }
    }

    /// Leaves the flags of the operation that [`Self::compute`] has just done to the instruction that reads them.
    fn put_off(&mut self, kind: u8, size: usize) {
        let what = match kind {
            kind::ADD => pending::SUM,
            kind::SUB | kind::CMP | kind::NEG => pending::DIFFERENCE,
            _ => pending::LOGIC,
        };
        self.pending = what | size.trailing_zeros();
        // None of these stores changes the flags of the host.
        if what == pending::LOGIC {
            self.code.store(8, R10, result());
        } else {
            self.code.store(8, RAX, result());
            self.code.store(8, R9, aux());
        }
        self.code.store_constant(self.pending, pending_at());
        self.has_host_flags = true;
    }

    /// The operands of a register form into RAX and R9.
    fn operands(&mut self, form: Form, kind: u8, size: usize) {
        self.code.load(size, RAX, register(self.op().dst));
        self.second(form, kind, size);
    }

    /// The second operand into R9.
    fn second(&mut self, form: Form, kind: u8, size: usize) {
        let op = self.op();
        match kind {
            kind::INC | kind::DEC => self.code.constant(R9, 1),
            kind::NEG | kind::NOT => {}
            _ if matches!(form, Form::RegReg | Form::MemReg) => {
                self.code.load(size, R9, register(op.src));
            }
            _ => self.code.constant(R9, cut(op.imm, size)),
        }
    }

    /// R10 = RAX op R9, zero-extended, of CMP only flags; leaves the flags of the host as the guest's are to be, except
    /// for NOT, INC and DEC. NEG becomes a subtraction from zero.
    fn compute(&mut self, kind: u8, size: usize) {
        if kind == kind::NEG {
            self.code.copy(R9, RAX);
            self.code.constant(RAX, 0);
        }
        if kind == kind::CMP {
            self.code.compare(size, RAX, R9);
            return;
        }
        self.code.copy(R10, RAX);
        match kind {
            kind::ADD | kind::INC => self.code.arithmetic(size, alu::ADD, R10, R9),
            kind::OR => self.code.arithmetic(size, alu::OR, R10, R9),
            kind::AND | kind::TEST => self.code.arithmetic(size, alu::AND, R10, R9),
            kind::XOR => self.code.arithmetic(size, alu::XOR, R10, R9),
            kind::NOT => {
                self.code.not(R10);
                self.code.extend(size, R10, R10);
            }
            _ => self.code.arithmetic(size, alu::SUB, R10, R9),
        }
    }

    /// A shift by a constant; what OF is for counts above one, `fast::shift` says.
    fn shift(&mut self, kind: u8, size: usize, sets_flags: bool) {
        let op = self.op();
        let count = low_u8(op.imm);
        let bits = u8::try_from(size * 8).expect("at most 64");
        if matches!(kind, shift::kind::ROL | shift::kind::ROR) {
            self.rotate(kind, size, count);
            return;
        }
        let code = &mut self.code;
        if kind == shift::kind::SAR {
            code.load_signed(size, RAX, register(op.dst));
        } else {
            code.load(size, RAX, register(op.dst));
        }
        code.copy(R10, RAX);
        let which = match kind {
            shift::kind::SHL => host_shift::SHL,
            shift::kind::SHR => host_shift::SHR,
            _ => host_shift::SAR,
        };
        code.shift(8, which, R10, count);
        code.extend(size, R10, R10);
        self.set(size, op.dst, R10);
        if !sets_flags {
            return;
        }
        let code = &mut self.code;
        code.extend_signed(size, R11, R10);
        code.store(8, R11, result());
        // The bit that was shifted out last, at the top; behind it the exclusive or of carry and overflow.
        code.copy(R9, RAX);
        let last = if kind == shift::kind::SHL {
            bits - count
        } else {
            count - 1
        };
        code.shift(8, host_shift::SHR, R9, last);
        code.shift(8, host_shift::SHL, R9, 63);
        match kind {
            shift::kind::SHL => {
                code.shift(8, host_shift::SHR, R11, 63);
                code.shift(8, host_shift::SHL, R11, 62);
            }
            _ => {
                code.copy(R11, R9);
                code.shift(8, host_shift::SHR, R11, 1);
            }
        }
        if kind == shift::kind::SHR && count == 1 {
            code.shift(8, host_shift::SHR, RAX, bits - 1);
            code.shift(8, host_shift::SHL, RAX, 62);
            code.arithmetic(8, alu::XOR, R11, RAX);
        }
        code.arithmetic(8, alu::OR, R9, R11);
        code.store(8, R9, aux());
        code.store_constant(pending::NONE, pending_at());
        self.pending = pending::NONE;
    }

    /// Finds out whether a condition (not parity) holds; gives the host condition that says so.
    fn condition(&mut self, number: u8) -> u8 {
        if self.has_host_flags {
            return number;
        }
        let what = i8::try_from(self.pending).expect("a small number");
        self.code.compare_memory(4, pending_at(), what);
        self.give_up_if(host_condition::NOT_EQUAL);
        let size = 1 << (self.pending & 3);
        match self.pending & !3 {
            pending::NONE => self.settled_condition(number),
            pending::LOGIC => {
                self.code.load(size, RAX, result());
                self.code.test(size, RAX, RAX);
                number
            }
            what => {
                let is_sum = what == pending::SUM;
                let operation = if is_sum { alu::ADD } else { alu::CMP };
                self.code.load(size, RAX, result());
                self.code.arithmetic_memory(size, operation, RAX, aux());
                number
            }
        }
    }

    /// The same where nothing is pending.
    fn settled_condition(&mut self, number: u8) -> u8 {
        let code = &mut self.code;
        let holds = match number >> 1 {
            0 => {
                code.load(8, RAX, aux());
                code.sum(R9, RAX, RAX, 0, 0);
                code.arithmetic(8, alu::XOR, RAX, R9);
                host_condition::SIGN
            }
            1 => {
                code.compare_memory(8, aux(), 0);
                host_condition::SIGN
            }
            2 => {
                code.compare_memory(8, result(), 0);
                host_condition::EQUAL
            }
            3 => {
                code.load(8, R9, aux());
                code.shift(8, host_shift::SHR, R9, 63);
                self.or_zero()
            }
            4 => {
                self.sign();
                self.code.arithmetic_constant(4, alu::AND, R9, 1);
                host_condition::NOT_EQUAL
            }
            number => {
                self.sign();
                let code = &mut self.code;
                code.load(8, RAX, aux());
                code.sum(R10, RAX, RAX, 0, 0);
                code.arithmetic(8, alu::XOR, RAX, R10);
                code.shift(8, host_shift::SHR, RAX, 63);
                code.arithmetic(8, alu::XOR, R9, RAX);
                code.arithmetic_constant(4, alu::AND, R9, 1);
                if number == 6 {
                    host_condition::NOT_EQUAL
                } else {
                    self.or_zero()
                }
            }
        };
        holds ^ (number & 1)
    }

    /// SF into bit 0 of R9.
    fn sign(&mut self) {
        self.code.load(8, R9, result());
        self.code.shift(8, host_shift::SHR, R9, 63);
        self.code.arithmetic_memory(8, alu::XOR, R9, aux());
    }

    /// Whether R9 is not zero, or ZF is set.
    fn or_zero(&mut self) -> u8 {
        self.code.compare_memory(8, result(), 0);
        self.code.set_if(host_condition::EQUAL, RAX);
        self.code.extend(1, RAX, RAX);
        self.code.arithmetic(8, alu::OR, R9, RAX);
        host_condition::NOT_EQUAL
    }

    fn branch(&mut self, form: Form, kind: u8, size: usize, condition: u8) {
        self.operands(form, kind, size);
        self.compute(kind, size);
        self.put_off(kind, size);
        self.exits(condition);
    }

    /// Leaves the block one way if the host condition holds, and the other way if not.
    fn exits(&mut self, taken_if: u8) {
        let unlinked = self.unlinked(2);
        self.exits.taken = Some(self.code.jump_if_to(taken_if, unlinked));
        let unlinked = self.unlinked(1);
        self.exits.not_taken = Some(self.code.jump_to(unlinked));
    }

    fn exit(&mut self) {
        let unlinked = self.unlinked(2);
        self.exits.taken = Some(self.code.jump_to(unlinked));
    }

    /// The way to the op so far behind this one, which has the block looked for that is to be linked.
    fn unlinked(&mut self, behind: usize) -> Target {
        let here = self.cold.here();
        let op = &self.ops[self.at + behind];
        self.cold.constant(RSI, address_of(op));
        self.cold.jump_memory(At::new(RSI, offset_of!(Op, handler)));
        here
    }
}

/// A register operand of an op.
fn register(operand: u8) -> At {
    At::new(RDI, offset_of!(Cpu, regs) + usize::from(operand))
}

/// The result of which the flags are.
pub(super) fn result() -> At {
    At::new(RDI, FLAGS + Flags::RESULT_OFFSET)
}

/// What is pending of the flags.
fn pending_at() -> At {
    At::new(RDI, FLAGS + Flags::PENDING_OFFSET)
}

/// The carries of the flags.
pub(super) fn aux() -> At {
    At::new(RDI, FLAGS + Flags::AUX_OFFSET)
}

fn address_of(op: &Op) -> u64 {
    std::ptr::from_ref(op).expose_provenance() as u64
}

/// The low bytes of a constant.
fn cut(value: u64, size: usize) -> u64 {
    match size {
        1 => value & 0xFF,
        2 => value & 0xFFFF,
        4 => value & 0xFFFF_FFFF,
        _ => value,
    }
}
