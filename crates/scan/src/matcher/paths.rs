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
pub(super) fn fact_kind(predicate: Predicate) -> Option<PathFactKind> {
    Some(match predicate {
        Predicate::Leaks => PathFactKind::Leaks,
        Predicate::Relocks => PathFactKind::Relocks,
        Predicate::Reunlocks => PathFactKind::Reunlocks,
        Predicate::ReleasesUnheld => PathFactKind::ReleasesUnheld,
        Predicate::UsesFreed => PathFactKind::UsesFreed,
        Predicate::UsesAfterRcu => PathFactKind::UsesAfterRcu,
        Predicate::UsesAfterUnlock => PathFactKind::UsesAfterUnlock,
        _ => return None,
    })
}

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
        let Some(fact) = self.on_one_path(PathFactKind::Leaks)? else {
            return Some(false);
        };
        let function = self.place(0)?.function;
        Some(
            !self.is_released_by_callers(function, fact.lock)
                && !self.is_released_by_handlers(function, fact.lock),
        )
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
    /// Locks that a handler, or a function that nobody calls by name, releases and never takes.
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
