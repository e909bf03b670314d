//! What goes in and what comes out.

use super::layout::{DATA, WINDOW_BYTES, WINDOWS};
use crate::cpu::{Cpu, FxState, Reg};

/// One instruction, perhaps with a conditional branch behind it, or a whole program; and everything they can see.
#[derive(Debug, Clone)]
pub struct Case {
    /// Address of the code: [`super::CODE`] or [`super::PROGRAM`].
    pub entry: u64,
    pub code: Vec<u8>,
    /// General registers as the encoding numbers them.
    pub regs: [u64; 16],
    pub rflags: u64,
    pub xmm: [[u8; 16]; 16],
    pub fx: FxState,
    /// Contents of the three windows.
    pub memory: Box<[[u8; WINDOW_BYTES]; 3]>,
    /// False if the instruction can neither read nor write XMM, x87 or MXCSR.
    pub uses_vectors: bool,
}

/// How an instruction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The next instruction is here.
    At(u64),
    /// Exception vector; address and write bit of a page fault.
    Fault {
        vector: u8,
        addr: u64,
        is_write: bool,
    },
    /// The subject does not implement it.
    Unsupported,
}

/// The state after an instruction.
#[derive(Debug, Clone)]
pub struct CaseResult {
    pub regs: [u64; 16],
    pub rflags: u64,
    pub xmm: [[u8; 16]; 16],
    pub fx: FxState,
    pub memory: Box<[[u8; WINDOW_BYTES]; 3]>,
    pub ending: Ending,
}

impl Case {
    /// The address behind the code.
    pub fn end(&self) -> u64 {
        self.entry + self.code.len() as u64
    }

    /// Addresses and contents of the windows.
    pub fn windows(&self) -> impl Iterator<Item = (u64, &[u8])> {
        WINDOWS
            .iter()
            .zip(self.memory.iter())
            .map(|(offset, bytes)| (DATA + *offset as u64, &bytes[..]))
    }

    /// Puts the registers into a processor.
    pub fn load(&self, cpu: &mut Cpu) {
        cpu.regs[..16].copy_from_slice(&self.regs);
        cpu.set_rflags(self.rflags);
        cpu.rip = self.entry;
        if self.uses_vectors {
            cpu.xmm = self.xmm;
            cpu.fx = self.fx;
        }
    }

    /// Writes `bytes` into the windows at a data address; what is outside is dropped.
    pub(super) fn patch(&mut self, addr: u64, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            let at = addr.wrapping_add(index as u64).wrapping_sub(DATA);
            for (offset, window) in WINDOWS.iter().zip(self.memory.iter_mut()) {
                let inside = at.wrapping_sub(*offset as u64);
                if inside < WINDOW_BYTES as u64 {
                    window[usize::try_from(inside).unwrap_or(0)] = *byte;
                }
            }
        }
    }

    /// A register by name.
    pub(super) fn set(&mut self, reg: Reg, value: u64) {
        self.regs[reg as usize] = value;
    }

    pub(super) fn get(&self, reg: Reg) -> u64 {
        self.regs[reg as usize]
    }
}

impl CaseResult {
    /// The registers of a processor.
    pub fn store(&mut self, cpu: &Cpu, uses_vectors: bool) {
        self.regs.copy_from_slice(cpu.general());
        self.rflags = cpu.rflags();
        if uses_vectors {
            self.xmm = cpu.xmm;
            self.fx = cpu.fx;
        }
    }

    /// A result to be filled in.
    pub fn empty() -> Self {
        Self {
            regs: [0; 16],
            rflags: 0,
            xmm: [[0; 16]; 16],
            fx: FxState::default(),
            memory: Box::new([[0; WINDOW_BYTES]; 3]),
            ending: Ending::Unsupported,
        }
    }
}
