//! What is known of a kernel's functions, and what a data race is likely to be because of it.

use rustc_hash::FxHashMap;

use super::known_functions::{KnownFunctions, fits};
use super::ski_race::RaceGroup;
use crate::symbols::Symbols;

/// Functions that synchronise, and functions that race on purpose.
#[derive(Debug, Clone, Default)]
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

    /// Judges a group of pairs; `function` names instructions.
    pub fn rank(&self, group: &RaceGroup, function: &dyn Fn(u64) -> String) -> Rank {
        if let Some(why) = all_known(group, &self.ordered, function) {
            return Rank::False(why);
        }
        if let Some(why) = all_known(group, &self.benign, function) {
            return Rank::Benign(why);
        }
        let torn = |pair: &&super::ski_race::RacePair| {
            pair.differs || pair.size > 8 || !pair.addr.is_multiple_of(u64::from(pair.size.max(1)))
        };
        if let Some(pair) = group.pairs.iter().find(torn) {
            return Rank::Harmful(format!(
                "the accesses of {} bytes at {:#x} are of different size or not aligned: one can see half of the other",
                pair.size, pair.addr
            ));
        }
        let writes = group
            .pairs
            .iter()
            .filter(|pair| pair.first_writes && pair.second_writes);
        let is_counter =
            |pair: &super::ski_race::RacePair| pair.first_updates && pair.second_updates;
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
    use super::super::ski_race::RacePair;
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
            }],
        }
    }

    #[test]
    fn ranks_by_form() {
        let rules = RaceRules::new(&KnownFunctions::default());
        let rank = |group: &RaceGroup| rules.rank(group, &|_| "f".to_owned());
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
        let on_purpose = rules.rank(&pair(true, false, false), &|pc| {
            if pc == 1 { "idle_cpu" } else { "f" }.to_owned()
        });
        assert!(matches!(on_purpose, Rank::Benign(why) if why.contains("idle_cpu")));
        let ordered = rules.rank(&pair(true, false, false), &|_| "error_entry".to_owned());
        assert!(matches!(ordered, Rank::False(why) if why.contains("stack")));
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
