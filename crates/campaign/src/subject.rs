//! What can be explored: anything that comes to a place where its schedules begin, again and again.
//!
//! A [`Subject`] is a program, a test of a kernel, a server with its clients: data, from which every worker makes a
//! [`Stage`] of its own. The campaign knows both only by these traits.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;

use raddle_detect::Covered;
use raddle_detect::communication::Meetings;
use raddle_report::Finding;
use raddle_sched::{Drive, Profile, Scheduler};
use raddle_stdx::width::to_usize;
use raddle_trace::{Limits, Observer};
use raddle_world::{Duration, Site, World};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cancel::Leave;
use crate::coverage::CodeName;
use crate::minimise::{Effort, Smallest};
use crate::options::Options;
use crate::outcome::{Digests, Outcome};
use crate::portfolio::Portfolio;
use crate::spent::Spent;

/// What is worth travelling to another worker and back.
pub trait Data: Clone + Debug + Send + Sync + Serialize + DeserializeOwned {}

impl<T: Clone + Debug + Send + Sync + Serialize + DeserializeOwned> Data for T {}

/// How to run and to judge.
pub trait Rules: Data {
    fn limits(&self) -> Limits;

    /// The same rules with other limits.
    #[must_use]
    fn with_limits(self, limits: Limits) -> Self;
}

/// What went wrong in a run.
pub trait Symptom: Data {
    /// Equal for the same bug.
    fn fingerprint(&self) -> String;

    /// Whether the run would have gone on for ever.
    fn is_hang(&self) -> bool;

    /// Whether it says nothing of where the bug is, so that different bugs look the same.
    fn is_vague(&self) -> bool;
}

/// A data race as runs showed it.
pub trait Sighting: Data {
    /// The two instructions, the lower one first.
    fn pair(&self) -> (Site, Site);

    /// Takes what a later run saw of the same two instructions; says whether that run is the better witness.
    fn add(&mut self, later: &Self) -> bool;
}

/// What a kind of subject counts in its runs, besides what all of them do.
pub trait Tally: Data + Default {
    fn add(&mut self, other: &Self);
}

impl Tally for () {
    fn add(&mut self, &(): &()) {}
}

/// How closely a run is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    /// Memory accesses, for communication points and races.
    pub memory: bool,
    /// Every visit of a point, for what schedulers need to know of the size of a run.
    pub points: bool,
    /// Which unserializable interleavings happen; only if memory is watched.
    pub coverage: bool,
}

impl Watch {
    /// Nothing is watched.
    pub const NOTHING: Self = Self {
        memory: false,
        points: false,
        coverage: false,
    };
    /// As the default order is watched before anything is known.
    pub const EVERYTHING: Self = Self {
        memory: true,
        points: true,
        coverage: false,
    };
    /// Memory accesses only.
    pub const MEMORY: Self = Self {
        memory: true,
        points: false,
        coverage: false,
    };
}

/// What an observed run told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Learned<R> {
    pub meetings: Meetings,
    /// Instructions at meeting places that wrote.
    pub writers: BTreeSet<Site>,
    pub shared_places: u64,
    pub races: Vec<R>,
    /// Only if coverage was watched.
    pub covered: Option<Covered>,
}

/// A schedule that was run, as the stage that ran it knows it.
#[derive(Debug, Clone)]
pub struct Run<F, R, T> {
    pub drive: Drive,
    pub failure: Option<F>,
    /// Only if points were watched.
    pub profile: Option<Profile>,
    /// Contexts that there were.
    pub contexts: u64,
    /// Only if memory was watched.
    pub learned: Option<Learned<R>>,
    pub tally: T,
    pub spent: Spent,
}

/// The runs of a stage.
pub type RunOf<S> = Run<<S as Stage>::Symptom, <S as Stage>::Race, <S as Stage>::Tally>;
/// What workers tell of the runs of a stage.
pub type OutcomeOf<S> = Outcome<<S as Stage>::Symptom, <S as Stage>::Race, <S as Stage>::Tally>;
/// The findings of a stage.
pub type FoundOf<S> = Found<<S as Stage>::Recording>;

/// The data races of a stage; one that was not run again has no recording.
pub type RacyOf<S> = Found<Option<<S as Stage>::Recording>>;

/// A finding with everything that is needed to have it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<R> {
    pub finding: Finding,
    pub recording: R,
}

/// A failure that was told.
#[derive(Debug)]
pub struct Explained<R> {
    pub found: Found<R>,
    /// Whether two runs came to the same end, bit for bit.
    pub is_repeated: bool,
}

/// A world that stands where schedules begin, and comes back there before each of them.
pub trait Stage: Sized + Debug {
    type World: World;
    type Rules: Rules;
    type Symptom: Symptom;
    type Race: Sighting;
    type Tally: Tally;
    type Recording: Clone + Debug;

    fn world(&self) -> &Self::World;

    /// How long runs may go on.
    fn leave(&self) -> &Leave;

    fn set_leave(&mut self, leave: Leave);

    /// Makes instructions decision points.
    fn add_points(&mut self, points: &[Site]);

    /// How long threads wait at most for a turn that only the end of that wait gives them, if there is such a thing.
    fn turn_wait(&self) -> Option<Duration> {
        None
    }

    /// Runs one schedule from the start and judges it.
    fn run(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Self::Rules,
        watch: Watch,
    ) -> RunOf<Self>;

    /// Runs one schedule from the start, shows its events to observers, and judges it.
    fn observe(
        &mut self,
        scheduler: &mut dyn Scheduler,
        rules: &Self::Rules,
        observers: &mut [&mut dyn Observer],
    ) -> RunOf<Self>;

    /// Right after a run: what a replay of it must come to.
    fn digests(&mut self) -> Digests;

    /// An instruction in words.
    fn describe(&mut self, site: Site) -> String;

    /// An instruction under a name that it keeps in every run of the same build; none if the kind of subject has no
    /// such names.
    fn name_code(&mut self, site: Site) -> Option<CodeName> {
        let _ = site;
        None
    }

    /// A failure that was neither replayed nor made small nor explained.
    fn as_found(&mut self, failing: &OutcomeOf<Self>, rules: &Self::Rules) -> FoundOf<Self>;

    /// Tells a failure, without what the campaign knows of its size; nothing if there is no leave to go on.
    fn explain(
        &mut self,
        failing: &OutcomeOf<Self>,
        smallest: &Smallest<RunOf<Self>>,
        rules: &Self::Rules,
    ) -> Option<Explained<Self::Recording>>;

    /// Tells data races, each with a run that shows it.
    fn explain_races(
        &mut self,
        races: &[(Self::Race, OutcomeOf<Self>)],
        rules: &Self::Rules,
    ) -> Vec<RacyOf<Self>>;
}

/// What differs between kinds of subjects without being their own business.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    pub portfolio: &'static Portfolio,
    /// One schedule in this many is observed once the set of points is stable.
    pub sample: u64,
    /// One in this many as long as it is not.
    pub learning_sample: u64,
    /// Fewer schedules than this are not worth the start of a worker.
    pub worker_schedules: u64,
    /// How hard to try to make a schedule small.
    pub effort: Effort,
}

impl Habits {
    /// Workers that make sense for a budget.
    pub fn useful_workers(&self, available: usize, schedules: u64) -> usize {
        let useful = to_usize(schedules.div_ceil(self.worker_schedules));
        available.min(useful).max(1)
    }
}

/// What is explored.
pub trait Subject: Sync {
    type Stage: Stage;
    type StartFailure;

    fn habits(&self) -> Habits;

    fn options(&self) -> &Options;

    /// Comes to the place where schedules begin; deterministic, since every worker does it.
    fn start(&self) -> Result<Self::Stage, Self::StartFailure>;

    /// The rules of the default order, of which nothing is known yet.
    fn first_rules(&self) -> <Self::Stage as Stage>::Rules;

    /// The rules of all other schedules.
    ///
    /// # Errors
    /// If the default order shows that there is nothing to explore.
    fn rules(
        &self,
        stage: &mut Self::Stage,
        baseline: &RunOf<Self::Stage>,
    ) -> Result<<Self::Stage as Stage>::Rules, Self::StartFailure>;

    /// The code on which decisions are concentrated; empty for all of it.
    fn focus(&self, _stage: &mut Self::Stage) -> Result<Vec<Range<Site>>, Self::StartFailure> {
        Ok(Vec::new())
    }
}
