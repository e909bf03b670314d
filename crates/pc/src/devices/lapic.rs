//! The local interrupt controller of one processor, as memory-mapped registers (SDM vol. 3, chapter 11).
//!
//! What leaves the processor (inter-processor interrupts) is returned as an [`Ipi`]; the bus finds the targets.

use raddle_stdx::width::low_u8;

use super::timer::{Timer, TimerMode};
use crate::wire::{Damaged, Reader, Wire, wire_struct};

/// Where every controller is mapped.
pub const LAPIC_BASE: u64 = 0xFEE0_0000;
pub(super) const LAPIC_SIZE: u64 = 0x1000;

/// Version 0x14 with six local vectors.
const VERSION: u32 = 0x0005_0014;
const MASKED: u32 = 1 << 16;
const SOFTWARE_ENABLE: u32 = 1 << 8;
const DELIVERY_PENDING: u32 = 1 << 12;
/// Error status: an illegal vector was sent or received.
const ERROR_SEND_ILLEGAL: u32 = 1 << 5;
const ERROR_RECEIVE_ILLEGAL: u32 = 1 << 6;

/// Local vector table entries, in register order from 0x320.
mod local_vector {
    pub(super) const TIMER: usize = 0;
    pub(super) const LINT0: usize = 3;
    pub(super) const LINT1: usize = 4;
    pub(super) const ERROR: usize = 5;
    pub(super) const COUNT: usize = 6;
}

/// How an interrupt message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Fixed,
    LowestPriority,
    Nmi,
    Init,
    Startup,
    /// SMI, ExtINT and reserved codes: nothing here answers them.
    Other,
}

impl Delivery {
    pub(super) fn from_bits(bits: u32) -> Self {
        match bits & 7 {
            0 => Self::Fixed,
            1 => Self::LowestPriority,
            4 => Self::Nmi,
            5 => Self::Init,
            6 => Self::Startup,
            _ => Self::Other,
        }
    }
}

/// Who shall get a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Physical(u8),
    Logical(u8),
    Me,
    Everyone,
    EveryoneElse,
}

/// A message that a processor sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipi {
    pub target: Target,
    pub delivery: Delivery,
    pub vector: u8,
}

/// A set of 256 vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Vectors([u32; 8]);

impl Wire for Vectors {
    fn store(&self, to: &mut Vec<u8>) {
        self.0.store(to);
    }

    fn fetch(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Wire::fetch(from).map(Self)
    }
}

impl Vectors {
    fn set(&mut self, vector: u8) {
        self.0[usize::from(vector) / 32] |= 1 << (vector % 32);
    }

    fn clear(&mut self, vector: u8) {
        self.0[usize::from(vector) / 32] &= !(1 << (vector % 32));
    }

    fn contains(self, vector: u8) -> bool {
        self.0[usize::from(vector) / 32] >> (vector % 32) & 1 != 0
    }

    /// Asked several times for every stretch of a schedule, and nearly always true.
    #[inline]
    fn is_empty(self) -> bool {
        self.0.iter().fold(0, |all, bits| all | bits) == 0
    }

    #[inline]
    fn highest(self) -> Option<u8> {
        let (word, bits) = (0_u8..8).zip(self.0).rev().find(|(_, bits)| *bits != 0)?;
        // At most 255: the word is below eight and the bit below 32.
        Some(word * 32 + low_u8(u64::from(31 - bits.leading_zeros())))
    }

    fn iter(self) -> impl Iterator<Item = u8> {
        (0_u8..8).zip(self.0).flat_map(|(word, bits)| {
            let mut bits = bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| low_u8(u64::from(bits.trailing_zeros())))?;
                bits &= bits - 1;
                Some(word * 32 + bit)
            })
        })
    }

    fn len(self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }
}

/// Registers of one local interrupt controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalApic {
    id: u8,
    task_priority: u8,
    logical_id: u8,
    /// Destination format: all ones is the flat model.
    format: u32,
    spurious: u32,
    error: u32,
    error_latched: u32,
    command_low: u32,
    command_high: u32,
    local: [u32; local_vector::COUNT],
    in_service: Vectors,
    trigger_level: Vectors,
    requested: Vectors,
    timer: Timer,
}

impl LocalApic {
    pub fn new(id: u8) -> Self {
        Self {
            id,
            task_priority: 0,
            logical_id: 0,
            format: u32::MAX,
            spurious: 0xFF,
            error: 0,
            error_latched: 0,
            command_low: 0,
            command_high: 0,
            local: [MASKED; local_vector::COUNT],
            in_service: Vectors::default(),
            trigger_level: Vectors::default(),
            requested: Vectors::default(),
            timer: Timer::default(),
        }
    }

    pub fn id(&self) -> u8 {
        self.id
    }

    fn is_enabled(&self) -> bool {
        self.spurious & SOFTWARE_ENABLE != 0
    }

    /// Reads the register at `offset`.
    pub fn read(&self, offset: u64, now: u64) -> u32 {
        let bank = |vectors: Vectors| vectors.0[usize::from(offset.to_le_bytes()[0] >> 4 & 7)];
        match offset & !0xF {
            0x20 => u32::from(self.id) << 24,
            0x30 => VERSION,
            0x80 => u32::from(self.task_priority),
            0xA0 => u32::from(self.processor_priority()),
            0xD0 => u32::from(self.logical_id) << 24,
            0xE0 => self.format,
            0xF0 => self.spurious,
            0x100..=0x170 => bank(self.in_service),
            0x180..=0x1F0 => bank(self.trigger_level),
            0x200..=0x270 => bank(self.requested),
            0x280 => self.error_latched,
            0x300 => self.command_low & !DELIVERY_PENDING,
            0x310 => self.command_high,
            register @ 0x320..=0x370 => self.local[local_index(register)],
            0x380 => self.timer.initial_count(),
            0x390 => self.timer.current_count(now),
            0x3E0 => self.timer.divide_register(),
            _ => 0,
        }
    }

    /// Writes the register at `offset`; a write of the command register sends a message.
    /// A finished level-triggered interrupt is returned as its vector, for the I/O controllers.
    pub fn write(&mut self, offset: u64, value: u32, now: u64) -> Effect {
        match offset & !0xF {
            0x80 => self.task_priority = value.to_le_bytes()[0],
            0xB0 => return self.end_of_interrupt(),
            0xD0 => self.logical_id = value.to_le_bytes()[3],
            0xE0 => self.format = value | 0x0FFF_FFFF,
            0xF0 => self.write_spurious(value),
            0x280 => {
                self.error_latched = self.error;
                self.error = 0;
            }
            0x300 => return self.send(value),
            0x310 => self.command_high = value,
            register @ 0x320..=0x370 => self.write_local(local_index(register), value, now),
            0x380 => {
                let mode = self.timer_mode();
                self.timer.start(value, mode, now);
            }
            0x3E0 => self.timer.set_divide(value, now),
            _ => {}
        }
        Effect::None
    }

    fn write_spurious(&mut self, value: u32) {
        self.spurious = value & 0x3FF;
        if !self.is_enabled() {
            self.local.iter_mut().for_each(|entry| *entry |= MASKED);
        }
    }

    fn write_local(&mut self, index: usize, value: u32, now: u64) {
        let valid = match index {
            local_vector::TIMER => 0x7_00FF,
            local_vector::LINT0 | local_vector::LINT1 => 0x1_A7FF,
            local_vector::ERROR => 0x1_00FF,
            _ => 0x1_07FF,
        };
        let forced = if self.is_enabled() { 0 } else { MASKED };
        let before = self.timer_mode();
        self.local[index] = value & valid | forced;
        if index == local_vector::TIMER && self.timer_mode() != before {
            self.timer.change_mode(self.timer_mode(), now);
        }
    }

    fn timer_mode(&self) -> TimerMode {
        match self.local[local_vector::TIMER] >> 17 & 3 {
            0 => TimerMode::OneShot,
            1 => TimerMode::Periodic,
            _ => TimerMode::Deadline,
        }
    }

    fn send(&mut self, value: u32) -> Effect {
        self.command_low = value;
        let [vector, ..] = value.to_le_bytes();
        let delivery = Delivery::from_bits(value >> 8);
        let is_deassert = delivery == Delivery::Init && value & (1 << 14) == 0;
        if is_deassert {
            return Effect::None;
        }
        let is_interrupt = matches!(delivery, Delivery::Fixed | Delivery::LowestPriority);
        if is_interrupt && vector < 16 {
            self.raise_error(ERROR_SEND_ILLEGAL);
            return Effect::None;
        }
        let destination = self.command_high.to_le_bytes()[3];
        let target = match value >> 18 & 3 {
            0 if value & (1 << 11) != 0 => Target::Logical(destination),
            0 => Target::Physical(destination),
            1 => Target::Me,
            2 => Target::Everyone,
            _ => Target::EveryoneElse,
        };
        Effect::Send(Ipi {
            target,
            delivery,
            vector,
        })
    }

    fn raise_error(&mut self, bits: u32) {
        self.error |= bits;
        let entry = self.local[local_vector::ERROR];
        if entry & MASKED == 0 && self.is_enabled() {
            self.requested.set(entry.to_le_bytes()[0]);
        }
    }

    fn end_of_interrupt(&mut self) -> Effect {
        let Some(vector) = self.in_service.highest() else {
            return Effect::None;
        };
        self.in_service.clear(vector);
        if self.trigger_level.contains(vector) {
            Effect::LevelEnded(vector)
        } else {
            Effect::None
        }
    }

    /// Whether a message to this destination is meant for us.
    pub(super) fn matches(&self, target: Target, sender: Option<u8>) -> bool {
        match target {
            Target::Physical(id) => id == self.id || id == 0xFF,
            Target::Logical(mask) if self.format >> 28 == 0xF => mask & self.logical_id != 0,
            // Cluster model: equal upper halves, common bits in the lower ones.
            Target::Logical(mask) => {
                mask == 0xFF
                    || mask >> 4 == self.logical_id >> 4 && mask & self.logical_id & 0xF != 0
            }
            Target::Me => sender == Some(self.id),
            Target::Everyone => true,
            Target::EveryoneElse => sender != Some(self.id),
        }
    }

    /// An interrupt arrives.
    pub(super) fn accept(&mut self, vector: u8, is_level: bool) {
        if vector < 16 {
            self.raise_error(ERROR_RECEIVE_ILLEGAL);
            return;
        }
        if !self.is_enabled() {
            return;
        }
        self.requested.set(vector);
        if is_level {
            self.trigger_level.set(vector);
        } else {
            self.trigger_level.clear(vector);
        }
    }

    /// The vector that the processor would be interrupted with, if its interrupt flag is set.
    #[inline]
    pub fn pending(&self) -> Option<u8> {
        if self.requested.is_empty() {
            return None;
        }
        let vector = self.requested.highest()?;
        (vector >> 4 > self.processor_priority() >> 4 && self.is_enabled()).then_some(vector)
    }

    /// All vectors that have arrived and not been taken yet, whether priority admits them or not.
    pub fn requested(&self) -> impl Iterator<Item = u8> {
        self.requested.iter()
    }

    /// How many vectors have arrived and not been taken yet.
    #[inline]
    pub fn requested_count(&self) -> usize {
        if self.requested.is_empty() {
            return 0;
        }
        self.requested.len()
    }

    /// All vectors whose handlers have not signalled their end.
    pub fn in_service(&self) -> impl Iterator<Item = u8> {
        self.in_service.iter()
    }

    /// The processor takes the pending interrupt.
    pub fn acknowledge(&mut self) -> Option<u8> {
        let vector = self.pending()?;
        self.requested.clear(vector);
        self.in_service.set(vector);
        Some(vector)
    }

    fn processor_priority(&self) -> u8 {
        let serving = self.in_service.highest().unwrap_or(0) & 0xF0;
        if self.task_priority & 0xF0 >= serving {
            self.task_priority
        } else {
            serving
        }
    }

    /// CR8, the upper half of the task priority.
    pub fn task_priority_class(&self) -> u8 {
        self.task_priority >> 4
    }

    pub fn set_task_priority_class(&mut self, class: u8) {
        self.task_priority = class << 4;
    }

    /// The time stamp at which the timer fires next.
    pub fn next_event(&self) -> Option<u64> {
        let is_masked = self.local[local_vector::TIMER] & MASKED != 0;
        self.timer.expiry().filter(|_| !is_masked)
    }

    /// Fires the timer if its time has come.
    pub(super) fn advance(&mut self, now: u64) {
        let entry = self.local[local_vector::TIMER];
        if self.timer.fire(self.timer_mode(), now) && entry & MASKED == 0 {
            self.accept(entry.to_le_bytes()[0], false);
        }
    }

    /// The model-specific register of the deadline timer.
    pub fn deadline(&self) -> u64 {
        if self.timer_mode() == TimerMode::Deadline {
            self.timer.expiry().unwrap_or(0)
        } else {
            0
        }
    }

    pub fn set_deadline(&mut self, value: u64, now: u64) {
        if self.timer_mode() == TimerMode::Deadline {
            self.timer.set_deadline(value);
            self.advance(now);
        }
    }

    /// INIT: everything but the identity is forgotten.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.id);
    }
}

/// What a register write means to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    None,
    Send(Ipi),
    LevelEnded(u8),
}

fn local_index(register: u64) -> usize {
    usize::from(((register - 0x320) >> 4).to_le_bytes()[0])
}

wire_struct!(LocalApic {
    id,
    task_priority,
    logical_id,
    format,
    spurious,
    error,
    error_latched,
    command_low,
    command_high,
    local,
    in_service,
    trigger_level,
    requested,
    timer,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled() -> LocalApic {
        let mut apic = LocalApic::new(1);
        apic.write(0xF0, 0x1FF, 0);
        apic
    }

    #[test]
    fn a_disabled_controller_takes_no_interrupt() {
        let mut apic = LocalApic::new(0);
        apic.accept(0x40, false);
        assert_eq!(apic.pending(), None);
    }

    #[test]
    fn a_higher_class_interrupts_a_lower_one_and_not_the_other_way_round() {
        let mut apic = enabled();
        apic.accept(0x41, false);
        assert_eq!(apic.acknowledge(), Some(0x41));
        apic.accept(0x45, false);
        assert_eq!(apic.pending(), None, "same class waits");
        apic.accept(0x52, false);
        assert_eq!(apic.acknowledge(), Some(0x52));
        apic.write(0xB0, 0, 0);
        assert_eq!(apic.pending(), None, "0x41 is still served");
        apic.write(0xB0, 0, 0);
        assert_eq!(apic.acknowledge(), Some(0x45));
    }

    #[test]
    fn task_priority_holds_interrupts_back() {
        let mut apic = enabled();
        apic.accept(0x41, false);
        apic.set_task_priority_class(4);
        assert_eq!(apic.pending(), None);
        apic.set_task_priority_class(3);
        assert_eq!(apic.pending(), Some(0x41));
    }

    #[test]
    fn the_deadline_timer_fires_once() {
        let mut apic = enabled();
        apic.write(0x320, 2 << 17 | 0xEC, 0);
        apic.set_deadline(500, 100);
        assert_eq!(apic.next_event(), Some(500));
        apic.advance(499);
        assert_eq!(apic.pending(), None);
        apic.advance(500);
        assert_eq!(apic.acknowledge(), Some(0xEC));
        assert_eq!(apic.next_event(), None);
        assert_eq!(apic.deadline(), 0);
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_once() {
        let mut apic = enabled();
        apic.write(0x320, 2 << 17 | 0xEC, 0);
        apic.set_deadline(50, 100);
        assert_eq!(apic.pending(), Some(0xEC));
    }

    #[test]
    fn the_command_register_names_targets() {
        let mut apic = enabled();
        apic.write(0x310, 3 << 24, 0);
        let sent = |effect| match effect {
            Effect::Send(ipi) => (ipi.target, ipi.delivery, ipi.vector),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            sent(apic.write(0x300, 0x0_4500, 0)),
            (Target::Physical(3), Delivery::Init, 0)
        );
        assert_eq!(
            sent(apic.write(0x300, 0x0_0698, 0)),
            (Target::Physical(3), Delivery::Startup, 0x98)
        );
        assert_eq!(
            sent(apic.write(0x300, 0xC_08FD, 0)),
            (Target::EveryoneElse, Delivery::Fixed, 0xFD)
        );
        // INIT level de-assert means nothing on this kind of controller.
        assert_eq!(apic.write(0x300, 0x0_8500, 0), Effect::None);
    }

    #[test]
    fn logical_destinations_in_both_models() {
        let mut apic = enabled();
        apic.write(0xD0, 0x02 << 24, 0);
        assert!(apic.matches(Target::Logical(0x03), None));
        assert!(!apic.matches(Target::Logical(0x01), None));
        apic.write(0xE0, 0x0FFF_FFFF, 0);
        apic.write(0xD0, 0x12 << 24, 0);
        assert!(apic.matches(Target::Logical(0x13), None));
        assert!(!apic.matches(Target::Logical(0x23), None));
    }
}
