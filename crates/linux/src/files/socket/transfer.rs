//! Sending and receiving.

use super::connect::{bind_anywhere, find_unix, wake_idle};
use super::inbox::Segment;
use super::ports::Protocol;
use super::{Address, Credentials, Family, Kind, Socket, Stage, UnixName, socket_mut, socket_of};
use crate::errno::Errno;
use crate::files::flags::{POLLIN, POLLOUT};
use crate::files::inode::InodeId;
use crate::files::io::{Buffer, IoError};
use crate::files::open::{self, OpenId};
use crate::files::ready;
use crate::kernel::Kernel;
use crate::thread::Tid;

const UDP_MAX: usize = 65507;
const UNIX_MAX: usize = 212_960;

/// What to send.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) buffer: &'a Buffer,
    /// Where in the buffer to begin.
    pub(crate) from: usize,
    pub(crate) to: Option<Address>,
    /// Open files to hand over; references are taken when the message is queued.
    pub(crate) rights: Vec<OpenId>,
    pub(crate) credentials: Option<Credentials>,
}

/// What was received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Bytes stored in the buffer.
    pub(crate) count: usize,
    /// Length of the whole message.
    pub(crate) whole: usize,
    pub(crate) from: Option<Address>,
    /// Open files handed over; the references are the caller's now.
    pub(crate) rights: Vec<OpenId>,
    pub(crate) credentials: Option<Credentials>,
}

/// `write` on a socket.
pub(crate) fn write(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    buffer: &Buffer,
    from: usize,
) -> Result<usize, IoError> {
    let outgoing = Outgoing {
        buffer,
        from,
        to: None,
        rights: Vec::new(),
        credentials: None,
    };
    send(kernel, tid, id, &outgoing)
}

/// `read` on a socket; open files that came along are dropped.
pub(crate) fn read(
    kernel: &mut Kernel,
    _tid: Tid,
    id: InodeId,
    buffer: &mut Buffer,
    max: usize,
) -> Result<usize, IoError> {
    let received = receive(kernel, id, buffer, 0, max, false)?;
    for open in received.rights {
        open::release(kernel, open);
    }
    Ok(received.count)
}

/// Sends what fits; a message is sent whole or not at all.
pub(crate) fn send(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    outgoing: &Outgoing<'_>,
) -> Result<usize, IoError> {
    let socket = socket_mut(&mut kernel.state.files, id).ok_or(Errno::ENOTSOCK)?;
    if let Some(errno) = socket.take_error() {
        return Err(errno.into());
    }
    if socket.kind == Kind::Datagram {
        if socket.is_write_shut {
            return Err(Errno::EPIPE.into());
        }
        return send_datagram(kernel, tid, id, outgoing);
    }
    let (family, kind) = (socket.family, socket.kind);
    let partner = match socket.stage {
        Stage::Connected { partner } => partner,
        _ if outgoing.to.is_some() && family == Family::Unix && kind == Kind::Stream => {
            return Err(Errno::EOPNOTSUPP.into());
        }
        _ if family == Family::Unix => return Err(Errno::ENOTCONN.into()),
        _ => return Err(Errno::EPIPE.into()),
    };
    if outgoing.to.is_some() && family == Family::Unix && kind == Kind::Stream {
        return Err(Errno::EISCONN.into());
    }
    if socket.is_write_shut {
        return Err(Errno::EPIPE.into());
    }
    let len = outgoing.buffer.len() - outgoing.from;
    let Some(partner) = partner else {
        if family == Family::Unix {
            return Err(Errno::EPIPE.into());
        }
        // The first segment after the partner has gone is answered by a reset.
        socket.is_write_shut = true;
        return Ok(len);
    };
    if len == 0 && kind == Kind::Stream {
        return Ok(0);
    }
    let inbox = &socket_of(&kernel.state.files, partner)
        .ok_or(Errno::EPIPE)?
        .inbox;
    let count = if kind == Kind::Stream {
        inbox.room().min(len)
    } else if len > UNIX_MAX {
        return Err(Errno::EMSGSIZE.into());
    } else if inbox.takes(len, false) {
        len
    } else {
        0
    };
    if count == 0 && (len > 0 || !inbox.takes(0, false)) {
        return Err(IoError::WouldBlock);
    }
    deliver(kernel, tid, id, partner, outgoing, count)
}

/// Puts `count` bytes into a socket's inbox.
fn deliver(
    kernel: &mut Kernel,
    tid: Tid,
    sender: InodeId,
    receiver: InodeId,
    outgoing: &Outgoing<'_>,
    count: usize,
) -> Result<usize, IoError> {
    let bytes = outgoing.buffer.get(kernel, outgoing.from, count)?;
    let source = socket_of(&kernel.state.files, sender).ok_or(Errno::ENOTSOCK)?;
    let (is_unix, is_stream) = (source.family == Family::Unix, source.is_stream());
    let mut from = (is_unix || !is_stream)
        .then(|| source.local.clone())
        .filter(|address| *address != Address::Unix(UnixName::Unnamed));
    let credentials = if is_unix {
        Some(
            outgoing
                .credentials
                .unwrap_or_else(|| super::credentials_of(kernel, tid)),
        )
    } else {
        None
    };
    let target = socket_mut(&mut kernel.state.files, receiver).ok_or(Errno::EPIPE)?;
    from = from.map(|address| {
        let address = if address.is_wildcard() {
            Address::loopback(Family::Inet, address.port())
        } else {
            address
        };
        address.unmapped().seen_by(target.family)
    });
    let segment = Segment {
        len: bytes.len(),
        from,
        rights: outgoing.rights.clone(),
        credentials,
    };
    target
        .inbox
        .push(&mut kernel.frames, &bytes, segment, is_stream)?;
    for open in &outgoing.rights {
        kernel.state.files.open_file_mut(*open).refs += 1;
    }
    ready::notify(kernel, receiver, POLLIN);
    Ok(bytes.len())
}

fn send_datagram(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    outgoing: &Outgoing<'_>,
) -> Result<usize, IoError> {
    let socket = socket_of(&kernel.state.files, id).ok_or(Errno::ENOTSOCK)?;
    let len = outgoing.buffer.len();
    if socket.family == Family::Unix {
        if len > UNIX_MAX {
            return Err(Errno::EMSGSIZE.into());
        }
        let target = match (&outgoing.to, &socket.stage) {
            (Some(Address::Unix(name)), _) => find_unix(kernel, tid, name, Kind::Datagram)?,
            (None, Stage::Connected { partner }) => partner.ok_or(Errno::ECONNREFUSED)?,
            _ => return Err(Errno::ENOTCONN.into()),
        };
        let receiver = socket_of(&kernel.state.files, target).ok_or(Errno::ECONNREFUSED)?;
        if receiver.is_read_shut {
            return Err(Errno::EPIPE.into());
        }
        if !receiver.inbox.takes(len, true) {
            return Err(IoError::WouldBlock);
        }
        return deliver(kernel, tid, id, target, outgoing, len);
    }
    let destination = match (&outgoing.to, &socket.remote) {
        (Some(address), _) | (None, Some(address)) => address.as_destination(),
        (None, None) => return Err(Errno::EDESTADDRREQ.into()),
    };
    if len > UDP_MAX {
        return Err(Errno::EMSGSIZE.into());
    }
    if !destination.is_own() {
        return Err(Errno::ENETUNREACH.into());
    }
    if destination.port() == 0 {
        return Err(Errno::EINVAL.into());
    }
    bind_anywhere(kernel, id)?;
    let Some(target) = udp_receiver(kernel, id, &destination) else {
        // The port is unreachable: a connected socket hears of it, another does not.
        if let Some(socket) = socket_mut(&mut kernel.state.files, id)
            && socket.remote.is_some()
        {
            socket.error = Some(Errno::ECONNREFUSED);
            ready::notify(kernel, id, POLLIN);
        }
        return Ok(len);
    };
    let has_room = socket_of(&kernel.state.files, target)
        .is_some_and(|socket| !socket.is_read_shut && socket.inbox.takes(len, false));
    if has_room {
        deliver(kernel, tid, id, target, outgoing, len)
    } else {
        Ok(len)
    }
}

/// The socket that takes a datagram: one connected to the sender before one that takes from anybody.
fn udp_receiver(kernel: &Kernel, sender: InodeId, destination: &Address) -> Option<InodeId> {
    let files = &kernel.state.files;
    let source = &socket_of(files, sender)?.local;
    let source = if source.is_wildcard() {
        Address::loopback(Family::Inet, source.port())
    } else {
        source.unmapped()
    };
    let found = files.ports.find(Protocol::Udp, destination);
    let remote = |id: &InodeId| socket_of(files, *id).and_then(|socket| socket.remote.as_ref());
    found
        .iter()
        .find(|id| remote(id).is_some_and(|remote| remote.unmapped() == source))
        .or_else(|| found.iter().find(|id| remote(id).is_none()))
        .copied()
}

/// Receives into the buffer from position `at` on.
pub(crate) fn receive(
    kernel: &mut Kernel,
    id: InodeId,
    buffer: &mut Buffer,
    at: usize,
    max: usize,
    peek: bool,
) -> Result<Received, IoError> {
    let socket = socket_mut(&mut kernel.state.files, id).ok_or(Errno::ENOTSOCK)?;
    let Some(segment) = socket.inbox.segments.front().cloned() else {
        return nothing_to_receive(socket);
    };
    let is_stream = socket.is_stream();
    let count = segment.len.min(max);
    let bytes = socket.inbox.queue.peek(&kernel.frames, 0, count);
    buffer.put(kernel, at, &bytes)?;
    if peek {
        for open in &segment.rights {
            kernel.state.files.open_file_mut(*open).refs += 1;
        }
    } else {
        consume(kernel, id, is_stream, count);
    }
    Ok(Received {
        count,
        whole: if is_stream { count } else { segment.len },
        from: segment.from,
        rights: segment.rights,
        credentials: segment.credentials,
    })
}

fn nothing_to_receive(socket: &mut Socket) -> Result<Received, IoError> {
    if let Some(errno) = socket.take_error() {
        return Err(errno.into());
    }
    let is_unix = socket.family == Family::Unix;
    match socket.stage {
        Stage::Idle | Stage::Listening { .. } | Stage::Failed
            if is_unix && socket.is_connection_oriented() =>
        {
            Err(if socket.is_stream() {
                Errno::EINVAL.into()
            } else {
                Errno::ENOTCONN.into()
            })
        }
        _ if socket.is_read_shut => Ok(Received::default()),
        Stage::Connected { partner: None } if socket.is_connection_oriented() => {
            Ok(Received::default())
        }
        Stage::Idle | Stage::Listening { .. } | Stage::Failed
            if socket.is_connection_oriented() =>
        {
            Err(Errno::ENOTCONN.into())
        }
        _ => Err(IoError::WouldBlock),
    }
}

/// Removes what was read and tells who waits for room.
fn consume(kernel: &mut Kernel, id: InodeId, is_stream: bool, count: usize) {
    let Some(socket) = socket_mut(&mut kernel.state.files, id) else {
        return;
    };
    let was_crowded = !socket.inbox.takes(1, true);
    if is_stream {
        socket.inbox.consume_stream(&mut kernel.frames, count);
    } else {
        socket.inbox.consume_message(&mut kernel.frames);
    }
    let is_unix_datagram = socket.kind == Kind::Datagram && socket.family == Family::Unix;
    let partner = match socket.stage {
        Stage::Connected { partner } => partner,
        _ => None,
    };
    if is_unix_datagram && was_crowded {
        wake_idle(kernel, |socket| {
            socket.kind == Kind::Datagram && socket.family == Family::Unix
        });
    } else if let Some(partner) = partner {
        ready::notify(kernel, partner, POLLOUT);
    }
}
