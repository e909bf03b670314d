//! A run as stretches of its contexts, and a scheduler that follows such a list.
//!
//! Deviations say where a run left the default order; stretches say who ran from where to where. Moving and
//! joining stretches changes the order of a run in ways that taking deviations away cannot.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use raddle_sched::{Clock, Given, Passing, Reason, Scheduler, View, Wrap};
use raddle_trace::{Path, Phase, Position};
use raddle_world::{Context, ContextId};

/// One context runs without another in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) context: Path,
    pub(crate) until: Until,
}

/// How a stretch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The context could have gone on: a preemption.
    Preempted(Position),
    /// The context blocked, ended or gave its turn away.
    Left,
}

/// A run: its stretches, and the places where it could have been cut otherwise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) stops: BTreeMap<Path, BTreeSet<Position>>,
    /// Where the clock jumped.
    pub(crate) jumps: Vec<(Path, Position)>,
}

/// Lets another scheduler choose and writes down the stretches.
#[derive(Debug)]
pub(crate) struct Written<S> {
    inner: S,
    stretches: Vec<Stretch>,
    /// Who runs now.
    last: Option<Path>,
    /// Every place where a context could have been preempted.
    stops: BTreeMap<Path, BTreeSet<Position>>,
    jumps: Vec<(Path, Position)>,
    /// Jumps of the clock count as well.
    pub(crate) preemptions: u64,
}

impl<S: Scheduler> Written<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            stretches: Vec::new(),
            last: None,
            stops: BTreeMap::new(),
            jumps: Vec::new(),
            preemptions: 0,
        }
    }

    /// All stretches, that of the end of the run included.
    pub(crate) fn into_line(mut self) -> Line {
        self.stretches.extend(self.last.map(|context| Stretch {
            context,
            until: Until::Left,
        }));
        Line {
            stretches: self.stretches,
            stops: self.stops,
            jumps: self.jumps,
        }
    }
}

impl<S: Scheduler> Wrap for Written<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// All stops are written down.
    fn passing(&mut self) -> Option<&mut dyn Passing> {
        None
    }

    fn pick(&mut self, view: &View<'_>) -> ContextId {
        let next = self.inner.pick(view);
        let can_go_on = view.runnable.contains(&view.current);
        if can_go_on && view.runnable.len() > 1 {
            let path = &*view.contexts.get(view.current).path;
            if let Some(stops) = self.stops.get_mut(path) {
                stops.insert(view.at);
            } else {
                self.stops.insert(path.to_vec(), BTreeSet::from([view.at]));
            }
        }
        if next != view.current {
            let could_go_on = can_go_on && !view.reason.asks_for_another();
            self.preemptions += u64::from(could_go_on);
            self.stretches.push(Stretch {
                context: view.contexts.get(view.current).path.to_vec(),
                until: if could_go_on {
                    Until::Preempted(view.at)
                } else {
                    Until::Left
                },
            });
            self.last = Some(view.contexts.get(next).path.to_vec());
        }
        next
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

impl<S: Scheduler> Clock for Written<S> {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        let jumps = self.inner.clock().is_some_and(|clock| clock.jumps(view));
        if jumps {
            let path = view.contexts.get(view.current).path.to_vec();
            self.jumps.push((path, view.at));
            self.preemptions += 1;
        }
        jumps
    }
}

/// Follows a list of stretches as far as it can, and the default order after it.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    stretches: &'a [Stretch],
    at: usize,
    /// Jumps of the clock that are still to come.
    jumps: VecDeque<(Path, Position)>,
    /// The stretch at whose end an instruction was to be torn apart.
    torn: Option<usize>,
    /// The stretch at whose end there was nothing to tear: it ends before that instruction.
    whole: Option<usize>,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(stretches: &'a [Stretch], jumps: &[(Path, Position)]) -> Self {
        Self {
            stretches,
            at: 0,
            jumps: jumps.iter().cloned().collect(),
            torn: None,
            whole: None,
        }
    }

    /// Whether the current context is still in its stretch.
    fn is_inside(&self, view: &View<'_>) -> bool {
        let Some(stretch) = self.stretches.get(self.at) else {
            return false;
        };
        let is_its_turn = *view.contexts.get(view.current).path == *stretch.context;
        let can_go_on = view.runnable.contains(&view.current);
        let is_over = match stretch.until {
            Until::Preempted(_) if self.whole == Some(self.at) => true,
            Until::Preempted(end) => view.at >= end,
            Until::Left => view.reason.asks_for_another(),
        };
        is_its_turn && can_go_on && !is_over && view.reason != Reason::Starving
    }
}

impl Scheduler for Follower<'_> {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        if self.is_inside(view) {
            return view.current;
        }
        let current = &*view.contexts.get(view.current).path;
        if self
            .stretches
            .get(self.at)
            .is_some_and(|stretch| *stretch.context == *current)
        {
            self.at += 1;
        }
        while let Some(stretch) = self.stretches.get(self.at) {
            let found = view
                .runnable
                .iter()
                .find(|id| *view.contexts.get(**id).path == *stretch.context);
            let is_past = |id: ContextId| match stretch.until {
                Until::Preempted(end) => view.contexts.get(id).steps > end.steps,
                Until::Left => false,
            };
            match found {
                Some(id) if !is_past(*id) => return *id,
                // A stretch whose context is not there, cannot run or has passed its end already.
                _ => self.at += 1,
            }
        }
        view.default
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }

    fn given(&mut self) -> Option<&mut dyn Given> {
        Some(self)
    }

    fn bound(&self, who: &Context) -> u64 {
        match self.stretches.get(self.at) {
            Some(Stretch {
                context,
                until: Until::Preempted(end),
            }) if *who.path == **context => end.steps.saturating_sub(who.steps),
            _ => u64::MAX,
        }
    }
}

impl Clock for Follower<'_> {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        let path = &*view.contexts.get(view.current).path;
        let is_here = |(context, at): &mut (Path, Position)| **context == *path && *at == view.at;
        self.jumps.pop_front_if(is_here).is_some()
    }
}

impl Given for Follower<'_> {
    fn tears(&mut self, who: &Context) -> bool {
        let is_here = self.stretches.get(self.at).is_some_and(|stretch| {
            let is_end = matches!(stretch.until, Until::Preempted(end)
                if end.phase == Phase::Torn && end.steps == who.steps);
            is_end && *stretch.context == *who.path
        });
        if !is_here {
            return false;
        }
        // Asked for the same place again: there is nothing to tear.
        if self.torn == Some(self.at) {
            self.whole = Some(self.at);
            return false;
        }
        self.torn = Some(self.at);
        true
    }
}

/// Lists with fewer stretches: one is left out, so that its context does that work later, or it is joined to
/// the previous stretch of its context, so that the work is done earlier (Jalbert and Sen, FSE 2010).
pub(crate) fn shorter(stretches: &[Stretch]) -> impl Iterator<Item = Vec<Stretch>> {
    (0..stretches.len()).rev().flat_map(move |index| {
        let mut left_out = stretches.to_vec();
        left_out.remove(index);
        let joined = joined(stretches, index);
        let is_joined = joined != left_out;
        let joined = is_joined.then_some(joined);
        [Some(left_out), joined].into_iter().flatten()
    })
}

/// The list with a stretch joined to the previous one of its context, or left out if there is none.
pub(crate) fn joined(stretches: &[Stretch], index: usize) -> Vec<Stretch> {
    let mut list = stretches.to_vec();
    let moved = list.remove(index);
    let is_same = |stretch: &Stretch| stretch.context == moved.context;
    if let Some(before) = list[..index].iter().rposition(is_same) {
        list[before] = moved;
    }
    list
}

/// Preemptions are moved by at most this many stops.
const SHIFT_MAX: usize = 12;

impl Line {
    /// Lists in which one preemption happens at another stop of its context and another stretch is left out,
    /// and lists without two of the stretches.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Vec<Stretch>> {
        let count = self.stretches.len();
        let without = move |list: &[Stretch], index: usize| {
            let mut list = list.to_vec();
            list.remove(index);
            list
        };
        let pairs = (0..count).flat_map(move |first| {
            (first + 1..count).map(move |second| without(&without(&self.stretches, second), first))
        });
        let shifted = (0..count).flat_map(move |index| {
            self.shifts(&self.stretches[index])
                .into_iter()
                .flat_map(move |until| {
                    let mut list = self.stretches.clone();
                    list[index].until = until;
                    (0..count)
                        .filter(move |other| *other != index)
                        .map(move |other| without(&list, other))
                })
        });
        pairs.chain(shifted)
    }

    /// Other ends for a stretch that was preempted.
    pub(crate) fn shifts(&self, stretch: &Stretch) -> Vec<Until> {
        let (Until::Preempted(end), Some(stops)) =
            (stretch.until, self.stops.get(&stretch.context))
        else {
            return Vec::new();
        };
        let later = stops
            .range((Bound::Excluded(end), Bound::Unbounded))
            .take(SHIFT_MAX);
        let earlier = stops.range(..end).rev().take(SHIFT_MAX / 3);
        later
            .chain(earlier)
            .map(|position| Until::Preempted(*position))
            .collect()
    }
}

/// The list up to some length: everything after follows the default order.
pub(crate) fn prefixes(stretches: &[Stretch]) -> impl Iterator<Item = &[Stretch]> {
    (0..stretches.len()).map(|length| &stretches[..length])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raddle_world::{ContextTable, Site};

    use super::*;

    fn stretch(context: u32, steps: u64) -> Stretch {
        Stretch {
            context: vec![context],
            until: Until::Preempted(Position {
                steps,
                phase: Phase::Plain,
            }),
        }
    }

    #[test]
    fn shorter_lists_leave_out_or_join_one_stretch() {
        let all = [stretch(1, 10), stretch(2, 5), stretch(1, 20)];
        let lists: Vec<Vec<Stretch>> = shorter(&all).collect();
        assert!(lists.contains(&vec![stretch(1, 20), stretch(2, 5)]));
        assert!(lists.contains(&vec![stretch(1, 10), stretch(2, 5)]));
        assert!(lists.contains(&vec![stretch(2, 5), stretch(1, 20)]));
        assert!(lists.contains(&vec![stretch(1, 10), stretch(1, 20)]));
        assert_eq!(lists.len(), 4);
    }

    #[test]
    fn an_end_in_an_instruction_that_cannot_be_torn_is_before_it() {
        let mut table = ContextTable::default();
        let who = table.create(None, Arc::from("whole"));
        let other = table.create(None, Arc::from("other"));
        let end = Position {
            steps: 0,
            phase: Phase::Torn,
        };
        let list = [
            Stretch {
                context: table.get(who).path.to_vec(),
                until: Until::Preempted(end),
            },
            Stretch {
                context: table.get(other).path.to_vec(),
                until: Until::Left,
            },
        ];
        let mut follower = Follower::new(&list, &[]);
        let runnable = [who, other];
        let view = View {
            current: who,
            at: Position {
                steps: 0,
                phase: Phase::Plain,
            },
            reason: Reason::Bound,
            site: Site::NOWHERE,
            runnable: &runnable,
            default: who,
            contexts: &table,
            next: &[],
            stops: &[],
            until_timer: None,
        };
        assert_eq!(follower.pick(&view), who);
        assert!(follower.tears(table.get(who)));
        assert_eq!(follower.pick(&view), who, "the world may have torn it");
        assert!(!follower.tears(table.get(who)), "it has not");
        assert_eq!(follower.pick(&view), other);
    }
}
