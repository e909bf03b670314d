//! An algorithm with what it is to do in one schedule, and the scheduler made from it.

use std::ops::Range;

use raddle_sched::{
    AbstractSchedule, Classes, DelayBounded, Faulty, Focused, Jumps, Pct, Pike, Pos,
    PreemptionBounded, Profile, RandomWalk, ReadsFrom, Scheduler, Stepwise, Timed, Urw,
    urw::sample_interest,
};
use raddle_stdx::Prng;
use raddle_world::{Duration, Fault, Site};
use serde::{Deserialize, Serialize};

/// Jumps of the clock in one schedule, where timers run.
const JUMPS_MAX: u64 = 2;

/// A scheduling algorithm with what it is to do in one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// The default order: no context is interrupted.
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
    /// PCT with so many reschedule points among the first so many instructions.
    Pike {
        points: u64,
        steps: u64,
    },
    RandomWalk,
    Pos,
    Classes,
    Urw,
    Surw,
    ReadsFrom,
}

impl Algorithm {
    /// What `--scheduler` can name, besides the whole portfolio.
    pub const NAMES: [(&'static str, Self); 13] = [
        ("delay", Self::Delay { number: 0 }),
        ("preemption", Self::Preemption { number: 0 }),
        ("pct2", Self::Pct { depth: 2 }),
        ("pct3", Self::Pct { depth: 3 }),
        ("pct5", Self::Pct { depth: 5 }),
        ("ski", Self::SKI),
        ("pike", Self::PIKE),
        ("random", Self::RandomWalk),
        ("pos", Self::Pos),
        ("classes", Self::Classes),
        ("urw", Self::Urw),
        ("surw", Self::Surw),
        ("reads-from", Self::ReadsFrom),
    ];

    /// The algorithm that `--scheduler` names; none for the whole portfolio.
    ///
    /// # Errors
    /// There is none of that name; the message lists them.
    pub fn by_name(name: &str) -> Result<Option<Self>, UnknownScheduler> {
        if name == "portfolio" {
            return Ok(None);
        }
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        match found {
            Some((_, algorithm)) => Ok(Some(*algorithm)),
            None => Err(UnknownScheduler(name.to_owned())),
        }
    }

    /// SKI as it was evaluated: two reschedule points (PCT of depth three), the number of decisions learned.
    pub const SKI: Self = Self::Pct { depth: 3 };
    /// PIKE as it was evaluated: one reschedule point among 50,000 instructions.
    pub const PIKE: Self = Self::Pike {
        points: 1,
        steps: 50_000,
    };
}

/// A scheduler that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scheduler `{0}`; choose portfolio or one of {known}", known = Algorithm::NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownScheduler(String);

/// What a scheduler is made from besides its algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    pub profile: &'a Profile,
    /// The points of each place where contexts meet.
    pub groups: &'a [Vec<Site>],
    /// For reads-from guidance.
    pub wishes: &'a AbstractSchedule,
    /// Decide only here; empty for everywhere.
    pub focus: &'a [Range<Site>],
    /// Whether the clock is to jump in this schedule.
    pub is_timed: bool,
    /// How long threads wait for a turn, if the clock may jump so that they get one.
    pub turn_wait: Option<Duration>,
    /// Whether every instruction is a decision point.
    pub is_stepwise: bool,
    /// What contexts may meet.
    pub faults: &'a [Fault],
}

/// Makes the scheduler of a job.
pub fn scheduler(algorithm: Algorithm, seed: u64, material: Material<'_>) -> Box<dyn Scheduler> {
    let mut scheduler = plain(algorithm, seed, material);
    if material.is_stepwise {
        scheduler = Box::new(Stepwise(scheduler));
    }
    if algorithm == Algorithm::Default {
        return scheduler;
    }
    let fault_seed = Prng::derive_seed(seed, 5);
    // Half of the schedules are as if there were none.
    if !material.faults.is_empty() && fault_seed & 1 == 0 {
        let kinds = material.faults.to_vec();
        scheduler = Box::new(Faulty::new(scheduler, fault_seed, kinds));
    }
    if !material.focus.is_empty() {
        scheduler = Box::new(Focused::new(scheduler, material.focus.to_vec()));
    }
    if material.is_timed || material.turn_wait.is_some() {
        let seed = Prng::derive_seed(seed, 3);
        let wanted = Jumps {
            most: if material.is_timed { JUMPS_MAX } else { 0 },
            turn_wait: material.turn_wait,
        };
        scheduler = Box::new(Timed::new(scheduler, seed, wanted, material.profile));
    }
    scheduler
}

/// The scheduler that interrupts no context.
pub fn default_order() -> DelayBounded {
    DelayBounded::new(Vec::new())
}

fn plain(algorithm: Algorithm, seed: u64, material: Material<'_>) -> Box<dyn Scheduler> {
    let profile = material.profile;
    let deep = || Box::new(Pct::new(seed, 4, profile));
    match algorithm {
        Algorithm::Default => Box::new(default_order()),
        Algorithm::Delay { number } => match DelayBounded::nth(number, profile.decisions) {
            Some(scheduler) => Box::new(scheduler),
            None => deep(),
        },
        Algorithm::Preemption { number } => match PreemptionBounded::nth(number, profile) {
            Some(scheduler) => Box::new(scheduler),
            None => deep(),
        },
        Algorithm::Pct { depth } => Box::new(Pct::new(seed, depth, profile)),
        Algorithm::Pike { points, steps } => Box::new(Pike::new(seed, points, steps)),
        Algorithm::RandomWalk => Box::new(RandomWalk::new(seed, profile)),
        Algorithm::Pos => Box::new(Pos::new(seed)),
        Algorithm::Classes => Box::new(Classes::new(seed)),
        Algorithm::Urw => Box::new(Urw::new(seed, profile, Vec::new())),
        Algorithm::Surw => {
            let mut prng = Prng::new(Prng::derive_seed(seed, 1));
            let interest = sample_interest(&mut prng, material.groups);
            Box::new(Urw::new(seed, profile, interest))
        }
        Algorithm::ReadsFrom => Box::new(ReadsFrom::new(seed, material.wishes.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(Algorithm::by_name("portfolio"), Ok(None));
        assert_eq!(Algorithm::by_name("urw"), Ok(Some(Algorithm::Urw)));
        let error = Algorithm::by_name("best").expect_err("there is none");
        let message = error.to_string();
        assert!(
            message.starts_with("there is no scheduler `best`; choose portfolio or one of delay, ")
        );
        assert!(message.ends_with(", reads-from"), "{message}");
    }
}
