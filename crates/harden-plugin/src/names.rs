//! Which function means what: the built-in names and those of the configuration.

use raddle_harden::analysis::model::LockHow;
use raddle_harden::calls::{self, Call};
use raddle_harden::settings::Settings;

/// The meaning of a called function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Calling it is the failure.
    Assertion,
    /// `raddle_oracle(condition)`.
    Oracle,
    Output(Checked),
    Lock(Lock),
    /// Releases the lock that is its first argument.
    Unlock,
    /// `lock_contended` of Rust's futex mutex.
    RustLock,
    /// Reads the number of panics of this thread, which a mutex guard does when it is made.
    RustPanicCount,
    Alloc {
        free: String,
    },
    /// Frees the memory that is its first argument.
    Free,
    /// A library function that a region may hold.
    Harmless(Call),
    Other,
}

/// Which arguments of an output function must not be invalid pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    Nothing,
    First,
    AllPointers,
}

/// A lock function and its companions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) unlock: String,
    pub(crate) how: LockSite,
    pub(crate) takes: LockHow,
}

/// How a deadlock at this lock is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockSite {
    /// A function of the runtime, with the same parameter and result, that follows the wait-for chain.
    Watched(&'static str),
    /// The program's lock with a time limit.
    Timed(String),
    /// Acquires, but cannot be a site.
    AcquireOnly,
}

/// What the runtime calls the unlocking of Rust's mutex.
pub(crate) const RUST_UNLOCK: &str = "raddle_harden_rust_unlock";

const ASSERTIONS: &[&str] = &[
    "__assert_fail",
    "__assert_perror_fail",
    "__assert",
    "g_assertion_message",
    "g_assertion_message_expr",
];

const OUTPUTS: &[(&str, Checked)] = &[
    ("printf", Checked::Nothing),
    ("fprintf", Checked::Nothing),
    ("vprintf", Checked::Nothing),
    ("vfprintf", Checked::Nothing),
    ("dprintf", Checked::Nothing),
    ("__printf_chk", Checked::Nothing),
    ("__fprintf_chk", Checked::Nothing),
    ("putchar", Checked::Nothing),
    ("putc", Checked::Nothing),
    ("fputc", Checked::Nothing),
    ("fwrite", Checked::First),
    ("write", Checked::Nothing),
    ("pwrite", Checked::Nothing),
    ("pwrite64", Checked::Nothing),
    ("writev", Checked::Nothing),
    ("send", Checked::Nothing),
    ("sendto", Checked::Nothing),
    ("sendmsg", Checked::Nothing),
    ("puts", Checked::First),
    ("fputs", Checked::First),
    ("fputs_unlocked", Checked::First),
    ("perror", Checked::Nothing),
    ("syslog", Checked::Nothing),
];

const ALLOCATORS: &[(&str, &str)] = &[
    ("malloc", "free"),
    ("calloc", "free"),
    ("aligned_alloc", "free"),
    ("strdup", "free"),
    ("strndup", "free"),
    ("_Znwm", "_ZdlPv"),
    ("_Znam", "_ZdaPv"),
];

/// `operator delete` with a size.
const SIZED_DELETES: &[&str] = &["_ZdlPvm", "_ZdaPvm"];

/// A lock function, its unlock, how it takes, and the function of the runtime that watches for a deadlock. The runtime
/// has a second one for sites that are only watched, whose name ends in `_watch`.
const LOCKS: &[(&str, &str, LockHow, Option<&str>)] = &[
    (
        "pthread_mutex_lock",
        "pthread_mutex_unlock",
        LockHow::Takes,
        Some("raddle_harden_mutex_lock"),
    ),
    (
        "pthread_rwlock_rdlock",
        "pthread_rwlock_unlock",
        LockHow::Shares,
        Some("raddle_harden_rwlock_rdlock"),
    ),
    (
        "pthread_rwlock_wrlock",
        "pthread_rwlock_unlock",
        LockHow::Takes,
        Some("raddle_harden_rwlock_wrlock"),
    ),
    (
        "pthread_spin_lock",
        "pthread_spin_unlock",
        LockHow::Takes,
        Some("raddle_harden_spin_lock"),
    ),
    (
        "mtx_lock",
        "mtx_unlock",
        LockHow::Takes,
        Some("raddle_harden_mtx_lock"),
    ),
    (
        "pthread_mutex_trylock",
        "pthread_mutex_unlock",
        LockHow::Tries,
        Some("raddle_harden_mutex_trylock"),
    ),
    (
        "pthread_mutex_timedlock",
        "pthread_mutex_unlock",
        LockHow::Tries,
        None,
    ),
    (
        "pthread_mutex_clocklock",
        "pthread_mutex_unlock",
        LockHow::Tries,
        None,
    ),
    (
        "pthread_rwlock_tryrdlock",
        "pthread_rwlock_unlock",
        LockHow::Tries,
        None,
    ),
    (
        "pthread_rwlock_trywrlock",
        "pthread_rwlock_unlock",
        LockHow::Tries,
        None,
    ),
    (
        "pthread_spin_trylock",
        "pthread_spin_unlock",
        LockHow::Tries,
        None,
    ),
    ("mtx_trylock", "mtx_unlock", LockHow::Tries, None),
];

/// Functions of libraries that take a lock, or read shared memory, when the compiler has not inlined them: each name
/// holds all of these parts.
const SYNCHRONISING: &[&[&str]] = &[
    &["_ZNSt5mutex4lockEv"],
    &["_ZNSt10lock_guardISt5mutexEC"],
    &["_ZNSt11unique_lockISt5mutexEC"],
    &["_ZNSt11unique_lockISt5mutexE4lockEv"],
    &["_ZNSt11scoped_lockIJSt5mutexEEC"],
    &["_ZNSt15recursive_mutex4lockEv"],
    &["_ZNSt10lock_guardISt15recursive_mutexEC"],
    &["_ZNSt11unique_lockISt15recursive_mutexEC"],
    &["_ZNSt12shared_mutex4lockEv"],
    &["_ZNSt12shared_mutex11lock_sharedEv"],
    &["_ZNSt10lock_guardISt12shared_mutexEC"],
    &["_ZNSt11unique_lockISt12shared_mutexEC"],
    &["_ZNSt11shared_lockISt12shared_mutexEC"],
    &["4sync6poison5mutex", "Mutex$LT$T$GT$4lock17h"],
    &["5mutex5futex5Mutex4lock17h"],
    &["_ZN4core4sync6atomic", "4load17h"],
];

/// What is around them: other members of those classes, and what they call.
const AROUND_THEM: &[&[&str]] = &[
    &["_ZNSt5mutex"],
    &["_ZNSt10lock_guardISt5mutexE"],
    &["_ZNSt11unique_lockISt5mutexE"],
    &["_ZNKSt11unique_lockISt5mutexE"],
    &["_ZNSt11scoped_lockIJSt5mutexEE"],
    &["_ZSt9addressofISt5mutexE"],
    &["_ZSt11__addressofISt5mutexE"],
    &["_ZNSt15recursive_mutex"],
    &["_ZNSt12shared_mutex"],
    &["_ZNSt22__shared_mutex_pthread"],
    &["_ZStL", "__glibcxx_rwlock_"],
    &["_ZNSt10lock_guardISt15recursive_mutexE"],
    &["_ZNSt10lock_guardISt12shared_mutexE"],
    &["_ZNSt11unique_lockISt15recursive_mutexE"],
    &["_ZNSt11unique_lockISt12shared_mutexE"],
    &["_ZNSt11shared_lockISt12shared_mutexE"],
    &["_ZSt9addressofISt12shared_mutexE"],
    &["_ZSt11__addressofISt12shared_mutexE"],
    &["_ZSt9addressofISt15recursive_mutexE"],
    &["_ZSt11__addressofISt15recursive_mutexE"],
    &["_ZL", "__gthread_recursive_mutex_"],
    &["_ZL20__gthread_mutex_lock"],
    &["_ZL22__gthread_mutex_unlock"],
    &["_ZL18__gthread_active_p"],
    &["_ZN3std4sync6poison"],
    &["$LT$std..sync..poison"],
    &["drop_in_place$LT$std..sync..poison"],
    &["5mutex5futex5Mutex", "lock17h"],
    &["_ZN4core4sync6atomic"],
    &["_ZN4core6result19Result", "6unwrap17h"],
    &["_ZN3std9panicking11panic_count"],
    &["_ZN3std9panicking9panicking"],
    &["_ZN3std6thread9panicking"],
    &["_ZN4core4cell"],
];

fn is_in(table: &[&[&str]], name: &str) -> bool {
    table
        .iter()
        .any(|parts| parts.iter().all(|part| name.contains(part)))
}

/// Whether a function that synchronises for its caller has this name.
pub(crate) fn synchronises(name: &str) -> bool {
    is_in(SYNCHRONISING, name)
}

/// Whether it is one of those or belongs to them.
pub(crate) fn is_around_synchronisation(name: &str) -> bool {
    synchronises(name) || is_in(AROUND_THEM, name)
}

/// Looks a name up; the program's own names first.
pub(crate) fn classify(name: &str, settings: &Settings) -> Callee {
    if let Some(callee) = configured(name, settings) {
        return callee;
    }
    if name == "raddle_oracle" {
        return Callee::Oracle;
    }
    if ASSERTIONS.contains(&name) || is_rust_panic(name) {
        return Callee::Assertion;
    }
    if let Some((_, checked)) = OUTPUTS.iter().find(|(known, _)| *known == name) {
        return Callee::Output(*checked);
    }
    if let Some((_, free)) = ALLOCATORS.iter().find(|(known, _)| *known == name) {
        return Callee::Alloc {
            free: (*free).into(),
        };
    }
    if let Some((_, unlock, takes, watch)) = LOCKS.iter().find(|(known, ..)| *known == name) {
        return Callee::Lock(Lock {
            unlock: (*unlock).into(),
            how: watch.map_or(LockSite::AcquireOnly, LockSite::Watched),
            takes: *takes,
        });
    }
    if LOCKS.iter().any(|(_, unlock, ..)| *unlock == name) {
        return Callee::Unlock;
    }
    if ALLOCATORS.iter().any(|(_, free)| *free == name) || SIZED_DELETES.contains(&name) {
        return Callee::Free;
    }
    if let Some(call) = calls::known(name) {
        return Callee::Harmless(call);
    }
    if name.contains("14lock_contended") && name.contains("5mutex5futex") {
        return Callee::RustLock;
    }
    if name.contains("panic_count17is_zero_slow_path") {
        return Callee::RustPanicCount;
    }
    if is_stream_output(name) {
        return Callee::Output(Checked::Nothing);
    }
    Callee::Other
}

fn configured(name: &str, settings: &Settings) -> Option<Callee> {
    if settings.assertions.iter().any(|known| known == name) {
        return Some(Callee::Assertion);
    }
    if settings.outputs.iter().any(|known| known == name) {
        return Some(Callee::Output(Checked::AllPointers));
    }
    if let Some(lock) = settings.locks.iter().find(|known| known.lock == name) {
        return Some(Callee::Lock(Lock {
            unlock: lock.unlock.clone(),
            how: lock
                .timed
                .clone()
                .map_or(LockSite::AcquireOnly, LockSite::Timed),
            takes: LockHow::Takes,
        }));
    }
    if settings.locks.iter().any(|known| known.unlock == name) {
        return Some(Callee::Unlock);
    }
    if settings.harmless.iter().any(|known| known == name) {
        return Some(Callee::Harmless(Call::Read));
    }
    if settings.allocators.iter().any(|known| known.free == name) {
        return Some(Callee::Free);
    }
    settings
        .allocators
        .iter()
        .find(|known| known.alloc == name)
        .map(|known| Callee::Alloc {
            free: known.free.clone(),
        })
}

/// Panics of Rust, in both mangling schemes: what `assert!`, `unwrap`, `expect`, indexing and the like end in.
fn is_rust_panic(name: &str) -> bool {
    let is_rust = name.starts_with("_ZN") || name.starts_with("_R");
    is_rust
        && [
            "9panicking",
            "13unwrap_failed",
            "13expect_failed",
            "_index_fail",
            "_order_fail",
        ]
        .iter()
        .any(|part| name.contains(part))
        && !name.contains("panic_count")
        && !name.contains("panic_in_cleanup")
        && !name.contains("panic_nounwind")
        && !name.contains("panic_cannot_unwind")
}

/// Whether a function at which the program ends has a name that well-known code bases give to assertions and panics:
/// `_serverAssert`, `ExceptionalCondition`, `NS_DebugBreak`, `logging::LogMessageFatal` and the like.
pub(crate) fn looks_like_assertion(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "assert",
        "panic",
        "exceptionalcondition",
        "debugbreak",
        "checkfail",
        "check_fail",
        "bug_on",
        "logmessagefatal",
        "unreachable_internal",
    ];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
        && !name.contains("panic_count")
        && !name.contains("panic_in_cleanup")
        && !name.contains("panic_nounwind")
        && !name.contains("panic_cannot_unwind")
}

/// `operator<<` and the like of C++ streams.
fn is_stream_output(name: &str) -> bool {
    name.starts_with("_ZNSolsE")
        || name.starts_with("_ZStlsISt11char_traitsIcE")
        || name.starts_with("_ZSt16__ostream_insert")
        || name.starts_with("_ZNSo3put")
        || name.starts_with("_ZNSo5write")
}
