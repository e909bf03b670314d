//! POSIX message queues: mq_open, mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr.

use std::sync::Arc;

use raddle_calls::number;
use raddle_mem::GuestAddr;
use raddle_stdx::width::{to_u64, to_usize};

use super::file_args::{count, descriptor};
use super::misc::RLIMIT_MSGQUEUE;
use super::open::masked;
use super::table::Entry;
use crate::call::{Call, OnSignal, SysResult, Trouble, WaitKey};
use crate::credentials::Capability;
use crate::errno::Errno;
use crate::files::flags::{
    NAME_MAX, O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK, O_RDWR, O_WRONLY, POLLIN, POLLOUT,
};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::open::{self, OpenId};
use crate::files::posix_queue::{self, Message, PRIORITY_END, PosixQueue, Registration};
use crate::files::{permission, ready};
use crate::signal::{SIGMAX, SigInfo};
use crate::thread::Activity;
use crate::time::{self, clock};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("mq_open", mq_open),
    Entry::full("mq_unlink", mq_unlink),
    Entry::full("mq_timedsend", mq_timedsend),
    Entry::full("mq_timedreceive", mq_timedreceive),
    Entry::partial(
        "mq_notify",
        mq_notify,
        "SIGEV_THREAD needs netlink sockets, which there are none of",
    ),
    Entry::full("mq_getsetattr", mq_getsetattr),
];

/// Queues of the world at most (`queues_max`); messages and bytes of a message by default and without privileges
/// (`msg_max`, `msgsize_max`), and with them.
const QUEUES_MAX: usize = 256;
const MESSAGES_MAX: u64 = 10;
const SIZE_MAX: u64 = 8192;
const MESSAGES_HARD_MAX: u64 = 65_536;
const SIZE_HARD_MAX: u64 = 16 << 20;

fn mq_open(call: &mut Call<'_>) -> SysResult {
    let (name, flags) = (queue_name(call)?, call.word(1));
    let known = call.kernel.state.files.posix_queues.get(&name).copied();
    let id = match known {
        None if flags & O_CREAT == 0 => return Err(Errno::ENOENT.into()),
        None => create(call, &name)?,
        Some(_) if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => {
            return Err(Errno::EEXIST.into());
        }
        Some(id) => {
            permission::check(call.kernel, call.tid, id, wanted(flags)?)?;
            id
        }
    };
    let path: Name = [b"/", &name[..]].concat().into();
    let open = open::create(call.kernel, id, flags & (O_ACCMODE | O_NONBLOCK), path);
    // A queue that could be made stays, also if there is no descriptor left for it.
    descriptor(open::install(call.kernel, call.tid, open, true)?)
}

/// The name in the first argument; the C library has taken its slash away.
fn queue_name(call: &mut Call<'_>) -> Result<Name, Errno> {
    let name = call.path(0)?;
    match &name[..] {
        b"" => Err(Errno::ENOENT),
        b"." | b".." => Err(Errno::EACCES),
        _ if name.contains(&b'/') => Err(Errno::EACCES),
        _ if name.len() > NAME_MAX => Err(Errno::ENAMETOOLONG),
        _ => Ok(Name::from(name)),
    }
}

/// The permissions that a way of opening needs.
fn wanted(flags: u32) -> Result<u32, Errno> {
    match flags & O_ACCMODE {
        0 => Ok(permission::READ),
        O_WRONLY => Ok(permission::WRITE),
        O_RDWR => Ok(permission::READ | permission::WRITE),
        _ => Err(Errno::EINVAL),
    }
}

fn create(call: &mut Call<'_>, name: &Name) -> Result<InodeId, Errno> {
    let queue = new_queue(call)?;
    let who = call.kernel.credentials(call.tid);
    if call.kernel.state.files.posix_queues.len() >= QUEUES_MAX
        && !who.has(Capability::SYS_RESOURCE)
    {
        return Err(Errno::ENOSPC);
    }
    check_room(call, &queue)?;
    let mode = masked(call, call.word(2));
    let id = open::create_anonymous_inode(call.kernel, mode, Node::PosixQueue(Box::new(queue)));
    open::give_to(call.kernel, id, call.tid);
    call.kernel.state.files.inode_mut(id).links = 1;
    call.kernel
        .state
        .files
        .posix_queues
        .insert(name.clone(), id);
    Ok(id)
}

/// A queue as the `struct mq_attr` of the call wants it.
fn new_queue(call: &mut Call<'_>) -> Result<PosixQueue, Errno> {
    if call.args[3] == 0 {
        return Ok(PosixQueue::new(MESSAGES_MAX, SIZE_MAX));
    }
    let [_, messages, size, _] = call.read_words(call.args[3])?;
    let is_privileged = call
        .kernel
        .credentials(call.tid)
        .has(Capability::SYS_RESOURCE);
    let (messages_max, size_max) = if is_privileged {
        (MESSAGES_HARD_MAX, SIZE_HARD_MAX)
    } else {
        (MESSAGES_MAX, SIZE_MAX)
    };
    if (1..=messages_max).contains(&messages) && (1..=size_max).contains(&size) {
        Ok(PosixQueue::new(messages, size))
    } else {
        Err(Errno::EINVAL)
    }
}

/// EMFILE if the queues of the user would take more than RLIMIT_MSGQUEUE.
fn check_room(call: &Call<'_>, queue: &PosixQueue) -> Result<(), Errno> {
    let files = &call.kernel.state.files;
    let user = call.kernel.credentials(call.tid).users.file;
    let own = files.inodes.iter().filter(|(_, inode)| inode.uid == user);
    let mut taken = queue.accounted().ok_or(Errno::EOVERFLOW)?;
    for (_, inode) in own {
        if let Node::PosixQueue(other) = &inode.node {
            taken = taken.saturating_add(other.accounted().unwrap_or(u64::MAX));
        }
    }
    if taken > call.kernel.process_of(call.tid).limit(RLIMIT_MSGQUEUE) {
        return Err(Errno::EMFILE);
    }
    Ok(())
}

fn mq_unlink(call: &mut Call<'_>) -> SysResult {
    let name = queue_name(call)?;
    let known = call.kernel.state.files.posix_queues.get(&name);
    let id = *known.ok_or(Errno::ENOENT)?;
    // The folder of queues is sticky; the C library makes EACCES of it.
    permission::check_owner(call.kernel, call.tid, id)?;
    call.kernel.state.files.posix_queues.remove(&name);
    call.kernel.state.files.inode_mut(id).links = 0;
    open::free_if_unused(call.kernel, id);
    Ok(0)
}

/// The open queue of the call.
fn queue(call: &Call<'_>) -> Result<(OpenId, InodeId), Errno> {
    let open = call.open_file(0)?;
    let id = call.kernel.state.files.open_file(open).inode;
    posix_queue::of(call.kernel, id).ok_or(Errno::EBADF)?;
    Ok((open, id))
}

/// Takes over the moment in the fifth argument, until which the call waits.
fn note_deadline(call: &mut Call<'_>) -> Result<(), Errno> {
    if !call.is_retry && call.args[4] != 0 {
        let span = time::timespec(call.read_time(call.args[4])?)?;
        call.deadline = Some(time::moment(clock::REALTIME, span)?);
    }
    Ok(())
}

/// Nothing can be sent or received now.
fn wait(call: &Call<'_>, open: OpenId, id: InodeId) -> Trouble {
    if call.kernel.state.files.open_file(open).is_nonblocking() {
        return Errno::EAGAIN.into();
    }
    let now = call.kernel.state.now;
    if call.deadline.is_some_and(|deadline| deadline <= now) {
        return Errno::ETIMEDOUT.into();
    }
    let keys = vec![WaitKey::Object(id.0)];
    call.block(vec![call.int(0)], keys, call.deadline, OnSignal::Restart)
}

fn mq_timedsend(call: &mut Call<'_>) -> SysResult {
    let (size, priority) = (call.args[2], call.word(3));
    if priority >= PRIORITY_END {
        return Err(Errno::EINVAL.into());
    }
    note_deadline(call)?;
    let (open, id) = queue(call)?;
    if !call.kernel.state.files.open_file(open).can_write() {
        return Err(Errno::EBADF.into());
    }
    let target = posix_queue::of(call.kernel, id).ok_or(Errno::EBADF)?;
    if size > target.size_max {
        return Err(Errno::EMSGSIZE.into());
    }
    if target.is_full() {
        return Err(wait(call, open, id));
    }
    let mut text = vec![0; to_usize(size)];
    let at = GuestAddr(call.args[1]);
    call.kernel.read_user(call.tid, at, &mut text)?;
    let text = Arc::from(text);
    if let Some(target) = posix_queue::of_mut(call.kernel, id) {
        target.push(Message { priority, text });
    }
    tell_owner(call, id);
    ready::notify(call.kernel, id, POLLIN);
    Ok(0)
}

/// A message has come: if the queue was empty and no receiver waits for it, the registered process is told, once.
fn tell_owner(call: &mut Call<'_>, id: InodeId) {
    let waiting = receivers(call, id);
    let Some(target) = posix_queue::of_mut(call.kernel, id) else {
        return;
    };
    if target.len() != waiting + 1 {
        return;
    }
    let Some(Registration { owner, signal }) = target.registration.take() else {
        return;
    };
    if let Some((number, value)) = signal.filter(|(number, _)| *number != 0) {
        let sender = call.kernel.thread(call.tid).process;
        let user = call.kernel.credentials(call.tid).users.real;
        let info = SigInfo::message(number, sender.0, user, value);
        call.kernel.signal_process(owner, info);
    }
}

/// How many threads are in a call that receives from a queue.
fn receivers(call: &Call<'_>, id: InodeId) -> u64 {
    const RECEIVE: u32 = number("mq_timedreceive");
    let key = WaitKey::Object(id.0);
    let threads = call.kernel.state.threads.values();
    let receiving = threads.filter(|thread| match &thread.activity {
        Activity::Waiting(waiting) => {
            waiting.number == RECEIVE && waiting.block.keys.contains(&key)
        }
        Activity::User | Activity::Entered => false,
    });
    to_u64(receiving.count())
}

fn mq_timedreceive(call: &mut Call<'_>) -> SysResult {
    note_deadline(call)?;
    let (open, id) = queue(call)?;
    if !call.kernel.state.files.open_file(open).can_read() {
        return Err(Errno::EBADF.into());
    }
    let source = posix_queue::of(call.kernel, id).ok_or(Errno::EBADF)?;
    if call.args[2] < source.size_max {
        return Err(Errno::EMSGSIZE.into());
    }
    let Some(message) = source.first().cloned() else {
        return Err(wait(call, open, id));
    };
    call.write_bytes(call.args[1], &message.text)?;
    if call.args[3] != 0 {
        call.write_bytes(call.args[3], &message.priority.to_le_bytes())?;
    }
    if let Some(source) = posix_queue::of_mut(call.kernel, id) {
        source.pop();
    }
    ready::notify(call.kernel, id, POLLOUT);
    count(message.text.len())
}

fn mq_notify(call: &mut Call<'_>) -> SysResult {
    const SIGNAL: u32 = 0;
    const NOTHING: u32 = 1;
    const THREAD: u32 = 2;
    let asked = match call.args[1] {
        0 => None,
        at => {
            let [value, rest] = call.read_words(at)?;
            let [signal, how] = [rest, rest >> 32].map(raddle_stdx::width::low_u32);
            Some(match how {
                NOTHING => None,
                SIGNAL if signal <= SIGMAX => Some((signal, value)),
                // The field names a netlink socket, and no descriptor is one.
                THREAD => return Err(Errno::EBADF.into()),
                _ => return Err(Errno::EINVAL.into()),
            })
        }
    };
    let (_, id) = queue(call)?;
    let owner = call.kernel.thread(call.tid).process;
    let target = posix_queue::of_mut(call.kernel, id).ok_or(Errno::EBADF)?;
    match (asked, target.registration) {
        (None, _) => {
            target.registration.take_if(|one| one.owner == owner);
        }
        (Some(_), Some(_)) => return Err(Errno::EBUSY.into()),
        (Some(signal), None) => target.registration = Some(Registration { owner, signal }),
    }
    Ok(0)
}

fn mq_getsetattr(call: &mut Call<'_>) -> SysResult {
    let new = match call.args[1] {
        0 => None,
        at => Some(call.read_words::<4>(at)?[0]),
    };
    if new.is_some_and(|flags| flags & !u64::from(O_NONBLOCK) != 0) {
        return Err(Errno::EINVAL.into());
    }
    let (open, id) = queue(call)?;
    let target = posix_queue::of(call.kernel, id).ok_or(Errno::EBADF)?;
    let flags = call.kernel.state.files.open_file(open).flags & O_NONBLOCK;
    let old = [
        u64::from(flags),
        target.messages_max,
        target.size_max,
        target.len(),
    ];
    if let Some(new) = new {
        let file = call.kernel.state.files.open_file_mut(open);
        let kept = file.flags & !O_NONBLOCK;
        file.flags = kept | raddle_stdx::width::low_u32(new);
    }
    if call.args[2] != 0 {
        call.write_words(call.args[2], &old)?;
    }
    Ok(0)
}
