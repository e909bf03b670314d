//! Recognises lock operations: calls, guards, and macros with the caller's arguments put in.

use super::keys::{Key, KeyParts, View};
use super::locks::{Lock, Locks};
use super::program::{Name, Program};
use super::types::Def;
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind, TOP};
use crate::front::lex::{Sym, at, op};
use crate::idioms::{LockAction, LockOp};

/// A lock operation found at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) lock: Lock,
    pub(crate) action: LockAction,
}

/// Not under an `if`; the usual `do { .. } while (0)` around a macro is no condition.
pub(super) fn is_unconditional(events: &[Event], event: &Event) -> bool {
    let mut parent = event.parent;
    while parent != TOP {
        let head = events[at(parent)];
        if matches!(head.kind, Kind::If | Kind::Switch) {
            return false;
        }
        parent = head.parent;
    }
    true
}

/// The key of a family without lock objects.
pub(crate) fn class_key(program: &Program<'_>, family: u16) -> Key {
    Key::new(KeyParts::Class(u32::from(program.table.canonical(family))))
}

/// The key of a lock argument; a local that is set once stands for its value, unless its type says whose lock it
/// is: `struct sock *sk = chan->data`.
pub(crate) fn lock_key(view: &View<'_>, defs: &[(Sym, E)], arg: E) -> Key {
    let mut arg = view.unit.exprs.peel(arg);
    for _ in 0..3 {
        let Expr::Name(name) = view.expr(arg) else {
            break;
        };
        if let Some(owner) = lock_owner(view, arg) {
            return owner;
        }
        match defs.iter().find(|(known, _)| *known == name) {
            Some((_, value)) if !matches!(view.expr(*value), Expr::Call { .. }) => {
                arg = view.unit.exprs.peel(*value);
            }
            _ => break,
        }
    }
    let key = view.key(arg);
    let is_address = matches!(view.expr(arg), Expr::Unary { op: code, .. } if code == op("&"));
    if is_address && !key.is_local() {
        return key;
    }
    lock_owner(view, arg).unwrap_or(key)
}

/// The lock of a pointer to a struct that is itself the lock's owner, however it is reached: `lock_sock(sk)`.
fn lock_owner(view: &View<'_>, arg: E) -> Option<Key> {
    const BARE: &[&[u8]] = &[
        b"spinlock",
        b"raw_spinlock",
        b"mutex",
        b"rw_semaphore",
        b"semaphore",
        b"spinlock_t",
        b"rwlock_t",
    ];
    let ty = view.program.types.canonical(view.ty(arg));
    let is_bare = ty.base == Name(0) || BARE.contains(&view.program.names.bytes(ty.base));
    let def = view.def(arg);
    (!is_bare && def != Def::NONE).then(|| Key::new(KeyParts::Field(def, Name(0))))
}

/// The lock operation that the call `id` is.
pub(crate) fn operation(
    view: View<'_>,
    locks: &mut Locks,
    defs: &[(Sym, E)],
    id: E,
) -> Option<Operation> {
    let Expr::Call { callee, args } = view.expr(id) else {
        return None;
    };
    let program = view.program;
    let args = view.unit.exprs.parts(args);
    match view.expr(callee) {
        Expr::Name(name) => {
            let name = view.name(name);
            if program.names.bytes(name) == b"scoped_guard" {
                return guard(view, locks, defs, *args.first()?, args.get(1).copied());
            }
            let op: LockOp = program.idiom(name).lock?;
            let key = match op.argument {
                None => class_key(program, op.family),
                Some(number) => lock_key(&view, defs, *args.get(number)?),
            };
            Some(Operation {
                lock: locks.lock(program, key, op.family),
                action: op.action,
            })
        }
        Expr::Call {
            callee: inner,
            args: names,
        } => {
            let Expr::Name(inner) = view.expr(inner) else {
                return None;
            };
            if program.names.bytes(view.name(inner)) != b"guard" {
                return None;
            }
            let first = *view.unit.exprs.parts(names).first()?;
            guard(view, locks, defs, first, args.first().copied())
        }
        _ => None,
    }
}

fn guard(
    view: View<'_>,
    locks: &mut Locks,
    defs: &[(Sym, E)],
    kind: E,
    lock: Option<E>,
) -> Option<Operation> {
    let Expr::Name(kind) = view.expr(kind) else {
        return None;
    };
    let kind = view.program.names.text(view.name(kind));
    let family = view.program.table.guard(&kind)?;
    let key = match lock {
        Some(lock) => lock_key(&view, defs, lock),
        None => class_key(view.program, family),
    };
    Some(Operation {
        lock: locks.lock(view.program, key, family).scoped(),
        action: LockAction::Acquire,
    })
}

/// The key of a macro's lock argument with the caller's arguments in place of the parameters.
pub(super) fn substitute(
    inner: &View<'_>,
    outer: &View<'_>,
    defs: &[(Sym, E)],
    args: &[E],
    id: E,
) -> Key {
    match inner.expr(inner.unit.exprs.peel(id)) {
        Expr::Unary { of, .. } => substitute(inner, outer, defs, args, of),
        Expr::Name(name) => match inner.param(name).and_then(|number| args.get(number)) {
            Some(arg) => lock_key(outer, defs, *arg),
            None => inner.key(id),
        },
        Expr::Member { base, field, .. } => {
            let base = inner.unit.exprs.peel(base);
            let Expr::Name(name) = inner.expr(base) else {
                return inner.key(id);
            };
            match inner.param(name).and_then(|number| args.get(number)) {
                Some(arg) => Key::new(KeyParts::Field(outer.def(*arg), inner.name(field))),
                None => inner.key(id),
            }
        }
        _ => inner.key(id),
    }
}
