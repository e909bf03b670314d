//! x86-64 as gdb sees it: which registers there are and in which order they travel.

use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, RegId, Registers};
use raddle_linux::Machine;

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

/// Registers on their way to gdb.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wire(pub(super) Option<Machine>);

/// gdb's order of the general registers, as indices of ours (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, ..).
const ORDER: [usize; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
/// Code and stack selectors of 64-bit Linux programs; the others are zero.
const SELECTORS: [u32; 6] = [0x33, 0x2B, 0, 0, 0, 0];
/// Eight registers of ten bytes and eight control words of four, which are not shown.
const X87_BYTES: usize = 8 * 10 + 8 * 4;

impl Registers for Wire {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0.as_ref().map_or(0, |machine| machine.rip)
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let Some(machine) = &self.0 else { return };
        let mut write = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        for index in ORDER {
            write(&machine.general[index].to_le_bytes());
        }
        write(&machine.rip.to_le_bytes());
        write(&machine.rflags.to_le_bytes()[..4]);
        for selector in SELECTORS {
            write(&selector.to_le_bytes());
        }
        write(&[0; X87_BYTES]);
        for register in &machine.xmm {
            write(register);
        }
        write(&machine.mxcsr.to_le_bytes());
        write(&machine.fs_base.to_le_bytes());
        write(&machine.gs_base.to_le_bytes());
    }

    /// A recording cannot be changed.
    fn gdb_deserialize(&mut self, _: &[u8]) -> Result<(), ()> {
        Err(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_travel_in_the_order_of_the_description() {
        let mut machine = Machine {
            general: [0; 16],
            rip: 0x1122,
            rflags: 0x246,
            fs_base: 7,
            gs_base: 0,
            xmm: [[0; 16]; 16],
            mxcsr: 0x1F80,
        };
        machine.general[4] = 0x5555; // RSP
        let mut bytes = Vec::new();
        Wire(Some(machine)).gdb_serialize(|byte| bytes.push(byte.unwrap_or(0)));
        assert_eq!(bytes.len(), 16 * 8 + 8 + 4 + 24 + X87_BYTES + 256 + 4 + 16);
        assert_eq!(&bytes[7 * 8..7 * 8 + 2], &[0x55, 0x55]);
        assert_eq!(&bytes[128..130], &[0x22, 0x11]);
        let described = include_str!("target.xml");
        assert_eq!(described.matches("<reg ").count(), 16 + 2 + 6 + 16 + 17 + 2);
    }
}
