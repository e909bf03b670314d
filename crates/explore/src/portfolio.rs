//! Which algorithm runs which schedule.

use std::ops::Range;

use raddle_sched::{
    AbstractSchedule, DelayBounded, Focused, Pct, Pos, PreemptionBounded, Profile, RandomWalk,
    ReadsFrom, Scheduler, Stepwise, Timed, Urw, urw::sample_interest,
};
use raddle_stdx::Prng;

/// Jumps of the clock in one schedule, where timers run.
const JUMPS_MAX: u64 = 2;

/// A scheduling algorithm with what it is to do in one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The default order: nobody is interrupted.
    Default,
    /// The n-th set of at most two delays.
    Delay {
        number: u64,
    },
    /// The n-th set of at most two preemptions.
    Preemption {
        number: u64,
    },
    Pct {
        depth: u64,
    },
    RandomWalk,
    Pos,
    Urw,
    Surw,
    ReadsFrom,
}

/// The names that `--scheduler` knows, besides `portfolio`.
pub(crate) const NAMES: [(&str, Algorithm); 10] = [
    ("delay", Algorithm::Delay { number: 0 }),
    ("preemption", Algorithm::Preemption { number: 0 }),
    ("pct2", Algorithm::Pct { depth: 2 }),
    ("pct3", Algorithm::Pct { depth: 3 }),
    ("pct5", Algorithm::Pct { depth: 5 }),
    ("random", Algorithm::RandomWalk),
    ("pos", Algorithm::Pos),
    ("urw", Algorithm::Urw),
    ("surw", Algorithm::Surw),
    ("reads-from", Algorithm::ReadsFrom),
];

/// Schedules after which a bug counts as deep.
const DEEP_AFTER: u64 = 4096;

/// Shares of the portfolio: turn after turn, round and round.
const TURNS: [Algorithm; 16] = [
    Algorithm::Delay { number: 0 },
    Algorithm::Pct { depth: 2 },
    Algorithm::RandomWalk,
    Algorithm::ReadsFrom,
    Algorithm::Preemption { number: 0 },
    Algorithm::Pos,
    Algorithm::Urw,
    Algorithm::Surw,
    Algorithm::ReadsFrom,
    Algorithm::Pct { depth: 3 },
    Algorithm::Preemption { number: 0 },
    Algorithm::Surw,
    Algorithm::RandomWalk,
    Algorithm::Pos,
    Algorithm::ReadsFrom,
    Algorithm::Pct { depth: 5 },
];

impl Algorithm {
    /// The algorithm with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm)
    }

    /// All names, for messages.
    pub fn names() -> Vec<&'static str> {
        NAMES.iter().map(|(name, _)| *name).collect()
    }

    /// The portfolio's choice for the `turn`-th schedule.
    pub(crate) fn of_turn(turn: u64) -> Self {
        // What is still hidden then needs several switches in exact places: feedback finds them step by step.
        if turn >= DEEP_AFTER && !turn.is_multiple_of(4) {
            return Self::ReadsFrom;
        }
        TURNS[raddle_stdx::width::to_usize(turn % 16)]
    }
}

/// What a scheduler is made from besides its algorithm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Material<'a> {
    pub(crate) profile: &'a Profile,
    /// The points of each place where contexts meet.
    pub(crate) groups: &'a [Vec<u64>],
    /// Decide only here; empty for everywhere.
    pub(crate) focus: &'a [Range<u64>],
    /// Whether the clock is to jump in this schedule.
    pub(crate) is_timed: bool,
    /// Whether every instruction is a decision point.
    pub(crate) is_stepwise: bool,
}

/// Makes the scheduler of a job.
pub(crate) fn scheduler(
    algorithm: Algorithm,
    seed: u64,
    wishes: &AbstractSchedule,
    material: Material<'_>,
) -> Box<dyn Scheduler> {
    let mut scheduler = plain(algorithm, seed, wishes, material);
    if material.is_stepwise {
        scheduler = Box::new(Stepwise(scheduler));
    }
    if algorithm == Algorithm::Default {
        return scheduler;
    }
    if !material.focus.is_empty() {
        scheduler = Box::new(Focused::new(scheduler, material.focus.to_vec()));
    }
    if material.is_timed {
        let seed = Prng::derive_seed(seed, 3);
        scheduler = Box::new(Timed::new(scheduler, seed, JUMPS_MAX, material.profile));
    }
    scheduler
}

fn plain(
    algorithm: Algorithm,
    seed: u64,
    wishes: &AbstractSchedule,
    material: Material<'_>,
) -> Box<dyn Scheduler> {
    let profile = material.profile;
    let deep = || Box::new(Pct::new(seed, 4, profile));
    match algorithm {
        Algorithm::Default => Box::new(DelayBounded::new(Vec::new())),
        Algorithm::Delay { number } => match DelayBounded::nth(number, profile.decisions) {
            Some(scheduler) => Box::new(scheduler),
            None => deep(),
        },
        Algorithm::Preemption { number } => match PreemptionBounded::nth(number, profile) {
            Some(scheduler) => Box::new(scheduler),
            None => deep(),
        },
        Algorithm::Pct { depth } => Box::new(Pct::new(seed, depth, profile)),
        Algorithm::RandomWalk => Box::new(RandomWalk::new(seed, profile)),
        Algorithm::Pos => Box::new(Pos::new(seed)),
        Algorithm::Urw => Box::new(Urw::new(seed, profile, Vec::new())),
        Algorithm::Surw => {
            let mut prng = Prng::new(Prng::derive_seed(seed, 1));
            let interest = sample_interest(&mut prng, material.groups);
            Box::new(Urw::new(seed, profile, interest))
        }
        Algorithm::ReadsFrom => Box::new(ReadsFrom::new(seed, wishes.clone())),
    }
}
