//! File locks: record locks of processes, of open files (OFD), and flock (fcntl(2), flock(2)).

use std::collections::BTreeMap;

use super::inode::InodeId;
use super::open::OpenId;
use crate::call::WaitKey;
use crate::errno::Errno;
use crate::kernel::Kernel;
use crate::process::Pid;

/// Who holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Process(Pid),
    Open(OpenId),
    /// By flock: never in conflict with the other kinds.
    Flock(OpenId),
}

impl Owner {
    fn meets(self, other: Self) -> bool {
        let is_flock = |owner| matches!(owner, Self::Flock(_));
        is_flock(self) == is_flock(other)
    }
}

/// One lock on `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) owner: Owner,
    pub(crate) exclusive: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The process that took it, for F_GETLK.
    pub(crate) pid: Pid,
}

/// All locks, by inode.
#[derive(Debug, Clone, Default)]
pub(crate) struct Locks {
    by_inode: BTreeMap<InodeId, Vec<Lock>>,
    /// Which process waits for which others' record locks.
    waiting: BTreeMap<Pid, Vec<Pid>>,
}

impl Locks {
    pub(crate) fn forget(&mut self, inode: InodeId) {
        self.by_inode.remove(&inode);
    }

    /// The first lock that stands in the way.
    pub(crate) fn conflict(&self, inode: InodeId, wanted: &Lock) -> Option<Lock> {
        self.by_inode
            .get(&inode)?
            .iter()
            .find(|held| {
                held.owner != wanted.owner
                    && held.owner.meets(wanted.owner)
                    && (held.exclusive || wanted.exclusive)
                    && held.start < wanted.end
                    && wanted.start < held.end
            })
            .copied()
    }

    /// Replaces what the owner holds in the range: by the lock, or by nothing.
    fn replace(&mut self, inode: InodeId, range: &Lock, lock: Option<Lock>) {
        let held = self.by_inode.entry(inode).or_default();
        let mut kept: Vec<Lock> = Vec::with_capacity(held.len() + 2);
        for old in held.iter().copied() {
            if old.owner != range.owner || old.end <= range.start || range.end <= old.start {
                kept.push(old);
                continue;
            }
            if old.start < range.start {
                kept.push(Lock {
                    end: range.start,
                    ..old
                });
            }
            if old.end > range.end {
                kept.push(Lock {
                    start: range.end,
                    ..old
                });
            }
        }
        kept.extend(lock);
        kept.sort_by_key(|lock| (lock.start, lock.end, lock.owner));
        if kept.is_empty() {
            self.by_inode.remove(&inode);
        } else {
            *held = kept;
        }
    }

    /// Whether waiting for `blockers` would close a cycle of processes.
    fn would_deadlock(&self, waiter: Pid, blocker: Pid) -> bool {
        let mut open = vec![blocker];
        let mut seen = Vec::new();
        while let Some(pid) = open.pop() {
            if pid == waiter {
                return true;
            }
            if !seen.contains(&pid) {
                seen.push(pid);
                open.extend(self.waiting.get(&pid).into_iter().flatten().copied());
            }
        }
        false
    }
}

/// Tries to take a lock; gives the lock that is in the way.
pub(crate) fn take(kernel: &mut Kernel, inode: InodeId, lock: Lock) -> Result<(), Lock> {
    let locks = &mut kernel.state.files.locks;
    if let Owner::Process(pid) = lock.owner {
        locks.waiting.remove(&pid);
    }
    // A new flock converts the old one: it is given up first, as the kernel does.
    if let Some(conflict) = locks.conflict(inode, &lock) {
        return Err(conflict);
    }
    locks.replace(inode, &lock, Some(lock));
    // A downgrade may let others in.
    wake(kernel, inode);
    Ok(())
}

/// Gives up what the owner of `range` holds there.
pub(crate) fn release(kernel: &mut Kernel, inode: InodeId, range: &Lock) {
    kernel.state.files.locks.replace(inode, range, None);
    wake(kernel, inode);
}

/// Notes that a process will sleep for a record lock; EDEADLK if that would never end.
pub(crate) fn wait_for(kernel: &mut Kernel, waiter: Pid, held: &Lock) -> Result<(), Errno> {
    let Owner::Process(blocker) = held.owner else {
        return Ok(());
    };
    let locks = &mut kernel.state.files.locks;
    if locks.would_deadlock(waiter, blocker) {
        return Err(Errno::EDEADLK);
    }
    locks.waiting.insert(waiter, vec![blocker]);
    Ok(())
}

/// A process closed a descriptor of the inode: its record locks there are gone.
pub(crate) fn release_process(kernel: &mut Kernel, owner: Pid, inode: InodeId) {
    release_owner(kernel, Owner::Process(owner), inode);
}

/// An open file ended: its locks are gone.
pub(crate) fn release_open(kernel: &mut Kernel, open: OpenId, inode: InodeId) {
    release_owner(kernel, Owner::Open(open), inode);
    release_owner(kernel, Owner::Flock(open), inode);
}

fn release_owner(kernel: &mut Kernel, owner: Owner, inode: InodeId) {
    let Some(held) = kernel.state.files.locks.by_inode.get(&inode) else {
        return;
    };
    if held.iter().any(|lock| lock.owner == owner) {
        let all = Lock {
            owner,
            exclusive: true,
            start: 0,
            end: u64::MAX,
            pid: Pid(0),
        };
        release(kernel, inode, &all);
    }
}

fn wake(kernel: &mut Kernel, inode: InodeId) {
    kernel.wake(WaitKey::FileLock(u64::from(inode.0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE: InodeId = InodeId(5);

    fn lock(pid: u32, exclusive: bool, start: u64, end: u64) -> Lock {
        Lock {
            owner: Owner::Process(Pid(pid)),
            exclusive,
            start,
            end,
            pid: Pid(pid),
        }
    }

    #[test]
    fn ranges_split_and_conflict_as_posix_says() {
        let mut locks = Locks::default();
        let whole = lock(1, true, 0, 100);
        locks.replace(INODE, &whole, Some(whole));
        let middle = lock(1, true, 40, 60);
        locks.replace(INODE, &middle, None);
        assert!(locks.conflict(INODE, &lock(2, false, 40, 60)).is_none());
        assert!(locks.conflict(INODE, &lock(2, false, 39, 60)).is_some());
        assert!(locks.conflict(INODE, &lock(2, false, 59, 61)).is_some());
        assert!(locks.conflict(INODE, &lock(1, true, 0, 100)).is_none());
        let shared = lock(1, false, 0, 40);
        locks.replace(INODE, &shared, Some(shared));
        assert!(locks.conflict(INODE, &lock(2, false, 0, 40)).is_none());
        assert!(locks.conflict(INODE, &lock(2, true, 0, 40)).is_some());
    }

    #[test]
    fn a_cycle_of_waiters_is_seen() {
        let mut locks = Locks::default();
        locks.waiting.insert(Pid(1), vec![Pid(2)]);
        locks.waiting.insert(Pid(2), vec![Pid(3)]);
        assert!(locks.would_deadlock(Pid(3), Pid(1)));
        assert!(!locks.would_deadlock(Pid(4), Pid(1)));
    }
}
