//! Which algorithm runs which schedule of a kernel.

use raddle_sched::{
    DelayBounded, Pct, Pos, Profile, RandomWalk, Scheduler, Urw, urw::sample_interest,
};
use raddle_stdx::Prng;

/// A scheduling algorithm with what it is to do in one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The default order: nobody is interrupted.
    Default,
    /// The n-th set of at most two delays.
    Delay {
        number: u64,
    },
    /// `ski` is the one of depth 2 with the number of decisions learned from the default order.
    Pct {
        depth: u64,
    },
    RandomWalk,
    Pos,
    Urw,
    Surw,
}

const NAMES: [(&str, Algorithm); 8] = [
    ("ski", Algorithm::Pct { depth: 2 }),
    ("delay", Algorithm::Delay { number: 0 }),
    ("pct2", Algorithm::Pct { depth: 2 }),
    ("pct3", Algorithm::Pct { depth: 3 }),
    ("random", Algorithm::RandomWalk),
    ("pos", Algorithm::Pos),
    ("urw", Algorithm::Urw),
    ("surw", Algorithm::Surw),
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

    /// The portfolio's choice for the `turn`-th schedule. Kernel races need few switches at the right place, so
    /// systematic delays and PCT get most turns.
    pub(super) fn of_turn(turn: u64) -> Self {
        match turn % 8 {
            0 | 2 | 4 => Self::Delay { number: 0 },
            1 | 5 => Self::Pct { depth: 2 },
            3 => Self::Pct { depth: 3 },
            6 => Self::Surw,
            _ => Self::RandomWalk,
        }
    }
}

/// Makes the scheduler of a job. `groups` are the points of each place where processors meet.
pub(super) fn scheduler(
    algorithm: Algorithm,
    seed: u64,
    profile: &Profile,
    groups: &[Vec<u64>],
) -> Box<dyn Scheduler> {
    match algorithm {
        Algorithm::Default => Box::new(DelayBounded::new(Vec::new())),
        Algorithm::Delay { number } => match DelayBounded::nth(number, profile.decisions) {
            Some(scheduler) => Box::new(scheduler),
            None => Box::new(Pct::new(seed, 4, profile)),
        },
        Algorithm::Pct { depth } => Box::new(Pct::new(seed, depth, profile)),
        Algorithm::RandomWalk => Box::new(RandomWalk::new(seed, profile)),
        Algorithm::Pos => Box::new(Pos::new(seed)),
        Algorithm::Urw => Box::new(Urw::new(seed, profile, Vec::new())),
        Algorithm::Surw => {
            let mut prng = Prng::new(Prng::derive_seed(seed, 1));
            let interest = sample_interest(&mut prng, groups);
            Box::new(Urw::new(seed, profile, interest))
        }
    }
}
