//! Carries out the plans of one function: re-execution points, checks, failing edges, pads.
//!
//! ```text
//!        point:   token = 1; held = null          first arrival and every re-execution
//!                 ... region ...
//!        check:   p < 10000 ? -> failing          (cold)
//!                 *p
//!      failing:   retry(site) ? -> undo : -> *p   the original failure happens
//!         undo:   unlock / free / restore; switch token -> point
//! ```
//!
//! After code generation, `cpp/faults.cpp` removes the checks whose access faults by itself.
//!
//! A branch back is an ordinary edge of the control-flow graph: register allocation and every later pass see it.
//! Where one point dominates the site, no value needs attention. Where the point depends on the path, a token says
//! which one was passed last, and uses that their definition no longer dominates are repaired afterwards.

use std::collections::{BTreeMap, BTreeSet};

use raddle_harden::analysis::interproc::Mark;
use raddle_harden::analysis::model::{InstId, SiteKind};
use raddle_harden::analysis::plan::Plan;
use raddle_harden::settings::{Mechanism, Settings};

use crate::extract::{Acquired, Candidate, Check, Extracted};
use crate::ir::{Block, Builder, Module, Opcode, Predicate, Value};

mod locks;
mod log;
mod oracles;
mod pads;

/// The failing edge releases locks before it pauses; known to the runtime.
const FLAG_RELEASES: u64 = 1;

/// Counters of the runtime, for builds that count.
const POINTS: &str = "raddle_harden_points";
const LOCK_POINTS: &str = "raddle_harden_lock_points";

/// An access to address 0, and its entry in the table of faults: laid out as `struct fault` of the runtime, how 18.
const FAULT_ON_PURPOSE: &str = ".Lraddle_purpose${:uid}: movb $$0, 0
.Lraddle_beyond${:uid}:
\t.pushsection raddle_faults,\"ao?\",@progbits,.Lraddle_purpose${:uid}
\t.long .Lraddle_purpose${:uid}-.
\t.long .Lraddle_beyond${:uid}-.
\t.long ${0:c}-.
\t.long 1
\t.short 18, ${1:c}
\t.reloc ., R_X86_64_NONE, raddle_harden_add_faults; .reloc ., R_X86_64_NONE, raddle_harden_unwind
\t.popsection";

/// A site to harden.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) candidate: &'a Candidate,
    pub(crate) plan: Option<Plan>,
    /// Callers up which a failure may be re-executed.
    pub(crate) levels: usize,
}

/// Re-execution points of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Points {
    pub(crate) all: usize,
    /// Those that serve deadlocks only.
    pub(crate) for_locks: usize,
}

/// Changes one function.
pub(crate) fn emit(
    module: Module,
    settings: &Settings,
    extracted: &Extracted,
    works: &[Work<'_>],
    marks: &[(InstId, &Mark)],
    logged: BTreeSet<InstId>,
) -> Points {
    let mut emitter = Emitter {
        module,
        settings,
        extracted,
        builder: Builder::new(module),
        points: BTreeMap::new(),
        held: BTreeMap::new(),
        saved: BTreeMap::new(),
        saved_slots: BTreeMap::new(),
        log_marks: BTreeMap::new(),
        logged,
        tokens: BTreeMap::new(),
        variables: Vec::new(),
        results: BTreeMap::new(),
        trusted_names: works
            .iter()
            .filter_map(|work| work.plan.as_ref())
            .flat_map(|plan| &plan.trusted)
            .filter_map(|&call| Some((call, extracted.insts[call].callee_name()?)))
            .collect(),
        lock_arguments: extracted
            .acquires
            .iter()
            .filter(|(_, details)| details.what == Acquired::FirstArgument)
            .map(|(&acquire, _)| (acquire, extracted.insts[acquire].arguments()[0]))
            .collect(),
        needs_repair: false,
        edges: 0,
    };
    let is_for_lock = |work: &Work<'_>| work.candidate.site.kind == SiteKind::Deadlock;
    let plans_of = |for_locks: bool| {
        works
            .iter()
            .filter(move |work| is_for_lock(work) == for_locks)
            .filter_map(|work| work.plan.as_ref())
    };
    let pads = marks.iter().filter_map(|(_, mark)| match mark {
        Mark::Pad(plan) => Some(&**plan),
        Mark::Through => None,
    });
    for plan in plans_of(false).chain(pads) {
        emitter.prepare(plan, POINTS);
    }
    let others = emitter.points.len();
    for plan in plans_of(true) {
        emitter.prepare(plan, LOCK_POINTS);
    }
    let points = Points {
        all: emitter.points.len(),
        for_locks: emitter.points.len() - others,
    };
    for work in works {
        emitter.site(work);
    }
    for (call, mark) in marks {
        emitter.pad(*call, mark);
    }
    emitter.record_acquisitions();
    emitter.write_log();
    let function = extracted.function;
    if emitter.needs_repair {
        function.repair_ssa();
    }
    function.promote(&emitter.variables);
    let unwinds = !marks.is_empty() || works.iter().any(|work| work.levels > 0);
    function.mark_changed(unwinds);
    if settings.leaves_checks_to_accesses() {
        function.allow_faults();
    }
    points
}

/// The symbol by which an object promises that a function of it is harmless.
pub(crate) fn promise(name: &str) -> String {
    format!("raddle_harmless.{name}")
}

/// Identifies the points of a plan, useful and useless.
type PointSet = Vec<InstId>;

struct Emitter<'a> {
    module: Module,
    settings: &'a Settings,
    extracted: &'a Extracted,
    builder: Builder,
    /// Block at each point.
    points: BTreeMap<InstId, Block>,
    /// Variable per set of points and acquisition: what is held since the point, or null. Plans with other points must
    /// not share it, because one plan's point may lie inside another's region.
    held: BTreeMap<(PointSet, InstId), Value>,
    /// Variable per set of points and cell: its value at the point.
    saved: BTreeMap<(PointSet, usize), Value>,
    /// Copy per set of points and slot: its contents at the point.
    saved_slots: BTreeMap<(PointSet, usize), Value>,
    /// Variable per set of points: how long the log was at the point.
    log_marks: BTreeMap<PointSet, Value>,
    /// What this function writes into the log.
    logged: BTreeSet<InstId>,
    /// Variable per set of points: the number of the one passed last.
    tokens: BTreeMap<PointSet, Value>,
    /// All of the above, for promotion to registers.
    variables: Vec<Value>,
    /// Values that stand for calls which were replaced.
    results: BTreeMap<InstId, Value>,
    /// Functions of other objects that regions call.
    trusted_names: BTreeMap<InstId, String>,
    /// What each lock call is given; the call itself may be replaced.
    lock_arguments: BTreeMap<InstId, Value>,
    needs_repair: bool,
    /// Failing edges so far.
    edges: u32,
}

impl Emitter<'_> {
    fn variable(&mut self, ty: crate::ir::Type) -> Value {
        let entry = self.extracted.function.blocks()[0].first();
        self.builder.before(entry);
        let variable = self.builder.alloca(ty, "raddle");
        self.variables.push(variable);
        variable
    }

    /// Splits at the plan's points and writes what must be noted there.
    fn prepare(&mut self, plan: &Plan, counter: &str) {
        let all: Vec<InstId> = plan.points.iter().chain(&plan.useless).copied().collect();
        for &point in &all {
            self.point(point, counter);
        }
        if all.len() > 1 {
            self.prepare_token(plan);
        }
        if self.uses_log(plan) {
            self.prepare_log(plan, &all);
        }
        self.save_slots(plan, &all);
        for acquire in self.own_acquires(plan) {
            let pointer = self.module.pointer_type();
            let key = (point_set(plan), acquire);
            if self.held.contains_key(&key) {
                continue;
            }
            let held = self.variable(pointer);
            self.held.insert(key, held);
            for &point in &all {
                self.builder.before(self.extracted.insts[point]);
                self.builder.store(pointer.null(), held);
            }
        }
        for &cell in &plan.cells {
            let details = self.extracted.cells[cell];
            let key = (point_set(plan), cell);
            if self.saved.contains_key(&key) {
                continue;
            }
            let saved = self.variable(details.ty);
            self.saved.insert(key, saved);
            for &point in &all {
                self.builder.before(self.extracted.insts[point]);
                let place = self.builder.byte_offset(details.slot, details.offset);
                let value = self.builder.load(details.ty, place);
                self.builder.store(value, saved);
            }
        }
    }

    fn point(&mut self, point: InstId, counter: &str) {
        if self.points.contains_key(&point) {
            return;
        }
        let anchor = self.extracted.insts[point];
        let block = anchor.split_before("raddle.point");
        self.points.insert(point, block);
        self.builder.before(anchor);
        if self.settings.count_points {
            self.count_point(anchor, counter);
        }
        if self.settings.mechanism == Mechanism::Setjmp {
            self.setjmp(anchor);
        }
    }

    fn count_point(&self, anchor: Value, name: &str) {
        let word = self.module.int_type(64);
        let counter = self
            .module
            .named_global(name)
            .unwrap_or_else(|| self.module.add_global(name, word));
        self.builder.before(anchor);
        let old = self.builder.load(word, counter);
        let new = self.builder.add(old, word.constant(1));
        self.builder.store(new, counter);
    }

    /// The paper's mechanism, for comparison: the registers are saved at every point.
    fn setjmp(&self, anchor: Value) {
        let bytes = self.module.int_type(8);
        let buffer = self
            .module
            .named_global("raddle_harden_registers")
            .unwrap_or_else(|| {
                let buffer = self.module.add_global("raddle_harden_registers", bytes);
                buffer.set_thread_local();
                buffer
            });
        let ty = self
            .module
            .function_type(self.module.int_type(32), &[self.module.pointer_type()]);
        let setjmp = self.module.function("_setjmp", ty);
        self.builder.before(anchor);
        let call = self.builder.call(ty, setjmp, &[buffer]);
        call.set_location_of(anchor, self.extracted.function);
        call.set_returns_twice();
    }

    fn prepare_token(&mut self, plan: &Plan) {
        let key = point_set(plan);
        if self.tokens.contains_key(&key) {
            return;
        }
        self.needs_repair = true;
        let ty = self.module.int_type(32);
        let token = self.variable(ty);
        for (index, &point) in plan.points.iter().enumerate() {
            self.builder.before(self.extracted.insts[point]);
            let number = raddle_stdx::width::to_u64(index) + 1;
            self.builder.store(ty.constant(number), token);
        }
        for &point in &plan.useless {
            self.builder.before(self.extracted.insts[point]);
            self.builder.store(ty.constant(0), token);
        }
        self.tokens.insert(key, token);
    }

    fn site(&mut self, work: &Work<'_>) {
        let candidate = work.candidate;
        match &candidate.check {
            Check::Reached => self.assertion(work),
            Check::Pointers(pointers) => {
                self.builder.before(candidate.inst);
                if let Some(pointer) = self.injected_pointer(work, pointers[0]) {
                    let invalid = self.any_below_bound(&[pointer]);
                    self.passes_unless(work, invalid);
                } else {
                    let invalid = self.any_below_bound(pointers);
                    self.checked(work, invalid);
                }
            }
            Check::Oracle(value) => {
                self.builder.before(candidate.inst);
                let wrong = self
                    .builder
                    .compare(Predicate::LLVMIntEQ, *value, value.ty().null());
                self.checked(work, wrong);
                candidate.inst.erase();
            }
            Check::Invariant(value, expression) => {
                self.builder.before(candidate.inst);
                let wrong = self.violates(*value, expression);
                self.checked(work, wrong);
            }
            Check::Mutex(lock) => self.mutex(work, lock),
            Check::Unchecked => {}
        }
    }

    fn any_below_bound(&self, pointers: &[Value]) -> Value {
        let bound = self
            .module
            .int_type(64)
            .constant(self.settings.pointer_bound);
        let mut any = None;
        for &pointer in pointers {
            let number = self.builder.pointer_to_int(pointer);
            let one = self.builder.compare(Predicate::LLVMIntULT, number, bound);
            any = Some(any.map_or(one, |other| self.builder.or(other, one)));
        }
        any.expect("a pointer check has pointers")
    }

    /// For tests: whether the next check shall fail.
    fn injected(&self) -> Value {
        let injected = self.thunk(
            "raddle_harden_inject_thunk",
            self.module.pointer_type().null(),
        );
        let zero = self.module.int_type(32).constant(0);
        self.builder.compare(Predicate::LLVMIntNE, injected, zero)
    }

    /// For tests: whether the next check shall fail, given that a caller would be re-executed.
    fn injected_from_callers(&self, work: &Work<'_>) -> Value {
        let word = self.module.int_type(32);
        let ty = self.module.function_type(word, &[word]);
        let function = self.module.function("raddle_harden_inject_callers", ty);
        let levels = word.constant(raddle_stdx::width::to_u64(work.levels));
        let call = self.builder.call(ty, function, &[levels]);
        call.set_location_of(work.candidate.inst, self.extracted.function);
        self.builder
            .compare(Predicate::LLVMIntNE, call, word.constant(0))
    }

    /// For tests: an access through a pointer that is null now and then. Only where the failing edge is sure to
    /// re-execute: whatever gives up goes on with the pointer that it was given.
    fn injected_pointer(&self, work: &Work<'_>, pointer: Value) -> Option<Value> {
        if work
            .plan
            .as_ref()
            .is_some_and(|plan| !plan.useless.is_empty() || !plan.trusted.is_empty())
        {
            return None;
        }
        let access = work.candidate.inst;
        let number = match access.opcode() {
            Opcode::LLVMLoad => 0,
            Opcode::LLVMStore => 1,
            _ => return None,
        };
        let offset = access.operand(number).offset_from(pointer, self.module)?;
        if !self.settings.inject {
            return None;
        }
        let fails = match work.plan {
            Some(_) => self.injected(),
            None => self.injected_from_callers(work),
        };
        let null = self.module.pointer_type().null();
        let pointer = self.builder.select(fails, null, pointer);
        access.set_operand(number, self.builder.byte_offset(pointer, offset));
        Some(pointer)
    }

    /// A check in front of the instruction: where `fails` holds, the failing edge is taken.
    fn checked(&mut self, work: &Work<'_>, fails: Value) {
        let fails = if self.settings.inject {
            self.builder.before(work.candidate.inst);
            let injected = self.injected();
            self.builder.or(fails, injected)
        } else {
            fails
        };
        self.passes_unless(work, fails);
    }

    fn passes_unless(&mut self, work: &Work<'_>, fails: Value) {
        let inst = work.candidate.inst;
        let head = inst.block();
        let tail = inst.split_before("raddle.passed");
        let failing = self.extracted.function.append_block("raddle.failing");
        head.terminator().erase();
        self.builder.at_end(head);
        self.builder.branch_if(fails, failing, tail).cold_edge(true);
        self.failing_edge(work, failing, tail);
    }

    fn assertion(&mut self, work: &Work<'_>) {
        let anchor = self.extracted.insts[work.candidate.site.at];
        let head = anchor.block();
        let tail = anchor.split_before("raddle.failed");
        let failing = self.extracted.function.append_block("raddle.failing");
        head.terminator().erase();
        self.builder.at_end(head);
        self.builder.branch(failing);
        self.failing_edge(work, failing, tail);
    }

    /// From `failing`: callers first, then this function's own region, then `gives_up`.
    fn failing_edge(&mut self, work: &Work<'_>, failing: Block, gives_up: Block) {
        let descriptor = self.descriptor(work);
        self.failing_edge_of(work, descriptor, failing, gives_up);
    }

    /// The same for a site whose data is there already.
    fn failing_edge_of(
        &mut self,
        work: &Work<'_>,
        descriptor: Value,
        failing: Block,
        gives_up: Block,
    ) {
        self.edges += 1;
        let edge = self.edges;
        let note = |terminator: Value| {
            if is_access(work.candidate) {
                let levels = u32::try_from(work.levels).unwrap_or(u32::MAX);
                terminator.mark_failing(edge, descriptor, levels);
            }
        };
        self.builder.at_end(failing);
        if work.levels > 0 {
            self.looks_in_callers(work, descriptor);
        }
        let Some(plan) = &work.plan else {
            note(self.builder.branch(gives_up));
            return;
        };
        if !plan.useless.is_empty() && plan.points.len() + plan.useless.len() > 1 {
            let token = self.tokens[&point_set(plan)];
            let ty = self.module.int_type(32);
            let number = self.builder.load(ty, token);
            let is_final = self
                .builder
                .compare(Predicate::LLVMIntEQ, number, ty.constant(0));
            let decide = self.extracted.function.append_block("raddle.decide");
            self.builder.branch_if(is_final, gives_up, decide);
            self.builder.at_end(decide);
        }
        self.trusts(plan, gives_up);
        if self.settings.mechanism == Mechanism::Setjmp {
            self.longjmp(work, descriptor);
            self.builder.branch(gives_up);
            return;
        }
        let retries = self.thunk("raddle_harden_retry_thunk", descriptor);
        let word = self.module.int_type(32);
        let retries = self
            .builder
            .compare(Predicate::LLVMIntNE, retries, word.constant(0));
        let undo = self.extracted.function.append_block("raddle.undo");
        let decision = self.builder.branch_if(retries, undo, gives_up);
        if plan.useless.is_empty() && plan.trusted.is_empty() {
            note(decision);
        }
        self.builder.at_end(undo);
        self.undo(plan, work.candidate.inst);
    }

    /// Gives up unless every call in the region that another object must vouch for is vouched for. The linker has joined
    /// the promises by then; only the failing edge looks.
    fn trusts(&mut self, plan: &Plan, gives_up: Block) {
        let pointer = self.module.pointer_type();
        for &call in &plan.trusted {
            let Some(name) = self.trusted_names.get(&call) else {
                continue;
            };
            let name = promise(name);
            let symbol = self.module.named_global(&name).unwrap_or_else(|| {
                let symbol = self.module.add_global(&name, self.module.int_type(8));
                symbol.set_weak_reference();
                symbol.set_hidden();
                symbol
            });
            let is_missing = self
                .builder
                .compare(Predicate::LLVMIntEQ, symbol, pointer.null());
            let next = self.extracted.function.append_block("raddle.trusted");
            self.builder.branch_if(is_missing, gives_up, next);
            self.builder.at_end(next);
        }
    }

    /// Continues in a caller that is prepared for it, or here if there is none.
    fn looks_in_callers(&self, work: &Work<'_>, descriptor: Value) {
        let (pointer, word) = (self.module.pointer_type(), self.module.int_type(32));
        let void = self.module.void_type();
        let levels = word.constant(raddle_stdx::width::to_u64(work.levels));
        let call = if self.settings.leaves_checks_to_accesses() {
            // A fault on purpose: unlike a call, it costs the passing path neither a register nor a stack frame.
            let ty = self.module.function_type(void, &[pointer, word]);
            self.builder
                .assembly(FAULT_ON_PURPOSE, "i,i,~{memory}", ty, &[descriptor, levels])
        } else {
            let ty = self.module.function_type(void, &[pointer, word]);
            let unwind = self.module.function("raddle_harden_unwind_thunk", ty);
            let call = self.builder.call(ty, unwind, &[descriptor, levels]);
            call.set_keeps_registers();
            call
        };
        call.set_location_of(work.candidate.inst, self.extracted.function);
    }

    fn longjmp(&self, work: &Work<'_>, descriptor: Value) {
        let ty = self
            .module
            .function_type(self.module.void_type(), &[self.module.pointer_type()]);
        let function = self.module.function("raddle_harden_longjmp", ty);
        let call = self.builder.call(ty, function, &[descriptor]);
        call.set_location_of(work.candidate.inst, self.extracted.function);
    }

    /// Gives back, restores and goes to the point; the builder stands at the end of an open block.
    fn undo(&mut self, plan: &Plan, near: Value) {
        let releases = self.releases(plan);
        if self.uses_log(plan) {
            self.roll_back(plan, near);
        }
        for acquire in self.own_acquires(plan).into_iter().rev() {
            self.give_back(plan, acquire, near);
        }
        for &cell in &plan.cells {
            let details = self.extracted.cells[cell];
            let saved = self.saved[&(point_set(plan), cell)];
            let value = self.builder.load(details.ty, saved);
            let place = self.builder.byte_offset(details.slot, details.offset);
            self.builder.store(value, place);
        }
        self.restore_slots(plan);
        if releases {
            self.thunk(
                "raddle_harden_pause_thunk",
                self.module.pointer_type().null(),
            );
        }
        if plan.points.len() == 1 {
            self.builder.branch(self.points[&plan.points[0]]);
            return;
        }
        let ty = self.module.int_type(32);
        let number = self.builder.load(ty, self.tokens[&point_set(plan)]);
        let cases: Vec<(Value, Block)> = plan
            .points
            .iter()
            .enumerate()
            .skip(1)
            .map(|(index, point)| {
                let number = raddle_stdx::width::to_u64(index) + 1;
                (ty.constant(number), self.points[point])
            })
            .collect();
        self.builder
            .switch(number, self.points[&plan.points[0]], &cases);
    }

    fn give_back(&mut self, plan: &Plan, acquire: InstId, near: Value) {
        let pointer = self.module.pointer_type();
        let held = self.held[&(point_set(plan), acquire)];
        let held = self.builder.load(pointer, held);
        let is_held = self
            .builder
            .compare(Predicate::LLVMIntNE, held, pointer.null());
        let release = self.extracted.function.append_block("raddle.release");
        let next = self.extracted.function.append_block("raddle.next");
        self.builder.branch_if(is_held, release, next);
        self.builder.at_end(release);
        let ty = self
            .module
            .function_type(self.module.void_type(), &[pointer]);
        let function = self
            .module
            .function(&self.extracted.acquires[&acquire].function, ty);
        let call = self.builder.call(ty, function, &[held]);
        call.set_location_of(near, self.extracted.function);
        self.builder.branch(next);
        self.builder.at_end(next);
    }

    fn text(&self, content: &str) -> Value {
        let name = format!("raddle.text.{content}");
        if let Some(known) = self.module.named_global(&name) {
            return known;
        }
        let constant = self.module.string_constant(content);
        let global = self.module.add_global(&name, constant.ty());
        global.set_initializer(constant);
        global.set_constant();
        global.set_internal();
        global
    }

    /// The site's data for the runtime; laid out as `struct raddle_site`.
    fn descriptor(&self, work: &Work<'_>) -> Value {
        let candidate = work.candidate;
        let kind = match candidate.site.kind {
            SiteKind::Assertion => 0,
            SiteKind::Dereference => 1,
            SiteKind::Output => 2,
            SiteKind::Deadlock => 3,
            SiteKind::Oracle => 4,
        };
        let releases = match &work.plan {
            Some(plan) => self.releases(plan),
            None => candidate.site.kind == SiteKind::Deadlock,
        };
        let flags = if releases { FLAG_RELEASES } else { 0 };
        let (word, long) = (self.module.int_type(32), self.module.int_type(64));
        let fields = [
            self.text(&candidate.place.file),
            self.text(&self.extracted.name),
            word.constant(u64::from(candidate.place.line)),
            word.constant(kind | flags << 8),
            long.constant(0),
            long.constant(0),
            long.constant(0),
        ];
        let initial = self.module.struct_constant(&fields);
        let global = self.module.add_global("raddle.site", initial.ty());
        global.set_initializer(initial);
        global.set_internal();
        // Not among the program's own variables, which thereby stay on as few cache lines as they were.
        global.set_section("raddle_sites");
        global
    }

    /// Calls the runtime from inline assembly that keeps every register, so that the passing path pays nothing.
    fn thunk(&self, name: &str, argument: Value) -> Value {
        let code = format!("leaq -128(%rsp), %rsp\n\tcall {name}@PLT\n\tleaq 128(%rsp), %rsp");
        let ty = self
            .module
            .function_type(self.module.int_type(32), &[self.module.pointer_type()]);
        self.builder.assembly(
            &code,
            "={ax},{ax},~{memory},~{dirflag},~{fpsr},~{flags}",
            ty,
            &[argument],
        )
    }
}

/// Whether the site is an access through one pointer, which faults by itself when the pointer is invalid.
fn is_access(candidate: &Candidate) -> bool {
    candidate.site.kind == SiteKind::Dereference
        && matches!(&candidate.check, Check::Pointers(pointers) if pointers.len() == 1)
}

fn point_set(plan: &Plan) -> PointSet {
    let mut key = plan.points.clone();
    key.push(usize::MAX);
    key.extend(&plan.useless);
    key
}
