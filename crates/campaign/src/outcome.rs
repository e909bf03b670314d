//! What goes to a worker and what comes back: small, plain data, the same whether the worker is a thread or another
//! machine.

use std::ops::Range;

use raddle_sched::{AbstractSchedule, End, Profile, ReadsFromPair};
use raddle_trace::Schedule;
use raddle_world::{Fault, Site, Unsupported};
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::spent::Spent;
use crate::subject::{Learned, Run};

/// One schedule to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub index: u64,
    pub seed: u64,
    pub algorithm: Algorithm,
    /// For reads-from guidance.
    pub wishes: AbstractSchedule,
    pub is_timed: bool,
    /// Whether the clock may jump so that threads get turns.
    pub may_jump: bool,
    pub observes: bool,
    /// Whether coverage is counted.
    #[serde(default)]
    pub covers: bool,
}

impl Job {
    /// The run in the default order, which is looked at closely.
    pub(crate) fn alone(covers: bool) -> Self {
        Self {
            index: 0,
            seed: 0,
            algorithm: Algorithm::Default,
            wishes: Vec::new(),
            is_timed: false,
            may_jump: false,
            observes: true,
            covers,
        }
    }
}

/// What all jobs of a generation share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared<R> {
    pub points: Vec<Site>,
    pub groups: Vec<Vec<Site>>,
    pub profile: Profile,
    pub focus: Vec<Range<Site>>,
    pub is_stepwise: bool,
    /// What contexts may meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    pub rules: R,
}

/// What a replay must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// Of the whole run.
    pub run: u64,
    /// Of registers and memory at its end.
    pub state: u64,
}

/// What a worker tells of a schedule that it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome<F, R, T> {
    pub index: u64,
    /// The schedule, if it failed or shows a race; else the campaign will not want to have it again.
    pub schedule: Option<Schedule>,
    pub schedule_digest: u64,
    pub steps: u64,
    pub decisions: u64,
    pub switches: u64,
    pub contexts: u64,
    /// Equal for runs in which everybody reads from the same writes.
    pub class: u64,
    pub pairs: Vec<ReadsFromPair>,
    /// Points at which a context that could have gone on was interrupted.
    pub interrupted: Vec<Site>,
    /// What ended the run early.
    pub unsupported: Option<Box<Unsupported>>,
    pub failure: Option<F>,
    /// Of the first failing run of each kind and worker, and of runs that show races.
    pub digests: Option<Digests>,
    /// Only of the default order.
    pub profile: Option<Profile>,
    pub learned: Option<Learned<R>>,
    pub tally: T,
    pub spent: Spent,
}

impl<F, R, T> Outcome<F, R, T> {
    /// Of the run of the job with this number.
    pub fn new(index: u64, run: Run<F, R, T>) -> Self {
        let Run { drive, learned, .. } = run;
        let shows_races = learned.as_ref().is_some_and(|l| !l.races.is_empty());
        let schedule_digest = drive.schedule.digest();
        Self {
            index,
            schedule: (run.failure.is_some() || shows_races).then_some(drive.schedule),
            schedule_digest,
            steps: drive.steps,
            decisions: drive.decisions,
            switches: drive.switches,
            contexts: run.contexts,
            class: drive.class,
            pairs: drive.pairs,
            interrupted: drive.interrupted,
            unsupported: match drive.end {
                End::Unsupported(what) => Some(what),
                _ => None,
            },
            failure: run.failure,
            digests: None,
            profile: run.profile,
            learned,
            tally: run.tally,
            spent: run.spent,
        }
    }

    /// The schedule of a run that failed or shows a race.
    pub fn kept_schedule(&self) -> &Schedule {
        let schedule = self.schedule.as_ref();
        schedule.expect("runs that fail or show a race keep their schedule")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use raddle_detect::{Covered, Failure, Race, Reach, Spaces};
    use raddle_sched::Wish;
    use raddle_trace::Limits;
    use raddle_world::ImageId;

    use super::*;

    fn there_and_back<D: Serialize + serde::de::DeserializeOwned>(data: &D) -> D {
        let text = serde_json::to_string(data).expect("it can be written down");
        serde_json::from_str(&text).expect("it can be read again")
    }

    fn profile() -> Profile {
        Profile {
            decisions: 3,
            timed_stops: 1,
            stops: BTreeMap::from([(vec![0, 1], 4)]),
            visits: BTreeMap::from([(vec![0], BTreeMap::from([(site(), 2)]))]),
            kinds: BTreeMap::from([(vec![0], u64::MAX)]),
            trail: vec![site()],
        }
    }

    fn site() -> Site {
        Site::new(ImageId::new(3), 0xFFFF_FFFF_8100_0010)
    }

    #[test]
    fn what_a_worker_gets_survives_the_journey() {
        let job = Job {
            index: 7,
            seed: u64::MAX,
            algorithm: Algorithm::Delay { number: 2 },
            wishes: vec![Wish {
                pair: (Site::NOWHERE, site()),
                is_wanted: true,
            }],
            is_timed: true,
            may_jump: true,
            observes: false,
            covers: false,
        };
        assert_eq!(there_and_back(&job), job);
        let shared = Shared {
            points: vec![site()],
            groups: vec![vec![site()]],
            profile: profile(),
            focus: vec![site()..site()],
            is_stepwise: false,
            faults: vec![Fault::NoMemory],
            rules: Limits {
                patience: 1,
                steps: 2,
            },
        };
        assert_eq!(there_and_back(&shared), shared);
    }

    #[test]
    fn what_a_worker_tells_survives_the_journey() {
        let outcome: Outcome<Failure, Race, ()> = Outcome {
            index: 7,
            schedule: Some(Schedule::default()),
            schedule_digest: 5,
            steps: 100,
            decisions: 3,
            switches: 2,
            contexts: 2,
            class: 9,
            pairs: vec![(site(), site())],
            interrupted: vec![site()],
            unsupported: Some(Box::new(Unsupported::Memory { mebibytes: 64 })),
            failure: Some(Failure::Deadlock {
                calls: vec![site()],
            }),
            digests: Some(Digests { run: 1, state: 2 }),
            profile: Some(profile()),
            learned: Some(Learned {
                meetings: BTreeSet::from([vec![site()]]),
                writers: BTreeSet::from([site()]),
                shared_places: 1,
                races: Vec::new(),
                covered: Some(Covered {
                    sites: BTreeMap::from([(site(), Reach::Feasible)]),
                    spaces: Spaces::default(),
                }),
            }),
            tally: (),
            spent: Spent {
                run: std::time::Duration::from_nanos(17),
                ..Spent::default()
            },
        };
        assert_eq!(there_and_back(&outcome), outcome);
    }
}
