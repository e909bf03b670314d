//! Small functions that only hand a work item or timer of their caller on to a function of a known class count as
//! functions of that class themselves: `sk_stop_timer_sync(sk, &x->timer)` waits for the timer's handler.

use rustc_hash::FxHashMap;

use super::keys::View;
use super::program::{FnId, Name, Program};
use crate::front::ast::Expr;
use crate::front::event::{Kind, TOP};
use crate::idioms::Idiom;

/// What is handed on: who starts an item, who ends it, and who waits for its handler.
const CLASSES: &[&str] = &[
    "arms",
    "cancels",
    "ends_item",
    "stops_item",
    "waits_for_handler",
];
/// Events of a function that still counts as a wrapper.
const EVENTS_MAX: usize = 14;

/// The names of wrappers in `program`, with what is known of them.
pub(crate) fn wrappers(program: &Program<'_>) -> Vec<(Name, Idiom)> {
    let bit = |class: &&str| program.table.class(class).unwrap_or(0);
    let wanted = CLASSES.iter().map(bit).fold(0, |all, bit| all | bit);
    let items = program.table.class("item_types").unwrap_or(0);
    let mut found: FxHashMap<Name, u128> = FxHashMap::default();
    for id in program.function_ids() {
        let classes = handed_on(program, id, items) & wanted;
        if classes == 0 {
            continue;
        }
        let (unit, function) = program.function(id);
        let name = Name(unit.global(function.name));
        let is_only = program.by_name.get(&name).is_some_and(|all| all.len() == 1);
        if is_only && program.idiom(name).classes == 0 {
            found.insert(name, classes);
        }
    }
    let mut found: Vec<(Name, Idiom)> = found
        .into_iter()
        .map(|(name, classes)| {
            let mut idiom = program.idiom(name).clone();
            idiom.classes |= classes;
            (name, idiom)
        })
        .collect();
    found.sort_by_key(|(name, _)| *name);
    found
}

/// The classes of the functions that get an item which is a parameter of the function.
fn handed_on(program: &Program<'_>, id: FnId, items: u128) -> u128 {
    let view = View::new(program, id);
    let events = program.events(id);
    if view.function.from_macro || events.len() > EVENTS_MAX {
        return 0;
    }
    let mut classes = 0;
    for event in events {
        if event.kind != Kind::Call || event.parent != TOP {
            continue;
        }
        let Some((name, args)) = view.unit.named_call(event.expr) else {
            continue;
        };
        let idiom = program.idiom(view.name(name));
        // What gives a lock up while it waits is no mere wrapper.
        if idiom.lock.is_some() {
            return 0;
        }
        let own = idiom.classes;
        let is_item = |name| {
            let ty = view.local(name).map(|ty| program.types.canonical(ty));
            ty.is_some_and(|ty| program.idiom(ty.base).classes & items != 0)
        };
        let hands_on = own != 0
            && args.iter().any(|arg| {
                matches!(view.expr(view.unit.exprs.peel(*arg)), Expr::Name(name)
                    if view.param(name).is_some() && is_item(name))
            });
        if hands_on {
            classes |= own;
        }
    }
    classes
}
