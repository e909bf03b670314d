//! Message queues of System V: msgget, msgsnd, msgrcv, msgctl.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{as_i64, as_u64, low_u32, to_u64, to_usize};
use raddle_world::WaitReason;

use super::shared_memory::{command, seconds, set_permission};
use super::table::Entry;
use crate::call::{Block, Call, OnSignal, SysResult, Trouble};
use crate::credentials::Capability;
use crate::errno::Errno;
use crate::ipc::message::{MESSAGE_MAX, QUEUE_MAX};
use crate::ipc::{Asked, Choose, Message, Permission, Queue, flags, queue_key};
use crate::serve;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::full("msgget", msgget),
    Entry::full("msgsnd", msgsnd),
    Entry::partial("msgrcv", msgrcv, "MSG_COPY is refused with ENOSYS"),
    Entry::full("msgctl", msgctl),
];

fn msgget(call: &mut Call<'_>) -> SysResult {
    let (key, wanted) = (call.int(0), call.word(1));
    let who = call.kernel.credentials(call.tid);
    let known = call
        .kernel
        .state
        .ipc
        .queues
        .find(who, key, wanted, |_| true)?;
    if let Some(id) = known {
        return Ok(as_u64(i64::from(id)));
    }
    let queue = Queue {
        permission: Permission::of_new(who, key, wanted),
        messages: Default::default(),
        bytes_max: QUEUE_MAX,
        last_sender: 0,
        last_receiver: 0,
        sent: 0,
        received: 0,
        changed: seconds(call),
    };
    Ok(as_u64(i64::from(
        call.kernel.state.ipc.queues.insert(queue),
    )))
}

/// The queue of the call; removed while its caller waited is told as that.
fn queue<'a>(call: &'a Call<'_>, asked: Asked) -> Result<&'a Queue, Errno> {
    let queue = match call.kernel.state.ipc.queues.get(call.int(0)) {
        Err(_) if call.is_retry => return Err(Errno::EIDRM),
        queue => queue?,
    };
    queue
        .permission
        .check(call.kernel.credentials(call.tid), asked)?;
    Ok(queue)
}

fn wait(call: &Call<'_>) -> Trouble {
    Trouble::Block(Block {
        reason: WaitReason::Io {
            descriptors: Vec::new(),
        },
        keys: vec![queue_key(call.int(0))],
        deadline: None,
        on_signal: OnSignal::Interrupt,
    })
}

fn msgsnd(call: &mut Call<'_>) -> SysResult {
    let (id, size, wanted) = (call.int(0), call.args[2], call.word(3));
    if size > MESSAGE_MAX {
        return Err(Errno::EINVAL.into());
    }
    let kind = as_i64(call.kernel.read_u64(call.tid, call.args[1])?);
    if kind < 1 {
        return Err(Errno::EINVAL.into());
    }
    if !queue(call, Asked::Write)?.has_room(size) {
        if wanted & flags::NO_WAIT != 0 {
            return Err(Errno::EAGAIN.into());
        }
        return Err(wait(call));
    }
    let mut text = vec![0; to_usize(size)];
    let at = GuestAddr(call.args[1].wrapping_add(8));
    call.kernel.read_user(call.tid, at, &mut text)?;
    let (now, pid) = (seconds(call), call.kernel.thread(call.tid).process.0);
    let queue = call.kernel.state.ipc.queues.get_mut(id)?;
    queue.messages.push_back(Message { kind, text });
    (queue.sent, queue.last_sender) = (now, pid);
    call.kernel.wake(queue_key(id));
    Ok(0)
}

fn msgrcv(call: &mut Call<'_>) -> SysResult {
    const NO_ERROR: u32 = 0o10_000;
    const EXCEPT: u32 = 0o20_000;
    const COPY: u32 = 0o40_000;
    let (id, room, wanted) = (call.int(0), call.args[2], call.word(4));
    if as_i64(room) < 0 {
        return Err(Errno::EINVAL.into());
    }
    if wanted & COPY != 0 {
        return Err(Errno::ENOSYS.into());
    }
    let choose = Choose::new(as_i64(call.args[3]), wanted & EXCEPT != 0);
    let queue = queue(call, Asked::Read)?;
    let Some(place) = queue.find(choose) else {
        if wanted & flags::NO_WAIT != 0 {
            return Err(Errno::ENOMSG.into());
        }
        return Err(wait(call));
    };
    let message = queue.messages[place].clone();
    let size = to_u64(message.text.len()).min(room);
    if to_u64(message.text.len()) > room && wanted & NO_ERROR == 0 {
        return Err(Errno::E2BIG.into());
    }
    call.write_words(call.args[1], &[as_u64(message.kind)])?;
    let at = GuestAddr(call.args[1].wrapping_add(8));
    call.kernel
        .write_user(call.tid, at, &message.text[..to_usize(size)])?;
    let (now, pid) = (seconds(call), call.kernel.thread(call.tid).process.0);
    let queue = call.kernel.state.ipc.queues.get_mut(id)?;
    queue.messages.remove(place);
    (queue.received, queue.last_receiver) = (now, pid);
    serve::obtain(call.kernel, call.tid, queue_key(id));
    call.kernel.wake(queue_key(id));
    Ok(size)
}

fn msgctl(call: &mut Call<'_>) -> SysResult {
    const STAT_INDEX: i32 = 11;
    const USAGE: i32 = 12;
    const STAT_ANY: i32 = 13;
    match call.int(1) {
        command::REMOVE => remove(call),
        command::SET => set(call),
        command::STAT | STAT_INDEX => {
            queue(call, Asked::Read)?;
            put_status(call)
        }
        STAT_ANY => put_status(call),
        command::INFO | USAGE => put_limits(call),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn remove(call: &mut Call<'_>) -> SysResult {
    let id = call.int(0);
    let queue = call.kernel.state.ipc.queues.get(id)?;
    queue
        .permission
        .check_owner(call.kernel.credentials(call.tid))?;
    call.kernel.state.ipc.queues.remove(id);
    call.kernel.wake(queue_key(id));
    Ok(0)
}

fn set(call: &mut Call<'_>) -> SysResult {
    const BYTES_MAX: u64 = 88;
    let id = call.int(0);
    let bytes_max = call
        .kernel
        .read_u64(call.tid, call.args[2].wrapping_add(BYTES_MAX))?;
    call.kernel.state.ipc.queues.get(id)?;
    if bytes_max > QUEUE_MAX {
        call.kernel
            .credentials(call.tid)
            .need(Capability::SYS_RESOURCE)?;
    }
    set_permission(call, call.args[2], |ipc, id| Ok(ipc.queues.get_mut(id)?))?;
    let now = seconds(call);
    let queue = call.kernel.state.ipc.queues.get_mut(id)?;
    (queue.bytes_max, queue.changed) = (bytes_max, now);
    call.kernel.wake(queue_key(id));
    Ok(0)
}

/// Writes a `struct msqid64_ds`. Asked by index, it gives the identifier, which is the same here.
fn put_status(call: &mut Call<'_>) -> SysResult {
    let id = call.int(0);
    let queue = call.kernel.state.ipc.queues.get(id)?;
    let mut bytes = queue.permission.encode(0).to_vec();
    let pids = u64::from(queue.last_sender) | u64::from(queue.last_receiver) << 32;
    for word in [
        queue.sent,
        queue.received,
        queue.changed,
        queue.bytes(),
        to_u64(queue.messages.len()),
        queue.bytes_max,
        pids,
        0,
        0,
    ] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    call.write_bytes(call.args[2], &bytes)?;
    Ok(if call.int(1) == command::STAT {
        0
    } else {
        u64::from(id.cast_unsigned())
    })
}

/// Writes a `struct msginfo`.
fn put_limits(call: &mut Call<'_>) -> SysResult {
    let queues = &call.kernel.state.ipc.queues;
    let highest = queues.highest();
    let (mut pool, mut map, mut headers) = (0, 0, 0);
    if call.int(1) != command::INFO {
        pool = to_u64(queues.len());
        map = queues
            .iter()
            .map(|(_, queue)| to_u64(queue.messages.len()))
            .sum();
        headers = queues.iter().map(|(_, queue)| queue.bytes()).sum();
    }
    let words = [pool, map, MESSAGE_MAX, QUEUE_MAX, 32_000, 16, headers];
    let mut bytes: Vec<u8> = words
        .iter()
        .flat_map(|word| low_u32(*word).to_le_bytes())
        .collect();
    bytes.extend_from_slice(&u16::MAX.to_le_bytes());
    bytes.resize(32, 0);
    call.write_bytes(call.args[2], &bytes)?;
    Ok(u64::from(highest.cast_unsigned()))
}
