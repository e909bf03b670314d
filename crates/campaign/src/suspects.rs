//! Tells apart failures that say nothing of where the bug is, before anything is known of why they happen.
//!
//! A wrong status looks the same whatever went wrong. What a failing run reads from where no passing run ever did is
//! suspicious; two failing runs without a common suspicion may well be two bugs, and both are worth an explanation. The
//! explanations then say whether they are.

use std::collections::{BTreeMap, BTreeSet};

use raddle_sched::ReadsFromPair;

use crate::subject::Symptom;

/// Runs that are kept of failures that look the same.
const RUNS_MAX: usize = 4;

/// What is suspicious, as far as the runs up to now tell.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// What passing runs do, too.
    innocent: BTreeSet<ReadsFromPair>,
    /// What the kept runs of each failure read from where.
    runs: BTreeMap<String, Vec<Vec<ReadsFromPair>>>,
}

impl Suspects {
    /// Learns from a run that did not fail.
    pub(crate) fn clear(&mut self, pairs: &[ReadsFromPair]) {
        self.innocent.extend(pairs);
    }

    /// The name under which a failing run is kept: new for one that may show another bug than those before it.
    pub(crate) fn name(&mut self, failure: &impl Symptom, pairs: &[ReadsFromPair]) -> String {
        let name = failure.fingerprint();
        if !failure.is_vague() {
            return name;
        }
        let suspicions = |pairs: &[ReadsFromPair]| -> BTreeSet<ReadsFromPair> {
            let guilty = pairs.iter().filter(|pair| !self.innocent.contains(pair));
            guilty.copied().collect()
        };
        let own = suspicions(pairs);
        let known = self.runs.get(&name).map_or(&[][..], Vec::as_slice);
        let alike = known
            .iter()
            .position(|run| own.is_empty() || !suspicions(run).is_disjoint(&own));
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
    fn failures_with_a_place_have_one_name() {
        let failure = Failure::Hang { sites: Vec::new() };
        let mut suspects = Suspects::default();
        let name = suspects.name(&failure, &[pair(1, 2)]);
        assert_eq!(suspects.name(&failure, &[pair(3, 4)]), name);
        assert_eq!(name, failure.fingerprint());
    }
}
