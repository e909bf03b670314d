//! Replay: runs a recording again and checks that it is the same run.

use std::sync::Arc;

use raddle_campaign::{Leave, Watch, follow};
use raddle_detect::Race;
use raddle_linux::LinuxWorld;
use raddle_report::Finding;
use raddle_sched::travel::Rerun;
use raddle_sched::{Follow, Order, Reaction};
use raddle_trace::Recording;
use raddle_world::{ContextId, Event, EventKind, Site, World};

use crate::attribution::Attribution;
use crate::checkpoint::divergence;
use crate::explain::{self, DATA_RACE};
use crate::judge::{Judge, Rules};
use crate::names::label;
use crate::ordinary::{self, Past};
use crate::schedule_run::{Outcome, Run, run_schedule};
use crate::session::{About, Look, Session, StartFailure};
use crate::stack::{own_place, place_of};
use crate::steps;

/// What a replay showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Whether the run up to the snapshot was the same.
    pub same_start: bool,
    /// Whether the whole run and the memory at its end were the same, bit for bit.
    pub same_run: bool,
    /// Whether it fails at all, as far as it was judged.
    pub fails: bool,
    /// Whether it is the same failure.
    pub same_failure: bool,
    pub run_digest: u64,
    pub steps: u64,
    pub switches: u64,
    /// Deviations of the schedule that could not be applied.
    pub missed: u64,
}

/// One event of a traced run, with words for who and where.
#[derive(Debug)]
pub struct TraceLine<'a> {
    pub context: String,
    pub place: String,
    pub event: &'a Event,
}

/// A recording that is being replayed.
#[derive(Debug)]
pub struct Replayer<'r> {
    recording: &'r Recording,
    session: Session,
    rules: Rules,
}

impl<'r> Replayer<'r> {
    /// Runs the program to its snapshot. `judge` acts on what the recording says about right results.
    pub fn start(recording: &'r Recording, judge: Option<Judge>) -> Result<Self, StartFailure> {
        Ok(Self {
            recording,
            session: Session::start(&About::recorded(recording, judge), Leave::endless())?,
            rules: Rules::recorded(recording),
        })
    }

    /// Replays once.
    pub fn run(&mut self) -> Replayed {
        let recording = self.recording;
        if let Some(recorded) = Past::recorded(recording) {
            return self.run_ordinary(recorded);
        }
        let (outcome, missed) = self.follow();
        let world = &mut self.session.world;
        let (run_digest, state_digest) = (world.run_digest(), world.state_digest());
        // A run that shows a race may fail besides.
        let fingerprint = if recording.kind == DATA_RACE {
            self.race().map(|race| race.fingerprint)
        } else {
            outcome
                .failure
                .as_ref()
                .map(|failure| failure.fingerprint())
        };
        Replayed {
            same_start: self.session.digest == recording.snapshot_digest,
            same_run: run_digest == recording.run_digest && state_digest == recording.state_digest,
            fails: fingerprint.is_some(),
            same_failure: fingerprint.as_ref() == Some(&recording.fingerprint),
            run_digest,
            steps: outcome.drive.steps,
            switches: outcome.drive.switches,
            missed,
        }
    }

    /// Has an ordinary run again, which no judge looks at.
    fn run_ordinary(&mut self, recorded: Past) -> Replayed {
        self.session.restore();
        let world = &mut self.session.world;
        let (_, past) = ordinary::follow(world, self.recording, &mut |_, _| Reaction::GoOn);
        Replayed {
            same_start: true,
            same_run: past == recorded,
            fails: false,
            same_failure: false,
            run_digest: past.run_digest,
            steps: past.ordinary.steps,
            switches: 0,
            missed: 0,
        }
    }

    /// The failure, explained; none if the run does not fail, or if there is no leave to go on.
    pub fn explain(&mut self, leave: Leave) -> Option<Finding> {
        let before = std::mem::replace(&mut self.session.leave, leave);
        let finding = self.explained();
        self.session.leave = before;
        finding
    }

    fn explained(&mut self) -> Option<Finding> {
        let outcome = follow(&mut self.session, &self.recording.schedule, &self.rules);
        if self.recording.kind == DATA_RACE {
            return self.race();
        }
        let failure = outcome.failure.as_ref()?;
        explain::describe_failure(&mut self.session, failure, &outcome, &self.rules)
    }

    /// The recorded race, if the run shows it.
    fn race(&mut self) -> Option<Finding> {
        let Recording {
            schedule,
            fingerprint,
            ..
        } = self.recording;
        let session = &mut self.session;
        // What is atomic is asked at decision points only: the first run tells where they are.
        let mut observed = || {
            let follow = &mut Follow::new(schedule);
            let run = run_schedule(session, follow, &self.rules, Watch::MEMORY);
            let learned = run.learned.clone()?;
            let points: Vec<Site> = learned.meetings.into_iter().flatten().collect();
            session.add_points(&points);
            Some((learned.races, Outcome::new(0, run)))
        };
        observed()?;
        let (races, outcome) = observed()?;
        let witnessed: Vec<(Race, Outcome)> = races
            .into_iter()
            .map(|race| (race, outcome.clone()))
            .collect();
        explain::race_again(session, &witnessed, &self.rules, fingerprint)
    }

    /// Steps up to which the run is certainly the recorded one, and steps at which it is not, if known.
    pub fn divergence(&mut self) -> (u64, Option<u64>) {
        divergence(&mut self.session, self.recording, &self.rules)
    }

    /// Tells every event of the run that is not a library's own business: system calls, synchronisation,
    /// allocation, and accesses to memory that several contexts use.
    pub fn trace(&mut self, sink: &mut dyn FnMut(TraceLine<'_>)) {
        let schedule = &self.recording.schedule;
        let observed = steps::observe(&mut self.session, schedule, &self.rules);
        self.session.restore();
        let Some(symbols) = self.session.world.symbols(ContextId(0)) else {
            return;
        };
        let image = self.session.world.image(ContextId(0));
        let territory = Arc::clone(&self.session.territory);
        let mut attribution = Attribution::new(&territory);
        let mut follow = Follow::new(schedule);
        let limits = self.rules.limits;
        let look = Look::EVERYTHING;
        let session = &mut self.session;
        session.drive(&mut follow, limits, look, &mut |world, events| {
            for event in events {
                let Some(event) = attribution.step(world, event) else {
                    continue;
                };
                if let EventKind::Access(access) = &event.kind
                    && !observed.is_meeting(&territory, access)
                {
                    continue;
                }
                let is_foreign = event.site.image() != image;
                let others = is_foreign.then(|| world.symbols(event.context)).flatten();
                let symbols = others.as_ref().unwrap_or(&symbols);
                let place = own_place(symbols, event.pc());
                let place = place.unwrap_or_else(|| place_of(symbols, event.pc()));
                sink(TraceLine {
                    context: label(world, event.context),
                    place: place.describe(),
                    event: &event,
                });
            }
        });
    }

    fn follow(&mut self) -> (Run, u64) {
        let mut scheduler = Follow::new(&self.recording.schedule);
        let session = &mut self.session;
        let run = run_schedule(session, &mut scheduler, &self.rules, Watch::NOTHING);
        (run, scheduler.missed())
    }
}

impl Rerun for Replayer<'_> {
    type World = LinuxWorld;

    fn order(&self) -> Order {
        let Recording {
            inputs,
            limits,
            schedule,
            ordinary,
            ..
        } = self.recording;
        match ordinary {
            Some(_) => Order::Plain {
                outside: inputs.outside.clone(),
                steps_max: limits.steps,
            },
            None => Order::Schedule(schedule.clone(), self.rules.limits),
        }
    }

    fn world(&self) -> &LinuxWorld {
        &self.session.world
    }

    fn world_mut(&mut self) -> &mut LinuxWorld {
        &mut self.session.world
    }

    fn rewind(&mut self) {
        self.session.restore();
    }

    fn label(&self, thread: ContextId) -> String {
        label(&self.session.world, thread)
    }
}
