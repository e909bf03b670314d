//! The patterns that come with raddle.

use crate::pdl::error::PatternError;

macro_rules! shipped {
    ($($name:literal)*) => {
        const FILES: &[(&str, &str)] = &[
            $((concat!($name, ".pdl"), include_str!(concat!("../patterns/", $name, ".pdl"))),)*
        ];
        const EXAMPLES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../test_data/", $name, "/buggy.c"))),)*
        ];
    };
}

shipped! {
    "misused-test-and-set"
    "unsynchronised-thread-creation"
    "misused-atomics"
    "stop-finished-thread"
    "refcount-check-then-get"
    "publish-before-initialise"
    "lost-wakeup"
    "sleep-in-atomic"
    "lock-order-inversion"
    "double-fetch"
    "missing-barrier"
    "lock-leak"
    "double-lock"
    "double-unlock"
    "unlock-not-held"
    "wait-for-handler"
    "asserted-lock-not-held"
    "called-without-lock"
    "irq-unsafe-lock"
    "armed-at-free"
    "use-after-free"
    "rcu-use-after-unlock"
    "rcu-free-without-grace-period"
    "stale-after-unlock"
    "inconsistent-guarding"
    "unguarded-read"
    "rcu-plain-access"
    "odd-unlocked-call"
    "unlocked-access"
    "unlocked-call"
    "use-after-unlock"
    "rcu-outside-section"
    "irq-lock-mixed"
}

/// Name, one-line title and explanation of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipped {
    pub name: String,
    pub title: String,
    pub about: String,
}

/// The shipped pattern files: name and text.
pub fn shipped_files() -> Vec<(String, String)> {
    FILES
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

/// A source file in which a shipped pattern finds its bug.
pub fn shipped_example(name: &str) -> Option<&'static str> {
    let example = EXAMPLES.iter().find(|(known, _)| *known == name);
    example.map(|(_, text)| *text)
}

/// The names of the shipped patterns: each file is named after its pattern.
pub(crate) fn names() -> Vec<String> {
    FILES
        .iter()
        .map(|(file, _)| file.trim_end_matches(".pdl").to_owned())
        .collect()
}

/// The patterns in `files`, in order; of several descriptions of one bug the first.
pub fn list_patterns(files: &[(String, String)]) -> Result<Vec<Shipped>, PatternError> {
    let mut out = Vec::new();
    for (file, text) in files {
        for pattern in crate::pdl::parse(file, text)? {
            if out.iter().any(|known: &Shipped| known.name == pattern.name) {
                continue;
            }
            out.push(Shipped {
                name: pattern.name,
                title: pattern.title,
                about: pattern.about,
            });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_pattern_explains_itself() {
        let patterns = list_patterns(&shipped_files()).unwrap();
        assert!(patterns.len() >= 14);
        for pattern in patterns {
            assert!(
                pattern.about.len() > 200,
                "{} has no explanation",
                pattern.name
            );
        }
    }
}
