//! Sending signals: to a thread, to a process, to a group.

use crate::call::WaitKey;
use crate::kernel::Kernel;
use crate::life;
use crate::process::{Life, Pid, Report};
use crate::signal::{
    Action, Default, SIGCONT, SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SigInfo, SignalSet,
    default_action,
};
use crate::thread::{Activity, Tid};

impl Kernel {
    /// What the process has asked for on a signal.
    pub(crate) fn action(&self, pid: Pid, number: u32) -> Action {
        self.process(pid).actions[number as usize - 1]
    }

    /// Signals that the thread would take now.
    pub(crate) fn deliverable(&self, tid: Tid) -> SignalSet {
        let thread = self.thread(tid);
        if thread.pending.is_empty() && self.process(thread.process).pending.is_empty() {
            return SignalSet::default();
        }
        thread
            .pending
            .set()
            .union(self.process(thread.process).pending.set())
            .minus(thread.mask)
    }

    pub(crate) fn has_deliverable_signal(&self, tid: Tid) -> bool {
        self.deliverable(tid) != SignalSet::default()
    }

    /// Whether the thread takes a signal before it does anything else. A call that has been asked for is made
    /// first, and a call that was woken gives its result first: a wake-up is never lost to a signal.
    pub(crate) fn may_take_signal(&self, tid: Tid) -> bool {
        let is_between_calls = match &self.thread(tid).activity {
            Activity::User => true,
            Activity::Entered => false,
            Activity::Waiting(waiting) => !waiting.is_woken && waiting.block.is_interruptible(),
        };
        is_between_calls && self.has_deliverable_signal(tid)
    }

    /// Sends a signal to one thread.
    pub(crate) fn signal_thread(&mut self, tid: Tid, info: SigInfo) {
        let Some(thread) = self.state.threads.get(&tid) else {
            return;
        };
        let pid = thread.process;
        let is_blocked = thread.mask.contains(info.number);
        if !self.prepare(pid, &info, is_blocked) {
            return;
        }
        self.thread_mut(tid).pending.add(info);
        self.notice(tid);
    }

    /// Sends a signal to a process: one of its threads that does not block it takes it.
    pub(crate) fn signal_process(&mut self, pid: Pid, info: SigInfo) {
        let Some(process) = self.state.processes.get(&pid) else {
            return;
        };
        if process.is_zombie() {
            return;
        }
        let threads = process.threads.clone();
        let number = info.number;
        let is_blocked = threads
            .iter()
            .all(|tid| self.thread(*tid).mask.contains(number));
        if !self.prepare(pid, &info, is_blocked) {
            return;
        }
        self.process_mut(pid).pending.add(info);
        let taker = threads
            .iter()
            .find(|tid| !self.thread(**tid).mask.contains(number))
            .copied();
        match taker {
            Some(tid) => self.notice(tid),
            None => threads.into_iter().for_each(|tid| self.notice(tid)),
        }
    }

    /// Side effects of sending, whatever the disposition; false if the signal goes no further.
    fn prepare(&mut self, pid: Pid, info: &SigInfo, is_blocked: bool) -> bool {
        match info.number {
            SIGKILL => {
                life::kill_process(self, pid, SIGKILL);
                return false;
            }
            SIGCONT => self.continue_process(pid),
            SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU => {
                self.discard_pending(pid, SignalSet::of(&[SIGCONT]));
            }
            _ => {}
        }
        let action = self.action(pid, info.number);
        let is_ignored = action.ignores(info.number)
            || (!action.is_handler() && default_action(info.number) == Default::Continue);
        is_blocked || !is_ignored
    }

    /// A thread has something to look at.
    fn notice(&mut self, tid: Tid) {
        self.refresh_liveness(tid);
        self.wake(WaitKey::SignalFor(tid.0));
    }

    fn continue_process(&mut self, pid: Pid) {
        self.discard_pending(pid, SignalSet::of(&[SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU]));
        if !matches!(self.process(pid).life, Life::Stopped(_)) {
            return;
        }
        let process = self.process_mut(pid);
        process.life = Life::Running;
        process.unreported = Some(Report::Continued);
        for tid in process.threads.clone() {
            self.thread_mut(tid).is_stopped = false;
            self.refresh_liveness(tid);
        }
        life::notify_parent_of_change(self, pid, Report::Continued);
    }

    fn discard_pending(&mut self, pid: Pid, set: SignalSet) {
        let process = self.process_mut(pid);
        process.pending.discard(set);
        for tid in process.threads.clone() {
            self.thread_mut(tid).pending.discard(set);
        }
    }

    /// Takes a pending signal of `set` for sigtimedwait and signalfd.
    pub(crate) fn take_signal(&mut self, tid: Tid, set: SignalSet) -> Option<SigInfo> {
        let own = SignalSet(self.thread(tid).pending.set().0 & set.0);
        if let Some(number) = own.first() {
            return self.thread_mut(tid).pending.take(number);
        }
        let shared = SignalSet(self.process_of(tid).pending.set().0 & set.0);
        let number = shared.first()?;
        self.process_of_mut(tid).pending.take(number)
    }

    /// Whether a signal of `set` is pending for the thread or its process.
    pub(crate) fn has_signal(&self, tid: Tid, set: SignalSet) -> bool {
        let pending = self
            .thread(tid)
            .pending
            .set()
            .union(self.process_of(tid).pending.set());
        pending.0 & set.0 != 0
    }

    /// Puts another mask in force until the current call has ended (ppoll, pselect, epoll_pwait, sigsuspend).
    /// A second time, on a retry of the call, it changes nothing.
    pub(crate) fn set_temporary_mask(&mut self, tid: Tid, mask: SignalSet) {
        let thread = self.thread_mut(tid);
        if thread.saved_mask.is_none() {
            thread.saved_mask = Some(thread.mask);
            thread.mask = mask.minus(SignalSet::UNBLOCKABLE);
            self.refresh_liveness(tid);
        }
    }

    /// Changes the mask of a thread for good.
    pub(crate) fn set_mask(&mut self, tid: Tid, mask: SignalSet) {
        self.thread_mut(tid).mask = mask.minus(SignalSet::UNBLOCKABLE);
        self.refresh_liveness(tid);
        let process = self.process_of(tid);
        if !process.pending.is_empty() {
            for other in process.threads.clone() {
                self.refresh_liveness(other);
            }
        }
    }
}
