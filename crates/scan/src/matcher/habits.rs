//! What nearly all of the code does, and who does not: calls under a lock, items that are ended.

use super::Engine;
use super::conditions::Ask;
use super::handlers::CALLERS_MAX;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::locks::Lock;
use crate::analyse::paths::PathFactKind;
use crate::analyse::program::{EventId, FnId, Name};
use crate::analyse::types::Def;
use crate::front::ast::{E, Expr};
use crate::front::lex::at;
use crate::pdl::ast::Predicate;

/// Other calls that must all be made under the lock before the odd one out is reported.
const OTHERS_MIN: usize = 3;
/// The same for what is shown on request only, and the share of calls that must agree.
const OTHERS_FEW: usize = 2;
const FEW_PERCENT: usize = 50;
/// So many other calls may have a few exceptions.
const MANY: usize = 10;
const MANY_PERCENT: usize = 90;

impl Ask<'_, '_, '_> {
    /// Conditions about what others do.
    pub(super) fn holds_by_habit(&self, predicate: Predicate) -> Option<bool> {
        Some(match predicate {
            Predicate::OddCaller => {
                let odd = self.engine.odd_callers();
                odd.binary_search(&self.place(0)?).is_ok()
            }
            Predicate::RcuPointer => self.engine.is_rcu_pointer(self.place(0)?),
            Predicate::FreedLater => self.engine.is_freed_later_elsewhere(self.place(0)?),
            Predicate::GivesUp => self.gives_up()?,
            Predicate::SwitchesOff => {
                const PARTS: &[&str] = &[
                    "suspend",
                    "close",
                    "remove",
                    "shutdown",
                    "disconnect",
                    "flush",
                    "detach",
                    "destroy",
                    "free",
                    "release",
                    "unregister",
                    "unbind",
                    "deinit",
                    "uninit",
                    "cleanup",
                    "stop",
                    "disable",
                    "reset",
                    "down",
                    "exit",
                    "delete",
                    "dellink",
                    "purge",
                    "fini",
                    "quiesce",
                    "unload",
                    "halt",
                    "kill",
                ];
                let name = self.engine.program.function_name(self.function(0)?);
                PARTS.iter().any(|part| name.contains(part))
            }
            Predicate::TakesUsual => {
                let (place, object) = (self.place(0)?, self.place(1)?);
                let usual = self.engine.guard(self.key(1), object).lock?;
                self.engine.flows.acquires(place.function, usual)
            }
            Predicate::StopsOnly => self.stops_only()?,
            Predicate::Raises => self.raises()?,
            Predicate::Lowers => self.lowers()?,
            Predicate::LateReference => self.late_reference()?,
            Predicate::WakesTooEarly => self.wakes_too_early()?,
            Predicate::Unannounced => self.unannounced()?,
            Predicate::RcuHead => self.engine.has_rcu_head(self.place(0)?),
            Predicate::EndsByItself => self.ends_by_itself()?,
            Predicate::StartedAgain => self.engine.is_started_again(self.place(0)?, self.place(1)?),
            Predicate::EndedElsewhere => self.engine.is_ended_elsewhere(self.place(0)?),
            Predicate::AwaitsItself => self.engine.awaits_itself(self.place(0)?),
            Predicate::ReleasesUnheld => {
                let place = self.place(0)?;
                let facts = self.engine.flows.facts(place.function).iter();
                let mut unheld = facts.filter(|fact| fact.kind == PathFactKind::ReleasesUnheld);
                unheld.any(|fact| fact.second == place.event)
            }
            _ => false,
        })
    }

    fn stops_only(&self) -> Option<bool> {
        let place = self.place(0)?;
        let engine = self.engine;
        let key = engine.item_key(place)?;
        let table = engine.program.table;
        let ends_all = table.class("ends_all_work").unwrap_or(0);
        let waits_anywhere = engine.called_from(place.function).iter().any(|id| {
            engine.calls.classes[at(id.0)] & ends_all != 0
                || engine
                    .calls_of_class(*id, "waits_for_handler")
                    .any(|waits| engine.item_key(waits) == Some(key))
        });
        Some(!waits_anywhere && engine.has_handlers(key))
    }

    /// Fewer accesses say nothing about the usual lock of an object; the users of a list are few.
    pub(super) fn accesses_min(&self) -> u32 {
        let walks = self.engine.program.table.class("list_walk").unwrap_or(0);
        let is_walk = self
            .place(0)
            .is_some_and(|place| self.engine.access_classes(place) & walks != 0);
        if is_walk { 3 } else { 4 }
    }

    /// Whether the function of the first statement ends another item of the struct whose item is started at
    /// the second, or frees such an object.
    fn gives_up(&self) -> Option<bool> {
        let (place, started) = (self.place(0)?, self.place(1)?);
        let engine = self.engine;
        if engine.undoes_set_up(place.function, started) {
            return Some(true);
        }
        let name = engine.program.function_name(place.function);
        let takes_apart = ["free", "deinit", "uninit", "destroy"]
            .iter()
            .any(|part| name.contains(part));
        if crate::results::is_construction(&name) && !takes_apart {
            return Some(false);
        }
        let Some(KeyParts::Field(owner, item)) = engine.item_key(started).map(Key::parts) else {
            return Some(false);
        };
        // A function that only stops one activity leaves the others alone on purpose.
        let ends_all = takes_apart
            || [
                "remove",
                "dellink",
                "disconnect",
                "exit",
                "close",
                "stop",
                "unregister",
                "release",
            ]
            .iter()
            .any(|part| name.contains(part));
        let ends_other = ends_all && engine
            .calls_of_class(place.function, "ends_item")
            .filter_map(|here| engine.item_key(here))
            .any(|key| matches!(key.parts(), KeyParts::Field(def, field) if def == owner && field != item));
        Some(ends_other || engine.frees_struct(place.function, owner))
    }

    /// Whether all other callers of what is called at the statement hold a lock that is not held here.
    pub(super) fn called_unlocked(&self) -> Option<bool> {
        let place = self.place(0)?;
        let engine = self.engine;
        let Some(callee) = engine
            .calls
            .callees_at(place.function, place.event)
            .find(|call| !call.indirect)
            .map(|call| call.callee)
        else {
            return Some(false);
        };
        let Some(lock) = engine.lock_of_callers(callee) else {
            return Some(false);
        };
        let locks = &engine.flows.locks;
        let held = engine.held(place).ever;
        Some(
            !engine.is_fresh_call(place)
                && !held.iter().any(|other| {
                    other.is_same_object(lock)
                        || locks.is_vague(*other)
                        || locks.exclude_each_other(engine.program, *other, lock)
                }),
        )
    }
}

/// Calls that must agree before the odd one out is reported, and their share in percent.
const AGREEING_MIN: usize = 4;
const AGREEING_PERCENT: usize = 80;

impl Engine<'_> {
    /// The lock that nearly all callers of a function hold.
    fn lock_of_callers(&self, callee: FnId) -> Option<Lock> {
        if let Some(known) = self.caller_locks.borrow().get(&callee) {
            return *known;
        }
        let found = self.count_caller_locks(callee);
        self.caller_locks.borrow_mut().insert(callee, found);
        found
    }

    fn count_caller_locks(&self, callee: FnId) -> Option<Lock> {
        let mut counts: Vec<(Lock, usize)> = Vec::new();
        let mut all = 0;
        for caller in self.calls.callers[at(callee.0)].iter().take(CALLERS_MAX) {
            if self.contexts.is_init_only(*caller) {
                continue;
            }
            for call in self.calls.of(*caller) {
                let place = EventId {
                    function: *caller,
                    event: call.event,
                };
                if call.callee != callee || call.indirect || self.is_fresh_call(place) {
                    continue;
                }
                all += 1;
                for lock in self.held(place).always {
                    let family = self.program.table.family(self.flows.locks.family(lock));
                    if family.rcu
                        || family.context
                        || !family.has_object
                        || self.flows.locks.is_vague(lock)
                    {
                        continue;
                    }
                    match counts
                        .iter_mut()
                        .find(|(known, _)| known.is_same_object(lock))
                    {
                        Some((_, count)) => *count += 1,
                        None => counts.push((lock, 1)),
                    }
                }
            }
        }
        let (lock, count) = counts.into_iter().rev().max_by_key(|(_, count)| *count)?;
        let is_usual = count >= AGREEING_MIN && count * 100 >= all * AGREEING_PERCENT;
        let is_taken_inside = self.flows.acquires(callee, lock);
        (is_usual && count < all && !is_taken_inside).then_some(lock)
    }

    /// Whether a call is about an object that no other context knows yet.
    pub(super) fn is_fresh_call(&self, place: EventId) -> bool {
        let view = View::new(self.program, place.function);
        let Some((_, args)) = view.unit.named_call(self.program.event(place).expr) else {
            return false;
        };
        args.iter().any(|arg: &E| {
            view.root(*arg)
                .is_some_and(|root| self.flows.is_fresh(place.function, place.event, root))
        })
    }
}

impl Engine<'_> {
    /// Calls that are made without the lock that all other calls of the same function are made under, in order.
    pub(super) fn odd_callers(&self) -> &[EventId] {
        self.odd_callers
            .get_or_init(|| self.all_odd_callers(OTHERS_MIN))
    }

    /// The same where two others agree.
    pub(super) fn few_callers(&self) -> &[EventId] {
        self.few_callers
            .get_or_init(|| self.all_odd_callers(OTHERS_FEW))
    }

    fn all_odd_callers(&self, others: usize) -> Vec<EventId> {
        let mut found = Vec::new();
        for (name, calls) in &self.calls.by_name {
            self.find_odd_callers(*name, calls, others, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn find_odd_callers(
        &self,
        name: Name,
        calls: &[(FnId, u32)],
        others: usize,
        found: &mut Vec<EventId>,
    ) {
        // What an idiom is known for has rules of its own.
        if self.program.idioms.get(at(name.0)).copied() != Some(0)
            || !self.calls.partners(name).is_empty()
            || calls.len() <= others
            || calls.len() > CALLERS_MAX
        {
            return;
        }
        let callee_of = |function: FnId| self.program.resolve(name, self.program.unit_of(function));
        let mut callees: Vec<Option<FnId>> = calls
            .iter()
            .map(|(function, _)| callee_of(*function))
            .collect();
        callees.sort_unstable();
        callees.dedup();
        for callee in callees {
            let Some(lock) = self.find_lock_of_other_calls(name, callee, others) else {
                continue;
            };
            let places = calls
                .iter()
                .filter(|(function, _)| callee_of(*function) == callee);
            let places = places.map(|(function, event)| EventId {
                function: *function,
                event: *event,
            });
            found.extend(places.filter(|place| self.is_odd_caller(*place, lock)));
        }
    }

    fn is_odd_caller(&self, place: EventId, lock: Lock) -> bool {
        let locks = &self.flows.locks;
        let is_early = self.is_of_object(lock) && self.contexts.is_init_only(place.function);
        !is_early
            && !self.is_fresh_call(place)
            && !self.held(place).ever.iter().any(|other| {
                other.is_same_object(lock)
                    || locks.is_vague(*other)
                    || locks.exclude_each_other(self.program, *other, lock)
            })
    }

    fn find_lock_of_other_calls(
        &self,
        name: Name,
        callee: Option<FnId>,
        others: usize,
    ) -> Option<Lock> {
        if callee.is_some_and(|id| self.program.function(id).1.from_macro) {
            return None;
        }
        let calls = self.calls.by_name.get(&name)?;
        // A lock of an object matters while others know the object, a global one always.
        let mut counts: Vec<(Lock, usize)> = Vec::new();
        let (mut all, mut all_later) = (0, 0);
        for (function, event) in calls {
            let place = EventId {
                function: *function,
                event: *event,
            };
            let unit = self.program.unit_of(*function);
            if self.program.resolve(name, unit) != callee || self.is_fresh_call(place) {
                continue;
            }
            let is_early = self.contexts.is_init_only(*function);
            all += 1;
            all_later += usize::from(!is_early);
            for lock in self.held(place).always {
                if !self.is_lock_of_call(place, lock) || (is_early && self.is_of_object(lock)) {
                    continue;
                }
                match counts
                    .iter_mut()
                    .find(|(known, _)| known.is_same_object(lock))
                {
                    Some((_, count)) => *count += 1,
                    None => counts.push((lock, 1)),
                }
            }
        }
        let (lock, count) = counts.into_iter().rev().max_by_key(|(_, count)| *count)?;
        let all = if self.is_of_object(lock) {
            all_later
        } else {
            all
        };
        let (many, percent) = if others == OTHERS_FEW {
            (OTHERS_FEW, FEW_PERCENT)
        } else {
            (MANY, MANY_PERCENT)
        };
        let is_usual = (count >= others && count + 1 == all)
            || (count >= many && count < all && count * 100 >= all * percent);
        let is_taken_inside = callee.is_some_and(|id| self.flows.acquires(id, lock));
        (is_usual && !is_taken_inside).then_some(lock)
    }

    fn is_of_object(&self, lock: Lock) -> bool {
        matches!(self.flows.locks.key(lock).parts(), KeyParts::Field(..))
    }

    /// Whether the lock protects what is given to the call: it is part of an argument's object, or global.
    fn is_lock_of_call(&self, place: EventId, lock: Lock) -> bool {
        let locks = &self.flows.locks;
        let family = self.program.table.family(locks.family(lock));
        // A lock for everything, like that of all network devices, is held for many reasons.
        let is_named = Some(locks.family(lock)) == self.program.table.named_family();
        if family.rcu || family.context || locks.is_vague(lock) || (!family.has_object && !is_named)
        {
            return false;
        }
        let KeyParts::Field(owner, _) = locks.key(lock).parts() else {
            return true;
        };
        let view = View::new(self.program, place.function);
        let Some((_, args)) = view.unit.named_call(self.program.event(place).expr) else {
            return false;
        };
        args.iter().any(|arg| self.is_of_struct(&view, *arg, owner))
    }

    /// Whether the argument is an object of the struct or a part of one: `dev` and `&dev->list` of a device.
    fn is_of_struct(&self, view: &View<'_>, arg: E, owner: Def) -> bool {
        const PARTS_MAX: usize = 4;
        let types = &self.program.types;
        let mut here = view.unit.exprs.peel(arg);
        if let Expr::Unary { of, .. } = view.expr(here) {
            here = view.unit.exprs.peel(of);
        }
        for _ in 0..PARTS_MAX {
            if types.def(view.ty(here), self.program) == owner {
                return true;
            }
            match view.expr(here) {
                Expr::Member { base, .. } | Expr::Index { base, .. } => {
                    here = view.unit.exprs.peel(base);
                }
                _ => return false,
            }
        }
        false
    }
}
