//! A function as a flat list of events in source order.
//!
//! ```text
//!   if (a->x) {           0 Read  a->x
//!       lock(&l);         1 If    a->x     other = 3, end = 4
//!   } else                2 Call  lock(&l)       parent 1, arm 1
//!       a->y = 1;         3 Write a->y           parent 1, arm 2
//!   return;               4 Return
//! ```
//! Conditions are read before their `If`; a loop's condition is read inside the loop.

use super::ast::E;
use super::lex::Sym;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    If,
    Loop,
    Switch,
    Case,
    /// A block under a macro that is no loop.
    Scope,
    Read,
    Write,
    Call,
    /// A `guard(..)` goes out of scope here.
    ScopeEnd,
    Break,
    Continue,
    Return,
    Goto,
    Label,
}

/// No parent.
pub(crate) const TOP: u32 = u32::MAX;

/// One event. Indices are relative to the function's first event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    /// 0: the condition part, 1: the body or then-branch, 2: the else-branch of `parent`.
    pub(crate) arm: u8,
    pub(crate) flags: u8,
    /// Condition, accessed object, call, or returned value.
    pub(crate) expr: E,
    /// `If`: where the else-branch starts. `Write`: the value. `Goto`, `Label`: the label.
    pub(crate) aux: u32,
    /// Byte offset in the file.
    pub(crate) pos: u32,
    pub(crate) parent: u32,
    /// One past the last event inside; for simple events one past itself.
    pub(crate) end: u32,
}

/// The access is read and write in one.
pub(crate) const UPDATE: u8 = 1;
/// The access is atomic by itself (`READ_ONCE`, `atomic_inc`).
pub(crate) const ATOMIC: u8 = 2;
/// The access is made by a call that takes the address.
pub(crate) const BY_CALL: u8 = 4;
/// The loop tests its condition last.
pub(crate) const TESTS_LAST: u8 = 8;
/// A declaration with initialiser.
pub(crate) const DECLARES: u8 = 16;
/// The event belongs to the condition of the `If`, `Loop` or `Switch` that follows or encloses it.
pub(crate) const IN_CONDITION: u8 = 32;
/// `|=` or `&=`: doing it twice is doing it once.
pub(crate) const IDEMPOTENT: u8 = 128;
/// An endless loop: no condition.
pub(crate) const ENDLESS: u8 = 64;
/// `do { .. } while (0)`. Loops are no accesses, so the bit is free.
pub(crate) const RUNS_ONCE: u8 = 2;
/// A call whose result is thrown away. Calls are no accesses, so the bit is free.
pub(crate) const DISCARDED: u8 = 128;

/// A function of one file.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: Sym,
    /// Range in [`super::unit::Unit::events`].
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Range in [`super::unit::Unit::locals`]; parameters come first.
    pub(crate) locals: u32,
    pub(crate) local_count: u32,
    pub(crate) params: u32,
    pub(crate) is_static: bool,
    pub(crate) is_init: bool,
    pub(crate) damaged: bool,
    pub(crate) from_macro: bool,
    /// What a macro that is one expression stands for.
    pub(crate) value: E,
    /// `__acquires(..)` or `__releases(..)`: locks are handed over to or by the caller.
    pub(crate) hands_over: bool,
    /// The macro that defined it, or 0.
    pub(crate) definer: Sym,
}
