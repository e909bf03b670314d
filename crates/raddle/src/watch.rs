//! Keeps an eye on the clock and on Ctrl-C while a campaign runs.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use raddle_campaign::{Cancel, Urgency};
use raddle_report::words::counted;

use crate::interrupt::Interrupt;

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(50);
/// What is left for explanations after Ctrl-C.
const GRACE: Duration = Duration::from_millis(1500);

/// How long a campaign may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// For everything.
    pub(crate) time: Duration,
    /// The part of it that is kept for making small and explaining what was found.
    pub(crate) explaining: Duration,
}

/// Where a campaign is, as far as its time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// Nothing has failed yet: all of the time is for exploring.
    #[default]
    Exploring,
    /// Something has failed: the time for explaining it is kept free.
    Failing,
    /// The n-th of so many findings is made small and explained.
    Explaining { number: u64, of: u64 },
}

/// What the campaign tells its watcher.
#[derive(Debug, Clone, Default)]
pub(crate) struct StageNow(Arc<Mutex<(Stage, Option<Instant>)>>);

impl StageNow {
    pub(crate) fn set(&self, stage: Stage) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.0 != stage {
            *now = (stage, Some(Instant::now()));
        }
    }

    fn get(&self) -> (Stage, Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something that ends when it is asked to: on Ctrl-C, or when the time is up, which depends on how far it is.
pub(crate) fn watched<T>(
    interrupt: &Interrupt,
    budget: Budget,
    act: impl FnOnce(&Cancel, &StageNow) -> T,
) -> T {
    let cancel = Cancel::default();
    let stage = StageNow::default();
    std::thread::scope(|scope| {
        let (busy, idle) = channel::<()>();
        let (watching, watched) = (cancel.clone(), stage.clone());
        scope.spawn(move || {
            let begun = Instant::now();
            let mut asked: Option<Instant> = None;
            while idle.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if interrupt.is_requested() {
                    watching.ask(Urgency::Interrupted);
                    if asked.get_or_insert_with(Instant::now).elapsed() > GRACE {
                        watching.ask(Urgency::AtOnce);
                    }
                }
                let (stage, since) = watched.get();
                let since = since.map_or(Duration::ZERO, |since| since - begun);
                budget.apply(stage, since, begun.elapsed(), &watching);
            }
        });
        let done = act(&cancel, &stage);
        drop(busy);
        done
    })
}

impl Budget {
    /// One part in so many of the time is for explanations, unless the user says otherwise.
    const EXPLAINING_SHARE: u32 = 4;

    /// The same, cut to a share of a larger budget.
    pub(crate) fn at_most(self, share: Duration) -> Self {
        let time = self.time.min(share);
        let explaining = self.explaining.min(time / Self::EXPLAINING_SHARE);
        Self { time, explaining }
    }

    pub(crate) fn of_seconds(time: u64, explaining: Option<u64>) -> Self {
        let time = Duration::from_secs(time);
        let explaining = explaining.map(Duration::from_secs);
        Self {
            time,
            explaining: explaining
                .unwrap_or(time / Self::EXPLAINING_SHARE)
                .min(time),
        }
    }

    /// As long as it takes.
    pub(crate) const ENDLESS: Self = Self {
        time: Duration::MAX,
        explaining: Duration::ZERO,
    };

    /// Asks for what the time demands in a stage that began at `since`.
    fn apply(self, stage: Stage, since: Duration, now: Duration, cancel: &Cancel) {
        let kept = match stage {
            Stage::Exploring => Duration::ZERO,
            Stage::Failing | Stage::Explaining { .. } => self.explaining,
        };
        if now >= self.time.saturating_sub(kept) {
            cancel.ask(Urgency::TimeIsUp);
        }
        if now >= self.time && stage != Stage::Exploring {
            cancel.ask(Urgency::AtOnce);
        }
        // Those that are still to come have their share, too.
        if let Stage::Explaining { number, of } = stage {
            let left = self.time.saturating_sub(since);
            let findings = u32::try_from(of.saturating_sub(number) + 1).unwrap_or(u32::MAX);
            if now.saturating_sub(since) >= left / findings.max(1) {
                cancel.skip_explanation(number);
            }
        }
    }
}

/// What a campaign that ran out of time says of it, behind its other figures.
pub(crate) fn cut_short(dropped: u64, as_found: u64) -> String {
    let mut text = String::new();
    if dropped > 0 {
        text.push_str(&format!(
            "; the last generation, {}, was broken off: it counts nowhere, but what it found is reported",
            counted(dropped, "schedule")
        ));
    }
    if as_found > 0 {
        let are = if as_found == 1 { "is" } else { "are" };
        text.push_str(&format!(
            "; {} {are} not made small or explained: the time for that was used up (--explain-time)",
            counted(as_found, "finding")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use raddle_campaign::Leave;

    use super::*;

    const BUDGET: Budget = Budget {
        time: Duration::from_secs(60),
        explaining: Duration::from_secs(15),
    };

    fn after(stage: Stage, since: u64, now: u64) -> Cancel {
        let cancel = Cancel::default();
        let [since, now] = [since, now].map(Duration::from_secs);
        BUDGET.apply(stage, since, now, &cancel);
        cancel
    }

    #[test]
    fn the_end_of_the_time_is_told() {
        let interrupt = Interrupt::default();
        let budget = Budget {
            time: Duration::ZERO,
            explaining: Duration::ZERO,
        };
        let waits = |cancel: &Cancel, _: &StageNow| {
            while !cancel.is_asked(Urgency::TimeIsUp) {
                std::thread::yield_now();
            }
            cancel.is_asked(Urgency::Interrupted)
        };
        assert!(!watched(&interrupt, budget, waits));
    }

    #[test]
    fn time_for_explanations_is_kept_only_if_there_is_something_to_explain() {
        assert!(!after(Stage::Exploring, 0, 59).is_asked(Urgency::TimeIsUp));
        assert!(after(Stage::Exploring, 0, 60).is_asked(Urgency::TimeIsUp));
        assert!(!after(Stage::Failing, 5, 44).is_asked(Urgency::TimeIsUp));
        assert!(after(Stage::Failing, 5, 45).is_asked(Urgency::TimeIsUp));
        assert!(!after(Stage::Failing, 5, 59).is_asked(Urgency::AtOnce));
        assert!(after(Stage::Failing, 5, 60).is_asked(Urgency::AtOnce));
    }

    #[test]
    fn every_finding_has_its_share_of_what_is_left() {
        let first = Stage::Explaining { number: 1, of: 3 };
        assert!(!Leave::to_explain(&after(first, 45, 49), 1).is_over());
        let late = after(first, 45, 50);
        assert!(Leave::to_explain(&late, 1).is_over());
        assert!(!Leave::to_explain(&late, 2).is_over());
        let last = Stage::Explaining { number: 3, of: 3 };
        assert!(!Leave::to_explain(&after(last, 50, 59), 3).is_over());
    }
}
