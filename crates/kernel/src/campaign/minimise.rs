//! Removes switches from a failing schedule until none can go.

use std::time::Duration;

use raddle_sched::{Follow, Shrink, remove_deviations};
use raddle_trace::Schedule;

use super::run::{Outcome, Rules, Watch, run_schedule};
use super::session::Session;

/// Replays that a minimisation may take.
const REPLAYS_MAX: u32 = 400;
/// Steps that a minimisation may take.
const STEPS_MAX: u64 = 3_000_000_000;

/// Runs a given schedule.
pub(super) fn follow(session: &mut Session<'_>, schedule: &Schedule, rules: Rules) -> Outcome {
    let rules = Rules {
        races: None,
        ..rules
    };
    let scheduler = &mut Follow::new(schedule);
    run_schedule(session, scheduler, rules, Watch::default(), || {
        Duration::ZERO
    })
}

/// The smallest schedule found with the same failure, and whether it is known to be minimal. None if the schedule
/// does not fail again at all, which would be our bug.
pub(super) fn minimise(
    session: &mut Session<'_>,
    outcome: &Outcome,
    rules: Rules,
) -> Option<(Outcome, bool)> {
    let mut search = Search {
        session,
        rules,
        fingerprint: outcome.failure.as_ref()?.fingerprint(),
        replays: 0,
        steps: 0,
    };
    let mut best = search.failing(&outcome.drive.schedule)?;
    remove_deviations(&mut search, &mut best);
    Some((best, !search.is_exhausted()))
}

struct Search<'a, 'b> {
    session: &'a mut Session<'b>,
    rules: Rules,
    fingerprint: String,
    replays: u32,
    steps: u64,
}

impl Search<'_, '_> {
    /// The run under a schedule, if it ends in the failure that we are after.
    fn failing(&mut self, schedule: &Schedule) -> Option<Outcome> {
        let outcome = follow(self.session, schedule, self.rules);
        self.replays += 1;
        self.steps += outcome.drive.steps;
        let failure = outcome.failure.as_ref()?;
        (failure.fingerprint() == self.fingerprint).then_some(outcome)
    }
}

impl Shrink for Search<'_, '_> {
    type Run = Outcome;

    fn schedule(run: &Outcome) -> &Schedule {
        &run.drive.schedule
    }

    fn smaller(&mut self, schedule: &Schedule, best: &Outcome) -> Option<Outcome> {
        self.failing(schedule)
            .filter(|found| found.drive.schedule.len() < best.drive.schedule.len())
    }

    fn is_exhausted(&self) -> bool {
        self.replays >= REPLAYS_MAX || self.steps >= STEPS_MAX || self.session.leave.is_over()
    }
}
