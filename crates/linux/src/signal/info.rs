//! `siginfo_t`: what comes with a signal.

/// Size of the structure as the guest sees it.
pub(crate) const SIGINFO_SIZE: usize = 128;

/// `si_code` values.
pub(crate) mod code {
    pub(crate) const USER: i32 = 0;
    pub(crate) const KERNEL: i32 = 0x80;
    pub(crate) const TIMER: i32 = -2;
    pub(crate) const MESSAGE_QUEUE: i32 = -3;
    pub(crate) const TKILL: i32 = -6;
    pub(crate) const CLD_EXITED: i32 = 1;
    pub(crate) const CLD_KILLED: i32 = 2;
    pub(crate) const CLD_STOPPED: i32 = 5;
    pub(crate) const CLD_CONTINUED: i32 = 6;
    pub(crate) const ILL_ILLOPN: i32 = 2;
    pub(crate) const FPE_INTDIV: i32 = 1;
    pub(crate) const FPE_FLTDIV: i32 = 3;
    pub(crate) const FPE_FLTOVF: i32 = 4;
    pub(crate) const FPE_FLTUND: i32 = 5;
    pub(crate) const FPE_FLTRES: i32 = 6;
    pub(crate) const FPE_FLTINV: i32 = 7;
    pub(crate) const SEGV_MAPERR: i32 = 1;
    pub(crate) const SEGV_ACCERR: i32 = 2;
    pub(crate) const BUS_ADRALN: i32 = 1;
    pub(crate) const BUS_ADRERR: i32 = 2;
    pub(crate) const TRAP_TRACE: i32 = 2;
}

/// A signal with its origin: `si_signo`, `si_errno`, `si_code` and the union behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SigInfo {
    pub(crate) number: u32,
    pub(crate) errno: i32,
    pub(crate) code: i32,
    /// The union at offset 16: pid and uid, address, child status, timer, value.
    fields: [u8; 32],
}

impl SigInfo {
    fn new(number: u32, code: i32) -> Self {
        Self {
            number,
            errno: 0,
            code,
            fields: [0; 32],
        }
    }

    fn put(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.fields[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// From the kernel itself.
    pub(crate) fn kernel(number: u32) -> Self {
        Self::new(number, code::KERNEL)
    }

    /// By kill(2), with the sender.
    pub(crate) fn user(number: u32, pid: u32, uid: u32) -> Self {
        Self::new(number, code::USER)
            .put(0, &pid.to_le_bytes())
            .put(4, &uid.to_le_bytes())
    }

    /// By tkill(2) or tgkill(2).
    pub(crate) fn thread(number: u32, pid: u32, uid: u32) -> Self {
        Self {
            code: code::TKILL,
            ..Self::user(number, pid, uid)
        }
    }

    /// An exception at `addr`.
    pub(crate) fn fault(number: u32, code: i32, addr: u64) -> Self {
        Self::new(number, code).put(0, &addr.to_le_bytes())
    }

    /// A child changed its state.
    pub(crate) fn child(signal: u32, code: i32, pid: u32, uid: u32, status: i32) -> Self {
        Self::new(signal, code)
            .put(0, &pid.to_le_bytes())
            .put(4, &uid.to_le_bytes())
            .put(8, &status.to_le_bytes())
    }

    /// A timer expired.
    pub(crate) fn timer(number: u32, timer: i32, overrun: i32, value: u64) -> Self {
        Self::new(number, code::TIMER)
            .put(0, &timer.to_le_bytes())
            .put(4, &overrun.to_le_bytes())
            .put(8, &value.to_le_bytes())
    }

    /// A message came to a queue: from whom, and the value that was registered.
    pub(crate) fn message(number: u32, pid: u32, uid: u32, value: u64) -> Self {
        Self {
            code: code::MESSAGE_QUEUE,
            ..Self::user(number, pid, uid)
        }
        .put(8, &value.to_le_bytes())
    }

    /// The bytes of a `siginfo_t`.
    pub(crate) fn to_bytes(&self) -> [u8; SIGINFO_SIZE] {
        let mut bytes = [0; SIGINFO_SIZE];
        bytes[0..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.errno.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.code.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.fields);
        bytes
    }

    /// What a program passed to rt_sigqueueinfo; the number is the call's own argument.
    pub(crate) fn from_bytes(number: u32, bytes: &[u8; SIGINFO_SIZE]) -> Self {
        let word = |at: usize| i32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        Self {
            number,
            errno: word(4),
            code: word(8),
            fields: std::array::from_fn(|index| bytes[16 + index]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_structure() {
        let info = SigInfo::child(17, code::CLD_EXITED, 42, 1000, 3);
        let bytes = info.to_bytes();
        assert_eq!(&bytes[..12], &[17, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(&bytes[16..28], &[42, 0, 0, 0, 0xE8, 3, 0, 0, 3, 0, 0, 0]);
        assert_eq!(SigInfo::from_bytes(17, &bytes), info);
    }
}
