//! The I/O interrupt controller: 24 pins with a redirection entry each (82093AA).

use super::lapic::{Delivery, Target};
use crate::wire::wire_struct;

/// Where it is mapped.
pub const IOAPIC_BASE: u64 = 0xFEC0_0000;
pub(super) const IOAPIC_SIZE: u64 = 0x1000;

const PINS: usize = 24;
const VERSION: u32 = 0x0017_0011;
const MASKED: u64 = 1 << 16;
const LEVEL: u64 = 1 << 15;
const REMOTE_IRR: u64 = 1 << 14;
const LOGICAL: u64 = 1 << 11;
/// Bits that software can write: all but delivery status, remote IRR and the reserved ones.
const WRITABLE: u64 = 0xFF00_0000_0001_AFFF;

/// An interrupt message on its way to the local controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub target: Target,
    pub delivery: Delivery,
    pub vector: u8,
    pub is_level: bool,
}

/// State of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IoApic {
    id: u32,
    select: u8,
    entries: [u64; PINS],
    lines: [bool; PINS],
}

impl Default for IoApic {
    fn default() -> Self {
        Self {
            id: 0,
            select: 0,
            entries: [MASKED; PINS],
            lines: [false; PINS],
        }
    }
}

impl IoApic {
    pub(super) fn read(&self, offset: u64) -> u32 {
        match offset {
            0x00 => u32::from(self.select),
            0x10 => self.read_selected(),
            _ => 0,
        }
    }

    fn read_selected(&self) -> u32 {
        match self.select {
            0x00 | 0x02 => self.id,
            0x01 => VERSION,
            register @ 0x10..=0x3F => {
                let entry = self.entries[usize::from(register - 0x10) / 2];
                let shift = if register & 1 == 0 { 0 } else { 32 };
                raddle_stdx::width::low_u32(entry >> shift)
            }
            _ => 0,
        }
    }

    /// Writes a register; unmasking a pin whose level is asserted sends its interrupt.
    pub(super) fn write(&mut self, offset: u64, value: u32) -> Option<Message> {
        match offset {
            0x00 => self.select = value.to_le_bytes()[0],
            0x10 => return self.write_selected(value),
            _ => {}
        }
        None
    }

    fn write_selected(&mut self, value: u32) -> Option<Message> {
        match self.select {
            0x00 => self.id = value & 0x0F00_0000,
            register @ 0x10..=0x3F => {
                let pin = usize::from(register - 0x10) / 2;
                let shift = if register & 1 == 0 { 0 } else { 32 };
                let mask = (0xFFFF_FFFF << shift) & WRITABLE;
                let entry = &mut self.entries[pin];
                *entry = *entry & !mask | u64::from(value) << shift & mask;
                if *entry & LEVEL == 0 {
                    *entry &= !REMOTE_IRR;
                }
                return self.level_message(pin);
            }
            _ => {}
        }
        None
    }

    /// Sets an interrupt line; a rising edge or an asserted level makes a message.
    pub(super) fn set_line(&mut self, pin: usize, asserted: bool) -> Option<Message> {
        let was_asserted = std::mem::replace(&mut self.lines[pin], asserted);
        let entry = self.entries[pin];
        if entry & LEVEL != 0 {
            return self.level_message(pin);
        }
        (asserted && !was_asserted && entry & MASKED == 0).then(|| message(entry))
    }

    /// A local controller has finished a level-triggered interrupt; it comes again if its line is still up.
    pub(super) fn end_of_interrupt(&mut self, vector: u8) -> Vec<Message> {
        for entry in &mut self.entries {
            if entry.to_le_bytes()[0] == vector && *entry & LEVEL != 0 {
                *entry &= !REMOTE_IRR;
            }
        }
        (0..PINS)
            .filter_map(|pin| self.level_message(pin))
            .collect()
    }

    fn level_message(&mut self, pin: usize) -> Option<Message> {
        let entry = &mut self.entries[pin];
        let is_due = *entry & LEVEL != 0 && *entry & (MASKED | REMOTE_IRR) == 0 && self.lines[pin];
        is_due.then(|| {
            *entry |= REMOTE_IRR;
            message(*entry)
        })
    }
}

fn message(entry: u64) -> Message {
    let [vector, mode, .., destination] = entry.to_le_bytes();
    Message {
        target: if entry & LOGICAL != 0 {
            Target::Logical(destination)
        } else {
            Target::Physical(destination)
        },
        delivery: Delivery::from_bits(u32::from(mode)),
        vector,
        is_level: entry & LEVEL != 0,
    }
}

wire_struct!(IoApic {
    id,
    select,
    entries,
    lines
});

#[cfg(test)]
mod tests {
    use super::*;

    fn program(apic: &mut IoApic, pin: u8, low: u32, high: u32) -> Option<Message> {
        apic.write(0x00, u32::from(0x11 + pin * 2));
        apic.write(0x10, high);
        apic.write(0x00, u32::from(0x10 + pin * 2));
        apic.write(0x10, low)
    }

    #[test]
    fn an_edge_is_one_message() {
        let mut apic = IoApic::default();
        assert_eq!(apic.set_line(4, true), None, "masked after reset");
        apic.set_line(4, false);
        program(&mut apic, 4, 0x0000_0834, 0x0300_0000);
        assert_eq!(
            apic.set_line(4, true),
            Some(Message {
                target: Target::Logical(3),
                delivery: Delivery::Fixed,
                vector: 0x34,
                is_level: false
            })
        );
        assert_eq!(apic.set_line(4, true), None);
    }

    #[test]
    fn a_level_comes_again_until_its_line_falls() {
        let mut apic = IoApic::default();
        apic.set_line(5, true);
        let sent = program(&mut apic, 5, 0x0000_8041, 0);
        assert_eq!(sent.map(|message| message.vector), Some(0x41));
        assert_eq!(apic.set_line(5, true), None, "not before it was finished");
        assert_eq!(apic.end_of_interrupt(0x41).len(), 1);
        apic.set_line(5, false);
        assert_eq!(apic.end_of_interrupt(0x41), []);
    }
}
