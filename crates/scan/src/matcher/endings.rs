//! Threads that end by themselves: a way out of the thread function on which nothing asked it to stop.
//!
//! The question is asked of the control flow, not of a spelling: an edge that is taken only if
//! `kthread_should_stop()` was true is cut, and what still reaches the end ends by itself. A flag counts as
//! the question if it is only ever changed by the answer.

use super::Engine;
use super::conditions::Ask;
use super::facts::contains_call;
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::View;
use crate::analyse::program::FnId;
use crate::front::ast::{E, Expr};
use crate::front::event::{DECLARES, Event, Kind, TESTS_LAST, TOP};
use crate::front::lex::{Sym, at, index, op};

/// How deep conditions are followed.
const DEPTH_MAX: u32 = 8;
/// What one local costs of it: a flag may be set from a flag, not more.
const LOCAL_DEPTH: u32 = 4;

impl Ask<'_, '_, '_> {
    pub(super) fn ends_by_itself(&self) -> Option<bool> {
        let id = self.function(0)?;
        Some(self.engine.ends_by_itself(id))
    }
}

impl Engine<'_> {
    /// Whether the thread function may return although nothing asked it to stop.
    fn ends_by_itself(&self, id: FnId) -> bool {
        let events = self.program.events(id);
        if events.is_empty() {
            return false;
        }
        let question = Question {
            view: View::new(self.program, id),
            events,
            asks: self.program.table.class("thread_should_stop").unwrap_or(0),
            never: self.program.table.class("never_returns").unwrap_or(0),
            callees: self.asking_callees(id),
        };
        question.reaches_end(&Cfg::new(events))
    }

    /// Calls of functions that ask for the thread: what they find out is not followed.
    fn asking_callees(&self, id: FnId) -> Vec<u32> {
        let asks = self.program.table.class("thread_should_stop").unwrap_or(0);
        let calls = self.calls.of(id).iter();
        let mut asking: Vec<u32> = calls
            .filter(|call| {
                let called = self.called_from(call.callee);
                let mut called = called.iter();
                called.any(|callee| self.calls.classes[at(callee.0)] & asks != 0)
            })
            .map(|call| call.event)
            .collect();
        asking.sort_unstable();
        asking
    }
}

struct Question<'q> {
    view: View<'q>,
    events: &'q [Event],
    asks: u128,
    never: u128,
    callees: Vec<u32>,
}

impl Question<'_> {
    /// Whether the end is reached without an edge that says that the thread was asked to stop.
    fn reaches_end(&self, cfg: &Cfg) -> bool {
        let count = self.events.len();
        let mut seen = vec![false; count + 1];
        seen[0] = true;
        for position in 0..count {
            if !seen[position] || self.is_last(index(position)) {
                continue;
            }
            for target in cfg.successors(index(position)) {
                if !self.is_asked(index(position), target) {
                    seen[at(target)] = true;
                }
            }
        }
        seen[count]
    }

    /// Whether control does not go on from here, or goes on in a way that is not followed.
    fn is_last(&self, position: u32) -> bool {
        let event = self.events[at(position)];
        if event.kind != Kind::Call {
            return false;
        }
        let classes = self
            .view
            .unit
            .named_call(event.expr)
            .map_or(0, |(name, _)| {
                self.view.program.idiom(self.view.name(name)).classes
            });
        classes & self.never != 0 || self.callees.binary_search(&position).is_ok()
    }

    /// Whether control takes the edge only after the thread was asked to stop.
    fn is_asked(&self, from: u32, target: u32) -> bool {
        let event = self.events[at(from)];
        match event.kind {
            Kind::If => {
                let in_then = (from + 1..event.aux).contains(&target);
                if self.implies(event.expr, in_then, 0) {
                    return true;
                }
            }
            Kind::Loop if event.flags & TESTS_LAST == 0 && target >= event.end => {
                return self.implies(event.expr, false, 0);
            }
            _ => {}
        }
        self.leaves_asked_loop(from, target)
    }

    /// Whether the edge falls out of the end of a loop whose condition is false only after the question.
    fn leaves_asked_loop(&self, from: u32, target: u32) -> bool {
        if matches!(
            self.events[at(from)].kind,
            Kind::Break | Kind::Goto | Kind::Return
        ) {
            return false;
        }
        let mut parent = self.events[at(from)].parent;
        while parent != TOP {
            let head = self.events[at(parent)];
            if head.kind == Kind::Loop && target >= head.end && self.implies(head.expr, false, 0) {
                return true;
            }
            parent = head.parent;
        }
        false
    }

    /// Whether `condition` being `truth` means that the thread was asked to stop.
    fn implies(&self, condition: E, truth: bool, depth: u32) -> bool {
        if condition == E::NONE || depth > DEPTH_MAX {
            return false;
        }
        match self.view.expr(condition) {
            Expr::Unary { op: code, of } if code == op("!") => self.implies(of, !truth, depth + 1),
            Expr::Cast { of, .. } => self.implies(of, truth, depth + 1),
            Expr::Binary {
                op: code,
                left,
                right,
            } => {
                let both = [left, right].map(|side| self.implies(side, truth, depth + 1));
                if code == op("&&") {
                    // True only if both are; false as soon as one is.
                    if truth {
                        both[0] || both[1]
                    } else {
                        both[0] && both[1]
                    }
                } else if code == op("||") {
                    if truth {
                        both[0] && both[1]
                    } else {
                        both[0] || both[1]
                    }
                } else {
                    false
                }
            }
            Expr::Name(local) => self.is_answer(local, truth, depth + LOCAL_DEPTH),
            Expr::Call { .. } => {
                // `likely()` and the like stand around the question.
                truth && contains_call(&self.view, condition, self.asks, 0)
            }
            _ => false,
        }
    }

    /// Whether a local has this truth only because of the answer: it was set to it, or after it.
    fn is_answer(&self, local: Sym, truth: bool, depth: u32) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        let mut is_answered = false;
        for (position, event) in self.events.iter().enumerate() {
            if event.kind != Kind::Write || self.view.expr(event.expr) != Expr::Name(local) {
                continue;
            }
            let value = self.view.unit.exprs.peel(E(event.aux));
            let says_so = event.aux != 0 && self.implies(value, truth, depth);
            if says_so || self.stands_after_question(index(position), depth) {
                is_answered = true;
            } else if event.flags & DECLARES == 0 && event.parent != TOP {
                return false;
            }
        }
        is_answered
    }

    fn stands_after_question(&self, position: u32, depth: u32) -> bool {
        let mut here = position;
        loop {
            let parent = self.events[at(here)].parent;
            if parent == TOP {
                return false;
            }
            let head = self.events[at(parent)];
            if head.kind == Kind::If
                && self.implies(head.expr, self.events[at(here)].arm == 1, depth)
            {
                return true;
            }
            here = parent;
        }
    }
}
