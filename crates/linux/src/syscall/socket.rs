//! Sockets: making, naming, connecting, options.

use raddle_stdx::width::{low_u32, to_u64, to_usize};

use super::fd::install_pair;
use super::file_args::descriptor;
use super::open::masked;
use super::table::Entry;
use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::files::flags::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::io::IoError;
use crate::files::open::{self, OpenId};
use crate::files::socket::{
    self, Address, Family, Kind, Socket, Stage, get_option, set_option, socket_mut, socket_of,
};

pub(super) const ENTRIES: &[Entry] = &[
    Entry::partial(
        "socket",
        socket_call,
        "Unix, and TCP and UDP over IPv4 and IPv6 on the loopback interface; netlink, raw and packet sockets are EAFNOSUPPORT",
    ),
    Entry::partial("connect", connect, "other machines are ENETUNREACH"),
    Entry::full("accept", accept),
    Entry::full("shutdown", shutdown),
    Entry::full("bind", bind),
    Entry::full("listen", listen),
    Entry::full("getsockname", getsockname),
    Entry::full("getpeername", getpeername),
    Entry::full("socketpair", socketpair),
    Entry::partial(
        "setsockopt",
        setsockopt,
        "options that tune a network are kept without effect",
    ),
    Entry::partial(
        "getsockopt",
        getsockopt,
        "options that tune a network are kept without effect",
    ),
    Entry::full("accept4", accept4),
];

const TYPE_MASK: u32 = 0xF;

/// The socket behind the descriptor in argument 0.
pub(super) fn target(call: &Call<'_>) -> Result<(OpenId, InodeId), Errno> {
    let open = call.open_file(0)?;
    let inode = call.kernel.state.files.open_file(open).inode;
    socket_of(&call.kernel.state.files, inode).ok_or(Errno::ENOTSOCK)?;
    Ok((open, inode))
}

fn kind_of(number: u32) -> Result<Kind, Errno> {
    match number & TYPE_MASK {
        1 => Ok(Kind::Stream),
        2 => Ok(Kind::Datagram),
        5 => Ok(Kind::SeqPacket),
        3 => Err(Errno::EPROTONOSUPPORT),
        _ => Err(Errno::EINVAL),
    }
}

fn check_type_flags(number: u32) -> Result<(), Errno> {
    if number & !(TYPE_MASK | O_NONBLOCK | O_CLOEXEC) == 0 {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

fn socket_call(call: &mut Call<'_>) -> SysResult {
    let number = call.word(1);
    check_type_flags(number)?;
    let family = match call.word(0) {
        1 => Family::Unix,
        2 => Family::Inet,
        10 => Family::Inet6,
        _ => return Err(Errno::EAFNOSUPPORT.into()),
    };
    let kind = kind_of(number)?;
    let protocol = call.word(2);
    let is_known = match (family, kind, protocol) {
        (Family::Unix, _, 0 | 1) | (_, Kind::Stream, 0 | 6) | (_, Kind::Datagram, 0 | 17) => true,
        (_, Kind::SeqPacket, _) => return Err(Errno::EPROTONOSUPPORT.into()),
        _ => false,
    };
    if !is_known {
        return Err(Errno::EPROTONOSUPPORT.into());
    }
    let socket = Socket::new(family, kind);
    let inode = open::create_anonymous_inode(call.kernel, 0o777, Node::Socket(Box::new(socket)));
    open::give_to(call.kernel, inode, call.tid);
    install(call, inode, number)
}

/// Gives a socket a descriptor, with the flags that `socket` and `accept4` take.
fn install(call: &mut Call<'_>, inode: InodeId, flags: u32) -> SysResult {
    let path = Name::from(&b"socket:"[..]);
    let open = open::create(call.kernel, inode, O_RDWR | (flags & O_NONBLOCK), path);
    descriptor(open::install(
        call.kernel,
        call.tid,
        open,
        flags & O_CLOEXEC != 0,
    )?)
}

fn socketpair(call: &mut Call<'_>) -> SysResult {
    let number = call.word(1);
    check_type_flags(number)?;
    if call.word(0) != 1 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let kind = kind_of(number)?;
    if call.word(2) > 1 {
        return Err(Errno::EPROTONOSUPPORT.into());
    }
    let (first, second) = socket::pair(call.kernel, call.tid, kind);
    let path = Name::from(&b"socket:"[..]);
    let flags = O_RDWR | (number & O_NONBLOCK);
    let one = open::create(call.kernel, first, flags, path.clone());
    let two = open::create(call.kernel, second, flags, path);
    install_pair(call, one, two, number & O_CLOEXEC != 0, call.args[3])
}

/// Reads a `struct sockaddr` of `len` bytes for this socket.
pub(super) fn read_address(
    call: &mut Call<'_>,
    inode: InodeId,
    addr: u64,
    len: u32,
) -> Result<Option<Address>, Errno> {
    let family = socket_of(&call.kernel.state.files, inode)
        .ok_or(Errno::ENOTSOCK)?
        .family;
    if !(2..=128).contains(&len) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = vec![0; to_usize(u64::from(len))];
    call.kernel
        .read_user(call.tid, raddle_mem::GuestAddr(addr), &mut bytes)?;
    Address::decode(&bytes, family)
}

/// Stores an address and its true length, cut to the room there is.
pub(super) fn write_address(
    call: &mut Call<'_>,
    address: &Address,
    addr: u64,
    len_addr: u64,
) -> Result<(), Errno> {
    if addr == 0 {
        return Ok(());
    }
    let room = call.kernel.read_u32(call.tid, len_addr)?;
    if room > i32::MAX.cast_unsigned() {
        return Err(Errno::EINVAL);
    }
    let bytes = address.encode();
    let count = bytes.len().min(to_usize(u64::from(room)));
    call.write_bytes(addr, &bytes[..count])?;
    let len = low_u32(to_u64(bytes.len()));
    call.write_bytes(len_addr, &len.to_le_bytes())
}

fn bind(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    let address = read_address(call, inode, call.args[1], call.word(2))?;
    let family = socket_of(&call.kernel.state.files, inode).map(|socket| socket.family);
    let address = match (address, family) {
        (Some(address), _) => address,
        // An IPv4 wildcard may say AF_UNSPEC.
        (None, Some(Family::Inet)) => {
            let mut bytes: [u8; 16] = call.read_bytes(call.args[1])?;
            bytes[0] = 2;
            Address::decode(&bytes, Family::Inet)?.ok_or(Errno::EINVAL)?
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    let mode = masked(call, 0o777);
    socket::bind(call.kernel, call.tid, inode, &address, mode)?;
    Ok(0)
}

fn listen(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    socket::listen(call.kernel, call.tid, inode, call.int(1))?;
    Ok(0)
}

fn connect(call: &mut Call<'_>) -> SysResult {
    let (open, inode) = target(call)?;
    let address = read_address(call, inode, call.args[1], call.word(2))?;
    let no_wait = call.kernel.state.files.open_file(open).is_nonblocking();
    match socket::connect(call.kernel, call.tid, inode, address.as_ref(), no_wait) {
        Ok(()) => Ok(0),
        Err(IoError::Errno(errno)) => Err(errno.into()),
        Err(IoError::WouldBlock) if no_wait || call.has_timed_out() => Err(Errno::EAGAIN.into()),
        Err(IoError::WouldBlock) => {
            let deadline = socket::send_deadline(call, open);
            Err(call.block_on(call.int(0), open, deadline))
        }
    }
}

fn accept(call: &mut Call<'_>) -> SysResult {
    accept_with(call, 0)
}

fn accept4(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(3);
    if flags & !(O_NONBLOCK | O_CLOEXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    accept_with(call, flags)
}

fn accept_with(call: &mut Call<'_>, flags: u32) -> SysResult {
    let (open, inode) = target(call)?;
    let no_wait = call.kernel.state.files.open_file(open).is_nonblocking();
    // A full descriptor table must not cost a connection.
    let table = call.kernel.process_of(call.tid).fds;
    call.kernel.state.files.table(table).lowest_free(0)?;
    let accepted = match socket::accept(call.kernel, inode) {
        Ok(accepted) => accepted,
        Err(IoError::Errno(errno)) => return Err(errno.into()),
        Err(IoError::WouldBlock) if no_wait || call.has_timed_out() => {
            return Err(Errno::EAGAIN.into());
        }
        Err(IoError::WouldBlock) => {
            let deadline = socket::receive_deadline(call, open);
            return Err(call.block_on(call.int(0), open, deadline));
        }
    };
    let fd = install(call, accepted, flags);
    open::release_inode(call.kernel, accepted);
    let fd = fd?;
    let remote =
        socket_of(&call.kernel.state.files, accepted).and_then(|socket| socket.remote.clone());
    if let Some(remote) = remote {
        write_address(call, &remote, call.args[1], call.args[2])?;
    }
    Ok(fd)
}

fn shutdown(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    let (receive, send) = match call.int(1) {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::EINVAL.into()),
    };
    socket::shutdown(call.kernel, inode, receive, send)?;
    Ok(0)
}

fn getsockname(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    let local = socket_of(&call.kernel.state.files, inode)
        .ok_or(Errno::ENOTSOCK)?
        .local
        .clone();
    write_address(call, &local, call.args[1], call.args[2])?;
    Ok(0)
}

fn getpeername(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    let socket = socket_of(&call.kernel.state.files, inode).ok_or(Errno::ENOTSOCK)?;
    let is_connected = match socket.stage {
        Stage::Connected { .. } => true,
        Stage::Idle => socket.kind == Kind::Datagram,
        Stage::Listening { .. } | Stage::Failed => false,
    };
    let partner = match socket.stage {
        Stage::Connected { partner } if socket.family == Family::Unix => partner,
        _ => None,
    };
    // The partner may have got its name after the connection was made.
    let remote = partner
        .and_then(|partner| socket_of(&call.kernel.state.files, partner))
        .map(|partner| partner.local.clone())
        .or_else(|| socket.remote.clone())
        .filter(|_| is_connected)
        .ok_or(Errno::ENOTCONN)?;
    write_address(call, &remote, call.args[1], call.args[2])?;
    Ok(0)
}

fn setsockopt(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    let len = to_usize(u64::from(call.word(4)));
    if call.int(4) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut value = vec![0; len.min(256)];
    call.kernel.read_user(call.tid, call.addr(3), &mut value)?;
    let (level, name) = (call.word(1), call.word(2));
    let socket = socket_mut(&mut call.kernel.state.files, inode).ok_or(Errno::ENOTSOCK)?;
    set_option(socket, level, name, &value)?;
    Ok(0)
}

fn getsockopt(call: &mut Call<'_>) -> SysResult {
    let (_, inode) = target(call)?;
    let (level, name) = (call.word(1), call.word(2));
    let room = call.kernel.read_u32(call.tid, call.args[4])?;
    if room > i32::MAX.cast_unsigned() {
        return Err(Errno::EINVAL.into());
    }
    let socket = socket_mut(&mut call.kernel.state.files, inode).ok_or(Errno::ENOTSOCK)?;
    let value = get_option(socket, level, name)?;
    let count = value.len().min(to_usize(u64::from(room)));
    call.write_bytes(call.args[3], &value[..count])?;
    let len = low_u32(to_u64(count));
    call.write_bytes(call.args[4], &len.to_le_bytes())?;
    Ok(0)
}
