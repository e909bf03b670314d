//! Threads that end by themselves: a way out of the thread function on which nothing asked it to stop.
//!
//! The question is asked of the control flow, not of a spelling: an edge that is taken only if
//! `kthread_should_stop()` was true is cut, and what still reaches the end ends by itself. A flag counts as
//! the question if it is only ever changed by the answer. The end is the end of the function or a call that
//! ends the thread.

use super::Engine;
use super::conditions::Ask;
use super::facts::contains_call;
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::View;
use crate::analyse::program::FnId;
use crate::front::ast::{E, Expr};
use crate::front::event::{DECLARES, DISCARDED, Event, IN_CONDITION, Kind, TESTS_LAST, TOP};
use crate::front::lex::{Sym, at, index, op};

/// How deep conditions are followed.
const DEPTH_MAX: u32 = 8;
/// What one local costs of it: a flag may be set from a flag, not more.
const LOCAL_DEPTH: u32 = 4;
/// How many calls deep it is asked whether a callee returns before the thread was asked.
const CALLEES_MAX: u32 = 3;

/// What is in the names of macros that wait for a condition, and in those that give up after a time.
const WAIT: &[u8] = b"wait_event";
const LIMITED: &[u8] = b"timeout";

impl Ask<'_, '_, '_> {
    pub(super) fn ends_by_itself(&self) -> Option<bool> {
        let id = self.function(0)?;
        Some(self.engine.ends_by_itself(id, 0))
    }
}

impl Engine<'_> {
    /// Whether the thread function may return although nothing asked it to stop.
    fn ends_by_itself(&self, id: FnId, depth: u32) -> bool {
        let question = Question::new(self, id, depth);
        let seen = question.reached();
        seen.last().is_some_and(|end| *end)
    }

    /// Whether a function called by a thread has a result of this truth only after the thread was asked.
    fn result_is_answer(&self, callee: FnId, truth: bool, depth: u32) -> bool {
        let question = Question::new(self, callee, depth);
        let seen = question.reached();
        let mut returns = question.events.iter().zip(&seen).filter(|(event, seen)| {
            event.kind == Kind::Return && **seen && question.may_be(event.expr, truth)
        });
        returns.all(|(event, _)| question.implies(event.expr, truth, 0))
    }

    /// The callees that ask for the thread, with the events of their calls.
    fn asking_callees(&self, id: FnId) -> Vec<(u32, FnId)> {
        let asks = self.program.table.class("thread_should_stop").unwrap_or(0);
        let calls = self.calls.of(id).iter();
        let asking = calls.filter(|call| {
            let called = self.called_from(call.callee);
            let mut called = called.iter();
            called.any(|callee| self.calls.classes[at(callee.0)] & asks != 0)
        });
        asking.map(|call| (call.event, call.callee)).collect()
    }
}

struct Question<'q> {
    engine: &'q Engine<'q>,
    view: View<'q>,
    events: &'q [Event],
    asks: u128,
    exits: u128,
    never: u128,
    asking: Vec<(u32, FnId)>,
    /// How many calls deep this function is.
    depth: u32,
}

impl<'q> Question<'q> {
    fn new(engine: &'q Engine<'q>, id: FnId, depth: u32) -> Self {
        let class = |name: &str| engine.program.table.class(name).unwrap_or(0);
        Self {
            engine,
            view: View::new(engine.program, id),
            events: engine.program.events(id),
            asks: class("thread_should_stop"),
            exits: class("thread_exits"),
            never: class("never_returns"),
            asking: engine.asking_callees(id),
            depth,
        }
    }

    /// The events, and at last the end, that are reached without an edge which says that the thread was asked
    /// to stop.
    fn reached(&self) -> Vec<bool> {
        let count = self.events.len();
        let cfg = Cfg::new(self.events);
        let mut seen = vec![false; count + 1];
        seen[0] = count > 0;
        for position in 0..count {
            if !seen[position] {
                continue;
            }
            let classes = self.classes(index(position));
            if classes & self.exits != 0 {
                seen[count] = true;
            }
            if classes & (self.exits | self.never) != 0 || self.is_cut(index(position)) {
                continue;
            }
            for target in cfg.successors(index(position)) {
                if !self.is_asked(index(position), target) {
                    seen[at(target)] = true;
                }
            }
        }
        seen
    }

    /// Whether control is not followed behind this call: its result may be the answer and is kept, or it comes
    /// back only after the answer. What a condition makes of a result is asked where the ways part.
    fn is_cut(&self, position: u32) -> bool {
        let flags = self.events[at(position)].flags;
        if self.waits_for_question(position) {
            return true;
        }
        let mut asking = self.asking.iter().filter(|(event, _)| *event == position);
        asking.any(|(_, callee)| {
            if flags & DISCARDED == 0 {
                flags & IN_CONDITION == 0
            } else {
                self.depth < CALLEES_MAX && !self.engine.ends_by_itself(*callee, self.depth + 1)
            }
        })
    }

    /// `wait_event(queue, kthread_should_stop())` and its kin; those with a time limit come back before.
    fn waits_for_question(&self, position: u32) -> bool {
        let event = self.events[at(position)];
        if event.kind != Kind::Call {
            return false;
        }
        let Some((name, args)) = self.view.unit.named_call(event.expr) else {
            return false;
        };
        let name = self.view.program.names.bytes(self.view.name(name));
        let is_wait = name.windows(WAIT.len()).any(|part| part == WAIT);
        let is_limited = name.windows(LIMITED.len()).any(|part| part == LIMITED);
        is_wait && !is_limited && args.iter().any(|arg| self.implies(*arg, true, 0))
    }

    /// Whether a returned value may have this truth.
    fn may_be(&self, value: E, truth: bool) -> bool {
        if value == E::NONE {
            return true;
        }
        let text = |name: Sym| self.view.program.names.bytes(self.view.name(name));
        match self.view.expr(self.view.unit.exprs.peel(value)) {
            Expr::Number(number) => (text(number) != b"0") == truth,
            Expr::Name(name) => match text(name) {
                b"true" => truth,
                b"false" | b"NULL" => !truth,
                _ => true,
            },
            _ => true,
        }
    }

    /// What kind of function is called here.
    fn classes(&self, position: u32) -> u128 {
        let event = self.events[at(position)];
        if event.kind != Kind::Call {
            return 0;
        }
        let called = self.view.unit.named_call(event.expr);
        called.map_or(0, |(name, _)| {
            self.view.program.idiom(self.view.name(name)).classes
        })
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
            Kind::Loop
                if event.flags & TESTS_LAST == 0
                    && target >= event.end
                    && self.implies(event.expr, false, 0) =>
            {
                return true;
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
                    // A result that is compared is taken for the answer: what it means is not known.
                    self.is_asking(left) || self.is_asking(right)
                }
            }
            Expr::Name(local) => self.is_answer(local, truth, depth + LOCAL_DEPTH),
            Expr::Call { .. } => self.call_implies(condition, truth),
            _ => false,
        }
    }

    fn call_implies(&self, call: E, truth: bool) -> bool {
        // `likely()` and the like stand around the question.
        if truth && contains_call(&self.view, call, self.asks, 0) {
            return true;
        }
        let mut asking = self
            .asking
            .iter()
            .filter(|(event, _)| self.contains(call, self.events[at(*event)].expr));
        asking.any(|(_, callee)| {
            self.depth >= CALLEES_MAX
                || self.engine.result_is_answer(*callee, truth, self.depth + 1)
        })
    }

    /// Whether the result of a callee that asks stands here.
    fn is_asking(&self, value: E) -> bool {
        let mut asking = self.asking.iter();
        asking.any(|(event, _)| self.contains(value, self.events[at(*event)].expr))
    }

    /// Whether `inner` is `outer`, or its only argument.
    fn contains(&self, outer: E, inner: E) -> bool {
        let outer = self.view.unit.exprs.peel(outer);
        outer == inner
            || self
                .view
                .unit
                .named_call(outer)
                .is_some_and(|(_, args)| args.len() == 1 && args.contains(&inner))
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
