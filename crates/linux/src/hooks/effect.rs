//! What the entry and the return of a hooked function mean.

use raddle_config::hooks::{Effect, Hook, Mode, Success};
use raddle_world::{EventKind, LockMode, LockSource, Obtained, Site, WaitKind};

use crate::kernel::Kernel;
use crate::thread::Tid;

const EOWNERDEAD: u64 = 130;

pub(super) fn is_allocation(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::Allocate | Effect::AllocateInto | Effect::Reallocate | Effect::Free
    )
}

/// Whether anything happens when the function returns.
pub(super) fn needs_return(effect: Effect) -> bool {
    !matches!(
        effect,
        Effect::Release | Effect::NotifyOne | Effect::NotifyAll | Effect::Post
    )
}

/// The function is about to run.
pub(super) fn entry(kernel: &mut Kernel, tid: Tid, hook: &Hook, args: &[u64; 6]) {
    let object = argument(args, hook.object);
    let mode = lock_mode(hook.mode);
    let kinds = match hook.effect {
        Effect::Release => vec![EventKind::Release {
            object,
            mode: held_mode(kernel, tid, object),
        }],
        Effect::ConditionWait => {
            let mutex = argument(args, hook.other.unwrap_or(1));
            vec![
                EventKind::Release {
                    object: mutex,
                    mode,
                },
                EventKind::WaitBegin {
                    object,
                    on: WaitKind::Condition,
                },
            ]
        }
        Effect::NotifyOne | Effect::NotifyAll | Effect::Post => vec![EventKind::Notify {
            object,
            on: wait_kind(hook.effect),
            everyone: hook.effect == Effect::NotifyAll,
        }],
        Effect::Wait | Effect::Once => vec![EventKind::WaitBegin {
            object,
            on: wait_kind(hook.effect),
        }],
        Effect::Barrier => vec![EventKind::BarrierEnter { object }],
        Effect::Free if object != 0 => vec![EventKind::Free { addr: object }],
        _ => vec![],
    };
    for kind in kinds {
        tell(kernel, tid, kind);
    }
}

/// The function has returned `result`.
pub(super) fn exit(kernel: &mut Kernel, tid: Tid, hook: &Hook, args: &[u64; 6], result: u64) {
    let object = argument(args, hook.object);
    if !succeeded(hook.success, result) {
        return;
    }
    let mode = lock_mode(hook.mode);
    let kinds = match hook.effect {
        Effect::Acquire => vec![EventKind::Acquire { object, mode }],
        Effect::ConditionWait => {
            let mutex = argument(args, hook.other.unwrap_or(1));
            vec![
                EventKind::WaitEnd {
                    object,
                    on: WaitKind::Condition,
                },
                EventKind::Acquire {
                    object: mutex,
                    mode,
                },
            ]
        }
        Effect::Wait | Effect::Once => vec![EventKind::WaitEnd {
            object,
            on: wait_kind(hook.effect),
        }],
        Effect::Barrier => vec![EventKind::BarrierLeave { object }],
        Effect::JoinThread => {
            let handles = &kernel.process_of(tid).thread_handles;
            handles
                .get(&object)
                .map(|child| EventKind::Join { child: *child })
                .into_iter()
                .collect()
        }
        Effect::Allocate => {
            let size = object.wrapping_mul(hook.other.map_or(1, |other| argument(args, other)));
            vec![EventKind::Alloc { addr: result, size }]
        }
        Effect::AllocateInto => {
            let size = argument(args, hook.other.unwrap_or(0));
            kernel
                .read_u64(tid, object)
                .map(|addr| EventKind::Alloc { addr, size })
                .into_iter()
                .collect()
        }
        Effect::Reallocate => {
            let size = argument(args, hook.other.unwrap_or(1));
            let old = (object != 0).then_some(EventKind::Free { addr: object });
            old.into_iter()
                .chain([EventKind::Alloc { addr: result, size }])
                .collect()
        }
        _ => vec![],
    };
    for kind in kinds {
        tell(kernel, tid, kind);
    }
}

fn argument(args: &[u64; 6], number: u8) -> u64 {
    args.get(usize::from(number)).copied().unwrap_or(0)
}

fn succeeded(success: Success, result: u64) -> bool {
    // C functions return `int`: the upper half is not part of the value.
    let low = result & 0xFFFF_FFFF;
    match success {
        Success::Zero => low == 0,
        Success::ZeroOrOwnerDead => low == 0 || low == EOWNERDEAD,
        Success::NonZero => result != 0,
        Success::Always => true,
    }
}

pub(super) fn lock_mode(mode: Mode) -> LockMode {
    match mode {
        Mode::Exclusive => LockMode::Exclusive,
        Mode::Shared => LockMode::Shared,
    }
}

/// What is waited for or signalled.
fn wait_kind(effect: Effect) -> WaitKind {
    match effect {
        Effect::Wait | Effect::Post => WaitKind::Semaphore,
        Effect::Once => WaitKind::Once,
        _ => WaitKind::Condition,
    }
}

/// A reader-writer lock is given up by the same function in both modes.
fn held_mode(kernel: &Kernel, tid: Tid, object: u64) -> LockMode {
    let held = &kernel.thread(tid).held_locks;
    held.section_of(object)
        .map_or(LockMode::Exclusive, |section| section.mode)
}

/// Tells an event and keeps the list of locks that the thread holds.
fn tell(kernel: &mut Kernel, tid: Tid, kind: EventKind) {
    match kind {
        EventKind::Acquire { object, mode } => {
            let context = kernel.thread(tid).context;
            let site = Site::new(kernel.image(tid), kernel.thread(tid).cpu.rip);
            let obtained = Obtained {
                lock: object,
                mode,
                source: LockSource::Function,
                context,
                site,
                step: kernel.state.contexts.get(context).steps,
            };
            kernel.thread_mut(tid).held_locks.obtain(obtained);
        }
        EventKind::Release { object, .. } => {
            kernel.thread_mut(tid).held_locks.give_up(object);
        }
        _ => {}
    }
    kernel.emit(tid, kind);
}
