//! Objects that no other context knows yet: freshly allocated, not stored into anything shared.

use super::calls::Calls;
use super::cfg::Cfg;
use super::flow::Flows;
use super::keys::View;
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind};
use crate::front::lex::{Sym, at, index, op};

/// The local that a plain assignment sets.
pub(super) fn plain_local(view: &View<'_>, event: &Event) -> Option<Sym> {
    if event.kind != Kind::Write || event.aux == 0 {
        return None;
    }
    match view.expr(event.expr) {
        Expr::Name(name) if view.is_local(name) => Some(name),
        _ => None,
    }
}

/// Locals that hold a fresh object, by event.
#[derive(Debug, Clone, Default)]
pub(super) struct Freshness {
    /// Bit set over `names` for each event; empty if nothing is ever fresh.
    pub(super) by_event: Vec<u64>,
    pub(super) names: Vec<Sym>,
    /// The result is an object that no other context knows.
    pub(super) result: bool,
}

/// Finds the fresh locals of one function.
pub(super) struct Fresh<'r, 'p> {
    pub(super) flows: &'r Flows,
    pub(super) calls: &'r Calls,
    pub(super) view: View<'p>,
    pub(super) events: &'r [Event],
    pub(super) cfg: &'r Cfg,
    pub(super) names: Vec<Sym>,
}

impl Fresh<'_, '_> {
    pub(super) fn run(self) -> Freshness {
        let count = self.events.len();
        let mut inputs: Vec<Option<u64>> = vec![None; count + 1];
        let known = u64::from(self.flows.fresh_params(self.view.id).count_ones());
        inputs[0] = Some(if known >= 64 {
            u64::MAX
        } else {
            (1 << known) - 1
        });
        let mut result: Option<bool> = None;
        for position in 0..count {
            let Some(here) = inputs[position] else {
                continue;
            };
            let event = self.events[position];
            let after = match event.kind {
                Kind::Return => {
                    self.judge_result(position, here, &mut result);
                    here
                }
                Kind::Call => self.escape_by_call(event, here),
                Kind::Write if !self.names.is_empty() => self.assign(index(position), event, here),
                _ => here,
            };
            for next in self.cfg.successors(index(position)) {
                let slot = &mut inputs[at(next)];
                *slot = Some(slot.map_or(after, |other| other & after));
            }
        }
        inputs.truncate(count);
        let mut by_event: Vec<u64> = inputs.into_iter().map(Option::unwrap_or_default).collect();
        if by_event.iter().all(|bits| *bits == 0) {
            by_event = Vec::new();
        }
        Freshness {
            by_event,
            names: self.names,
            result: result == Some(true),
        }
    }

    fn judge_result(&self, position: usize, here: u64, result: &mut Option<bool>) {
        let value = self.view.unit.exprs.peel(self.events[position].expr);
        let is_fresh = match self.view.expr(value) {
            Expr::Name(name) if self.view.is_local(name) => {
                self.bit(name).is_some_and(|bit| here & bit != 0)
            }
            // `return NULL` and `return ERR_PTR(..)` give no object.
            Expr::Name(_) | Expr::Number(_) => return,
            Expr::Call { .. } => {
                let is_error = self.view.unit.named_call(value).is_some_and(|(name, _)| {
                    self.view
                        .program
                        .names
                        .bytes(self.view.name(name))
                        .starts_with(b"ERR_")
                });
                if is_error {
                    return;
                }
                self.flows
                    .gives_fresh(&self.view, self.calls, index(position), value)
            }
            _ => false,
        };
        *result = Some(result.unwrap_or(true) && is_fresh);
    }

    fn bit(&self, name: Sym) -> Option<u64> {
        let bit = self.names.iter().position(|known| *known == name)?;
        Some(1 << bit)
    }

    fn assign(&self, position: u32, event: Event, fresh: u64) -> u64 {
        let value = self.view.unit.exprs.peel(E(event.aux));
        if let Some(target) = plain_local(&self.view, &event) {
            let Some(bit) = self.bit(target) else {
                return fresh;
            };
            let becomes = match self.view.expr(value) {
                Expr::Name(from) => self.bit(from).is_some_and(|from| fresh & from != 0),
                _ => self
                    .flows
                    .gives_fresh(&self.view, self.calls, position, value),
            };
            return if becomes { fresh | bit } else { fresh & !bit };
        }
        // Storing the pointer somewhere shares it, unless that place is itself unknown to others.
        let holder_is_fresh = self
            .view
            .root(event.expr)
            .and_then(|root| self.bit(root))
            .is_some_and(|bit| fresh & bit != 0);
        if holder_is_fresh {
            return fresh;
        }
        match self.view.root(value).and_then(|root| self.bit(root)) {
            Some(bit) if self.is_pointer_to_root(value) => fresh & !bit,
            _ => fresh,
        }
    }

    /// `p` or `&p->field`, but not `p->field`.
    fn is_pointer_to_root(&self, value: E) -> bool {
        match self.view.expr(value) {
            Expr::Name(_) => true,
            Expr::Unary { op: code, of } if code == op("&") => self.view.is_direct(of),
            _ => false,
        }
    }

    fn escape_by_call(&self, event: Event, fresh: u64) -> u64 {
        if fresh == 0 {
            return 0;
        }
        let Some((name, args)) = self.view.unit.named_call(event.expr) else {
            return fresh;
        };
        let publishes = self.view.program.table.class("publishes").unwrap_or(0);
        if self.view.program.idiom(self.view.name(name)).classes & publishes == 0 {
            return fresh;
        }
        // Adding to a list shares the entry, if the list itself is shared; the head is no entry.
        let list_add = self.view.program.table.class("list_add").unwrap_or(0);
        let classes = self.view.program.idiom(self.view.name(name)).classes;
        let args = match args {
            [entry, head, ..] if classes & list_add != 0 => {
                let is_private = !self.view.key(*head).is_shared()
                    || self.view.root(*head) == self.view.root(*entry)
                    || self
                        .view
                        .root(*head)
                        .and_then(|root| self.bit(root))
                        .is_some_and(|bit| fresh & bit != 0);
                if is_private {
                    return fresh;
                }
                std::slice::from_ref(entry)
            }
            // Storing a pointer shares what it points to, not the place it is stored in.
            [_, stored]
                if classes & self.view.program.table.class("stores_pointer").unwrap_or(0) != 0 =>
            {
                std::slice::from_ref(stored)
            }
            _ => args,
        };
        let mut fresh = fresh;
        for arg in args {
            let arg = self.view.unit.exprs.peel(*arg);
            if self.is_pointer_to_root(arg)
                && let Some(bit) = self.view.root(arg).and_then(|root| self.bit(root))
            {
                fresh &= !bit;
            }
        }
        fresh
    }
}
