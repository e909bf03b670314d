//! The steps of a run as columns, small enough for a hundred thousand of them in one page.
//!
//! A column holds what all steps have of one thing, in order. Words that recur (sentences, places, objects, addresses,
//! values, locks) stand once in a list of the page, and the columns hold their numbers. Counts that grow with time are
//! differences: of the instruction to the step before, of the clock to the last step of the same context, where nothing
//! stands if the context only counted itself on. `report.js` makes steps of it again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::action::sentence;
use crate::evidence::{self, Edge, Held, Step};
use crate::finding::Finding;

/// Words that stand once and are named by their number.
#[derive(Debug, Default)]
pub(super) struct Words {
    numbers: BTreeMap<String, usize>,
    all: Vec<Value>,
}

impl Words {
    fn number(&mut self, word: &Value) -> usize {
        let key = word.to_string();
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.all.len();
        self.all.push(word.clone());
        self.numbers.insert(key, number);
        number
    }

    fn optional(&mut self, word: Option<Value>) -> Value {
        word.map_or(Value::Null, |word| json!(self.number(&word)))
    }

    pub(super) fn into_json(self) -> Value {
        Value::Array(self.all)
    }
}

/// The columns of `steps`, whose numbers begin at `from` in the finding.
pub(super) fn columns(finding: &Finding, steps: &[Step], words: &mut Words) -> Value {
    let mut columns: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut put = |name, value| columns.entry(name).or_default().push(value);
    let mut clocks: BTreeMap<usize, &[u64]> = BTreeMap::new();
    let mut last_global = 0;
    for step in steps {
        let shown = |value: Option<evidence::Value>| value.map(|value| json!(value.shown()));
        let name = |held: &Held| held.name.clone();
        let locks = step.locks.known();
        let locks = locks.map(|held| json!(held.iter().map(name).collect::<Vec<_>>()));
        put("context", json!(step.context));
        put("text", json!(words.number(&json!(sentence(finding, step)))));
        put("end", json!(u8::from(!step.action.is_passing())));
        put("place", json!(words.number(&json!(step.place))));
        put(
            "object",
            words.optional(step.object.as_ref().map(|object| json!(object))),
        );
        put(
            "address",
            words.optional(step.address.map(|address| json!(address))),
        );
        put("before", words.optional(shown(step.before)));
        put("after", words.optional(shown(step.after)));
        put("locks", words.optional(locks));
        let global = step.global_step.map(|global| {
            let since = i128::from(global) - i128::from(last_global);
            last_global = global;
            json!(i64::try_from(since).unwrap_or(i64::MAX))
        });
        put("global_step", global.unwrap_or(Value::Null));
        put("repeats", json!(step.repeats));
        let former = clocks.insert(step.context, &step.clock).unwrap_or_default();
        put("clock", ticked(step, former, finding.contexts.len()));
        put("stack", json!(step.stack));
    }
    json!({ "count": steps.len(), "columns": columns })
}

/// The clock of a step; nothing if it is that of the context's step before, counted on by one. Before its first step, a
/// context has counted nothing.
fn ticked(step: &Step, former: &[u64], contexts: usize) -> Value {
    let counted_on = |(index, count): (usize, &u64)| {
        let more = u64::from(index == step.context);
        former.get(index).copied().unwrap_or(0) + more == *count
    };
    let is_next = step.clock.len() == contexts && step.clock.iter().enumerate().all(counted_on);
    if is_next {
        Value::Null
    } else {
        json!(step.clock)
    }
}

/// Edges as triples, with the numbers of their steps counted from `from`; those of steps before it are left out.
pub(super) fn edges(edges: &[Edge], from: usize) -> Vec<Value> {
    let edges = edges.iter().filter_map(|edge| {
        let (first, last) = (edge.from.checked_sub(from)?, edge.to.checked_sub(from)?);
        Some(json!([edge.kind, first, last]))
    });
    edges.collect()
}
