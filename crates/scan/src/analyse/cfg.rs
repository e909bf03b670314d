//! Control flow between the events of one function.
//!
//! Forward edges always lead to a higher index, so one ascending pass over the events visits them in
//! topological order. Back edges (loops, backward gotos) are kept apart: like the paper, order is judged
//! for one iteration.

use crate::front::event::{ENDLESS, Event, Kind, TESTS_LAST, TOP};
use crate::front::lex::{at, index};

/// Successors of each event; index `len` is the function's exit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cfg {
    /// Up to two successors; `NONE` where there is none.
    succ: Vec<[u32; 2]>,
    /// Further successors (switch), as (from, to).
    more: Vec<(u32, u32)>,
    /// Loop heads reached again, as (from, head).
    back: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

impl Cfg {
    pub(crate) fn new(events: &[Event]) -> Self {
        let mut cfg = Self {
            succ: vec![[NONE; 2]; events.len()],
            ..Self::default()
        };
        for here in 0..index(events.len()) {
            cfg.connect(events, here);
        }
        cfg
    }

    fn connect(&mut self, events: &[Event], here: u32) {
        let event = events[at(here)];
        let exit = index(events.len());
        match event.kind {
            Kind::If => {
                let (then, other) = (here + 1, event.aux);
                if then < other {
                    self.edge(here, then);
                } else {
                    self.leave(events, here, event.end);
                }
                if other < event.end {
                    self.edge(here, other);
                } else {
                    self.leave(events, here, event.end);
                }
            }
            Kind::Loop => {
                if here + 1 < event.end {
                    self.edge(here, here + 1);
                }
                let is_left_at_head = event.flags & (ENDLESS | TESTS_LAST) == 0;
                if is_left_at_head || here + 1 >= event.end {
                    self.leave(events, here, event.end);
                }
            }
            Kind::Switch => {
                let mut has_default = false;
                for inner in here + 1..event.end {
                    let case = events[at(inner)];
                    if case.kind == Kind::Case
                        && enclosing(events, inner, |kind| kind == Kind::Switch) == Some(here)
                    {
                        self.edge(here, inner);
                        has_default |= case.expr == crate::front::ast::E::NONE;
                    }
                }
                if !has_default {
                    self.leave(events, here, event.end);
                }
            }
            Kind::Return => self.edge(here, exit),
            Kind::Break => match enclosing(events, here, |kind| {
                matches!(kind, Kind::Loop | Kind::Switch)
            }) {
                Some(target) => self.leave_as(events, here, target, events[at(target)].end),
                None => self.edge(here, exit),
            },
            Kind::Continue => match enclosing(events, here, |kind| kind == Kind::Loop) {
                Some(head) => {
                    self.back.push((here, head));
                    self.leave_from(events, here, head);
                }
                None => self.edge(here, exit),
            },
            Kind::Goto => match find_label(events, event.aux) {
                Some(label) if label > here => self.edge(here, label),
                Some(label) => self.back.push((here, label)),
                None => self.edge(here, exit),
            },
            _ => self.leave(events, here, here + 1),
        }
    }

    fn edge(&mut self, from: u32, to: u32) {
        let slots = &mut self.succ[at(from)];
        if slots.contains(&to) {
            return;
        }
        if let Some(slot) = slots.iter_mut().find(|slot| **slot == NONE) {
            *slot = to;
        } else {
            self.more.push((from, to));
        }
    }

    /// An edge from `here` to `target`, which may lie behind the end of enclosing constructs.
    fn leave(&mut self, events: &[Event], here: u32, target: u32) {
        self.leave_as(events, here, here, target);
    }

    fn leave_as(&mut self, events: &[Event], from: u32, position: u32, mut target: u32) {
        let mut inner = position;
        loop {
            let parent = events[at(inner)].parent;
            if parent == TOP {
                break;
            }
            let head = events[at(parent)];
            match head.kind {
                Kind::If if events[at(inner)].arm == 1 && target == head.aux => target = head.end,
                Kind::Loop if target == head.end => {
                    self.back.push((from, parent));
                    // One iteration only: the loop ends here.
                    if head.flags & (ENDLESS | TESTS_LAST) == ENDLESS {
                        return;
                    }
                }
                _ if target < head.end => break,
                _ => {}
            }
            inner = parent;
        }
        self.edge(from, target);
    }

    /// `continue` goes on behind the loop, after the condition failed.
    fn leave_from(&mut self, events: &[Event], from: u32, head: u32) {
        if events[at(head)].flags & ENDLESS == 0 {
            self.leave_as(events, from, head, events[at(head)].end);
        }
    }

    /// Forward successors of `here`; `len()` is the exit.
    pub(crate) fn successors(&self, here: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.more.partition_point(|(from, _)| *from < here);
        let extra = self.more[start..]
            .iter()
            .take_while(move |(from, _)| *from == here)
            .map(|(_, to)| *to);
        self.succ[at(here)]
            .into_iter()
            .filter(|to| *to != NONE)
            .chain(extra)
    }

    /// For each event, and the exit, whether several ways lead to it.
    pub(crate) fn joins(&self) -> Vec<bool> {
        let mut ways = vec![0_u8; self.succ.len() + 1];
        for here in 0..index(self.succ.len()) {
            for next in self.successors(here) {
                ways[at(next)] = ways[at(next)].saturating_add(1);
            }
        }
        ways.into_iter().map(|ways| ways > 1).collect()
    }

    /// For `from`, each later event and the exit: whether control can get there without a back edge.
    pub(crate) fn reached_from(&self, from: u32) -> Box<[bool]> {
        let mut seen = vec![false; self.succ.len() + 1 - at(from)];
        for here in from..index(self.succ.len()) {
            if here > from && !seen[at(here - from)] {
                continue;
            }
            for next in self.successors(here).filter(|next| *next > here) {
                seen[at(next - from)] = true;
            }
        }
        seen.into_boxed_slice()
    }

    /// Whether control can get from `from` to `to` without a back edge.
    pub(crate) fn reaches(&self, from: u32, to: u32) -> bool {
        self.reaches_without(from, to, NONE)
    }

    /// The same, never passing `avoid`.
    pub(crate) fn reaches_without(&self, from: u32, to: u32, avoid: u32) -> bool {
        if from >= to {
            return false;
        }
        let span = at(to - from) + 1;
        let mut seen = vec![false; span];
        seen[0] = true;
        for offset in 0..span - 1 {
            if !seen[offset] {
                continue;
            }
            let here = from + index(offset);
            if here == avoid {
                continue;
            }
            for next in self.successors(here) {
                if next > from && next <= to {
                    seen[at(next - from)] = true;
                }
            }
        }
        seen[span - 1]
    }

    /// Whether every way from the function's start to `to` passes `by`.
    pub(crate) fn dominates(&self, by: u32, to: u32) -> bool {
        by == to || (by < to && (to == 0 || by == 0 || !self.reaches_without(0, to, by)))
    }
}

fn enclosing(events: &[Event], here: u32, wanted: impl Fn(Kind) -> bool) -> Option<u32> {
    let mut parent = events[at(here)].parent;
    while parent != TOP {
        if wanted(events[at(parent)].kind) {
            return Some(parent);
        }
        parent = events[at(parent)].parent;
    }
    None
}

fn find_label(events: &[Event], label: u32) -> Option<u32> {
    events
        .iter()
        .position(|event| event.kind == Kind::Label && event.aux == label)
        .map(index)
}
