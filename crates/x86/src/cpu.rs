//! The state of one context's processor.

use crate::flags::{Flags, rflags};
use crate::system::SystemState;

/// Numbers of the general registers, as the encoding has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reg {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

/// Slots of the register file beyond the sixteen general registers; effective addresses are a sum of slots.
pub(crate) mod slot {
    /// Always zero: stands for an absent base or index.
    pub(crate) const ZERO: u8 = 16;
    pub(crate) const FS_BASE: u8 = 17;
    pub(crate) const GS_BASE: u8 = 18;
    pub(crate) const COUNT: usize = 20;
}

/// The x87 part of the FXSAVE image (SDM vol. 1, 10.5.1); also holds the MMX registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct FxState {
    pub fcw: u16,
    pub fsw: u16,
    /// Abridged tag word: bit n set if physical register n is not empty.
    pub ftw: u8,
    pub reserved: u8,
    /// Last opcode; we always report zero.
    pub fop: u16,
    /// Last instruction and data pointers; we always report zero, since vendors differ.
    pub fip: u64,
    pub fdp: u64,
    pub mxcsr: u32,
    pub mxcsr_mask: u32,
    /// ST0 to ST7 (or MM0 to MM7), ten bytes each in sixteen.
    pub st: [[u8; 16]; 8],
}

impl Default for FxState {
    fn default() -> Self {
        Self {
            fcw: 0x37F,
            fsw: 0,
            ftw: 0,
            reserved: 0,
            fop: 0,
            fip: 0,
            fdp: 0,
            mxcsr: 0x1F80,
            mxcsr_mask: 0xFFFF,
            st: [[0; 16]; 8],
        }
    }
}

/// Everything a program or kernel can see of its processor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Cpu {
    /// General registers, then the slots of [`slot`].
    pub(crate) regs: [u64; slot::COUNT],
    pub flags: Flags,
    /// RFLAGS without the six arithmetic flags (DF, IF, TF, AC, ID, ...).
    pub system_flags: u64,
    pub rip: u64,
    /// XMM0 to XMM15.
    pub xmm: [[u8; 16]; 16],
    /// x87, MMX and MXCSR.
    pub fx: FxState,
    pub system: Box<SystemState>,
}

impl Default for Cpu {
    /// A 64-bit user-mode processor with everything zero and the floating-point units in their reset state.
    fn default() -> Self {
        Self {
            regs: [0; slot::COUNT],
            flags: Flags::default(),
            system_flags: rflags::FIXED | rflags::IF,
            rip: 0,
            xmm: [[0; 16]; 16],
            fx: FxState::default(),
            system: Box::new(SystemState::user()),
        }
    }
}

impl Cpu {
    /// A general register.
    pub fn reg(&self, reg: Reg) -> u64 {
        self.regs[reg as usize]
    }

    /// Sets a general register.
    pub fn set_reg(&mut self, reg: Reg, value: u64) {
        self.regs[reg as usize] = value;
    }

    /// The sixteen general registers by number.
    pub fn general(&self) -> &[u64] {
        &self.regs[..16]
    }

    pub fn fs_base(&self) -> u64 {
        self.regs[usize::from(slot::FS_BASE)]
    }

    pub fn set_fs_base(&mut self, base: u64) {
        self.regs[usize::from(slot::FS_BASE)] = base;
    }

    pub fn gs_base(&self) -> u64 {
        self.regs[usize::from(slot::GS_BASE)]
    }

    pub fn set_gs_base(&mut self, base: u64) {
        self.regs[usize::from(slot::GS_BASE)] = base;
    }

    /// The whole of RFLAGS.
    pub fn rflags(&self) -> u64 {
        self.system_flags | self.flags.to_rflags()
    }

    /// Sets the whole of RFLAGS; bit 1 is always set.
    pub fn set_rflags(&mut self, bits: u64) {
        self.flags = Flags::from_rflags(bits);
        self.system_flags = (bits & !rflags::ARITHMETIC) | rflags::FIXED;
    }
}
