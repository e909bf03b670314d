//! Ports, model-specific registers and privileged memory, as the generic interpreter reaches them.
#![expect(unsafe_code, reason = "follows the pointer to the live machine")]

use super::memory;
use super::{Request, SystemRun};
use crate::bus::RunBus;
use crate::cpuid::CpuidResult;
use crate::exit::Fault;
use crate::generic::SystemBus;

impl RunBus<'_> {
    fn machine(&mut self) -> &mut SystemRun {
        debug_assert!(!self.run.system.is_null(), "the run is on a paged machine");
        // SAFETY: only runs on a paged machine are used as a system bus; the pointer is valid during the run.
        let system = unsafe { &mut *self.run.system };
        system.now = self.tsc;
        system
    }
}

impl SystemBus for RunBus<'_> {
    fn read_supervisor(&mut self, addr: u64, into: &mut [u8]) -> Result<(), Fault> {
        memory::read_supervisor(self.run, addr, into)
    }

    fn write_supervisor(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        memory::write_supervisor(self.run, addr, bytes)
    }

    fn port_in(&mut self, port: u16, bytes: u8) -> u32 {
        let machine = self.machine();
        machine.request.device = true;
        let at = machine.access();
        // SAFETY: a bus exists only during a run, which has no other reference to the devices.
        let devices = unsafe { machine.devices() };
        devices.port_in(at, port, bytes)
    }

    fn port_out(&mut self, port: u16, value: u32, bytes: u8) {
        let machine = self.machine();
        machine.request.device = true;
        let at = machine.access();
        // SAFETY: a bus exists only during a run, which has no other reference to the devices.
        let devices = unsafe { machine.devices() };
        devices.port_out(at, port, value, bytes);
    }

    fn read_msr(&mut self, number: u32) -> Option<u64> {
        let machine = self.machine();
        machine.request.device = true;
        let at = machine.access();
        // SAFETY: a bus exists only during a run, which has no other reference to the devices.
        let devices = unsafe { machine.devices() };
        devices.read_msr(at, number)
    }

    fn write_msr(&mut self, number: u32, value: u64) -> bool {
        let machine = self.machine();
        machine.request.device = true;
        let at = machine.access();
        // SAFETY: a bus exists only during a run, which has no other reference to the devices.
        let devices = unsafe { machine.devices() };
        devices.write_msr(at, number, value)
    }

    fn cpuid(&mut self, leaf: u32, subleaf: u32, _apic_id: u8) -> CpuidResult {
        let machine = self.machine();
        let at = machine.access();
        // SAFETY: a bus exists only during a run, which has no other reference to the devices.
        let devices = unsafe { machine.devices() };
        devices.cpuid(at, leaf, subleaf)
    }

    fn flush_page(&mut self, addr: u64) {
        self.machine().request.page = Some(addr);
    }

    fn flush_translations(&mut self, keep_global: bool) {
        let machine = self.machine();
        machine.request = Request {
            flush: true,
            flush_global: machine.request.flush_global || !keep_global,
            ..machine.request
        };
    }
}
