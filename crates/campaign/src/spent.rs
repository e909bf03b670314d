//! What the schedules of a campaign cost; time is measured only if the caller lends a clock.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A clock of the caller's; this crate has none of its own.
pub type Clock = fn() -> Instant;

/// What was spent, of all workers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Going back to the snapshot.
    pub restore: Duration,
    /// Running the guest and choosing who goes on.
    pub run: Duration,
    /// Detectors: the events of observed runs, and the judgement of every run.
    pub detect: Duration,
    /// Handing out schedules and taking in what the runs taught.
    pub plan: Duration,
    /// Instructions of the guest, those of its own checks among them, where the world counts them.
    pub instructions: u64,
    /// Pages of memory that were brought back, where the world counts them.
    pub pages: u64,
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
        self.instructions += more.instructions;
        self.pages += more.pages;
    }
}

/// Tells how much time has passed since it was last asked; nothing without a clock.
#[derive(Debug)]
pub struct Stopwatch(Option<(Clock, Instant)>);

impl Stopwatch {
    pub fn start(clock: Option<Clock>) -> Self {
        Self(clock.map(|clock| (clock, clock())))
    }

    pub fn lap(&mut self) -> Duration {
        match &mut self.0 {
            None => Duration::ZERO,
            Some((clock, last)) => {
                let now = clock();
                now.saturating_duration_since(std::mem::replace(last, now))
            }
        }
    }
}
