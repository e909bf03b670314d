//! What the names of functions say about locks: `foo_lock` with `foo_unlock`, `foo_mutex_acquire`.

use crate::idioms::LockAction;

/// Words behind `lock` that tell how it is taken; its release need not repeat them.
const MANNERS: &[&str] = &[
    "interruptible",
    "killable",
    "intr",
    "timeout",
    "nested",
    "shared",
    "exclusive",
    "excl",
    "fast",
    "slow",
];
/// Those of them that may fail.
const MAY_FAIL: &[&str] = &["interruptible", "killable", "intr", "timeout"];

/// Words for locks that stand beside a word that says what is done to them.
const NOUNS: &[&str] = &[
    "lock",
    "mutex",
    "sem",
    "semaphore",
    "rwsem",
    "spinlock",
    "hwsem",
];
/// Words that say that something is taken, and what says that it is given back.
const VERBS: &[(&str, &str)] = &[
    ("acquire", "release"),
    ("take", "release"),
    ("take", "give"),
    ("grab", "release"),
];

/// What a name like `foo_mutex_acquire` or `foo_take_lock` says, as [`lock_name`].
fn lock_phrase(text: &str) -> Option<(LockAction, Vec<String>)> {
    let parts: Vec<&str> = text.split('_').collect();
    // What has no name before it is an annotation for the kernel's own checks: `mutex_acquire(map)`.
    let place = (1..parts.len()).find(|place| {
        let beside = |other: Option<&&str>| other.is_some_and(|other| NOUNS.contains(other));
        VERBS.iter().any(|(takes, _)| takes == &parts[*place])
            && ((*place > 1 && beside(parts.get(place - 1))) || beside(parts.get(place + 1)))
    })?;
    let counterparts = VERBS.iter().filter(|(takes, _)| *takes == parts[place]);
    let names = counterparts.map(|(_, gives)| {
        let mut parts = parts.clone();
        parts[place] = gives;
        parts.join("_")
    });
    Some((LockAction::Acquire, names.collect()))
}

/// What a name like `foo_lock`, `foo_ilock` or `foo_trylock_bar` says, and the names its counterpart may have.
pub(super) fn lock_name(text: &str) -> Option<(LockAction, Vec<String>)> {
    if let Some(found) = lock_phrase(text) {
        return Some(found);
    }
    let mut parts: Vec<&str> = text.split('_').collect();
    let is_lock = |part: &&str| {
        matches!(
            *part,
            "lock" | "trylock" | "ilock" | "rlock" | "wlock" | "dlock" | "plock"
        )
    };
    let place = parts.iter().rposition(is_lock)?;
    let word = parts[place];
    let last = parts[parts.len() - 1];
    let action = match word {
        "trylock" => LockAction::Try,
        _ if MAY_FAIL.contains(&last) => LockAction::AcquireOrError,
        _ => LockAction::Acquire,
    };
    let released = match word {
        "lock" | "trylock" => "unlock".to_owned(),
        _ => format!("{}unlock", &word[..1]),
    };
    parts[place] = &released;
    let mut names = vec![parts.join("_")];
    if place + 1 < parts.len() && MANNERS.contains(&last) {
        names.push(parts[..=place].join("_"));
        names.push(parts[..parts.len() - 1].join("_"));
    }
    Some((action, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_locks_say_how_they_are_taken() {
        let read = |text| lock_name(text).map(|(action, names)| (action, names.join(" ")));
        let acquire = |names: &str| Some((LockAction::Acquire, names.to_owned()));
        assert_eq!(read("pci_lock_rescan"), acquire("pci_unlock_rescan"));
        assert_eq!(
            read("xfs_ilock_map_shared"),
            acquire("xfs_iunlock_map_shared xfs_iunlock xfs_iunlock_map")
        );
        assert_eq!(
            read("bus_lock_interruptible"),
            Some((
                LockAction::AcquireOrError,
                "bus_unlock_interruptible bus_unlock bus_unlock".to_owned()
            ))
        );
        assert_eq!(read("foo_trylock").unwrap().0, LockAction::Try);
        assert_eq!(read("block_write"), None);
        assert_eq!(read("clock_get"), None);
        assert_eq!(read("dev_mutex_acquire"), acquire("dev_mutex_release"));
        assert_eq!(
            read("hw_take_lock"),
            acquire("hw_release_lock hw_give_lock")
        );
        assert_eq!(read("mutex_acquire"), None);
        assert_eq!(read("lock_acquire"), acquire("unlock_acquire"));
        assert_eq!(read("dev_acquire"), None);
    }
}
