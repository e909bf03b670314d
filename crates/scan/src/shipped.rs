//! The patterns that come with raddle.

use crate::pdl::error::PatternError;

macro_rules! shipped {
    ($($file:literal)*) => {
        const FILES: &[(&str, &str)] = &[
            $(($file, include_str!(concat!("../patterns/", $file))),)*
        ];
    };
}

shipped! {
    "misused-test-and-set.pdl"
    "unsynchronised-thread-creation.pdl"
    "misused-atomics.pdl"
    "stop-finished-thread.pdl"
    "refcount-check-then-get.pdl"
    "publish-before-initialise.pdl"
    "lost-wakeup.pdl"
    "sleep-in-atomic.pdl"
    "lock-order-inversion.pdl"
    "double-fetch.pdl"
    "missing-barrier.pdl"
    "lock-leak.pdl"
    "double-lock.pdl"
    "double-unlock.pdl"
    "unlock-not-held.pdl"
    "wait-for-handler.pdl"
    "asserted-lock-not-held.pdl"
    "called-without-lock.pdl"
    "irq-unsafe-lock.pdl"
    "armed-at-free.pdl"
    "use-after-free.pdl"
    "rcu-use-after-unlock.pdl"
    "rcu-free-without-grace-period.pdl"
    "stale-after-unlock.pdl"
    "inconsistent-guarding.pdl"
    "unguarded-read.pdl"
    "rcu-plain-access.pdl"
    "odd-unlocked-call.pdl"
    "unlocked-access.pdl"
    "unlocked-call.pdl"
    "use-after-unlock.pdl"
    "rcu-outside-section.pdl"
    "irq-lock-mixed.pdl"
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
