//! Objects that must not be used any more: freed, or found under RCU and used after its end.

use super::judge::{PathFact, PathFactKind};
use super::state::{Borrowed, Gone, State};
use super::value::{Node, Value};
use super::walk::Walk;
use crate::analyse::locks::Lock;
use crate::analyse::program::Name;
use crate::front::ast::{E, Expr};
use crate::front::event::{BY_CALL, Event, Kind};
use crate::front::lex::{Sym, at};

/// Objects that are kept in mind on one path.
const OBJECTS_MAX: usize = 6;

impl Walk<'_, '_> {
    /// What a call does to the lives of the objects it is given.
    pub(super) fn lives_after_call(&mut self, position: u32, call: E, state: &mut State) {
        let view = self.view();
        let Some((name, args)) = view.unit.named_call(call) else {
            return;
        };
        let global = view.name(name);
        let classes = view.program.idiom(global).classes;
        if classes & self.classes.frees_now != 0 {
            if let Some(arg) = args.first() {
                let value = self.eval.value(state, *arg);
                self.remember_gone(value, position, PathFactKind::UsesFreed, state);
            }
            return;
        }
        self.check_arguments(position, global, args, state);
        let is_watched = !(state.gone.is_empty() && state.borrowed.is_empty());
        let text = view.program.names.bytes(global);
        let (is_kept, is_taken) = (takes_reference(text), takes_out(text));
        if is_watched && (is_kept || is_taken) {
            let args = args.to_vec();
            for arg in args {
                let value = self.eval.value(state, arg);
                let is_meant =
                    |object: Value| self.eval.values.bases(value).any(|base| base == object);
                state.borrowed.retain(|borrowed| {
                    !(is_meant(borrowed.object) && (is_kept || borrowed.lock.is_some()))
                });
                state.gone.retain(|gone| {
                    !(is_meant(gone.object)
                        && (is_kept || gone.kind == PathFactKind::UsesAfterUnlock))
                });
            }
        }
        if classes & self.classes.rcu_lookup != 0
            && self.is_in_rcu(state)
            && let Some(arg) = args.first()
        {
            let value = self.eval.value(state, *arg);
            borrow(value, None, state);
        }
    }

    /// A function that writes to an object under the lock may have marked it as used.
    pub(super) fn mark_written(&mut self, target: E, state: &mut State) {
        if state
            .borrowed
            .iter()
            .all(|borrowed| borrowed.lock.is_none())
        {
            return;
        }
        let value = self.eval.value(state, target);
        let values = &self.eval.values;
        state.borrowed.retain(|borrowed| {
            borrowed.lock.is_none() || !values.bases(value).any(|base| base == borrowed.object)
        });
    }

    /// The lock that keeps what is found now: the last that was taken here.
    fn keeping_lock(&self, state: &State) -> Option<Lock> {
        let table = self.view().program.table;
        let mut held = state.held.iter().rev().map(|held| held.lock);
        held.find(|lock| {
            let family = table.family(self.locks.family(*lock));
            !family.rcu && !family.context && family.has_object
        })
    }

    /// Reports what is gone and given to a function all the same.
    fn check_arguments(&mut self, position: u32, name: Name, args: &[E], state: &State) {
        let is_left = state
            .gone
            .iter()
            .any(|gone| gone.kind != PathFactKind::UsesFreed);
        let program = self.view().program;
        let text = program.names.bytes(name);
        // Who waits for all readers has taken the object away from them.
        let waits = program.table.class("grace_periods").unwrap_or(0);
        let has_waited = self.calls.classes[at(self.view().id.0)] & waits != 0;
        if !is_left
            || has_waited
            || state.joined
            || program.table.is_loop(text)
            || takes_reference(text)
            || only_tells(text)
        {
            return;
        }
        for arg in args {
            let value = self.eval.value(state, *arg);
            let gone = state
                .gone
                .iter()
                .find(|gone| gone.object == value && gone.kind != PathFactKind::UsesFreed);
            if let Some(gone) = gone {
                self.facts.push(PathFact {
                    kind: gone.kind,
                    first: gone.by,
                    second: position,
                    lock: Lock::NONE,
                });
            }
        }
    }

    /// The result of a look-up that leaves protection to its caller is an object found under RCU.
    pub(super) fn borrow_result(&mut self, call: E, result: Value, state: &mut State) {
        let view = self.view();
        let Some((name, _)) = view.unit.named_call(call) else {
            return;
        };
        let name = view.name(name);
        let is_lookup = view.program.names.bytes(name).ends_with(b"_rcu")
            && view.program.idiom(name).classes == 0;
        if is_lookup && self.is_in_rcu(state) {
            borrow(result, None, state);
            return;
        }
        let finds = view.program.idiom(name).classes & self.classes.lock_lookup != 0
            || looks_up(view.program.names.bytes(name));
        if finds && let Some(lock) = self.keeping_lock(state) {
            borrow(result, Some(lock), state);
        }
    }

    fn is_in_rcu(&self, state: &State) -> bool {
        state.held.iter().any(|held| self.is_plain_rcu(held.lock))
    }

    fn is_plain_rcu(&self, lock: Lock) -> bool {
        let family = self.view().program.table.family(self.locks.family(lock));
        family.rcu && !family.has_object
    }

    /// The variable of a loop over an RCU list is an object found under RCU.
    pub(super) fn borrow_loop_variable(&mut self, head: E, local: Sym, state: &mut State) {
        let view = self.view();
        let is_rcu = view
            .unit
            .named_call(head)
            .is_some_and(|(name, _)| view.program.names.bytes(view.name(name)).ends_with(b"_rcu"));
        let Some(slot) = state.local(local) else {
            return;
        };
        if is_rcu && self.is_in_rcu(state) {
            borrow(slot.value, None, state);
        } else if let Some(lock) = self.keeping_lock(state) {
            borrow(slot.value, Some(lock), state);
        }
    }

    /// After the lock was released nothing keeps what was found under it.
    pub(super) fn end_of_section(&mut self, position: u32, lock: Lock, state: &mut State) {
        let is_of_lock = |borrowed: &Borrowed| {
            borrowed
                .lock
                .is_some_and(|other| other.is_same_object(lock))
        };
        if state.borrowed.iter().any(is_of_lock) {
            let is_kept = self.keeping_lock(state).is_some() || self.is_in_rcu(state);
            let (gone, rest) = std::mem::take(&mut state.borrowed)
                .into_iter()
                .partition::<Vec<_>, _>(is_of_lock);
            state.borrowed = rest;
            for borrowed in gone {
                if !is_kept {
                    let kind = PathFactKind::UsesAfterUnlock;
                    self.remember_gone(borrowed.object, position, kind, state);
                }
            }
        }
        self.end_of_rcu(position, lock, state);
    }

    /// After the outermost section nothing keeps what was found in it.
    fn end_of_rcu(&mut self, position: u32, lock: Lock, state: &mut State) {
        if !self.is_plain_rcu(lock) || self.is_in_rcu(state) {
            return;
        }
        // Another lock may keep the object.
        let is_kept = state.held.iter().any(|held| {
            !self
                .view()
                .program
                .table
                .family(self.locks.family(held.lock))
                .context
        });
        let (gone, rest) = std::mem::take(&mut state.borrowed)
            .into_iter()
            .partition::<Vec<_>, _>(|borrowed| borrowed.lock.is_none());
        state.borrowed = rest;
        for borrowed in gone {
            if !is_kept {
                let kind = PathFactKind::UsesAfterRcu;
                self.remember_gone(borrowed.object, position, kind, state);
            }
        }
    }

    fn remember_gone(&mut self, object: Value, by: u32, kind: PathFactKind, state: &mut State) {
        let is_object = matches!(
            self.eval.values.node(object),
            Node::Param(_) | Node::Result(..) | Node::Load(_) | Node::Pure(..)
        );
        if is_object && state.gone.len() < OBJECTS_MAX {
            state.gone.push(Gone { object, by, kind });
        }
    }

    /// Reports an access to what is gone.
    pub(super) fn check_use(&mut self, position: u32, event: Event, state: &State) {
        if state.gone.is_empty() || state.joined {
            return;
        }
        let view = self.view();
        let target = view.unit.exprs.peel(event.expr);
        if event.flags & BY_CALL != 0 && event.kind == Kind::Write {
            return;
        }
        let Expr::Member {
            arrow: true, base, ..
        } = view.expr(target)
        else {
            return;
        };
        let base = self.eval.value(state, base);
        for gone in &state.gone {
            if gone.object == base {
                self.facts.push(PathFact {
                    kind: gone.kind,
                    first: gone.by,
                    second: position,
                    lock: Lock::NONE,
                });
            }
        }
    }
}

fn borrow(object: Value, lock: Option<Lock>, state: &mut State) {
    let is_known = state
        .borrowed
        .iter()
        .any(|borrowed| borrowed.object == object);
    if !is_known && state.borrowed.len() < OBJECTS_MAX {
        state.borrowed.push(Borrowed { object, lock });
    }
}

/// Whether a function of this name takes an object out of what others can find it in.
fn takes_out(text: &[u8]) -> bool {
    [
        &b"del"[..],
        b"remove",
        b"unlink",
        b"dequeue",
        b"erase",
        b"move",
        b"splice",
        b"detach",
        b"add",
        b"insert",
    ]
    .iter()
    .any(|part| text.windows(part.len()).any(|window| window == *part))
}

/// Whether a function of this name finds an object and leaves it where it is. One that says `get` keeps it.
fn looks_up(text: &[u8]) -> bool {
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    (has(b"find") || has(b"lookup") || has(b"search"))
        && !(has(b"get") || has(b"bit") || has(b"create") || has(b"alloc") || has(b"ref"))
}

/// Whether a function of this name only looks at the pointer itself, or gives the object up.
fn only_tells(text: &[u8]) -> bool {
    [
        &b"IS_ERR"[..],
        b"PTR_ERR",
        b"put",
        b"print",
        b"trace",
        b"dbg",
        b"rcu",
        b"WARN",
        b"free",
    ]
    .iter()
    .any(|part| text.windows(part.len()).any(|window| window == *part))
}

/// Whether a function of this name keeps an object.
fn takes_reference(text: &[u8]) -> bool {
    [&b"get"[..], b"hold", b"ref", b"grab", b"pin"]
        .iter()
        .any(|part| text.windows(part.len()).any(|window| window == *part))
}
