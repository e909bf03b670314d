//! Delivery: what a pending signal does to a thread that is about to run its own code.

use std::sync::Arc;

use raddle_world::{Crash, Doing, EventKind, MemoryFault};
use raddle_x86::Reg;

use crate::call::{OnSignal, WaitKey};
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::life;
use crate::process::{Life, Report};
use crate::serve;
use crate::signal::{
    Action, Default, HANDLER_DEFAULT, SIGCONT, SIGSEGV, SIGSTOP, SigInfo, SignalSet, action_flags,
    default_action, frame, signal_name,
};
use crate::thread::{ExceptionInfo, Tid};
use crate::time;

impl Kernel {
    /// Delivers everything that is pending and not blocked. The thread may be gone, stopped, or at the first
    /// instruction of a handler afterwards.
    pub(crate) fn deliver_signals(&mut self, tid: Tid) {
        while let Some(thread) = self.state.threads.get(&tid) {
            if thread.is_stopped {
                return;
            }
            let Some(info) = self.next_signal(tid) else {
                break;
            };
            self.deliver(tid, info);
        }
        if self.state.threads.contains_key(&tid) {
            self.refresh_liveness(tid);
        }
    }

    /// Faults come first, then lower numbers; the thread's own before the process's.
    fn next_signal(&mut self, tid: Tid) -> Option<SigInfo> {
        let available = self.deliverable(tid);
        let synchronous = SignalSet(available.0 & SignalSet::of(&[4, 5, 7, 8, 11, 31]).0);
        let own = self.thread(tid).pending.set();
        let number = SignalSet(synchronous.0 & own.0)
            .first()
            .or_else(|| available.first())?;
        self.thread_mut(tid)
            .pending
            .take(number)
            .or_else(|| self.process_of_mut(tid).pending.take(number))
    }

    fn deliver(&mut self, tid: Tid, info: SigInfo) {
        let pid = self.thread(tid).process;
        let number = info.number;
        let action = self.action(pid, number);
        if action.is_handler() {
            self.enter_handler(tid, action, &info);
            return;
        }
        if action.handler != HANDLER_DEFAULT && number != SIGSTOP {
            return;
        }
        match default_action(number) {
            Default::Ignore | Default::Continue => {}
            Default::Terminate | Default::Core => life::kill_process(self, pid, number),
            Default::Stop => self.stop_process(tid, number),
        }
    }

    fn stop_process(&mut self, tid: Tid, number: u32) {
        let process = self.process_of_mut(tid);
        let pid = process.pid;
        process.life = Life::Stopped(number);
        process.unreported = Some(Report::Stopped(number));
        process.pending.discard(SignalSet::of(&[SIGCONT]));
        for other in process.threads.clone() {
            self.thread_mut(other).is_stopped = true;
            self.refresh_liveness(other);
        }
        life::notify_parent_of_change(self, pid, Report::Stopped(number));
    }

    fn enter_handler(&mut self, tid: Tid, action: Action, info: &SigInfo) {
        serve::obtain(self, tid, WaitKey::SignalFor(tid.0));
        self.interrupt_call(tid, action);
        let mask_to_restore = {
            let thread = self.thread_mut(tid);
            thread.saved_mask.take().unwrap_or(thread.mask)
        };
        // Told whether or not calls are: who watches memory must know that it is a handler which uses it.
        self.emit(
            tid,
            EventKind::SignalEnter {
                number: info.number,
            },
        );
        if frame::push(self, tid, action, info, mask_to_restore).is_err() {
            self.force_signal(tid, SigInfo::kernel(SIGSEGV), ExceptionInfo::default());
            return;
        }
        let mut mask = self.thread(tid).mask.union(action.mask);
        if action.flags & action_flags::NODEFER == 0 {
            mask = mask.with(info.number);
        }
        self.set_mask(tid, mask);
        if action.flags & action_flags::RESETHAND != 0 {
            let actions = &mut self.process_of_mut(tid).actions;
            Arc::make_mut(actions)[info.number as usize - 1].handler = HANDLER_DEFAULT;
        }
    }

    /// Ends the call that the thread waits in: EINTR, or the call is made again after the handler.
    fn interrupt_call(&mut self, tid: Tid, action: Action) {
        let Some(waiting) = self.end_wait(tid) else {
            return;
        };
        self.cancel_futex_wait(tid);
        let is_restarted = waiting.block.on_signal == OnSignal::Restart
            && action.flags & action_flags::RESTART != 0;
        let moved = crate::files::take_progress(self, tid);
        let cpu = &mut self.thread_mut(tid).cpu;
        if let Some(count) = moved {
            // A transfer that has begun ends with what it has moved.
            cpu.set_reg(Reg::Rax, count);
        } else if is_restarted {
            cpu.set_reg(Reg::Rax, u64::from(waiting.number));
            cpu.rip -= SYSCALL_LENGTH;
        } else {
            cpu.set_reg(Reg::Rax, Errno::EINTR.result());
            time::note_interrupted_sleep(self, tid, &waiting);
        }
    }

    /// A signal that cannot be put off: an exception, or a frame that does not fit. If the program blocks or
    /// ignores it, it dies.
    pub(crate) fn force_signal(&mut self, tid: Tid, info: SigInfo, exception: ExceptionInfo) {
        let number = info.number;
        let thread = self.thread_mut(tid);
        thread.last_exception = exception;
        let is_blocked = thread.mask.contains(number);
        let pid = thread.process;
        let action = self.action(pid, number);
        if is_blocked || !action.is_handler() {
            self.note_crash(tid, number, exception);
            life::kill_process(self, pid, number);
            return;
        }
        self.thread_mut(tid).pending.add(info);
        self.refresh_liveness(tid);
    }

    /// Writes down where and why a thread of the first process is about to die.
    fn note_crash(&mut self, tid: Tid, number: u32, exception: ExceptionInfo) {
        let thread = self.thread(tid);
        if thread.process != self.state.first {
            return;
        }
        let pc = thread.cpu.rip;
        let doing = match exception.error_code & 0x12 {
            0x10 => Doing::Executing,
            0x02 => Doing::Writing,
            _ => Doing::Reading,
        };
        let addr = exception.addr;
        self.crash = Some(Crash {
            context: thread.context,
            thread: thread.called(tid),
            process: thread.process.0,
            signal: number,
            signal_name: signal_name(number),
            site: self.site(tid, pc),
            place: self.describe_place(tid, pc),
            fault: (exception.vector == PAGE_FAULT).then_some(MemoryFault { doing, addr }),
        });
    }
}

/// Number of the page-fault exception.
const PAGE_FAULT: u64 = 14;
/// Bytes of the SYSCALL instruction.
const SYSCALL_LENGTH: u64 = 2;
