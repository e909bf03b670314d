//! Whom calls concern, apart from what their handlers do.

use std::ops::Range;

use crate::syscall::names::{number, numbers};

/// Calls about the thread itself: nobody else can notice them, nor have a say in their results.
const OWN: [u32; 7] = numbers([
    "getpid",
    "gettid",
    "rseq",
    "sched_getaffinity",
    "set_robust_list",
    "set_tid_address",
    "sigaltstack",
]);

/// Calls whose order with those of others changes nothing, or is known by what they mean: threads by their creation and
/// end, a futex by the functions that use it.
const UNORDERED: [u32; 15] = numbers([
    "brk",
    "clock_gettime",
    "clock_nanosleep",
    "clone",
    "clone3",
    "exit",
    "exit_group",
    "futex",
    "getrandom",
    "mmap",
    "nanosleep",
    "prctl",
    "rt_sigprocmask",
    "sched_yield",
    "sysinfo",
]);

const MMAP: u32 = number("mmap");
const MAP_FIXED: u64 = 0x10;
/// Calls that change what lies in the range of their first two arguments.
const CHANGING: [u32; 3] = numbers(["madvise", "mprotect", "munmap"]);

/// Whether a call is about the thread itself.
pub(crate) fn is_own(number: u32) -> bool {
    OWN.contains(&number)
}

/// Whether the order of a call with calls of others may change what anybody sees.
pub fn has_order(number: u32) -> bool {
    !is_own(number) && !UNORDERED.contains(&number)
}

/// The addresses at which a call changes memory that others may use.
pub fn memory_changed(number: u32, arguments: &[u64; 6]) -> Option<Range<u64>> {
    let [start, length, _, flags, ..] = *arguments;
    // Where new memory comes to lie is the kernel's choice, unless the program insists.
    let changes = match number {
        MMAP => flags & MAP_FIXED != 0,
        _ => CHANGING.contains(&number),
    };
    changes.then(|| start..start.saturating_add(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_calls_concern_others() {
        assert!(has_order(number("write")) && has_order(number("kill")));
        assert!(!has_order(number("gettid")) && !has_order(number("mmap")));
        assert!(is_own(number("rseq")) && !is_own(number("mmap")));
    }

    #[test]
    fn memory_is_changed_where_somebody_may_use_it() {
        let arguments = |flags| [0x1000, 0x2000, 0, flags, 0, 0];
        let changed = |name, flags| memory_changed(number(name), &arguments(flags));
        assert_eq!(changed("munmap", 0), Some(0x1000..0x3000));
        assert_eq!(changed("mmap", 0), None);
        assert_eq!(changed("mmap", MAP_FIXED), Some(0x1000..0x3000));
        assert_eq!(changed("read", 0), None);
    }
}
