//! What a macro does to the locks of a path: its lock operations, with the arguments put in.

use super::calls::Effect;
use super::state::State;
use super::value::{Node, Value};
use super::walk::Walk;
use crate::analyse::keys::View;
use crate::analyse::operations::{class_key, is_unconditional, substitute};
use crate::analyse::program::Name;
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind};
use crate::front::lex::{Sym, op};
use crate::idioms::LockAction;

impl<'p> Walk<'_, 'p> {
    /// A macro: its unconditional lock operations, with the arguments put in.
    pub(super) fn macro_call(
        &mut self,
        position: u32,
        event: Event,
        inner: &View<'p>,
        state: State,
    ) -> Vec<State> {
        let mut effects = Vec::new();
        let body = inner.unit.events_of(inner.function);
        let args = self.argument_values(&state, event.expr);
        for own in body {
            if own.kind == Kind::Call
                && is_unconditional(body, own)
                && let Some(effect) = self.macro_effect(inner, own.expr, event.expr, &args, &state)
            {
                effects.push(effect);
            }
        }
        if let [only] = effects.as_slice()
            && !body.iter().any(|own| own.kind == Kind::If)
        {
            let only = *only;
            return self.guarded(position, event, state, &mut |walk, state| {
                walk.one_effect(position, event, only, state)
            });
        }
        let is_conditional = body.iter().any(|own| own.kind == Kind::If);
        let mut state = state;
        for effect in effects {
            self.note(position, effect.lock, effect.action);
            match effect.action {
                LockAction::Acquire => {
                    self.acquire(position, effect.lock, effect.instance, &mut state);
                    if is_conditional {
                        self.doubt(effect.lock, &mut state);
                    }
                }
                LockAction::Release => {
                    self.release(position, effect.lock, effect.instance, &mut state);
                }
                _ => {}
            }
        }
        if self.may_release_inside(inner) {
            state.held.iter_mut().for_each(|held| held.unsure = true);
            self.refresh(&mut state);
        }
        self.finish(position, event, &mut state);
        vec![state]
    }

    fn macro_effect(
        &mut self,
        inner: &View<'_>,
        id: E,
        call: E,
        args: &[Value],
        state: &State,
    ) -> Option<Effect> {
        let (name, given) = inner.unit.named_call(id)?;
        let found = inner.program.idiom(inner.name(name)).lock?;
        let (key, instance) = match found.argument {
            None => {
                let family = u32::from(inner.program.table.canonical(found.family));
                let instance = self.eval.values.add(Node::Result(u32::MAX, family));
                (class_key(inner.program, found.family), instance)
            }
            Some(number) => {
                let given = *given.get(number)?;
                let view = self.view();
                let Expr::Call { args: outer, .. } = view.expr(call) else {
                    return None;
                };
                let defs: Vec<(Sym, E)> = state
                    .locals
                    .iter()
                    .filter(|slot| slot.source != E::NONE)
                    .map(|slot| (slot.local, slot.source))
                    .collect();
                let outer = view.unit.exprs.parts(outer);
                let key = substitute(inner, &view, &defs, outer, given);
                (key, self.macro_value(inner, given, args, 0))
            }
        };
        Some(Effect {
            action: found.action,
            lock: self.locks.lock(inner.program, key, found.family),
            instance,
        })
    }

    /// The value of an expression of a macro, with the arguments put in.
    fn macro_value(&mut self, inner: &View<'_>, expr: E, args: &[Value], depth: u32) -> Value {
        let node = match inner.expr(inner.unit.exprs.peel(expr)) {
            Expr::Name(name) => match inner.param(name).and_then(|number| args.get(number)) {
                Some(value) => return *value,
                None => Node::Global(inner.name(name)),
            },
            Expr::Unary { op: code, of } if code == op("&") && depth < 8 => {
                return self.macro_value(inner, of, args, depth + 1);
            }
            Expr::Member { base, field, arrow } if depth < 8 => {
                let base_value = self.macro_value(inner, base, args, depth + 1);
                // A pointer inside a pointer is loaded first.
                let is_path =
                    matches!(inner.expr(inner.unit.exprs.peel(base)), Expr::Member { .. });
                let base = if arrow && is_path {
                    self.eval.values.add(Node::Load(base_value))
                } else {
                    base_value
                };
                Node::Field(base, inner.name(field))
            }
            _ => Node::Pure(
                Name(0),
                args.first()
                    .copied()
                    .unwrap_or_else(|| self.eval.values.add(Node::Number(0))),
            ),
        };
        self.eval.values.add(node)
    }
}
