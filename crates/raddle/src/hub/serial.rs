//! Programs whose runs are compared with serial orders, on workers: each has serial orders of its own, and the director
//! counts how many different histories all of them have seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_explore::Judge;
use raddle_hub::Bench;
use raddle_hub::message::Batch;
use raddle_linearize::{Figures, History, Linearize};
use raddle_linux::{ContentId, Elsewhere};
use raddle_stdx::width::to_u64;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What comparing a history came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Weight {
    is_deviating: bool,
    is_undecided: bool,
}

#[derive(Debug, Default)]
struct Seen {
    /// All histories, by their digests.
    all: BTreeMap<u64, Weight>,
    /// Those of the runs since they were told last.
    lately: BTreeSet<u64>,
}

/// Serial orders, and the histories that were compared with them here and elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Histories {
    oracle: Linearize,
    seen: Arc<Mutex<Seen>>,
}

impl Histories {
    pub(crate) fn of(oracle: Linearize) -> Self {
        Self {
            oracle,
            seen: Arc::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The judge that compares, and remembers what it has compared.
    pub(crate) fn judge(&self) -> Judge {
        let own = self.clone();
        let judge = self.oracle.judge();
        Judge::of_marks(move |result| {
            let key = History::of(result.marks).digest();
            let mut seen = own.seen();
            let before = own.oracle.figures();
            let failure = judge.verdict(result);
            let after = own.oracle.figures();
            if after.histories > before.histories {
                let weight = Weight {
                    is_deviating: after.deviating > before.deviating,
                    is_undecided: after.undecided > before.undecided,
                };
                seen.all.insert(key, weight);
            }
            seen.lately.insert(key);
            failure
        })
    }

    /// What a worker tells of its runs since it told last.
    pub(super) fn tell(&self) -> Value {
        let mut seen = self.seen();
        let lately = std::mem::take(&mut seen.lately);
        let known = lately.into_iter();
        let told: Vec<(u64, Weight)> = known
            .filter_map(|key| Some((key, *seen.all.get(&key)?)))
            .collect();
        serde_json::to_value(told).unwrap_or_default()
    }

    /// What a worker told; something else changes nothing.
    pub(super) fn hear(&self, told: &Value) {
        let told = Vec::<(u64, Weight)>::deserialize(told).unwrap_or_default();
        let mut seen = self.seen();
        for (key, weight) in told {
            seen.all.entry(key).or_insert(weight);
        }
    }

    /// The figures of all who compared.
    pub(crate) fn figures(&self) -> Figures {
        let seen = self.seen();
        let count = |wanted: fn(&Weight) -> bool| {
            to_u64(seen.all.values().filter(|weight| wanted(weight)).count())
        };
        Figures {
            histories: count(|_| true),
            deviating: count(|weight| weight.is_deviating),
            undecided: count(|weight| weight.is_undecided),
        }
    }
}

/// A bench whose judge may ask for files that did not travel: then nothing that it says is sure to be true.
pub(super) struct JudgedBench<B> {
    pub(super) bench: B,
    /// The files that serial orders see.
    pub(super) elsewhere: Arc<Elsewhere>,
}

impl<B: Bench> Bench for JudgedBench<B> {
    fn run(&mut self, batch: &Batch, text: Option<&str>, worker: &str) -> Result<Vec<u8>, String> {
        let told = self.bench.run(batch, text, worker)?;
        match self.elsewhere.missed() {
            None => Ok(told),
            Some(path) => Err(format!(
                "a serial order asked for `{}`, which did not travel with it",
                path.display()
            )),
        }
    }

    fn knows(&self, shared: &ContentId) -> bool {
        self.bench.knows(shared)
    }
}
