//! Conditions about what happens on one path.

use super::Engine;
use super::conditions::Ask;
use crate::analyse::locks::Lock;
use crate::analyse::paths::{PathFact, PathFactKind};
use crate::analyse::program::FnId;
use crate::front::lex::at;
use crate::idioms::{LockAction, Start};
use crate::pdl::ast::Predicate;

/// What a condition looks for in the facts of a function's paths.
pub(super) fn fact_kinds(predicate: Predicate) -> Option<&'static [PathFactKind]> {
    Some(match predicate {
        Predicate::Leaks => LEAKS,
        Predicate::Relocks => &[PathFactKind::Relocks],
        Predicate::Reunlocks => &[PathFactKind::Reunlocks],
        Predicate::ReleasesUnheld => &[PathFactKind::ReleasesUnheld],
        Predicate::UsesFreed => &[PathFactKind::UsesFreed],
        Predicate::UsesAfterRcu => &[PathFactKind::UsesAfterRcu],
        Predicate::UsesAfterUnlock => &[PathFactKind::UsesAfterUnlock],
        _ => return None,
    })
}

/// Locks that are left held, by the evidence.
const LEAKS: &[PathFactKind] = &[
    PathFactKind::Leaks,
    PathFactKind::LeaksOnError,
    PathFactKind::Keeps,
];

impl Ask<'_, '_, '_> {
    /// What the walk found for the two statements.
    pub(super) fn on_one_path(&self, kind: PathFactKind) -> Option<Option<PathFact>> {
        let (one, other) = (self.place(0)?, self.place(1)?);
        if one.function != other.function {
            return Some(None);
        }
        let facts = self.engine.flows.facts(one.function);
        let found = facts.iter().find(|fact| {
            fact.kind == kind && fact.first == one.event && fact.second == other.event
        });
        Some(found.copied())
    }

    pub(super) fn leaks(&self) -> Option<bool> {
        for kind in LEAKS {
            let Some(fact) = self.on_one_path(*kind)? else {
                continue;
            };
            let function = self.place(0)?.function;
            return Some(
                self.is_left_held(function, fact) && !self.is_left_by_callee(function, fact),
            );
        }
        Some(false)
    }

    /// Whether no function but this one itself could release the lock of the fact.
    fn is_left_held(&self, function: FnId, fact: PathFact) -> bool {
        match fact.kind {
            PathFactKind::LeaksOnError => !self.is_released_by_callers(function, fact.lock),
            PathFactKind::Leaks => {
                !self.is_released_by_callers(function, fact.lock)
                    && !self.is_released_by_handlers(function, fact.lock)
            }
            _ => !self.is_given_back(function, fact.lock),
        }
    }

    /// Whether the lock was taken by a callee that leaves it held by mistake: that is reported there.
    fn is_left_by_callee(&self, function: FnId, fact: PathFact) -> bool {
        let engine = self.engine;
        let mut callees = engine.calls.callees_at(function, fact.first);
        callees.any(|call| {
            let mut facts = engine.flows.facts(call.callee).iter();
            facts.any(|own| {
                LEAKS.contains(&own.kind)
                    && own.lock.is_same_object(fact.lock)
                    && self.is_left_held(call.callee, *own)
            })
        })
    }

    /// Whether another function may give the lock back that this one leaves held: a caller, directly or by something
    /// it calls, or any function that no function calls by name.
    fn is_given_back(&self, function: FnId, lock: Lock) -> bool {
        let engine = self.engine;
        // The first thing that the caller does to the lock behind the call is to release it.
        let releases = |caller: FnId| {
            let mut calls = engine.calls.of(caller).iter();
            calls.any(|call| {
                let own = |event: u32| {
                    let mut there = engine.calls.callees_at(caller, event);
                    there.any(|other| other.callee == function)
                };
                let operations = engine.flows.operations(caller).iter();
                let mut later = operations.filter(|(event, operation)| {
                    *event > call.event && operation.lock.is_same_object(lock) && !own(*event)
                });
                call.callee == function
                    && later
                        .next()
                        .is_some_and(|(_, first)| first.action == LockAction::Release)
            })
        };
        let callers = &engine.calls.callers[at(function.0)];
        let is_called_back = engine.calls.address_taken[at(function.0)];
        let family = engine.program.table.family(engine.flows.locks.family(lock));
        let source = &engine.program.sources[at(engine.program.unit_of(function))];
        // What is given as a callback has callers that are not known, and whose lock is no field of an object
        // may be anybody's.
        if source.shown.ends_with(".h") || (is_called_back && !family.has_object) {
            return true;
        }
        // Given back and taken again.
        let mut contexts = engine.contexts.of(function).iter();
        if contexts.any(|context| {
            let held = engine.flows.locks.members(context.may);
            held.iter().any(|held| held.is_same_object(lock))
        }) {
            return true;
        }
        let folder = |id| engine.folders[at(engine.program.unit_of(id))];
        let is_near = |id| match family.has_object {
            true => folder(id) == folder(function),
            false => engine.program.unit_of(id) == engine.program.unit_of(function),
        };
        callers.iter().any(|caller| releases(*caller))
            || engine.released_anywhere().iter().any(|(other, releaser)| {
                other.is_same_object(lock)
                    && is_near(*releaser)
                    && (is_called_back || *releaser != function)
            })
    }

    /// Whether a work item, thread or interrupt of the folder releases the lock without having taken it: then
    /// it was handed over.
    fn is_released_by_handlers(&self, function: FnId, lock: Lock) -> bool {
        let engine = self.engine;
        let folder = |id| engine.folders[at(engine.program.unit_of(id))];
        engine.released_only().iter().any(|(other, releaser)| {
            other.is_same_object(lock) && folder(*releaser) == folder(function)
        })
    }

    /// Whether some caller releases the lock without having taken it: then it knows that it may be held.
    fn is_released_by_callers(&self, function: FnId, lock: Lock) -> bool {
        let flows = &self.engine.flows;
        self.engine.calls.callers[at(function.0)]
            .iter()
            .any(|caller| {
                let operations = flows.operations(*caller);
                let does = |releases: bool| {
                    operations.iter().any(|(_, operation)| {
                        operation.lock.is_same_object(lock)
                            && (operation.action == LockAction::Release) == releases
                    })
                };
                does(true) && !does(false)
            })
    }
}

impl Engine<'_> {
    /// Locks that a function releases and never takes, unless it has callers and each of them takes the lock.
    fn released_anywhere(&self) -> &[(Lock, FnId)] {
        self.released_anywhere.get_or_init(|| {
            let mut found = Vec::new();
            for id in self.program.function_ids() {
                if self.program.function(id).1.from_macro {
                    continue;
                }
                for (_, operation) in self.flows.operations(id) {
                    let lock = operation.lock;
                    if operation.action != LockAction::Release || self.flows.acquires(id, lock) {
                        continue;
                    }
                    let callers = &self.calls.callers[at(id.0)];
                    let is_helper = !callers.is_empty()
                        && callers
                            .iter()
                            .all(|caller| self.flows.acquires(*caller, lock));
                    if !is_helper && found.last() != Some(&(lock, id)) {
                        found.push((lock, id));
                    }
                }
            }
            found
        })
    }

    /// Locks that a handler, or a function that no function calls by name, releases and never takes.
    fn released_only(&self) -> &[(Lock, FnId)] {
        self.released_only.get_or_init(|| {
            let mut found = Vec::new();
            for id in self.program.function_ids() {
                let is_handler = self.calls.roots[at(id.0)].is_some_and(|root| {
                    matches!(
                        root.start,
                        Start::Work | Start::Thread | Start::SoftIrq | Start::HardIrq
                    )
                });
                let is_given_away =
                    self.calls.address_taken[at(id.0)] && self.calls.callers[at(id.0)].is_empty();
                if !is_handler && !is_given_away {
                    continue;
                }
                for (_, operation) in self.flows.operations(id) {
                    if operation.action == LockAction::Release
                        && !self.flows.acquires(id, operation.lock)
                    {
                        found.push((operation.lock, id));
                    }
                }
            }
            found
        })
    }
}
