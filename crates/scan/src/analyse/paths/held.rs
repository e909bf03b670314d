//! Taking and releasing locks on one path, and what is wrong with it.

use super::judge::{PathFact, PathFactKind};
use super::state::{Done, Freed, Held, State};
use super::summary::{Term, Touched};
use super::value::{NEGATIVE, Node, POSITIVE, Value, ZERO};
use super::walk::Walk;
use crate::analyse::keys::View;
use crate::analyse::locks::Lock;
use crate::analyse::operations::{Operation, is_unconditional};
use crate::front::ast::E;
use crate::front::event::Kind;
use crate::front::lex::at;
use crate::idioms::LockAction;

impl Walk<'_, '_> {
    pub(super) fn note(&mut self, position: u32, lock: Lock, action: LockAction) {
        self.operations.push((position, Operation { lock, action }));
    }

    pub(super) fn acquire(
        &mut self,
        position: u32,
        lock: Lock,
        instance: Value,
        state: &mut State,
    ) {
        self.check_relock(position, lock, instance, state);
        self.pass(position, lock, instance, state);
        self.take(position, lock, instance, state);
    }

    pub(super) fn take(&mut self, position: u32, lock: Lock, instance: Value, state: &mut State) {
        state
            .done
            .retain(|done| done.instance != instance || !done.lock.is_same_object(lock));
        // A function that takes a lock has pointers that lead to it.
        for base in self.eval.values.bases(instance) {
            state.narrow(base, NEGATIVE | POSITIVE, E::NONE);
        }
        state.held.push(Held {
            lock,
            instance,
            by: position,
            unsure: false,
            handed: false,
        });
        self.refresh(state);
    }

    /// Notes that callers of this function must not hold the lock.
    pub(super) fn pass(&mut self, position: u32, lock: Lock, instance: Value, state: &State) {
        let is_given_back = state
            .freed
            .iter()
            .any(|freed| freed.lock.is_same_object(lock));
        if is_given_back
            || self.depends_on_parameter(state)
            || self.counts_references()
            || !is_unconditional(self.events, &self.events[at(position)])
        {
            return;
        }
        let term = Term::of(&self.eval.values, instance);
        let touched = Touched { lock, term };
        if touched.term.is_some() && !self.passes.contains(&touched) && self.passes.len() < 12 {
            self.passes.push(touched);
        }
    }

    /// Whether the path was chosen by a parameter that is no pointer to an object: `if (!locked)`.
    fn depends_on_parameter(&self, state: &State) -> bool {
        state
            .facts
            .iter()
            .any(|fact| match self.eval.values.node(fact.value) {
                Node::Param(_) => fact.signs == ZERO,
                Node::Binary(_, left, _) => {
                    matches!(self.eval.values.node(left), Node::Param(_))
                }
                _ => false,
            })
    }

    /// Whether the function drops references: what it does for the last one, it does not do always.
    fn counts_references(&self) -> bool {
        let view = self.view();
        let table = view.program.table;
        let counts = table.class("refcount_put").unwrap_or(0)
            | table.class("counter_put").unwrap_or(0)
            | table.class("atomic_return").unwrap_or(0);
        self.calls.classes[at(view.id.0)] & counts != 0
    }

    pub(super) fn check_relock(
        &mut self,
        position: u32,
        lock: Lock,
        instance: Value,
        state: &State,
    ) {
        let program = self.view().program;
        let family = program.table.family(self.locks.family(lock));
        let is_named = Some(self.locks.family(lock)) == program.table.named_family();
        let excludes = !(lock.is_shared() || family.rcu || family.context || family.counts);
        if state.joined || is_named || !excludes {
            return;
        }
        let is_unknown = matches!(
            self.eval.values.node(instance),
            Node::Other(_) | Node::Result(..)
        ) && family.has_object;
        if is_unknown {
            return;
        }
        let held = state
            .held
            .iter()
            .find(|held| held.instance == instance && held.lock.is_same_object(lock));
        if let Some(held) = held
            && !held.unsure
            && held.by != position
            && !held.lock.is_shared()
        {
            self.facts.push(PathFact {
                kind: PathFactKind::Relocks,
                first: held.by,
                second: position,
                lock,
            });
        }
    }

    pub(super) fn release(
        &mut self,
        position: u32,
        lock: Lock,
        instance: Value,
        state: &mut State,
    ) {
        let exact = state
            .held
            .iter()
            .rposition(|held| held.instance == instance && held.lock.is_same_object(lock));
        let alike = exact.or_else(|| {
            state
                .held
                .iter()
                .rposition(|held| held.lock.is_same_object(lock))
        });
        let alike = alike.or_else(|| {
            let mut held = state.held.iter();
            held.rposition(|held| self.locks.is_alike(held.lock, lock))
        });
        // A lock reached in a way that cannot be followed: any of its family.
        let alike = alike.or_else(|| {
            let is_vague = self.locks.is_vague(lock);
            state.held.iter().rposition(|held| {
                self.locks.family(held.lock) == self.locks.family(lock)
                    && (is_vague || self.locks.is_vague(held.lock))
            })
        });
        if let Some(place) = alike {
            let held = state.held.remove(place);
            if self.pairs.last() != Some(&(held.by, position)) {
                self.pairs.push((held.by, position));
            }
            self.remember_own_pair(exact.is_some(), &held, state);
            state.remember_done(Done {
                lock: held.lock,
                instance: held.instance,
                by: held.by,
                released: position,
                is_sure: exact.is_some() && !held.unsure,
            });
            self.end_of_section(position, held.lock, state);
            return self.refresh(state);
        }
        self.check_reunlock(position, lock, instance, state);
        self.remember_unheld(position, lock, instance, state);
        let freed = Freed {
            lock,
            instance,
            by: position,
        };
        if !state.freed.contains(&freed) && state.freed.len() < 8 {
            state.freed.push(freed);
        }
        self.refresh(state);
    }

    fn remember_own_pair(&mut self, is_exact: bool, held: &Held, state: &State) {
        let gave_away = state
            .freed
            .iter()
            .any(|freed| freed.lock.is_same_object(held.lock));
        let pair = (held.by, held.lock, held.instance);
        if is_exact
            && !held.unsure
            && !gave_away
            && !state.joined
            && !self.own_pairs.contains(&pair)
        {
            self.own_pairs.push(pair);
        }
    }

    /// A release on a path that did not take the lock, for no reason that the caller gave.
    fn remember_unheld(&mut self, position: u32, lock: Lock, instance: Value, state: &State) {
        let program = self.view().program;
        let family = program.table.family(self.locks.family(lock));
        let is_named = Some(self.locks.family(lock)) == program.table.named_family();
        let was_taken = state.done.iter().any(|done| done.lock.is_same_object(lock));
        if !(state.joined
            || is_named
            || was_taken
            || family.context
            || family.counts
            || self.depends_on_parameter(state)
            || self.unheld.contains(&(position, lock, instance)))
        {
            self.unheld.push((position, lock, instance));
        }
    }

    fn check_reunlock(&mut self, position: u32, lock: Lock, instance: Value, state: &State) {
        let program = self.view().program;
        let family = program.table.family(self.locks.family(lock));
        let is_named = Some(self.locks.family(lock)) == program.table.named_family();
        if state.joined || is_named || family.rcu || family.context || family.counts {
            return;
        }
        let earlier = state
            .done
            .iter()
            .find(|done| done.instance == instance && done.lock.is_same_object(lock));
        if let Some(done) = earlier
            && done.is_sure
            && done.released != position
        {
            self.facts.push(PathFact {
                kind: PathFactKind::Reunlocks,
                first: done.released,
                second: position,
                lock,
            });
        }
    }

    /// Whether a macro gives a lock back by a function, or under a condition.
    pub(super) fn may_release_inside(&self, inner: &View<'_>) -> bool {
        let body = inner.unit.events_of(inner.function);
        let mut calls = body.iter().filter(|own| own.kind == Kind::Call);
        calls.any(|own| {
            let Some((name, _)) = inner.unit.named_call(own.expr) else {
                return false;
            };
            let name = inner.name(name);
            if let Some(lock) = inner.program.idiom(name).lock {
                return lock.action == LockAction::Release && !is_unconditional(body, own);
            }
            let callee = inner.program.resolve(name, self.view().unit_number);
            callee.is_some_and(|callee| {
                let outcomes = &self.summaries[at(callee.0)].outcomes;
                outcomes.iter().any(|outcome| !outcome.frees.is_empty())
            })
        })
    }

    pub(super) fn refresh(&mut self, state: &mut State) {
        let held = state.held.iter().map(|held| held.lock).collect();
        state.held_set = self.locks.set(held);
        let sure = state.held.iter().filter(|held| !held.unsure);
        let sure = sure.map(|held| held.lock).collect();
        state.sure_set = self.locks.set(sure);
        let freed = state.freed.iter().map(|freed| freed.lock).collect();
        state.freed_set = self.locks.set(freed);
    }
}
