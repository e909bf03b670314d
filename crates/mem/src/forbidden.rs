//! Bytes of an address space that the program must not touch: freed blocks, red zones.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of addresses as ranges that neither overlap nor touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Forbidden {
    /// End of each range, by its start.
    ranges: BTreeMap<u64, u64>,
}

impl Forbidden {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether any byte of a range is in the set.
    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        let before = self.ranges.range(..range.end).next_back();
        before.is_some_and(|(_, end)| *end > range.start)
    }

    /// The first byte of a range that is in the set.
    pub(crate) fn first_in(&self, range: &Range<u64>) -> Option<u64> {
        let before = self.ranges.range(..=range.start).next_back();
        if before.is_some_and(|(_, end)| *end > range.start) {
            return (!range.is_empty()).then_some(range.start);
        }
        let mut inside = self.ranges.range(range.start..range.end.max(range.start));
        inside.next().map(|(start, _)| *start)
    }

    pub(crate) fn insert(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let touching: Vec<(u64, u64)> = self
            .ranges
            .range(..=range.end)
            .rev()
            .take_while(|(_, end)| **end >= range.start)
            .map(|(start, end)| (*start, *end))
            .collect();
        for (start, end) in touching {
            self.ranges.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.ranges.insert(range.start, range.end);
    }

    pub(crate) fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        let overlapping: Vec<(u64, u64)> = self
            .ranges
            .range(..range.end)
            .rev()
            .take_while(|(_, end)| **end > range.start)
            .map(|(start, end)| (*start, *end))
            .collect();
        for (start, end) in overlapping {
            self.ranges.remove(&start);
            if start < range.start {
                self.ranges.insert(start, range.start);
            }
            if end > range.end {
                self.ranges.insert(range.end, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_cut() {
        let mut set = Forbidden::default();
        set.insert(10..20);
        set.insert(30..40);
        set.insert(20..30);
        assert_eq!(set.ranges, BTreeMap::from([(10, 40)]));
        set.remove(&(15..35));
        assert_eq!(set.ranges, BTreeMap::from([(10, 15), (35, 40)]));
        assert!(set.overlaps(&(14..16)));
        assert!(!set.overlaps(&(15..35)));
        assert!(set.overlaps(&(0..100)));
        let first_in = |range| set.first_in(&range);
        assert_eq!(first_in(0..100), Some(10));
        assert_eq!(first_in(12..13), Some(12));
        assert_eq!(first_in(15..36), Some(35));
        assert_eq!(
            [first_in(0..10), first_in(15..35), first_in(12..12)],
            [None; 3]
        );
        set.remove(&(0..100));
        assert!(set.is_empty());
    }
}
