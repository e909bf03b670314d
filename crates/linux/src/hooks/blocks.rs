//! What calls of the allocator do to the record of blocks.

use std::sync::Arc;

use raddle_config::hooks::{Effect, Hook};
use raddle_symbols::SymbolSpace;

use super::PendingCall;
use crate::heap::{Block, Heap, HeapError, HeapErrorKind, Origin};
use crate::inspect::registers_of;
use crate::kernel::Kernel;
use crate::thread::Tid;
use crate::world::Halt;

/// Return addresses kept of a stack.
const STACK_MAX: usize = 16;

/// Blocks from before the first schedule whose whole stack is kept: a program that fills a heap of millions of blocks
/// should not start much later for the names of the last of them.
pub(crate) const EARLY_STACKS: u32 = 20_000;

/// The allocator was called: a free happens now, as far as the program is concerned.
///
/// `is_trusted` says that the caller is the C library itself, which frees blocks that it got without calling a
/// function we know.
pub(super) fn entry(
    kernel: &mut Kernel,
    tid: Tid,
    hook: &Hook,
    call: &PendingCall,
    symbols: &SymbolSpace,
    is_trusted: bool,
) {
    let object = call.argument(hook.object);
    let is_freeing = matches!(hook.effect, Effect::Free | Effect::Reallocate);
    if object == 0 || !is_freeing || !kernel.watch.heap.is_on {
        return;
    }
    let removed = heap(kernel, tid).remove(object);
    match removed {
        Some(block) if hook.effect == Effect::Free => {
            let origin = origin(kernel, tid, call, symbols);
            release(kernel, tid, block, origin);
        }
        // Whether the block is gone is known when realloc returns.
        Some(block) => kernel.thread_mut(tid).moving = Some(block),
        None if is_trusted => {}
        None => {
            let block = heap(kernel, tid).freed_at(object).cloned();
            let is_double = block.as_ref().is_some_and(|block| block.addr == object);
            let error = HeapError {
                kind: if is_double {
                    HeapErrorKind::DoubleFree
                } else {
                    HeapErrorKind::InvalidFree
                },
                context: kernel.thread(tid).context,
                pc: call.return_pc,
                addr: object,
                block,
            };
            kernel.halt.get_or_insert(Halt::Heap(error));
        }
    }
}

/// The allocator has returned.
pub(super) fn exit(
    kernel: &mut Kernel,
    tid: Tid,
    hook: &Hook,
    call: &PendingCall,
    symbols: &SymbolSpace,
    result: u64,
) {
    if !kernel.watch.heap.is_on {
        return;
    }
    let first = call.argument(hook.object);
    let second = hook.other.map(|number| call.argument(number));
    let (addr, size) = match hook.effect {
        Effect::Allocate => (result, first.wrapping_mul(second.unwrap_or(1))),
        Effect::AllocateInto if result & 0xFFFF_FFFF == 0 => (
            kernel.read_u64(tid, first).unwrap_or(0),
            second.unwrap_or(0),
        ),
        Effect::Reallocate => (result, second.unwrap_or(0)),
        _ => return,
    };
    let moved = kernel.thread_mut(tid).moving.take();
    if let Some(old) = moved.filter(|_| hook.effect == Effect::Reallocate) {
        let is_gone = addr != 0 || size == 0;
        if !is_gone {
            heap(kernel, tid).insert(old);
            return;
        }
        // Another thread may have been given the place while realloc was on its way back.
        if old.addr != addr && !heap(kernel, tid).is_live(old.addr) {
            let origin = origin(kernel, tid, call, symbols);
            release(kernel, tid, old, origin);
        }
    }
    if addr == 0 {
        return;
    }
    let block = Block {
        addr,
        size,
        allocated: origin(kernel, tid, call, symbols),
        freed: None,
    };
    hand_out(kernel, tid, block);
}

fn hand_out(kernel: &mut Kernel, tid: Tid, block: Block) {
    let has_red_zones = kernel.watch.heap.red_zones;
    let (_, space) = kernel.memory_of(tid);
    space.map.allow(&Heap::bytes_of(&block));
    let zone = Heap::forbidden_around(&block);
    if has_red_zones {
        space.map.forbid(zone);
    } else {
        space.map.allow(&zone);
    }
    space.heap.insert(block);
}

/// From now on no thread may touch the block.
fn release(kernel: &mut Kernel, tid: Tid, mut block: Block, origin: Origin) {
    block.freed = Some(origin);
    // What is freed before schedules begin is sequential: it is not worth a slow page.
    let is_armed = kernel.is_armed;
    let (_, space) = kernel.memory_of(tid);
    let bytes = Heap::bytes_of(&block);
    if is_armed {
        space.map.forbid(bytes);
        space.heap.note_freed(block);
    } else {
        space.map.allow(&Heap::forbidden_around(&block));
    }
}

fn heap(kernel: &mut Kernel, tid: Tid) -> &mut Heap {
    &mut kernel.memory_of(tid).1.heap
}

fn origin(kernel: &mut Kernel, tid: Tid, call: &PendingCall, symbols: &SymbolSpace) -> Origin {
    let context = kernel.thread(tid).context;
    let caller = call.return_pc.wrapping_sub(1);
    let stack: Arc<[u64]> = if kernel.watch.heap.stacks || takes_early_stack(kernel) {
        let registers = registers_of(&kernel.thread(tid).cpu);
        let mut read = |addr| kernel.read_u64(tid, addr).ok();
        let frames = symbols.unwind(registers, &mut read, STACK_MAX);
        let pcs = frames.iter().filter_map(|frame| frame.lookup_address());
        // A function that has returned is where its caller goes on, which may be another line.
        let inside = |pc: u64| if pc == call.return_pc { caller } else { pc };
        pcs.map(inside).collect()
    } else {
        Arc::from([caller])
    };
    Origin { context, stack }
}

/// Whether one of the stacks is left that are kept of blocks from before the first schedule.
fn takes_early_stack(kernel: &mut Kernel) -> bool {
    let is_left = !kernel.is_armed && kernel.early_stacks > 0;
    if is_left {
        kernel.early_stacks -= 1;
    }
    is_left
}
