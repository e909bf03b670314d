//! Interleaving coverage: which unserializable interleavings there are, which of them synchronisation allows, and which
//! of them happened.
//!
//! CTrigger's criterion UI (Park, Lu, Zhou: ASPLOS 2009, sections 3.1 and 3.3): one property for each instruction `C`
//! that accesses memory which its context has accessed before (`P`) and another context accesses too (`R`). It is
//! covered once some instance of `C` had an `R` between itself and its `P` so that no serial order gives the same. It is
//! feasible if no order puts `R` before `P` or behind `C`, and if `P` and `C` do not lie in one critical section whose
//! lock `R` holds. [`Spaces`] has the sizes of the larger criteria, for comparison.

mod spaces;

use std::collections::BTreeMap;

use raddle_trace::facts::{MappedGranule, touched_bytes};
use raddle_trace::{Facts, Needs, Observation, Observer};
use raddle_world::{Access, AccessKind, ContextId, Event, EventKind, Site};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::interleaving::{Case, Triple};
pub use spaces::{Spaces, Uses};

/// Accesses of different kinds that are kept for eight bytes; as many as there are bits in a mask.
const TOUCHES_MAX: usize = 64;
/// Pairs of accesses of one context that are kept for eight bytes.
const PAIRS_MAX: usize = 64;

/// How far an interleaving has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// There are three accesses for it, but order or a critical section forbids it.
    Potential,
    /// Nothing that is known forbids it.
    Feasible,
    /// It has happened.
    Covered,
}

/// What runs have covered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Covered {
    /// By the instruction that ends the interleaving.
    pub sites: BTreeMap<Site, Reach>,
    /// Of the largest run.
    pub spaces: Spaces,
}

impl Covered {
    /// Takes in what another run has covered.
    pub fn absorb(&mut self, other: Self) {
        for (site, reach) in other.sites {
            self.note(site, reach);
        }
        self.spaces = self.spaces.max(other.spaces);
    }

    fn note(&mut self, site: Site, reach: Reach) {
        let known = self.sites.entry(site).or_insert(reach);
        *known = (*known).max(reach);
    }
}

/// Watches one run.
#[derive(Debug, Default)]
pub struct Coverage {
    granules: FxHashMap<MappedGranule, Place>,
    covered: BTreeMap<Site, Reach>,
    uses: Uses,
    number: u64,
}

/// One access, as far as it matters here.
#[derive(Debug, Clone)]
struct Touch {
    context: ContextId,
    site: Site,
    bytes: u8,
    reads: bool,
    writes: bool,
    number: u64,
    clock: u32,
    /// Lock and serial number of each critical section.
    sections: Vec<(u64, u64)>,
    /// Touches of others, by their index, that no order puts before this one.
    concurrent: u64,
}

impl Touch {
    fn is_alike(&self, other: &Self) -> bool {
        let key = |touch: &Self| (touch.context, touch.site, touch.bytes, touch.writes);
        key(self) == key(other)
    }

    /// Whether this access and a later one of its context lie in one critical section whose lock a third one holds.
    fn is_protected(&self, second: &Self, remote: &Self) -> bool {
        let mut shared = self.sections.iter();
        shared.any(|section| {
            let is_one = second.sections.contains(section);
            is_one && remote.sections.iter().any(|(lock, _)| *lock == section.0)
        })
    }
}

/// Eight bytes.
#[derive(Debug, Default)]
struct Place {
    /// The latest of each kind.
    touches: Vec<Touch>,
    /// The latest of each context.
    last: Vec<Touch>,
    pairs: Vec<(Touch, Touch)>,
    /// Accesses of each context.
    counts: BTreeMap<ContextId, u64>,
}

fn is_unserializable(first: &Touch, remote: &Touch, second: &Touch) -> bool {
    let triple = Triple {
        first_writes: first.writes,
        remote_writes: remote.writes,
        second_reads: second.reads,
        second_writes: second.writes,
    };
    let bytes = first.bytes & remote.bytes & second.bytes;
    first.context != remote.context && bytes != 0 && Case::of(triple).is_some()
}

impl Place {
    fn take(&mut self, mut now: Touch, facts: &Facts, covered: &mut BTreeMap<Site, Reach>) {
        *self.counts.entry(now.context).or_default() += 1;
        for (index, other) in self.touches.iter().enumerate() {
            let is_ordered = facts.is_ordered(now.context, other.context, other.clock);
            if other.context != now.context && !is_ordered {
                now.concurrent |= 1 << index;
            }
        }
        let mut note = |site: Site, reach: Reach| {
            let known = covered.entry(site).or_insert(reach);
            *known = (*known).max(reach);
        };
        let own = self.last.iter();
        let first = own
            .filter(|touch| touch.context == now.context && touch.bytes & now.bytes != 0)
            .max_by_key(|touch| touch.number);
        if let Some(first) = first {
            for (index, remote) in self.touches.iter().enumerate() {
                if is_unserializable(first, remote, &now) {
                    let is_concurrent = first.concurrent >> index & 1 == 1;
                    note(now.site, reach(first, remote, &now, is_concurrent));
                }
            }
        }
        for (first, second) in &self.pairs {
            if is_unserializable(first, &now, second) {
                let is_ordered = facts.is_ordered(now.context, second.context, second.clock);
                note(second.site, reach(first, &now, second, !is_ordered));
            }
        }
        let pair = first.map(|first| (first.clone(), now.clone()));
        self.keep(now, pair);
    }

    fn keep(&mut self, now: Touch, pair: Option<(Touch, Touch)>) {
        if let Some(pair) = pair {
            let is_known = |(p, c): &(Touch, Touch)| p.is_alike(&pair.0) && c.is_alike(&pair.1);
            match self.pairs.iter().position(is_known) {
                Some(known) => self.pairs[known] = pair,
                None if self.pairs.len() < PAIRS_MAX => self.pairs.push(pair),
                None => {}
            }
        }
        let same = |touch: &&mut Touch| (touch.context, touch.bytes) == (now.context, now.bytes);
        match self.last.iter_mut().find(same) {
            Some(known) => *known = now.clone(),
            None => self.last.push(now.clone()),
        }
        let known = self.touches.iter().position(|touch| touch.is_alike(&now));
        match known {
            Some(known) => self.touches[known] = now,
            None if self.touches.len() < TOUCHES_MAX => self.touches.push(now),
            None => {}
        }
    }
}

/// How far three accesses have come that no serial order gives.
fn reach(first: &Touch, remote: &Touch, second: &Touch, is_concurrent: bool) -> Reach {
    if first.number < remote.number && remote.number < second.number {
        Reach::Covered
    } else if is_concurrent && !first.is_protected(second, remote) {
        Reach::Feasible
    } else {
        Reach::Potential
    }
}

impl Coverage {
    /// What the run has covered.
    pub fn finish(mut self) -> Covered {
        for place in std::mem::take(&mut self.granules).into_values() {
            self.uses.add(&place.counts);
        }
        Covered {
            sites: self.covered,
            spaces: self.uses.spaces(),
        }
    }

    fn access(&mut self, event: &Event, access: &Access, facts: &Facts) {
        self.number += 1;
        let held = facts.held(event.context).iter();
        let now = Touch {
            context: event.context,
            site: event.site,
            bytes: touched_bytes(access),
            reads: access.how != AccessKind::Write,
            writes: access.how.writes(),
            number: self.number,
            clock: facts.clock(),
            sections: held.map(|section| (section.lock, section.serial)).collect(),
            concurrent: 0,
        };
        let place = self.granules.entry(MappedGranule::of(access)).or_default();
        place.take(now, facts, &mut self.covered);
    }

    /// Memory is something else from now on.
    fn forget(&mut self, addr: u64, size: u64, facts: &Facts) {
        for granule in facts.granules(addr, size) {
            if let Some(place) = self.granules.remove(&granule) {
                self.uses.add(&place.counts);
            }
        }
    }
}

impl Observer for Coverage {
    fn needs(&self) -> Needs {
        Needs::of(Observation::Addresses)
    }

    fn event(&mut self, event: &Event, facts: &Facts) {
        match &event.kind {
            EventKind::Access(access) => {
                let is_data = facts.is_data();
                for piece in access.pieces() {
                    // A word that is a lock has its own meaning.
                    if is_data || !facts.was_lock(&piece) {
                        self.access(event, &piece, facts);
                    }
                }
            }
            EventKind::Alloc { addr, size } => self.forget(*addr, *size, facts),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
