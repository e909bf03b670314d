//! Where programs notice that something is wrong, and the reads from memory that decide it.
//!
//! After Zhang, Lim, Olichandran, Scherpelz, Jin, Lu and Reps, "ConSeq: Detecting Concurrency Bugs through Sequential
//! Errors" (ASPLOS 2011), sections on failure sites and critical reads. Each kind of site has its own first step: a call
//! depends on the branches around it, an output besides on its arguments, a loop on what it does again in every round.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use raddle_symbols::{LinkAddr, Module};

use crate::condition::{Fate, Goal, fate};
use crate::dependence::{At, Distances, Function, Functions};
use crate::dominator::Dominators;
use crate::flow_graph::{BlockId, callee_name, has_graph};
use crate::instruction::{Flow, Instruction};
use crate::natural_loop::{Loops, NaturalLoop};
use crate::register::{Register, RegisterSet};

/// How a program shows that something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SiteKind {
    /// It calls a function that reports a broken assertion.
    Assertion,
    /// It calls a function that reports an error.
    Error,
    /// It does not leave a loop.
    Loop,
    /// It tells something that may be wrong.
    Output,
}

/// Functions that make their calls failure sites, by linker name.
#[derive(Debug, Clone, Default)]
pub struct SiteNames {
    /// Of the user, besides those of the standard libraries.
    pub own: BTreeMap<String, SiteKind>,
}

const ASSERTIONS: &[&str] = &[
    "__assert_fail",
    "__assert_perror_fail",
    "__assert",
    "abort",
    "_ZSt9terminatev",
    "_ZSt21__glibcxx_assert_failPKciS0_S0_",
    "g_assertion_message",
    "g_assertion_message_expr",
];

const ERRORS: &[&str] = &[
    "perror",
    "psignal",
    "warn",
    "warnx",
    "vwarn",
    "vwarnx",
    "err",
    "errx",
    "verr",
    "verrx",
    "error",
    "syslog",
    "vsyslog",
    "__syslog_chk",
];

const OUTPUTS: &[&str] = &[
    "printf",
    "__printf_chk",
    "vprintf",
    "__vprintf_chk",
    "fprintf",
    "__fprintf_chk",
    "vfprintf",
    "__vfprintf_chk",
    "dprintf",
    "puts",
    "fputs",
    "putchar",
    "putc",
    "fputc",
    "fwrite",
    "write",
    "writev",
    "pwrite",
    "send",
    "sendto",
    "sendmsg",
];

impl SiteNames {
    fn kind(&self, name: &str) -> Option<SiteKind> {
        // Panics of Rust, in both manglings, and output of C++.
        let is_panic = name.contains("9panicking") || name.contains("13unwrap_failed");
        let is_stream = name.contains("ostream_insert") || name.starts_with("_ZNSo");
        if let Some(kind) = self.own.get(name) {
            Some(*kind)
        } else if ASSERTIONS.contains(&name) || is_panic {
            Some(SiteKind::Assertion)
        } else if ERRORS.contains(&name) {
            Some(SiteKind::Error)
        } else {
            (OUTPUTS.contains(&name) || is_stream).then_some(SiteKind::Output)
        }
    }
}

/// A place where a failure would show.
#[derive(Debug, Clone)]
pub struct FailureSite {
    pub kind: SiteKind,
    /// The call, or the branch that leaves the loop.
    pub at: LinkAddr,
    /// Reads of memory that may be shared, with their distances from the site.
    pub reads: Distances,
    goal: Goal,
}

/// The failure sites of a module.
#[derive(Debug)]
pub struct FailureSites {
    pub sites: Vec<FailureSite>,
    functions: Functions,
}

/// Registers that hold arguments: System V ABI for x86-64, section 3.2.3.
pub(crate) const ARGUMENTS: [Register; 6] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];

impl FailureSites {
    /// Those of all functions of a module, with the reads no more than `most` steps away.
    pub fn new(module: &Arc<Module>, names: &SiteNames, most: u32) -> Self {
        let mut functions = Functions::new(module);
        let mut sites = Vec::new();
        let mut entries: BTreeSet<LinkAddr> = BTreeSet::new();
        for symbol in module.symbols().iter().filter(|symbol| has_graph(symbol)) {
            if symbol.name.ends_with(".cold") || !entries.insert(symbol.address) {
                continue;
            }
            if let Some(function) = functions.around(symbol.address) {
                calls(&mut functions, &function, (names, most), &mut sites);
                loops(&mut functions, &function, most, &mut sites);
            }
        }
        sites.retain(|site| !site.reads.is_empty());
        Self { sites, functions }
    }

    /// Whether control comes to a site if a read of it gives another value.
    pub fn fate(&mut self, site: &FailureSite, read: LinkAddr, value: u64) -> Fate {
        let Some(function) = self.functions.around(site.at) else {
            return Fate::Unknown;
        };
        fate(
            &self.functions.module,
            &function.graph,
            (read, value),
            &site.goal,
        )
    }
}

/// The instructions of a slice that read memory which others may write.
fn shared_reads(
    functions: &mut Functions,
    distances: Distances,
    is_kept: &dyn Fn(&Rc<Function>, At) -> bool,
) -> Distances {
    let reads = distances.into_iter().filter(|&(address, _)| {
        let Some(function) = functions.around(address) else {
            return false;
        };
        let Some(at) = function.graph.find(address) else {
            return false;
        };
        let instruction = &function.graph.blocks[at.0.0].instructions[at.1];
        let mut accesses = instruction.accesses.iter();
        let is_shared = accesses.any(|access| {
            access.kind.reads() && !function.graph.is_stack(access) && !access.is_thread_local
        });
        is_shared && !instruction.is_call() && is_kept(&function, at)
    });
    reads.collect()
}

fn calls(
    functions: &mut Functions,
    function: &Rc<Function>,
    (names, most): (&SiteNames, u32),
    sites: &mut Vec<FailureSite>,
) {
    for (index, block) in function.graph.blocks.iter().enumerate() {
        for (position, instruction) in block.instructions.iter().enumerate() {
            let leaves = matches!(instruction.flow, Flow::Jump(_) | Flow::IndirectJump);
            if !instruction.is_call() && !leaves {
                continue;
            }
            let name = callee_name(&functions.module, instruction);
            let kind = name.and_then(|name| names.kind(&name));
            let gives_up = || {
                functions
                    .gives_up(instruction)
                    .then_some(SiteKind::Assertion)
            };
            let Some(kind) = kind.or_else(gives_up) else {
                continue;
            };
            let at = (BlockId(index), position);
            let deciders = Functions::deciders(function, at).into_iter();
            let mut starts: Vec<(LinkAddr, u32)> = deciders.map(|branch| (branch, 1)).collect();
            if kind == SiteKind::Output {
                let arguments = ARGUMENTS.into_iter().collect::<RegisterSet>();
                let set_up = functions.set_up(function, at, arguments).into_iter();
                starts.extend(set_up.map(|maker| (maker, 1)));
            }
            let distances = functions.slice(&starts, most);
            sites.push(FailureSite {
                kind,
                at: instruction.address,
                reads: shared_reads(functions, distances, &|_, _| true),
                goal: Goal::Instruction(instruction.address),
            });
        }
    }
}

fn loops(
    functions: &mut Functions,
    function: &Rc<Function>,
    most: u32,
    sites: &mut Vec<FailureSite>,
) {
    let graph = &function.graph;
    let all = Loops::new(graph, &Dominators::new(graph)).all;
    for natural in &all {
        for branch in exits(function, natural) {
            let distances = functions.slice(&[(branch, 0)], most);
            // What is done once, before the loop, cannot keep it going. What a called function does is done again if its
            // call is; only calls of this slice lead there.
            let is_kept = |of: &Rc<Function>, at: At| {
                !Rc::ptr_eq(of, function) || natural.body.contains(&at.0)
            };
            sites.push(FailureSite {
                kind: SiteKind::Loop,
                at: branch,
                reads: shared_reads(functions, distances, &is_kept),
                goal: Goal::Stay {
                    header: graph.blocks[natural.header.0].start(),
                    body: starts(function, natural),
                },
            });
        }
    }
}

/// The conditional branches that leave a loop.
fn exits(function: &Function, natural: &NaturalLoop) -> BTreeSet<LinkAddr> {
    let blocks = natural.exits.iter().map(|&(from, _)| from);
    let branches = blocks.filter_map(|block| function.graph.blocks[block.0].last());
    let is_branch = |branch: &&Instruction| matches!(branch.flow, Flow::Branch(_));
    let branches = branches.filter(is_branch);
    branches.map(|branch| branch.address).collect()
}

/// Where the blocks of a loop begin.
fn starts(function: &Function, natural: &NaturalLoop) -> BTreeSet<LinkAddr> {
    let blocks = natural.body.iter();
    blocks
        .map(|block| function.graph.blocks[block.0].start())
        .collect()
}
