//! What each context of a run did, function by function: calls and returns read off the accesses to the stack.
//!
//! Every call writes its return address and every return reads it, so the log of memory accesses shows them all; a
//! function that touches no memory at all and is reached by a jump is the only thing that is not seen.

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use raddle_sched::Follow;
use raddle_trace::Schedule;
use raddle_world::{Event, EventKind, World};
use rustc_hash::FxHashMap;

use super::names::Names;
use super::run::Rules;
use super::session::Session;
use crate::world::{KERNEL_HALF, KernelWorld};

/// Deepest indentation that is shown.
const DEPTH_SHOWN: usize = 40;

/// What is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceOptions {
    /// Each access to memory too.
    pub accesses: bool,
}

/// The traced run.
#[derive(Debug, Default)]
pub struct FunctionTrace {
    /// One line for each function entered, and for each access if wanted, in the order of the run.
    pub text: String,
    /// How often each function called each other one, in each context.
    pub calls: BTreeMap<(String, String, String), u64>,
}

impl FunctionTrace {
    /// The call graph for Graphviz, contexts as clusters.
    pub fn graph(&self) -> String {
        let mut text = String::from("digraph calls {\n  node [shape=box, fontname=monospace];\n");
        let mut contexts: BTreeMap<&str, Vec<(&str, &str, u64)>> = BTreeMap::new();
        for ((context, from, to), count) in &self.calls {
            let calls = contexts.entry(context).or_default();
            calls.push((from, to, *count));
        }
        for (number, (context, calls)) in contexts.iter().enumerate() {
            text.push_str(&format!(
                "  subgraph cluster_{number} {{\n    label=\"{context}\";\n"
            ));
            let mut names: Vec<&str> = calls
                .iter()
                .flat_map(|(from, to, _)| [*from, *to])
                .collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                text.push_str(&format!("    \"{number}:{name}\" [label=\"{name}\"];\n"));
            }
            for (from, to, count) in calls {
                text.push_str(&format!(
                    "    \"{number}:{from}\" -> \"{number}:{to}\" [label=\"{count}\"];\n"
                ));
            }
            text.push_str("  }\n");
        }
        text.push_str("}\n");
        text
    }
}

/// How an instruction changes the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Call,
    Return,
    Other,
}

/// Where a context is.
#[derive(Debug, Default)]
struct Stack {
    functions: Vec<String>,
    /// The last instruction and what it does.
    last: Option<(u64, Flow)>,
}

impl Stack {
    /// Goes to the function of the next access; true if it was called.
    fn enter(&mut self, pc: u64, flow: Flow, function: &str) -> bool {
        let last = self.last.replace((pc, flow));
        // A call through memory reads the address and writes the return address: one call.
        if last == Some((pc, Flow::Call)) && flow == Flow::Call {
            return false;
        }
        match last {
            Some((_, Flow::Call)) => {
                self.functions.push(function.to_owned());
                return true;
            }
            Some((_, Flow::Return)) => {
                self.functions.pop();
            }
            _ => {}
        }
        // A jump into another function, an interrupt's entry, or a return to where the trace did not begin.
        if self.functions.last().is_none_or(|known| known != function) {
            match self.functions.iter().rposition(|known| known == function) {
                Some(known) => self.functions.truncate(known + 1),
                None => {
                    self.functions.pop();
                    self.functions.push(function.to_owned());
                }
            }
        }
        false
    }
}

/// Runs a schedule and writes down its functions.
pub fn trace_functions(
    session: &mut Session<'_>,
    schedule: &Schedule,
    rules: Rules,
    options: TraceOptions,
) -> FunctionTrace {
    let names = Names::of(session);
    session.restore();
    session.world.set_observe(true);
    rules.apply(&mut session.world);
    let mut tracer = Tracer {
        options,
        names,
        flows: FxHashMap::default(),
        stacks: BTreeMap::new(),
        trace: FunctionTrace::default(),
    };
    session.drive(
        &mut Follow::new(schedule),
        rules.policy(),
        &mut |world, events| {
            for event in events {
                tracer.event(world, event);
            }
        },
    );
    session.world.set_observe(false);
    tracer.trace
}

struct Tracer<'a> {
    options: TraceOptions,
    names: Names<'a>,
    flows: FxHashMap<u64, Flow>,
    stacks: BTreeMap<u32, Stack>,
    trace: FunctionTrace,
}

impl Tracer<'_> {
    fn event(&mut self, world: &mut KernelWorld, event: &Event) {
        let EventKind::Access(access) = &event.kind else {
            return;
        };
        let context = world.contexts().get(event.context).name.to_string();
        let flow = self.flow(world, event);
        let (function, offset) = if event.pc() >= KERNEL_HALF {
            let named = self.names.name(event.pc());
            named.map_or_else(
                || (format!("{:#x}", event.pc()), 0),
                |named| (named.function, named.offset),
            )
        } else {
            ("user code".to_owned(), event.pc())
        };
        let stack = self.stacks.entry(event.context.0).or_default();
        let before = stack.functions.last().cloned();
        let was_called = stack.enter(event.pc(), flow, &function);
        let depth = stack.functions.len().saturating_sub(1);
        let indent = "  ".repeat(depth.min(DEPTH_SHOWN));
        if was_called || before.as_ref() != Some(&function) {
            let line = format!("{:>9} {context:14} {indent}{function}\n", event.step);
            self.trace.text.push_str(&line);
        }
        if self.options.accesses {
            let verb = if access.how.writes() {
                "writes"
            } else {
                "reads"
            };
            self.trace.text.push_str(&format!(
                "{:>9} {context:14} {indent}  +{offset:#x} {verb} {} bytes at {:#x}\n",
                event.step, access.size, access.addr
            ));
        }
        if let Some(from) = before.filter(|_| was_called) {
            let call = (context, from, function);
            *self.trace.calls.entry(call).or_default() += 1;
        }
    }

    /// What the instruction at the event does, decoded once.
    fn flow(&mut self, world: &mut KernelWorld, event: &Event) -> Flow {
        if let Some(flow) = self.flows.get(&event.pc()) {
            return *flow;
        }
        let bytes = world.code_at(event.context, event.pc());
        let mut decoder = Decoder::with_ip(64, &bytes, event.pc(), DecoderOptions::NONE);
        let flow = match decoder.decode().flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
            FlowControl::Return => Flow::Return,
            _ => Flow::Other,
        };
        self.flows.insert(event.pc(), flow);
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_returns_make_the_stack() {
        let mut stack = Stack::default();
        assert!(!stack.enter(1, Flow::Other, "a"));
        assert!(!stack.enter(2, Flow::Call, "a"));
        assert!(
            !stack.enter(2, Flow::Call, "a"),
            "the same call through memory"
        );
        assert!(stack.enter(10, Flow::Other, "b"));
        assert!(!stack.enter(11, Flow::Return, "b"));
        assert!(!stack.enter(3, Flow::Call, "a"));
        assert_eq!(stack.functions, ["a"]);
        assert!(stack.enter(20, Flow::Return, "a"), "recursion");
        assert_eq!(stack.functions, ["a", "a"]);
        assert!(
            !stack.enter(30, Flow::Other, "c"),
            "a jump or a return beyond the beginning"
        );
        assert_eq!(stack.functions, ["c"]);
    }

    #[test]
    fn a_graph_has_a_cluster_for_each_context() {
        let mut trace = FunctionTrace::default();
        for context in ["CPU 0", "CPU 1"] {
            let call = (context.to_owned(), "a".to_owned(), "b".to_owned());
            trace.calls.insert(call, 3);
        }
        let graph = trace.graph();
        assert_eq!(graph.matches("subgraph").count(), 2);
        assert!(
            graph.contains("\"1:a\" -> \"1:b\" [label=\"3\"]"),
            "{graph}"
        );
    }
}
