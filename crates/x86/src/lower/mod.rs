//! From decoded instructions to ops: chooses handlers, fuses pairs, drops flags that no instruction reads.

use iced_x86::{FlowControl, Instruction, OpKind};

use crate::cache::NewBlock;
use crate::engine::Observe;
use crate::fast::{
    self, OBSERVE_ADDR, OBSERVE_NONE, OBSERVE_VALUE, branch, fused, string, system, vector,
};
use crate::native::Template;
use crate::op::{Handler, LogKind, Op};
use crate::stub::{MemoryUse, StubCache, StubRef};

mod operand;
mod path;
mod products;
mod select;
mod vectors;

pub use path::Path;
use select::{FlagUse, Keeps, Lowered};

/// Most instructions in one block; small enough for the `u8` fields of an op.
pub(crate) const STEPS_MAX: u8 = 64;

/// Ops behind the last one of a block, to which its exits lead until they are linked.
pub(crate) const UNLINKED_OPS: usize = 2;

/// What a block is built from.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) pc: u64,
    /// The decoded instructions, at least one. Generic ops point to them, so they must move into the block.
    pub(crate) instructions: &'a [Instruction],
    /// Program counters that stop a run.
    pub(crate) points: &'a std::collections::BTreeSet<u64>,
    pub(crate) observe: Observe,
    pub(crate) limit: Option<u8>,
}

/// Builds the ops of a block. Instructions and frames are filled in by the caller.
pub(crate) fn lower(source: &Source<'_>, stubs: &mut StubCache) -> NewBlock {
    match source.observe {
        Observe::None => Builder::<OBSERVE_NONE>::new(source, stubs).build(),
        Observe::Addr => Builder::<OBSERVE_ADDR>::new(source, stubs).build(),
        Observe::AddrValue => Builder::<OBSERVE_VALUE>::new(source, stubs).build(),
    }
}

struct Builder<'a, const OBS: u8> {
    source: &'a Source<'a>,
    lowered: Vec<Lowered>,
    stubs: &'a mut StubCache,
}

impl<'a, const OBS: u8> Builder<'a, OBS> {
    fn new(source: &'a Source<'a>, stubs: &'a mut StubCache) -> Self {
        Self {
            source,
            lowered: Vec::new(),
            stubs,
        }
    }

    fn build(mut self) -> NewBlock {
        let instructions = self.source.instructions;
        let steps = u8::try_from(instructions.len()).expect("blocks are short");
        if OBS != OBSERVE_NONE {
            let mut head = Op::new(fast::block_head::<OBS>, self.source.pc, 0);
            head.meta = head.meta.with_access(LogKind::Block, 1);
            self.lowered
                .push(Lowered::plain(head).meaning(Template::BlockHead));
        }
        let mut at = 0;
        while at < instructions.len() {
            at += self.push(at);
        }
        self.drop_dead_flags();
        self.finish(steps)
    }

    /// Lowers the instruction at `at`, alone or with the next one; gives how many were consumed.
    fn push(&mut self, at: usize) -> usize {
        let instructions = self.source.instructions;
        let instruction = &instructions[at];
        let index = u8::try_from(at).expect("blocks are short");
        if self.source.points.contains(&instruction.ip()) {
            let point = Op::new(fast::point, instruction.ip(), index);
            self.lowered
                .push(Lowered::barrier(point).meaning(Template::Point));
        }
        let lowered = select::lower_one::<OBS>(instruction, index)
            .unwrap_or_else(|| self.generic(instruction, index));
        if let Some(next) = instructions.get(at + 1)
            && !self.source.points.contains(&next.ip())
            && let Some(pair) = fuse(&lowered, next)
        {
            self.lowered.push(pair);
            return 2;
        }
        self.lowered.push(lowered);
        1
    }

    fn generic(&mut self, instruction: &Instruction, index: u8) -> Lowered {
        let mut op = Op::new(fast::generic::generic, instruction.ip(), index);
        op.imm = std::ptr::from_ref(instruction).expose_provenance() as u64;
        if let Some(stub) = self.stubs.get_bare(instruction)
            && let Some(op) = with_stub::<OBS>(op, instruction, &stub)
        {
            return by_stub(op, &stub);
        }
        if let Some(handler) = special::<OBS>(instruction) {
            op.handler = handler;
        }
        Lowered::barrier(op)
    }

    /// Replaces handlers by ones that do not compute flags, where every flag is written again before anybody
    /// could see it. Whatever may leave the block in the middle (memory accesses, generic ops) can see flags.
    fn drop_dead_flags(&mut self) {
        let mut is_live = true;
        for lowered in self.lowered.iter_mut().rev() {
            match lowered.flags {
                FlagUse::Barrier | FlagUse::Reads => is_live = true,
                FlagUse::None => {}
                FlagUse::Writes { keeps, without } => {
                    if !is_live {
                        lowered.op.handler = without;
                        lowered.template = lowered.template.without_flags();
                    }
                    is_live = match keeps {
                        Keeps::Nothing => false,
                        Keeps::Some => is_live,
                        Keeps::SomeAndReads => true,
                    };
                }
            }
        }
    }

    fn finish(self, steps: u8) -> NewBlock {
        let last = self
            .source
            .instructions
            .last()
            .expect("a block has an instruction");
        let mut templates: Vec<Template> = Vec::with_capacity(self.lowered.len() + 1);
        templates.extend(self.lowered.iter().map(|lowered| lowered.template));
        let mut ops: Vec<Op> = self.lowered.into_iter().map(|lowered| lowered.op).collect();
        let falls_through = last.flow_control() == FlowControl::Next;
        let next_pc = last.next_ip();
        if falls_through {
            let (handler, template): (Handler, _) = if self.source.limit.is_some() {
                (fast::cut, Template::Interpreted)
            } else {
                (branch::jmp, Template::Jump)
            };
            templates.push(template);
            ops.push(Op::new(handler, next_pc, steps));
        }
        let end = ops.len() - 1;
        // The exits of the last op lead to ops that ask for the block to be linked.
        let taken = if falls_through {
            next_pc
        } else {
            last.near_branch_target()
        };
        // The one for falling through comes first: a generic conditional branch that is not taken runs into it.
        ops.push(Op::new(fast::unlinked, next_pc, 0));
        ops.push(Op::new(fast::unlinked, taken, 0));
        let mut ops = ops.into_boxed_slice();
        for op in ops.iter_mut().take(end + 1) {
            op.block_steps = steps;
        }
        let base = ops.as_ptr();
        ops[end].alt = base.wrapping_add(end + 1);
        ops[end].next = base.wrapping_add(end + 2);
        ops[end + 1].next = base.wrapping_add(end);
        ops[end + 2].next = base.wrapping_add(end);
        NewBlock {
            pc: self.source.pc,
            end: next_pc,
            ops,
            templates,
            instructions: Box::default(),
            steps,
            limit: self.source.limit,
            frames: [None; 2],
        }
    }
}

/// The handler of an instruction that needs the decoded form only in unusual cases.
fn special<const OBS: u8>(instruction: &Instruction) -> Option<Handler> {
    use iced_x86::{Code, Mnemonic};
    let is_wide = instruction
        .op_kinds()
        .any(|kind| matches!(kind, OpKind::MemoryESRDI | OpKind::MemorySegRSI));
    let is_bulk = OBS == OBSERVE_NONE
        && is_wide
        && instruction.has_rep_prefix()
        && instruction.segment_prefix() == iced_x86::Register::None;
    match instruction.mnemonic() {
        Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq if is_bulk => {
            Some(string::select(true, instruction.memory_size().size()))
        }
        Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq if is_bulk => {
            Some(string::select(false, instruction.memory_size().size()))
        }
        Mnemonic::Cli => Some(system::cli),
        Mnemonic::Sti => Some(system::sti),
        Mnemonic::Swapgs => Some(system::swapgs),
        Mnemonic::Pushfq if instruction.code() == Code::Pushfq => Some(system::pushf::<OBS>),
        _ => None,
    }
}

/// The op with a native stub in front of the generic interpreter, which remains for the unusual cases.
fn with_stub<const OBS: u8>(op: Op, instruction: &Instruction, stub: &StubRef) -> Option<Op> {
    let mut op = op;
    if stub.memory != MemoryUse::None {
        operand::memory(instruction, &mut op)?;
        let kind = if stub.memory == MemoryUse::Write {
            LogKind::Write
        } else {
            LogKind::Read
        };
        op.meta = op.meta.with_access(kind, usize::from(stub.bytes));
        (op.src, op.dst) = (stub.bytes, stub.align - 1);
    }
    op.next = (stub.entry as *const ()).cast();
    op.handler = vector::select_stub::<OBS>(stub);
    Some(op)
}

/// Only memory, flags and floating-point exceptions are reasons to leave the op to the generic interpreter.
fn by_stub(op: Op, stub: &StubRef) -> Lowered {
    if stub.sets_flags {
        return Lowered::barrier(op);
    }
    let template = Template::Stub {
        length: stub.length,
        memory: stub.memory,
        is_float: stub.uses_mxcsr,
    };
    if stub.memory == MemoryUse::None && !stub.uses_mxcsr {
        Lowered::plain(op).meaning(template)
    } else {
        Lowered::barrier(op).meaning(template)
    }
}

/// One op for a comparison and the conditional jump behind it.
fn fuse(first: &Lowered, second: &Instruction) -> Option<Lowered> {
    let Template::Arithmetic {
        form, kind, size, ..
    } = first.template
    else {
        return None;
    };
    let condition = operand::condition(second)?;
    if !second.is_jcc_short_or_near() {
        return None;
    }
    let handler = fused::select(form, kind, size, condition)?;
    let template = Template::Branch {
        form,
        kind,
        size,
        condition,
    };
    let op = Op {
        handler,
        ..first.op
    };
    Some(Lowered::barrier(op).meaning(template))
}
