//! Signal numbers, sets of them, and what they do by default (signal(7)).

/// Names and numbers of the classic signals.
macro_rules! signals {
    ($($name:ident = $value:literal),* $(,)?) => {
        #[expect(dead_code, reason = "the list is complete, whether each is used or not")]
        mod list {
            $(pub(crate) const $name: u32 = $value;)*
        }
        pub(crate) use list::*;

        /// `SIGSEGV`, or `signal 40` for one without a name of its own.
        pub fn signal_name(number: u32) -> String {
            match number {
                $($value => stringify!($name).to_owned(),)*
                _ => format!("signal {number}"),
            }
        }
    };
}

signals! {
    SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8,
    SIGKILL = 9, SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15,
    SIGSTKFLT = 16, SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22,
    SIGURG = 23, SIGXCPU = 24, SIGXFSZ = 25, SIGVTALRM = 26, SIGPROF = 27, SIGWINCH = 28, SIGIO = 29,
    SIGPWR = 30, SIGSYS = 31,
}

/// The first real-time signal: from here on signals are queued, not merged.
pub(crate) const SIGRTMIN: u32 = 32;
/// The last signal.
pub(crate) const SIGMAX: u32 = 64;

/// A set of signals: bit n-1 stands for signal n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SignalSet(pub(crate) u64);

impl SignalSet {
    /// What can never be blocked.
    pub(crate) const UNBLOCKABLE: Self = Self(1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1));

    pub(crate) fn of(numbers: &[u32]) -> Self {
        Self(
            numbers
                .iter()
                .fold(0, |bits, number| bits | 1 << (number - 1)),
        )
    }

    pub(crate) fn contains(self, number: u32) -> bool {
        (1..=SIGMAX).contains(&number) && self.0 >> (number - 1) & 1 == 1
    }

    #[must_use]
    pub(crate) fn with(self, number: u32) -> Self {
        Self(self.0 | 1 << (number - 1))
    }

    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The lowest member.
    pub(crate) fn first(self) -> Option<u32> {
        (self.0 != 0).then(|| self.0.trailing_zeros() + 1)
    }
}

/// What a signal does if the program has not said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Default {
    Terminate,
    /// Terminate, and the wait status has the core bit (we never write a core file, so it stays clear).
    Core,
    Ignore,
    Stop,
    Continue,
}

/// The default action of a signal.
pub(crate) fn default_action(number: u32) -> Default {
    match number {
        SIGCHLD | SIGURG | SIGWINCH => Default::Ignore,
        SIGCONT => Default::Continue,
        SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU => Default::Stop,
        SIGQUIT | SIGILL | SIGTRAP | SIGABRT | SIGBUS | SIGFPE | SIGSEGV | SIGXCPU | SIGXFSZ
        | SIGSYS => Default::Core,
        _ => Default::Terminate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_signal_one_to_sixty_four() {
        let set = SignalSet::of(&[1, 64]);
        assert!(set.contains(1) && set.contains(64));
        assert!(!set.contains(0) && !set.contains(65) && !set.contains(2));
        assert_eq!(set.minus(SignalSet::of(&[1])).first(), Some(64));
    }
}
