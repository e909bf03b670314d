//! Facts about single statements that conditions ask for.

use super::Bound;
use super::conditions::Ask;
use crate::analyse::cfg::Cfg;
use crate::analyse::keys::View;
use crate::analyse::program::EventId;
use crate::front::ast::{E, Expr};
use crate::front::event::{Kind, TOP, UPDATE};
use crate::front::lex::{Sym, at, index, op};
use crate::idioms::LockAction;

impl Ask<'_, '_, '_> {
    pub(super) fn error_exit(&self) -> Option<bool> {
        let (place, event) = (self.place(0)?, self.event(0)?);
        let view = View::new(self.engine.program, place.function);
        Some(match view.expr(view.unit.exprs.peel(event.expr)) {
            Expr::Unary { op: code, of } => {
                code == op("-") && matches!(view.expr(of), Expr::Name(_) | Expr::Number(_))
            }
            Expr::Call { .. } => view.unit.named_call(event.expr).is_some_and(|(name, _)| {
                self.engine
                    .program
                    .names
                    .bytes(view.name(name))
                    .starts_with(b"ERR_")
            }),
            Expr::Name(name) => {
                let text = self.engine.program.names.bytes(view.name(name));
                text == b"NULL" || [&b"err"[..], b"error"].contains(&text)
            }
            _ => false,
        })
    }

    pub(super) fn returns_holding(&self) -> Option<bool> {
        let place = self.place(0)?;
        let Bound::Lock { lock, .. } = self.bound(1)? else {
            return Some(false);
        };
        let state = self.engine.flows.at(place.function, place.event);
        let locks = &self.engine.flows.locks;
        // A function that gives its caller's lock away for a while must take it back.
        let is_callers = locks
            .members(state.freed_may)
            .iter()
            .any(|freed| freed.is_same_object(lock));
        let held = locks.members(state.must);
        Some(
            !is_callers
                && held
                    .iter()
                    .any(|other| other.is_same_object(lock) && !other.is_scoped()),
        )
    }

    /// Some other return leaves the lock released, although it was taken before.
    pub(super) fn released_elsewhere(&self) -> Option<bool> {
        let place = self.place(0)?;
        let Bound::Lock { lock, place: taken } = self.bound(1)? else {
            return Some(false);
        };
        let events = self.engine.program.events(place.function);
        let cfg = Cfg::new(events);
        let locks = &self.engine.flows.locks;
        let mut released = 0;
        let mut holding = 0;
        for (position, event) in events.iter().enumerate() {
            let position = index(position);
            if event.kind != Kind::Return || !cfg.reaches(taken.event, position) {
                continue;
            }
            let state = self.engine.flows.at(place.function, position);
            let may = locks.members(state.may);
            if may.iter().any(|other| other.is_same_object(lock)) {
                holding += 1;
            } else {
                released += 1;
            }
        }
        released += u32::from(self.ends_released(place, lock));
        Some(released > 0 && holding <= released && !self.may_be_freed(&cfg, taken, place, lock))
    }

    /// Whether control that runs off the end of the function has released the lock.
    fn ends_released(&self, place: EventId, lock: crate::analyse::locks::Lock) -> bool {
        let events = self.engine.program.events(place.function);
        let Some(last) = events.len().checked_sub(1).map(index) else {
            return false;
        };
        if events[at(last)].kind == Kind::Return {
            return false;
        }
        let flows = &self.engine.flows;
        let state = flows.at(place.function, last);
        let may = flows.locks.members(state.may);
        let releases = flows.operations_at(place.function, last).any(|operation| {
            operation.action == LockAction::Release && operation.lock.is_same_object(lock)
        });
        releases || !may.iter().any(|other| other.is_same_object(lock))
    }

    /// Whether a call on the way may release the lock under some condition.
    fn may_be_freed(
        &self,
        cfg: &Cfg,
        taken: EventId,
        end: EventId,
        lock: crate::analyse::locks::Lock,
    ) -> bool {
        let flows = &self.engine.flows;
        self.engine.calls.of(taken.function).iter().any(|call| {
            let freed = flows.may_free[at(call.callee.0)];
            cfg.reaches(taken.event, call.event)
                && cfg.reaches(call.event, end.event)
                && flows
                    .locks
                    .members(freed)
                    .iter()
                    .any(|other| other.is_same_object(lock))
        })
    }

    pub(super) fn published(&self) -> Option<bool> {
        let (place, (object_place, object)) = (self.place(0)?, self.expr(1)?);
        let view = View::new(self.engine.program, place.function);
        let root = view.root(object)?;
        let flows = &self.engine.flows;
        let call = self.event(0)?.expr;
        let (_, args) = view.unit.named_call(call)?;
        let written = self.engine.program.event(object_place);
        if E(written.aux) == call {
            return Some(false);
        }
        let stores = self
            .engine
            .program
            .table
            .class("stores_pointer")
            .unwrap_or(0);
        let args = if self.engine.classes_at(place) & stores != 0 {
            &args[1.min(args.len())..]
        } else {
            args
        };
        let is_argument = args.iter().any(|arg| view.root(*arg) == Some(root));
        Some(
            is_argument
                && view.is_direct(object)
                && flows.is_fresh(place.function, place.event, root)
                && !flows.is_fresh(place.function, object_place.event, root),
        )
    }

    pub(super) fn dereferenced(&self) -> Option<bool> {
        let (place, event) = (self.place(0)?, self.event(0)?);
        let events = self.engine.program.events(place.function);
        let view = View::new(self.engine.program, place.function);
        let next = events[at(place.event) + 1..].iter().take(12);
        Some(next.into_iter().any(|later| match view.expr(later.expr) {
            Expr::Member { base, arrow, .. } => arrow && base == event.expr,
            Expr::Unary { op: code, of } => code == op("*") && of == event.expr,
            Expr::Call { callee, .. } => callee == event.expr,
            _ => false,
        }))
    }

    pub(super) fn followed_in(&self) -> Option<bool> {
        let ((place, condition), (other, pointer)) = (self.expr(0)?, self.expr(1)?);
        let view = View::new(self.engine.program, place.function);
        Some(
            place.function == other.function
                && self.tests_and_follows(&view, place, condition, pointer, 0),
        )
    }

    /// `p && .. p->x` or `!p || .. p->x`, at any level.
    fn tests_and_follows(
        &self,
        view: &View<'_>,
        place: EventId,
        condition: E,
        pointer: E,
        depth: u32,
    ) -> bool {
        if depth > 8 {
            return false;
        }
        let Expr::Binary {
            op: code,
            left,
            right,
        } = view.expr(condition)
        else {
            return false;
        };
        if code != op("&&") && code != op("||") {
            return false;
        }
        let is_test = |side: E| self.engine.stripped(place, side) == pointer;
        let tests = is_test(left)
            || matches!(view.expr(left), Expr::Binary { op: inner, left: first, right: last }
                if inner == code && (is_test(first) || is_test(last)));
        (tests && follows(view, right, pointer, 0))
            || self.tests_and_follows(view, place, left, pointer, depth + 1)
            || self.tests_and_follows(view, place, right, pointer, depth + 1)
    }

    pub(super) fn found_by_rcu(&self) -> Option<bool> {
        let (place, expr) = self.expr(0)?;
        let view = View::new(self.engine.program, place.function);
        let root = view.root(expr)?;
        Some(self.is_set_under_rcu(&view, place, root, 0))
    }

    /// Whether the local was last set by an RCU iteration, `rcu_dereference`, or from such a local.
    fn is_set_under_rcu(&self, view: &View<'_>, place: EventId, local: Sym, depth: u32) -> bool {
        if depth > 2 || view.param(local).is_some() {
            return false;
        }
        let events = self.engine.program.events(place.function);
        let read = self.engine.program.table.class("rcu_read").unwrap_or(0);
        for event in events[..at(place.event)].iter().rev() {
            if event.kind == Kind::Loop
                && let Some((name, [first, ..])) = view.unit.named_call(event.expr)
                && view.root(*first) == Some(local)
            {
                let text = view.program.names.bytes(view.name(name));
                return text.windows(4).any(|part| part == b"_rcu");
            }
            if event.kind != Kind::Write || view.expr(event.expr) != Expr::Name(local) {
                continue;
            }
            let value = view.unit.exprs.peel(E(event.aux));
            match view.expr(value) {
                Expr::Name(from) if view.is_local(from) => {
                    return self.is_set_under_rcu(view, place, from, depth + 1);
                }
                // `x = NULL` is a start, not a look-up.
                Expr::Name(_) | Expr::Number(_) => {}
                _ => return contains_call(view, value, read, 0) || self.finds_by_rcu(view, value),
            }
        }
        false
    }

    /// Whether the called function of the program searches by RCU and leaves protection to its caller.
    fn finds_by_rcu(&self, view: &View<'_>, call: E) -> bool {
        let Some((name, _)) = view.unit.named_call(call) else {
            return false;
        };
        let program = view.program;
        let Some(callee) = program.resolve(view.name(name), view.unit_number) else {
            return false;
        };
        let inner = View::new(program, callee);
        let read = program.table.class("rcu_read").unwrap_or(0);
        let takes = program.table.class("counter_get").unwrap_or(0)
            | program.table.class("refcount_get_unless_zero").unwrap_or(0);
        self.engine.calls.classes[at(callee.0)] & takes == 0
            && program.events(callee).iter().any(|event| {
                matches!(event.kind, Kind::Loop | Kind::Call)
                    && inner.unit.named_call(event.expr).is_some_and(|(name, _)| {
                        let name = inner.name(name);
                        program.names.bytes(name).ends_with(b"_rcu")
                            || program.idiom(name).classes & read != 0
                    })
            })
    }

    pub(super) fn sets_up(&self) -> Option<bool> {
        const PARTS: &[&str] = &[
            "open", "start", "enable", "activate", "_up", "begin", "config", "restart",
        ];
        let (place, event) = (self.place(0)?, self.event(0)?);
        let name = self
            .engine
            .program
            .function_name(place.function)
            .to_lowercase();
        Some(event.flags & UPDATE == 0 && PARTS.iter().any(|part| name.contains(part)))
    }

    pub(super) fn lock_free(&self) -> Option<bool> {
        let place = self.place(0)?;
        let engine = self.engine;
        let table = engine.program.table;
        let retries = table.class("retries").unwrap_or(0) | table.class("seq_retry").unwrap_or(0);
        if engine.calls.classes[at(place.function.0)] & table.class("seq_retry").unwrap_or(0) != 0 {
            return Some(true);
        }
        let in_rcu = engine
            .held(place)
            .always
            .iter()
            .any(|lock| table.family(engine.flows.locks.family(*lock)).rcu);
        if in_rcu {
            return Some(true);
        }
        let events = engine.program.events(place.function);
        let mut here = place.event;
        while here != TOP {
            let event = events[at(here)];
            if event.kind == Kind::Loop {
                let retried = (here..event.end).any(|inner| {
                    events[at(inner)].kind == Kind::Call
                        && engine.classes_at(EventId {
                            function: place.function,
                            event: inner,
                        }) & retries
                            != 0
                });
                if retried {
                    return Some(true);
                }
            }
            here = event.parent;
        }
        Some(false)
    }

    pub(super) fn error_path(&self) -> Option<bool> {
        let place = self.place(0)?;
        let view = View::new(self.engine.program, place.function);
        let is_tested = self
            .ancestors(0)?
            .iter()
            .any(|event| event.kind == Kind::If && mentions_error(&view, event.expr, 0));
        Some(is_tested || self.stands_behind_error_label(&view, place))
    }

    /// Whether the statement is reached only by jumps to a label whose name says that something failed.
    fn stands_behind_error_label(&self, view: &View<'_>, place: EventId) -> bool {
        const PARTS: &[&[u8]] = &[
            b"err", b"fail", b"bad", b"free", b"unwind", b"cleanup", b"undo",
        ];
        let events = &self.engine.program.events(place.function)[..at(place.event)];
        let is_end = |event: &crate::front::event::Event| {
            event.parent == TOP && matches!(event.kind, Kind::Return | Kind::Goto)
        };
        let Some(end) = events.iter().rposition(is_end) else {
            return false;
        };
        let label = events.get(end + 1).filter(|next| next.kind == Kind::Label);
        label.is_some_and(|label| {
            let name = view.program.names.bytes(view.name(Sym(label.aux)));
            let has = |part: &&[u8]| name.windows(part.len()).any(|window| window == *part);
            PARTS.iter().any(has)
        })
    }

    pub(super) fn negated(&self) -> Option<bool> {
        let (place, inner) = (self.place(0)?, self.place(1)?);
        let event = self.event(0)?;
        let view = View::new(self.engine.program, place.function);
        let is_negative = match view.expr(event.expr) {
            Expr::Unary { op: code, .. } => code == op("!"),
            Expr::Binary {
                op: code, right, ..
            } => code == op("==") && self.engine.is_nothing(&view, right),
            _ => false,
        };
        let in_then = (place.event + 1..event.aux).contains(&inner.event);
        Some(is_negative == in_then)
    }

    pub(super) fn diagnostic(&self) -> Option<bool> {
        let (place, event) = (self.place(0)?, self.event(0)?);
        let wanted = self.engine.program.table.class("diagnostics").unwrap_or(0);
        let view = View::new(self.engine.program, place.function);
        let events = self.engine.program.events(place.function);
        if matches!(event.kind, Kind::If | Kind::Loop) {
            return Some(contains_call(&view, event.expr, wanted, 0));
        }
        for (offset, later) in events[at(place.event)..].iter().take(24).enumerate() {
            if later.kind != Kind::Call {
                continue;
            }
            let here = EventId {
                function: place.function,
                event: place.event + index(offset),
            };
            if self.engine.classes_at(here) & wanted != 0
                && contains(&view, later.expr, event.expr, 0)
            {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// Whether `expr` contains `pointer->..` or `*pointer`.
fn follows(view: &View<'_>, expr: E, pointer: E, depth: u32) -> bool {
    let here = match view.expr(expr) {
        Expr::Member { base, arrow, .. } => arrow && view.unit.exprs.peel(base) == pointer,
        Expr::Unary { op: code, of } => code == op("*") && of == pointer,
        _ => false,
    };
    here || (depth < 16
        && children(view, expr)
            .into_iter()
            .any(|child| follows(view, child, pointer, depth + 1)))
}

/// Whether `expr` compares for order somewhere.
pub(super) fn compares(view: &View<'_>, expr: E, depth: u32) -> bool {
    let here = match view.expr(expr) {
        Expr::Binary { op: code, .. } => [op("<"), op("<="), op(">"), op(">=")].contains(&code),
        _ => false,
    };
    here || (depth < 8
        && children(view, expr)
            .into_iter()
            .any(|child| compares(view, child, depth + 1)))
}

fn mentions_error(view: &View<'_>, expr: E, depth: u32) -> bool {
    if depth > 8 {
        return false;
    }
    let is_error = view.unit.named_call(expr).is_some_and(|(name, _)| {
        let text = view.program.names.bytes(view.name(name));
        text.starts_with(b"IS_ERR") || text.starts_with(b"PTR_ERR")
    });
    is_error
        || children(view, expr)
            .into_iter()
            .any(|child| mentions_error(view, child, depth + 1))
}

pub(super) fn contains_call(view: &View<'_>, expr: E, wanted: u128, depth: u32) -> bool {
    if depth > 16 {
        return false;
    }
    let inner = |id| contains_call(view, id, wanted, depth + 1);
    if let Some((name, _)) = view.unit.named_call(expr)
        && view.program.idiom(view.name(name)).classes & wanted != 0
    {
        return true;
    }
    children(view, expr).into_iter().any(inner)
}

fn contains(view: &View<'_>, expr: E, wanted: E, depth: u32) -> bool {
    expr == wanted
        || (depth < 16
            && children(view, expr)
                .into_iter()
                .any(|child| contains(view, child, wanted, depth + 1)))
}

/// The direct parts of an expression.
pub(super) fn children(view: &View<'_>, expr: E) -> Vec<E> {
    let mut parts = Vec::new();
    view.each_part(expr, |part| parts.push(part));
    parts
}
