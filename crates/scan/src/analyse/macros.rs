//! What an expression macro stands for: `#define INFO(x) ((x)->info)` has the type of the field.

use super::keys::View;
use super::program::Name;
use super::types::GlobalTy;
use crate::front::ast::{E, Expr};
use crate::front::lex::op;

/// How deep macros are followed into macros.
const DEPTH_MAX: u32 = 12;

impl View<'_> {
    /// The type of a call of an expression macro; nothing if the name is none.
    pub(super) fn macro_ty(&self, name: Name, args: &[E], depth: u32) -> Option<GlobalTy> {
        let given: Vec<GlobalTy> = args.iter().map(|arg| self.ty_at(*arg, depth + 1)).collect();
        self.expanded_ty(name, &given, depth)
    }

    fn expanded_ty(&self, name: Name, given: &[GlobalTy], depth: u32) -> Option<GlobalTy> {
        let id = self.program.resolve(name, self.unit_number)?;
        let inner = View::new(self.program, id);
        if depth > DEPTH_MAX || !inner.function.from_macro || inner.function.value == E::NONE {
            return None;
        }
        Some(inner.ty_given(inner.function.value, given, depth + 1))
    }

    /// The type of an expression of a macro whose parameters have the given types.
    fn ty_given(&self, id: E, given: &[GlobalTy], depth: u32) -> GlobalTy {
        if depth > DEPTH_MAX {
            return GlobalTy::default();
        }
        let inside = |of| self.ty_given(of, given, depth + 1);
        match self.expr(id) {
            Expr::Name(name) => match self.param(name) {
                Some(number) => given.get(number).copied().unwrap_or_default(),
                None => self.ty_at(id, depth),
            },
            Expr::Member { base, field, .. } => {
                let types = &self.program.types;
                let def = types.def(inside(base), self.program);
                types.field(def, self.name(field)).unwrap_or_default()
            }
            Expr::Index { base, .. } => inside(base).with_pointers(-1),
            Expr::Unary { op: code, of } if code == op("*") => inside(of).with_pointers(-1),
            Expr::Unary { op: code, of } if code == op("&") => inside(of).with_pointers(1),
            Expr::Call { .. } => {
                let Some((name, args)) = self.unit.named_call(id) else {
                    return GlobalTy::default();
                };
                let given: Vec<GlobalTy> = args.iter().map(|arg| inside(*arg)).collect();
                let expanded = self.expanded_ty(self.name(name), &given, depth + 1);
                expanded.unwrap_or_else(|| self.ty_at(id, depth))
            }
            _ => self.ty_at(id, depth),
        }
    }
}
