//! The pass over one module: extract, decide, emit, report.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use raddle_harden::analysis::guard::{self, Guards};
use raddle_harden::analysis::interproc::{self, Body, Mark, Marks, Program};
use raddle_harden::analysis::model::{BlockId, Effect, Function, InstId, Shelter, Site, SiteKind};
use raddle_harden::analysis::plan::{self, Plan, Pruned};
use raddle_harden::analysis::summary::{self, Summary};
use raddle_harden::calls;
use raddle_harden::record::ModuleRecord;
use raddle_harden::settings::{Mode, Settings, Undo, VARIABLE};

use crate::emit::{self, Work};
use crate::extract::{self, Candidate, Check, Extracted, FunctionNumbers, Shared};
use crate::ir::{Block, Dominators, Module, Opcode, Value};
use crate::names::LockSite;

mod report;

/// Exit status of a compiler in which hardening went wrong; the driver then compiles plainly.
const TROUBLE: i32 = 86;

/// Runs the pass; a panic or an invalid module must neither unwind into LLVM nor reach code generation.
pub(crate) fn guarded(module: Module) -> bool {
    match catch_unwind(AssertUnwindSafe(|| run(module))) {
        Ok(Ok(changed)) => changed,
        Ok(Err(message)) => give_up(&message),
        Err(_) => give_up("internal error"),
    }
}

#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "the host compiler is stopped here on purpose: the driver repeats the compilation without the plugin"
)]
fn give_up(message: &str) -> bool {
    eprintln!("raddle-harden: {message}");
    std::process::exit(TROUBLE)
}

fn settings() -> Result<Settings, String> {
    match std::env::var_os(VARIABLE) {
        None => Ok(Settings::default()),
        Some(text) => serde_json::from_str(&text.to_string_lossy())
            .map_err(|error| format!("{VARIABLE} is not valid: {error}")),
    }
}

fn run(module: Module) -> Result<bool, String> {
    let settings = settings()?;
    let target = module.target();
    if !target.starts_with("x86_64") || !target.contains("linux") {
        return Ok(false);
    }
    let (extracted, program, summaries) = analyse(module, &settings);
    let mut decisions = decide(&program, &extracted, &settings);
    let logged = logged(&program, &decisions);
    let logging = logged.iter().map(|&(index, _)| index).collect();
    decisions.marks.let_pads_undo(&program, &logging);
    let is_unsupported = |body: &&Body| !body.is_supported;
    let mut record = ModuleRecord {
        module: module.source_name(),
        functions: extracted.len(),
        functions_unsupported: program.bodies.iter().filter(is_unsupported).count(),
        ..ModuleRecord::default()
    };
    // In words before anything is changed.
    let words = match settings.report {
        Some(_) => report::words(&extracted, &program, &decisions),
        None => report::Words::new(),
    };
    let mut changed = carry_out(
        module,
        &settings,
        &extracted,
        &decisions,
        &logged,
        &mut record,
    );
    if settings.mode == Mode::Survival {
        tell_linker(module, &extracted, &summaries);
    }
    if let Some(path) = &settings.report {
        report::write(path, &extracted, &program, &decisions, &words, record)
            .map_err(|error| format!("cannot write the report {path}: {error}"))?;
    }
    if settings.leaves_checks_to_accesses() {
        for name in ["sigaction", "signal", "sigprocmask", "pthread_sigmask"] {
            changed |= module.redirect(name, &format!("raddle_harden_{name}"));
        }
    }
    if settings.mode == Mode::Survival {
        let unlock = "pthread_rwlock_unlock";
        changed |= module.redirect(unlock, &format!("raddle_harden_{unlock}"));
    }
    if changed && !module.is_valid() {
        return Err(format!(
            "the hardened {} is not valid",
            module.source_name()
        ));
    }
    if settings.strip_debug {
        module.strip_debug();
    }
    Ok(changed)
}

/// The model of a module, and what its functions do to the regions of their callers.
fn analyse(module: Module, settings: &Settings) -> (Vec<Extracted>, Program, Vec<Summary>) {
    let functions: Vec<Value> = module
        .functions()
        .into_iter()
        .filter(|function| !function.is_declaration())
        .collect();
    let numbers: FunctionNumbers = functions
        .iter()
        .enumerate()
        .map(|(index, function)| (function.key(), index))
        .collect();
    for function in module.functions() {
        if function.is_declaration() && calls::known(&function.name()).is_some() {
            function.set_keeps_no_pointers();
        }
    }
    let mut shared = Shared::default();
    let mut extracted: Vec<Extracted> = functions
        .iter()
        .map(|&function| extract::extract(module, function, settings, &numbers, &mut shared))
        .collect();
    let mut bodies: Vec<Body> = extracted
        .iter_mut()
        .map(|function| function.body.take().expect("each body is taken once"))
        .collect();
    let guards = shelter(&mut bodies, &extracted, settings.undo);
    let is_exact = |index: usize| functions[index].is_exact();
    let summaries = summary::apply(&mut bodies, &is_exact, &guards.taken);
    let program = Program::new(bodies, settings.reach());
    (extracted, program, summaries)
}

/// For each harmless function that other objects can call, a symbol whose presence says so: they are joined by the
/// linker, and the failing edges that count on it look there.
fn tell_linker(module: Module, extracted: &[Extracted], summaries: &[Summary]) {
    let byte = module.int_type(8);
    for (function, summary) in extracted.iter().zip(summaries) {
        if *summary == Summary::Harmless && function.function.is_strong_external() {
            let name = emit::promise(&function.function.name());
            let symbol = module.add_global(&name, byte);
            symbol.set_initializer(byte.constant(1));
            symbol.set_constant();
            symbol.set_hidden();
        }
    }
}

/// Says of each ordinary write under which condition it may be taken back.
fn shelter(bodies: &mut [Body], extracted: &[Extracted], undo: Undo) -> Guards {
    let guards = match undo {
        Undo::Never => return Guards::default(),
        Undo::Plain => Guards::default(),
        Undo::Proven => {
            let module = guard::Module {
                accesses: extracted
                    .iter()
                    .map(|function| function.accesses.clone())
                    .collect(),
                is_open: extracted
                    .iter()
                    .map(|function| function.function.is_open())
                    .collect(),
            };
            guard::find(bodies, &module)
        }
    };
    for (body, details) in bodies.iter_mut().zip(extracted) {
        for &store in &details.stores {
            let shelter = match undo {
                Undo::Plain => Some(Shelter::Anywhere),
                _ => details
                    .accesses
                    .get(&store)
                    .and_then(|object| guards.of_object.get(object))
                    .map(|locks| Shelter::Locks(locks.clone())),
            };
            if let Some(shelter) = shelter {
                body.function.shelters.push(shelter);
                body.function.insts[store].effect = Effect::LoggedWrite {
                    shelter: body.function.shelters.len() - 1,
                };
            }
        }
    }
    guards
}

/// What happens to the candidates of a module, by function and candidate.
struct Decisions {
    sites: Vec<Vec<Decision>>,
    marks: Marks,
}

enum Decision {
    /// Not worth a line in the report.
    Skip,
    Pruned(Pruned),
    /// As it is, but a deadlock there is told.
    Watch(Pruned),
    Harden {
        plan: Option<Box<Plan>>,
        levels: usize,
    },
}

fn decide(program: &Program, extracted: &[Extracted], settings: &Settings) -> Decisions {
    let mut marks = Marks::default();
    let mut sites = Vec::new();
    for (index, function) in extracted.iter().enumerate() {
        let tree = Dominators::new(function.function);
        let mut checked: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        let mut decisions = Vec::new();
        for candidate in &function.candidates {
            let decision = if is_covered(&tree, candidate, &checked) {
                if candidate.only_from_callers {
                    Decision::Skip
                } else {
                    Decision::Pruned(Pruned::AlreadyChecked)
                }
            } else {
                let site = Site {
                    safe_edges: safe_edges(&tree, function.function, candidate),
                    ..candidate.site.clone()
                };
                one(program, index, candidate, &site, settings, &mut marks)
            };
            if let (Decision::Harden { .. }, Check::Pointers(pointers)) =
                (&decision, &candidate.check)
            {
                for pointer in pointers {
                    checked
                        .entry(pointer.key())
                        .or_default()
                        .push(candidate.inst);
                }
            }
            decisions.push(decision);
        }
        sites.push(decisions);
    }
    Decisions { sites, marks }
}

/// Edges into a pointer's phi that bring something which the program has tested.
fn safe_edges(
    tree: &Dominators,
    function: Value,
    candidate: &Candidate,
) -> BTreeSet<(BlockId, BlockId)> {
    let Check::Pointers(pointers) = &candidate.check else {
        return BTreeSet::new();
    };
    let [phi] = pointers[..] else {
        return BTreeSet::new();
    };
    if !phi.is_instruction() || phi.opcode() != Opcode::LLVMPHI {
        return BTreeSet::new();
    }
    let tested = tree.nonzero_from(phi);
    if tested.is_empty() {
        return BTreeSet::new();
    }
    let blocks = function.blocks();
    let number = |block: Block| blocks.iter().position(|&other| other == block);
    tested
        .into_iter()
        .filter_map(|from| Some((number(from)?, number(phi.block())?)))
        .collect()
}

/// Whether the program itself or an earlier check of ours makes this check needless.
fn is_covered(
    tree: &Dominators,
    candidate: &Candidate,
    checked: &BTreeMap<usize, Vec<Value>>,
) -> bool {
    let Check::Pointers(pointers) = &candidate.check else {
        return false;
    };
    pointers.iter().all(|&pointer| {
        checked.get(&pointer.key()).is_some_and(|earlier| {
            earlier
                .iter()
                .any(|&inst| inst == candidate.inst || tree.dominates(inst, candidate.inst))
        }) || tree.known_nonzero(pointer, candidate.inst)
    })
}

fn is_selected(candidate: &Candidate, settings: &Settings) -> bool {
    settings.mode == Mode::Survival
        || candidate.places.iter().any(|place| {
            let whole = place.path();
            settings
                .sites
                .iter()
                .any(|site| site.matches(&whole, place.line))
        })
}

fn one(
    program: &Program,
    index: usize,
    candidate: &Candidate,
    site: &Site,
    settings: &Settings,
    marks: &mut Marks,
) -> Decision {
    if !is_selected(candidate, settings) {
        return Decision::Skip;
    }
    let body = &program.bodies[index];
    if !body.is_supported {
        return skip_or(candidate, Pruned::UnsupportedFunction);
    }
    if candidate.check == Check::Unchecked {
        return Decision::Pruned(Pruned::NoOracle);
    }
    if site.kind == SiteKind::Assertion && body.function.block_of[site.at] == 0 {
        return Decision::Pruned(Pruned::AlwaysFails);
    }
    let own = if candidate.only_from_callers {
        Err(Pruned::NoCallerToReexecute)
    } else {
        plan::intra(&body.function, &body.idom, site, settings.reach())
    };
    let levels = settings.caller_levels;
    let goes_up = levels > 0 && interproc::extend(program, index, site, levels, marks);
    match own {
        Ok(plan) => Decision::Harden {
            plan: Some(Box::new(plan)),
            levels: if goes_up { levels } else { 0 },
        },
        Err(_) if goes_up => Decision::Harden { plan: None, levels },
        Err(Pruned::NoSharedRead | Pruned::NoLockInRegion) if !settings.prunes => {
            Decision::Harden {
                plan: plan::unpruned(&body.function, &body.idom, site).map(Box::new),
                levels: 0,
            }
        }
        Err(reason) => skip_or(candidate, reason),
    }
}

/// A dereference of a parameter is a site only where a caller can help.
fn skip_or(candidate: &Candidate, reason: Pruned) -> Decision {
    let is_watched = match &candidate.check {
        Check::Mutex(lock) => matches!(lock.how, LockSite::Watched(_)),
        _ => false,
    };
    if candidate.only_from_callers {
        Decision::Skip
    } else if is_watched && reason != Pruned::UnsupportedFunction {
        Decision::Watch(reason)
    } else {
        Decision::Pruned(reason)
    }
}

fn carry_out(
    module: Module,
    settings: &Settings,
    extracted: &[Extracted],
    decisions: &Decisions,
    logged: &BTreeSet<(usize, InstId)>,
    summary: &mut ModuleRecord,
) -> bool {
    let mut changed = false;
    for (index, function) in extracted.iter().enumerate() {
        let works: Vec<Work<'_>> = function
            .candidates
            .iter()
            .zip(&decisions.sites[index])
            .filter_map(|(candidate, decision)| {
                let (plan, levels) = match decision {
                    Decision::Harden { plan, levels } => (plan.as_deref().cloned(), *levels),
                    Decision::Watch(_) => (None, 0),
                    Decision::Skip | Decision::Pruned(_) => return None,
                };
                Some(Work {
                    candidate,
                    plan,
                    levels,
                })
            })
            .collect();
        let marks: Vec<_> = decisions
            .marks
            .calls
            .range((index, 0)..(index + 1, 0))
            .map(|((_, inst), mark)| (*inst, mark))
            .collect();
        let logged: BTreeSet<InstId> = logged
            .range((index, 0)..(index + 1, 0))
            .map(|&(_, inst)| inst)
            .collect();
        if works.is_empty() && marks.is_empty() && logged.is_empty() {
            continue;
        }
        let points = emit::emit(module, settings, function, &works, &marks, logged);
        summary.points += points.all;
        summary.lock_points += points.for_locks;
        summary.pads += marks
            .iter()
            .filter(|(_, mark)| matches!(mark, Mark::Pad(_)))
            .count();
        changed = true;
    }
    changed
}

/// Everything that must be logged, by function: what plans ask for, what lies in frames that a caller's pad drops, and
/// what functions do that are called in between.
fn logged(program: &Program, decisions: &Decisions) -> BTreeSet<(usize, InstId)> {
    let mut logged = decisions.marks.logged.clone();
    let mut calls: Vec<(usize, InstId)> = decisions.marks.logged_calls.iter().copied().collect();
    let mut add = |index: usize, plan: &Plan| {
        logged.extend(plan.logs.iter().map(|&inst| (index, inst)));
        calls.extend(plan.calls.iter().map(|&inst| (index, inst)));
    };
    for (index, sites) in decisions.sites.iter().enumerate() {
        for decision in sites {
            if let Decision::Harden {
                plan: Some(plan), ..
            } = decision
            {
                add(index, plan);
            }
        }
    }
    for (&(index, _), mark) in &decisions.marks.calls {
        if let Mark::Pad(plan) = mark {
            add(index, plan);
        }
    }
    let mut seen = BTreeSet::new();
    while let Some((index, call)) = calls.pop() {
        let callee = program.bodies[index].function.logged_calls[&call].callee;
        if seen.insert(callee) {
            let (writes, below) = summary::log_of(&program.bodies[callee].function);
            logged.extend(writes.into_iter().map(|inst| (callee, inst)));
            calls.extend(below.into_iter().map(|inst| (callee, inst)));
        }
    }
    let twins: Vec<(usize, InstId)> = logged
        .iter()
        .flat_map(|&(index, inst)| {
            let function = &program.bodies[index].function;
            twins(function, inst).map(move |twin| (index, twin))
        })
        .collect();
    logged.extend(twins);
    logged
}

/// The acquisitions of the same object: its release takes the entry of one of them out of the log, so all must have one.
fn twins(function: &Function, acquire: InstId) -> impl Iterator<Item = InstId> {
    let object = function.objects.get(&acquire);
    function.objects.iter().filter_map(move |(&other, named)| {
        let is_acquire = matches!(function.insts[other].effect, Effect::Acquire(_));
        let is_same = object.is_some_and(|object| object.name == named.name);
        (is_acquire && is_same).then_some(other)
    })
}
