//! Sleeping and waking: who waits for what, in which order, and until when.

use std::collections::{BTreeMap, BTreeSet};

use raddle_world::{Liveness, VirtualTime, WaitReason};

use crate::call::{Block, WaitKey};
use crate::files;
use crate::kernel::Kernel;
use crate::serve;
use crate::thread::{Activity, Tid, Waiting};
use crate::time;

/// A deadline this late (146 years) never comes.
const NEVER: u64 = 1 << 62;

/// All threads that sleep.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sleepers {
    /// For each key the threads that sleep on it, in the order in which they fell asleep.
    by_key: BTreeMap<WaitKey, BTreeMap<u64, Tid>>,
    /// Sleepers that wake by themselves.
    deadlines: BTreeSet<(VirtualTime, u64, Tid)>,
    last_sequence: u64,
}

impl Kernel {
    /// Puts a thread to sleep inside a call.
    pub(crate) fn sleep(&mut self, tid: Tid, number: u32, args: [u64; 6], block: Block) {
        let sleepers = &mut self.state.sleepers;
        sleepers.last_sequence += 1;
        let sequence = sleepers.last_sequence;
        for key in &block.keys {
            sleepers
                .by_key
                .entry(*key)
                .or_default()
                .insert(sequence, tid);
        }
        if let Some(deadline) = block.deadline {
            sleepers.deadlines.insert((deadline, sequence, tid));
        }
        self.thread_mut(tid).activity = Activity::Waiting(Waiting {
            number,
            args,
            block,
            sequence,
            is_woken: false,
        });
        self.refresh_liveness(tid);
    }

    /// Wakes every thread that sleeps on `key`, in the order in which they fell asleep.
    pub(crate) fn wake(&mut self, key: WaitKey) {
        serve::publish(self, key);
        let Some(waiters) = self.state.sleepers.by_key.remove(&key) else {
            return;
        };
        for tid in waiters.into_values() {
            self.rouse(tid);
        }
    }

    /// Lets a sleeping thread try its call again.
    fn rouse(&mut self, tid: Tid) {
        let Some(thread) = self.state.threads.get_mut(&tid) else {
            return;
        };
        let Activity::Waiting(waiting) = &mut thread.activity else {
            return;
        };
        waiting.is_woken = true;
        let (keys, deadline, sequence) = (
            waiting.block.keys.clone(),
            waiting.block.deadline,
            waiting.sequence,
        );
        self.unlist(tid, &keys, deadline, sequence);
        self.refresh_liveness(tid);
    }

    fn unlist(&mut self, tid: Tid, keys: &[WaitKey], deadline: Option<VirtualTime>, sequence: u64) {
        let sleepers = &mut self.state.sleepers;
        for key in keys {
            if let Some(waiters) = sleepers.by_key.get_mut(key) {
                waiters.remove(&sequence);
                if waiters.is_empty() {
                    sleepers.by_key.remove(key);
                }
            }
        }
        if let Some(deadline) = deadline {
            sleepers.deadlines.remove(&(deadline, sequence, tid));
        }
    }

    /// Takes the thread out of the call it waits in and gives that call; the thread then runs its own code.
    pub(crate) fn end_wait(&mut self, tid: Tid) -> Option<Waiting> {
        let thread = self.state.threads.get_mut(&tid)?;
        if !matches!(thread.activity, Activity::Waiting(_)) {
            return None;
        }
        let Activity::Waiting(waiting) = std::mem::replace(&mut thread.activity, Activity::User)
        else {
            return None;
        };
        self.unlist(
            tid,
            &waiting.block.keys,
            waiting.block.deadline,
            waiting.sequence,
        );
        self.refresh_liveness(tid);
        Some(waiting)
    }

    /// Sets what schedulers see from what the thread is doing.
    pub(crate) fn refresh_liveness(&mut self, tid: Tid) {
        let has_signal = self.has_deliverable_signal(tid);
        let thread = &self.state.threads[&tid];
        let liveness = match &thread.activity {
            _ if thread.is_stopped => Liveness::Blocked(WaitReason::Signal),
            Activity::User | Activity::Entered => Liveness::Runnable,
            Activity::Waiting(waiting) if waiting.is_woken => Liveness::Runnable,
            Activity::Waiting(waiting) if has_signal && waiting.block.is_interruptible() => {
                Liveness::Runnable
            }
            Activity::Waiting(waiting) => Liveness::Blocked(waiting.block.reason.clone()),
        };
        self.state.contexts.set_liveness(thread.context, liveness);
    }

    /// Whether no thread can run that has not just yielded.
    pub(crate) fn all_have_yielded(&self) -> bool {
        self.state.threads.values().all(|thread| {
            let context = self.state.contexts.get(thread.context);
            !context.is_runnable() || thread.yielded_at == Some(context.steps)
        })
    }

    /// The next moment at which something happens by itself.
    pub(crate) fn next_deadline(&self) -> Option<VirtualTime> {
        let sleeper = self
            .state
            .sleepers
            .deadlines
            .first()
            .map(|(deadline, _, _)| *deadline);
        [
            sleeper,
            self.state.timers.next_deadline(),
            files::next_deadline(&self.state.files),
        ]
        .into_iter()
        .flatten()
        .min()
        .filter(|deadline| deadline.0 < NEVER)
    }

    /// Lets everything happen whose time has come.
    pub(crate) fn fire_due(&mut self) {
        loop {
            let now = self.state.now;
            let Some(next) = self.next_deadline() else {
                return;
            };
            if next > now {
                return;
            }
            if let Some((deadline, _, tid)) = self.state.sleepers.deadlines.first().copied()
                && deadline <= now
            {
                self.rouse(tid);
                continue;
            }
            if !time::fire_next(self) {
                files::timers_expired(self);
                let is_stuck = self.next_deadline() == Some(next) && next <= now;
                assert!(!is_stuck, "an expired timer has a later deadline or none");
            }
        }
    }
}
