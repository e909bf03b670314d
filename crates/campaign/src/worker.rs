//! A worker of a campaign: a stage of its own, on which it runs the jobs that it is given.

use std::collections::BTreeSet;

use raddle_sched::End;

use crate::algorithm::{Algorithm, Material, scheduler};
use crate::generation::Worker;
use crate::outcome::{Job, Outcome, Shared};
use crate::spent::{Clock, Stopwatch};
use crate::subject::{OutcomeOf, Stage, Subject, Symptom, Watch};

/// A worker.
#[derive(Debug)]
pub struct Explorer<S: Subject> {
    stage: S::Stage,
    clock: Option<Clock>,
    /// Points that the stage knows.
    points: usize,
    /// Fingerprints of the failures that this worker has seen.
    seen: BTreeSet<String>,
}

impl<S: Subject> Explorer<S> {
    /// The first stage started, and starting is deterministic.
    pub(crate) fn start(subject: &S) -> Option<Self> {
        Self::try_start(subject).ok()
    }

    /// The same where the first stage stood on another machine.
    ///
    /// # Errors
    /// If the subject does not come to the place where its schedules begin.
    pub fn try_start(subject: &S) -> Result<Self, S::StartFailure> {
        Ok(Self {
            stage: subject.start()?,
            clock: subject.options().clock,
            points: 0,
            seen: BTreeSet::new(),
        })
    }

    /// Forgets which failures it has seen: the jobs that come next may be earlier ones.
    pub fn forget_failures(&mut self) {
        self.seen.clear();
    }
}

impl<S: Subject> Worker for Explorer<S> {
    type Shared = Shared<<S::Stage as Stage>::Rules>;
    type Job = Job;
    type Outcome = OutcomeOf<S::Stage>;

    fn begin(&mut self, shared: &Self::Shared) {
        if self.points != shared.points.len() {
            self.points = shared.points.len();
            self.stage.add_points(&shared.points);
        }
    }

    fn run(&mut self, shared: &Self::Shared, job: &Job) -> Option<Self::Outcome> {
        let mut stopwatch = Stopwatch::start(self.clock);
        let material = Material {
            profile: &shared.profile,
            groups: &shared.groups,
            wishes: &job.wishes,
            focus: &shared.focus,
            is_timed: job.is_timed,
            turn_wait: self.stage.turn_wait().filter(|_| job.may_jump),
            is_stepwise: shared.is_stepwise,
            faults: &shared.faults,
        };
        let mut scheduler = scheduler(job.algorithm, job.seed, material);
        let making = stopwatch.lap();
        let watch = Watch {
            memory: job.observes,
            points: job.algorithm == Algorithm::Default,
            coverage: job.covers,
        };
        let run = self.stage.run(&mut *scheduler, &shared.rules, watch);
        if run.drive.end == End::Abandoned {
            return None;
        }
        // A worker's jobs come in the order of their numbers: the first schedule of all that fails in some way is also
        // the first of its worker.
        // Any run whose failure says nothing of where the bug is may be kept.
        let is_new = run
            .failure
            .as_ref()
            .is_some_and(|failure| failure.is_vague() || self.seen.insert(failure.fingerprint()));
        let digests = is_new.then(|| self.stage.digests());
        let mut outcome = Outcome::new(job.index, run);
        outcome.digests = digests;
        outcome.spent.plan += making;
        Some(outcome)
    }
}
