//! Directed scheduling: holds a context exactly before an instruction until another one has passed some spot.
//!
//! Where CTrigger (Park, Lu, Zhou, ASPLOS 2009), ConMem and ConSeq put a sleep before an instruction and hope,
//! a hold here is exact and its run can be had again. Everything else follows the default order. Several holds
//! are a conjunction. Each of them is obeyed on its own, but they may be links of a chain: what a context does that
//! another hold has let go counts for the holds that wait for it, though no context is held by them yet; the context
//! that would have been held goes on at once.
//!
//! What came of a hold is a value: the order was *reached*; everybody else blocks, ends or waits in a loop while
//! the context is held, so that this order does not exist from there on (*blocked*); or the budget was used up
//! before (*not reached*), which says nothing.
//!
//! The sites must be flagged points or known functions: a scheduler is asked only where a context stops.

use raddle_trace::Path;
use raddle_world::{Context, ContextId, ContextTable, PendingKind, Site};

use crate::driver::JUMPS_MAX;
use crate::scheduler::{Clock, Scheduler, View};

/// An instruction, and what it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    pub site: Site,
    /// Only if it touches these eight aligned bytes; none for whatever it touches.
    pub addr: Option<u64>,
}

/// Hold one who comes to a spot until another has passed another spot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Only this context; none for the first that comes.
    pub context: Option<Path>,
    pub at: Spot,
    /// Only at its so-manieth visit, from 1.
    pub visit: u64,
    /// What another context has to execute while this one is held; then the held one goes on at once. What was executed
    /// before does not count.
    pub until: Spot,
    pub budget: Budget,
}

/// How long a context is held at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Steps of all others.
    pub steps: u64,
    /// Jumps of the clock to the next timer or time-out, made while no other context can run. Worlds in which
    /// schedules have no such jumps make none.
    pub jumps: u32,
}

/// What came of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Another passed while the context was held, and then the held one went on.
    Reached,
    /// Everybody else blocked, ended or waited in a loop while it was held.
    Blocked,
    /// The budget was used up, or no context came to the spot.
    NotReached,
}

/// Follows holds.
#[derive(Debug, Clone)]
pub struct Directed {
    rules: Vec<Rule>,
    /// Where each context stands, by its number.
    sites: Vec<Site>,
    /// Who was released last and has not gone on yet.
    released: Option<ContextId>,
    /// Jumps of the clock that were asked for.
    jumps: u64,
    /// Who goes first as long as a hold is open.
    preferred: Option<Path>,
}

#[derive(Debug, Clone)]
struct Rule {
    hold: Hold,
    /// Visits of each context, by its number, and its steps at the last one.
    visits: Vec<(u64, u64)>,
    state: State,
    /// Who was held and let go when its order was reached.
    let_go: Option<ContextId>,
    /// Who is about to pass what this hold waits for before anybody is held, and its steps before.
    early: Option<(ContextId, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No context has come to the place.
    Open,
    Held {
        who: ContextId,
        /// Its own steps, and those of all contexts together, when it was held.
        steps: u64,
        since: u64,
        jumps: u32,
        /// Who is about to pass, and its steps before.
        passing: Option<(ContextId, u64)>,
    },
    Over(Verdict),
}

impl Directed {
    pub fn new(holds: Vec<Hold>) -> Self {
        let rules = holds.into_iter().map(|hold| Rule {
            hold,
            visits: Vec::new(),
            state: State::Open,
            let_go: None,
            early: None,
        });
        Self {
            rules: rules.collect(),
            sites: Vec::new(),
            released: None,
            jumps: 0,
            preferred: None,
        }
    }

    /// The same, but until it has come to where it is held, this context goes on whenever it can: others may wait for
    /// what it does on its way, or undo it.
    #[must_use]
    pub fn preferring(mut self, who: Path) -> Self {
        self.preferred = Some(who);
        self
    }

    fn preferred(&self, view: &View<'_>) -> Option<ContextId> {
        let path = self.preferred.as_deref()?;
        let is_open = self.rules.iter().any(|rule| rule.state == State::Open);
        let can_go = |who: &&ContextId| {
            let waits = **who == view.current && view.reason.asks_for_another();
            !waits && *view.contexts.get(**who).path == *path && !self.is_held(**who)
        };
        is_open.then(|| view.runnable.iter().find(can_go).copied())?
    }

    /// What came of each hold.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.rules.iter().map(|rule| match rule.state {
            State::Over(verdict) => verdict,
            State::Open | State::Held { .. } => Verdict::NotReached,
        })
    }

    /// What came of all holds together: blocked if one is, else reached if all are.
    pub fn verdict(&self) -> Verdict {
        let is_blocked = self.verdicts().any(|verdict| verdict == Verdict::Blocked);
        if is_blocked {
            Verdict::Blocked
        } else {
            self.verdicts().max().unwrap_or(Verdict::Reached)
        }
    }

    fn site(&self, who: ContextId) -> Site {
        let site = self.sites.get(who.0 as usize);
        site.copied().unwrap_or(Site::NOWHERE)
    }

    /// Takes in where the current context has come to.
    fn look(&mut self, view: &View<'_>) {
        let index = view.current.0 as usize;
        if self.sites.len() <= index {
            self.sites.resize(index + 1, Site::NOWHERE);
        }
        self.sites[index] = view.site;
        self.release(view.contexts);
        self.arrive(view);
    }

    /// Whether a context stands before a spot.
    fn stands_at(&self, spot: Spot, who: ContextId, view: &View<'_>) -> bool {
        let next = view.next_of(who);
        let is_there =
            self.site(who) == spot.site || next.is_some_and(|next| next.site == spot.site);
        let Some(wanted) = spot.addr else {
            return is_there;
        };
        let touched = match next.map(|next| &next.kind) {
            Some(PendingKind::Access { addr, .. }) => Some(*addr),
            Some(PendingKind::Sync { object }) => Some(*object),
            _ => None,
        };
        is_there && touched.is_some_and(|addr| addr & !7 == wanted & !7)
    }

    fn held(&self) -> impl Iterator<Item = ContextId> {
        self.rules.iter().filter_map(|rule| match rule.state {
            State::Held { who, .. } => Some(who),
            _ => None,
        })
    }

    fn is_held(&self, who: ContextId) -> bool {
        self.held().any(|held| held == who)
    }

    /// Whether all who can run are held.
    fn are_all_held(&self, view: &View<'_>) -> bool {
        view.runnable.iter().all(|who| self.is_held(*who))
    }

    /// The current context has come to a place: some hold may begin.
    fn arrive(&mut self, view: &View<'_>) {
        let who = view.current;
        let path = &*view.contexts.get(who).path;
        for index in 0..self.rules.len() {
            let hold = &self.rules[index].hold;
            let is_meant = hold.context.as_deref().is_none_or(|of| of == path);
            if !is_meant || !self.stands_at(hold.at, who, view) {
                continue;
            }
            let is_held = self.is_held(who);
            let rule = &mut self.rules[index];
            let visits = rule.visit(who, view.at.steps);
            if rule.state == State::Open && visits == rule.hold.visit && !is_held {
                rule.state = State::Held {
                    who,
                    steps: view.at.steps,
                    since: steps_of_all(view.contexts),
                    jumps: 0,
                    passing: None,
                };
            }
        }
    }

    /// Ends the holds whose order is reached or whose budget is used up.
    fn release(&mut self, contexts: &ContextTable) {
        let now = steps_of_all(contexts);
        for rule in &mut self.rules {
            if rule.has_passed_early(contexts) {
                rule.state = State::Over(Verdict::Reached);
                self.released = rule.wanted(contexts);
                continue;
            }
            let State::Held {
                who,
                steps,
                since,
                jumps,
                passing,
            } = rule.state
            else {
                continue;
            };
            let has_passed = passing.is_some_and(|(by, steps)| contexts.get(by).steps > steps);
            let Budget {
                steps: steps_max,
                jumps: jumps_max,
            } = rule.hold.budget;
            if has_passed {
                rule.state = State::Over(Verdict::Reached);
                rule.let_go = Some(who);
                self.released = Some(who);
            } else if now - since > steps_max
                || jumps > jumps_max
                // The driver or a scheduler around this one has decided that it goes on.
                || contexts.get(who).steps > steps
            {
                rule.state = State::Over(Verdict::NotReached);
            }
        }
    }

    /// Everybody who could go on is held: the first hold gives in.
    fn give_in(&mut self, view: &View<'_>) -> ContextId {
        let held = self.rules.iter_mut().find_map(|rule| match rule.state {
            State::Held { who, .. } if view.runnable.contains(&who) => Some((rule, who)),
            _ => None,
        });
        let (rule, who) = held.expect("somebody who can run is held");
        // Without further jumps it is not known what those who sleep would do.
        rule.state = State::Over(if self.jumps < JUMPS_MAX {
            Verdict::Blocked
        } else {
            Verdict::NotReached
        });
        who
    }

    fn choose(&mut self, view: &View<'_>) -> ContextId {
        let released = self.released.take();
        if let Some(who) = released
            && view.runnable.contains(&who)
            && !self.is_held(who)
        {
            return who;
        }
        if let Some(who) = self.preferred(view) {
            return who;
        }
        let default = view.sensible_default();
        let start = view.runnable.partition_point(|id| *id < default);
        let order = view.runnable[start..].iter().chain(&view.runnable[..start]);
        let free = order.copied().find(|who| !self.is_held(*who));
        free.unwrap_or_else(|| self.give_in(view))
    }

    /// A context is about to execute what it stands before: that may be what holds wait for.
    fn begin_to_pass(&mut self, by: ContextId, view: &View<'_>) {
        let was_let_go = self.rules.iter().any(|rule| rule.let_go == Some(by));
        for index in 0..self.rules.len() {
            if !self.stands_at(self.rules[index].hold.until, by, view) {
                continue;
            }
            let rule = &mut self.rules[index];
            let now = Some((by, view.contexts.get(by).steps));
            match &mut rule.state {
                State::Held { who, passing, .. } if *who != by => *passing = now,
                State::Open if was_let_go => rule.early = now,
                _ => {}
            }
        }
    }
}

impl Rule {
    /// Whether what it waits for was done by one whom another hold had let go, before anybody came to be held here.
    fn has_passed_early(&self, contexts: &ContextTable) -> bool {
        let has_passed = |(by, steps): (ContextId, u64)| contexts.get(by).steps > steps;
        self.state == State::Open && self.early.is_some_and(has_passed)
    }

    /// The context that it would have held, if it names one.
    fn wanted(&self, contexts: &ContextTable) -> Option<ContextId> {
        let path = self.hold.context.as_deref()?;
        let mut all = contexts.iter();
        let found = all.find(|(_, context)| *context.path == *path);
        found.map(|(id, _)| id)
    }

    /// Counts the visit of a context that has made so many steps, unless it was counted; gives how many there were.
    fn visit(&mut self, who: ContextId, steps: u64) -> u64 {
        let index = who.0 as usize;
        if self.visits.len() <= index {
            self.visits.resize(index + 1, (0, u64::MAX));
        }
        let (count, last) = &mut self.visits[index];
        *count += u64::from(*last != steps);
        *last = steps;
        *count
    }
}

fn steps_of_all(contexts: &ContextTable) -> u64 {
    contexts.iter().map(|(_, context)| context.steps).sum()
}

impl Scheduler for Directed {
    fn pick(&mut self, view: &View<'_>) -> ContextId {
        self.look(view);
        let chosen = self.choose(view);
        self.begin_to_pass(chosen, view);
        chosen
    }

    /// No context runs for longer than the smallest budget, so that a hold ends when it says so.
    fn bound(&self, _: &Context) -> u64 {
        let held = self.rules.iter().filter_map(|rule| match rule.state {
            State::Held { .. } => Some(rule.hold.budget.steps.saturating_add(1)),
            _ => None,
        });
        held.min().unwrap_or(u64::MAX)
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        Some(self)
    }
}

/// Time passes while everybody who could run is held: others may only be asleep.
impl Clock for Directed {
    fn jumps(&mut self, view: &View<'_>) -> bool {
        self.look(view);
        if !self.are_all_held(view) {
            return false;
        }
        self.jumps += 1;
        for rule in &mut self.rules {
            if let State::Held { jumps, .. } = &mut rule.state {
                *jumps += 1;
            }
        }
        self.release(view.contexts);
        self.are_all_held(view)
    }
}

#[cfg(test)]
mod tests;
