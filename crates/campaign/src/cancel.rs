//! Ending early: who asked for it decides what is still done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Why to end, the more urgent the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The time for exploring is up: no schedule is run any more, what was found is explained.
    TimeIsUp,
    /// The user wants to see what there is: the same.
    Interrupted,
    /// The time for explaining is up, too: what was found is reported as it is.
    AtOnce,
}

/// Asks a campaign to end; copies are about the same campaign.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Wishes>);

#[derive(Debug, Default)]
struct Wishes {
    urgency: AtomicU8,
    /// The explanations up to this number have taken their share of the time.
    explained: AtomicU64,
}

impl Cancel {
    /// Asks for an end; a less urgent wish changes nothing.
    pub fn ask(&self, urgency: Urgency) {
        self.0.urgency.fetch_max(level(urgency), Ordering::Relaxed);
    }

    /// Asks to leave the explanation of a finding, by its number from 1, and to go on with the next one.
    pub fn skip_explanation(&self, number: u64) {
        self.0.explained.fetch_max(number, Ordering::Relaxed);
    }

    /// Whether an end was asked for, at least as urgently.
    pub fn is_asked(&self, urgency: Urgency) -> bool {
        self.0.urgency.load(Ordering::Relaxed) >= level(urgency)
    }
}

fn level(urgency: Urgency) -> u8 {
    match urgency {
        Urgency::TimeIsUp => 1,
        Urgency::Interrupted => 2,
        Urgency::AtOnce => 3,
    }
}

/// How long runs may go on: until an end is asked for urgently enough.
#[derive(Debug, Clone)]
pub struct Leave {
    cancel: Cancel,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy)]
enum Purpose {
    Explore,
    /// The finding with this number.
    Explain(u64),
}

impl Leave {
    /// To explore.
    pub fn to_explore(cancel: &Cancel) -> Self {
        Self {
            cancel: cancel.clone(),
            purpose: Purpose::Explore,
        }
    }

    /// To explain what was found: the finding with this number, from 1.
    pub fn to_explain(cancel: &Cancel, number: u64) -> Self {
        Self {
            cancel: cancel.clone(),
            purpose: Purpose::Explain(number),
        }
    }

    /// To take as long as it takes.
    pub fn endless() -> Self {
        Self::to_explore(&Cancel::default())
    }

    pub fn is_over(&self) -> bool {
        match self.purpose {
            Purpose::Explore => self.cancel.is_asked(Urgency::TimeIsUp),
            Purpose::Explain(number) => {
                self.cancel.is_asked(Urgency::AtOnce)
                    || self.cancel.0.explained.load(Ordering::Relaxed) >= number
            }
        }
    }

    /// None when it is over, for `?`: what a run that was broken off shows is not what happened.
    pub fn still(&self) -> Option<()> {
        (!self.is_over()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_go_on_when_the_time_is_up() {
        let cancel = Cancel::default();
        let exploring = Leave::to_explore(&cancel);
        let explaining = Leave::to_explain(&cancel, 1);
        assert!(!exploring.is_over());
        cancel.ask(Urgency::Interrupted);
        cancel.ask(Urgency::TimeIsUp);
        assert!(cancel.is_asked(Urgency::Interrupted));
        assert!(exploring.is_over() && !explaining.is_over());
        cancel.ask(Urgency::AtOnce);
        assert!(explaining.is_over() && !Leave::endless().is_over());
    }

    #[test]
    fn one_explanation_can_be_left_for_the_next() {
        let cancel = Cancel::default();
        let [first, second] = [1, 2].map(|number| Leave::to_explain(&cancel, number));
        cancel.skip_explanation(1);
        assert!(first.still().is_none() && second.still().is_some());
    }
}
