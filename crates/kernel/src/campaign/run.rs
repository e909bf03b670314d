//! One schedule, from the start line to its end and to a judgement.

use raddle_detect::communication::Meetings;
use raddle_detect::{Communication, Races};
use raddle_sched::{Drive, Profile, Reason, Scheduler, View, drive};
use raddle_trace::Limits;
use raddle_world::{Context, ContextId, Event};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::session::Session;
use super::ski_race::{RacePair, SkiRaces};

/// How data races are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceMode {
    /// Conflicting accesses that lie close together, whatever synchronisation there is (SKI).
    Close,
    /// Conflicting accesses that nothing orders.
    HappensBefore,
}

/// How to run and to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Steps of a processor in a row before the default order goes on to the next.
    pub patience: u64,
    /// Steps of a schedule at most.
    pub steps: u64,
    pub races: Option<RaceMode>,
    /// Whether interrupts are contexts of their own, or taken as soon as a processor admits them.
    pub interrupts: bool,
}

impl Rules {
    pub(super) fn limits(self) -> Limits {
        Limits {
            patience: self.patience,
            steps: self.steps,
        }
    }
}

/// A schedule that was run.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub index: u64,
    /// Whether nobody was interrupted on purpose.
    pub is_default: bool,
    pub drive: Drive,
    pub failure: Option<Failure>,
    /// What the run tells about the size of the test.
    pub profile: Profile,
    /// Halted, paused, looping, starving.
    pub liveness: [u64; 4],
    /// Only if memory was observed.
    pub learned: Option<Learned>,
}

/// What an observed run told.
#[derive(Debug, Clone)]
pub struct Learned {
    pub meetings: Meetings,
    pub shared_places: u64,
    pub races: Vec<RacePair>,
}

/// Counts why processors were passed over.
struct Counting<'a> {
    inner: &'a mut dyn Scheduler,
    liveness: [u64; 4],
}

impl Scheduler for Counting<'_> {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let index = match view.reason {
            Reason::Blocked => Some(0),
            Reason::Yielded => Some(1),
            Reason::Spinning => Some(2),
            Reason::Starving => Some(3),
            _ => None,
        };
        if let Some(index) = index {
            self.liveness[index] += 1;
        }
        self.inner.pick(view)
    }

    fn is_replay(&self) -> bool {
        self.inner.is_replay()
    }

    fn bound(&self, who: &Context) -> u64 {
        self.inner.bound(who)
    }
}

/// Runs one schedule. With `observes`, memory accesses are watched for communication points and races.
pub(super) fn run_schedule(
    session: &mut Session<'_>,
    scheduler: &mut dyn Scheduler,
    rules: Rules,
    observes: bool,
) -> Outcome {
    session.restore();
    session.world.set_observe(observes);
    session.world.schedule_interrupts(rules.interrupts);
    let mut communication = Communication::default();
    let mut ordered = Races::default();
    let mut close = SkiRaces::default();
    let mut counting = Counting {
        inner: scheduler,
        liveness: [0; 4],
    };
    let races = rules.races.filter(|_| observes);
    let driven = drive(
        &mut session.world,
        &mut counting,
        rules.limits(),
        &mut |world, events| {
            for event in events {
                communication.event(event);
                if races.is_none() {
                    continue;
                }
                // A processor's own code and its interrupts never run at the same time.
                let event = Event {
                    context: world.processor_context(event.context),
                    ..event.clone()
                };
                match races {
                    Some(RaceMode::HappensBefore) => ordered.event(&event),
                    _ => close.event(&event),
                }
            }
        },
    );
    let liveness = counting.liveness;
    session.world.set_observe(false);
    let learned = observes.then(|| Learned {
        meetings: communication.meetings(&mut |_| true),
        shared_places: communication.shared_places(),
        races: match races {
            Some(RaceMode::HappensBefore) => ordered.found().map(RacePair::of).collect(),
            Some(RaceMode::Close) => close.found(),
            None => Vec::new(),
        },
    });
    Outcome {
        index: 0,
        is_default: false,
        failure: Failure::of_run(&mut session.world),
        profile: driven.profile(&session.world),
        drive: driven,
        liveness,
        learned,
    }
}
