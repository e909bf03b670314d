//! Minimisation: fewer deviations, same failure (delta debugging: Zeller and Hildebrandt, TSE 2002).

use raddle_sched::Follow;
use raddle_trace::Schedule;

use crate::schedule_run::{Outcome, Rules, run_schedule};
use crate::session::Session;

/// Replays at most.
const REPLAYS_MAX: u32 = 3_000;
/// Steps of all replays at most.
const STEPS_MAX: u64 = 2_000_000_000;

/// A schedule that was made as small as possible.
#[derive(Debug)]
pub(crate) struct Minimised {
    /// The last failing run, under the schedule as the run itself wrote it down.
    pub(crate) outcome: Outcome,
    /// Whether nothing more can be taken away.
    pub(crate) is_minimal: bool,
}

/// Replays a schedule.
pub(crate) fn follow(session: &mut Session, schedule: &Schedule, rules: Rules) -> Outcome {
    run_schedule(session, &mut Follow::new(schedule), rules, false)
}

/// Takes deviations away as long as the failure stays; `None` if the replay does not even fail.
pub(crate) fn minimise(
    session: &mut Session,
    failing: &Outcome,
    rules: Rules,
) -> Option<Minimised> {
    let fingerprint = failing.failure.as_ref()?.fingerprint();
    let mut search = Search {
        session,
        rules,
        fingerprint,
        replays: 0,
        steps: 0,
    };
    let mut best = search.try_schedule(&failing.drive.schedule)?;
    let mut chunk = best.drive.schedule.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed_any = false;
        while at < best.drive.schedule.len() {
            if search.is_exhausted() {
                return Some(Minimised {
                    outcome: best,
                    is_minimal: false,
                });
            }
            let end = (at + chunk).min(best.drive.schedule.len());
            let candidate = best.drive.schedule.without(at..end);
            match search.try_schedule(&candidate) {
                Some(outcome) if outcome.drive.schedule.len() < best.drive.schedule.len() => {
                    best = outcome;
                    removed_any = true;
                }
                _ => at = end,
            }
        }
        if chunk > 1 {
            chunk = chunk.div_ceil(2);
        } else if !removed_any {
            return Some(Minimised {
                outcome: best,
                is_minimal: true,
            });
        }
    }
}

struct Search<'a> {
    session: &'a mut Session,
    rules: Rules,
    fingerprint: String,
    replays: u32,
    steps: u64,
}

impl Search<'_> {
    fn is_exhausted(&self) -> bool {
        self.replays >= REPLAYS_MAX || self.steps >= STEPS_MAX
    }

    /// The outcome, if it is the failure we are after.
    fn try_schedule(&mut self, schedule: &Schedule) -> Option<Outcome> {
        let outcome = follow(self.session, schedule, self.rules);
        self.replays += 1;
        self.steps += outcome.drive.steps;
        let failure = outcome.failure.as_ref()?;
        (failure.fingerprint() == self.fingerprint).then_some(outcome)
    }
}
