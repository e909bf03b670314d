//! XMM registers: moves, and other SSE instructions by the code of their stubs.

use std::mem::offset_of;

use super::{Emitter, Need, register};
use crate::cpu::{Cpu, FxState};
use crate::fast::vector::{CONTROL, DEFAULT_CONTROL};
use crate::native::code::host::{R9, RAX, RDI, RSI};
use crate::native::code::{At, alu, condition};
use crate::native::template::Template;
use crate::stub::MemoryUse;

const MXCSR: usize = offset_of!(Cpu, fx) + offset_of!(FxState, mxcsr);
const BYTES: usize = 16;

impl Emitter<'_> {
    /// An op whose operands are XMM registers.
    pub(super) fn vector(&mut self, template: Template) {
        let op = self.op();
        match template {
            Template::CopyVector => {
                self.code.load_vector(BYTES, xmm(op.src));
                self.code.store_vector(xmm(op.dst));
            }
            Template::XorVector => {
                self.code.load_vector(BYTES, xmm(op.dst));
                self.code.xor_vector(xmm(op.src));
                self.code.store_vector(xmm(op.dst));
            }
            Template::LoadVector { is_aligned } => {
                let mask = if is_aligned { 15 } else { 0 };
                self.access_aligned(BYTES, mask, Need::Read);
                self.code.load_vector(BYTES, At::plain(RAX));
                self.code.store_vector(xmm(op.dst));
            }
            Template::StoreVector { is_aligned } => {
                let mask = if is_aligned { 15 } else { 0 };
                self.access_aligned(BYTES, mask, Need::Write);
                self.code.load_vector(BYTES, xmm(op.src));
                self.code.store_vector(At::plain(RAX));
            }
            Template::LoadLow { size } => {
                self.access(size, Need::Read);
                self.code.load_vector(size, At::plain(RAX));
                self.code.store_vector(xmm(op.dst));
            }
            Template::LowFromRegister { size } => {
                self.code.load_vector(size, register(op.src));
                self.code.store_vector(xmm(op.dst));
            }
            Template::StoreLow { size } => {
                self.access(size, Need::Write);
                self.code.load(size, R9, xmm(op.src));
                self.code.store(size, R9, At::plain(RAX));
            }
            Template::LowToRegister { size } => {
                self.code.load(size, RAX, xmm(op.src));
                self.set(size, op.dst, RAX);
            }
            Template::Stub {
                length,
                memory,
                is_float,
            } => self.stub(length, memory, is_float),
            other => unreachable!("{other:?} has no vectors"),
        }
    }

    /// The code of a stub, which changes none of the registers that handlers are given but RSI.
    fn stub(&mut self, length: u8, memory: MemoryUse, is_float: bool) {
        let op = self.op();
        if is_float {
            self.code.load(4, RAX, At::new(RDI, MXCSR));
            let control = CONTROL.cast_signed();
            self.code.arithmetic_constant(4, alu::AND, RAX, control);
            let default = DEFAULT_CONTROL.cast_signed();
            self.code.arithmetic_constant(4, alu::CMP, RAX, default);
            self.give_up_if(condition::NOT_EQUAL);
        }
        if memory != MemoryUse::None {
            let need = if memory == MemoryUse::Write {
                Need::Write
            } else {
                Need::Read
            };
            self.access_aligned(usize::from(op.src), op.dst, need);
            self.code.copy(RSI, RAX);
        }
        // SAFETY: a stub of the engine's cache begins there and lives as long as the engine; its length was measured when
        // it was made.
        let code = unsafe { std::slice::from_raw_parts(op.next.cast::<u8>(), usize::from(length)) };
        self.code.bytes.extend_from_slice(code);
    }

    /// As `access`, of an address whose bits of the mask must be zero.
    fn access_aligned(&mut self, size: usize, mask: u8, need: Need) {
        if mask != 0 {
            self.address();
            self.code.test_low_byte(RAX, mask);
            self.give_up_if(condition::NOT_EQUAL);
        }
        self.access(size, need);
    }
}

/// An XMM register of the guest.
fn xmm(number: u8) -> At {
    At::new(RDI, offset_of!(Cpu, xmm) + BYTES * usize::from(number))
}
