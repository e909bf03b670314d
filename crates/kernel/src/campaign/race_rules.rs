//! What is known of a kernel's functions, and what a data race is likely to be because of it.

use std::collections::BTreeSet;

use raddle_report::words::counted;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::known_functions::{KnownFunctions, fits};
use super::ski_race::{RaceGroup, RacePair};
use crate::symbols::Symbols;

/// Functions that synchronise, and functions that race on purpose.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RaceRules {
    locks: Vec<String>,
    benign: Vec<(String, String)>,
    ordered: Vec<(String, String)>,
}

/// What a race probably is. A guess by its form, to be read in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Two writers, or accesses that can see half of a value.
    Harmful(String),
    /// On purpose, or without effect.
    Benign(String),
    /// Ordered by something that is not seen.
    False(String),
}

impl RaceRules {
    pub fn new(known: &KnownFunctions) -> Self {
        Self {
            locks: known.all_locks(),
            benign: known.all_benign(),
            ordered: known.all_ordered(),
        }
    }

    /// Whether a function's own accesses are synchronisation.
    pub fn is_lock(&self, function: &str) -> bool {
        self.locks.iter().any(|pattern| fits(pattern, function))
    }

    /// Judges a group of pairs; `function` names instructions, and `flags` are pairs that order others.
    pub fn rank(
        &self,
        group: &RaceGroup,
        flags: &BTreeSet<(u64, u64)>,
        function: &dyn Fn(u64) -> String,
    ) -> Rank {
        let (handed_over, open): (Vec<RacePair>, Vec<RacePair>) = group
            .pairs
            .iter()
            .cloned()
            .partition(RacePair::is_handed_over);
        if let ([], Some(by)) = (&open[..], handed_over.iter().find_map(|pair| pair.by)) {
            return Rank::False(format!(
                "each time the second one had read in {} what the first one wrote in {} after its own access: a release store and an acquiring load are plain moves",
                function(by.load.pc()),
                function(by.store.pc())
            ));
        }
        let group = &RaceGroup { pairs: open };
        if let Some(why) = all_known(group, &self.ordered, function) {
            return Rank::False(why);
        }
        if let Some(why) = all_known(group, &self.benign, function) {
            return Rank::Benign(why);
        }
        let torn = |pair: &&RacePair| {
            pair.differs || pair.size > 8 || !pair.addr.is_multiple_of(u64::from(pair.size.max(1)))
        };
        if let Some(pair) = group.pairs.iter().find(torn) {
            return Rank::Harmful(format!(
                "the accesses of {} at {:#x} are of different size or not aligned: one can see half of the other",
                counted(pair.size.into(), "byte"),
                pair.addr
            ));
        }
        let writes = group
            .pairs
            .iter()
            .filter(|pair| pair.first_writes && pair.second_writes);
        let is_counter = |pair: &RacePair| pair.first_updates && pair.second_updates;
        let (counters, plain): (Vec<_>, Vec<_>) = writes.partition(|pair| is_counter(pair));
        if !plain.is_empty() {
            return Rank::Harmful("both write: one of them is lost".to_owned());
        }
        if !counters.is_empty() {
            return Rank::Benign(
                "both add to it in one instruction, as statistics do: a step can be lost"
                    .to_owned(),
            );
        }
        if group.pairs.iter().all(|pair| flags.contains(&pair.key())) {
            return Rank::Benign(
                "one aligned word that hands over what was written before it, as a flag or a pointer does"
                    .to_owned(),
            );
        }
        Rank::Benign("one aligned word: the reader sees the old or the new value".to_owned())
    }
}

/// Why a group is known, if one function of each of its pairs is.
fn all_known(
    group: &RaceGroup,
    known: &[(String, String)],
    function: &dyn Fn(u64) -> String,
) -> Option<String> {
    let whys = group.pairs.iter().map(|pair| {
        let names = [function(pair.first_pc), function(pair.second_pc)];
        names.iter().find_map(|name| {
            let (_, why) = known.iter().find(|(pattern, _)| fits(pattern, name))?;
            Some(format!("{name}: {why}"))
        })
    });
    whys.reduce(|all, one| all.and(one)).flatten()
}

/// Remembers which instructions belong to functions that synchronise.
#[derive(Debug, Default)]
pub(super) struct LockCode {
    known: FxHashMap<u64, bool>,
}

impl LockCode {
    pub(super) fn contains(&mut self, pc: u64, rules: &RaceRules, symbols: &Symbols) -> bool {
        *self.known.entry(pc).or_insert_with(|| {
            symbols
                .name(pc)
                .is_some_and(|named| rules.is_lock(&named.function))
        })
    }
}

#[cfg(test)]
mod tests {
    use raddle_detect::HandOver;
    use raddle_world::Site;

    use super::*;

    fn pair(first_writes: bool, updates: bool, differs: bool) -> RaceGroup {
        RaceGroup {
            pairs: vec![RacePair {
                first_pc: 1,
                second_pc: 2,
                first_writes,
                second_writes: true,
                first_updates: updates,
                second_updates: updates,
                differs,
                addr: 64,
                size: 8,
                count: 1,
                handed_over: 0,
                by: None,
            }],
        }
    }

    #[test]
    fn ranks_by_form() {
        let rules = RaceRules::new(&KnownFunctions::default());
        let rank = |group: &RaceGroup| rules.rank(group, &BTreeSet::new(), &|_| "f".to_owned());
        assert!(
            matches!(rank(&pair(true, false, false)), Rank::Harmful(why) if why.contains("lost"))
        );
        assert!(
            matches!(rank(&pair(true, true, false)), Rank::Benign(why) if why.contains("statistics"))
        );
        assert!(
            matches!(rank(&pair(false, false, false)), Rank::Benign(why) if why.contains("old or the new"))
        );
        assert!(
            matches!(rank(&pair(false, false, true)), Rank::Harmful(why) if why.contains("half"))
        );
        let on_purpose = rules.rank(&pair(true, false, false), &BTreeSet::new(), &|pc| {
            if pc == 1 { "idle_cpu" } else { "f" }.to_owned()
        });
        assert!(matches!(on_purpose, Rank::Benign(why) if why.contains("idle_cpu")));
        let ordered = rules.rank(&pair(true, false, false), &BTreeSet::new(), &|_| {
            "error_entry".to_owned()
        });
        assert!(matches!(ordered, Rank::False(why) if why.contains("stack")));
    }

    /// Only pairs that were seen without a hand-over count; none of these makes it a false alarm.
    #[test]
    fn what_is_handed_over_is_no_race() {
        let rules = RaceRules::new(&KnownFunctions::default());
        let mut group = pair(true, false, false);
        let by = HandOver {
            store: Site::first(3),
            load: Site::first(4),
        };
        (group.pairs[0].count, group.pairs[0].handed_over) = (7, 7);
        group.pairs[0].by = Some(by);
        let rank = |group: &RaceGroup| {
            rules.rank(group, &BTreeSet::from([(1, 2)]), &|pc| format!("f{pc}"))
        };
        assert!(
            matches!(rank(&group), Rank::False(why) if why.contains("read in f4 what the first one wrote in f3"))
        );
        let flag = pair(false, false, false).pairs;
        let with_flag = RaceGroup {
            pairs: [group.pairs.clone(), flag].concat(),
        };
        assert!(matches!(rank(&with_flag), Rank::Benign(why) if why.contains("hands over")));
        group.pairs[0].count = 8;
        assert!(matches!(rank(&group), Rank::Harmful(_)));
    }

    #[test]
    fn lock_code_is_found_by_name() {
        let symbols = Symbols::new(Some(
            "ffffffff81000000 T _stext\nffffffff81000100 t mutex_lock\nffffffff81000200 T do_work\n",
        ));
        let rules = RaceRules::new(&KnownFunctions::default());
        let mut code = LockCode::default();
        assert!(code.contains(0xffff_ffff_8100_0110, &rules, &symbols));
        assert!(!code.contains(0xffff_ffff_8100_0210, &rules, &symbols));
    }
}
