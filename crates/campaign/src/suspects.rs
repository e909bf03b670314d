//! Tells apart failures that say nothing of where the bug is, before anything is known of why they happen.
//!
//! A wrong status looks the same whatever went wrong. Suspicious is what a failing run reads from where no passing run
//! ever did, and what it does not read although nearly all passing runs do, as with a lost update. Two failing runs
//! without a common suspicion may well be two bugs, and both are worth an explanation. The explanations then say whether
//! they are.

use std::collections::{BTreeMap, BTreeSet};

use raddle_sched::ReadsFromPair;

use crate::subject::Symptom;

/// Runs that are kept of failures that look the same.
const RUNS_MAX: usize = 4;
/// Passing runs that must have been seen before something counts as usual, and the share of them that does it, in
/// tenths. Points are learned bit by bit, so that a few runs may not show it.
const USUAL_RUNS: u64 = 8;
const USUAL_TENTHS: u64 = 9;

/// What is suspicious, as far as the runs up to now tell.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// What passing runs do: how many of them, and how many had passed before the first of those.
    innocent: BTreeMap<ReadsFromPair, (u64, u64)>,
    passed: u64,
    /// What the kept runs of each failure read from where.
    runs: BTreeMap<String, Vec<Vec<ReadsFromPair>>>,
}

/// Something that a failing run does and passing ones do not, or the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suspicion {
    New(ReadsFromPair),
    Missing(ReadsFromPair),
}

impl Suspects {
    /// Learns from a run that did not fail.
    pub(crate) fn clear(&mut self, pairs: &[ReadsFromPair]) {
        for pair in pairs {
            self.innocent.entry(*pair).or_insert((0, self.passed)).0 += 1;
        }
        self.passed += 1;
    }

    fn suspicions(&self, pairs: &[ReadsFromPair]) -> BTreeSet<Suspicion> {
        let own: BTreeSet<ReadsFromPair> = pairs.iter().copied().collect();
        let is_usual = |(count, before): (u64, u64)| {
            let since = self.passed - before;
            since >= USUAL_RUNS && count * 10 >= since * USUAL_TENTHS
        };
        let usual = self.innocent.iter().filter(|(_, seen)| is_usual(**seen));
        let missing = usual
            .map(|(pair, _)| *pair)
            .filter(|pair| !own.contains(pair));
        let new = own.iter().filter(|pair| !self.innocent.contains_key(pair));
        let new = new.copied().map(Suspicion::New);
        missing.map(Suspicion::Missing).chain(new).collect()
    }

    /// The name under which a failing run is kept: new for one that may show another bug than those before it.
    pub(crate) fn name(&mut self, failure: &impl Symptom, pairs: &[ReadsFromPair]) -> String {
        let name = failure.fingerprint();
        if !failure.is_vague() {
            return name;
        }
        let own = self.suspicions(pairs);
        let known = self.runs.get(&name).map_or(&[][..], Vec::as_slice);
        let alike = known.iter().position(|run| {
            let other = self.suspicions(run);
            // One that does less of it may show one bug where the other shows two.
            let is_part = own.is_subset(&other) && own.len() < other.len();
            own.is_empty() || !(is_part || own.is_disjoint(&other))
        });
        let number = match alike {
            Some(number) => number,
            None if known.len() == RUNS_MAX => 0,
            None => {
                let runs = self.runs.entry(name.clone()).or_default();
                runs.push(pairs.to_vec());
                runs.len() - 1
            }
        };
        match number {
            0 => name,
            _ => format!("{name}.{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_detect::Failure;
    use raddle_world::Site;

    use super::*;

    const EXIT: Failure = Failure::WrongExit {
        status: 1,
        expected: 0,
    };

    fn pair(from: u64, to: u64) -> ReadsFromPair {
        (Site::first(from), Site::first(to))
    }

    #[test]
    fn runs_without_a_common_suspicion_are_kept_apart() {
        let mut suspects = Suspects::default();
        let usual = pair(1, 2);
        let first = suspects.name(&EXIT, &[usual, pair(1, 9)]);
        assert_eq!(
            suspects.name(&EXIT, &[usual, pair(3, 9)]),
            first,
            "nothing has passed yet: all that they share is suspicious"
        );
        suspects.clear(&[usual]);
        let second = suspects.name(&EXIT, &[usual, pair(3, 9)]);
        assert_ne!(second, first);
        assert_eq!(suspects.name(&EXIT, &[pair(3, 9), pair(4, 9)]), second);
        assert_eq!(
            suspects.name(&EXIT, &[usual]),
            first,
            "nothing is new in it"
        );
    }

    #[test]
    fn what_is_missing_is_suspicious_too() {
        let mut suspects = Suspects::default();
        let (hits, bytes) = (pair(1, 2), pair(3, 4));
        // The first passing runs come before the points are known.
        suspects.clear(&[]);
        (0..10).for_each(|_| suspects.clear(&[hits, bytes]));
        let both = suspects.name(&EXIT, &[]);
        let one = suspects.name(&EXIT, &[hits]);
        let other = suspects.name(&EXIT, &[bytes]);
        assert!(both != one && one != other && both != other);
        assert_eq!(
            suspects.name(&EXIT, &[hits, pair(5, 6)]),
            both,
            "no part of it"
        );
    }

    #[test]
    fn failures_with_a_place_have_one_name() {
        let failure = Failure::Hang { sites: Vec::new() };
        let mut suspects = Suspects::default();
        let name = suspects.name(&failure, &[pair(1, 2)]);
        assert_eq!(suspects.name(&failure, &[pair(3, 4)]), name);
        assert_eq!(name, failure.fingerprint());
    }
}
