//! How large the spaces of interleavings are that different criteria ask for (CTrigger, section 3.1).
//!
//! `ALL`: every order of all accesses. `TPAIR`: every order of the accesses of every two threads. `PI`: every two
//! accesses in a row of one context to one place, with every other context that uses the place. `UI`: every access with
//! one before it, if another context uses the place. Only accesses to memory that contexts share count. The first two
//! are beyond all numbers, so they are kept as powers of ten, in thousandths.

use std::collections::BTreeMap;

use raddle_stdx::width::to_u64;
use raddle_world::ContextId;
use serde::{Deserialize, Serialize};

/// The sizes for one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Spaces {
    /// Thousandths of the decimal logarithm.
    pub all: u64,
    pub thread_pairs: u64,
    pub pairs: u64,
    pub unserializable: u64,
}

/// Accesses to shared memory, as they are counted while a run goes on.
#[derive(Debug, Default)]
pub struct Uses {
    /// By context.
    accesses: BTreeMap<ContextId, u64>,
    pairs: u64,
    unserializable: u64,
}

impl Uses {
    /// A place that contexts used so often.
    pub fn add(&mut self, counts: &BTreeMap<ContextId, u64>) {
        let others = to_u64(counts.len()).saturating_sub(1);
        if others == 0 {
            return;
        }
        for (context, count) in counts {
            *self.accesses.entry(*context).or_default() += count;
            let in_a_row = count.saturating_sub(1);
            self.pairs += in_a_row * others;
            self.unserializable += in_a_row;
        }
    }

    pub fn spaces(&self) -> Spaces {
        let counts: Vec<u64> = self.accesses.values().copied().collect();
        let mut before = 0;
        let mut all = 0.0;
        let mut thread_pairs = Vec::new();
        for (index, count) in counts.iter().enumerate() {
            all += binomial(before + count, *count);
            before += count;
            let later = counts[index + 1..].iter();
            thread_pairs.extend(later.map(|other| binomial(count + other, *count)));
        }
        Spaces {
            all: thousandths(all),
            thread_pairs: thousandths(sum(&thread_pairs)),
            pairs: self.pairs,
            unserializable: self.unserializable,
        }
    }
}

/// The decimal logarithm of the number of ways to choose `few` of `many`.
fn binomial(many: u64, few: u64) -> f64 {
    let few = few.min(many - few);
    (0..few)
        .map(|i| as_float(many - i).log10() - as_float(i + 1).log10())
        .sum()
}

/// The decimal logarithm of a sum whose terms are given by theirs.
fn sum(logarithms: &[f64]) -> f64 {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return 0.0;
    }
    let terms = logarithms.iter().map(|one| 10_f64.powf(one - largest));
    largest + terms.sum::<f64>().log10()
}

#[expect(clippy::cast_precision_loss, reason = "only its size matters")]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "logarithms of sizes are neither large nor negative"
)]
fn thousandths(logarithm: f64) -> u64 {
    (logarithm * 1000.0).round() as u64
}
