//! What a paged machine has besides processors and memory.

use crate::cpuid::CpuidResult;

/// CPUID with this number in EAX is the guest's call to its host. It needs no privilege, and elsewhere it does
/// no harm.
pub const HYPERCALL_LEAF: u32 = 0x4F52_4144;

/// Who touches a device, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAccess {
    /// Number of the processor.
    pub cpu: usize,
    /// The time-stamp counter of the machine.
    pub tsc: u64,
}

/// Ports, memory-mapped registers, foreign model-specific registers. After every access but CPUID the engine
/// leaves, so that the machine can look at interrupts and timers before the next instruction.
pub trait Devices {
    /// IN of one, two or four bytes.
    fn port_in(&mut self, at: DeviceAccess, port: u16, bytes: u8) -> u32;

    /// OUT of one, two or four bytes.
    fn port_out(&mut self, at: DeviceAccess, port: u16, value: u32, bytes: u8);

    /// A load of one to eight bytes from a physical address that is not memory.
    fn mmio_read(&mut self, at: DeviceAccess, addr: u64, bytes: u8) -> u64;

    /// A store of one to eight bytes to a physical address that is not memory.
    fn mmio_write(&mut self, at: DeviceAccess, addr: u64, value: u64, bytes: u8);

    /// RDMSR of a register that the processor core does not own; none: #GP.
    fn read_msr(&mut self, at: DeviceAccess, number: u32) -> Option<u64>;

    /// WRMSR of a register that the processor core does not own, and of the APIC base; false: #GP.
    fn write_msr(&mut self, at: DeviceAccess, number: u32, value: u64) -> bool;

    /// CPUID.
    fn cpuid(&mut self, at: DeviceAccess, leaf: u32, subleaf: u32) -> CpuidResult;
}
