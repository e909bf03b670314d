//! The different failures of a campaign, in the order in which they were found.

use std::collections::BTreeMap;

/// The first failing outcome of each kind, by fingerprint.
#[derive(Debug, Clone)]
pub struct Failures<O> {
    outcomes: BTreeMap<String, O>,
    order: Vec<String>,
}

impl<O> Default for Failures<O> {
    fn default() -> Self {
        Self {
            outcomes: BTreeMap::new(),
            order: Vec::new(),
        }
    }
}

impl<O: Clone> Failures<O> {
    /// Keeps the outcome if no other failed in this way.
    pub fn note(&mut self, fingerprint: String, outcome: &O) {
        if !self.outcomes.contains_key(&fingerprint) {
            self.order.push(fingerprint.clone());
            self.outcomes.insert(fingerprint, outcome.clone());
        }
    }

    /// Ways to fail.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing failed.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The outcomes, first found first.
    pub fn iter(&self) -> impl Iterator<Item = &O> {
        self.order
            .iter()
            .map(|fingerprint| &self.outcomes[fingerprint])
    }
}

/// What is said of a failure that was neither replayed nor made small nor explained.
pub fn as_found_note(schedule: u64, deviations: usize, seed: u64) -> String {
    format!(
        "seen in schedule {schedule}; there was no time to make it small and to explain it, so its recording holds the whole schedule, with {deviations} deviations from the default order; `raddle replay` explains it as it is; to make it small, explore again with `--seed {seed} --schedules {}` and more `--explain-time`",
        schedule + 1
    )
}

/// What failures are reported as if there is no time to explain them, in the order of discovery.
#[derive(Debug, Clone)]
pub struct Kept<F>(Vec<F>);

impl<F> Default for Kept<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F> Kept<F> {
    /// Keeps those that came since the last time, of the first so many, and tells of each.
    pub fn add_new<O: Clone>(
        &mut self,
        failures: &Failures<O>,
        most: usize,
        make: &mut dyn FnMut(&O) -> F,
        tell: &mut dyn FnMut(&F),
    ) {
        for outcome in failures.iter().take(most).skip(self.0.len()) {
            let found = make(outcome);
            tell(&found);
            self.0.push(found);
        }
        assert_eq!(
            self.0.len(),
            failures.len().min(most),
            "every failure that will be reported is kept"
        );
    }

    /// The one with this number, from 0.
    pub fn get(&self, number: usize) -> &F {
        &self.0[number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_kind_is_kept_in_the_order_of_discovery() {
        let mut failures = Failures::default();
        assert!(failures.is_empty());
        failures.note("z".to_owned(), &1);
        failures.note("a".to_owned(), &2);
        failures.note("z".to_owned(), &3);
        assert_eq!(failures.iter().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(failures.len(), 2);
    }

    #[test]
    fn each_failure_is_kept_and_told_once() {
        let (mut failures, mut kept, mut told) = (Failures::default(), Kept::default(), Vec::new());
        for (name, value) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            failures.note(name.to_owned(), &value);
            kept.add_new(&failures, 2, &mut |value| value * 10, &mut |found| {
                told.push(*found);
            });
        }
        assert_eq!(told, [10, 20]);
        assert_eq!(*kept.get(1), 20);
    }
}
