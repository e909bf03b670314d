//! Minimisation: fewer preemptions and fewer deviations, same failure.
//!
//! Two searches take turns until neither helps: delta debugging on the deviations (Zeller and Hildebrandt, TSE
//! 2002), and joining stretches of one context (Jalbert and Sen, FSE 2010). Then orders with few preemptions are
//! tried from below (`bottom_up`), and where many preemptions are left, orders near the smallest so far
//! (`wander`). The first measure is the number of preemptions, since they are what a
//! reader has to understand; the second the number of deviations.

mod bottom_up;
mod stretches;
mod wander;

use std::collections::BTreeSet;

use bottom_up::{Candidate, Noted, Queue};
use raddle_sched::{Follow, Scheduler, Shrink, remove_deviations};
use raddle_stdx::Prng;
use raddle_trace::{Limits, Schedule};
use raddle_world::Site;
use stretches::{Follower, Line, Stretch, Written};

use crate::findings::follow;
use crate::subject::{OutcomeOf, Rules as _, Run, RunOf, Stage, Symptom as _, Watch};

/// How many runs a search may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub replays: u32,
    /// Of all replays together.
    pub steps: u64,
}

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// To take away and to join.
    pub shrink: Budget,
    /// For orders with few preemptions, from below.
    pub below: Budget,
    /// For the random walk.
    pub wander: Budget,
    /// What a stop costs beside the steps themselves; it matters where a run stops often.
    pub stop_steps: u64,
}

/// Preemptions from which on the random walk is worth its two seconds or so.
const WANDER_PREEMPTIONS: u64 = 6;
/// One of so many orders with a preemption more than the best is gone on from.
const WANDER_UPHILL_ODDS: u64 = 4;
/// After so many replays without a smaller order the walk begins again at the best.
const WANDER_BACK_REPLAYS: u32 = 3_000;

/// While a run that does not end is made small, it counts as hanging after this many times the steps of the default
/// order and as many rounds in which everybody was interrupted for impatience.
const HANG_FACTOR: u64 = 4;
const HANG_ROUNDS: u64 = 2;

/// With fewer preemptions than this the minimiser does not move them about: there is hardly anything to be gained.
const MANY_PREEMPTIONS: u64 = 2;

/// A schedule that was made as small as possible.
#[derive(Debug)]
pub struct Smallest<R> {
    /// The last failing run, under the schedule as the run itself wrote it down.
    pub run: R,
    /// Switches away from a context that could have gone on.
    pub preemptions: u64,
    /// Whether nothing more can be taken away.
    pub is_minimal: bool,
}

/// Makes a failing schedule small; `None` if its replay does not even fail.
pub fn minimise<S: Stage>(
    stage: &mut S,
    failing: &OutcomeOf<S>,
    rules: &S::Rules,
    effort: &Effort,
) -> Option<Smallest<RunOf<S>>> {
    if failing.failure.as_ref()?.is_hang() {
        let impatient = impatient(stage, failing.contexts, rules);
        let found = minimise_under(stage, failing, &impatient, effort);
        // What does not end within the small limit may end within the real one.
        if let Some(mut found) = found {
            let run = follow(stage, &found.run.drive.schedule, rules);
            if run
                .failure
                .as_ref()
                .is_some_and(|failure| failure.is_hang())
            {
                found.run = run;
                return Some(found);
            }
        }
    }
    minimise_under(stage, failing, rules, effort)
}

/// Rules under which a run of so many contexts counts as hanging much earlier, so that many can be tried and one can
/// be told.
pub fn impatient<S: Stage>(stage: &mut S, contexts: u64, rules: &S::Rules) -> S::Rules {
    let default = follow(stage, &Schedule::default(), rules);
    let limits = rules.limits();
    let rounds = contexts * limits.patience * HANG_ROUNDS;
    let steps = default.drive.steps.saturating_mul(HANG_FACTOR) + rounds;
    rules.clone().with_limits(Limits {
        steps: steps.min(limits.steps),
        ..limits
    })
}

fn minimise_under<S: Stage>(
    stage: &mut S,
    failing: &OutcomeOf<S>,
    rules: &S::Rules,
    effort: &Effort,
) -> Option<Smallest<RunOf<S>>> {
    let fingerprint = failing.failure.as_ref()?.fingerprint();
    let mut search = Search {
        stage,
        rules,
        effort,
        fingerprint,
        replays: 0,
        steps: 0,
    };
    let mut best = search.try_schedule(failing.kept_schedule())?;
    search.shrink(&mut best);
    let is_cut_short = search.is_exhausted();
    let is_smallest = search.below(&mut best);
    if !is_smallest && best.preemptions >= WANDER_PREEMPTIONS {
        search.wander(&mut best);
    }
    (search.replays, search.steps) = (0, 0);
    search.shrink(&mut best);
    Some(Smallest {
        is_minimal: is_smallest || !is_cut_short,
        preemptions: best.preemptions,
        run: best.run,
    })
}

/// Runs the default order and orders with few switches, those at given places first, until one is as wanted. Gives
/// the number of runs and that run.
pub fn orders_at<S: Stage>(
    stage: &mut S,
    rules: &S::Rules,
    (sites, preemptions_max): (BTreeSet<(Site, bool)>, u64),
    budget: Budget,
    is_wanted: &dyn Fn(&RunOf<S>) -> bool,
) -> (u64, Option<RunOf<S>>) {
    let below = preemptions_max + 1;
    let mut queue = Queue::new(sites);
    let (mut runs, mut steps) = (0, 0);
    let mut next = Some(Candidate::default_order());
    while let Some(candidate) = next {
        if runs >= u64::from(budget.replays) || steps >= budget.steps {
            break;
        }
        let mut noted = Noted::new(&candidate.schedule);
        let run = stage.run(&mut noted, rules, Watch::NOTHING);
        runs += 1;
        steps += run.drive.steps;
        if is_wanted(&run) {
            return (runs, Some(run));
        }
        queue.grow(&candidate, &noted, below);
        next = queue.next(below);
    }
    (runs, None)
}

type FailingOf<S> = Failing<RunOf<S>>;

/// A run that fails as it should.
struct Failing<R> {
    run: R,
    line: Line,
    preemptions: u64,
}

impl<F, R, T> Failing<Run<F, R, T>> {
    /// What is made smaller.
    fn size(&self) -> (u64, usize, u64) {
        (
            self.preemptions,
            self.run.drive.schedule.len(),
            self.run.drive.switches,
        )
    }
}

struct Search<'a, S: Stage> {
    stage: &'a mut S,
    rules: &'a S::Rules,
    effort: &'a Effort,
    fingerprint: String,
    replays: u32,
    steps: u64,
}

impl<S: Stage> Shrink for Search<'_, S> {
    type Run = FailingOf<S>;

    fn schedule(run: &FailingOf<S>) -> &Schedule {
        &run.run.drive.schedule
    }

    fn smaller(&mut self, schedule: &Schedule, best: &FailingOf<S>) -> Option<FailingOf<S>> {
        self.try_schedule(schedule)
            .filter(|found| found.size() < best.size())
    }

    fn is_exhausted(&self) -> bool {
        let Budget { replays, steps } = self.effort.shrink;
        self.replays >= replays || self.steps >= steps || self.stage.leave().is_over()
    }
}

impl<S: Stage> Search<'_, S> {
    /// Makes an order smaller until no single change does.
    fn shrink(&mut self, best: &mut FailingOf<S>) {
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
    fn below(&mut self, best: &mut FailingOf<S>) -> bool {
        let mut noted = Noted::new(&best.run.drive.schedule);
        self.stage.run(&mut noted, self.rules, Watch::NOTHING);
        let mut queue = Queue::new(noted.into_sites());
        let budget = self.effort.below;
        let (mut replays, mut steps) = (0, 0);
        let mut next = Some(Candidate::default_order());
        while let Some(candidate) = next.filter(|c| c.preemptions < best.preemptions) {
            let is_over = self.stage.leave().is_over();
            if replays >= budget.replays || steps >= budget.steps || is_over {
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
    fn wander(&mut self, best: &mut FailingOf<S>) {
        let mut prng = Prng::new(best.preemptions);
        let mut line = best.line.clone();
        let mut now = best.preemptions;
        let budget = self.effort.wander;
        let (replays, steps) = (self.replays, self.steps);
        let mut since = replays;
        while best.preemptions >= WANDER_PREEMPTIONS
            && self.replays - replays < budget.replays
            && self.steps - steps < budget.steps
            && !self.stage.leave().is_over()
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
    fn join_stretches(&mut self, best: &mut FailingOf<S>) {
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
    fn move_preemptions(&mut self, best: &mut FailingOf<S>) {
        let line = best.line.clone();
        line.neighbours()
            .any(|candidate| self.is_exhausted() || self.improve(best, &candidate));
    }

    fn improve(&mut self, best: &mut FailingOf<S>, candidate: &[Stretch]) -> bool {
        match self.run(Follower::new(candidate, &best.line.jumps.clone())) {
            Some(found) if found.size() < best.size() => {
                *best = found;
                true
            }
            _ => false,
        }
    }

    fn try_schedule(&mut self, schedule: &Schedule) -> Option<FailingOf<S>> {
        self.run(Follow::new(schedule))
    }

    /// The run, if it ends in the failure that we are after.
    fn run(&mut self, scheduler: impl Scheduler) -> Option<FailingOf<S>> {
        let mut written = Written::new(scheduler);
        let run = self.stage.run(&mut written, self.rules, Watch::NOTHING);
        self.replays += 1;
        let stops: u64 = run.drive.stops.iter().sum();
        let made = run.drive.steps.max(run.spent.instructions);
        self.steps += made + stops * self.effort.stop_steps;
        let failure = run.failure.as_ref()?;
        (failure.fingerprint() == self.fingerprint).then_some(Failing {
            run,
            preemptions: written.preemptions,
            line: written.into_line(),
        })
    }
}
