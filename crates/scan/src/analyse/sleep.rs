//! Which functions sleep whatever their caller asks for: not only under a condition on a parameter.

use super::calls::Calls;
use super::flow::Flows;
use super::keys::View;
use super::locks::LockSet;
use super::program::{EventId, FnId, Program};
use crate::front::ast::{E, Expr};
use crate::front::event::{Event, Kind, TOP};
use crate::front::lex::{at, index};

/// For each function the event that sleeps or calls the one that does.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    by: Vec<Option<u32>>,
}

/// Calls between a function and the sleep that are followed.
const DEPTH_MAX: usize = 4;

impl Sleepers {
    pub(crate) fn new(program: &Program<'_>, calls: &Calls, flows: &Flows) -> Self {
        // A function that first releases a lock of its caller may sleep after it.
        let keeps_locks = |id: FnId, event: u32| flows.at(id, event).freed_may == LockSet::EMPTY;
        let mut sleepers = Self {
            by: vec![None; program.functions.len()],
        };
        let mut found: Vec<FnId> = Vec::new();
        for id in program.function_ids() {
            let view = View::new(program, id);
            let position = program
                .events(id)
                .iter()
                .enumerate()
                .position(|(number, event)| {
                    event.kind == Kind::Call
                        && is_sleeping_call(&view, event.expr)
                        && is_on_callers_way(&view, program.events(id), event)
                        && keeps_locks(id, index(number))
                });
            // What a macro or an inline stub does depends on the configuration.
            if let Some(position) = position
                && !view.function.from_macro
            {
                sleepers.by[at(id.0)] = Some(index(position));
                found.push(id);
            }
        }
        for _ in 0..DEPTH_MAX {
            let mut next = Vec::new();
            for callee in found {
                for caller in &calls.callers[at(callee.0)] {
                    if sleepers.by[at(caller.0)].is_some() {
                        continue;
                    }
                    let events = program.events(*caller);
                    let view = View::new(program, *caller);
                    let call = calls.of(*caller).iter().find(|call| {
                        call.callee == callee
                            && !call.indirect
                            && is_on_callers_way(&view, events, &events[at(call.event)])
                            && keeps_locks(*caller, call.event)
                    });
                    if let Some(call) = call {
                        sleepers.by[at(caller.0)] = Some(call.event);
                        next.push(*caller);
                    }
                }
            }
            found = next;
        }
        sleepers
    }

    /// Whether the call at `place` sleeps, directly or on the straight way of what it calls.
    pub(crate) fn sleeps(&self, program: &Program<'_>, calls: &Calls, place: EventId) -> bool {
        let view = View::new(program, place.function);
        let event = program.event(place);
        let never = program.table.class("never_returns").unwrap_or(0);
        let comes_back = view
            .unit
            .named_call(event.expr)
            .is_none_or(|(name, _)| program.idiom(view.name(name)).classes & never == 0);
        if !comes_back {
            return false;
        }
        is_sleeping_call(&view, event.expr)
            || calls
                .callees_at(place.function, place.event)
                .any(|call| !call.indirect && self.by[at(call.callee.0)].is_some())
    }

    /// The calls from `place` down to the sleep.
    pub(crate) fn way(&self, calls: &Calls, place: EventId) -> Vec<EventId> {
        let mut way = vec![place];
        while let Some(last) = way.last().copied()
            && way.len() <= DEPTH_MAX + 1
        {
            let next = calls
                .callees_at(last.function, last.event)
                .find(|call| !call.indirect && self.by[at(call.callee.0)].is_some());
            let Some(next) = next else { break };
            let Some(event) = self.by[at(next.callee.0)] else {
                break;
            };
            way.push(EventId {
                function: next.callee,
                event,
            });
        }
        way
    }
}

/// Whether the event is reached whatever the caller asks for: only loops and tests of the function's own data
/// stand around it, none of a parameter or of what a function says.
fn is_on_callers_way(view: &View<'_>, events: &[Event], event: &Event) -> bool {
    let mut parent = event.parent;
    while parent != TOP {
        let head = events[at(parent)];
        let is_open = match head.kind {
            Kind::Loop | Kind::Scope => true,
            Kind::If => is_own_test(view, head.expr, 0),
            _ => false,
        };
        if !is_open {
            return false;
        }
        parent = head.parent;
    }
    true
}

/// A condition on fields only.
fn is_own_test(view: &View<'_>, expr: E, depth: u32) -> bool {
    if depth > 8 {
        return false;
    }
    match view.expr(expr) {
        Expr::Member { .. } | Expr::Number(_) => true,
        Expr::Name(name) => !view.is_local(name),
        Expr::Call { .. } => view.unit.named_call(expr).is_some_and(|(name, _)| {
            matches!(
                view.program.names.bytes(view.name(name)),
                b"likely" | b"unlikely"
            ) && own_parts(view, expr, depth)
        }),
        _ => own_parts(view, expr, depth),
    }
}

fn own_parts(view: &View<'_>, expr: E, depth: u32) -> bool {
    let mut all_own = true;
    view.each_part(expr, |part| {
        all_own = all_own && is_own_test(view, part, depth + 1);
    });
    all_own
}

/// A call that sleeps by itself: by name, or because its allocation flags allow it.
pub(crate) fn is_sleeping_call(view: &View<'_>, call: E) -> bool {
    let Some((name, args)) = view.unit.named_call(call) else {
        return false;
    };
    let table = view.program.table;
    let classes = view.program.idiom(view.name(name)).classes;
    if classes & table.class("never_returns").unwrap_or(0) != 0 {
        return false;
    }
    if classes & table.class("sleeps").unwrap_or(0) != 0 {
        return true;
    }
    // Flags are given for an allocation that is made at once, unless they are only kept.
    let text = view.program.names.bytes(view.name(name));
    let keeps = [&b"init"[..], b"set", b"create", b"INIT", b"SET", b"gfp"]
        .iter()
        .any(|part| text.windows(part.len()).any(|window| window == *part));
    (classes & table.class("gfp_calls").unwrap_or(0) != 0 || !keeps)
        && args.iter().any(|arg| is_sleeping_flag(view, *arg))
}

fn is_sleeping_flag(view: &View<'_>, arg: E) -> bool {
    let Expr::Name(name) = view.expr(view.unit.exprs.peel(arg)) else {
        return false;
    };
    let wanted = view.program.table.class("sleeping_gfp").unwrap_or(0);
    view.program.idiom(view.name(name)).classes & wanted != 0
}
