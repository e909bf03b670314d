//! Minimisation: fewer preemptions and fewer deviations, same failure.
//!
//! Two searches take turns until neither helps: delta debugging on the deviations (Zeller and Hildebrandt, TSE
//! 2002), and joining stretches of one context (Jalbert and Sen, FSE 2010). Then orders with few preemptions are
//! tried from below ([`bottom_up`]), and where many preemptions are left, orders near the smallest so far
//! ([`wander`]). The first measure is the number of preemptions, since they are what a
//! reader has to understand; the second the number of deviations.

mod bottom_up;
mod stretches;
mod wander;

use std::collections::BTreeSet;

use bottom_up::{Candidate, Noted, Queue};
use raddle_detect::Failure;
use raddle_sched::{Follow, Scheduler, Shrink, remove_deviations};
use raddle_stdx::Prng;
use raddle_trace::{Limits, Schedule};
use raddle_world::Site;
use stretches::{Follower, Line, Stretch, Written};

use crate::judge::Rules;
use crate::schedule_run::{Outcome, run_schedule};
use crate::session::Session;

/// Replays at most.
const REPLAYS_MAX: u32 = 3_000;
/// Steps of all replays at most.
const STEPS_MAX: u64 = 300_000_000;

/// Replays and steps of the search from below.
const BELOW_REPLAYS_MAX: u32 = 4_000;
const BELOW_STEPS_MAX: u64 = 150_000_000;

/// Replays and steps of the random walk, and the preemptions from which on it is worth its two seconds or so.
const WANDER_REPLAYS_MAX: u32 = 20_000;
const WANDER_STEPS_MAX: u64 = 200_000_000;
const WANDER_PREEMPTIONS: u64 = 6;
/// One of so many orders with a preemption more than the best is gone on from.
const WANDER_UPHILL_ODDS: u64 = 4;
/// After so many replays without a smaller order the walk begins again at the best.
const WANDER_BACK_REPLAYS: u32 = 3_000;

/// While a run that does not end is made small, it counts as hanging after this many times the steps of the default
/// order and as many rounds in which everybody was interrupted for impatience.
const HANG_FACTOR: u64 = 4;
const HANG_ROUNDS: u64 = 2;

/// With fewer preemptions than this nobody moves them about: there is hardly anything to be gained.
const MANY_PREEMPTIONS: u64 = 2;

/// A schedule that was made as small as possible.
#[derive(Debug)]
pub(crate) struct Minimised {
    /// The last failing run, under the schedule as the run itself wrote it down.
    pub(crate) outcome: Outcome,
    /// Switches away from a context that could have gone on.
    pub(crate) preemptions: u64,
    /// Whether nothing more can be taken away.
    pub(crate) is_minimal: bool,
}

/// Replays a schedule.
pub(crate) fn follow(session: &mut Session, schedule: &Schedule, rules: &Rules) -> Outcome {
    run_schedule(session, &mut Follow::new(schedule), rules, false)
}

/// Makes a failing schedule small; `None` if its replay does not even fail.
pub(crate) fn minimise(
    session: &mut Session,
    failing: &Outcome,
    rules: &Rules,
) -> Option<Minimised> {
    if matches!(failing.failure, Some(Failure::Hang { .. })) {
        let impatient = impatient(session, failing, rules);
        let found = minimise_under(session, failing, &impatient);
        // What does not end within the small limit may end within the real one.
        if let Some(mut found) = found {
            let outcome = follow(session, &found.outcome.drive.schedule, rules);
            if matches!(outcome.failure, Some(Failure::Hang { .. })) {
                found.outcome = outcome;
                return Some(found);
            }
        }
    }
    minimise_under(session, failing, rules)
}

/// Rules under which a run counts as hanging much earlier, so that many can be tried and one can be told.
pub(crate) fn impatient(session: &mut Session, failing: &Outcome, rules: &Rules) -> Rules {
    let default = follow(session, &Schedule::default(), rules);
    let rounds = failing.contexts * rules.limits.patience * HANG_ROUNDS;
    let steps = default.drive.steps.saturating_mul(HANG_FACTOR) + rounds;
    Rules {
        limits: Limits {
            steps: steps.min(rules.limits.steps),
            ..rules.limits
        },
        ..rules.clone()
    }
}

fn minimise_under(session: &mut Session, failing: &Outcome, rules: &Rules) -> Option<Minimised> {
    let fingerprint = failing.failure.as_ref()?.fingerprint();
    let mut search = Search {
        session,
        rules,
        fingerprint,
        replays: 0,
        steps: 0,
    };
    let mut best = search.try_schedule(&failing.drive.schedule)?;
    search.shrink(&mut best);
    let is_cut_short = search.is_exhausted();
    let is_smallest = search.below(&mut best);
    if !is_smallest && best.preemptions >= WANDER_PREEMPTIONS {
        search.wander(&mut best);
    }
    (search.replays, search.steps) = (0, 0);
    search.shrink(&mut best);
    Some(Minimised {
        is_minimal: is_smallest || !is_cut_short,
        preemptions: best.preemptions,
        outcome: best.outcome,
    })
}

/// Runs the default order and orders with few switches, those at given places first, until one is as wanted. Gives
/// the number of runs and that run.
pub(crate) fn orders_at(
    session: &mut Session,
    rules: &Rules,
    sites: BTreeSet<(Site, bool)>,
    preemptions_max: u64,
    is_wanted: &dyn Fn(&Outcome) -> bool,
) -> (u64, Option<Outcome>) {
    let below = preemptions_max + 1;
    let mut queue = Queue::new(sites);
    let (mut runs, mut steps) = (0, 0);
    let mut next = Some(Candidate::default_order());
    while let Some(candidate) = next {
        if runs >= u64::from(BELOW_REPLAYS_MAX / 4) || steps >= BELOW_STEPS_MAX {
            break;
        }
        let mut noted = Noted::new(&candidate.schedule);
        let outcome = run_schedule(session, &mut noted, rules, false);
        runs += 1;
        steps += outcome.drive.steps;
        if is_wanted(&outcome) {
            return (runs, Some(outcome));
        }
        queue.grow(&candidate, &noted, below);
        next = queue.next(below);
    }
    (runs, None)
}

/// A run that fails as it should.
struct Failing {
    outcome: Outcome,
    line: Line,
    preemptions: u64,
}

impl Failing {
    /// What is made smaller.
    fn size(&self) -> (u64, usize, u64) {
        (
            self.preemptions,
            self.outcome.drive.schedule.len(),
            self.outcome.drive.switches,
        )
    }
}

struct Search<'a> {
    session: &'a mut Session,
    rules: &'a Rules,
    fingerprint: String,
    replays: u32,
    steps: u64,
}

impl Shrink for Search<'_> {
    type Run = Failing;

    fn schedule(run: &Failing) -> &Schedule {
        &run.outcome.drive.schedule
    }

    fn smaller(&mut self, schedule: &Schedule, best: &Failing) -> Option<Failing> {
        self.try_schedule(schedule)
            .filter(|found| found.size() < best.size())
    }

    fn is_exhausted(&self) -> bool {
        self.replays >= REPLAYS_MAX || self.steps >= STEPS_MAX || self.session.leave.is_over()
    }
}

impl Search<'_> {
    /// Makes an order smaller until no single change does.
    fn shrink(&mut self, best: &mut Failing) {
        loop {
            let before = best.size();
            remove_deviations(self, best);
            self.join_stretches(best);
            if best.preemptions >= MANY_PREEMPTIONS && best.size() == before {
                self.move_preemptions(best);
            }
            if self.is_exhausted() || best.size() == before {
                return;
            }
        }
    }

    /// Tries orders with fewer preemptions than the best; true if all of them were tried.
    fn below(&mut self, best: &mut Failing) -> bool {
        let mut noted = Noted::new(&best.outcome.drive.schedule);
        run_schedule(self.session, &mut noted, self.rules, false);
        let mut queue = Queue::new(noted.into_sites());
        let (mut replays, mut steps) = (0, 0);
        let mut next = Some(Candidate::default_order());
        while let Some(candidate) = next.filter(|c| c.preemptions < best.preemptions) {
            let is_over = self.session.leave.is_over();
            if replays >= BELOW_REPLAYS_MAX || steps >= BELOW_STEPS_MAX || is_over {
                return false;
            }
            let mut noted = Noted::new(&candidate.schedule);
            let before = self.steps;
            let found = self.run(&mut noted);
            replays += 1;
            steps += self.steps - before;
            match found {
                Some(found) if found.size() < best.size() => *best = found,
                _ => queue.grow(&candidate, &noted, best.preemptions),
            }
            next = queue.next(best.preemptions);
        }
        true
    }

    /// Walks at random among orders with hardly more preemptions than the best, until few are left.
    fn wander(&mut self, best: &mut Failing) {
        let mut prng = Prng::new(best.preemptions);
        let mut line = best.line.clone();
        let mut now = best.preemptions;
        let (replays, steps) = (self.replays, self.steps);
        let mut since = replays;
        while best.preemptions >= WANDER_PREEMPTIONS
            && self.replays - replays < WANDER_REPLAYS_MAX
            && self.steps - steps < WANDER_STEPS_MAX
            && !self.session.leave.is_over()
        {
            let candidate = wander::changed(&line, &mut prng);
            if let Some(found) = self.run(Follower::new(&candidate, &line.jumps)) {
                let is_taken = found.preemptions <= now.max(best.preemptions)
                    || found.preemptions == best.preemptions + 1
                        && prng.below(WANDER_UPHILL_ODDS) == 0;
                if is_taken {
                    line = found.line.clone();
                    now = found.preemptions;
                    if found.preemptions < best.preemptions {
                        since = self.replays;
                    }
                    if found.size() < best.size() {
                        *best = found;
                    }
                }
            }
            if self.replays - since > WANDER_BACK_REPLAYS {
                since = self.replays;
                line = best.line.clone();
                now = best.preemptions;
            }
        }
    }

    /// Cuts the list of stretches short, then joins them one by one.
    fn join_stretches(&mut self, best: &mut Failing) {
        let all = best.line.stretches.clone();
        for prefix in stretches::prefixes(&all) {
            if self.improve(best, prefix) || self.is_exhausted() {
                break;
            }
        }
        loop {
            let all = best.line.stretches.clone();
            let mut candidates = stretches::shorter(&all);
            let is_better =
                candidates.any(|candidate| self.is_exhausted() || self.improve(best, &candidate));
            if !is_better || self.is_exhausted() {
                return;
            }
        }
    }

    /// Two changes at once, where no single one helps.
    fn move_preemptions(&mut self, best: &mut Failing) {
        let line = best.line.clone();
        line.neighbours()
            .any(|candidate| self.is_exhausted() || self.improve(best, &candidate));
    }

    fn improve(&mut self, best: &mut Failing, candidate: &[Stretch]) -> bool {
        match self.run(Follower::new(candidate, &best.line.jumps.clone())) {
            Some(found) if found.size() < best.size() => {
                *best = found;
                true
            }
            _ => false,
        }
    }

    fn try_schedule(&mut self, schedule: &Schedule) -> Option<Failing> {
        self.run(Follow::new(schedule))
    }

    /// The run, if it ends in the failure that we are after.
    fn run(&mut self, scheduler: impl Scheduler) -> Option<Failing> {
        let mut written = Written::new(scheduler);
        let outcome = run_schedule(self.session, &mut written, self.rules, false);
        self.replays += 1;
        self.steps += outcome.drive.steps;
        let failure = outcome.failure.as_ref()?;
        (failure.fingerprint() == self.fingerprint).then_some(Failing {
            outcome,
            preemptions: written.preemptions,
            line: written.into_line(),
        })
    }
}
