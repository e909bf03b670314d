//! Wrong uses of heap memory.

use raddle_linux::{HeapError, HeapErrorKind, LinuxWorld, Origin};
use raddle_report::evidence::{Block, Moment};
use raddle_report::words::counted;
use raddle_report::{Action, Finding, Step, Word};
use raddle_symbols::SymbolSpace;

use super::{held, quote};
use crate::names::label;
use crate::session::Session;
use crate::stack::{self, frames, own, stack_of};
use crate::steps::number;

/// The world stands before the wrong instruction, or at the entry of the wrong call.
pub(super) fn describe_error(session: &mut Session, error: &HeapError, finding: &mut Finding) {
    let world = &mut session.world;
    let symbols = world.symbols(error.context).unwrap_or_default();
    let lines = stack::stack(world, error.context);
    let thread = label(world, error.context);
    let own = own(&lines);
    let place = own.map_or_else(String::new, |line| format!(" at {}", line.place.describe()));
    let offset = match &error.block {
        Some(block) => error.addr.saturating_sub(block.addr),
        None => 0,
    };
    let verb = |writes: bool| if writes { "writes" } else { "reads" };
    let (what, doing, action) = match error.kind {
        HeapErrorKind::UseAfterFree { writes } => (
            "use after free",
            format!("{} freed memory", verb(writes)),
            Action::UseAfterFree { writes, offset },
        ),
        HeapErrorKind::DoubleFree => (
            "double free",
            "frees the block again".into(),
            Action::FreeAgain,
        ),
        HeapErrorKind::InvalidFree => (
            "invalid free",
            "frees what is no block".into(),
            Action::FreeOther,
        ),
        HeapErrorKind::Overflow { writes } => (
            "heap overflow",
            format!("{} behind the end of a block", verb(writes)),
            Action::Overflow { writes, offset },
        ),
    };
    finding.title = format!("{what}: {thread} {doing}{place}");
    finding.why = reason(world, error);
    if let Some(line) = own {
        let place = line.place.clone();
        quote(finding, &place);
        let step = Step {
            address: Some(Word(error.addr)),
            stack: finding.stack(frames(&lines)),
            locks: held(world, error.context),
            ..Step::new(number(error.context), action, place)
        };
        finding.steps.push(step);
    }
    if let Some(block) = &error.block {
        let allocated = moment(finding, &symbols, &block.allocated);
        let freed = block.freed.as_ref();
        finding.block = Some(Block {
            address: Word(block.addr),
            size: block.size,
            allocated,
            freed: freed.map(|origin| moment(finding, &symbols, origin)),
        });
    }
}

/// When the block came, or went.
fn moment(finding: &mut Finding, symbols: &SymbolSpace, origin: &Origin) -> Moment {
    Moment {
        context: number(origin.context),
        stack: finding.stack(frames(&stack_of(symbols, origin))),
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
