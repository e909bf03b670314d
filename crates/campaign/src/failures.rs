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
}
