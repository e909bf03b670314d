//! Ending early: who asked for it decides what is still done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Why to end, the more urgent the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The time is up: no schedule is run any more, what was found is explained.
    TimeIsUp,
    /// Somebody wants to see what there is: the same.
    Interrupted,
    /// Somebody has waited long enough: nothing more is explained, either.
    AtOnce,
}

/// Asks a campaign to end; copies are about the same campaign.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// Asks for an end; a less urgent wish changes nothing.
    pub fn ask(&self, urgency: Urgency) {
        self.0.fetch_max(level(urgency), Ordering::Relaxed);
    }

    /// Whether somebody has asked for an end at least as urgently.
    pub fn is_asked(&self, urgency: Urgency) -> bool {
        self.0.load(Ordering::Relaxed) >= level(urgency)
    }
}

fn level(urgency: Urgency) -> u8 {
    match urgency {
        Urgency::TimeIsUp => 1,
        Urgency::Interrupted => 2,
        Urgency::AtOnce => 3,
    }
}

/// How long runs may go on: until somebody asks for an end urgently enough.
#[derive(Debug, Clone)]
pub(crate) struct Leave {
    cancel: Cancel,
    until: Urgency,
}

impl Leave {
    /// To explore.
    pub(crate) fn to_explore(cancel: &Cancel) -> Self {
        let (cancel, until) = (cancel.clone(), Urgency::TimeIsUp);
        Self { cancel, until }
    }

    /// To explain what was found.
    pub(crate) fn to_explain(cancel: &Cancel) -> Self {
        let (cancel, until) = (cancel.clone(), Urgency::AtOnce);
        Self { cancel, until }
    }

    /// To take as long as it takes.
    pub(crate) fn endless() -> Self {
        Self::to_explain(&Cancel::default())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.cancel.is_asked(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_go_on_when_the_time_is_up() {
        let cancel = Cancel::default();
        let (exploring, explaining) = (Leave::to_explore(&cancel), Leave::to_explain(&cancel));
        assert!(!exploring.is_over());
        cancel.ask(Urgency::Interrupted);
        cancel.ask(Urgency::TimeIsUp);
        assert!(cancel.is_asked(Urgency::Interrupted));
        assert!(exploring.is_over() && !explaining.is_over());
        cancel.ask(Urgency::AtOnce);
        assert!(explaining.is_over() && !Leave::endless().is_over());
    }
}
