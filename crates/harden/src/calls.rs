//! Library functions that a region may hold, from the table `calls.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

/// What a call of a known function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Computes or passes time.
    Pure,
    /// Reads memory.
    Read,
    /// Writes behind the parameter of this number, and nowhere else.
    Write { to: usize },
}

/// What the table says of a function.
pub fn known(name: &str) -> Option<Call> {
    static TABLE: OnceLock<BTreeMap<String, Call>> = OnceLock::new();
    TABLE.get_or_init(table).get(name).copied()
}

#[derive(Debug, Deserialize)]
struct Document {
    calls: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: Kind,
    names: Vec<String>,
    to: Option<usize>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Pure,
    Read,
    Idle,
    Write,
}

fn table() -> BTreeMap<String, Call> {
    let document: Document =
        toml::from_str(include_str!("calls.toml")).expect("a test reads the built-in table");
    let mut table = BTreeMap::new();
    for entry in document.calls {
        let call = match entry.kind {
            Kind::Pure | Kind::Idle => Call::Pure,
            Kind::Read => Call::Read,
            Kind::Write => Call::Write {
                to: entry.to.expect("a test reads the built-in table"),
            },
        };
        table.extend(entry.names.into_iter().map(|name| (name, call)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        assert_eq!(known("usleep"), Some(Call::Pure));
        assert_eq!(known("strlen"), Some(Call::Read));
        assert_eq!(known("snprintf"), Some(Call::Write { to: 0 }));
        assert_eq!(known("printf"), None);
    }

    /// Functions that keep pointers, end threads, call back or show something to others must never get in.
    #[test]
    fn what_harms_is_not_in_the_table() {
        for name in [
            "strtok",
            "qsort",
            "bsearch",
            "free",
            "realloc",
            "write",
            "puts",
            "setenv",
            "pthread_exit",
            "pthread_cond_signal",
            "pthread_create",
            "fork",
            "exit",
            "sem_post",
            "rand",
            "random",
            "pthread_setspecific",
            "strtol",
        ] {
            assert_eq!(known(name), None, "{name}");
        }
    }
}
