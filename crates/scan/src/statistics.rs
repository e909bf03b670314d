//! How a tree synchronises and how deep it calls: Tables 1 and 2 of the paper.

use crate::analyse::keys::View;
use crate::analyse::program::FnId;
use crate::front::event::Kind;
use crate::front::lex::at;
use crate::idioms::Start;
use crate::matcher::Engine;

/// The mechanisms of Table 1, in its order.
pub const MECHANISMS: [&str; 9] = [
    "atomic instruction",
    "condition variable",
    "memory barrier",
    "mutex",
    "read/write semaphore",
    "read/write spin lock",
    "semaphore",
    "spin lock",
    "thread operation",
];

/// What the tables say about one tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    pub lines: u64,
    /// Statements of each of [`MECHANISMS`].
    pub statements: [u64; 9],
    /// Call sequences from functions at which threads start to functions that call nothing.
    pub sequences: f64,
    pub longest: u64,
    pub average: f64,
}

pub(crate) fn statistics(engine: &Engine<'_>) -> Statistics {
    let mut statistics = Statistics::default();
    for id in engine.program.function_ids() {
        if engine.is_wanted(id) {
            count_statements(engine, id, &mut statistics.statements);
        }
    }
    let mut ways = Ways {
        engine,
        known: vec![None; engine.program.functions.len()],
        open: vec![false; engine.program.functions.len()],
    };
    let mut steps = 0.0;
    for id in engine.program.function_ids() {
        let starts = engine.contexts.of(id).iter().any(|context| {
            context.from.is_none() && !matches!(context.start, Start::Unknown | Start::Init)
        });
        if starts && engine.is_wanted(id) {
            let found = ways.of(id, 0);
            statistics.sequences += found.count;
            statistics.longest = statistics.longest.max(found.longest);
            steps += found.steps;
        }
    }
    if statistics.sequences > 0.0 {
        statistics.average = steps / statistics.sequences;
    }
    statistics
}

fn count_statements(engine: &Engine<'_>, id: FnId, counts: &mut [u64; 9]) {
    let view = View::new(engine.program, id);
    if view.function.from_macro {
        return;
    }
    for event in engine.program.events(id) {
        let name = (event.kind == Kind::Call)
            .then(|| view.unit.named_call(event.expr))
            .flatten();
        let Some((name, _)) = name else { continue };
        let name = view.name(name);
        let text = String::from_utf8_lossy(engine.program.names.bytes(name)).into_owned();
        let family = engine.program.idiom(name).lock.map(|lock| {
            let family = engine.program.table.family(lock.family);
            family.name.as_str()
        });
        if let Some(place) = mechanism(&text, family) {
            counts[place] += 1;
        }
    }
}

/// The mechanism that a called function belongs to.
fn mechanism(name: &str, family: Option<&str>) -> Option<usize> {
    const WAKING: &[&str] = &["wait_event", "wake_up", "prepare_to_wait", "finish_wait"];
    let named = |wanted: &str| MECHANISMS.iter().position(|known| *known == wanted);
    match family {
        Some("spin" | "bit-spin" | "socket-spin") => return named("spin lock"),
        Some("mutex") => return named("mutex"),
        Some("rwlock") => return named("read/write spin lock"),
        Some("rwsem") => return named("read/write semaphore"),
        Some("semaphore") => return named("semaphore"),
        _ => {}
    }
    if name.starts_with("atomic") || name.starts_with("refcount_") {
        named("atomic instruction")
    } else if WAKING.iter().any(|start| name.starts_with(start)) {
        named("condition variable")
    } else if matches!(name, "mb" | "rmb" | "wmb")
        || name.starts_with("smp_") && name.contains("mb")
    {
        named("memory barrier")
    } else if name.starts_with("kthread_") || name == "kernel_thread" {
        named("thread operation")
    } else {
        None
    }
}

/// Call sequences that begin at a function.
#[derive(Debug, Clone, Copy)]
struct Way {
    count: f64,
    /// The lengths of all of them together.
    steps: f64,
    longest: u64,
}

struct Ways<'w, 'p> {
    engine: &'w Engine<'p>,
    known: Vec<Option<Way>>,
    /// Functions that the sequence already contains: a recursive call ends it.
    open: Vec<bool>,
}

/// Sequences are not followed deeper.
const DEPTH_MAX: u32 = 400;

impl Ways<'_, '_> {
    fn of(&mut self, id: FnId, depth: u32) -> Way {
        const ALONE: Way = Way {
            count: 1.0,
            steps: 1.0,
            longest: 1,
        };
        if let Some(known) = self.known[at(id.0)] {
            return known;
        }
        if self.open[at(id.0)] || depth > DEPTH_MAX {
            return ALONE;
        }
        self.open[at(id.0)] = true;
        let mut way = Way {
            count: 0.0,
            steps: 0.0,
            longest: 0,
        };
        let engine = self.engine;
        for call in engine.calls.of(id) {
            let further = self.of(call.callee, depth + 1);
            way.count += further.count;
            way.steps += further.steps + further.count;
            way.longest = way.longest.max(further.longest + 1);
        }
        if way.longest == 0 {
            way = ALONE;
        }
        self.open[at(id.0)] = false;
        self.known[at(id.0)] = Some(way);
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_apart_by_family_and_name() {
        let named = |place: Option<usize>| place.map(|place| MECHANISMS[place]);
        assert_eq!(
            named(mechanism("spin_lock", Some("spin"))),
            Some("spin lock")
        );
        assert_eq!(
            named(mechanism("atomic_inc", None)),
            Some("atomic instruction")
        );
        assert_eq!(named(mechanism("smp_wmb", None)), Some("memory barrier"));
        assert_eq!(named(mechanism("smp_processor_id", None)), None);
        assert_eq!(
            named(mechanism("kthread_run", None)),
            Some("thread operation")
        );
        assert_eq!(
            named(mechanism("wake_up_all", None)),
            Some("condition variable")
        );
    }
}
