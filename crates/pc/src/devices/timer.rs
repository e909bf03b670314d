//! The timer of a local interrupt controller: one-shot, periodic, or a deadline on the time stamp counter.
//!
//! Nothing counts: the register values are computed from the time when they are looked at.

use raddle_stdx::width::low_u32;

use crate::cpuid::TICKS_PER_CRYSTAL_TICK;
use crate::wire::wire_struct;

/// How the timer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimerMode {
    OneShot,
    Periodic,
    Deadline,
}

/// State of the timer; times are time stamps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Timer {
    initial: u32,
    divide: u32,
    expiry: Option<u64>,
}

impl Timer {
    pub(super) fn initial_count(&self) -> u32 {
        self.initial
    }

    pub(super) fn divide_register(&self) -> u32 {
        self.divide
    }

    pub(super) fn expiry(&self) -> Option<u64> {
        self.expiry
    }

    /// Time stamp ticks per count.
    fn count_length(&self) -> u64 {
        let code = (self.divide & 3) | (self.divide >> 1 & 4);
        let divisor = if code == 7 { 1 } else { 2 << code };
        TICKS_PER_CRYSTAL_TICK * divisor
    }

    fn period(&self) -> u64 {
        u64::from(self.initial) * self.count_length()
    }

    pub(super) fn current_count(&self, now: u64) -> u32 {
        let left = self.expiry.unwrap_or(now).saturating_sub(now);
        low_u32(
            left.div_ceil(self.count_length())
                .min(u64::from(self.initial)),
        )
    }

    /// A write of the initial count starts the timer; zero stops it.
    pub(super) fn start(&mut self, count: u32, mode: TimerMode, now: u64) {
        if mode == TimerMode::Deadline {
            return;
        }
        self.initial = count;
        self.expiry = (count != 0).then(|| now + self.period());
    }

    pub(super) fn set_divide(&mut self, value: u32, now: u64) {
        let left = self.current_count(now);
        self.divide = value & 0xB;
        if self.expiry.is_some() {
            self.expiry = Some(now + u64::from(left) * self.count_length());
        }
    }

    /// Changing between deadline and counting stops the timer.
    pub(super) fn change_mode(&mut self, to: TimerMode, now: u64) {
        let keeps_counting = to != TimerMode::Deadline && self.initial != 0;
        if !keeps_counting {
            self.expiry = None;
            self.initial = 0;
        } else if to == TimerMode::Periodic && self.expiry.is_none() {
            self.expiry = Some(now + self.period());
        }
    }

    pub(super) fn set_deadline(&mut self, value: u64) {
        self.expiry = (value != 0).then_some(value);
    }

    /// True if the timer fires at `now`; a periodic one that missed several periods fires once.
    pub(super) fn fire(&mut self, mode: TimerMode, now: u64) -> bool {
        let Some(expiry) = self.expiry.filter(|expiry| *expiry <= now) else {
            return false;
        };
        self.expiry = match mode {
            TimerMode::Periodic => {
                let period = self.period().max(1);
                Some(expiry + ((now - expiry) / period + 1) * period)
            }
            TimerMode::OneShot | TimerMode::Deadline => None,
        };
        true
    }
}

wire_struct!(Timer {
    initial,
    divide,
    expiry
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shot_counts_down_and_stops() {
        let mut timer = Timer::default();
        timer.set_divide(0xB, 0);
        timer.start(100, TimerMode::OneShot, 0);
        assert_eq!(timer.current_count(50 * TICKS_PER_CRYSTAL_TICK), 50);
        assert!(!timer.fire(TimerMode::OneShot, 100 * TICKS_PER_CRYSTAL_TICK - 1));
        assert!(timer.fire(TimerMode::OneShot, 100 * TICKS_PER_CRYSTAL_TICK));
        assert_eq!(timer.current_count(100 * TICKS_PER_CRYSTAL_TICK), 0);
        assert!(!timer.fire(TimerMode::OneShot, u64::MAX));
    }

    #[test]
    fn periodic_keeps_its_phase() {
        let mut timer = Timer::default();
        timer.set_divide(0xB, 0);
        timer.start(10, TimerMode::Periodic, 0);
        let period = 10 * TICKS_PER_CRYSTAL_TICK;
        assert!(timer.fire(TimerMode::Periodic, period * 3 + 7));
        assert_eq!(timer.expiry(), Some(period * 4));
    }

    #[test]
    fn the_divider_is_the_odd_three_bit_code() {
        let length = |divide| {
            let mut timer = Timer::default();
            timer.set_divide(divide, 0);
            timer.count_length() / TICKS_PER_CRYSTAL_TICK
        };
        assert_eq!(
            [0x0, 0x1, 0x2, 0x3, 0x8, 0x9, 0xA, 0xB].map(length),
            [2, 4, 8, 16, 32, 64, 128, 1]
        );
    }
}
