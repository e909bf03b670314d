//! What is to be forced, and in which order.

use std::collections::BTreeMap;

use raddle_code::{Role, SiteKind};
use raddle_sched::Verdict;
use raddle_stdx::width::to_u64;
use raddle_trace::Path;
use raddle_world::{ContextId, ContextTable, Site};

use crate::access::Seen;
use crate::unserializable::Case;

/// Dynamic instances of one target that are tried at most.
const INSTANCES_MAX: usize = 3;

/// An instruction at one of its visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub site: Site,
    /// The eight bytes that it touches; 0 for whatever it touches.
    pub addr: u64,
    /// Number of the visit by its context, from 1.
    pub visit: u64,
}

/// What could go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A NULL pointer is used.
    Null,
    /// Freed memory is used.
    Dangling,
    /// An index, a length or a text changes while a buffer is accessed with it.
    Overflow(Role),
    /// Something is read before it has its value.
    Uninitialised,
    /// A read gets a value with which the program comes to a failure site.
    Failure(SiteKind),
    /// What belongs together is torn apart.
    Unserializable(Case),
    /// A read gets a value that it never had.
    Invariant,
}

impl Kind {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "con-null",
            Self::Dangling => "con-dangling",
            Self::Overflow(_) => "con-overflow",
            Self::Uninitialised => "con-uninit",
            Self::Failure(_) => "conseq",
            Self::Unserializable(_) => "ctrigger",
            Self::Invariant => "conseq-invariant",
        }
    }

    /// More about it, if its kind has several cases.
    pub fn case(self) -> Option<&'static str> {
        match self {
            Self::Unserializable(case) => Some(case.letters()),
            Self::Overflow(Role::Index) => Some("index"),
            Self::Overflow(Role::Length) => Some("length"),
            Self::Overflow(Role::Text) => Some("text"),
            Self::Failure(SiteKind::Assertion) => Some("assertion"),
            Self::Failure(SiteKind::Error) => Some("error message"),
            Self::Failure(SiteKind::Loop) => Some("endless loop"),
            Self::Failure(SiteKind::Output) => Some("output"),
            _ => None,
        }
    }
}

/// How sure it is that something bad would happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// What it does is known: a memory error, a failure site that is reached.
    Certain,
    Likely,
    /// It may be nothing: some value differs.
    Doubtful,
}

/// One context is held until another one has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forced {
    pub held: ContextId,
    /// The context that is held, under the name that it has in every run; empty until its run has ended.
    pub path: Path,
    pub at: Spot,
    pub until: Spot,
}

impl Forced {
    /// Holds a context before an access until another one has made its own.
    pub(crate) fn until_passed(waits: &Seen, passes: &Seen) -> Self {
        Self {
            held: waits.context,
            path: Vec::new(),
            at: waits.hold_before(&passes.held),
            until: passes.spot,
        }
    }
}

/// Holds that are obeyed together.
pub type Way = Vec<Forced>;

/// An interleaving to force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    pub rank: Rank,
    /// Ways to force it, the best one first.
    pub ways: Vec<Way>,
    /// The instructions that take part, with what each of them is.
    pub sites: Vec<(Site, &'static str)>,
    /// Own steps between the two accesses that belong together.
    pub gap: u64,
    /// Accesses between the two that are to change places.
    pub distance: u64,
    /// The read that gets another value, and that value if it is known.
    pub gives: Option<(Site, u64)>,
}

/// What came of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The forced run failed.
    Confirmed,
    /// It was forced, and nothing failed.
    Benign,
    /// While the one was held, no other context could go on.
    Blocked,
    /// The other one did not come.
    NotReached,
    /// There was no time.
    Untried,
}

impl Outcome {
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Reached => Self::Benign,
            Verdict::Blocked => Self::Blocked,
            Verdict::NotReached => Self::NotReached,
        }
    }
}

type Key = (Kind, Vec<Site>);

/// The targets of a profile: those between the same instructions are one, with some of their instances.
#[derive(Debug, Default)]
pub struct Targets {
    all: BTreeMap<Key, Vec<Target>>,
    /// Candidates that order or critical sections exclude.
    pub excluded: u64,
}

impl Targets {
    pub fn add(&mut self, target: Target) {
        let sites = target.sites.iter().map(|(site, _)| *site).collect();
        let instances = self.all.entry((target.kind, sites)).or_default();
        let is_new = !instances.iter().any(|known| known.ways == target.ways);
        if is_new && instances.len() < INSTANCES_MAX {
            instances.push(target);
        }
    }

    /// A run has ended: its contexts get the names that they have in every run.
    pub fn name_contexts(&mut self, contexts: &ContextTable) {
        let targets = self.all.values_mut().flatten();
        let ways = targets.flat_map(|target| &mut target.ways);
        for forced in ways.flatten() {
            if forced.path.is_empty() {
                forced.path = contexts.get(forced.held).path.to_vec();
            }
        }
    }

    /// Takes in what a run showed.
    pub fn absorb(&mut self, later: Self) {
        later
            .all
            .into_values()
            .flatten()
            .for_each(|target| self.add(target));
    }

    pub fn extend(&mut self, targets: impl IntoIterator<Item = Target>) {
        targets.into_iter().for_each(|target| self.add(target));
    }

    /// Drops the instances that are not worth trying.
    pub fn retain(&mut self, is_worth: impl Fn(&Target) -> bool) {
        for instances in self.all.values_mut() {
            instances.retain(&is_worth);
        }
        self.all.retain(|_, instances| !instances.is_empty());
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many there are of a kind, whatever its case.
    pub fn count(&self, kind: Kind) -> u64 {
        let same = self
            .all
            .keys()
            .filter(|(known, _)| known.name() == kind.name());
        to_u64(same.count())
    }

    /// All of them with their instances: first those whose harm is known; then the smallest gap, which is the rarest in
    /// nature.
    pub fn ranked(self) -> Vec<Vec<Target>> {
        let mut ranked: Vec<Vec<Target>> = self.all.into_values().collect();
        ranked.sort_by_key(|instances| {
            let first = &instances[0];
            let is_invariant = first.kind == Kind::Invariant;
            (first.rank, is_invariant, first.gap, first.distance)
        });
        ranked
    }
}
