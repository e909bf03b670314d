//! The battery-backed clock, standing still at a fixed date so that every boot is the same.

use crate::wire::wire_struct;

/// Index and data port.
pub(super) const CMOS_INDEX: u16 = 0x70;
pub(super) const CMOS_DATA: u16 = 0x71;

/// 2020-01-01 00:00:00, a Wednesday, in binary-coded decimal; 24 hours.
const SECONDS: u8 = 0x00;
const WEEKDAY: u8 = 0x04;
const DAY: u8 = 0x01;
const MONTH: u8 = 0x01;
const YEAR: u8 = 0x20;
const CENTURY: u8 = 0x20;

/// State of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cmos {
    index: u8,
}

impl Cmos {
    pub(super) fn select(&mut self, value: u8) {
        self.index = value & 0x7F;
    }

    pub(super) fn read(&self) -> u8 {
        match self.index {
            0 | 2 | 4 => SECONDS,
            6 => WEEKDAY,
            7 => DAY,
            8 => MONTH,
            9 => YEAR,
            // No update in progress; the usual divider.
            0x0A => 0x26,
            // 24 hours, decimal.
            0x0B => 0x02,
            // The clock has power.
            0x0D => 0x80,
            0x32 => CENTURY,
            _ => 0,
        }
    }
}

wire_struct!(Cmos { index });
