//! From expressions to values, and what a condition tells about them.

use super::state::State;
use super::value::{ANY, NEGATIVE, Node, POSITIVE, Signs, Value, Values, ZERO};
use crate::analyse::keys::View;
use crate::analyse::program::Name;
use crate::front::ast::{E, Expr};
use crate::front::lex::{Sym, op};

/// How deep expressions are followed.
const DEPTH_MAX: u32 = 20;
/// Paths that one condition may fork into.
const FORKS_MAX: usize = 12;

/// Calls that hand a value through, or tell its sign.
enum Hint {
    /// The value of this argument.
    Through(usize),
    /// Whether the first argument is of one of these signs.
    Tests(Signs),
}

/// Evaluates in one function.
#[derive(Debug)]
pub(super) struct Eval<'p> {
    pub(super) view: View<'p>,
    pub(super) values: Values,
}

impl<'p> Eval<'p> {
    pub(super) fn new(view: View<'p>) -> Self {
        Self {
            view,
            values: Values::default(),
        }
    }

    fn hint(&self, name: Name) -> Option<Hint> {
        Some(match self.view.program.names.bytes(name) {
            b"likely" | b"unlikely" | b"READ_ONCE" | b"WARN_ON" | b"WARN_ON_ONCE" | b"WARN"
            | b"WARN_ONCE" | b"GEM_WARN_ON" | b"snd_BUG_ON" | b"PTR_ERR" | b"ERR_PTR"
            | b"ERR_CAST" | b"PTR_ERR_OR_ZERO" | b"__builtin_expect" | b"rcu_dereference"
            | b"data_race" => Hint::Through(0),
            b"drm_WARN_ON" | b"drm_WARN_ON_ONCE" | b"drm_WARN" | b"drm_WARN_ONCE"
            | b"dev_WARN_ONCE" | b"dev_WARN" | b"netdev_WARN" | b"XFS_IS_CORRUPT"
            | b"WARN_RATELIMIT" => Hint::Through(1),
            b"IS_ERR" | b"IS_ERR_VALUE" => Hint::Tests(NEGATIVE),
            b"IS_ERR_OR_NULL" => Hint::Tests(NEGATIVE | ZERO),
            _ => return None,
        })
    }

    /// The value of `expr` on the path.
    pub(super) fn value(&mut self, state: &State, expr: E) -> Value {
        self.value_at(state, expr, 0)
    }

    fn value_at(&mut self, state: &State, expr: E, depth: u32) -> Value {
        if depth > DEPTH_MAX {
            return self.values.add(Node::Other(expr));
        }
        match self.view.expr(expr) {
            Expr::Name(name) => self.name(state, name),
            Expr::Number(text) => {
                let node = self.number(text).map_or(Node::Other(expr), Node::Number);
                self.values.add(node)
            }
            Expr::Cast { of, .. } => self.value_at(state, of, depth + 1),
            Expr::Assign { to, .. } => self.value_at(state, to, depth + 1),
            Expr::Unary { op: code, of } if code == op("&") => {
                self.address_at(state, of, depth + 1)
            }
            Expr::Unary { op: code, of } if code == op("-") => {
                let of = self.value_at(state, of, depth + 1);
                self.values.add(Node::Negative(of))
            }
            Expr::Member { .. } | Expr::Index { .. } | Expr::Unary { .. } => {
                if let Expr::Unary { op: code, .. } = self.view.expr(expr)
                    && code != op("*")
                {
                    return self.values.add(Node::Other(expr));
                }
                let address = self.address_at(state, expr, depth + 1);
                state
                    .stored(address)
                    .unwrap_or_else(|| self.values.add(Node::Load(address)))
            }
            Expr::Binary {
                op: code,
                left,
                right,
            } => {
                let left = self.value_at(state, left, depth + 1);
                let right = self.value_at(state, right, depth + 1);
                self.values.add(Node::Binary(code, left, right))
            }
            Expr::Call { .. } => self.call(state, expr, depth),
            Expr::Comma { parts } => {
                let last = self.view.unit.exprs.parts(parts).last().copied();
                match last {
                    Some(last) => self.value_at(state, last, depth + 1),
                    None => self.values.add(Node::Other(expr)),
                }
            }
            _ => self.values.add(Node::Other(expr)),
        }
    }

    fn name(&mut self, state: &State, name: Sym) -> Value {
        if let Some(slot) = state.local(name) {
            return slot.value;
        }
        if let Some(number) = self.view.param(name) {
            return self
                .values
                .add(Node::Param(crate::front::lex::index(number)));
        }
        if self.view.is_local(name) {
            return self.values.add(Node::Unset(name));
        }
        let global = self.view.name(name);
        let text = self.view.program.names.bytes(global);
        let node = match text {
            b"true" => Node::Number(1),
            b"false" | b"NULL" => Node::Number(0),
            _ if !text.iter().any(u8::is_ascii_lowercase) => Node::Constant(global),
            _ => {
                let address = self.values.add(Node::Global(global));
                if let Some(stored) = state.stored(address) {
                    return stored;
                }
                Node::Load(address)
            }
        };
        self.values.add(node)
    }

    fn number(&self, text: Sym) -> Option<i64> {
        let text = self.view.program.names.text(self.view.name(text));
        let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    fn call(&mut self, state: &State, call: E, depth: u32) -> Value {
        if let Some((name, args)) = self.view.unit.named_call(call)
            && let Some(first) = args.first().copied()
        {
            let global = self.view.name(name);
            match self.hint(global) {
                Some(Hint::Through(number)) => {
                    let given = args.get(number).copied().unwrap_or(first);
                    return self.value_at(state, given, depth + 1);
                }
                Some(Hint::Tests(_)) => {
                    let first = self.value_at(state, first, depth + 1);
                    return self.values.add(Node::Pure(global, first));
                }
                None => {}
            }
            if self.view.program.idiom(global).typed.is_some() {
                let first = self.value_at(state, first, depth + 1);
                return self.values.add(Node::Pure(global, first));
            }
        }
        state
            .result(call)
            .unwrap_or_else(|| self.values.add(Node::Other(call)))
    }

    /// The address of what `expr` names.
    pub(super) fn address(&mut self, state: &State, expr: E) -> Value {
        self.address_at(state, expr, 0)
    }

    fn address_at(&mut self, state: &State, expr: E, depth: u32) -> Value {
        if depth > DEPTH_MAX {
            return self.values.add(Node::Other(expr));
        }
        let node = match self.view.expr(expr) {
            Expr::Name(name) if self.view.is_local(name) => Node::Local(name),
            Expr::Name(name) => Node::Global(self.view.name(name)),
            Expr::Member { base, field, arrow } => {
                let base = if arrow {
                    self.value_at(state, base, depth + 1)
                } else {
                    self.address_at(state, base, depth + 1)
                };
                Node::Field(base, self.view.name(field))
            }
            Expr::Index { base, index } => {
                let base = self.value_at(state, base, depth + 1);
                let index = self.value_at(state, index, depth + 1);
                Node::Element(base, index)
            }
            Expr::Unary { op: code, of } if code == op("*") => {
                return self.value_at(state, of, depth + 1);
            }
            Expr::Cast { of, .. } => return self.address_at(state, of, depth + 1),
            _ => Node::Other(expr),
        };
        self.values.add(node)
    }

    /// What is known of the sign of a value.
    pub(super) fn signs(&self, state: &State, value: Value) -> Signs {
        let by_kind = match self.values.node(value) {
            Node::Number(number) => match number.signum() {
                -1 => NEGATIVE,
                0 => ZERO,
                _ => POSITIVE,
            },
            Node::Constant(name) if self.is_error_number(name) => POSITIVE,
            Node::Negative(of) => mirror(self.signs(state, of)),
            Node::Local(_) | Node::Global(_) => POSITIVE,
            Node::Field(..) => POSITIVE | NEGATIVE,
            _ => ANY,
        };
        by_kind & state.signs(value)
    }

    /// `EINVAL`: an `E` and only capitals and digits.
    fn is_error_number(&self, name: Name) -> bool {
        let text = self.view.program.names.bytes(name);
        text.len() > 2
            && text[0] == b'E'
            && text
                .iter()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    }

    /// The paths on which the condition is true, or is false.
    pub(super) fn assume(&mut self, state: State, expr: E, truth: bool) -> Vec<State> {
        let mut out = Vec::new();
        self.assume_at(state, expr, truth, &mut out, 0);
        out
    }

    fn assume_at(&mut self, state: State, expr: E, truth: bool, out: &mut Vec<State>, depth: u32) {
        if depth > DEPTH_MAX || out.len() >= FORKS_MAX {
            out.push(state);
            return;
        }
        match self.view.expr(expr) {
            Expr::None => out.push(state),
            Expr::Unary { op: code, of } if code == op("!") => {
                self.assume_at(state, of, !truth, out, depth + 1);
            }
            Expr::Cast { of, .. } => self.assume_at(state, of, truth, out, depth + 1),
            Expr::Binary {
                op: code,
                left,
                right,
            } if code == op("&&") || code == op("||") => {
                let both = (code == op("&&")) == truth;
                let mut first = Vec::new();
                self.assume_at(state.clone(), left, truth, &mut first, depth + 1);
                if both {
                    for state in first {
                        self.assume_at(state, right, truth, out, depth + 1);
                    }
                    return;
                }
                out.extend(first);
                let mut first = Vec::new();
                self.assume_at(state, left, !truth, &mut first, depth + 1);
                for state in first {
                    self.assume_at(state, right, truth, out, depth + 1);
                }
            }
            Expr::Binary {
                op: code,
                left,
                right,
            } if is_comparison(code) => {
                let mut state = state;
                if self.compare(&mut state, (code, left, right), truth) {
                    out.push(state);
                }
            }
            Expr::Call { .. } => self.assume_call(state, expr, truth, out, depth),
            _ => {
                let mut state = state;
                if self.is_truth_possible(&mut state, expr, truth) {
                    out.push(state);
                }
            }
        }
    }

    fn assume_call(
        &mut self,
        state: State,
        call: E,
        truth: bool,
        out: &mut Vec<State>,
        depth: u32,
    ) {
        let mut state = state;
        if let Some((name, args)) = self.view.unit.named_call(call)
            && let Some(first) = args.first().copied()
        {
            match self.hint(self.view.name(name)) {
                Some(Hint::Through(number)) => {
                    let given = args.get(number).copied().unwrap_or(first);
                    return self.assume_at(state, given, truth, out, depth + 1);
                }
                Some(Hint::Tests(signs)) => {
                    let value = self.value(&state, first);
                    let signs = if truth { signs } else { ANY & !signs };
                    if self.narrow(&mut state, value, signs, first) {
                        out.push(state);
                    }
                    return;
                }
                None => {}
            }
        }
        if self.is_truth_possible(&mut state, call, truth) {
            out.push(state);
        }
    }

    fn narrow(&mut self, state: &mut State, value: Value, signs: Signs, source: E) -> bool {
        self.signs(state, value) & signs != 0 && state.narrow(value, signs, source)
    }

    fn is_truth_possible(&mut self, state: &mut State, expr: E, truth: bool) -> bool {
        let value = self.value(state, expr);
        let signs = if truth { NEGATIVE | POSITIVE } else { ZERO };
        // A flag that was computed earlier tells about what it was computed from.
        if let Node::Pure(name, of) = self.values.node(value)
            && let Some(Hint::Tests(tested)) = self.hint(name)
        {
            let tested = if truth { tested } else { ANY & !tested };
            return self.narrow(state, of, tested, expr);
        }
        if let Node::Binary(code, left, right) = self.values.node(value)
            && is_comparison(code)
        {
            return self.compare_values(state, (code, left, right), expr, truth);
        }
        self.narrow(state, value, signs, expr)
    }

    fn compare(
        &mut self,
        state: &mut State,
        (code, left, right): (u32, E, E),
        truth: bool,
    ) -> bool {
        let (one, other) = (self.value(state, left), self.value(state, right));
        // What is kept in mind is the side that varies.
        let source = match self.values.node(one) {
            Node::Number(_) | Node::Constant(_) => right,
            _ => left,
        };
        self.compare_values(state, (code, one, other), source, truth)
    }

    fn compare_values(
        &mut self,
        state: &mut State,
        (code, left, right): (u32, Value, Value),
        source: E,
        truth: bool,
    ) -> bool {
        let (code, left, right) = match self.values.node(left) {
            Node::Number(_) | Node::Constant(_) => (swapped(code), right, left),
            _ => (code, left, right),
        };
        let code = if truth { code } else { opposite(code) };
        let equal = code == op("==");
        if (equal || code == op("!=")) && (left == right || self.values.differ(left, right)) {
            return equal == (left == right);
        }
        if let Node::Number(0) = self.values.node(right) {
            return self.narrow(state, left, signs_compared(code), source);
        }
        if equal {
            let signs = self.signs(state, right);
            if !self.narrow(state, left, signs, source) {
                return false;
            }
        }
        // One node for a comparison and its opposite.
        let (node, holds) = if equal || code == op("!=") {
            (Node::Binary(op("=="), left, right), equal)
        } else if code == op("<") || code == op(">=") {
            (Node::Binary(op("<"), left, right), code == op("<"))
        } else {
            (Node::Binary(op("<"), right, left), code == op(">"))
        };
        let whole = self.values.add(node);
        let signs = if holds { NEGATIVE | POSITIVE } else { ZERO };
        self.narrow(state, whole, signs, source)
    }

    /// The paths on which `expr` is `case`.
    pub(super) fn assume_case(&mut self, state: State, expr: E, case: E) -> Option<State> {
        let mut state = state;
        let (one, other) = (self.value(&state, expr), self.value(&state, case));
        self.compare_values(&mut state, (op("=="), one, other), expr, true)
            .then_some(state)
    }
}

/// Signs of what compares so with zero.
fn signs_compared(code: u32) -> Signs {
    if code == op("<") {
        NEGATIVE
    } else if code == op("<=") {
        NEGATIVE | ZERO
    } else if code == op(">") {
        POSITIVE
    } else if code == op(">=") {
        POSITIVE | ZERO
    } else if code == op("==") {
        ZERO
    } else {
        NEGATIVE | POSITIVE
    }
}

fn mirror(signs: Signs) -> Signs {
    let mut out = signs & ZERO;
    if signs & NEGATIVE != 0 {
        out |= POSITIVE;
    }
    if signs & POSITIVE != 0 {
        out |= NEGATIVE;
    }
    out
}

fn is_comparison(code: u32) -> bool {
    code == op("==")
        || code == op("!=")
        || code == op("<")
        || code == op("<=")
        || code == op(">")
        || code == op(">=")
}

/// The comparison with its sides exchanged.
fn swapped(code: u32) -> u32 {
    if code == op("<") {
        op(">")
    } else if code == op(">") {
        op("<")
    } else if code == op("<=") {
        op(">=")
    } else if code == op(">=") {
        op("<=")
    } else {
        code
    }
}

/// The comparison that holds when this one does not.
fn opposite(code: u32) -> u32 {
    if code == op("==") {
        op("!=")
    } else if code == op("!=") {
        op("==")
    } else if code == op("<") {
        op(">=")
    } else if code == op(">=") {
        op("<")
    } else if code == op(">") {
        op("<=")
    } else {
        op(">")
    }
}
