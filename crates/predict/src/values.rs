//! The values that each read has found: what programs rely on without saying so.
//!
//! The simplest of the invariants that ConSeq takes from Daikon, learned before every read of memory: the read finds one
//! of a few values. A value that no run of the profile has shown there breaks it. If that is what makes a forced run
//! fail, the invariant is worth stating: it is proposed to the user (thesis of Zhang, section 6.2.3).
//!
//! What is stated must hold in another process, too. Addresses change from one to the next, so of pointers only that
//! they are not NULL is ever stated.

use std::collections::BTreeSet;

use raddle_world::Site;
use rustc_hash::FxHashMap;

use crate::memory_errors::is_pointer;
use crate::target::{Kind, Target};

/// A read that finds more values than this has no invariant.
const VALUES_MAX: usize = 4;

/// Values by reading instruction.
#[derive(Debug, Default)]
pub(crate) struct Values {
    of: FxHashMap<Site, Known>,
}

/// What a read has found.
#[derive(Debug, Default)]
struct Known {
    values: BTreeSet<u64>,
    /// How often it was seen.
    support: u64,
    /// Bytes of the widest of these reads.
    size: u8,
}

impl Known {
    fn has_invariant(&self) -> bool {
        self.values.len() <= VALUES_MAX
    }

    fn note(&mut self, value: u64) {
        if self.has_invariant() {
            self.values.insert(value);
        }
    }

    /// A value as the signed number that so many bytes hold.
    fn signed(&self, value: u64) -> i64 {
        let unused = 64 - 8 * u32::from(self.size.clamp(1, 8));
        (value << unused).cast_signed() >> unused
    }
}

/// What a read has found in every run that ended well, and did not in one that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariant {
    pub read: Site,
    pub holds: Holds,
    /// Reads that it was learned from.
    pub support: u64,
    /// The value that broke it.
    pub broken_by: i64,
}

/// What holds of the value that a read finds, as a signed number: the simplest that tells right from wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    Constant(i64),
    NotZero,
    Range(i64, i64),
    OneOf(Vec<i64>),
}

impl Values {
    pub(crate) fn note(&mut self, site: Site, value: u64, size: u8) {
        let known = self.of.entry(site).or_default();
        known.support += 1;
        known.size = known.size.max(size);
        known.note(value);
    }

    pub(crate) fn absorb(&mut self, later: Self) {
        for (site, other) in later.of {
            let known = self.of.entry(site).or_default();
            known.support += other.support;
            known.size = known.size.max(other.size);
            other.values.into_iter().for_each(|value| known.note(value));
        }
    }

    /// Whether what was seen leaves a target worth trying.
    pub(crate) fn allow(&self, target: &Target) -> bool {
        let Some((site, value)) = target.gives else {
            return target.kind != Kind::Invariant;
        };
        let known = self.of.get(&site);
        let is_seen = known.is_some_and(|known| known.values.contains(&value));
        match target.kind {
            // An instruction that has found NULL before and went on tests for it.
            Kind::Null => !is_seen,
            Kind::Invariant => known.is_some_and(Known::has_invariant) && !is_seen,
            _ => true,
        }
    }

    /// What the other value of a target would break.
    pub(crate) fn broken_by(&self, target: &Target) -> Option<Invariant> {
        let (read, value) = target.gives?;
        let known = self.of.get(&read)?;
        if !known.has_invariant() || known.values.contains(&value) {
            return None;
        }
        let is_address = |value: &u64| known.size == 8 && is_pointer(*value);
        let values: BTreeSet<i64> = known.values.iter().map(|v| known.signed(*v)).collect();
        let (low, high) = (*values.first()?, *values.last()?);
        let broken_by = known.signed(value);
        let holds = if broken_by == 0 && !values.contains(&0) {
            Holds::NotZero
        } else if is_address(&value) || known.values.iter().any(is_address) {
            return None;
        } else if low == high {
            Holds::Constant(low)
        } else if broken_by < low || broken_by > high {
            Holds::Range(low, high)
        } else {
            Holds::OneOf(values.into_iter().collect())
        };
        Some(Invariant {
            read,
            holds,
            support: known.support,
            broken_by,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Rank;

    fn broken(seen: &[u64], size: u8, value: u64) -> Option<Holds> {
        let site = Site::first(0x10);
        let mut values = Values::default();
        seen.iter()
            .for_each(|value| values.note(site, *value, size));
        let target = Target {
            kind: Kind::Invariant,
            rank: Rank::Doubtful,
            ways: Vec::new(),
            sites: Vec::new(),
            gap: 0,
            distance: 0,
            gives: Some((site, value)),
        };
        let invariant = values.broken_by(&target)?;
        assert_eq!(invariant.support, u64::try_from(seen.len()).expect("few"));
        Some(invariant.holds)
    }

    #[test]
    fn the_simplest_invariant_is_proposed() {
        let told = |seen: &[u64], value| broken(seen, 8, value);
        assert_eq!(told(&[5, 5], 7), Some(Holds::Constant(5)));
        assert_eq!(told(&[2, 9, 4], 11), Some(Holds::Range(2, 9)));
        assert_eq!(told(&[2, 9], 5), Some(Holds::OneOf(vec![2, 9])));
        assert_eq!(told(&[2, 9], 9), None, "it was seen");
        assert_eq!(told(&[1, 2, 3, 4, 5], 9), None, "it may be anything");
    }

    #[test]
    fn values_are_signed_numbers_of_the_size_of_the_read() {
        let minus_one = 0xffff_ffff;
        let narrow = broken(&[3, 4], 4, minus_one);
        assert_eq!(narrow, Some(Holds::Range(3, 4)));
        let both = broken(&[minus_one, 4], 4, 9);
        assert_eq!(both, Some(Holds::Range(-1, 4)));
        let byte = broken(&[0xff], 1, 9);
        assert_eq!(byte, Some(Holds::Constant(-1)));
        let wide = broken(&[0xff], 8, 9);
        assert_eq!(wide, Some(Holds::Constant(0xff)));
    }

    #[test]
    fn of_addresses_only_null_is_told() {
        let block = 0x7fff_0000_1000;
        let told = |seen: &[u64], value| broken(seen, 8, value);
        assert_eq!(told(&[block, block + 16], 0), Some(Holds::NotZero));
        assert_eq!(
            told(&[block], block + 16),
            None,
            "the next process has others"
        );
        assert_eq!(told(&[0], block), None);
    }
}
