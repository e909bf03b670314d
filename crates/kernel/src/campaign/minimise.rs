//! Removes switches from a failing schedule until none can go.

use std::time::Duration;

use raddle_sched::Follow;
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
    let fingerprint = outcome.failure.as_ref()?.fingerprint();
    let mut replays = 0;
    let mut steps = 0;
    let mut attempt = |session: &mut Session<'_>, schedule: &Schedule| {
        replays += 1;
        let tried = follow(session, schedule, rules);
        steps += tried.drive.steps;
        let is_same = tried
            .failure
            .as_ref()
            .is_some_and(|failure| failure.fingerprint() == fingerprint);
        let is_exhausted = replays >= REPLAYS_MAX || steps >= STEPS_MAX;
        (is_same.then_some(tried), is_exhausted)
    };
    let (mut best, mut exhausted) = match attempt(session, &outcome.drive.schedule) {
        (Some(best), exhausted) => (best, exhausted),
        (None, _) => return None,
    };
    let mut chunk = best.drive.schedule.len().div_ceil(2);
    while chunk > 0 && !exhausted {
        let mut at = 0;
        let mut removed = false;
        while at < best.drive.schedule.len() && !exhausted {
            let end = (at + chunk).min(best.drive.schedule.len());
            let (found, is_exhausted) = attempt(session, &best.drive.schedule.without(at..end));
            exhausted = is_exhausted;
            match found {
                Some(smaller) if smaller.drive.schedule.len() < best.drive.schedule.len() => {
                    best = smaller;
                    removed = true;
                }
                _ => at = end,
            }
        }
        if chunk == 1 && !removed {
            return Some((best, true));
        }
        if chunk > 1 || !removed {
            chunk /= 2;
        }
    }
    let is_minimal = !exhausted;
    Some((best, is_minimal))
}
