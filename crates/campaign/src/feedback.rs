//! What reads-from guidance remembers: pairs seen, pairs that might exist, abstract schedules worth mutating.

use std::collections::{BTreeMap, BTreeSet};

use raddle_sched::{AbstractSchedule, ReadsFromPair, Wish, reads_from};
use raddle_stdx::Prng;
use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::Site;

/// Abstract schedules kept.
const SEEDS_MAX: usize = 512;
/// Pairs that are thought possible.
const POSSIBLE_MAX: usize = 4096;
/// The latest abstract schedules, from which half of the parents come.
const RECENT: u64 = 8;

/// The state of the feedback loop.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    /// Pairs with the number of runs that showed them.
    seen: BTreeMap<ReadsFromPair, u64>,
    seeds: Vec<AbstractSchedule>,
    writers: BTreeSet<Site>,
    groups: BTreeSet<Vec<Site>>,
}

/// What jobs of a generation draw from.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    seen: Vec<ReadsFromPair>,
    possible: Vec<ReadsFromPair>,
}

impl Feedback {
    /// Takes a guided run into account. A pair never seen before makes the run's wishes worth keeping, together
    /// with the pair itself.
    pub(crate) fn note(&mut self, pairs: &[ReadsFromPair], wishes: &[Wish]) {
        let mut fresh = Vec::new();
        for pair in pairs {
            let count = self.seen.entry(*pair).or_default();
            if *count == 0 {
                fresh.push(Wish {
                    pair: *pair,
                    is_wanted: true,
                });
            }
            *count += 1;
        }
        if fresh.is_empty() || self.seeds.len() >= SEEDS_MAX {
            return;
        }
        fresh.truncate(2);
        let mut seed = wishes.to_vec();
        for wish in fresh {
            if !seed.contains(&wish) {
                seed.push(wish);
            }
        }
        self.seeds.push(seed);
    }

    /// Learns which instructions meet, and which of them write.
    pub(crate) fn learn(&mut self, group: &[Site], writers: &BTreeSet<Site>) {
        if !self.groups.contains(group) {
            self.groups.insert(group.to_vec());
        }
        let new = group.iter().filter(|site| writers.contains(site));
        self.writers.extend(new);
    }

    /// What the next generation draws from: pairs that occurred seldom, and pairs that never did.
    pub(crate) fn pool(&self) -> Pool {
        let mut possible = BTreeSet::new();
        for group in &self.groups {
            for read in group {
                let writers = group.iter().filter(|site| self.writers.contains(site));
                for write in writers.chain([&Site::NOWHERE]) {
                    let pair = (*write, *read);
                    if possible.len() < POSSIBLE_MAX && !self.seen.contains_key(&pair) {
                        possible.insert(pair);
                    }
                }
            }
        }
        let mut seen: Vec<(u64, ReadsFromPair)> = self
            .seen
            .iter()
            .map(|(pair, count)| (*count, *pair))
            .collect();
        seen.sort_unstable();
        seen.truncate(seen.len().div_ceil(2).max(16));
        Pool {
            seen: seen.into_iter().map(|(_, pair)| pair).collect(),
            possible: possible.into_iter().collect(),
        }
    }

    /// A new abstract schedule.
    pub(crate) fn wishes(&self, seed: u64, pool: &Pool) -> AbstractSchedule {
        let mut prng = Prng::new(Prng::derive_seed(seed, 2));
        let count = to_u64(self.seeds.len());
        let parent: &[Wish] = if count == 0 || prng.chance(1, 4) {
            &[]
        } else if prng.chance(1, 2) {
            &self.seeds[to_usize(count - 1 - prng.below(RECENT.min(count)))]
        } else {
            &self.seeds[to_usize(prng.below(count))]
        };
        reads_from::mutate(&mut prng, parent, &pool.seen, &pool.possible)
    }
}
