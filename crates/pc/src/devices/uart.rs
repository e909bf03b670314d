//! A 16550A serial port whose line is endlessly fast: what is written is out at once and kept for the reader.

use crate::wire::wire_struct;

/// First port and interrupt pin of COM1.
pub const UART_PORT: u16 = 0x3F8;
pub(super) const UART_PIN: usize = 4;
const TRANSMIT_INTERRUPT: u8 = 1 << 1;
const LINE_INTERRUPT: u8 = 1 << 2;
const DIVISOR_ACCESS: u8 = 1 << 7;
const LOOP: u8 = 1 << 4;
/// Interrupts reach the controller only through this output (OUT2).
const GATE: u8 = 1 << 3;
/// Transmitter empty, holding register empty.
const LINE_IDLE: u8 = 0x60;

/// State of the port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Uart {
    interrupt_enable: u8,
    fifo: bool,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    divisor: [u8; 2],
    transmit_pending: bool,
    output: Vec<u8>,
}

impl Uart {
    /// Reads register 0..=7.
    pub(super) fn read(&mut self, register: u16) -> u8 {
        let divisor = self.line_control & DIVISOR_ACCESS != 0;
        match register {
            0 if divisor => self.divisor[0],
            1 if divisor => self.divisor[1],
            1 => self.interrupt_enable,
            2 => self.identify(),
            3 => self.line_control,
            4 => self.modem_control,
            5 => LINE_IDLE,
            6 => self.modem_status(),
            7 => self.scratch,
            // Nothing is ever received.
            _ => 0,
        }
    }

    /// Writes register 0..=7.
    pub(super) fn write(&mut self, register: u16, value: u8) {
        let divisor = self.line_control & DIVISOR_ACCESS != 0;
        match register {
            0 if divisor => self.divisor[0] = value,
            1 if divisor => self.divisor[1] = value,
            0 => {
                if self.modem_control & LOOP == 0 {
                    self.output.push(value);
                }
                self.transmit_pending = true;
            }
            1 => {
                let enabled = value & !self.interrupt_enable;
                self.interrupt_enable = value & 0x0F;
                if enabled & TRANSMIT_INTERRUPT != 0 {
                    self.transmit_pending = true;
                }
            }
            2 => self.fifo = value & 1 != 0,
            3 => self.line_control = value,
            4 => self.modem_control = value & 0x1F,
            7 => self.scratch = value,
            _ => {}
        }
    }

    fn identify(&mut self) -> u8 {
        let fifo = if self.fifo { 0xC0 } else { 0 };
        if self.transmit_pending && self.interrupt_enable & TRANSMIT_INTERRUPT != 0 {
            self.transmit_pending = false;
            fifo | 0x02
        } else {
            fifo | 0x01
        }
    }

    /// Carrier, data set ready, clear to send; in loop-back mode the modem outputs.
    fn modem_status(&self) -> u8 {
        if self.modem_control & LOOP == 0 {
            return 0xB0;
        }
        let output = self.modem_control;
        (output & 0x0C) << 4 | (output & 0x01) << 5 | (output & 0x02) << 3
    }

    /// State of the interrupt line.
    pub(super) fn line(&self) -> bool {
        let wanted = self.interrupt_enable & (TRANSMIT_INTERRUPT | LINE_INTERRUPT);
        self.transmit_pending
            && wanted & TRANSMIT_INTERRUPT != 0
            && self.modem_control & (GATE | LOOP) == GATE
    }

    /// Whether what was written since the last [`Self::take_output`] ends with a line.
    pub(super) fn ends_a_line(&self) -> bool {
        self.output.last() == Some(&b'\n')
    }

    /// What was written since the last call.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }
}

wire_struct!(Uart {
    interrupt_enable,
    fifo,
    line_control,
    modem_control,
    scratch,
    divisor,
    transmit_pending,
    output
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_back_shows_the_modem_outputs() {
        let mut uart = Uart::default();
        uart.write(4, LOOP | 0x0A);
        assert_eq!(uart.read(6) & 0xF0, 0x90);
        uart.write(0, b'x');
        assert_eq!(uart.take_output(), b"");
    }

    #[test]
    fn a_16550a_identifies_itself() {
        let mut uart = Uart::default();
        assert_eq!(uart.read(2), 0x01);
        uart.write(2, 1);
        assert_eq!(uart.read(2), 0xC1);
    }

    #[test]
    fn enabling_the_transmit_interrupt_raises_it_each_time() {
        let mut uart = Uart::default();
        uart.write(4, GATE);
        for _ in 0..2 {
            uart.write(1, TRANSMIT_INTERRUPT);
            assert!(uart.line());
            assert_eq!(uart.read(2) & 0x0F, 0x02);
            assert!(!uart.line(), "reading the cause takes it back");
            uart.write(1, 0);
        }
    }

    #[test]
    fn divisor_latch_is_not_output() {
        let mut uart = Uart::default();
        uart.write(3, DIVISOR_ACCESS);
        uart.write(0, 12);
        uart.write(3, 3);
        uart.write(0, b'o');
        uart.write(0, b'k');
        assert_eq!(uart.take_output(), b"ok");
    }
}
