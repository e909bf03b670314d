//! Conditions on locks: what is held at a statement, what usually guards an object, and where sleeping is forbidden.

use super::Bound;
use super::conditions::Ask;
use super::guards::Guard;
use crate::analyse::locks::Lock;
use crate::front::event::Kind;
use crate::idioms::Start;
use crate::pdl::ast::Arg;

impl Ask<'_, '_, '_> {
    pub(super) fn is_excluding(&self, lock: Lock) -> bool {
        let engine = self.engine;
        let family = engine.program.table.family(engine.flows.locks.family(lock));
        !family.rcu && !family.context
    }

    pub(super) fn no_gate(&self) -> Option<bool> {
        let (one, other) = (self.place(0)?, self.place(1)?);
        let (a, b) = (self.engine.held(one).ever, self.engine.held(other).ever);
        let taken: Vec<_> = [one, other]
            .iter()
            .flat_map(|place| {
                self.engine
                    .flows
                    .operations_at(place.function, place.event)
                    .map(|operation| operation.lock)
            })
            .collect();
        let is_pair = |lock: Lock| taken.iter().any(|other| other.is_same_object(lock));
        Some(!a.iter().any(|lock| {
            !is_pair(*lock)
                && self.is_excluding(*lock)
                && b.iter().any(|other| other.is_same_object(*lock))
        }))
    }

    pub(super) fn holds_lock(&self) -> Option<bool> {
        let held = self.engine.held(self.place(0)?).always;
        let engine = self.engine;
        match self.args.get(1)? {
            Arg::Text(family) => Some(held.iter().any(|lock| {
                engine
                    .program
                    .table
                    .family(engine.flows.locks.family(*lock))
                    .name
                    == *family
            })),
            _ => match self.bound(1)? {
                Bound::Lock { lock, .. } => {
                    Some(held.iter().any(|other| other.is_same_object(lock)))
                }
                _ => Some(false),
            },
        }
    }

    /// The function itself holds a lock that forbids sleeping, or was started where sleeping is forbidden.
    /// What a caller holds is reported at the caller.
    pub(super) fn atomic_context(&self) -> Option<bool> {
        let place = self.place(0)?;
        let engine = self.engine;
        let own = engine.flows.at(place.function, place.event);
        let forbids = |set| {
            engine.flows.locks.members(set).iter().any(|lock| {
                let family = engine
                    .program
                    .table
                    .family(engine.flows.locks.family(*lock));
                !family.sleeps
            })
        };
        if forbids(own.must) {
            return Some(true);
        }
        let contexts = engine.contexts.of(place.function);
        Some(contexts.iter().any(|context| {
            let is_interrupt = matches!(context.start, Start::HardIrq | Start::SoftIrq);
            is_interrupt && context.from.is_none() && forbids(context.must)
        }))
    }

    pub(super) fn unguarded(&self) -> Option<bool> {
        let place = self.place(0)?;
        let Some(usual) = self.engine.guard(self.key(1), self.place(1)?).lock else {
            return Some(false);
        };
        let held = self.engine.held(place).ever;
        let locks = &self.engine.flows.locks;
        Some(!held.iter().any(|lock| {
            lock.is_same_object(usual)
                || locks.exclude_each_other(self.engine.program, *lock, usual)
        }))
    }

    /// The usual lock of the object, judged by the other accesses to it.
    pub(super) fn guard_of_others(&self) -> Guard {
        let Some(place) = self.place(0) else {
            return Guard::default();
        };
        let guard = self.engine.guard(self.key(0), place);
        let Some(usual) = guard.lock else {
            return guard;
        };
        let held = self.engine.held(place).always;
        if held.iter().any(|lock| lock.is_same_object(usual)) {
            return guard;
        }
        guard.without(self.engine.program.event(place).kind == Kind::Write)
    }

    pub(super) fn read_locked(&self) -> Option<bool> {
        let place = self.place(0)?;
        let Some(usual) = self.engine.guard(self.key(1), self.place(1)?).lock else {
            return Some(false);
        };
        let held = self.engine.held(place).ever;
        let excluding: Vec<_> = held
            .iter()
            .filter(|lock| self.is_excluding(**lock))
            .collect();
        Some(
            excluding.iter().any(|lock| lock.is_same_object(usual))
                && excluding.iter().all(|lock| lock.is_shared()),
        )
    }

    pub(super) fn usual_lock(&self) -> Option<bool> {
        let Bound::Lock { lock, .. } = self.bound(0)? else {
            return Some(false);
        };
        let usual = self.engine.guard(self.key(1), self.place(1)?).lock;
        Some(usual.is_some_and(|usual| usual.is_same_object(lock)))
    }
}
