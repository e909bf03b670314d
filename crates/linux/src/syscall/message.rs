//! Sending and receiving messages: send, recv and their kin, with ancillary data.

use raddle_mem::GuestAddr;
use raddle_stdx::width::{low_u32, to_u64, to_usize};

use super::file_args::count;
use super::socket::{read_address, target, write_address};
use super::table::Entry;
use crate::call::{Call, SysResult, Trouble};
use crate::errno::Errno;
use crate::files::inode::InodeId;
use crate::files::io::{Buffer, IoError};
use crate::files::open::{self, OpenId};
use crate::files::socket::{
    self, Address, Credentials, Family, Outgoing, Received, receive, send, socket_of,
};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial("sendto", sendto, "MSG_OOB is refused"),
    Entry::partial("recvfrom", recvfrom, "MSG_OOB and MSG_ERRQUEUE are refused"),
    Entry::partial(
        "sendmsg",
        sendmsg,
        "SCM_RIGHTS and SCM_CREDENTIALS; other ancillary data is ignored",
    ),
    Entry::partial("recvmsg", recvmsg, "SCM_RIGHTS and SCM_CREDENTIALS"),
    Entry::partial(
        "recvmmsg",
        recvmmsg,
        "returns what has arrived, as with MSG_WAITFORONE; no timeout",
    ),
    Entry::full("sendmmsg", sendmmsg),
];

const MSG_OOB: u32 = 0x1;
const MSG_PEEK: u32 = 0x2;
const MSG_CTRUNC: u32 = 0x8;
const MSG_TRUNC: u32 = 0x20;
const MSG_DONTWAIT: u32 = 0x40;
const MSG_EOR: u32 = 0x80;
const MSG_WAITALL: u32 = 0x100;
const MSG_ERRQUEUE: u32 = 0x2000;
const MSG_NOSIGNAL: u32 = 0x4000;
const MSG_WAITFORONE: u32 = 0x10000;
const MSG_CMSG_CLOEXEC: u32 = 0x4000_0000;

const SOL_SOCKET: u32 = 1;
const SCM_RIGHTS: u32 = 1;
const SCM_CREDENTIALS: u32 = 2;
/// Length of `struct cmsghdr`.
const HEADER: usize = 16;
/// Most descriptors in one message.
const RIGHTS_MAX: usize = 253;

/// A `struct msghdr`.
struct Header {
    name: u64,
    name_len: u32,
    buffer: Buffer,
    control: u64,
    control_len: u64,
}

fn read_header(call: &mut Call<'_>, addr: u64) -> Result<Header, Errno> {
    let words: [u64; 7] = call.read_words(addr)?;
    if words[3] > super::file_args::VECTOR_MAX {
        return Err(Errno::EMSGSIZE);
    }
    let buffer = call.vector(words[2], words[3])?;
    Ok(Header {
        name: words[0],
        name_len: low_u32(words[1]),
        buffer,
        control: words[4],
        control_len: words[5],
    })
}

/// A send that may sleep. For a stream it goes on until everything is sent.
fn send_all(
    call: &mut Call<'_>,
    open: OpenId,
    inode: InodeId,
    mut outgoing: Outgoing<'_>,
    flags: u32,
) -> SysResult {
    if flags & MSG_OOB != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let file = call.kernel.state.files.open_file(open);
    let no_wait = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let is_stream = socket_of(&call.kernel.state.files, inode)
        .is_some_and(crate::files::socket::Socket::is_stream);
    let mut done = call.progress();
    loop {
        outgoing.from = done;
        if done > 0 {
            // Ancillary data goes with the first bytes.
            outgoing.rights.clear();
        }
        match send(call.kernel, call.tid, inode, &outgoing) {
            Ok(moved) => {
                done += moved;
                if done >= outgoing.buffer.len() || !is_stream || moved == 0 {
                    return count(done);
                }
            }
            Err(IoError::WouldBlock) if no_wait || call.has_timed_out() => {
                return if done > 0 {
                    count(done)
                } else {
                    Err(Errno::EAGAIN.into())
                };
            }
            Err(IoError::WouldBlock) => {
                call.keep_progress(done);
                let deadline = socket::send_deadline(call, open);
                return Err(call.block_on(call.int(0), open, deadline));
            }
            Err(IoError::Errno(errno)) => {
                let quiet = flags & MSG_NOSIGNAL != 0 || !is_stream;
                let trouble = call.broken_pipe(errno, quiet);
                return if done > 0 { count(done) } else { Err(trouble) };
            }
        }
    }
}

fn sendto(call: &mut Call<'_>) -> SysResult {
    let (open, inode) = target(call)?;
    let buffer = call.buffer(1, 2)?;
    let to = if call.args[4] == 0 || call.word(5) == 0 {
        None
    } else {
        read_address(call, inode, call.args[4], call.word(5))?
    };
    let outgoing = Outgoing {
        buffer: &buffer,
        from: 0,
        to,
        rights: Vec::new(),
        credentials: None,
    };
    send_all(call, open, inode, outgoing, call.word(3))
}

fn sendmsg(call: &mut Call<'_>) -> SysResult {
    send_message(call, call.args[1], call.word(2))
}

fn send_message(call: &mut Call<'_>, addr: u64, flags: u32) -> SysResult {
    let (open, inode) = target(call)?;
    let header = read_header(call, addr)?;
    let to = if header.name == 0 || header.name_len == 0 {
        None
    } else {
        read_address(call, inode, header.name, header.name_len)?
    };
    let (rights, credentials) = read_control(call, inode, header.control, header.control_len)?;
    let outgoing = Outgoing {
        buffer: &header.buffer,
        from: 0,
        to,
        rights,
        credentials,
    };
    send_all(call, open, inode, outgoing, flags)
}

/// The ancillary data of a message to be sent.
fn read_control(
    call: &mut Call<'_>,
    inode: InodeId,
    addr: u64,
    len: u64,
) -> Result<(Vec<OpenId>, Option<Credentials>), Errno> {
    let mut found = (Vec::new(), None);
    if addr == 0 || len == 0 {
        return Ok(found);
    }
    if len > 65536 {
        return Err(Errno::ENOBUFS);
    }
    let mut bytes = vec![0; to_usize(len)];
    call.kernel
        .read_user(call.tid, GuestAddr(addr), &mut bytes)?;
    let is_unix = socket_of(&call.kernel.state.files, inode)
        .is_some_and(|socket| socket.family == Family::Unix);
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut at = 0;
    while at + HEADER <= bytes.len() {
        let size = to_usize(u64::from(word(at)));
        if size < HEADER || at + size > bytes.len() {
            return Err(Errno::EINVAL);
        }
        let data = at + HEADER..at + size;
        match (word(at + 8), word(at + 12)) {
            (SOL_SOCKET, SCM_RIGHTS) if is_unix => {
                for place in data
                    .clone()
                    .step_by(4)
                    .filter(|place| place + 4 <= data.end)
                {
                    let fd = word(place).cast_signed();
                    found.0.push(open::lookup_any(call.kernel, call.tid, fd)?);
                }
                if found.0.len() > RIGHTS_MAX {
                    return Err(Errno::EINVAL);
                }
            }
            (SOL_SOCKET, SCM_CREDENTIALS) if is_unix && data.len() >= 12 => {
                found.1 = Some(Credentials {
                    pid: word(data.start),
                    uid: word(data.start + 4),
                    gid: word(data.start + 8),
                });
            }
            (SOL_SOCKET, _) => return Err(Errno::EINVAL),
            _ => {}
        }
        at += size.next_multiple_of(8);
    }
    Ok(found)
}

fn sendmmsg(call: &mut Call<'_>) -> SysResult {
    let number = call.word(2).min(1024);
    let mut sent = 0;
    for index in 0..u64::from(number) {
        let addr = call.args[1].wrapping_add(index * 64);
        // Once a message is out, the call must not sleep any more.
        let flags = if index == 0 {
            call.word(3)
        } else {
            call.word(3) | MSG_DONTWAIT
        };
        match send_message(call, addr, flags) {
            Ok(moved) => {
                call.write_bytes(addr.wrapping_add(56), &low_u32(moved).to_le_bytes())?;
                sent += 1;
            }
            Err(trouble) if sent == 0 => return Err(trouble),
            Err(_) => break,
        }
    }
    Ok(sent)
}

/// A receive that may sleep. MSG_WAITALL on a stream goes on until the buffer is full.
fn receive_all(
    call: &mut Call<'_>,
    open: OpenId,
    inode: InodeId,
    buffer: &mut Buffer,
    flags: u32,
) -> Result<Received, Trouble> {
    if flags & MSG_OOB != 0 {
        return Err(Errno::EINVAL.into());
    }
    if flags & MSG_ERRQUEUE != 0 {
        return Err(Errno::EAGAIN.into());
    }
    let file = call.kernel.state.files.open_file(open);
    let no_wait = file.is_nonblocking() || flags & MSG_DONTWAIT != 0;
    let is_stream = socket_of(&call.kernel.state.files, inode)
        .is_some_and(crate::files::socket::Socket::is_stream);
    let peek = flags & MSG_PEEK != 0;
    let wants_all = flags & MSG_WAITALL != 0 && is_stream && !peek;
    let mut done = call.progress();
    let total = buffer.len();
    if total == 0 && is_stream {
        return Ok(Received::default());
    }
    loop {
        let problem = match receive(call.kernel, inode, buffer, done, total - done, peek) {
            Ok(mut received) => {
                let moved = received.count;
                done += moved;
                let is_over = moved == 0 || done >= total || !received.rights.is_empty();
                if !wants_all || is_over {
                    if is_stream {
                        received.count = done;
                        received.whole = done;
                    }
                    return Ok(received);
                }
                continue;
            }
            Err(IoError::WouldBlock) if no_wait || call.has_timed_out() => Errno::EAGAIN,
            Err(IoError::WouldBlock) => {
                call.keep_progress(done);
                let deadline = socket::receive_deadline(call, open);
                return Err(call.block_on(call.int(0), open, deadline));
            }
            Err(IoError::Errno(errno)) => errno,
        };
        return if done > 0 {
            Ok(Received {
                count: done,
                whole: done,
                ..Received::default()
            })
        } else {
            Err(problem.into())
        };
    }
}

/// The value of a receive: the true length of a datagram if MSG_TRUNC was asked for.
fn length(received: &Received, flags: u32) -> usize {
    if flags & MSG_TRUNC != 0 {
        received.whole
    } else {
        received.count
    }
}

fn recvfrom(call: &mut Call<'_>) -> SysResult {
    let (open, inode) = target(call)?;
    let mut buffer = call.buffer(1, 2)?;
    let flags = call.word(3);
    let received = receive_all(call, open, inode, &mut buffer, flags)?;
    if call.args[4] != 0 {
        match &received.from {
            Some(from) => write_address(call, from, call.args[4], call.args[5])?,
            None => call.write_bytes(call.args[5], &0_u32.to_le_bytes())?,
        }
    }
    let moved = length(&received, flags);
    for open in received.rights {
        open::release(call.kernel, open);
    }
    count(moved)
}

fn recvmsg(call: &mut Call<'_>) -> SysResult {
    receive_message(call, call.args[1], call.word(2))
}

fn receive_message(call: &mut Call<'_>, addr: u64, flags: u32) -> SysResult {
    let (open, inode) = target(call)?;
    let mut header = read_header(call, addr)?;
    let mut received = receive_all(call, open, inode, &mut header.buffer, flags)?;
    let rights = std::mem::take(&mut received.rights);
    let (control_len, control_flags) =
        write_control(call, inode, &header, rights, &received, flags)?;
    let name_len = write_name(call, &header, received.from.as_ref())?;
    let mut out = control_flags;
    if received.whole > received.count {
        out |= MSG_TRUNC;
    }
    if socket_of(&call.kernel.state.files, inode)
        .is_some_and(|socket| socket.kind == socket::Kind::SeqPacket)
        && received.whole > 0
    {
        out |= MSG_EOR;
    }
    call.write_bytes(addr.wrapping_add(8), &name_len.to_le_bytes())?;
    call.write_words(addr.wrapping_add(40), &[to_u64(control_len)])?;
    call.write_bytes(addr.wrapping_add(48), &out.to_le_bytes())?;
    count(length(&received, flags))
}

fn write_name(call: &mut Call<'_>, header: &Header, from: Option<&Address>) -> Result<u32, Errno> {
    let Some(from) = from.filter(|_| header.name != 0) else {
        return Ok(0);
    };
    let bytes = from.encode();
    let room = bytes.len().min(to_usize(u64::from(header.name_len)));
    call.write_bytes(header.name, &bytes[..room])?;
    Ok(low_u32(to_u64(bytes.len())))
}

/// Stores ancillary data; gives its length and flags.
fn write_control(
    call: &mut Call<'_>,
    inode: InodeId,
    header: &Header,
    rights: Vec<OpenId>,
    received: &Received,
    flags: u32,
) -> Result<(usize, u32), Errno> {
    let room = if header.control == 0 {
        0
    } else {
        to_usize(header.control_len)
    };
    let mut control = Vec::new();
    let mut out = 0;
    let passes = socket_of(&call.kernel.state.files, inode)
        .is_some_and(|socket| socket.options.pass_credentials);
    if let Some(who) = received.credentials.filter(|_| passes) {
        let data: Vec<u8> = [who.pid, who.uid, who.gid]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        if HEADER + data.len() <= room {
            push_control(&mut control, SCM_CREDENTIALS, &data);
        } else {
            out |= MSG_CTRUNC;
        }
    }
    let fit = room.saturating_sub(control.len() + HEADER) / 4;
    if rights.len() > fit {
        out |= MSG_CTRUNC;
    }
    let mut data = Vec::new();
    for (index, open) in rights.into_iter().enumerate() {
        if index >= fit {
            open::release(call.kernel, open);
            continue;
        }
        match open::install(call.kernel, call.tid, open, flags & MSG_CMSG_CLOEXEC != 0) {
            Ok(fd) => data.extend_from_slice(&fd.to_le_bytes()),
            Err(_) => out |= MSG_CTRUNC,
        }
    }
    if !data.is_empty() {
        push_control(&mut control, SCM_RIGHTS, &data);
    }
    control.truncate(room);
    call.write_bytes(header.control, &control)?;
    Ok((control.len(), out))
}

/// Appends a `struct cmsghdr` with its data, padded to a multiple of eight.
fn push_control(control: &mut Vec<u8>, kind: u32, data: &[u8]) {
    control.extend_from_slice(&to_u64(HEADER + data.len()).to_le_bytes());
    control.extend_from_slice(&SOL_SOCKET.to_le_bytes());
    control.extend_from_slice(&kind.to_le_bytes());
    control.extend_from_slice(data);
    control.resize(control.len().next_multiple_of(8), 0);
}

fn recvmmsg(call: &mut Call<'_>) -> SysResult {
    let number = call.word(2).min(1024);
    let flags = call.word(3);
    let mut received = 0;
    for index in 0..u64::from(number) {
        let addr = call.args[1].wrapping_add(index * 64);
        // What has arrived is handed over at once; only the first message is waited for.
        let flags = if index == 0 {
            flags & !MSG_WAITFORONE
        } else {
            (flags & !MSG_WAITFORONE) | MSG_DONTWAIT
        };
        match receive_message(call, addr, flags) {
            Ok(moved) => {
                call.write_bytes(addr.wrapping_add(56), &low_u32(moved).to_le_bytes())?;
                received += 1;
            }
            Err(trouble) if received == 0 => return Err(trouble),
            Err(_) => break,
        }
    }
    Ok(received)
}
