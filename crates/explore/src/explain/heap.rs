//! Wrong uses of heap memory.

use raddle_linux::{Block, HeapError, HeapErrorKind, LinuxWorld, Origin};
use raddle_report::Finding;
use raddle_report::finding::Step;
use raddle_report::words::counted;
use raddle_symbols::SymbolSpace;

use super::stack_note;
use crate::names::{label, short_file};
use crate::session::Session;
use crate::stack::{self, describe, own, stack_of};

/// The world stands before the wrong instruction, or at the entry of the wrong call.
pub(super) fn describe_error(session: &mut Session, error: &HeapError, finding: &mut Finding) {
    let world = &mut session.world;
    let symbols = world.symbols(error.context).unwrap_or_default();
    let lines = stack::stack(world, error.context);
    let thread = label(world, error.context);
    let own = own(&lines);
    let place = own.map_or_else(String::new, |line| format!(" at {}", describe(&line.place)));
    let verb = |writes: bool| if writes { "writes" } else { "reads" };
    let (what, action) = match error.kind {
        HeapErrorKind::UseAfterFree { writes } => {
            ("use after free", format!("{} freed memory", verb(writes)))
        }
        HeapErrorKind::DoubleFree => ("double free", "frees the block again".into()),
        HeapErrorKind::InvalidFree => ("invalid free", "frees what is no block".into()),
        HeapErrorKind::Overflow { writes } => (
            "heap overflow",
            format!("{} behind the end of a block", verb(writes)),
        ),
    };
    finding.title = format!("{what}: {thread} {action}{place}");
    finding.why = reason(world, error);
    if let Some(line) = own {
        let at = line.place.clone();
        finding.steps.push(Step {
            context: thread.clone(),
            action: format!("{action}{}", offset(error)),
            excerpt: stack::excerpt(&at),
            place: short_file(at),
            locks: Vec::new(),
        });
    }
    finding
        .notes
        .extend(stack_note(&format!("stack of {thread}"), &lines));
    if let Some(block) = &error.block {
        finding.notes.extend(life(world, &symbols, block));
    }
}

fn offset(error: &HeapError) -> String {
    match &error.block {
        Some(block) if error.addr > block.addr => {
            let bytes = error.addr - block.addr;
            format!(", {} from the start of the block", counted(bytes, "byte"))
        }
        _ => String::new(),
    }
}

fn reason(world: &LinuxWorld, error: &HeapError) -> String {
    let Some(block) = &error.block else {
        return format!(
            "{:#x} was never given out by the allocator, or lies inside a block",
            error.addr
        );
    };
    let size = counted(block.size, "byte");
    let thread = label(world, error.context);
    match (&block.freed, error.kind) {
        (Some(freed), _) if freed.context == error.context => {
            format!("{thread} itself has freed this block of {size} before")
        }
        (Some(freed), _) => format!(
            "in this order {} frees this block of {size} before {thread} is done with it",
            label(world, freed.context)
        ),
        (None, _) => format!("the block has {size}"),
    }
}

/// Where the block came from and where it went.
fn life(world: &LinuxWorld, symbols: &SymbolSpace, block: &Block) -> Vec<String> {
    let note = |verb: &str, origin: &Origin| {
        let who = label(world, origin.context);
        stack_note(&format!("{verb} by {who}"), &stack_of(symbols, origin))
    };
    let allocated = note("allocated", &block.allocated);
    let freed = block
        .freed
        .as_ref()
        .and_then(|origin| note("freed", origin));
    allocated.into_iter().chain(freed).collect()
}
