//! The values that each read has found: what programs rely on without saying so.
//!
//! The simplest of the invariants that ConSeq takes from Daikon, learned before every read of memory: the read finds one
//! of a few values. A value that no run of the profile has shown there breaks it. If that is what makes a forced run
//! fail, the invariant is worth stating: it is proposed to the user (thesis of Zhang, section 6.2.3).

use std::collections::BTreeSet;
use std::fmt;

use raddle_world::Site;
use rustc_hash::FxHashMap;

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
}

/// What a read has found in every run that ended well, and did not in one that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariant {
    pub read: Site,
    pub holds: Holds,
    /// Reads that it was learned from.
    pub support: u64,
    /// The value that broke it.
    pub broken_by: u64,
}

/// What holds of the value that a read finds, the simplest that tells right from wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    Constant(u64),
    NotZero,
    Range(u64, u64),
    OneOf(Vec<u64>),
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "value == {value:#x}"),
            Self::NotZero => f.write_str("value != 0"),
            Self::Range(low, high) => write!(f, "value >= {low:#x} && value <= {high:#x}"),
            Self::OneOf(values) => {
                let each = values.iter().map(|value| format!("value == {value:#x}"));
                f.write_str(&each.collect::<Vec<_>>().join(" || "))
            }
        }
    }
}

impl Values {
    pub(crate) fn note(&mut self, site: Site, value: u64) {
        let known = self.of.entry(site).or_default();
        known.support += 1;
        known.note(value);
    }

    pub(crate) fn absorb(&mut self, later: Self) {
        for (site, other) in later.of {
            let known = self.of.entry(site).or_default();
            known.support += other.support;
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
            // Whoever has found NULL before and went on tests for it.
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
        let (low, high) = (*known.values.first()?, *known.values.last()?);
        let holds = if value == 0 && low != 0 {
            Holds::NotZero
        } else if low == high {
            Holds::Constant(low)
        } else if value < low || value > high {
            Holds::Range(low, high)
        } else {
            Holds::OneOf(known.values.iter().copied().collect())
        };
        Some(Invariant {
            read,
            holds,
            support: known.support,
            broken_by: value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Rank;

    fn broken(seen: &[u64], value: u64) -> Option<String> {
        let site = Site::first(0x10);
        let mut values = Values::default();
        seen.iter().for_each(|value| values.note(site, *value));
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
        Some(invariant.holds.to_string())
    }

    #[test]
    fn the_simplest_invariant_is_proposed() {
        let told = |seen: &[u64], value| broken(seen, value).unwrap_or_default();
        assert_eq!(told(&[5, 5], 7), "value == 0x5");
        assert_eq!(told(&[0x7000, 0x7010], 0), "value != 0");
        assert_eq!(told(&[2, 9, 4], 11), "value >= 0x2 && value <= 0x9");
        assert_eq!(told(&[2, 9], 5), "value == 0x2 || value == 0x9");
        assert_eq!(broken(&[2, 9], 9), None, "it was seen");
        assert_eq!(broken(&[1, 2, 3, 4, 5], 9), None, "it may be anything");
    }
}
