//! The values that each read has found: what programs rely on without saying so.
//!
//! The simplest of the invariants that ConSeq takes from Daikon, learned before every read of memory: the read finds one
//! of a few values. A value that no run of the profile has shown there breaks it.

use std::collections::BTreeSet;

use raddle_world::Site;
use rustc_hash::FxHashMap;

use crate::target::{Kind, Target};

/// A read that finds more values than this has no invariant.
const VALUES_MAX: usize = 4;

/// Values by reading instruction.
#[derive(Debug, Default)]
pub(crate) struct Values {
    of: FxHashMap<Site, BTreeSet<u64>>,
}

impl Values {
    pub(crate) fn note(&mut self, site: Site, value: u64) {
        let known = self.of.entry(site).or_default();
        if known.len() <= VALUES_MAX {
            known.insert(value);
        }
    }

    pub(crate) fn absorb(&mut self, later: Self) {
        for (site, values) in later.of {
            for value in values {
                self.note(site, value);
            }
        }
    }

    /// Whether what was seen leaves a target worth trying.
    pub(crate) fn allow(&self, target: &Target) -> bool {
        let Some((site, value)) = target.gives else {
            return target.kind != Kind::Invariant;
        };
        let known = self.of.get(&site);
        let is_seen = known.is_some_and(|known| known.contains(&value));
        match target.kind {
            // Whoever has found NULL before and went on tests for it.
            Kind::Null => !is_seen,
            Kind::Invariant => known.is_some_and(|known| known.len() <= VALUES_MAX) && !is_seen,
            _ => true,
        }
    }
}
