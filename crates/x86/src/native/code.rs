//! A small assembler: just the forms that translated code needs.

/// Host registers by number. The first five hold the arguments of a handler; RSI is free inside translated code.
pub(super) mod host {
    pub(in crate::native) const RAX: u8 = 0;
    pub(in crate::native) const RCX: u8 = 1;
    pub(in crate::native) const RDX: u8 = 2;
    pub(in crate::native) const RSI: u8 = 6;
    pub(in crate::native) const RDI: u8 = 7;
    pub(in crate::native) const R8: u8 = 8;
    pub(in crate::native) const R9: u8 = 9;
    pub(in crate::native) const R10: u8 = 10;
    pub(in crate::native) const R11: u8 = 11;
}

/// Conditions of host jumps, as the low four bits of the opcode have them.
pub(super) mod condition {
    pub(in crate::native) const EQUAL: u8 = 4;
    pub(in crate::native) const NOT_EQUAL: u8 = 5;
    pub(in crate::native) const SIGN: u8 = 8;
}

/// Numbers of arithmetic operations in the encoding: `op` is `opcode = number * 8 + form`.
pub(super) mod alu {
    pub(in crate::native) const ADD: u8 = 0;
    pub(in crate::native) const OR: u8 = 1;
    pub(in crate::native) const AND: u8 = 4;
    pub(in crate::native) const SUB: u8 = 5;
    pub(in crate::native) const XOR: u8 = 6;
    pub(in crate::native) const CMP: u8 = 7;
}

/// Shifts and rotations, as the ModRM byte numbers them.
pub(super) mod shift {
    pub(in crate::native) const ROL: u8 = 0;
    pub(in crate::native) const ROR: u8 = 1;
    pub(in crate::native) const SHL: u8 = 4;
    pub(in crate::native) const SHR: u8 = 5;
    pub(in crate::native) const SAR: u8 = 7;
}

/// A memory operand of translated code: no register needs a SIB byte of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) base: u8,
    /// Added as it is.
    pub(super) index: Option<u8>,
    pub(super) disp: i32,
}

impl At {
    pub(super) fn new(base: u8, disp: usize) -> Self {
        Self {
            base,
            index: None,
            disp: i32::try_from(disp).expect("offsets in our own structures are small"),
        }
    }

    pub(super) fn plain(base: u8) -> Self {
        Self::new(base, 0)
    }

    pub(super) fn indexed(base: u8, index: u8, disp: usize) -> Self {
        Self {
            index: Some(index),
            ..Self::new(base, disp)
        }
    }
}

/// A jump whose target is not known yet: the place of its four bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jump(usize);

/// An address in the executable area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target(pub(super) u64);

/// Replaces the opcode of a conditional jump by one that is always taken.
pub(super) const ALWAYS: [u8; 2] = [0x90, 0xE9];

/// Machine code under construction.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) bytes: Vec<u8>,
    /// Where the first byte will be.
    origin: Target,
}

impl Code {
    pub(super) fn at(origin: Target) -> Self {
        Self {
            bytes: Vec::new(),
            origin,
        }
    }

    /// Where the next byte will be.
    pub(super) fn here(&self) -> Target {
        Target(self.origin.0 + self.bytes.len() as u64)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Prefixes for operands of `size` bytes: `reg` in the ModRM byte's register field, then index, then base.
    fn prefixes(&mut self, size: usize, reg: u8, index: u8, base: u8) {
        if size == 2 {
            self.put(&[0x66]);
        }
        let rex = (u8::from(size == 8) << 3) | (reg >> 3 << 2) | (index >> 3 << 1) | (base >> 3);
        // SIL and DIL need the prefix, too; that it is there for a wider operand does no harm.
        if rex != 0 || (size == 1 && reg >= 4) {
            self.put(&[0x40 | rex]);
        }
    }

    /// An instruction of operand size `size` with a register (or a number that extends the opcode) and memory.
    fn with_memory(&mut self, size: usize, opcode: &[u8], reg: u8, at: At) {
        let index = at.index.unwrap_or(0);
        self.prefixes(size, reg, index, at.base);
        self.put(opcode);
        let reg = (reg & 7) << 3;
        let base = at.base & 7;
        debug_assert!(base != 4, "RSP and R12 would need a SIB byte");
        let small = i8::try_from(at.disp);
        let mode = match small {
            Ok(0) if base != 5 => 0x00,
            Ok(_) => 0x40,
            Err(_) => 0x80,
        };
        match at.index {
            Some(index) => self.put(&[mode | reg | 4, (index & 7) << 3 | base]),
            None => self.put(&[mode | reg | base]),
        }
        match (mode, small) {
            (0x00, _) => {}
            (_, Ok(small)) => self.put(&small.to_le_bytes()),
            _ => self.put(&at.disp.to_le_bytes()),
        }
    }

    /// An instruction of operand size `size` between registers; `rm` is the operand of the ModRM byte's low bits.
    fn with_registers(&mut self, size: usize, opcode: &[u8], reg: u8, rm: u8) {
        self.prefixes(size, reg, 0, rm);
        self.put(opcode);
        self.put(&[0xC0 | (reg & 7) << 3 | (rm & 7)]);
    }

    /// Reads `size` bytes, zero-extended to the whole register.
    pub(super) fn load(&mut self, size: usize, into: u8, at: At) {
        match size {
            1 => self.with_memory(4, &[0x0F, 0xB6], into, at),
            2 => self.with_memory(4, &[0x0F, 0xB7], into, at),
            _ => self.with_memory(size, &[0x8B], into, at),
        }
    }

    /// Reads `size` bytes, sign-extended to the whole register.
    pub(super) fn load_signed(&mut self, size: usize, into: u8, at: At) {
        match size {
            1 => self.with_memory(8, &[0x0F, 0xBE], into, at),
            2 => self.with_memory(8, &[0x0F, 0xBF], into, at),
            4 => self.with_memory(8, &[0x63], into, at),
            _ => self.with_memory(8, &[0x8B], into, at),
        }
    }

    /// Writes the low `size` bytes of a register.
    pub(super) fn store(&mut self, size: usize, from: u8, at: At) {
        let opcode = if size == 1 { 0x88 } else { 0x89 };
        self.with_memory(size, &[opcode], from, at);
    }

    /// Writes a constant of four bytes.
    pub(super) fn store_constant(&mut self, value: u32, at: At) {
        self.with_memory(4, &[0xC7], 0, at);
        self.put(&value.to_le_bytes());
    }

    /// The low `size` bytes of `from`, zero-extended.
    pub(super) fn extend(&mut self, size: usize, into: u8, from: u8) {
        match size {
            1 => {
                debug_assert!(has_low_byte(from));
                self.with_registers(4, &[0x0F, 0xB6], into, from);
            }
            2 => self.with_registers(4, &[0x0F, 0xB7], into, from),
            _ => self.with_registers(size, &[0x8B], into, from),
        }
    }

    /// The low `size` bytes of `from`, sign-extended to eight.
    pub(super) fn extend_signed(&mut self, size: usize, into: u8, from: u8) {
        match size {
            1 => {
                debug_assert!(has_low_byte(from));
                self.with_registers(8, &[0x0F, 0xBE], into, from);
            }
            2 => self.with_registers(8, &[0x0F, 0xBF], into, from),
            4 => self.with_registers(8, &[0x63], into, from),
            _ => self.with_registers(8, &[0x8B], into, from),
        }
    }

    pub(super) fn copy(&mut self, into: u8, from: u8) {
        self.with_registers(8, &[0x8B], into, from);
    }

    /// A constant, in the shortest form.
    pub(super) fn constant(&mut self, into: u8, value: u64) {
        let rex_base = into >> 3;
        if let Ok(small) = u32::try_from(value) {
            if rex_base != 0 {
                self.put(&[0x41]);
            }
            self.put(&[0xB8 | (into & 7)]);
            self.put(&small.to_le_bytes());
        } else if let Ok(small) = i32::try_from(value.cast_signed()) {
            self.put(&[0x48 | rex_base, 0xC7, 0xC0 | (into & 7)]);
            self.put(&small.to_le_bytes());
        } else {
            self.put(&[0x48 | rex_base, 0xB8 | (into & 7)]);
            self.put(&value.to_le_bytes());
        }
    }

    /// `into op= from`, in `size` bytes; those above the size stay, or become zero if it is 4.
    pub(super) fn arithmetic(&mut self, size: usize, number: u8, into: u8, from: u8) {
        let form = if size == 1 { 2 } else { 3 };
        self.with_registers(size, &[number << 3 | form], into, from);
    }

    /// `into op= value`, in `size` of 4 or 8 bytes.
    pub(super) fn arithmetic_constant(&mut self, size: usize, number: u8, into: u8, value: i32) {
        if let Ok(small) = i8::try_from(value) {
            self.with_registers(size, &[0x83], number, into);
            self.put(&small.to_le_bytes());
        } else {
            self.with_registers(size, &[0x81], number, into);
            self.put(&value.to_le_bytes());
        }
    }

    /// `reg op= memory`, in `size` bytes; of CMP only flags remain.
    pub(super) fn arithmetic_memory(&mut self, size: usize, number: u8, reg: u8, at: At) {
        let form = if size == 1 { 2 } else { 3 };
        self.with_memory(size, &[number << 3 | form], reg, at);
    }

    /// Compares `size` of 4 or 8 bytes of memory with the sign-extension of a small constant.
    pub(super) fn compare_memory(&mut self, size: usize, at: At, value: i8) {
        self.with_memory(size, &[0x83], alu::CMP, at);
        self.put(&value.to_le_bytes());
    }

    /// Compares the low `size` bytes of two registers.
    pub(super) fn compare(&mut self, size: usize, left: u8, right: u8) {
        let opcode = if size == 1 { 0x3A } else { 0x3B };
        self.with_registers(size, &[opcode], left, right);
    }

    /// TEST of the low `size` bytes of two registers.
    pub(super) fn test(&mut self, size: usize, left: u8, right: u8) {
        let opcode = if size == 1 { 0x84 } else { 0x85 };
        self.with_registers(size, &[opcode], left, right);
    }

    /// TEST of a byte of memory with a constant.
    pub(super) fn test_byte(&mut self, at: At, bits: u8) {
        self.with_memory(1, &[0xF6], 0, at);
        self.put(&[bits]);
    }

    pub(super) fn not(&mut self, reg: u8) {
        self.with_registers(8, &[0xF7], 2, reg);
    }

    /// Shifts `size` of 4 or 8 bytes by a constant.
    pub(super) fn shift(&mut self, size: usize, which: u8, reg: u8, count: u8) {
        self.with_registers(size, &[0xC1], which, reg);
        self.put(&[count]);
    }

    /// Shifts `size` of 4 or 8 bytes by CL.
    pub(super) fn shift_by_cl(&mut self, size: usize, which: u8, reg: u8) {
        self.with_registers(size, &[0xD3], which, reg);
    }

    pub(super) fn swap_bytes(&mut self, size: usize, reg: u8) {
        self.prefixes(size, 0, 0, reg);
        self.put(&[0x0F, 0xC8 | (reg & 7)]);
    }

    /// `reg *= memory`, in `size` of 4 or 8 bytes.
    pub(super) fn multiply_memory(&mut self, size: usize, reg: u8, at: At) {
        self.with_memory(size, &[0x0F, 0xAF], reg, at);
    }

    /// `into = memory * value`, in `size` of 4 or 8 bytes.
    pub(super) fn multiply_constant(&mut self, size: usize, into: u8, at: At, value: i32) {
        self.with_memory(size, &[0x69], into, at);
        self.put(&value.to_le_bytes());
    }

    /// `RDX:RAX = RAX * memory`, in `size` of 4 or 8 bytes.
    pub(super) fn multiply_wide(&mut self, size: usize, is_signed: bool, at: At) {
        let number = if is_signed { 5 } else { 4 };
        self.with_memory(size, &[0xF7], number, at);
    }

    /// TEST of the low byte of a register with a constant.
    pub(super) fn test_low_byte(&mut self, reg: u8, bits: u8) {
        debug_assert!(has_low_byte(reg));
        self.with_registers(1, &[0xF6], 0, reg);
        self.put(&[bits]);
    }

    /// `size` of 4, 8 or 16 bytes of memory into XMM0; the rest of it becomes zero.
    pub(super) fn load_vector(&mut self, size: usize, at: At) {
        match size {
            // movd, movq, movups
            4 => self.with_memory(2, &[0x0F, 0x6E], 0, at),
            8 => {
                self.put(&[0xF3]);
                self.with_memory(4, &[0x0F, 0x7E], 0, at);
            }
            _ => self.with_memory(4, &[0x0F, 0x10], 0, at),
        }
    }

    /// XMM0 to sixteen bytes of memory.
    pub(super) fn store_vector(&mut self, at: At) {
        self.with_memory(4, &[0x0F, 0x11], 0, at);
    }

    /// `XMM0 ^= memory` at an aligned address.
    pub(super) fn xor_vector(&mut self, at: At) {
        self.with_memory(2, &[0x0F, 0xEF], 0, at);
    }

    pub(super) fn decrement_memory(&mut self, at: At) {
        self.with_memory(8, &[0xFF], 1, at);
    }

    /// `into = base + index << scale + disp`.
    pub(super) fn sum(&mut self, into: u8, base: u8, index: u8, scale: u8, disp: i32) {
        debug_assert!(
            base & 7 != 5 && index & 7 != 4,
            "encodings with other meanings"
        );
        self.prefixes(8, into, index, base);
        let small = i8::try_from(disp);
        let mode = match small {
            Ok(0) => 0x00,
            Ok(_) => 0x40,
            Err(_) => 0x80,
        };
        self.put(&[0x8D, mode | (into & 7) << 3 | 4]);
        self.put(&[scale << 6 | (index & 7) << 3 | (base & 7)]);
        match small {
            Ok(0) => {}
            Ok(small) => self.put(&small.to_le_bytes()),
            Err(_) => self.put(&disp.to_le_bytes()),
        }
    }

    /// `into = base + disp`.
    pub(super) fn offset(&mut self, into: u8, base: u8, disp: i32) {
        let at = At {
            base,
            index: None,
            disp,
        };
        self.with_memory(8, &[0x8D], into, at);
    }

    /// Sets the low byte of a register to whether the condition holds.
    pub(super) fn set_if(&mut self, condition: u8, reg: u8) {
        debug_assert!(has_low_byte(reg));
        self.with_registers(1, &[0x0F, 0x90 | condition], 0, reg);
    }

    /// `into = from` if the condition holds.
    pub(super) fn copy_if(&mut self, condition: u8, into: u8, from: u8) {
        self.with_registers(8, &[0x0F, 0x40 | condition], into, from);
    }

    pub(super) fn jump_if(&mut self, condition: u8) -> Jump {
        self.put(&[0x0F, 0x80 | condition]);
        self.put(&[0; 4]);
        Jump(self.bytes.len() - 4)
    }

    /// A jump's target is here.
    pub(super) fn land(&mut self, jump: Jump) {
        let distance = self.bytes.len() - (jump.0 + 4);
        let distance = i32::try_from(distance).expect("the code of a block is short");
        self.bytes[jump.0..jump.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// The distance to a target in the same area; gives the place of its four bytes.
    fn distance(&mut self, to: Target) -> Target {
        let here = self.here();
        self.put(&distance(here, to));
        here
    }

    /// Gives the place of the jump's distance.
    pub(super) fn jump_if_to(&mut self, condition: u8, to: Target) -> Target {
        self.put(&[0x0F, 0x80 | condition]);
        self.distance(to)
    }

    /// Gives the place of the jump's distance.
    pub(super) fn jump_to(&mut self, to: Target) -> Target {
        self.put(&[0xE9]);
        self.distance(to)
    }

    /// Jumps to where a register points.
    pub(super) fn jump_register(&mut self, reg: u8) {
        self.with_registers(4, &[0xFF], 4, reg);
    }

    /// Jumps to where memory points.
    pub(super) fn jump_memory(&mut self, at: At) {
        self.with_memory(4, &[0xFF], 4, at);
    }
}

/// The four bytes at `at` of a jump to `to`.
pub(super) fn distance(at: Target, to: Target) -> [u8; 4] {
    let distance = to.0.wrapping_sub(at.0 + 4).cast_signed();
    let distance = i32::try_from(distance).expect("the executable area is small");
    distance.to_le_bytes()
}

/// Whether the low byte of a register can be named without a prefix that is there for nothing else.
fn has_low_byte(reg: u8) -> bool {
    !(4..8).contains(&reg)
}

#[cfg(test)]
mod tests {
    use super::host::{R8, R9, R10, RAX, RCX, RDI, RDX, RSI};
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn shown(code: &Code) -> Vec<String> {
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_branch_leading_zeros(false);
        Decoder::with_ip(64, &code.bytes, code.origin.0, DecoderOptions::NONE)
            .iter()
            .map(|instruction| {
                let mut text = String::new();
                formatter.format(&instruction, &mut text);
                text
            })
            .collect()
    }

    #[test]
    fn what_is_assembled_decodes_to_what_was_meant() {
        let mut code = Code::at(Target(0x1000));
        code.load(1, RAX, At::new(RDI, 9));
        code.load(8, R10, At::new(RDI, 120));
        code.load_signed(4, R9, At::new(RDI, 160));
        code.store(2, R9, At::plain(RSI));
        code.store(1, RAX, At::indexed(RDX, R10, 16));
        code.arithmetic_memory(8, alu::CMP, R9, At::indexed(RDX, R10, 8));
        code.sum(RAX, RAX, R9, 3, -16);
        code.sum(RAX, RAX, R9, 1, 0x1000);
        code.sum(R9, RAX, RAX, 0, 0);
        code.offset(R9, RAX, 7);
        code.constant(RSI, 0x1234_5678_9ABC);
        code.constant(R9, u64::MAX);
        code.constant(RAX, 5);
        code.shift(8, shift::SHR, R10, 7);
        code.arithmetic_constant(4, alu::AND, R10, 0x3FE0);
        code.arithmetic(8, alu::SUB, R8, RAX);
        code.test_byte(At::new(RAX, 3), 0x40);
        code.copy_if(condition::SIGN, RAX, R9);
        code.set_if(condition::EQUAL, R9);
        code.decrement_memory(At::new(RDX, 4));
        code.jump_memory(At::plain(RSI));
        code.jump_register(RCX);
        assert_eq!(
            shown(&code),
            [
                "movzx eax,byte ptr [rdi+9]",
                "mov r10,[rdi+78h]",
                "movsxd r9,[rdi+0A0h]",
                "mov [rsi],r9w",
                "mov [rdx+r10+10h],al",
                "cmp r9,[rdx+r10+8]",
                "lea rax,[rax+r9*8-10h]",
                "lea rax,[rax+r9*2+1000h]",
                "lea r9,[rax+rax]",
                "lea r9,[rax+7]",
                "mov rsi,123456789ABCh",
                "mov r9,0FFFFFFFFFFFFFFFFh",
                "mov eax,5",
                "shr r10,7",
                "and r10d,3FE0h",
                "sub r8,rax",
                "test byte ptr [rax+3],40h",
                "cmovs rax,r9",
                "sete r9b",
                "dec qword ptr [rdx+4]",
                "jmp qword ptr [rsi]",
                "jmp rcx",
            ]
        );
    }

    #[test]
    fn products_rotations_and_vectors_decode_to_what_was_meant() {
        let mut code = Code::at(Target(0x1000));
        code.shift(4, shift::ROR, RAX, 6);
        code.shift_by_cl(8, shift::SAR, RAX);
        code.swap_bytes(8, RAX);
        code.multiply_memory(4, RAX, At::new(RDI, 8));
        code.multiply_constant(8, RAX, At::new(RDI, 8), -3);
        code.multiply_wide(8, false, At::new(RDI, 8));
        code.test_low_byte(RAX, 15);
        code.load_vector(4, At::plain(RAX));
        code.load_vector(8, At::plain(RAX));
        code.load_vector(16, At::new(RDI, 224));
        code.store_vector(At::plain(RAX));
        code.xor_vector(At::new(RDI, 224));
        assert_eq!(
            shown(&code),
            [
                "ror eax,6",
                "sar rax,cl",
                "bswap rax",
                "imul eax,[rdi+8]",
                "imul rax,[rdi+8],0FFFFFFFFFFFFFFFDh",
                "mul qword ptr [rdi+8]",
                "test al,0Fh",
                "movd xmm0,[rax]",
                "movq xmm0,[rax]",
                "movups xmm0,[rdi+0E0h]",
                "movups [rax],xmm0",
                "pxor xmm0,[rdi+0E0h]",
            ]
        );
    }

    #[test]
    fn jumps_lead_to_where_they_land() {
        let mut code = Code::at(Target(0x1000));
        let jump = code.jump_if(condition::NOT_EQUAL);
        code.copy(RAX, R9);
        code.land(jump);
        code.not(R10);
        code.jump_if_to(condition::SIGN, Target(0x2000));
        code.jump_to(Target(0x1000));
        assert_eq!(
            shown(&code),
            [
                "jne 1009h",
                "mov rax,r9",
                "not r10",
                "js 2000h",
                "jmp 1000h"
            ]
        );
    }
}
