//! Where the time of a campaign goes; measured only if the caller lends a clock.

use std::time::{Duration, Instant};

/// A clock of the caller's; this crate has none of its own.
pub type Clock = fn() -> Instant;

/// Time by what it was spent on, of all workers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Going back to the snapshot.
    pub restore: Duration,
    /// Running the program and choosing who goes on.
    pub run: Duration,
    /// Detectors: the events of observed runs, and the judgement of every run.
    pub detect: Duration,
    /// Handing out schedules and taking in what the runs taught.
    pub plan: Duration,
}

impl Spent {
    pub fn total(&self) -> Duration {
        self.restore + self.run + self.detect + self.plan
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.restore += more.restore;
        self.run += more.run;
        self.detect += more.detect;
        self.plan += more.plan;
    }
}

/// Tells how much time has passed since it was last asked; nothing without a clock.
#[derive(Debug)]
pub(crate) struct Stopwatch(Option<(Clock, Instant)>);

impl Stopwatch {
    pub(crate) fn start(clock: Option<Clock>) -> Self {
        Self(clock.map(|clock| (clock, clock())))
    }

    pub(crate) fn lap(&mut self) -> Duration {
        match &mut self.0 {
            None => Duration::ZERO,
            Some((clock, last)) => {
                let now = clock();
                now.saturating_duration_since(std::mem::replace(last, now))
            }
        }
    }
}
