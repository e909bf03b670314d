//! The hardware around the processors: interrupt controllers, timers, serial port, clock.
//!
//! A device is a pure state machine over (register access, time); all of its state is plain data, so that a
//! snapshot is a clone. Time is the time stamp counter, which counts nanoseconds.

mod bus;
mod cmos;
mod ioapic;
mod lapic;
mod timer;
mod uart;

pub use bus::{Bus, Request};
pub use ioapic::IOAPIC_BASE;
pub use lapic::{Delivery, LAPIC_BASE, LocalApic, Target};
pub use uart::UART_PORT;
