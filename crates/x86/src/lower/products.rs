//! Multiplications and divisions.

use iced_x86::Mnemonic;

use super::operand::immediate;
use super::select::{Context, Keeps, Kind, Lowered};
use crate::fast::muldiv;
use crate::native::{Product, Template};
use crate::op::{Handler, LogKind, Op};

impl Context<'_> {
    pub(super) fn multiply<const OBS: u8>(&self) -> Option<Lowered> {
        let size = self.size(0);
        if !matches!(size, 4 | 8) {
            return None;
        }
        let count = self.instruction.op_count();
        match (
            self.instruction.mnemonic(),
            count,
            self.kind(0),
            self.kind(1),
        ) {
            (Mnemonic::Imul, 2, Kind::Reg, Kind::Reg) => {
                let op = Op {
                    dst: self.reg(0)?,
                    src: self.reg(1)?,
                    handler: muldiv::select_imul_reg(size, true),
                    ..self.op
                };
                let without = muldiv::select_imul_reg(size, false);
                Some(multiplication(op, without, Product::OfRegisters, size))
            }
            (Mnemonic::Imul, 2, Kind::Reg, Kind::Mem) => {
                let (op, _) = self.with_memory(LogKind::Read, size)?;
                Some(Lowered::barrier(Op {
                    dst: self.reg(0)?,
                    handler: muldiv::select_imul_mem::<OBS>(size),
                    ..op
                }))
            }
            (Mnemonic::Imul, 3, Kind::Reg, Kind::Reg) => {
                let op = Op {
                    dst: self.reg(0)?,
                    src: self.reg(1)?,
                    imm: immediate(self.instruction, 2)?,
                    handler: muldiv::select_imul_reg_imm(size, true),
                    ..self.op
                };
                let without = muldiv::select_imul_reg_imm(size, false);
                Some(multiplication(op, without, Product::WithConstant, size))
            }
            (Mnemonic::Mul | Mnemonic::Imul, 1, Kind::Reg, _) => {
                let is_signed = self.instruction.mnemonic() == Mnemonic::Imul;
                let op = Op {
                    src: self.reg(0)?,
                    handler: muldiv::select_mul_reg(size, is_signed, true),
                    ..self.op
                };
                let without = muldiv::select_mul_reg(size, is_signed, false);
                let product = if is_signed {
                    Product::WideSigned
                } else {
                    Product::Wide
                };
                Some(multiplication(op, without, product, size))
            }
            (Mnemonic::Div | Mnemonic::Idiv, 1, Kind::Reg, _) => {
                let handler =
                    muldiv::select_div_reg(size, self.instruction.mnemonic() == Mnemonic::Idiv);
                Some(Lowered::barrier(Op {
                    src: self.reg(0)?,
                    handler,
                    ..self.op
                }))
            }
            _ => None,
        }
    }
}

/// A multiplication of registers.
fn multiplication(op: Op, without: Handler, product: Product, size: usize) -> Lowered {
    Lowered::writes(op, Keeps::Nothing, without).meaning(Template::Multiply {
        product,
        size,
        sets_flags: true,
    })
}
