//! Descriptors for events: eventfd, timerfd, signalfd, inotify, pidfd.

use raddle_stdx::width::low_i32;
use raddle_world::VirtualTime;

use super::file_args::descriptor;
use super::table::Entry;
use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::files::event::{EventFd, SignalFd, TimerFd};
use crate::files::flags::{AT_FDCWD, O_CLOEXEC, O_NONBLOCK, O_RDWR, POLLIN};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::inotify::{IN_DONT_FOLLOW, IN_MASK_ADD, IN_MASK_CREATE, IN_ONLYDIR, Inotify};
use crate::files::walk::WalkOptions;
use crate::files::{open, permission, ready};
use crate::process::Pid;
use crate::signal::SigInfo;
use crate::time::{self, clock};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("inotify_init", inotify_init),
    Entry::partial(
        "inotify_add_watch",
        inotify_add_watch,
        "sees the changes that programs of this world make",
    ),
    Entry::full("inotify_rm_watch", inotify_rm_watch),
    Entry::full("signalfd", signalfd),
    Entry::full("timerfd_create", timerfd_create),
    Entry::full("eventfd", eventfd),
    Entry::partial(
        "timerfd_settime",
        timerfd_settime,
        "TFD_TIMER_CANCEL_ON_SET has no effect: the clock is never set",
    ),
    Entry::full("timerfd_gettime", timerfd_gettime),
    Entry::full("signalfd4", signalfd4),
    Entry::full("eventfd2", eventfd2),
    Entry::full("inotify_init1", inotify_init1),
    Entry::full("pidfd_send_signal", pidfd_send_signal),
    Entry::full("pidfd_open", pidfd_open),
    Entry::full("pidfd_getfd", pidfd_getfd),
];

fn make(call: &mut Call<'_>, node: Node, name: &str, flags: u32) -> Result<(InodeId, i32), Errno> {
    let inode = open::create_anonymous_inode(call.kernel, 0o600, node);
    let path = Name::from(name.as_bytes());
    let open = open::create(call.kernel, inode, O_RDWR | (flags & O_NONBLOCK), path);
    let fd = open::install(call.kernel, call.tid, open, flags & O_CLOEXEC != 0)?;
    Ok((inode, fd))
}

fn check_flags(flags: u32, more: u32) -> Result<(), Errno> {
    if flags & !(O_CLOEXEC | O_NONBLOCK | more) == 0 {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

fn eventfd(call: &mut Call<'_>) -> SysResult {
    make_event(call, 0)
}

fn eventfd2(call: &mut Call<'_>) -> SysResult {
    make_event(call, call.word(1))
}

fn make_event(call: &mut Call<'_>, flags: u32) -> SysResult {
    const SEMAPHORE: u32 = 1;
    check_flags(flags, SEMAPHORE)?;
    let event = EventFd {
        counter: u64::from(call.word(0)),
        is_semaphore: flags & SEMAPHORE != 0,
    };
    let (_, fd) = make(call, Node::Event(event), "anon_inode:[eventfd]", flags)?;
    descriptor(fd)
}

fn signalfd(call: &mut Call<'_>) -> SysResult {
    make_signal(call, 0)
}

fn signalfd4(call: &mut Call<'_>) -> SysResult {
    make_signal(call, call.word(3))
}

fn make_signal(call: &mut Call<'_>, flags: u32) -> SysResult {
    check_flags(flags, 0)?;
    if call.args[2] != 8 {
        return Err(Errno::EINVAL.into());
    }
    // SIGKILL and SIGSTOP cannot be caught this way either.
    let mask = call.kernel.read_u64(call.tid, call.args[1])? & !((1 << 8) | (1 << 18));
    if call.int(0) == -1 {
        let node = Node::Signal(SignalFd { mask });
        let (_, fd) = make(call, node, "anon_inode:[signalfd]", flags)?;
        return descriptor(fd);
    }
    let inode = call.inode(0)?;
    match &mut call.kernel.state.files.inode_mut(inode).node {
        Node::Signal(signal) => signal.mask = mask,
        _ => return Err(Errno::EINVAL.into()),
    }
    ready::notify(call.kernel, inode, POLLIN);
    descriptor(call.int(0))
}

fn timerfd_create(call: &mut Call<'_>) -> SysResult {
    check_flags(call.word(1), 0)?;
    let is_realtime = match call.int(0) {
        clock::REALTIME | clock::REALTIME_ALARM => true,
        clock::MONOTONIC | clock::BOOTTIME | clock::BOOTTIME_ALARM => false,
        _ => return Err(Errno::EINVAL.into()),
    };
    let timer = TimerFd {
        is_realtime,
        deadline: None,
        interval: 0,
        expirations: 0,
    };
    let (inode, fd) = make(
        call,
        Node::Timer(timer),
        "anon_inode:[timerfd]",
        call.word(1),
    )?;
    call.kernel.state.files.timers.push(inode);
    descriptor(fd)
}

fn timer(call: &Call<'_>) -> Result<(InodeId, TimerFd), Errno> {
    let inode = call.inode(0)?;
    match &call.kernel.state.files.inode(inode).node {
        Node::Timer(timer) => Ok((inode, timer.clone())),
        _ => Err(Errno::EINVAL),
    }
}

/// `struct itimerspec`: interval, then what is left.
fn timer_words(call: &Call<'_>, timer: &TimerFd) -> [u64; 4] {
    let left = timer.deadline.map_or(0, |deadline| {
        deadline.0.saturating_sub(call.kernel.state.now.0).max(1)
    });
    let (interval, second) = (timer.interval, time::SECOND);
    [
        interval / second,
        interval % second,
        left / second,
        left % second,
    ]
}

fn timerfd_gettime(call: &mut Call<'_>) -> SysResult {
    let (_, timer) = timer(call)?;
    let words = timer_words(call, &timer);
    call.write_words(call.args[1], &words)?;
    Ok(0)
}

fn timerfd_settime(call: &mut Call<'_>) -> SysResult {
    const ABSOLUTE: u32 = 1;
    const CANCEL_ON_SET: u32 = 2;
    let (inode, old) = timer(call)?;
    let flags = call.word(1);
    if flags & !(ABSOLUTE | CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let words: [u64; 4] = call.read_words(call.args[2])?;
    let limit = u64::MAX >> 1;
    if words[1] >= time::SECOND || words[3] >= time::SECOND || words[0] > limit || words[2] > limit
    {
        return Err(Errno::EINVAL.into());
    }
    let nanos =
        |seconds: u64, nanos: u64| seconds.saturating_mul(time::SECOND).saturating_add(nanos);
    let (interval, value) = (nanos(words[0], words[1]), nanos(words[2], words[3]));
    let now = call.kernel.state.now;
    let deadline = if value == 0 {
        None
    } else if flags & ABSOLUTE == 0 {
        Some(VirtualTime(now.0.saturating_add(value)))
    } else {
        let clock = if old.is_realtime {
            time::realtime(now)
        } else {
            time::monotonic(now)
        };
        // What lies in the past fires at once.
        Some(VirtualTime(
            now.0.saturating_add(value.saturating_sub(clock)),
        ))
    };
    if call.args[3] != 0 {
        let before = timer_words(call, &old);
        call.write_words(call.args[3], &before)?;
    }
    call.kernel.state.files.inode_mut(inode).node = Node::Timer(TimerFd {
        is_realtime: old.is_realtime,
        deadline,
        interval,
        expirations: 0,
    });
    crate::files::timers_expired(call.kernel);
    Ok(0)
}

fn inotify_init(call: &mut Call<'_>) -> SysResult {
    make_inotify(call, 0)
}

fn inotify_init1(call: &mut Call<'_>) -> SysResult {
    check_flags(call.word(0), 0)?;
    make_inotify(call, call.word(0))
}

fn make_inotify(call: &mut Call<'_>, flags: u32) -> SysResult {
    let node = Node::Inotify(Inotify::default());
    let (inode, fd) = make(call, node, "anon_inode:inotify", flags)?;
    call.kernel.state.files.watchers.push(inode);
    descriptor(fd)
}

fn inotify_add_watch(call: &mut Call<'_>) -> SysResult {
    let inode = call.inode(0)?;
    if !matches!(call.kernel.state.files.inode(inode).node, Node::Inotify(_)) {
        return Err(Errno::EINVAL.into());
    }
    let path = call.path(1)?;
    let mask = call.word(2);
    if mask & 0xFFF == 0 || mask & (IN_MASK_ADD | IN_MASK_CREATE) == IN_MASK_ADD | IN_MASK_CREATE {
        return Err(Errno::EINVAL.into());
    }
    let options = if mask & IN_DONT_FOLLOW == 0 {
        WalkOptions::FOLLOW
    } else {
        WalkOptions::NOFOLLOW
    };
    let watched = call.find(AT_FDCWD, &path, options)?;
    permission::check(call.kernel, call.tid, watched, permission::READ)?;
    let files = &mut call.kernel.state.files;
    if mask & IN_ONLYDIR != 0 && !files.inode(watched).node.is_directory() {
        return Err(Errno::ENOTDIR.into());
    }
    match &mut files.inode_mut(inode).node {
        Node::Inotify(inotify) => descriptor(inotify.watch(watched, mask)?),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn inotify_rm_watch(call: &mut Call<'_>) -> SysResult {
    let inode = call.inode(0)?;
    let number = call.int(1);
    match &mut call.kernel.state.files.inode_mut(inode).node {
        Node::Inotify(inotify) => inotify.unwatch(number)?,
        _ => return Err(Errno::EINVAL.into()),
    }
    ready::notify(call.kernel, inode, POLLIN);
    Ok(0)
}

fn pidfd_open(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(1);
    if flags & !O_NONBLOCK != 0 || call.int(0) <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let pid = Pid(call.word(0));
    if !call.kernel.state.processes.contains_key(&pid) {
        let is_thread = call
            .kernel
            .state
            .threads
            .contains_key(&crate::thread::Tid(pid.0));
        return Err(if is_thread {
            Errno::EINVAL.into()
        } else {
            Errno::ESRCH.into()
        });
    }
    let (_, fd) = make(
        call,
        Node::Process(pid),
        "anon_inode:[pidfd]",
        flags | O_CLOEXEC,
    )?;
    descriptor(fd)
}

/// A descriptor for a process, for CLONE_PIDFD.
pub(crate) fn make_pidfd(call: &mut Call<'_>, pid: Pid) -> Result<i32, Errno> {
    let (_, fd) = make(call, Node::Process(pid), "anon_inode:[pidfd]", O_CLOEXEC)?;
    Ok(fd)
}

fn process_of(call: &Call<'_>) -> Result<Pid, Errno> {
    process_at(call, 0)
}

/// The process that the descriptor in an argument stands for.
pub(super) fn process_at(call: &Call<'_>, index: usize) -> Result<Pid, Errno> {
    let inode = call.inode(index)?;
    match call.kernel.state.files.inode(inode).node {
        Node::Process(pid) => Ok(pid),
        _ => Err(Errno::EBADF),
    }
}

fn pidfd_send_signal(call: &mut Call<'_>) -> SysResult {
    let pid = process_of(call)?;
    if call.word(3) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if !call.kernel.state.processes.contains_key(&pid) {
        return Err(Errno::ESRCH.into());
    }
    if !call.kernel.may_signal(call.tid, pid, 0) {
        return Err(Errno::EPERM.into());
    }
    let number = u32::try_from(low_i32(call.args[1]))
        .ok()
        .filter(|number| *number <= 64)
        .ok_or(Errno::EINVAL)?;
    if number != 0 {
        let sender = call.kernel.thread(call.tid).process;
        let uid = call.kernel.credentials(call.tid).users.real;
        let info = SigInfo::user(number, sender.0, uid);
        call.kernel.signal_process(pid, info);
    }
    Ok(0)
}

fn pidfd_getfd(call: &mut Call<'_>) -> SysResult {
    let pid = process_of(call)?;
    let process = call.kernel.state.processes.get(&pid).ok_or(Errno::ESRCH)?;
    if process.is_zombie() {
        return Err(Errno::ESRCH.into());
    }
    let table = process.fds;
    let open = call.kernel.state.files.table(table).get(call.int(1))?.open;
    call.kernel.state.files.open_file_mut(open).refs += 1;
    descriptor(open::install(call.kernel, call.tid, open, true)?)
}
