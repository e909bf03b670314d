//! Which functions of a program mean synchronisation or allocation.
//!
//! The rules for pthreads, C11 threads, semaphores and malloc come with raddle; a project adds its own with
//! `[[hooks]]` in its `raddle.toml`.

use serde::{Deserialize, Serialize};

/// What calling a function means. Arguments are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Names as the linker has them, or readable paths such as `std::mutex::lock`.
    pub functions: Vec<String>,
    pub effect: Effect,
    /// The argument that names the object (the lock, condition, block, thread).
    #[serde(default)]
    pub object: u8,
    /// The mutex of a condition wait, the second factor of a size.
    #[serde(default)]
    pub other: Option<u8>,
    #[serde(default)]
    pub mode: Mode,
    /// What the function returns when it did its work.
    #[serde(default)]
    pub success: Success,
    /// The function may call another hooked one of the same effect to do the work: only this one counts then.
    #[serde(default)]
    pub wraps: bool,
}

/// The meaning of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Obtains a lock, at its successful return.
    Acquire,
    /// Gives a lock up, at its entry.
    Release,
    /// Gives the mutex `other` up, waits for `object`, obtains the mutex again.
    ConditionWait,
    /// Wakes one waiter.
    NotifyOne,
    /// Wakes all waiters.
    NotifyAll,
    /// Waits for a token (semaphore).
    Wait,
    /// Gives a token (semaphore).
    Post,
    /// Initialises `object`, or waits for the thread that does.
    Once,
    /// Meets the other parties.
    Barrier,
    /// Creates a thread; `object` points to where its handle is stored.
    CreateThread,
    /// Waits for the end of the thread with this handle.
    JoinThread,
    /// Returns a new block; `object` is its size, times `other` if given.
    Allocate,
    /// Stores a new block's address where `object` points; `other` is its size.
    AllocateInto,
    /// Frees the block `object` and returns one of size `other`.
    Reallocate,
    Free,
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    #[default]
    Exclusive,
    Shared,
}

/// How success looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Success {
    #[default]
    Zero,
    /// Zero, or EOWNERDEAD: the lock is held but its data may be inconsistent.
    ZeroOrOwnerDead,
    NonZero,
    Always,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    hooks: Vec<Hook>,
}

/// The rules that come with raddle.
pub fn standard() -> Vec<Hook> {
    const TEXT: &str = include_str!("../data/hooks.toml");
    let rules: Rules = toml::from_str(TEXT).expect("the shipped rules are tested");
    rules.hooks
}

/// Rules of a project before those that come with raddle: of two for one function the first counts.
pub fn with_standard(own: &[Hook]) -> Vec<Hook> {
    own.iter().cloned().chain(standard()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_rules_parse_and_name_each_function_once() {
        let mut names: Vec<String> = standard()
            .into_iter()
            .flat_map(|hook| hook.functions)
            .collect();
        assert!(names.contains(&"pthread_mutex_lock".to_owned()));
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
