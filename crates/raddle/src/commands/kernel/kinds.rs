//! What each kind of finding in a kernel means.

use crate::commands::kind::Kind;

/// Name, one line, what to do.
pub(in crate::commands) const KINDS: [Kind; 13] = [
    (
        "kernel-panic",
        "the kernel panics in some interleaving",
        "The kernel's own words are in the finding. The steps show where each processor was stopped so that the other could get between two of its accesses.",
    ),
    (
        "kernel-oops",
        "the kernel faults in some interleaving",
        "A pointer was used that the other processor had not set yet, had cleared, or had freed. Look at the last switch before the fault.",
    ),
    (
        "kernel-bug",
        "a BUG check of the kernel fails in some interleaving",
        "The kernel noticed itself that a data structure is broken, for example a list whose neighbours do not agree.",
    ),
    (
        "kernel-sanitizer",
        "KASAN, KCSAN, KFENCE, UBSAN or the allocator's own checks speak in some interleaving",
        "The kernel was built with a sanitizer, or checks the objects of its allocator (slub_debug), and found an error in this order only. The object, and who allocated and freed it, stand in the finding if the kernel says so.",
    ),
    (
        "kernel-lockdep",
        "lockdep complains in some interleaving",
        "The kernel's lock validator saw an order of locks that can deadlock.",
    ),
    (
        "kernel-warning",
        "a WARN check of the kernel fails in some interleaving",
        "The kernel goes on, but a condition that its authors rely on did not hold; a reference count below zero is the usual one.",
    ),
    (
        "kernel-hung-task",
        "the kernel reports a task that hangs",
        "A task has waited far too long for a lock or an event.",
    ),
    (
        "kernel-stall",
        "the kernel reports a processor that makes no progress",
        "RCU or the watchdog has waited for a processor that loops or keeps interrupts off.",
    ),
    (
        "kernel-stuck",
        "a system call never returns in some interleaving",
        "A wake-up was lost or two locks wait for each other: the test does not come to its end within --guest-time.",
    ),
    (
        "kernel-wrong-result",
        "a system call gives a result that the test does not allow",
        "The test says which results any serial order of its calls can give; this interleaving gave another one.",
    ),
    (
        "kernel-check",
        "a check after the test fails in some interleaving",
        "The state that the test left behind is not one that a serial order leaves.",
    ),
    (
        "kernel-reset",
        "the machine is reset in some interleaving",
        "The kernel could not even print: most often a fault while a fault was handled.",
    ),
    (
        "kernel-data-race",
        "two processors touch the same bytes, one writing, and nothing orders them",
        "Many kernel races are on purpose: look for READ_ONCE, WRITE_ONCE and data_race() in the source. What is left may tear, be lost, or be read too early.",
    ),
];
