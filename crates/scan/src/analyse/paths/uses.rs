//! Where locals and tested expressions are needed for the last time.

use rustc_hash::FxHashMap;

use crate::analyse::keys::View;
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind};
use crate::front::lex::{Sym, index};

/// Last uses in one function.
#[derive(Debug, Default)]
pub(super) struct Uses {
    named: FxHashMap<Sym, u32>,
    tested: FxHashMap<E, u32>,
    /// How many conditions contain a call.
    conditions: FxHashMap<E, u32>,
}

/// How deep expressions are followed.
const DEPTH_MAX: u32 = 16;

impl Uses {
    pub(super) fn new(view: &View<'_>, events: &[Event]) -> Self {
        let mut uses = Self::default();
        for (position, event) in events.iter().enumerate() {
            let position = index(position);
            let is_test = matches!(
                event.kind,
                Kind::If | Kind::Loop | Kind::Switch | Kind::Return
            );
            uses.note(view, event.expr, position, is_test, 0);
            if matches!(event.kind, Kind::If | Kind::Loop | Kind::Switch) {
                uses.count_calls(view, event.expr, 0);
            }
            if event.kind == Kind::Write {
                uses.note(view, E(event.aux), position, true, 0);
            }
            if event.kind == Kind::Loop {
                // What a loop tests is tested at its end too.
                uses.note(view, event.expr, event.end, true, 0);
            }
        }
        uses
    }

    fn note(&mut self, view: &View<'_>, expr: E, position: u32, is_test: bool, depth: u32) {
        if expr == E::NONE || depth > DEPTH_MAX {
            return;
        }
        if let Expr::Name(name) = view.expr(expr) {
            let last = self.named.entry(name).or_default();
            *last = position.max(*last);
        }
        if is_test {
            let last = self.tested.entry(expr).or_default();
            *last = position.max(*last);
        }
        view.each_part(expr, |part| {
            self.note(view, part, position, is_test, depth + 1);
        });
    }

    fn count_calls(&mut self, view: &View<'_>, expr: E, depth: u32) {
        if depth > DEPTH_MAX {
            return;
        }
        if matches!(view.expr(expr), Expr::Call { .. }) {
            *self.conditions.entry(expr).or_default() += 1;
        }
        view.each_part(expr, |part| self.count_calls(view, part, depth + 1));
    }

    /// Whether the same call is asked in several conditions: its answer is taken to be the same each time.
    pub(super) fn is_asked_again(&self, call: E) -> bool {
        self.conditions.get(&call).is_some_and(|count| *count > 1)
    }

    pub(super) fn is_named_from(&self, local: Sym, position: u32) -> bool {
        self.named.get(&local).is_some_and(|last| *last >= position)
    }

    pub(super) fn is_tested_from(&self, expr: E, position: u32) -> bool {
        self.tested.get(&expr).is_some_and(|last| *last >= position)
    }
}
