//! x86-64 as gdb sees it: which registers there are and in which order they travel.

use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, RegId, Registers};
use raddle_x86::{Cpu, FxState, Reg};

/// The architecture, with the bases of FS and GS, which thread-local variables need.
#[derive(Debug)]
pub(super) enum X86_64 {}

impl Arch for X86_64 {
    type Usize = u64;
    type Registers = Wire;
    type BreakpointKind = usize;
    type RegId = NoRegister;

    fn target_description_xml() -> Option<&'static str> {
        Some(include_str!("target.xml"))
    }
}

/// Single registers are not asked for.
#[derive(Debug)]
pub(super) enum NoRegister {}

impl RegId for NoRegister {
    fn from_raw_id(_: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        None
    }
}

/// Registers on their way to gdb; none of a thread that does not live at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wire(pub(super) Option<Cpu>);

/// gdb's order of the general registers.
const ORDER: [Reg; 16] = [
    Reg::Rax,
    Reg::Rbx,
    Reg::Rcx,
    Reg::Rdx,
    Reg::Rsi,
    Reg::Rdi,
    Reg::Rbp,
    Reg::Rsp,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];
/// gdb's order of the segment registers (CS, SS, DS, ES, FS, GS), as numbers of the encoding.
const SEGMENTS: [usize; 6] = [1, 2, 3, 0, 4, 5];
/// Bytes of an x87 register.
const LONG_DOUBLE: usize = 10;
/// Eight registers and eight control words.
const X87_BYTES: usize = 8 * LONG_DOUBLE + 8 * 4;
/// The register of Linux that says in which system call a thread is. Without it, gdb takes no target for Linux and looks
/// for no libraries; that there is no call keeps it from starting one again.
const NO_CALL: i64 = -1;

/// All of them.
const BYTES: usize = 16 * 8 + 8 + 4 + 6 * 4 + X87_BYTES + 16 * 16 + 4 + 2 * 8 + 8;

impl Registers for Wire {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0.as_ref().map_or(0, |cpu| cpu.rip)
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let Some(cpu) = &self.0 else {
            (0..BYTES).for_each(|_| write_byte(None));
            return;
        };
        let mut write = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        for register in ORDER {
            write(&cpu.reg(register).to_le_bytes());
        }
        write(&cpu.rip.to_le_bytes());
        write(&cpu.rflags().to_le_bytes()[..4]);
        for segment in SEGMENTS {
            let selector = cpu.system.segments[segment].selector;
            write(&u32::from(selector).to_le_bytes());
        }
        for register in &cpu.fx.st {
            write(&register[..LONG_DOUBLE]);
        }
        for word in x87_words(&cpu.fx) {
            write(&u32::from(word).to_le_bytes());
        }
        for register in &cpu.xmm {
            write(register);
        }
        write(&cpu.fx.mxcsr.to_le_bytes());
        write(&cpu.fs_base().to_le_bytes());
        write(&cpu.gs_base().to_le_bytes());
        write(&NO_CALL.to_le_bytes());
    }

    /// A recording cannot be changed.
    fn gdb_deserialize(&mut self, _: &[u8]) -> Result<(), ()> {
        Err(())
    }
}

/// Control, status and tags; then the opcode and the pointers of the last instruction, which the processor of raddle
/// does not keep.
fn x87_words(fx: &FxState) -> [u16; 8] {
    [fx.fcw, fx.fsw, fx.full_tags(), 0, 0, 0, 0, fx.fop]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_travel_in_the_order_of_the_description() {
        let mut cpu = Cpu::default();
        cpu.rip = 0x1122;
        cpu.set_reg(Reg::Rsp, 0x5555);
        cpu.set_fs_base(7);
        let mut bytes = Vec::new();
        Wire(Some(cpu)).gdb_serialize(|byte| bytes.push(byte.unwrap_or(0)));
        assert_eq!(bytes.len(), BYTES);
        let mut unknown = 0;
        Wire(None).gdb_serialize(|byte| unknown += usize::from(byte.is_none()));
        assert_eq!(unknown, BYTES);
        assert_eq!(&bytes[7 * 8..7 * 8 + 2], &[0x55, 0x55]);
        assert_eq!(&bytes[128..130], &[0x22, 0x11]);
        // CS, SS and DS of a program.
        assert_eq!(
            &bytes[140..152],
            &[0x33, 0, 0, 0, 0x2B, 0, 0, 0, 0, 0, 0, 0]
        );
        let bases = bytes.len() - 24;
        assert_eq!(bytes[bases], 7);
        let described = include_str!("target.xml");
        assert_eq!(
            described.matches("<reg ").count(),
            16 + 2 + 6 + 16 + 17 + 2 + 1
        );
    }
}
