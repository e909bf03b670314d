//! What a scheduler is asked and what it may know.

use std::collections::BTreeMap;

use raddle_trace::{Path, Position};
use raddle_world::{Context, ContextId, ContextTable, Duration, Fault, Pending, Site, successor};
use serde::{Deserialize, Serialize};

/// Why a context has to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The schedule begins.
    Start,
    /// The current context stands before a system call or synchronisation operation.
    Sync,
    /// It stands before a flagged program point.
    Point { site: Site },
    /// It goes round in a loop that cannot end without another context's write.
    Spinning,
    /// It asked to be scheduled later. It may still be what goes on: no system promises more.
    Yielded,
    /// It used up its patience.
    Starving,
    /// The step bound of the scheduler was reached.
    Bound,
    /// It cannot go on.
    Blocked,
}

impl Reason {
    /// Whether going on with the current context makes no sense while others can run.
    pub fn asks_for_another(self) -> bool {
        matches!(self, Self::Spinning | Self::Starving)
    }
}

/// The situation in which a choice is made.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Who ran last.
    pub current: ContextId,
    /// How far it has come.
    pub at: Position,
    pub reason: Reason,
    /// Where in the program it stands.
    pub site: Site,
    /// Who can be chosen; never empty, ascending. Contexts in loops that cannot end without another context's write
    /// are left out while there are others.
    pub runnable: &'a [ContextId],
    /// Who would be next in the default order.
    pub default: ContextId,
    pub contexts: &'a ContextTable,
    /// What each context would do next, by its number, as far as it is known.
    pub next: &'a [Option<Pending>],
    /// Stops that each context has made, by its number.
    pub stops: &'a [u64],
    /// How long it is until the next timer or time-out.
    pub until_timer: Option<Duration>,
}

impl View<'_> {
    /// Whether the current context may be chosen again and it makes sense to.
    pub fn can_stay(&self) -> bool {
        self.runnable.contains(&self.current)
            && (self.runnable.len() == 1 || !self.reason.asks_for_another())
    }

    /// The next operation of a context, if it is known.
    pub fn next_of(&self, who: ContextId) -> Option<&Pending> {
        self.next.get(who.0 as usize)?.as_ref()
    }

    /// How many stops a context has made.
    pub fn stops_of(&self, who: ContextId) -> u64 {
        self.stops.get(who.0 as usize).copied().unwrap_or(0)
    }

    /// The runnable context after this one in the order of creation, round the circle.
    pub fn successor(&self, who: ContextId) -> ContextId {
        successor(self.runnable, Some(who)).expect("there is always somebody to choose")
    }

    /// The default, except that a context that asks for another is not run again while there are others.
    pub fn sensible_default(&self) -> ContextId {
        if self.default == self.current && self.reason.asks_for_another() {
            self.successor(self.current)
        } else {
            self.default
        }
    }
}

/// Chooses who runs next. What only some schedulers can do is an ability that the driver asks for; a scheduler without
/// it is never asked the questions that belong to it. A scheduler that wraps another one implements
/// [`crate::Wrap`] instead, which forwards whatever it does not change.
pub trait Scheduler {
    /// One of `view.runnable`. Called at every stop, even if there is only one to choose.
    fn pick(&mut self, view: &View<'_>) -> ContextId;
    /// Steps after which the context is to stop, whatever it does. Asked before every slice.
    fn bound(&self, _who: &Context) -> u64 {
        u64::MAX
    }
    /// Present if it decides when the clock jumps.
    fn clock(&mut self) -> Option<&mut dyn Clock> {
        None
    }
    /// Present if it decides which faults contexts meet.
    fn faults(&mut self) -> Option<&mut dyn Faults> {
        None
    }
    /// Present if the schedule is given: then nothing else may interfere, not even for fairness.
    fn given(&mut self) -> Option<&mut dyn Given> {
        None
    }
    /// Present if it needs not be asked at every flagged point.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }
}

/// The ability to let the clock jump.
pub trait Clock {
    /// Whether the clock is to jump to the next timer or time-out before a context is picked. Asked only if there is
    /// one; asked again after a jump.
    fn jumps(&mut self, view: &View<'_>) -> bool;
}

/// The ability to let contexts meet faults.
pub trait Faults {
    /// The fault that the current context meets in what it is about to do, one of those that are possible. Asked at
    /// most once per stop, after the clock and before a context is picked.
    fn fault(&mut self, view: &View<'_>, possible: &[Fault]) -> Option<Fault>;
}

/// The ability of a schedule that is given.
pub trait Given {
    /// Whether the next instruction of a context, which reads and writes one granule without a lock, is to be torn
    /// apart, so that another context can come between. Where no schedule is given, it always is.
    fn tears(&mut self, who: &Context) -> bool;
}

/// The ability to foresee picks.
pub trait Passing {
    /// At how many of its next flagged points the context that was just picked would be picked again, if nothing else
    /// happens; `candidates` could be picked. Points of [`Passing::interest`] do not count: there it is asked.
    fn passes(&mut self, candidates: usize) -> u64;
    /// So many points were passed without asking.
    fn passed(&mut self, candidates: usize, points: u64);
    /// Points at which it is asked in any case, sorted.
    fn interest(&mut self) -> &[Site];
}

/// What earlier runs of the same program told about its size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Decisions in a run: PCT's k.
    pub decisions: u64,
    /// Stops while a timer or time-out was running.
    pub timed_stops: u64,
    /// Stops of each context.
    #[serde(with = "as_pairs")]
    pub stops: BTreeMap<Path, u64>,
    /// Stops of each context by the program point at which it stood.
    #[serde(with = "as_pairs")]
    pub visits: BTreeMap<Path, BTreeMap<Site, u64>>,
    /// What each context did, as a digest: equal ones run the same code, so far as it was seen.
    #[serde(with = "as_pairs")]
    pub kinds: BTreeMap<Path, u64>,
    /// Where the current context stood at each decision of the default order.
    pub trail: Vec<Site>,
}

/// Maps whose keys are lists, in formats whose keys are words.
mod as_pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let pairs = Vec::<(K, V)>::deserialize(from)?;
        Ok(pairs.into_iter().collect())
    }
}

impl Profile {
    /// The kind of a context; a context never seen is of its own kind.
    pub fn kind(&self, path: &[u32]) -> u64 {
        self.kinds.get(path).copied().unwrap_or_else(|| {
            let mut digest = raddle_stdx::Digest::default();
            path.iter()
                .for_each(|element| digest.word(u64::from(*element)));
            digest.value()
        })
    }
}
