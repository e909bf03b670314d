//! All devices behind one face: the machine asks it for every access that is not RAM.

use raddle_stdx::width::{low_u8, low_u32, to_u64, to_usize};
use raddle_x86::CpuidResult;

use super::cmos::{CMOS_DATA, CMOS_INDEX, Cmos};
use super::ioapic::{IOAPIC_BASE, IOAPIC_SIZE, IoApic, Message};
use super::lapic::{Delivery, Effect, LAPIC_BASE, LAPIC_SIZE, LocalApic, Target};
use super::uart::{UART_PIN, UART_PORT, Uart};
use crate::cpuid;
use crate::msr;
use crate::wire::{Damaged, Reader, Wire};

/// Keyboard controller command port: 0xFE pulses the reset line.
const KEYBOARD_COMMAND: u16 = 0x64;
/// Reset control register.
const RESET_CONTROL: u16 = 0xCF9;

/// What the machine, not a device, has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Put the processor into wait-for-startup; its interrupt controller is already reset.
    Init { cpu: usize },
    /// Start the processor in real mode at the beginning of this page, if it waits for it.
    Startup { cpu: usize, page: u8 },
    /// Interrupt the processor with vector 2, whatever its interrupt flag.
    Nmi { cpu: usize },
    /// The guest asked for a reset of the machine.
    Reset,
}

/// All devices of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bus {
    apics: Vec<LocalApic>,
    io: IoApic,
    uart: Uart,
    cmos: Cmos,
    requests: Vec<Request>,
}

impl Bus {
    pub fn new(cpus: usize) -> Self {
        Self {
            apics: (0..cpus)
                .map(|cpu| LocalApic::new(low_u8(to_u64(cpu))))
                .collect(),
            io: IoApic::default(),
            uart: Uart::default(),
            cmos: Cmos::default(),
            requests: Vec::new(),
        }
    }

    /// True for physical addresses that a device answers.
    pub fn is_device(addr: u64) -> bool {
        (LAPIC_BASE..LAPIC_BASE + LAPIC_SIZE).contains(&addr)
            || (IOAPIC_BASE..IOAPIC_BASE + IOAPIC_SIZE).contains(&addr)
    }

    /// A load of `size` bytes from a physical address that is not RAM; all ones if nothing answers.
    pub fn mmio_read(&mut self, cpu: usize, addr: u64, size: u8, now: u64) -> u64 {
        let register = if (LAPIC_BASE..LAPIC_BASE + LAPIC_SIZE).contains(&addr) {
            self.advance(now);
            self.apics[cpu].read(addr - LAPIC_BASE, now)
        } else if (IOAPIC_BASE..IOAPIC_BASE + IOAPIC_SIZE).contains(&addr) {
            self.io.read(addr - IOAPIC_BASE)
        } else {
            return u64::MAX >> (64 - 8 * u32::from(size.clamp(1, 8)));
        };
        u64::from(register) >> (8 * (addr & 3))
    }

    /// A store of `size` bytes to a physical address that is not RAM.
    pub fn mmio_write(&mut self, cpu: usize, addr: u64, _size: u8, value: u64, now: u64) {
        let register = low_u32(value);
        if (LAPIC_BASE..LAPIC_BASE + LAPIC_SIZE).contains(&addr) {
            match self.apics[cpu].write(addr - LAPIC_BASE, register, now) {
                Effect::None => {}
                Effect::Send(ipi) => {
                    let sender = self.apics[cpu].id();
                    self.deliver(ipi.target, ipi.delivery, ipi.vector, false, Some(sender));
                }
                Effect::LevelEnded(vector) => {
                    for message in self.io.end_of_interrupt(vector) {
                        self.deliver_message(message);
                    }
                }
            }
        } else if (IOAPIC_BASE..IOAPIC_BASE + IOAPIC_SIZE).contains(&addr)
            && let Some(message) = self.io.write(addr - IOAPIC_BASE, register)
        {
            self.deliver_message(message);
        }
    }

    /// IN of `size` bytes; ports without a device read as all ones.
    pub fn port_in(&mut self, _cpu: usize, port: u16, size: u8, _now: u64) -> u32 {
        let byte = match port {
            UART_PORT..=0x3FF if size == 1 => {
                let value = self.uart.read(port - UART_PORT);
                self.update_uart_line();
                value
            }
            CMOS_DATA if size == 1 => self.cmos.read(),
            _ => return u32::MAX >> (32 - 8 * u32::from(size.clamp(1, 4))),
        };
        u32::from(byte)
    }

    /// OUT of `size` bytes.
    pub fn port_out(&mut self, _cpu: usize, port: u16, size: u8, value: u32, _now: u64) {
        let [byte, ..] = value.to_le_bytes();
        match port {
            UART_PORT..=0x3FF if size == 1 => {
                if port == UART_PORT {
                    // A new character takes the interrupt back before it raises it again: an edge.
                    self.set_uart_line(false);
                }
                self.uart.write(port - UART_PORT, byte);
                self.update_uart_line();
            }
            CMOS_INDEX => self.cmos.select(byte),
            KEYBOARD_COMMAND if byte == 0xFE => self.requests.push(Request::Reset),
            RESET_CONTROL if byte & 0x04 != 0 => self.requests.push(Request::Reset),
            _ => {}
        }
    }

    fn update_uart_line(&mut self) {
        let line = self.uart.line();
        self.set_uart_line(line);
    }

    fn set_uart_line(&mut self, asserted: bool) {
        if let Some(message) = self.io.set_line(UART_PIN, asserted) {
            self.deliver_message(message);
        }
    }

    /// RDMSR of a register that the processor core does not own; none means a protection fault.
    pub fn read_msr(&mut self, cpu: usize, number: u32, _now: u64) -> Option<u64> {
        match number {
            msr::TSC_DEADLINE => Some(self.apics[cpu].deadline()),
            _ => msr::read(number),
        }
    }

    /// WRMSR of a register that the processor core does not own; false means a protection fault.
    pub fn write_msr(&mut self, cpu: usize, number: u32, value: u64, now: u64) -> bool {
        match number {
            msr::TSC_DEADLINE => {
                self.apics[cpu].set_deadline(value, now);
                true
            }
            // The controllers do not move and are never switched off.
            msr::APIC_BASE => true,
            _ => msr::is_writable(number),
        }
    }

    /// CPUID as this processor answers it.
    pub fn cpuid(&self, cpu: usize, leaf: u32, subleaf: u32) -> CpuidResult {
        cpuid::cpuid(leaf, subleaf, self.apics[cpu].id())
    }

    /// CR8.
    pub fn task_priority(&self, cpu: usize) -> u8 {
        self.apics[cpu].task_priority_class()
    }

    pub fn set_task_priority(&mut self, cpu: usize, class: u8) {
        self.apics[cpu].set_task_priority_class(class & 0xF);
    }

    /// The vector that would interrupt the processor now if its interrupt flag is set.
    pub fn pending_interrupt(&self, cpu: usize) -> Option<u8> {
        self.apics[cpu].pending()
    }

    /// The processor takes its pending interrupt.
    pub fn acknowledge(&mut self, cpu: usize) -> Option<u8> {
        self.apics[cpu].acknowledge()
    }

    /// The local controller, for schedulers and reports that ask what has arrived.
    pub fn local_apic(&self, cpu: usize) -> &LocalApic {
        &self.apics[cpu]
    }

    /// The time at which the next timer fires, on whatever processor.
    pub fn next_event(&self) -> Option<u64> {
        self.apics.iter().filter_map(LocalApic::next_event).min()
    }

    /// The time at which this processor's timer fires.
    pub fn next_event_of(&self, cpu: usize) -> Option<u64> {
        self.apics[cpu].next_event()
    }

    /// Fires all timers whose time has come.
    pub fn advance(&mut self, now: u64) {
        for apic in &mut self.apics {
            apic.advance(now);
        }
    }

    /// What the machine has to do since the last call, in order.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Console output since the last call.
    pub fn take_console(&mut self) -> Vec<u8> {
        self.uart.take_output()
    }

    /// Whether the console output since the last [`Self::take_console`] ends with a line.
    pub fn ends_a_line(&self) -> bool {
        self.uart.ends_a_line()
    }

    fn deliver_message(&mut self, message: Message) {
        self.deliver(
            message.target,
            message.delivery,
            message.vector,
            message.is_level,
            None,
        );
    }

    fn deliver(
        &mut self,
        target: Target,
        delivery: Delivery,
        vector: u8,
        is_level: bool,
        sender: Option<u8>,
    ) {
        let targets: Vec<usize> = (0..self.apics.len())
            .filter(|cpu| self.apics[*cpu].matches(target, sender))
            .collect();
        // Which processor takes a lowest-priority message is up to the hardware: the first one here.
        let count = if delivery == Delivery::LowestPriority {
            1
        } else {
            targets.len()
        };
        for cpu in targets.into_iter().take(count) {
            match delivery {
                Delivery::Fixed | Delivery::LowestPriority => {
                    self.apics[cpu].accept(vector, is_level);
                }
                Delivery::Nmi => self.requests.push(Request::Nmi { cpu }),
                Delivery::Init => {
                    self.apics[cpu].reset();
                    self.requests.push(Request::Init { cpu });
                }
                Delivery::Startup => self.requests.push(Request::Startup { cpu, page: vector }),
                Delivery::Other => {}
            }
        }
    }

    /// Number of processors.
    pub fn cpus(&self) -> usize {
        self.apics.len()
    }

    /// The processor whose controller has this identity.
    pub fn cpu_of(&self, apic_id: u64) -> Option<usize> {
        let cpu = to_usize(apic_id);
        (cpu < self.apics.len()).then_some(cpu)
    }
}

/// Requests to the machine are served before anybody can save it.
impl Wire for Bus {
    fn store(&self, to: &mut Vec<u8>) {
        self.apics.store(to);
        self.io.store(to);
        self.uart.store(to);
        self.cmos.store(to);
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            apics: Wire::fetch(from)?,
            io: Wire::fetch(from)?,
            uart: Wire::fetch(from)?,
            cmos: Wire::fetch(from)?,
            requests: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(cpus: usize) -> Bus {
        let mut bus = Bus::new(cpus);
        for cpu in 0..cpus {
            bus.mmio_write(cpu, LAPIC_BASE + 0xF0, 4, 0x1FF, 0);
        }
        bus
    }

    #[test]
    fn init_and_startup_are_requests_to_the_machine() {
        let mut bus = bus(2);
        bus.mmio_write(0, LAPIC_BASE + 0x310, 4, 1 << 24, 0);
        bus.mmio_write(0, LAPIC_BASE + 0x300, 4, 0xC500, 0);
        bus.mmio_write(0, LAPIC_BASE + 0x300, 4, 0x0698, 0);
        assert_eq!(
            bus.take_requests(),
            [
                Request::Init { cpu: 1 },
                Request::Startup { cpu: 1, page: 0x98 }
            ]
        );
        assert_eq!(bus.take_requests(), []);
    }

    #[test]
    fn a_fixed_message_arrives_only_at_its_target() {
        let mut bus = bus(3);
        bus.mmio_write(0, LAPIC_BASE + 0x310, 4, 2 << 24, 0);
        bus.mmio_write(0, LAPIC_BASE + 0x300, 4, 0xFD, 0);
        let pending: Vec<_> = (0..3).map(|cpu| bus.pending_interrupt(cpu)).collect();
        assert_eq!(pending, [None, None, Some(0xFD)]);
        assert_eq!(bus.acknowledge(2), Some(0xFD));
        assert_eq!(bus.pending_interrupt(2), None);
    }

    #[test]
    fn the_serial_port_interrupts_through_the_io_controller() {
        let mut bus = bus(1);
        bus.mmio_write(0, IOAPIC_BASE, 4, 0x18, 0);
        bus.mmio_write(0, IOAPIC_BASE + 0x10, 4, 0x34, 0);
        bus.port_out(0, UART_PORT + 4, 1, 0x08, 0);
        bus.port_out(0, UART_PORT + 1, 1, 0x02, 0);
        assert_eq!(bus.acknowledge(0), Some(0x34));
        bus.port_out(0, UART_PORT, 1, u32::from(b'a'), 0);
        bus.mmio_write(0, LAPIC_BASE + 0xB0, 4, 0, 0);
        assert_eq!(bus.acknowledge(0), Some(0x34), "a character is a new edge");
        assert_eq!(bus.take_console(), b"a");
    }

    #[test]
    fn nobody_answers_as_all_ones() {
        let mut bus = bus(1);
        assert_eq!(bus.port_in(0, 0xCFC, 4, 0), u32::MAX);
        assert_eq!(bus.port_in(0, 0xCFC, 1, 0), 0xFF);
        assert_eq!(bus.mmio_read(0, 0xFED0_0000, 4, 0), 0xFFFF_FFFF);
    }

    #[test]
    fn the_earliest_timer_is_the_next_event() {
        let mut bus = bus(2);
        assert_eq!(bus.next_event(), None);
        for (cpu, deadline) in [(0, 900), (1, 700)] {
            bus.mmio_write(cpu, LAPIC_BASE + 0x320, 4, 2 << 17 | 0xEC, 0);
            assert!(bus.write_msr(cpu, msr::TSC_DEADLINE, deadline, 10));
        }
        assert_eq!(bus.next_event(), Some(700));
        bus.advance(700);
        assert_eq!(bus.pending_interrupt(1), Some(0xEC));
        assert_eq!(bus.pending_interrupt(0), None);
        assert_eq!(bus.next_event(), Some(900));
    }

    #[test]
    fn a_reset_is_a_request() {
        let mut bus = bus(1);
        bus.port_out(0, KEYBOARD_COMMAND, 1, 0xFE, 0);
        assert_eq!(bus.take_requests(), [Request::Reset]);
    }
}
