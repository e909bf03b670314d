//! The devices as the engine asks for them.

use raddle_x86::{CpuidResult, DeviceAccess, Devices};

use crate::devices::Bus;

impl Devices for Bus {
    fn port_in(&mut self, at: DeviceAccess, port: u16, bytes: u8) -> u32 {
        Self::port_in(self, at.cpu, port, bytes, at.tsc)
    }

    fn port_out(&mut self, at: DeviceAccess, port: u16, value: u32, bytes: u8) {
        Self::port_out(self, at.cpu, port, bytes, value, at.tsc);
    }

    fn mmio_read(&mut self, at: DeviceAccess, addr: u64, bytes: u8) -> u64 {
        Self::mmio_read(self, at.cpu, addr, bytes, at.tsc)
    }

    fn mmio_write(&mut self, at: DeviceAccess, addr: u64, value: u64, bytes: u8) {
        Self::mmio_write(self, at.cpu, addr, bytes, value, at.tsc);
    }

    fn read_msr(&mut self, at: DeviceAccess, number: u32) -> Option<u64> {
        Self::read_msr(self, at.cpu, number, at.tsc)
    }

    fn write_msr(&mut self, at: DeviceAccess, number: u32, value: u64) -> bool {
        Self::write_msr(self, at.cpu, number, value, at.tsc)
    }

    fn cpuid(&mut self, at: DeviceAccess, leaf: u32, subleaf: u32) -> CpuidResult {
        Self::cpuid(self, at.cpu, leaf, subleaf)
    }
}
