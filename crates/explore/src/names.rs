//! Names for contexts, memory and code.

use raddle_linux::{Block, LinuxWorld};
use raddle_report::place::Code;
use raddle_report::{Context, Word};
use raddle_symbols::SymbolSpace;
use raddle_symbols::dwarf::{LocalPlace, LocalQuestion};
use raddle_symbols::unwind::{Machine, RSP};
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

/// The variable at an address of a context's process, the heap block with the place of its allocation, or the address
/// itself.
pub(crate) fn name_of(
    world: &mut LinuxWorld,
    symbols: &SymbolSpace,
    who: ContextId,
    addr: u64,
) -> String {
    match symbols.data_at(addr) {
        Some(place) if place.rest == 0 => format!("`{}`", without_insides(&place.path)),
        Some(place) => format!("`{}`+{}", place.path, place.rest),
        None => block_name(world, symbols, who, addr)
            .or_else(|| stack_name(world, addr))
            .or_else(|| file_name(world, who, addr))
            .unwrap_or_else(|| format!("memory at {addr:#x}")),
    }
}

/// Memory that a file backs, by the name of the file.
fn file_name(world: &LinuxWorld, who: ContextId, addr: u64) -> Option<String> {
    let label = world.area_name(who, addr)?;
    let (_, file) = label.rsplit_once('/')?;
    Some(format!("memory of `{file}` at {addr:#x}"))
}

/// A variable without what its library calls its parts: the first field of a pthread object, the word of a Rust mutex,
/// the cell around what the mutex protects.
fn without_insides(path: &str) -> String {
    let path = path.split(".__data").next().unwrap_or_default();
    let path = path.strip_suffix(".inner.futex").unwrap_or(path);
    path.replace(".data.value", "")
}

/// How far above a stack pointer memory is called part of that stack.
const STACK_BYTES: u64 = 64 << 10;

/// Frames in which a local variable is looked for.
const FRAMES_MAX: usize = 32;

/// The local variable at an address, or at least the thread on whose stack it is.
fn stack_name(world: &mut LinuxWorld, addr: u64) -> Option<String> {
    // The red zone below the stack pointer is in use, too.
    let holds = |who: &ContextId| {
        let registers = world.registers(*who);
        let top = registers.and_then(|registers| registers.get(RSP));
        top.is_some_and(|top| addr.wrapping_sub(top.wrapping_sub(128)) < STACK_BYTES)
    };
    let owner = world.contexts().iter().map(|(id, _)| id).find(holds)?;
    let local = local_name(world, owner, addr).map(|name| format!("`{name}`"));
    Some(local.unwrap_or_else(|| format!("the stack of {}", label(world, owner))))
}

/// `main::account.balance`: the function whose frame contains an address, and its variable there.
fn local_name(world: &mut LinuxWorld, owner: ContextId, addr: u64) -> Option<String> {
    let symbols = world.symbols(owner)?;
    let frames = world.frames(owner, &symbols, FRAMES_MAX);
    let frame = frames
        .iter()
        .find(|frame| frame.cfa.is_some_and(|cfa| addr < cfa))?;
    let pc = frame.lookup_address()?;
    let mapping = symbols.mapping_at(pc)?;
    let debug = mapping.module.debug_info()?;
    let mut question = LocalQuestion {
        at: mapping.link(pc),
        bias: mapping.bias,
        machine: Machine {
            registers: frame.registers,
            cfa: frame.cfa,
            read: &mut |addr| world.read_word(owner, addr),
        },
    };
    let locals = debug.locals(&mut question);
    let (local, offset) = locals.iter().find_map(|local| {
        let LocalPlace::Memory(at) = local.place else {
            return None;
        };
        let size = debug.type_size(local.type_ref?)?;
        let offset = addr.checked_sub(at)?;
        (offset < size).then_some((local, offset))
    })?;
    let field = debug.field_at(local.type_ref?, offset)?;
    let function = stack::function_at(&symbols, pc)?;
    let rest = match field.rest {
        0 => String::new(),
        rest => format!("+{rest}"),
    };
    let path = format!("{}{}{rest}", local.name, field.path);
    Some(format!("{function}::{}", without_insides(&path)))
}

/// The heap block that contains an address; a context that has ended has shared its memory with the first one.
pub(crate) fn block_at(world: &LinuxWorld, who: ContextId, addr: u64) -> Option<Block> {
    let of = |who| world.block_at(who, addr);
    of(who).or_else(|| of(ContextId(0)))
}

/// `block(queue.c:12)+16`.
fn block_name(
    world: &LinuxWorld,
    symbols: &SymbolSpace,
    who: ContextId,
    addr: u64,
) -> Option<String> {
    let block = block_at(world, who, addr)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_show_the_insides_of_locks() {
        assert_eq!(without_insides("queue.lock.__data.__lock"), "queue.lock");
        assert_eq!(without_insides("shop::SEATS.inner.futex"), "shop::SEATS");
        assert_eq!(
            without_insides("shop::SEATS.data.value.free"),
            "shop::SEATS.free"
        );
    }
}
