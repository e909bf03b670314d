//! Which functions of Linux lock, wait, wake, allocate and free, by their names in the kernel's own table.
//!
//! The kernels of distributions are built with preemption, which makes unlocking and RCU read sides functions, too. A
//! kernel without it has them in line: those of spin locks are inferred from values then, and RCU read sides are not
//! seen, since they do nothing.

use raddle_world::{LockMode, WaitKind};

/// What calling a function means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The lock is held when it returns.
    Acquire(LockMode),
    /// The lock is given up when it is called.
    Release,
    /// The lock is held for reading from its call on.
    Downgrade,
    WaitBegin,
    /// Waiting is over when it returns.
    Waits(WaitKind),
    /// Waiting is over when it is called.
    WaitEnd,
    Notify {
        on: WaitKind,
        everyone: bool,
    },
    /// Returns a block; the argument with its size.
    Allocate(Option<usize>),
    Free,
}

/// How a function tells that it did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Success {
    Always,
    Zero,
    NonZero,
}

/// Functions of one meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) functions: &'static [&'static str],
    pub(super) meaning: Meaning,
    /// The argument that is the lock, queue or block; none if there is one for all.
    pub(super) object: Option<usize>,
    pub(super) success: Success,
}

const fn rule(functions: &'static [&'static str], meaning: Meaning) -> Rule {
    Rule {
        functions,
        meaning,
        object: Some(0),
        success: Success::Always,
    }
}

impl Rule {
    const fn of(self, object: Option<usize>) -> Self {
        Self { object, ..self }
    }

    const fn if_it(self, success: Success) -> Self {
        Self { success, ..self }
    }
}

const WRITE: Meaning = Meaning::Acquire(LockMode::Exclusive);
const READ: Meaning = Meaning::Acquire(LockMode::Shared);
const WAKE: Meaning = Meaning::Notify {
    on: WaitKind::Event,
    everyone: false,
};

/// All rules.
pub(super) const RULES: [Rule; 35] = [
    // Spin locks and reader-writer spin locks
    rule(
        &[
            "_raw_spin_lock",
            "_raw_spin_lock_irq",
            "_raw_spin_lock_bh",
            "_raw_spin_lock_irqsave",
            "_raw_write_lock",
            "_raw_write_lock_irq",
            "_raw_write_lock_bh",
            "_raw_write_lock_irqsave",
        ],
        WRITE,
    ),
    rule(
        &[
            "_raw_spin_trylock",
            "_raw_spin_trylock_bh",
            "_raw_write_trylock",
        ],
        WRITE,
    )
    .if_it(Success::NonZero),
    rule(
        &[
            "_raw_read_lock",
            "_raw_read_lock_irq",
            "_raw_read_lock_bh",
            "_raw_read_lock_irqsave",
        ],
        READ,
    ),
    rule(&["_raw_read_trylock"], READ).if_it(Success::NonZero),
    rule(
        &[
            "_raw_spin_unlock",
            "_raw_spin_unlock_irq",
            "_raw_spin_unlock_bh",
            "_raw_spin_unlock_irqrestore",
            "_raw_write_unlock",
            "_raw_write_unlock_irq",
            "_raw_write_unlock_bh",
            "_raw_write_unlock_irqrestore",
            "_raw_read_unlock",
            "_raw_read_unlock_irq",
            "_raw_read_unlock_bh",
            "_raw_read_unlock_irqrestore",
        ],
        Meaning::Release,
    ),
    // Mutexes
    rule(
        &[
            "mutex_lock",
            "mutex_lock_nested",
            "mutex_lock_io",
            "rt_mutex_lock",
        ],
        WRITE,
    ),
    rule(&["mutex_lock_interruptible", "mutex_lock_killable"], WRITE).if_it(Success::Zero),
    rule(&["mutex_trylock", "rt_mutex_trylock"], WRITE).if_it(Success::NonZero),
    rule(&["mutex_unlock", "rt_mutex_unlock"], Meaning::Release),
    // Reader-writer semaphores
    rule(&["down_write", "percpu_down_write"], WRITE),
    rule(&["down_write_killable"], WRITE).if_it(Success::Zero),
    rule(&["down_write_trylock"], WRITE).if_it(Success::NonZero),
    rule(&["down_read"], READ),
    rule(&["down_read_killable", "down_read_interruptible"], READ).if_it(Success::Zero),
    rule(&["down_read_trylock"], READ).if_it(Success::NonZero),
    rule(
        &["up_write", "up_read", "percpu_up_write"],
        Meaning::Release,
    ),
    rule(&["downgrade_write"], Meaning::Downgrade),
    // Read sides of RCU: one for all, and those that have a name
    rule(&["__rcu_read_lock"], READ).of(None),
    rule(&["__rcu_read_unlock"], Meaning::Release).of(None),
    rule(&["__srcu_read_lock"], READ),
    rule(&["__srcu_read_unlock"], Meaning::Release),
    // Semaphores
    rule(
        &[
            "down",
            "down_interruptible",
            "down_killable",
            "down_timeout",
            "down_trylock",
        ],
        Meaning::Waits(WaitKind::Semaphore),
    )
    .if_it(Success::Zero),
    rule(
        &["up"],
        Meaning::Notify {
            on: WaitKind::Semaphore,
            everyone: false,
        },
    ),
    // Memory
    rule(
        &[
            "__kmalloc",
            "__kmalloc_noprof",
            "__kmalloc_node",
            "__kmalloc_node_noprof",
        ],
        Meaning::Allocate(Some(0)),
    ),
    rule(
        &[
            "kmalloc_trace",
            "kmalloc_node_trace",
            "__kmalloc_cache_noprof",
        ],
        Meaning::Allocate(Some(2)),
    ),
    rule(
        &[
            "kmem_cache_alloc",
            "kmem_cache_alloc_noprof",
            "kmem_cache_alloc_node",
            "kmem_cache_alloc_node_noprof",
            "kmem_cache_alloc_lru",
            "kmem_cache_alloc_lru_noprof",
        ],
        Meaning::Allocate(None),
    ),
    rule(&["kfree"], Meaning::Free),
    rule(&["kmem_cache_free"], Meaning::Free).of(Some(1)),
    // Completions, wait queues, threads that are woken or begin
    rule(
        &["wait_for_completion", "wait_for_completion_io"],
        Meaning::Waits(WaitKind::Event),
    ),
    rule(
        &[
            "wait_for_completion_interruptible",
            "wait_for_completion_killable",
        ],
        Meaning::Waits(WaitKind::Event),
    )
    .if_it(Success::Zero),
    rule(
        &["wait_for_completion_timeout", "try_wait_for_completion"],
        Meaning::Waits(WaitKind::Event),
    )
    .if_it(Success::NonZero),
    rule(
        &[
            "complete",
            "__wake_up",
            "try_to_wake_up",
            "wake_up_new_task",
        ],
        WAKE,
    ),
    rule(
        &["complete_all"],
        Meaning::Notify {
            on: WaitKind::Event,
            everyone: true,
        },
    ),
    rule(
        &[
            "prepare_to_wait",
            "prepare_to_wait_exclusive",
            "prepare_to_wait_event",
        ],
        Meaning::WaitBegin,
    ),
    rule(&["finish_wait"], Meaning::WaitEnd),
];
