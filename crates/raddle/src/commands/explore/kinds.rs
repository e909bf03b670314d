//! The kinds of findings with their explanations.

use crate::commands::kind::Kind;

/// What each kind of finding means.
pub(in crate::commands) const KINDS: [Kind; 11] = [
    (
        "crash",
        "the program is killed by a signal in some interleaving",
        "A memory access or instruction faults when threads run in a certain order. Look at the last steps: usually one thread uses what another has not yet made, or has already taken away.",
    ),
    (
        "assertion",
        "an assertion, panic or abort happens in some interleaving",
        "The program itself notices that something is wrong. The steps show which accesses of other threads came between two of its own that should have been one.",
    ),
    (
        "wrong-exit",
        "the exit status depends on the interleaving",
        "Without interruptions the program ends with one status, in the order shown with another.",
    ),
    (
        "wrong-output",
        "what the program writes depends on the interleaving",
        "The program ends as it should, but its output is not what `--expect-output` or `--oracle` call right.",
    ),
    (
        "use-after-free",
        "freed memory is read or written in some interleaving",
        "One thread frees a block while another still uses it. The notes say where the block was allocated and freed. Give the block an owner that outlives its users, or count the users.",
    ),
    (
        "double-free",
        "a block is freed twice in some interleaving",
        "Two threads both think that the block is theirs to free. The notes say where it was freed before. Decide who frees it in one atomic step, for example by the change of a reference count to zero.",
    ),
    (
        "invalid-free",
        "something is freed that the allocator did not give out",
        "The pointer was changed, was never allocated, or points into a block. Look for another thread that writes the pointer.",
    ),
    (
        "heap-overflow",
        "memory just behind a heap block is read or written",
        "An index or length is larger than the block, often because another thread changed one of the two in between.",
    ),
    (
        "deadlock",
        "no thread can ever go on",
        "Threads wait for each other in a circle, or for a signal that was sent before they began to wait. Take locks in one order everywhere; check the condition under the lock before waiting.",
    ),
    (
        "hang",
        "the program does not end although every thread gets its turn",
        "A livelock, or a loop that waits for something that no longer happens.",
    ),
    (
        "data-race",
        "two accesses to the same memory, one a write, that nothing orders",
        "Neither a lock nor creation, joining or an atomic operation puts the two accesses in an order. Compilers may assume that this never happens.",
    ),
];
