//! What is wrong with runs, whatever world they were made in: each history is judged once.

use std::collections::BTreeMap;

use raddle_detect::NotSerial;
use raddle_trace::SerialRules;

use crate::compare::Comparison;
use crate::history::History;
use crate::orders::{Orders, RunSerially};
use crate::search::{Outcome, search};
use crate::slow::{slowest, too_slow};
use crate::verdict::not_serial;

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Runs that differ in results, state or which operations overlapped.
    pub histories: u64,
    /// Those that no serial order explains.
    pub deviating: u64,
    /// Those with too many serial orders to say.
    pub undecided: u64,
}

/// Serial orders and what they say about the runs so far.
#[derive(Debug)]
pub(crate) struct Verdicts<R> {
    orders: Orders<R>,
    comparison: Comparison,
    /// Verdicts by the digests of histories: most schedules give the same.
    known: BTreeMap<u64, Known>,
    figures: Figures,
    /// How many times the steps of its slowest serial run an operation may take.
    slower_than: Option<u64>,
}

/// What is known of the runs with one history.
#[derive(Debug, Clone)]
struct Known {
    verdict: Option<Box<NotSerial>>,
    /// The steps of each operation in its slowest serial order, if they were asked for and could be had.
    slowest: Option<Vec<u64>>,
}

impl<R: RunSerially> Verdicts<R> {
    pub(crate) fn new(runner: R, comparison: Comparison, rules: &SerialRules) -> Self {
        Self {
            orders: Orders::new(runner),
            comparison,
            known: BTreeMap::new(),
            figures: Figures::default(),
            slower_than: rules.slower_than,
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        self.figures
    }

    /// What is wrong with a run that did this; nothing if some serial order explains it.
    pub(crate) fn verdict(&mut self, history: &History) -> Option<Box<NotSerial>> {
        let key = history.digest();
        if !self.known.contains_key(&key) {
            let known = self.compare(history);
            self.known.insert(key, known);
        }
        let known = self.known.get(&key)?;
        if known.verdict.is_some() {
            return known.verdict.clone();
        }
        // How long operations take is no part of a history.
        let slow = too_slow(history, known.slowest.as_ref()?, self.slower_than?)?;
        Some(Box::new(slow))
    }

    fn compare(&mut self, history: &History) -> Known {
        let outcome = search(history, &mut self.orders, &self.comparison);
        let verdict = not_serial(history, &outcome, &mut self.orders, &self.comparison);
        let verdict = verdict.map(Box::new);
        self.figures.histories += 1;
        self.figures.deviating += u64::from(verdict.is_some());
        self.figures.undecided += u64::from(outcome == Outcome::GaveUp);
        let asks = self.slower_than.is_some() && verdict.is_none();
        Known {
            slowest: asks.then(|| slowest(history, &mut self.orders)).flatten(),
            verdict,
        }
    }
}
