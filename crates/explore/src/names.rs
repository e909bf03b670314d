//! Names for contexts, memory and code.

use raddle_linux::LinuxWorld;
use raddle_report::place::Code;
use raddle_report::{Context, Word};
use raddle_symbols::SymbolSpace;
use raddle_symbols::unwind::RSP;
use raddle_world::{ContextId, World};

use crate::stack::{self, own};

/// `thread 2 'name'`: the first context is thread 1.
pub(crate) fn label(world: &LinuxWorld, who: ContextId) -> String {
    let contexts = world.contexts();
    let (Some(context), Some(first)) = (contexts.find(who), contexts.find(ContextId(0))) else {
        // A run that was broken off has not created it yet.
        return format!("thread {}", who.0 + 1);
    };
    if context.parent.is_none() && who.0 > 0 {
        // A scripted client.
        return context.name.to_string();
    }
    if context.name.is_empty() || (who.0 > 0 && context.name == first.name) {
        format!("thread {}", who.0 + 1)
    } else if who.0 == 0 {
        "thread 1 (main)".into()
    } else {
        format!("thread {} `{}`", who.0 + 1, context.name)
    }
}

/// All contexts of a world, in the order of their numbers.
pub(crate) fn contexts(world: &LinuxWorld) -> Vec<Context> {
    let context = |(id, context): (ContextId, &raddle_world::Context)| Context {
        label: label(world, id),
        path: context.path.to_vec(),
        created: None,
    };
    world.contexts().iter().map(context).collect()
}

/// The variable at an address, the heap block with the place of its allocation, or the address itself.
pub(crate) fn name_of(world: &LinuxWorld, symbols: &SymbolSpace, addr: u64) -> String {
    match symbols.data_at(addr) {
        Some(place) if place.rest == 0 => {
            // The first field of a pthread object is an implementation detail.
            let path = place.path.split(".__data").next().unwrap_or_default();
            format!("`{path}`")
        }
        Some(place) => format!("`{}`+{}", place.path, place.rest),
        None => block_name(world, symbols, addr)
            .or_else(|| stack_name(world, addr))
            .unwrap_or_else(|| format!("memory at {addr:#x}")),
    }
}

/// How far above a stack pointer memory is called part of that stack.
const STACK_BYTES: u64 = 64 << 10;

/// The thread on whose stack an address is.
fn stack_name(world: &LinuxWorld, addr: u64) -> Option<String> {
    // The red zone below the stack pointer is in use, too.
    let holds = |who: &ContextId| {
        let registers = world.registers(*who);
        let top = registers.and_then(|registers| registers.get(RSP));
        top.is_some_and(|top| addr.wrapping_sub(top.wrapping_sub(128)) < STACK_BYTES)
    };
    let owner = world.contexts().iter().map(|(id, _)| id).find(holds)?;
    Some(format!("the stack of {}", label(world, owner)))
}

/// `block(queue.c:12)+16`.
fn block_name(world: &LinuxWorld, symbols: &SymbolSpace, addr: u64) -> Option<String> {
    let block = world.block_at(ContextId(0), addr)?;
    let lines = stack::stack_of(symbols, &block.allocated);
    let place = &own(&lines)?.place;
    if place.line == 0 {
        return None;
    }
    let file = place.file.rsplit('/').next().unwrap_or_default();
    let offset = addr - block.addr;
    let rest = if offset == 0 {
        String::new()
    } else {
        format!("+{offset}")
    };
    Some(format!("`block({file}:{}){rest}`", place.line))
}

/// The name of an instruction that outlives the run.
pub(crate) fn code_at(symbols: &SymbolSpace, pc: u64) -> Option<Code> {
    let mapping = symbols.mapping_at(pc)?;
    Some(Code {
        image: mapping.name.to_string(),
        offset: Word(mapping.link(pc).0),
    })
}
