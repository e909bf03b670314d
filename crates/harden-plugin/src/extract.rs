//! From LLVM IR to the model of the analysis: effects of instructions and the failure sites among them.

use std::collections::{BTreeMap, BTreeSet};

use raddle_harden::analysis::dominators;
use raddle_harden::analysis::interproc::Body;
use raddle_harden::analysis::model::{
    Acquire, Block, Effect, Function, Inst, InstId, LockHow, Operand, Shape, Site, WHOLE_SLOT,
};
use raddle_harden::calls::Call;
use raddle_harden::invariant::Expression;
use raddle_harden::settings::Settings;

use crate::ir::{Module, Opcode, Personality, Place, Type, Value};
use crate::names::{self, Callee, Lock};

mod calls;
mod candidates;
mod locks;

pub(crate) use locks::Shared;

/// The largest write that is logged, in bytes, and the bytes of a log entry; known to the runtime.
const LOGGED_BYTES_MAX: u64 = 64;
const ENTRY_BYTES: u64 = 8;
/// The largest stack slot that is saved as a whole.
const SAVED_BYTES_MAX: u64 = 128;

/// A function with everything that emission needs.
#[derive(Debug)]
pub(crate) struct Extracted {
    pub(crate) function: Value,
    /// As its programmer wrote it.
    pub(crate) name: String,
    /// Taken by the pass for the module-wide analysis.
    pub(crate) body: Option<Body>,
    pub(crate) insts: Vec<Value>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) acquires: BTreeMap<InstId, GiveBack>,
    /// Calls that give something back.
    pub(crate) releases: BTreeSet<InstId>,
    /// What acquisitions take and releases give back: equal for the same object.
    pub(crate) object_names: BTreeMap<InstId, u64>,
    pub(crate) candidates: Vec<Candidate>,
    /// Ordinary writes to memory that others may know.
    pub(crate) stores: BTreeSet<InstId>,
    /// Bytes that each of them covers.
    pub(crate) log_bytes: BTreeMap<InstId, u64>,
    /// Private slots, by number.
    pub(crate) slots: Vec<Value>,
    /// Accesses to variables that only this module can reach.
    pub(crate) accesses: BTreeMap<InstId, u32>,
}

/// Part of a private stack slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) slot: Value,
    pub(crate) offset: i64,
    pub(crate) ty: Type,
}

/// How an acquisition is undone.
#[derive(Debug, Clone)]
pub(crate) struct GiveBack {
    pub(crate) function: String,
    pub(crate) what: Acquired,
    /// It may fail and be tried again.
    pub(crate) is_try: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acquired {
    /// The first argument, if the result is zero or there is none.
    FirstArgument,
    Result,
    /// The pointer of a compare-exchange that succeeded.
    Exchanged,
}

/// A possible site.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) site: Site,
    /// The instruction that fails, for its place and to act on.
    pub(crate) inst: Value,
    pub(crate) check: Check,
    /// The place that the user knows.
    pub(crate) place: Place,
    /// That place and all others of the inlined code.
    pub(crate) places: Vec<Place>,
    /// Only a caller can make it come out differently.
    pub(crate) only_from_callers: bool,
}

/// How the failure is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    /// Being there is the failure.
    Reached,
    /// One of these pointers is below the bound.
    Pointers(Vec<Value>),
    /// The oracle's argument is zero.
    Oracle(Value),
    /// A value that was read just before is not as it always was.
    Invariant(Value, Expression),
    /// An output that nothing checks.
    Unchecked,
    Mutex(Lock),
}

/// Numbers of the defined functions, by handle.
pub(crate) type FunctionNumbers = BTreeMap<usize, usize>;

struct Extractor<'a> {
    module: Module,
    settings: &'a Settings,
    numbers: &'a FunctionNumbers,
    shared: &'a mut Shared,
    function: Value,
    inst_numbers: BTreeMap<usize, InstId>,
    arg_numbers: BTreeMap<usize, usize>,
    slots: BTreeMap<usize, usize>,
    slot_privacy: BTreeMap<usize, bool>,
    personality: Personality,
    model: Function,
    out: Extracted,
}

/// Builds the model of one function.
pub(crate) fn extract(
    module: Module,
    function: Value,
    settings: &Settings,
    numbers: &FunctionNumbers,
    shared: &mut Shared,
) -> Extracted {
    let is_supported = !function.is_unsupported();
    let out = Extracted {
        function,
        name: function.readable_name(),
        body: None,
        insts: Vec::new(),
        cells: Vec::new(),
        acquires: BTreeMap::new(),
        releases: BTreeSet::new(),
        object_names: BTreeMap::new(),
        candidates: Vec::new(),
        stores: BTreeSet::new(),
        log_bytes: BTreeMap::new(),
        slots: Vec::new(),
        accesses: BTreeMap::new(),
    };
    let mut extractor = Extractor {
        module,
        settings,
        numbers,
        shared,
        function,
        inst_numbers: BTreeMap::new(),
        arg_numbers: BTreeMap::new(),
        slots: BTreeMap::new(),
        slot_privacy: BTreeMap::new(),
        personality: function.personality(),
        model: Function::default(),
        out,
    };
    extractor.number();
    extractor.fill();
    extractor.find_candidates();
    let objects = extractor.model.objects.iter();
    extractor.out.object_names = objects.map(|(&inst, object)| (inst, object.name)).collect();
    extractor.out.body = Some(Body {
        idom: dominators::immediate(&extractor.model),
        function: extractor.model,
        is_supported,
        is_the_one: function.is_the_definition(),
    });
    extractor.out
}

impl Extractor<'_> {
    fn number(&mut self) {
        for (index, argument) in self.function.parameters().into_iter().enumerate() {
            self.arg_numbers.insert(argument.key(), index);
        }
        for block in self.function.blocks() {
            for inst in block.instructions() {
                self.inst_numbers.insert(inst.key(), self.out.insts.len());
                self.out.insts.push(inst);
            }
        }
    }

    fn fill(&mut self) {
        let blocks = self.function.blocks();
        let numbers: BTreeMap<usize, usize> = blocks
            .iter()
            .enumerate()
            .map(|(index, block)| (block.key(), index))
            .collect();
        let mut model = std::mem::take(&mut self.model);
        for (index, block) in blocks.iter().enumerate() {
            let first = model.insts.len();
            let mut body = None;
            for inst in block.instructions() {
                let is_head =
                    inst.opcode() == Opcode::LLVMPHI || index == 0 && inst.is_static_slot();
                if !is_head && body.is_none() {
                    body = Some(model.insts.len());
                }
                let number = model.insts.len();
                let details = self.instruction(inst, number);
                model.insts.push(details);
            }
            if matches!(
                block.terminator().opcode(),
                Opcode::LLVMRet | Opcode::LLVMResume
            ) {
                model.returns.insert(index);
            }
            let mut succs: Vec<usize> = Vec::new();
            for succ in block.terminator().successors() {
                let succ = numbers[&succ.key()];
                if !succs.contains(&succ) {
                    succs.push(succ);
                }
            }
            model.blocks.push(Block {
                first,
                end: model.insts.len(),
                body: body.unwrap_or(first),
                succs,
                preds: Vec::new(),
            });
        }
        model.link();
        model.lock_uses = std::mem::take(&mut self.model.lock_uses);
        model.objects = std::mem::take(&mut self.model.objects);
        model.calls = std::mem::take(&mut self.model.calls);
        model.small_slots = std::mem::take(&mut self.model.small_slots);
        model.unknown_calls = std::mem::take(&mut self.model.unknown_calls);
        model.log_entries = self
            .out
            .log_bytes
            .iter()
            .filter_map(|(&inst, &bytes)| {
                Some((inst, usize::try_from(bytes.div_ceil(ENTRY_BYTES)).ok()?))
            })
            .collect();
        self.model = model;
    }

    fn operand(&self, value: Value) -> Option<Operand> {
        if let Some(&inst) = self.inst_numbers.get(&value.key()) {
            return Some(Operand::Inst(inst));
        }
        self.arg_numbers
            .get(&value.key())
            .map(|&number| Operand::Arg(number))
    }

    fn instruction(&mut self, inst: Value, number: InstId) -> Inst {
        let operands = inst
            .operands()
            .into_iter()
            .filter_map(|value| self.operand(value))
            .collect();
        Inst {
            effect: self.effect(inst, number),
            operands,
            shape: self.shape(inst),
        }
    }

    fn shape(&self, inst: Value) -> Shape {
        match inst.opcode() {
            Opcode::LLVMPHI => Shape::Phi,
            Opcode::LLVMBr | Opcode::LLVMSwitch if inst.successors().len() > 1 => Shape::Choice,
            Opcode::LLVMCall | Opcode::LLVMInvoke
                if self.may_have_pad(inst) && inst.can_be_invoke() =>
            {
                match self.numbers.get(&inst.called().key()) {
                    Some(&callee) => Shape::Call {
                        callee,
                        passed: inst
                            .arguments()
                            .into_iter()
                            .map(|value| self.operand(value))
                            .collect(),
                    },
                    None => Shape::Plain,
                }
            }
            _ => Shape::Plain,
        }
    }

    /// Whether a call may get a landing pad of ours. Those in Rust functions are finished in the machine code.
    fn may_have_pad(&self, call: Value) -> bool {
        match self.personality {
            Personality::None | Personality::Cpp => call.opcode() == Opcode::LLVMCall,
            Personality::Rust => !self.settings.yields_bitcode,
            Personality::Other => false,
        }
    }

    fn effect(&mut self, inst: Value, number: InstId) -> Effect {
        match inst.opcode() {
            Opcode::LLVMLoad => {
                self.note_access(inst.operand(0), number);
                self.load_effect(inst)
            }
            Opcode::LLVMStore => {
                self.note_access(inst.operand(1), number);
                self.store_effect(inst, number)
            }
            Opcode::LLVMAlloca if inst.is_static_slot() => Effect::None,
            Opcode::LLVMAlloca
            | Opcode::LLVMFence
            | Opcode::LLVMAtomicRMW
            | Opcode::LLVMVAArg
            | Opcode::LLVMLandingPad => Effect::Destroy,
            Opcode::LLVMAtomicCmpXchg => self.exchange_effect(inst, number),
            Opcode::LLVMCall => self.call_effect(inst, number),
            Opcode::LLVMInvoke => self.invoke_effect(inst, number),
            _ => Effect::None,
        }
    }

    /// The compare-exchange with which Rust's mutex is taken when no thread holds it.
    fn exchange_effect(&mut self, inst: Value, number: InstId) -> Effect {
        let pointer = inst.operand(0);
        let takes = inst.operand(1).is_null() && inst.operand(2).is_constant();
        let is_mutex = takes
            && self.out.insts.iter().any(|&other| {
                matches!(other.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke)
                    && other.callee_name().is_some_and(|name| {
                        names::classify(&name, self.settings) == Callee::RustLock
                    })
                    && other.arguments().first() == Some(&pointer)
            });
        if !is_mutex {
            return Effect::Destroy;
        }
        self.note_lock(pointer, number, LockHow::Tries);
        self.out.acquires.insert(
            number,
            GiveBack {
                function: names::RUST_UNLOCK.into(),
                what: Acquired::Exchanged,
                is_try: false,
            },
        );
        Effect::Acquire(Acquire::Lock)
    }

    fn slot_of(&mut self, object: Value) -> Option<usize> {
        if !object.is_instruction() || object.opcode() != Opcode::LLVMAlloca {
            return None;
        }
        let is_private = *self
            .slot_privacy
            .entry(object.key())
            .or_insert_with(|| object.is_private_slot());
        is_private.then(|| self.slot_number(object))
    }

    /// The slot of which an intrinsic says when it lives, private or not. Where it begins to live nothing of its contents
    /// counts any more, and where it began inside the region nothing that lives longer can lie in its place.
    fn lifetime_slot(&mut self, object: Value) -> Option<usize> {
        (object.is_instruction() && object.opcode() == Opcode::LLVMAlloca)
            .then(|| self.slot_number(object))
    }

    fn slot_number(&mut self, object: Value) -> usize {
        if let Some(&known) = self.slots.get(&object.key()) {
            return known;
        }
        let next = self.slots.len();
        self.slots.insert(object.key(), next);
        self.out.slots.push(object);
        if object
            .slot_size()
            .is_some_and(|size| size <= SAVED_BYTES_MAX)
        {
            self.model.small_slots.insert(next);
        }
        next
    }

    fn load_effect(&mut self, inst: Value) -> Effect {
        if inst.is_volatile() && self.settings.volatile_is_io {
            return Effect::Destroy;
        }
        let object = inst.operand(0).underlying();
        if let Some(slot) = self.slot_of(object) {
            return Effect::SlotRead { slot };
        }
        if inst.has_invariant_load() || object.is_constant_global() || is_thread_local(object) {
            return Effect::None;
        }
        Effect::SharedRead
    }

    fn store_effect(&mut self, inst: Value, number: InstId) -> Effect {
        if inst.is_atomic() || inst.is_volatile() && self.settings.volatile_is_io {
            return Effect::Destroy;
        }
        let (value, pointer) = (inst.operand(0), inst.operand(1));
        let object = pointer.underlying();
        if let Some(slot) = self.slot_of(object) {
            let cell = pointer
                .constant_offset()
                .filter(|_| value.ty().is_first_class_scalar())
                .or_else(|| (pointer == object).then_some((object, 0)))
                .map_or(WHOLE_SLOT, |(base, offset)| {
                    self.cell(Cell {
                        slot: base,
                        offset,
                        ty: value.ty(),
                    })
                });
            return Effect::SlotWrite { slot, cell };
        }
        if let Some(alloc) = self.fresh(object) {
            return Effect::FreshWrite { alloc };
        }
        let size = inst.store_size();
        if size <= LOGGED_BYTES_MAX && !inst.is_volatile() {
            self.out.stores.insert(number);
            self.out.log_bytes.insert(number, size);
        }
        Effect::Destroy
    }

    fn cell(&mut self, cell: Cell) -> usize {
        if let Some(known) = self.out.cells.iter().position(|other| *other == cell) {
            return known;
        }
        self.out.cells.push(cell);
        self.out.cells.len() - 1
    }

    fn call_effect(&mut self, inst: Value, number: InstId) -> Effect {
        let Some(name) = inst.callee_name() else {
            self.note_call(inst, number);
            return memory_effect(inst);
        };
        if name.starts_with("llvm.") {
            return self.intrinsic_effect(inst, number, &name);
        }
        match names::classify(&name, self.settings) {
            Callee::Oracle => Effect::None,
            Callee::RustPanicCount => Effect::SharedRead,
            Callee::Lock(lock) if !inst.arguments().is_empty() => {
                self.note_lock(inst.arguments()[0], number, lock.takes);
                self.acquire(number, lock.unlock, Acquired::FirstArgument, Acquire::Lock)
            }
            Callee::Unlock if !inst.arguments().is_empty() => {
                self.note_lock(inst.arguments()[0], number, LockHow::Releases);
                self.out.releases.insert(number);
                Effect::Release
            }
            Callee::Free if !inst.arguments().is_empty() => {
                self.note_object(inst.arguments()[0], number);
                self.out.releases.insert(number);
                Effect::Release
            }
            Callee::RustLock => {
                self.note_lock(inst.arguments()[0], number, LockHow::Takes);
                self.acquire(
                    number,
                    names::RUST_UNLOCK.into(),
                    Acquired::FirstArgument,
                    Acquire::Lock,
                )
            }
            Callee::Alloc { free } if inst.ty().is_pointer() => {
                self.note_object(inst, number);
                self.acquire(number, free, Acquired::Result, Acquire::Memory)
            }
            Callee::Harmless(call) => self.harmless_effect(inst, number, call),
            callee => {
                self.note_call(inst, number);
                match memory_effect(inst) {
                    Effect::Destroy if callee == Callee::Other && self.may_be_promised(inst) => {
                        Effect::PromisedCall
                    }
                    effect => effect,
                }
            }
        }
    }

    /// Whether another object of the program may define the called function and promise that it is harmless. Libraries
    /// that are not hardened promise nothing.
    fn may_be_promised(&self, inst: Value) -> bool {
        const OF_LIBRARIES: [&str; 8] = [
            "pthread_", "sem_", "mtx_", "cnd_", "_ZSt", "_ZNSt", "_ZNKSt", "__",
        ];
        let called = inst.called();
        let name = called.name();
        called.is_function()
            && !self.numbers.contains_key(&called.key())
            && !called.is_weak()
            && !OF_LIBRARIES.iter().any(|prefix| name.starts_with(prefix))
            && !called.is_library_function()
    }

    /// A call with a landing pad of the program's own. What it takes could not be noted on its normal edge alone, so only
    /// what harms nothing is known.
    fn invoke_effect(&mut self, inst: Value, number: InstId) -> Effect {
        let callee = inst
            .callee_name()
            .map(|name| names::classify(&name, self.settings));
        match callee {
            Some(Callee::Harmless(call @ (Call::Pure | Call::Read))) => {
                self.harmless_effect(inst, number, call)
            }
            Some(Callee::Unlock) => {
                self.note_lock(inst.arguments()[0], number, LockHow::Releases);
                Effect::Destroy
            }
            _ => {
                self.note_call(inst, number);
                Effect::Destroy
            }
        }
    }

    /// A call of the module's own functions, or of one that nothing is known of.
    fn note_call(&mut self, inst: Value, number: InstId) {
        if let Some(&callee) = self.numbers.get(&inst.called().key()) {
            self.model.calls.insert(number, callee);
        } else if !inst.called().is_inline_asm() {
            self.model.unknown_calls.insert(number);
        }
    }

    /// The allocation of this function that returned an object.
    fn fresh(&self, object: Value) -> Option<InstId> {
        let alloc = *self.inst_numbers.get(&object.key())?;
        let give_back = self.out.acquires.get(&alloc)?;
        (give_back.what == Acquired::Result).then_some(alloc)
    }

    fn acquire(
        &mut self,
        number: InstId,
        function: String,
        what: Acquired,
        kind: Acquire,
    ) -> Effect {
        let is_try = self.model.tries(number);
        let details = GiveBack {
            function,
            what,
            is_try,
        };
        self.out.acquires.insert(number, details);
        Effect::Acquire(kind)
    }

    fn intrinsic_effect(&mut self, inst: Value, number: InstId, name: &str) -> Effect {
        let is_begin = name.starts_with("llvm.lifetime.start");
        if is_begin || name.starts_with("llvm.lifetime.end") {
            let object = inst.arguments().last().copied().map(Value::underlying);
            return match object.and_then(|object| self.lifetime_slot(object)) {
                Some(slot) if is_begin => Effect::SlotBegin { slot },
                Some(slot) => Effect::SlotEnd { slot },
                None => Effect::Destroy,
            };
        }
        if ["llvm.memset.", "llvm.memcpy.", "llvm.memmove."]
            .iter()
            .any(|known| name.starts_with(known))
        {
            let arguments = inst.arguments();
            if !name.starts_with("llvm.memset.") {
                self.note_access(arguments[1], number);
            }
            let effect = self.write_behind(arguments[0], number);
            let is_io = inst.is_volatile() && self.settings.volatile_is_io;
            return if is_io { Effect::Destroy } else { effect };
        }
        if [
            "llvm.assume",
            "llvm.dbg.",
            "llvm.threadlocal.address",
            "llvm.experimental.noalias.scope",
        ]
        .iter()
        .any(|known| name.starts_with(known))
        {
            return Effect::None;
        }
        memory_effect(inst)
    }
}

fn is_thread_local(object: Value) -> bool {
    object.is_thread_local()
        || object.is_instruction()
            && object.opcode() == Opcode::LLVMCall
            && object
                .callee_name()
                .is_some_and(|name| name.starts_with("llvm.threadlocal"))
}

/// The effect of a call that has no meaning of its own.
fn memory_effect(inst: Value) -> Effect {
    if inst.may_write() {
        Effect::Destroy
    } else if inst.may_read() {
        Effect::SharedRead
    } else {
        Effect::None
    }
}
