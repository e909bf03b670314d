//! One row of the table and the properties that it can have.

use std::ops::Range;

/// A system call. Properties say what it means to contexts other than its caller; a row without any is a call whose
/// order with the calls of others may matter and of which nothing else is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: u32,
    pub name: &'static str,
    /// It hands something to the file in its first argument.
    pub sends: bool,
    /// Whose doings a call that has succeeded comes after.
    pub learns: Learns,
    /// It creates a context.
    pub creates: bool,
    /// Its order with calls of others may change what a context sees, and nothing but this order tells it. Threads are
    /// ordered by their creation and end, a futex by the functions that use it.
    pub has_order: bool,
    pub memory: MemoryChange,
    pub unnoticed: Unnoticed,
    /// It moves as many bytes between its second argument and the file in its first as its third says, or fewer.
    pub transfers: bool,
    pub interrupts: Interrupts,
}

/// When a signal handler ends a call with EINTR (signal(7)); of calls that sleep for a time it is not said, since they
/// tell how much is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupts {
    Never,
    /// If the handler was installed without SA_RESTART.
    UnlessRestarted,
    /// Whatever the handler was installed with.
    Always,
}

/// What a call that has succeeded has learned of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learns {
    Nothing,
    /// What was handed to the file in the first argument.
    File,
    /// What was handed to the files of the `pollfd` list in the first argument, whose length is the second.
    PollList,
    /// What was handed to the files of the set in the second argument, with numbers below the first.
    SelectSet,
    /// That the lock of the file in the first argument was given up.
    FileLock,
    /// The end of a child process.
    Children,
    /// That the new process, whose number is the result, has left the memory that it borrowed.
    NewProcess,
    /// A signal.
    Signals,
}

/// Which memory that other contexts may use a call changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryChange {
    Nothing,
    /// The range of which the first argument is the start and the second the length.
    Range,
    /// That range if the program insists on it; otherwise the kernel chooses a place that no context uses.
    RangeIfFixed,
}

/// When no context but the caller can notice a call, nor have a say in its result: it is no reason to let another
/// context run before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unnoticed {
    Never,
    Always,
    /// As long as no signal can reach the process.
    WithoutSignals,
    /// If its range lies in the caller's own stack.
    OfOwnStack,
    /// In the function that creates a thread: the memory belongs to a thread that does not exist yet.
    ForNewThread,
}

/// `mmap`: map at this address and nowhere else.
const MAP_FIXED: u64 = 0x10;

impl Call {
    /// The addresses at which a call with these arguments changes memory that others may use.
    pub fn memory_changed(&self, arguments: &[u64; 6]) -> Option<Range<u64>> {
        let [start, length, _, flags, ..] = *arguments;
        let changes = match self.memory {
            MemoryChange::Nothing => false,
            MemoryChange::Range => true,
            MemoryChange::RangeIfFixed => flags & MAP_FIXED != 0,
        };
        changes.then(|| start..start.saturating_add(length))
    }

    pub(crate) const fn sends(mut self) -> Self {
        self.sends = true;
        self
    }

    pub(crate) const fn learns(mut self, of: Learns) -> Self {
        self.learns = of;
        self
    }

    pub(crate) const fn creates(mut self) -> Self {
        self.creates = true;
        self
    }

    pub(crate) const fn unordered(mut self) -> Self {
        self.has_order = false;
        self
    }

    /// It is about the calling thread itself.
    pub(crate) const fn concerns_caller(self) -> Self {
        self.unordered().unnoticed(Unnoticed::Always)
    }

    pub(crate) const fn changes(mut self, memory: MemoryChange) -> Self {
        self.memory = memory;
        self
    }

    pub(crate) const fn transfers(mut self) -> Self {
        self.transfers = true;
        self.interrupts(Interrupts::UnlessRestarted)
    }

    pub(crate) const fn interrupts(mut self, when: Interrupts) -> Self {
        self.interrupts = when;
        self
    }

    pub(crate) const fn unnoticed(mut self, when: Unnoticed) -> Self {
        self.unnoticed = when;
        self
    }
}

/// A row without properties.
pub(crate) const fn call(number: u32, name: &'static str) -> Call {
    Call {
        number,
        name,
        sends: false,
        learns: Learns::Nothing,
        creates: false,
        has_order: true,
        memory: MemoryChange::Nothing,
        unnoticed: Unnoticed::Never,
        transfers: false,
        interrupts: Interrupts::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{number, of};

    fn call_named(name: &str) -> &'static Call {
        of(number(name)).expect("the row exists")
    }

    #[test]
    fn some_calls_concern_others() {
        for name in ["write", "kill", "munmap"] {
            assert!(call_named(name).has_order, "{name}");
        }
        for name in ["gettid", "mmap", "futex", "clone"] {
            assert!(!call_named(name).has_order, "{name}");
        }
        assert_eq!(call_named("rseq").unnoticed, Unnoticed::Always);
        assert_eq!(call_named("mmap").unnoticed, Unnoticed::ForNewThread);
    }

    #[test]
    fn memory_is_changed_where_others_may_use_it() {
        let arguments = |flags| [0x1000, 0x2000, 0, flags, 0, 0];
        let changed = |name, flags| call_named(name).memory_changed(&arguments(flags));
        assert_eq!(changed("munmap", 0), Some(0x1000..0x3000));
        assert_eq!(changed("mmap", 0), None);
        assert_eq!(changed("mmap", MAP_FIXED), Some(0x1000..0x3000));
        assert_eq!(changed("read", 0), None);
    }

    #[test]
    fn a_call_that_concerns_its_caller_only_neither_sends_nor_learns() {
        let own = crate::all().filter(|call| call.unnoticed == Unnoticed::Always);
        let mut count = 0;
        for call in own {
            assert!(!call.has_order && !call.sends && !call.creates, "{call:?}");
            assert_eq!(call.learns, Learns::Nothing, "{call:?}");
            count += 1;
        }
        assert_eq!(count, 7);
    }
}
