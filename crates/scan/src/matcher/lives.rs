//! Who frees which objects, at once or after a grace period, and which pointers are read under RCU.

use super::Engine;
use super::handlers::CALLERS_MAX;
use crate::analyse::keys::{Key, KeyParts, View};
use crate::analyse::locks::Lock;
use crate::analyse::program::{EventId, FnId};
use crate::analyse::types::Def;
use crate::front::ast::{E, Expr};
use crate::front::event::BY_CALL;
use crate::front::lex::at;

/// Reads by `rcu_dereference()` that make a pointer one that is read so, and their share in percent.
const RCU_READS_MIN: usize = 2;
const RCU_READS_PERCENT: usize = 60;

impl Engine<'_> {
    /// Whether the pointer read at `place` is one that is read by `rcu_dereference()` elsewhere.
    pub(super) fn is_rcu_pointer(&self, place: EventId) -> bool {
        let key = self.accesses.key(place);
        let is_declared = self.is_declared_rcu(key);
        if !key.is_shared() || !(is_declared || self.is_read_by_rcu(key)) {
            return false;
        }
        // Under a lock that may be held the writers are kept away. Where the declaration speaks, it must be theirs.
        let is_locked = self.held(place).ever.iter().any(|lock| {
            let family = self.program.table.family(self.flows.locks.family(*lock));
            !family.rcu && !family.context && (!is_declared || self.is_lock_of_writers(key, *lock))
        });
        !is_locked && !self.is_fresh_at(place)
    }

    /// Whether some writer of the pointer holds the lock.
    fn is_lock_of_writers(&self, key: Key, lock: Lock) -> bool {
        let mut writes = self.accesses.writes(key).iter().take(CALLERS_MAX);
        writes.any(|write| {
            let held = self.held(*write).ever;
            held.iter().any(|other| other.is_same_object(lock))
        })
    }

    /// Whether the declaration says that readers follow the pointer under RCU.
    fn is_declared_rcu(&self, key: Key) -> bool {
        matches!(key.parts(), KeyParts::Field(def, name) if self.program.types.is_rcu_field(def, name))
    }

    /// Whether most reads of the pointer are made by `rcu_dereference()`.
    fn is_read_by_rcu(&self, key: Key) -> bool {
        if let Some(known) = self.rcu_pointers.borrow().get(&key) {
            return *known;
        }
        let table = self.program.table;
        let by_rcu = |places: &[EventId], class: &str| {
            let wanted = table.class(class).unwrap_or(0);
            let uses = places.iter().take(CALLERS_MAX);
            uses.filter(|place| self.access_classes(**place) & wanted != 0)
                .count()
        };
        let reads = self.accesses.reads(key);
        let others = reads.len().min(CALLERS_MAX).saturating_sub(1);
        let rcu_reads = by_rcu(reads, "rcu_read");
        let found = rcu_reads >= RCU_READS_MIN
            && rcu_reads * 100 >= others * RCU_READS_PERCENT
            && by_rcu(self.accesses.writes(key), "rcu_publish") > 0;
        self.rcu_pointers.borrow_mut().insert(key, found);
        found
    }

    /// The idiom classes of the call that makes an access.
    pub(super) fn access_classes(&self, place: EventId) -> u128 {
        let event = self.program.event(place);
        if event.flags & BY_CALL == 0 {
            return 0;
        }
        let view = View::new(self.program, place.function);
        let call = view.unit.named_call(E(event.aux));
        call.map_or(0, |(name, _)| self.program.idiom(view.name(name)).classes)
    }

    /// Whether the function frees an object of the struct, itself or by a function that it gives it to.
    pub(super) fn frees_struct(&self, id: FnId, owner: Def) -> bool {
        let view = View::new(self.program, id);
        let given = |event: u32| {
            let call = self.program.events(id)[at(event)].expr;
            self.struct_given(&view, call) == owner
        };
        let frees = self.program.table.class("frees_memory").unwrap_or(0);
        let mut own = self.calls_of_class(id, "frees_memory");
        own.any(|place| given(place.event))
            || self.calls.of(id).iter().any(|call| {
                !call.indirect
                    && self.calls.classes[at(call.callee.0)] & frees != 0
                    && given(call.event)
                    && self.frees_parameter(call.callee)
            })
    }

    /// Whether the function frees its first parameter.
    fn frees_parameter(&self, id: FnId) -> bool {
        let view = View::new(self.program, id);
        let mut frees = self.calls_of_class(id, "frees_memory");
        frees.any(|place| {
            let Some((_, [first, ..])) = view.unit.named_call(self.program.event(place).expr)
            else {
                return false;
            };
            let Expr::Name(name) = view.expr(view.unit.exprs.peel(*first)) else {
                return false;
            };
            view.param(name) == Some(0)
        })
    }

    /// The struct of the object that a call is given first: `free(p)` or `call_rcu(&p->rcu, ..)`.
    fn struct_given(&self, view: &View<'_>, call: E) -> Def {
        let Some((_, [first, ..])) = view.unit.named_call(call) else {
            return Def::NONE;
        };
        let object = view.unit.exprs.peel(*first);
        let object = match view.expr(object) {
            Expr::Unary { of, .. } => match view.expr(of) {
                Expr::Member { base, .. } => base,
                _ => of,
            },
            _ => object,
        };
        self.program.types.def(view.ty(object), self.program)
    }

    /// The struct of what is freed at `place`, if readers may still know the object and nothing waits for them.
    fn struct_freed_at_once(&self, place: EventId) -> Option<Def> {
        let view = View::new(self.program, place.function);
        let owner = self.struct_given(&view, self.program.event(place).expr);
        let runs_later = self.is_rcu_callback(&view)
            || self.calls.callers[at(place.function.0)]
                .iter()
                .any(|caller| self.is_rcu_callback(&View::new(self.program, *caller)));
        let waits = self.program.table.class("grace_periods").unwrap_or(0);
        let is_late = runs_later || self.calls.classes[at(place.function.0)] & waits != 0;
        (owner != Def::NONE && !is_late && !self.is_fresh_call(place)).then_some(owner)
    }

    /// Whether what is freed at `place` has a head by which it could be freed after a grace period.
    pub(super) fn has_rcu_head(&self, place: EventId) -> bool {
        let owner = self.struct_freed_at_once(place);
        owner.is_some_and(|owner| self.program.types.is_freed_by_rcu(owner))
    }

    /// Whether what is freed at `place` is freed after a grace period elsewhere in the folder.
    pub(super) fn is_freed_later_elsewhere(&self, place: EventId) -> bool {
        let Some(owner) = self.struct_freed_at_once(place) else {
            return false;
        };
        let view = View::new(self.program, place.function);
        let folder = self.program.directory(view.unit_number).to_owned();
        let freed = self.freed_later.get_or_init(|| self.find_freed_later());
        freed.iter().any(|(def, function)| {
            *def == owner
                && *function != place.function
                && self.program.directory(self.program.unit_of(*function)) == folder
        })
    }

    /// Structs that are freed after a grace period, and where.
    fn find_freed_later(&self) -> Vec<(Def, FnId)> {
        let wanted = self.program.table.class("rcu_frees").unwrap_or(0);
        let mut found = Vec::new();
        for (name, calls) in &self.calls.by_name {
            if self.program.idiom(*name).classes & wanted == 0 {
                continue;
            }
            for (function, event) in calls {
                let view = View::new(self.program, *function);
                let call = self.program.events(*function)[at(*event)].expr;
                let owner = self.struct_given(&view, call);
                if owner != Def::NONE {
                    found.push((owner, *function));
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// A function that is given the head runs after the grace period.
    fn is_rcu_callback(&self, view: &View<'_>) -> bool {
        let params = &view.unit.locals_of(view.function)[..at(view.function.params)];
        params.iter().any(|param| {
            view.local(param.name)
                .is_some_and(|ty| self.program.names.bytes(ty.base) == b"rcu_head")
        })
    }
}
