//! Signals: dispositions, pending sets, sending (`send`), delivery (`deliver`) and frames (`frame`).

mod deliver;
mod exception;
mod frame;
mod info;
mod number;
mod send;

pub(crate) use exception::exception_signal;
pub(crate) use frame::return_from_handler;
pub(crate) use info::{SIGINFO_SIZE, SigInfo, code};
pub use number::signal_name;
pub(crate) use number::*;

use std::collections::VecDeque;

/// `SIG_DFL` and `SIG_IGN`.
pub(crate) const HANDLER_DEFAULT: u64 = 0;
pub(crate) const HANDLER_IGNORE: u64 = 1;

/// `sa_flags`.
pub(crate) mod action_flags {
    pub(crate) const NOCLDSTOP: u64 = 0x1;
    pub(crate) const NOCLDWAIT: u64 = 0x2;
    pub(crate) const SIGINFO: u64 = 0x4;
    pub(crate) const RESTORER: u64 = 0x0400_0000;
    pub(crate) const ONSTACK: u64 = 0x0800_0000;
    pub(crate) const RESTART: u64 = 0x1000_0000;
    pub(crate) const NODEFER: u64 = 0x4000_0000;
    pub(crate) const RESETHAND: u64 = 0x8000_0000;
    /// Every flag that Linux knows; asking for others clears them (sigaction(2), "Dynamically probing").
    pub(crate) const KNOWN: u64 =
        NOCLDSTOP | NOCLDWAIT | SIGINFO | RESTORER | ONSTACK | RESTART | NODEFER | RESETHAND;
}

/// What a process wants to happen on a signal (`struct kernel_sigaction`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Action {
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) restorer: u64,
    pub(crate) mask: SignalSet,
}

impl Action {
    pub(crate) fn is_handler(self) -> bool {
        self.handler != HANDLER_DEFAULT && self.handler != HANDLER_IGNORE
    }

    /// Whether signal `number` has no effect at all under this disposition.
    pub(crate) fn ignores(self, number: u32) -> bool {
        match self.handler {
            HANDLER_IGNORE => true,
            HANDLER_DEFAULT => default_action(number) == Default::Ignore,
            _ => false,
        }
    }
}

/// The alternate signal stack (`stack_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AltStack {
    pub(crate) start: u64,
    pub(crate) flags: u32,
    pub(crate) size: u64,
}

impl AltStack {
    pub(crate) const ON_STACK: u32 = 1;
    pub(crate) const DISABLE: u32 = 2;
    pub(crate) const AUTO_DISARM: u32 = 1 << 31;
    pub(crate) const NONE: Self = Self {
        start: 0,
        flags: Self::DISABLE,
        size: 0,
    };

    /// Whether `sp` lies on it.
    pub(crate) fn contains(self, sp: u64) -> bool {
        self.flags & Self::AUTO_DISARM == 0 && sp > self.start && sp - self.start <= self.size
    }

    /// `ss_flags` as sigaltstack(2) reports them.
    pub(crate) fn status(self, sp: u64) -> u32 {
        if self.size == 0 {
            Self::DISABLE
        } else if self.contains(sp) {
            Self::ON_STACK | (self.flags & Self::AUTO_DISARM)
        } else {
            self.flags & Self::AUTO_DISARM
        }
    }
}

/// Signals that have been sent and not yet delivered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PendingSignals {
    queue: VecDeque<SigInfo>,
}

/// How many real-time signals may wait (RLIMIT_SIGPENDING).
pub(crate) const PENDING_MAX: usize = 4096;

impl PendingSignals {
    pub(crate) fn set(&self) -> SignalSet {
        self.queue
            .iter()
            .fold(SignalSet::default(), |set, info| set.with(info.number))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Adds a signal; a classic one that is already there is merged.
    pub(crate) fn add(&mut self, info: SigInfo) {
        let is_merged =
            info.number < SIGRTMIN && self.queue.iter().any(|other| other.number == info.number);
        if !is_merged {
            self.queue.push_back(info);
        }
    }

    /// Takes the oldest entry of the given number.
    pub(crate) fn take(&mut self, number: u32) -> Option<SigInfo> {
        let index = self.queue.iter().position(|info| info.number == number)?;
        self.queue.remove(index)
    }

    /// Forgets all members of `set`.
    pub(crate) fn discard(&mut self, set: SignalSet) {
        self.queue.retain(|info| !set.contains(info.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_signals_merge_and_real_time_ones_queue() {
        let mut pending = PendingSignals::default();
        for _ in 0..3 {
            pending.add(SigInfo::user(SIGUSR1, 1, 0));
            pending.add(SigInfo::user(40, 1, 0));
        }
        assert_eq!(pending.len(), 4);
        assert!(pending.take(SIGUSR1).is_some());
        assert!(pending.take(SIGUSR1).is_none());
        assert_eq!(pending.set(), SignalSet::of(&[40]));
    }

    #[test]
    fn alternate_stack_tells_whether_it_is_in_use() {
        let stack = AltStack {
            start: 0x1000,
            flags: 0,
            size: 0x2000,
        };
        assert_eq!(stack.status(0x3000), AltStack::ON_STACK);
        assert_eq!(stack.status(0x3001), 0);
        assert_eq!(AltStack::NONE.status(0x3000), AltStack::DISABLE);
    }
}
