//! Rotations, shifts by CL, products and the like, where no instruction reads the flags that they would set.

use raddle_stdx::width::low_u32;

use super::{Emitter, cut, register};
use crate::fast::alu::{Form, kind};
use crate::fast::shift;
use crate::native::code::host::{R9, R10, R11, RAX, RCX, RDX};
use crate::native::code::{alu, shift as host_shift};
use crate::native::template::{Product, Template};

/// RAX, RCX and RDX of the guest, as operands.
const GUEST_RAX: u8 = 0;
const GUEST_RCX: u8 = 8;
const GUEST_RDX: u8 = 16;
/// Number of the condition "carry", in the low four bits of the opcode.
const CARRY: u8 = 2;

impl Emitter<'_> {
    /// An op that sets no flags.
    pub(super) fn integer(&mut self, template: Template) {
        let op = self.op();
        match template {
            Template::ShiftByCl { kind, size, .. } => {
                self.code.load(size, RAX, register(op.dst));
                self.code.copy(R11, RCX);
                self.code.load(1, RCX, register(GUEST_RCX));
                self.code.shift_by_cl(size, host_number(kind), RAX);
                self.code.copy(RCX, R11);
                self.set(size, op.dst, RAX);
            }
            Template::Multiply { product, size, .. } => self.multiply(product, size),
            Template::SwapBytes { size } => {
                self.code.load(size, RAX, register(op.dst));
                self.code.swap_bytes(size, RAX);
                self.set(size, op.dst, RAX);
            }
            Template::ExchangeRegisters { size } => {
                self.code.load(size, RAX, register(op.dst));
                self.code.load(size, R9, register(op.src));
                self.set(size, op.dst, R9);
                self.set(size, op.src, RAX);
            }
            Template::SignToRdx { size } => {
                self.code.load_signed(size, RAX, register(GUEST_RAX));
                self.code.shift(8, host_shift::SAR, RAX, 63);
                self.code.extend(size, RAX, RAX);
                self.set(size, GUEST_RDX, RAX);
            }
            other => unreachable!("{other:?} is translated elsewhere"),
        }
    }

    /// A rotation by a constant.
    pub(super) fn rotate(&mut self, kind: u8, size: usize, count: u8) {
        let op = self.op();
        self.code.load(size, RAX, register(op.dst));
        self.code.shift(size, host_number(kind), RAX, count);
        self.set(size, op.dst, RAX);
    }

    /// ADC or SBB of registers.
    pub(super) fn with_carry(&mut self, form: Form, kind: u8, size: usize) {
        let op = self.op();
        let holds = self.condition(CARRY);
        self.code.set_if(holds, R11);
        self.code.extend(1, R11, R11);
        self.code.load(size, R10, register(op.dst));
        if form == Form::RegReg {
            self.code.load(size, R9, register(op.src));
        } else {
            self.code.constant(R9, cut(op.imm, size));
        }
        let operation = if kind == kind::ADC {
            alu::ADD
        } else {
            alu::SUB
        };
        self.code.arithmetic(size, operation, R10, R9);
        self.code.arithmetic(size, operation, R10, R11);
        self.set(size, op.dst, R10);
        self.has_host_flags = false;
    }

    fn multiply(&mut self, product: Product, size: usize) {
        let op = self.op();
        match product {
            Product::OfRegisters => {
                self.code.load(size, RAX, register(op.dst));
                self.code.multiply_memory(size, RAX, register(op.src));
                self.set(size, op.dst, RAX);
            }
            Product::WithConstant => {
                // That of eight bytes is sign-extended from these.
                let factor = low_u32(op.imm).cast_signed();
                self.code
                    .multiply_constant(size, RAX, register(op.src), factor);
                self.set(size, op.dst, RAX);
            }
            Product::Wide | Product::WideSigned => {
                let is_signed = product == Product::WideSigned;
                self.code.load(size, RAX, register(GUEST_RAX));
                self.code.copy(R11, RDX);
                self.code.multiply_wide(size, is_signed, register(op.src));
                self.code.copy(R9, RDX);
                self.code.copy(RDX, R11);
                self.set(size, GUEST_RAX, RAX);
                self.set(size, GUEST_RDX, R9);
            }
        }
    }
}

/// The number of a shift or rotation in the encoding.
fn host_number(kind: u8) -> u8 {
    match kind {
        shift::kind::SHL => host_shift::SHL,
        shift::kind::SHR => host_shift::SHR,
        shift::kind::SAR => host_shift::SAR,
        shift::kind::ROL => host_shift::ROL,
        _ => host_shift::ROR,
    }
}
