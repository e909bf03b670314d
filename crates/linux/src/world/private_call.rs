//! Calls that no context but the caller can notice: no reason to let another context run before them.
//!
//! A C library makes about ten of them for each thread, and each would be a decision that decides nothing.

use std::ops::Range;

use raddle_calls::Unnoticed;
use raddle_config::hooks::Effect;
use raddle_stdx::width::low_u32;
use raddle_x86::Reg;

use super::LinuxWorld;
use crate::kernel::Kernel;
use crate::process::{Pid, Process};
use crate::signal::Action;
use crate::thread::Tid;

/// Signals that no process sends to a program on purpose: those that a thread's own instructions cause (SIGILL,
/// SIGTRAP, SIGBUS, SIGFPE, SIGSEGV), and the one by which glibc changes the user of all threads.
const NOT_SENT: [usize; 6] = [4, 5, 7, 8, 11, 33];

impl LinuxWorld {
    /// Whether no other context can notice the call that a thread is about to make, nor have a say in its result.
    pub(super) fn is_private_call(&self, tid: Tid) -> bool {
        let thread = self.kernel().thread(tid);
        let number = low_u32(thread.cpu.reg(Reg::Rax));
        match raddle_calls::of(number).map_or(Unnoticed::Never, |call| call.unnoticed) {
            Unnoticed::Never => false,
            Unnoticed::Always => true,
            Unnoticed::WithoutSignals => !has_signals(self.kernel(), thread.process),
            Unnoticed::OfOwnStack => {
                let start = thread.cpu.reg(Reg::Rdi);
                let asked = start..start.saturating_add(thread.cpu.reg(Reg::Rsi));
                is_inside(&asked, &thread.stack)
            }
            Unnoticed::ForNewThread => self
                .hooks()
                .innermost(self.kernel(), tid)
                .is_some_and(|call| call.effect == Effect::CreateThread),
        }
    }
}

/// Whether it can matter to anybody which signals a thread of this process blocks.
fn has_signals(kernel: &Kernel, pid: Pid) -> bool {
    let process = kernel.process(pid);
    kernel.state.processes.len() > 1
        || kernel.state.timers.next_deadline().is_some()
        || kernel.state.execution_timers.is_on(pid)
        || !process.pending.is_empty()
        || handlers(process).next().is_some()
}

/// What a process does about signals that may come, where it has handlers of its own.
pub(super) fn handlers(process: &Process) -> impl Iterator<Item = &Action> {
    let actions = (1..).zip(process.actions.iter());
    actions
        .filter(|(number, action)| action.is_handler() && !NOT_SENT.contains(number))
        .map(|(_, action)| action)
}

fn is_inside(inner: &Range<u64>, outer: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
