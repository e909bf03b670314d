//! What a world between two operations comes to: serial orders that leave it alike go on alike.

use raddle_linux::LinuxWorld;
use raddle_stdx::Digest;
use raddle_world::{ContextId, Event, EventKind, Liveness, World};

/// Watches whether everything that a program has done since its snapshot stands in its memory and its registers.
///
/// Files, sockets and processes live in the system, of which no digest is taken; so do random bytes.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    has_left: bool,
}

impl Inside {
    pub(crate) fn event(&mut self, event: &Event) {
        let leaves = match &event.kind {
            EventKind::SyscallEnter { number, .. } => !stays_inside(*number),
            EventKind::SignalEnter { .. } | EventKind::Output { .. } | EventKind::Fault(_) => true,
            _ => false,
        };
        self.has_left |= leaves;
    }

    /// A digest of the state; none if it is not known as a whole. Time is no part of it.
    pub(crate) fn digest(&self, world: &LinuxWorld) -> Option<u64> {
        if self.has_left {
            return None;
        }
        let mut digest = Digest::default();
        let live = |who: ContextId| *world.contexts().get(who).liveness() != Liveness::Done;
        let mut process = None;
        for (who, context) in world.contexts().iter().filter(|(who, _)| live(*who)) {
            let Some(cpu) = world.cpu(who) else {
                // A client without code has its state in the system.
                return None;
            };
            if process.is_some_and(|known| known != world.process_id(who)) {
                return None;
            }
            if process.is_none() {
                memory(world, who, &mut digest)?;
            }
            process = Some(world.process_id(who));
            digest.bytes(format!("{:?} {cpu:?}", context.path).as_bytes());
        }
        Some(digest.value())
    }
}

/// Whether what a call changes is memory, or nothing that another context can see.
fn stays_inside(number: u32) -> bool {
    raddle_calls::of(number).is_some_and(|call| {
        let is_memory = call.memory != raddle_calls::MemoryChange::Nothing;
        let draws = call.name == "getrandom";
        (is_memory || !call.has_order) && !call.creates && !draws
    })
}

/// Where memory is and what stands in it, page by page; a page of zeros is as one that was never touched.
fn memory(world: &LinuxWorld, who: ContextId, digest: &mut Digest) -> Option<()> {
    let (space, frames) = world.memory(who)?;
    for area in space.vmas() {
        digest.bytes(format!("{} {} {:?}", area.start.0, area.end.0, area.perm).as_bytes());
    }
    for (page, entry) in space.present_pages() {
        if frames.is_pinned(entry.frame) {
            continue;
        }
        let bytes = frames.bytes(entry.frame);
        if bytes.iter().any(|byte| *byte != 0) {
            digest.word(page.0);
            digest.bytes(bytes);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_change_files_leave_the_program() {
        let stays = |name: &str| stays_inside(raddle_calls::number(name));
        for name in [
            "futex",
            "brk",
            "mmap",
            "munmap",
            "clock_gettime",
            "sched_yield",
        ] {
            assert!(stays(name), "{name}");
        }
        for name in ["write", "openat", "sendto", "clone", "getrandom", "read"] {
            assert!(!stays(name), "{name}");
        }
    }
}
