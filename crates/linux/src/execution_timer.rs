//! Interval timers of execution time: ITIMER_VIRTUAL and ITIMER_PROF of setitimer(2).
//!
//! Execution is counted in steps, and a world's kernel takes none of its own, so both count the same. A slice of a
//! process with such a timer ends where the timer expires: the signal comes at the same step in every run.

use std::collections::BTreeMap;

use crate::kernel::Kernel;
use crate::process::Pid;
use crate::signal::SigInfo;
use crate::thread::Tid;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    Virtual,
    Profile,
}

impl Which {
    const BOTH: [Self; 2] = [Self::Virtual, Self::Profile];

    /// What its expiry sends: SIGVTALRM, SIGPROF.
    fn signal(self) -> u32 {
        match self {
            Self::Virtual => 26,
            Self::Profile => 27,
        }
    }
}

/// One timer that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timer {
    /// In steps of the process.
    expiry: u64,
    /// Steps between expirations; 0 for a single one.
    interval: u64,
}

/// The timers of all processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecutionTimers(BTreeMap<(Pid, Which), Timer>);

impl ExecutionTimers {
    /// Time left and interval for a process that has made so many steps.
    pub(crate) fn state(&self, pid: Pid, which: Which, steps: u64) -> (u64, u64) {
        self.0.get(&(pid, which)).map_or((0, 0), |timer| {
            (timer.expiry.saturating_sub(steps).max(1), timer.interval)
        })
    }

    /// Starts a timer, or stops it if it is to expire after nothing.
    pub(crate) fn set(&mut self, pid: Pid, which: Which, steps: u64, (left, interval): (u64, u64)) {
        if left == 0 {
            self.0.remove(&(pid, which));
            return;
        }
        let expiry = steps.saturating_add(left);
        self.0.insert((pid, which), Timer { expiry, interval });
    }

    pub(crate) fn forget(&mut self, pid: Pid) {
        for which in Which::BOTH {
            self.0.remove(&(pid, which));
        }
    }

    /// Whether a timer of the process runs.
    pub(crate) fn is_on(&self, pid: Pid) -> bool {
        Which::BOTH
            .iter()
            .any(|which| self.0.contains_key(&(pid, *which)))
    }

    /// Steps that a process may make before one of its timers expires.
    pub(crate) fn quiet(&self, pid: Pid, steps: u64) -> u64 {
        if self.0.is_empty() {
            return u64::MAX;
        }
        Which::BOTH
            .iter()
            .filter_map(|which| self.0.get(&(pid, *which)))
            .map(|timer| timer.expiry.saturating_sub(steps).max(1))
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The signals that are due, with the timers set anew.
    fn expire(&mut self, pid: Pid, steps: u64) -> Vec<u32> {
        let mut due = Vec::new();
        for which in Which::BOTH {
            let Some(timer) = self.0.get_mut(&(pid, which)) else {
                continue;
            };
            if timer.expiry > steps {
                continue;
            }
            due.push(which.signal());
            match (steps - timer.expiry).checked_div(timer.interval) {
                Some(missed) => timer.expiry += (missed + 1) * timer.interval,
                None => {
                    self.0.remove(&(pid, which));
                }
            }
        }
        due
    }
}

impl Kernel {
    /// Steps that a thread may make before a timer of its process expires.
    pub(crate) fn steps_before_execution_timer(&self, tid: Tid) -> u64 {
        let process = self.process_of(tid);
        self.state
            .execution_timers
            .quiet(process.pid, process.usage.steps)
    }
}

/// A process has made steps: its timers may have expired.
pub(crate) fn notice(kernel: &mut Kernel, pid: Pid) {
    if kernel.state.execution_timers.0.is_empty() {
        return;
    }
    let steps = kernel.process(pid).usage.steps;
    for signal in kernel.state.execution_timers.expire(pid, steps) {
        kernel.signal_process(pid, SigInfo::kernel(signal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_expires_at_its_step_and_again_after_its_interval() {
        let mut timers = ExecutionTimers::default();
        let pid = Pid(1);
        timers.set(pid, Which::Profile, 100, (50, 30));
        assert_eq!(timers.quiet(pid, 100), 50);
        assert_eq!(timers.quiet(Pid(2), 100), u64::MAX);
        assert!(timers.expire(pid, 149).is_empty());
        assert_eq!(timers.expire(pid, 150), [27]);
        assert_eq!(timers.state(pid, Which::Profile, 150), (30, 30));
        // A long call of the kernel's own is one expiry, not many.
        assert_eq!(timers.expire(pid, 300), [27]);
        assert_eq!(timers.quiet(pid, 300), 30);
    }

    #[test]
    fn a_single_expiry_stops_the_timer() {
        let mut timers = ExecutionTimers::default();
        timers.set(Pid(1), Which::Virtual, 0, (5, 0));
        assert_eq!(timers.expire(Pid(1), 5), [26]);
        assert_eq!(timers.state(Pid(1), Which::Virtual, 5), (0, 0));
    }
}
