//! Descriptors that stand for events: eventfd, timerfd, signalfd.

use raddle_world::VirtualTime;

use super::core;
use super::flags::{POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM};
use super::inode::{InodeId, Node};
use super::io::{Buffer, IoError};
use super::ready;
use super::state::State;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::thread::Tid;

const COUNTER_MAX: u64 = u64::MAX - 1;

/// `eventfd2`.
#[derive(Debug, Clone)]
pub(crate) struct EventFd {
    pub(crate) counter: u64,
    pub(crate) is_semaphore: bool,
}

impl EventFd {
    pub(crate) fn readiness(&self) -> u32 {
        let input = if self.counter > 0 {
            POLLIN | POLLRDNORM
        } else {
            0
        };
        let output = if self.counter < COUNTER_MAX {
            POLLOUT | POLLWRNORM
        } else {
            0
        };
        input | output
    }
}

/// `timerfd_create`.
#[derive(Debug, Clone)]
pub(crate) struct TimerFd {
    pub(crate) is_realtime: bool,
    pub(crate) deadline: Option<VirtualTime>,
    /// Nanoseconds; zero for a timer that fires once.
    pub(crate) interval: u64,
    /// Since the last read.
    pub(crate) expirations: u64,
}

impl TimerFd {
    pub(crate) fn readiness(&self) -> u32 {
        if self.expirations > 0 {
            POLLIN | POLLRDNORM
        } else {
            0
        }
    }

    /// Counts the expirations up to `now`; true if there was one.
    fn expire(&mut self, now: VirtualTime) -> bool {
        let Some(deadline) = self.deadline.filter(|deadline| *deadline <= now) else {
            return false;
        };
        match (now.0 - deadline.0).checked_div(self.interval) {
            None => {
                self.expirations += 1;
                self.deadline = None;
            }
            Some(more) => {
                self.expirations += 1 + more;
                self.deadline = Some(VirtualTime(deadline.0 + (more + 1) * self.interval));
            }
        }
        true
    }
}

/// `signalfd4`.
#[derive(Debug, Clone)]
pub(crate) struct SignalFd {
    /// Bit n is signal n + 1.
    pub(crate) mask: u64,
}

/// The next moment at which a timerfd fires.
pub(crate) fn next_deadline(state: &State) -> Option<VirtualTime> {
    state
        .timers
        .iter()
        .filter_map(|id| match &state.inode(*id).node {
            Node::Timer(timer) => timer.deadline,
            _ => None,
        })
        .min()
}

/// Lets every timerfd fire whose time has come.
pub(crate) fn timers_expired(kernel: &mut Kernel) {
    let now = kernel.state.now;
    for id in kernel.state.files.timers.clone() {
        let fired = match &mut kernel.state.files.inode_mut(id).node {
            Node::Timer(timer) => timer.expire(now),
            _ => false,
        };
        if fired {
            ready::notify(kernel, id, POLLIN);
        }
    }
}

/// Reads a counter or signals.
pub(crate) fn read(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    if let Node::Signal(signal) = &kernel.state.files.inode(id).node {
        let mask = signal.mask;
        return read_signals(kernel, tid, mask, buffer, max);
    }
    if max < 8 {
        return Err(Errno::EINVAL.into());
    }
    let value = match &mut kernel.state.files.inode_mut(id).node {
        Node::Event(event) if event.counter == 0 => return Err(IoError::WouldBlock),
        Node::Event(event) if event.is_semaphore => {
            event.counter -= 1;
            1
        }
        Node::Event(event) => std::mem::take(&mut event.counter),
        Node::Timer(timer) if timer.expirations == 0 => return Err(IoError::WouldBlock),
        Node::Timer(timer) => std::mem::take(&mut timer.expirations),
        _ => return Err(Errno::EINVAL.into()),
    };
    ready::notify(kernel, id, POLLOUT);
    buffer.put(kernel, 0, &value.to_le_bytes())?;
    Ok(8)
}

fn read_signals(
    kernel: &mut Kernel,
    tid: Tid,
    mask: u64,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    const RECORD: usize = 128;
    if max < RECORD {
        return Err(Errno::EINVAL.into());
    }
    let mut done = 0;
    while done + RECORD <= max {
        let Some(info) = core::take_signal(kernel, tid, mask) else {
            break;
        };
        buffer.put(kernel, done, &signal_record(&info))?;
        done += RECORD;
    }
    if done == 0 {
        return Err(IoError::WouldBlock);
    }
    Ok(done)
}

/// A `struct signalfd_siginfo` from a `siginfo_t`: (from, to, length) of the fields both have.
fn signal_record(info: &[u8; 128]) -> [u8; 128] {
    const FIELDS: &[(usize, usize, usize)] = &[
        (0, 0, 4),   // signo
        (4, 4, 4),   // errno
        (8, 8, 4),   // code
        (16, 12, 4), // pid
        (20, 16, 4), // uid
        (24, 40, 4), // status (of a child) or integer value
        (24, 44, 4), // ssi_int
        (24, 48, 8), // ssi_ptr
    ];
    let mut record = [0; 128];
    for (from, to, len) in FIELDS {
        record[*to..to + len].copy_from_slice(&info[*from..from + len]);
    }
    record
}

/// Adds to the counter of an eventfd.
pub(crate) fn write(kernel: &mut Kernel, id: InodeId, buffer: &Buffer) -> Result<usize, IoError> {
    if buffer.len() < 8 {
        return Err(Errno::EINVAL.into());
    }
    let bytes = buffer.get(kernel, 0, 8)?;
    let value = u64::from_le_bytes(bytes.try_into().map_err(|_| Errno::EFAULT)?);
    if value == u64::MAX {
        return Err(Errno::EINVAL.into());
    }
    let Node::Event(event) = &mut kernel.state.files.inode_mut(id).node else {
        return Err(Errno::EINVAL.into());
    };
    if COUNTER_MAX - event.counter < value {
        return Err(IoError::WouldBlock);
    }
    event.counter += value;
    ready::notify(kernel, id, POLLIN);
    Ok(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_timer_counts_what_was_missed() {
        let mut timer = TimerFd {
            is_realtime: false,
            deadline: Some(VirtualTime(100)),
            interval: 50,
            expirations: 0,
        };
        assert!(!timer.expire(VirtualTime(99)));
        assert!(timer.expire(VirtualTime(100)));
        assert_eq!(
            (timer.expirations, timer.deadline),
            (1, Some(VirtualTime(150)))
        );
        assert!(timer.expire(VirtualTime(260)));
        assert_eq!(
            (timer.expirations, timer.deadline),
            (4, Some(VirtualTime(300)))
        );
        timer.interval = 0;
        assert!(timer.expire(VirtualTime(300)));
        assert_eq!((timer.expirations, timer.deadline), (5, None));
    }
}
