//! What the ways out of a function say: its effect on callers, and locks that were forgotten.

use super::eval::Eval;
use super::state::{Done, Freed, Held};
use super::summary::{Outcome, Summary, Term, Touched};
use super::value::{ANY, NEGATIVE, Node, POSITIVE, Signs, Value};
use crate::analyse::cfg::Cfg;
use crate::analyse::locks::{Lock, LockSet, Locks};
use crate::front::event::{Event, Kind, RUNS_ONCE, TESTS_LAST, TOP};
use crate::front::lex::at;

/// One way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) event: u32,
    pub(super) signs: Signs,
    pub(super) is_void: bool,
    pub(super) result: Option<Value>,
    pub(super) unlikely: bool,
    pub(super) held: Vec<Held>,
    pub(super) freed: Vec<Freed>,
    pub(super) done: Vec<Done>,
    pub(super) freed_set: LockSet,
}

impl Exit {
    /// Whether the result is what a call returned, and is not zero: by custom an error.
    fn returns_failure(&self, eval: &Eval<'_>) -> bool {
        self.signs == NEGATIVE | POSITIVE
            && self
                .result
                .is_some_and(|result| matches!(eval.values.node(result), Node::Result(_, 0)))
    }

    /// Whether the result is the object that the lock belongs to.
    fn returns_owner(&self, eval: &Eval<'_>, held: &Held) -> bool {
        self.result
            .is_some_and(|result| eval.values.bases(held.instance).any(|base| base == result))
    }
}

/// What two events on one path mean together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathFactKind {
    /// The lock taken at the first is still held at the second, a return, by mistake.
    Leaks,
    /// The same where the result fails: the context that the lock was meant to be handed to does not get it.
    LeaksOnError,
    /// The lock taken at the first is still held at the second, a return that tells the caller, or that no other
    /// way contradicts: a mistake if no function gives the lock back.
    Keeps,
    /// The lock taken at the first is taken again at the second.
    Relocks,
    /// The lock released at the first is released again at the second.
    Reunlocks,
    /// The second releases the lock that the first takes, on a path on which it was never taken.
    ReleasesUnheld,
    /// The object freed at the first is used at the second.
    UsesFreed,
    /// The object found in the RCU section that ends at the first is used at the second.
    UsesAfterRcu,
    /// The object found under the lock that is released at the first is used at the second.
    UsesAfterUnlock,
}

/// Two events on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathFact {
    pub(crate) kind: PathFactKind,
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) lock: Lock,
}

/// Words in names of functions that may leave a lock held for others to release.
const MEANT: &[&str] = &[
    "start", "begin", "first", "next", "enter", "acquire", "reserve", "hold", "freeze", "suspend",
    "claim", "grab",
];

/// Events of a function that is there to switch off interrupts or preemption for its caller.
const WRAPPER_EVENTS_MAX: usize = 12;

pub(super) fn summary(
    eval: &Eval<'_>,
    locks: &Locks,
    events: &[Event],
    exits: &[Exit],
    passes: &[Touched],
) -> Summary {
    // A larger function that seems to leave preemption off has switched it on in a way that was not seen.
    let is_kept = |lock: Lock| {
        events.len() <= WRAPPER_EVENTS_MAX
            || !eval.view.program.table.family(locks.family(lock)).context
    };
    let mut summary = Summary {
        passes: passes.to_vec(),
        ..Summary::default()
    };
    for exit in exits {
        let touched = |lock: Lock, instance| Touched {
            lock,
            term: Term::of_returned(&eval.values, instance, exit.result),
        };
        // What was given away and taken back is as it was.
        let takes_back = |lock: Lock| {
            exit.held.iter().any(|held| held.lock.is_same_object(lock))
                && exit
                    .freed
                    .iter()
                    .any(|freed| freed.lock.is_same_object(lock))
        };
        let outcome = Outcome {
            signs: exit.signs,
            takes: exit
                .held
                .iter()
                .filter(|held| !held.unsure && !takes_back(held.lock) && is_kept(held.lock))
                .map(|held| touched(held.lock, held.instance))
                .collect(),
            frees: exit
                .freed
                .iter()
                .filter(|freed| !takes_back(freed.lock) && is_kept(freed.lock))
                .map(|freed| touched(freed.lock, freed.instance))
                .collect(),
        };
        summary.add(outcome);
    }
    summary
}

/// What the search for forgotten locks looks at.
#[derive(Debug)]
pub(super) struct Leaks<'l, 'p> {
    pub(super) eval: &'l Eval<'p>,
    pub(super) locks: &'l Locks,
    pub(super) events: &'l [Event],
    pub(super) cfg: &'l Cfg,
    pub(super) exits: &'l [Exit],
    /// Where each lock was taken and released again.
    pub(super) pairs: &'l [(u32, u32)],
}

impl Leaks<'_, '_> {
    /// Locks that are held at one way out although another way, on which they were taken too, released them,
    /// and although the result does not tell the caller.
    pub(super) fn find(&self) -> Vec<PathFact> {
        let mut facts = Vec::new();
        if self.eval.view.function.hands_over {
            return facts;
        }
        for exit in self.exits.iter().filter(|exit| !exit.unlikely) {
            for held in &exit.held {
                if let Some(kind) = self.leak(exit, held) {
                    facts.push(PathFact {
                        kind,
                        first: held.by,
                        second: exit.event,
                        lock: held.lock,
                    });
                }
            }
        }
        facts
    }

    /// What it means that the lock is held at this way out, if it is a mistake at all.
    fn leak(&self, exit: &Exit, held: &Held) -> Option<PathFactKind> {
        let program = self.eval.view.program;
        let family = program.table.family(self.locks.family(held.lock));
        let is_given_away = exit.freed.iter().any(|freed| {
            freed.lock.is_same_object(held.lock) || self.locks.is_alike(freed.lock, held.lock)
        });
        if held.unsure
            || family.context
            || family.counts
            || is_given_away
            || exit.returns_owner(self.eval, held)
            || is_taken_in_a_loop(self.events, held.by, exit.event)
        {
            return None;
        }
        let signs_released = self
            .exits
            .iter()
            .filter(|other| other.done.iter().any(|done| done.by == held.by))
            .fold(None, |signs: Option<Signs>, other| {
                Some(signs.unwrap_or(0) | other.signs)
            });
        // A name alone is no evidence, and a function that is there to take a lock weak evidence.
        let is_named = Some(self.locks.family(held.lock)) == program.table.named_family();
        if is_named && exit.signs != NEGATIVE {
            return None;
        }
        let name = program.function_name(self.eval.view.id);
        let is_lock_function = name.contains("lock");
        let is_meant = is_named
            || is_lock_function
            || held.handed
            || name.contains("seq")
            || name.split('_').any(|word| MEANT.contains(&word));
        let Some(signs_released) = signs_released else {
            return self.keeps(held, is_meant);
        };
        let is_weak = (family.rcu && exit.signs == ANY) || is_lock_function;
        if self.is_release_conditional(held.by, exit.event) {
            return None;
        }
        if is_weak && !exit.is_void && exit.signs != NEGATIVE {
            return None;
        }
        if exit.signs == NEGATIVE {
            Some(PathFactKind::LeaksOnError)
        } else if exit.is_void
            || exit.returns_failure(self.eval)
            || is_mistake(exit.signs, signs_released)
        {
            Some(PathFactKind::Leaks)
        } else {
            self.keeps(held, is_meant)
        }
    }

    /// A lock that is not vague and that nothing but its release can mean.
    fn keeps(&self, held: &Held, is_meant: bool) -> Option<PathFactKind> {
        let is_clear = !is_meant && !self.locks.is_vague(held.lock);
        is_clear.then_some(PathFactKind::Keeps)
    }

    /// Whether the way out comes after a branch that releases the lock and goes on: then the branch not taken
    /// was meant not to release it, for a reason that was not understood.
    fn is_release_conditional(&self, taken: u32, exit: u32) -> bool {
        self.pairs
            .iter()
            .filter(|(by, _)| *by == taken)
            .any(|(_, release)| {
                self.branches_around(*release).any(|(head, end)| {
                    head > taken
                        && self.cfg.reaches(head, exit)
                        && !self.leaves(end)
                        && !self.is_taken_again(taken, *release, end)
                })
            })
    }

    /// The branches around an event: the `if` or `switch`, and the end of the branch.
    fn branches_around(&self, event: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut here = event;
        std::iter::from_fn(move || {
            loop {
                let (parent, arm) = {
                    let inner = self.events[at(here)];
                    (inner.parent, inner.arm)
                };
                if parent == TOP {
                    return None;
                }
                here = parent;
                let head = self.events[at(parent)];
                match head.kind {
                    Kind::If if arm == 1 => return Some((parent, head.aux)),
                    Kind::If | Kind::Switch => return Some((parent, head.end)),
                    _ => {}
                }
            }
        })
    }

    /// Whether the last statement before `end` leaves.
    fn leaves(&self, end: u32) -> bool {
        end.checked_sub(1).is_some_and(|last| {
            matches!(
                self.events[at(last)].kind,
                Kind::Return | Kind::Goto | Kind::Continue
            )
        })
    }

    /// Whether the lock is taken again between its release and `end`.
    fn is_taken_again(&self, taken: u32, release: u32, end: u32) -> bool {
        self.pairs
            .iter()
            .any(|(by, _)| *by != taken && (release..end).contains(by))
    }
}

/// Releases of a lock that was not taken on the path, in a function that takes it itself on another one: then its
/// caller does not hold it.
pub(super) fn unheld_releases(
    events: &[Event],
    own_pairs: &[(u32, Lock, Value)],
    unheld: &[(u32, Lock, Value)],
) -> Vec<PathFact> {
    let mut facts = Vec::new();
    for (position, lock, instance) in unheld {
        // Behind a loop the lock may have been taken in a later round.
        let own = own_pairs.iter().find(|(taken, other, of)| {
            other.is_same_object(*lock)
                && of == instance
                && !is_taken_in_a_loop(events, *taken, *position)
        });
        facts.extend(own.map(|(taken, _, _)| PathFact {
            kind: PathFactKind::ReleasesUnheld,
            first: *taken,
            second: *position,
            lock: *lock,
        }));
    }
    facts
}

/// Whether a result of these signs with the lock held is a mistake, given the signs of results without it.
fn is_mistake(held: Signs, released: Signs) -> bool {
    if held == NEGATIVE {
        return true;
    }
    // A result of which nothing is known tells the caller only if it can be told from the others.
    if held == ANY {
        return released == ANY;
    }
    held & released != 0
}

/// Whether the lock was taken inside a loop that the way out is not in: one of several locks, most likely.
fn is_taken_in_a_loop(events: &[Event], taken: u32, exit: u32) -> bool {
    let mut parent = events[at(taken)].parent;
    while parent != TOP {
        let head = events[at(parent)];
        let is_inside = (parent..head.end).contains(&exit);
        let is_once = head.flags & TESTS_LAST != 0 && head.flags & RUNS_ONCE != 0;
        if head.kind == Kind::Loop && !is_inside && !is_once {
            return true;
        }
        parent = head.parent;
    }
    false
}
