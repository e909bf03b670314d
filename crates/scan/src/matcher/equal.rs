//! When two bindings are equal, and how they are shown.

use super::{Bound, Engine};
use crate::analyse::keys::{Key, View};
use crate::analyse::locks::Lock;
use crate::analyse::program::{EventId, Name as GlobalName};
use crate::front::ast::{E, Expr};
use crate::front::lex::op;

impl Engine<'_> {
    /// What makes two bindings of one variable equal: the same function; locks that may be the same;
    /// objects that may alias; conditions of the same text or over a common shared object.
    pub(super) fn is_equal(&self, one: &Bound, other: &Bound) -> bool {
        match (one, other) {
            (Bound::Function(a), Bound::Function(b)) => a == b,
            (Bound::Lock { lock: a, .. }, Bound::Lock { lock: b, .. }) => a.is_same_object(*b),
            (Bound::Lock { lock, .. }, Bound::Object { key, .. })
            | (Bound::Object { key, .. }, Bound::Lock { lock, .. }) => {
                self.flows.locks.key(*lock) == *key
            }
            (Bound::Args { place: a, call: x }, Bound::Args { place: b, call: y }) => {
                a.function == b.function && x == y
            }
            (
                Bound::Condition {
                    place: a, expr: x, ..
                },
                Bound::Condition {
                    place: b, expr: y, ..
                },
            ) if a.function == b.function && self.stripped(*a, *x) == self.stripped(*b, *y) => true,
            _ => {
                let keys = other.keys();
                one.keys()
                    .iter()
                    .any(|key| keys.contains(key) && *key != Key::UNKNOWN)
            }
        }
    }

    /// A condition without negation, `likely` and comparison with nothing.
    pub(super) fn stripped(&self, place: EventId, mut expr: E) -> E {
        let view = View::new(self.program, place.function);
        for _ in 0..8 {
            expr = match view.expr(expr) {
                Expr::Unary { op: code, of } if code == op("!") => of,
                Expr::Cast { of, .. } => of,
                Expr::Binary {
                    op: code,
                    left,
                    right,
                } if (code == op("==") || code == op("!=")) && self.is_nothing(&view, right) => {
                    left
                }
                Expr::Call { .. } => match view.unit.named_call(expr) {
                    Some((name, [inner])) if self.is_hint(view.name(name)) => *inner,
                    _ => return expr,
                },
                _ => return expr,
            };
        }
        expr
    }

    fn is_hint(&self, name: GlobalName) -> bool {
        matches!(
            self.program.names.bytes(name),
            b"likely"
                | b"unlikely"
                | b"READ_ONCE"
                | b"IS_ERR"
                | b"IS_ERR_OR_NULL"
                | b"WARN_ON"
                | b"WARN_ON_ONCE"
        )
    }

    pub(super) fn is_nothing(&self, view: &View<'_>, expr: E) -> bool {
        match view.expr(view.unit.exprs.peel(expr)) {
            Expr::Number(text) => self.program.names.bytes(view.name(text)) == b"0",
            Expr::Name(name) => matches!(
                self.program.names.bytes(view.name(name)),
                b"NULL" | b"false"
            ),
            _ => false,
        }
    }

    /// The bound element as text.
    pub(crate) fn show(&self, bound: &Bound) -> String {
        match bound {
            Bound::Object { place, expr, .. }
            | Bound::Condition { place, expr, .. }
            | Bound::Args { place, call: expr } => {
                View::new(self.program, place.function).show(*expr)
            }
            Bound::Function(id) => self.program.function_name(*id).into_owned(),
            Bound::Lock { lock, .. } => self.show_lock(*lock),
        }
    }

    /// A lock as text: `inode.i_lock`, `rtnl`.
    pub(crate) fn show_lock(&self, lock: Lock) -> String {
        let key = self.flows.locks.key(lock);
        let object = crate::show::object(self.program, key);
        let family = &self
            .program
            .table
            .family(self.flows.locks.family(lock))
            .name;
        match key.parts() {
            crate::analyse::keys::KeyParts::Class(_) => object,
            crate::analyse::keys::KeyParts::Field(_, GlobalName(0)) => {
                format!("{family} of {}", object.trim_end_matches('.'))
            }
            crate::analyse::keys::KeyParts::Unknown => format!("{family} (unknown)"),
            _ => object,
        }
    }
}
