//! What an instruction needs of its surroundings.

use crate::cpuid::{CpuidResult, cpuid};
use crate::exit::Fault;

/// How an access is meant; observers and permission checks need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    /// The load of a read-modify-write; needs permission to write.
    UpdateRead {
        atomic: bool,
    },
    /// The store of a read-modify-write.
    UpdateWrite {
        atomic: bool,
    },
    /// A read that only finds out whether the place can be written; it is not observed.
    Probe,
}

/// Memory and environment as one instruction sees them. One step makes at most five accesses besides probes.
pub(crate) trait Bus {
    /// Loads at most 512 bytes from a linear address, in one piece: it fails before any effect.
    fn read(&mut self, addr: u64, into: &mut [u8], kind: AccessKind) -> Result<(), Fault>;

    /// Stores at most 512 bytes to a linear address, in one piece: it fails before any effect.
    fn write(&mut self, addr: u64, bytes: &[u8], kind: AccessKind) -> Result<(), Fault>;

    /// The time-stamp counter, before the processor's own offset.
    fn tsc(&mut self) -> u64;

    /// Ports, foreign model-specific registers and address translation; none in a user-only world.
    fn system(&mut self) -> Option<&mut dyn SystemBus>;
}

/// What only system instructions need.
pub trait SystemBus {
    /// Loads from a linear address with supervisor privilege, whatever the current level: descriptor tables, TSS.
    fn read_supervisor(&mut self, addr: u64, into: &mut [u8]) -> Result<(), Fault>;

    /// Stores to a linear address with supervisor privilege, whatever the current level: interrupt frames.
    fn write_supervisor(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// IN of one, two or four bytes.
    fn port_in(&mut self, port: u16, bytes: u8) -> u32;

    /// OUT of one, two or four bytes.
    fn port_out(&mut self, port: u16, value: u32, bytes: u8);

    /// RDMSR of a register that the processor core does not own (APIC, MTRR, ...); none: #GP.
    fn read_msr(&mut self, number: u32) -> Option<u64>;

    /// WRMSR of a register that the processor core does not own; false: #GP.
    fn write_msr(&mut self, number: u32, value: u64) -> bool;

    /// CPUID.
    fn cpuid(&mut self, leaf: u32, subleaf: u32, apic_id: u8) -> CpuidResult {
        cpuid(leaf, subleaf, apic_id)
    }

    /// INVLPG.
    fn flush_page(&mut self, addr: u64);

    /// A control register that governs translation has changed; global pages stay if `keep_global`.
    fn flush_translations(&mut self, keep_global: bool);
}
