//! The life of sockets: names, listening, connecting, accepting, shutting down.

use std::collections::VecDeque;

use super::close::drop_waiting;
use super::ports::{Bound, Protocol};
use super::{
    Address, Family, Kind, Socket, Stage, UnixName, credentials_of, socket_mut, socket_of,
};
use crate::credentials::Capability;
use crate::errno::Errno;
use crate::files::flags::{AT_FDCWD, POLLIN, POLLOUT};
use crate::files::inode::{InodeId, Name, Node};
use crate::files::io::IoError;
use crate::files::walk::{self, WalkOptions};
use crate::files::{open, permission, ready, tree};
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Connections a listening socket keeps at most (`somaxconn`).
const BACKLOG_MAX: usize = 4096;

fn get(kernel: &Kernel, id: InodeId) -> Result<&Socket, Errno> {
    socket_of(&kernel.state.files, id).ok_or(Errno::ENOTSOCK)
}

fn get_mut(kernel: &mut Kernel, id: InodeId) -> Result<&mut Socket, Errno> {
    socket_mut(&mut kernel.state.files, id).ok_or(Errno::ENOTSOCK)
}

fn protocol(socket: &Socket) -> Protocol {
    if socket.kind == Kind::Datagram {
        Protocol::Udp
    } else {
        Protocol::Tcp
    }
}

/// Two sockets connected with each other (`socketpair`).
pub(crate) fn pair(kernel: &mut Kernel, tid: Tid, kind: Kind) -> (InodeId, InodeId) {
    let peer = credentials_of(kernel, tid);
    let make = |kernel: &mut Kernel| {
        let socket = Socket {
            peer,
            ..Socket::new(Family::Unix, kind)
        };
        open::create_anonymous_inode(kernel, 0o777, Node::Socket(Box::new(socket)))
    };
    let (first, second) = (make(kernel), make(kernel));
    for (id, partner) in [(first, second), (second, first)] {
        if let Some(socket) = socket_mut(&mut kernel.state.files, id) {
            socket.stage = Stage::Connected {
                partner: Some(partner),
            };
            socket.remote = Some(Address::unspecified(Family::Unix));
        }
    }
    (first, second)
}

/// `bind`.
pub(crate) fn bind(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    address: &Address,
    mode: u32,
) -> Result<(), Errno> {
    if let Address::Unix(UnixName::Path(path)) = address {
        return bind_path(kernel, tid, id, path, mode);
    }
    if get(kernel, id)?.is_bound() {
        return Err(Errno::EINVAL);
    }
    match address {
        Address::Unix(UnixName::Unnamed) => {
            let name = kernel.state.files.ports.free_name();
            kernel.state.files.ports.bind_name(name.clone(), id)?;
            get_mut(kernel, id)?.local = Address::Unix(UnixName::Abstract(name));
        }
        Address::Unix(UnixName::Abstract(name)) => {
            kernel.state.files.ports.bind_name(name.clone(), id)?;
            get_mut(kernel, id)?.local = address.clone();
        }
        Address::Unix(UnixName::Path(_)) => {}
        Address::Inet { .. } | Address::Inet6 { .. } => {
            check_port(kernel, tid, address)?;
            bind_port(kernel, id, address)?;
        }
    }
    Ok(())
}

fn bind_path(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    path: &Name,
    mode: u32,
) -> Result<(), Errno> {
    let target = walk::resolve(kernel, tid, AT_FDCWD, path, WalkOptions::CHANGE)?;
    if target.inode.is_some() {
        return Err(Errno::EADDRINUSE);
    }
    if get(kernel, id)?.is_bound() {
        return Err(Errno::EINVAL);
    }
    let node = Node::SocketName(Some(id));
    let name = tree::create(kernel, tid, &target, mode, node).map_err(|errno| match errno {
        Errno::EEXIST => Errno::EADDRINUSE,
        other => other,
    })?;
    kernel.state.files.inode_mut(name).holders += 1;
    let socket = get_mut(kernel, id)?;
    socket.name = Some(name);
    socket.local = Address::Unix(UnixName::Path(path.clone()));
    Ok(())
}

/// Ports below 1024 are for those who may serve (ip(7)).
fn check_port(kernel: &Kernel, tid: Tid, address: &Address) -> Result<(), Errno> {
    const FIRST_FREE: u16 = 1024;
    let is_reserved = (1..FIRST_FREE).contains(&address.port());
    if is_reserved && !kernel.credentials(tid).has(Capability::NET_BIND_SERVICE) {
        return Err(Errno::EACCES);
    }
    Ok(())
}

fn bind_port(kernel: &mut Kernel, id: InodeId, address: &Address) -> Result<(), Errno> {
    if !address.is_own() {
        return Err(Errno::EADDRNOTAVAIL);
    }
    let socket = get(kernel, id)?;
    let bound = Bound {
        address: address.clone(),
        socket: id,
        reuse_address: socket.options.reuse_address,
        reuse_port: socket.options.reuse_port,
        only_v6: socket.options.only_v6,
        is_listening: false,
    };
    let protocol = protocol(socket);
    let port = kernel.state.files.ports.bind(protocol, bound)?;
    get_mut(kernel, id)?.local = address.with_port(port);
    Ok(())
}

/// Gives an unbound internet socket a port of the kernel's choice.
pub(super) fn bind_anywhere(kernel: &mut Kernel, id: InodeId) -> Result<(), Errno> {
    let socket = get(kernel, id)?;
    if socket.family == Family::Unix || socket.is_bound() {
        return Ok(());
    }
    let address = Address::unspecified(socket.family);
    bind_port(kernel, id, &address)
}

/// `listen`.
pub(crate) fn listen(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    backlog: i32,
) -> Result<(), Errno> {
    let socket = get(kernel, id)?;
    if !socket.is_connection_oriented() {
        return Err(Errno::EOPNOTSUPP);
    }
    let is_ready = match socket.stage {
        Stage::Idle => socket.family != Family::Unix || socket.is_bound(),
        Stage::Listening { .. } => true,
        Stage::Connected { .. } | Stage::Failed => false,
    };
    if !is_ready {
        return Err(Errno::EINVAL);
    }
    bind_anywhere(kernel, id)?;
    let socket = get(kernel, id)?;
    if socket.family != Family::Unix {
        let port = socket.local.port();
        kernel.state.files.ports.listen(port, id)?;
    }
    let limit = usize::try_from(backlog)
        .unwrap_or(BACKLOG_MAX)
        .min(BACKLOG_MAX);
    let peer = credentials_of(kernel, tid);
    let socket = get_mut(kernel, id)?;
    socket.peer = peer;
    match &mut socket.stage {
        Stage::Listening { backlog, .. } => *backlog = limit,
        stage => {
            *stage = Stage::Listening {
                backlog: limit,
                waiting: VecDeque::new(),
            }
        }
    }
    Ok(())
}

/// The socket that a Unix name leads to.
pub(super) fn find_unix(
    kernel: &mut Kernel,
    tid: Tid,
    name: &UnixName,
    kind: Kind,
) -> Result<InodeId, Errno> {
    let found = match name {
        UnixName::Unnamed => return Err(Errno::EINVAL),
        UnixName::Abstract(name) => kernel.state.files.ports.find_name(name),
        UnixName::Path(path) => {
            let id = walk::find(kernel, tid, AT_FDCWD, path, WalkOptions::FOLLOW)?;
            permission::check(kernel, tid, id, permission::WRITE)?;
            match kernel.state.files.inode(id).node {
                Node::SocketName(socket) => socket,
                _ => None,
            }
        }
    };
    let id = found.ok_or(Errno::ECONNREFUSED)?;
    if get(kernel, id)?.kind != kind {
        return Err(Errno::EPROTOTYPE);
    }
    Ok(id)
}

/// `connect`; none as the address dissolves the association of a datagram socket.
pub(crate) fn connect(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    address: Option<&Address>,
    no_wait: bool,
) -> Result<(), IoError> {
    let socket = get_mut(kernel, id)?;
    if socket.kind == Kind::Datagram {
        return Ok(connect_datagram(kernel, tid, id, address)?);
    }
    if let Some(Address::Unix(name)) = address {
        return connect_unix(kernel, tid, id, name);
    }
    match &socket.stage {
        Stage::Connected { .. } if !socket.is_connect_reported => {
            socket.is_connect_reported = true;
            return Ok(());
        }
        Stage::Connected { .. } | Stage::Listening { .. } => return Err(Errno::EISCONN.into()),
        Stage::Failed => {
            socket.stage = Stage::Idle;
            socket.is_read_shut = false;
            socket.is_write_shut = false;
            let errno = socket.take_error().unwrap_or(Errno::ECONNABORTED);
            return Err(errno.into());
        }
        Stage::Idle => {}
    }
    let address = address.ok_or(Errno::EAFNOSUPPORT)?;
    socket.is_read_shut = false;
    socket.is_write_shut = false;
    let Some(listener) = find_listener(kernel, address)? else {
        return refuse(kernel, id, no_wait);
    };
    if is_full(kernel, listener)? && !no_wait {
        return Err(IoError::WouldBlock);
    }
    establish(kernel, tid, id, listener, address)?;
    if no_wait {
        get_mut(kernel, id)?.is_connect_reported = false;
        return Err(Errno::EINPROGRESS.into());
    }
    Ok(())
}

/// Connects a Unix stream; the other end is looked at before this one.
fn connect_unix(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    name: &UnixName,
) -> Result<(), IoError> {
    let kind = get(kernel, id)?.kind;
    let listener = find_unix(kernel, tid, name, kind)?;
    if !matches!(get(kernel, listener)?.stage, Stage::Listening { .. }) {
        return Err(Errno::ECONNREFUSED.into());
    }
    if is_full(kernel, listener)? {
        return Err(IoError::WouldBlock);
    }
    match get(kernel, id)?.stage {
        Stage::Idle | Stage::Failed => {}
        Stage::Connected { .. } => return Err(Errno::EISCONN.into()),
        Stage::Listening { .. } => return Err(Errno::EINVAL.into()),
    }
    let address = Address::Unix(name.clone());
    Ok(establish(kernel, tid, id, listener, &address)?)
}

fn refuse(kernel: &mut Kernel, id: InodeId, no_wait: bool) -> Result<(), IoError> {
    if !no_wait {
        return Err(Errno::ECONNREFUSED.into());
    }
    let socket = get_mut(kernel, id)?;
    // A reset ends both directions, until the program hears of it by another connect.
    socket.is_read_shut = true;
    socket.is_write_shut = true;
    socket.stage = Stage::Failed;
    socket.error = Some(Errno::ECONNREFUSED);
    ready::notify(kernel, id, POLLIN | POLLOUT);
    Err(Errno::EINPROGRESS.into())
}

/// The listening socket at an internet address; an address that is not ours is unreachable.
pub(super) fn find_listener(kernel: &Kernel, address: &Address) -> Result<Option<InodeId>, Errno> {
    if !address.is_own() {
        return Err(Errno::ENETUNREACH);
    }
    let destination = address.as_destination();
    let files = &kernel.state.files;
    let listening: Vec<InodeId> = files
        .ports
        .find(Protocol::Tcp, &destination)
        .into_iter()
        .filter(|id| {
            socket_of(files, *id)
                .is_some_and(|socket| matches!(socket.stage, Stage::Listening { .. }))
        })
        .collect();
    // Of several that share a port, one with room takes the connection.
    let with_room = listening
        .iter()
        .find(|id| matches!(is_full(kernel, **id), Ok(false)));
    Ok(with_room.or(listening.first()).copied())
}

fn is_full(kernel: &Kernel, listener: InodeId) -> Result<bool, Errno> {
    Ok(match &get(kernel, listener)?.stage {
        Stage::Listening { backlog, waiting } => waiting.len() > *backlog,
        _ => false,
    })
}

/// Makes the listener's end of a connection and puts it into the listener's queue.
fn establish(
    kernel: &mut Kernel,
    tid: Tid,
    client: InodeId,
    listener: InodeId,
    address: &Address,
) -> Result<(), Errno> {
    let destination = address.as_destination();
    bind_anywhere(kernel, client)?;
    let own = credentials_of(kernel, tid);
    let (family, kind) = (get(kernel, listener)?.family, get(kernel, listener)?.kind);
    let listening = get(kernel, listener)?;
    let (options, inbox_capacity, server_peer) = (
        listening.options.clone(),
        listening.inbox.capacity,
        listening.peer,
    );
    let server_local = match &destination {
        Address::Unix(_) => listening.local.clone(),
        other => other.unmapped().seen_by(family),
    };
    let connecting = get_mut(kernel, client)?;
    if connecting.local.is_wildcard() {
        let port = connecting.local.port();
        let source = match destination.unmapped() {
            Address::Inet6 { .. } => Address::loopback(Family::Inet6, port),
            _ => Address::loopback(Family::Inet, port),
        };
        connecting.local = source.seen_by(connecting.family);
    }
    connecting.remote = Some(destination);
    connecting.peer = server_peer;
    let client_address = connecting.local.unmapped().seen_by(family);
    let mut server = Socket {
        stage: Stage::Connected {
            partner: Some(client),
        },
        local: server_local,
        remote: Some(client_address),
        peer: own,
        options,
        ..Socket::new(family, kind)
    };
    server.inbox.capacity = inbox_capacity;
    let server = open::create_anonymous_inode(kernel, 0o777, Node::Socket(Box::new(server)));
    kernel.state.files.inode_mut(server).holders += 1;
    let connecting = get_mut(kernel, client)?;
    connecting.stage = Stage::Connected {
        partner: Some(server),
    };
    if let Stage::Listening { waiting, .. } = &mut get_mut(kernel, listener)?.stage {
        waiting.push_back(server);
    }
    ready::notify(kernel, listener, POLLIN);
    ready::notify(kernel, client, POLLOUT);
    Ok(())
}

fn connect_datagram(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    address: Option<&Address>,
) -> Result<(), Errno> {
    let Some(address) = address else {
        let socket = get_mut(kernel, id)?;
        socket.stage = Stage::Idle;
        socket.remote = None;
        return Ok(());
    };
    if let Address::Unix(name) = address {
        let partner = find_unix(kernel, tid, name, Kind::Datagram)?;
        let socket = get_mut(kernel, id)?;
        socket.stage = Stage::Connected {
            partner: Some(partner),
        };
        socket.remote = Some(address.clone());
        return Ok(());
    }
    if !address.is_own() {
        return Err(Errno::ENETUNREACH);
    }
    bind_anywhere(kernel, id)?;
    let destination = address.as_destination();
    let socket = get_mut(kernel, id)?;
    if socket.local.is_wildcard() {
        let port = socket.local.port();
        let source = match destination.unmapped() {
            Address::Inet6 { .. } => Address::loopback(Family::Inet6, port),
            _ => Address::loopback(Family::Inet, port),
        };
        socket.local = source.seen_by(socket.family);
    }
    socket.remote = Some(destination);
    Ok(())
}

/// Takes the oldest connection that waits at a listening socket; the caller takes over its hold.
pub(crate) fn accept(kernel: &mut Kernel, id: InodeId) -> Result<InodeId, IoError> {
    let was_full = is_full(kernel, id)?;
    let socket = get_mut(kernel, id)?;
    let family = socket.family;
    if !socket.is_connection_oriented() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let Stage::Listening { waiting, .. } = &mut socket.stage else {
        return Err(Errno::EINVAL.into());
    };
    let accepted = waiting.pop_front().ok_or(IoError::WouldBlock)?;
    if was_full {
        wake_idle(kernel, |socket| {
            socket.family == family && matches!(socket.stage, Stage::Idle)
        });
    }
    Ok(accepted)
}

/// Wakes the threads that sleep on one of the sockets that fit; they cannot know what they wait for by name.
pub(super) fn wake_idle(kernel: &mut Kernel, fits: impl Fn(&Socket) -> bool) {
    let sleeping: Vec<InodeId> = kernel
        .state
        .files
        .inodes
        .iter()
        .filter(|(_, inode)| matches!(&inode.node, Node::Socket(socket) if fits(socket)))
        .map(|(id, _)| InodeId(id))
        .collect();
    for id in sleeping {
        ready::notify(kernel, id, POLLOUT);
    }
}

/// `shutdown`: stops receiving, sending, or both.
pub(crate) fn shutdown(
    kernel: &mut Kernel,
    id: InodeId,
    receive: bool,
    send: bool,
) -> Result<(), Errno> {
    let socket = get_mut(kernel, id)?;
    let is_unix = socket.family == Family::Unix;
    let partner = match &mut socket.stage {
        Stage::Connected { partner } => *partner,
        Stage::Listening { .. } if is_unix => None,
        Stage::Listening { waiting, .. } if receive => {
            let waiting = std::mem::take(waiting);
            socket.stage = Stage::Idle;
            socket.is_read_shut = false;
            socket.is_write_shut = false;
            drop_waiting(kernel, waiting);
            ready::notify(kernel, id, POLLIN | POLLOUT);
            return Ok(());
        }
        Stage::Listening { .. } => return Ok(()),
        Stage::Idle if socket.remote.is_some() || is_unix => None,
        _ => {
            // It takes effect all the same.
            socket.is_read_shut |= receive;
            socket.is_write_shut |= send;
            ready::notify(kernel, id, POLLIN | POLLOUT);
            return Err(Errno::ENOTCONN);
        }
    };
    socket.is_read_shut |= receive;
    socket.is_write_shut |= send;
    let is_paired = socket.is_connection_oriented();
    if is_paired
        && let Some(partner) = partner
        && let Some(other) = socket_mut(&mut kernel.state.files, partner)
    {
        other.is_read_shut |= send;
        other.is_write_shut |= receive && is_unix;
        ready::notify(kernel, partner, POLLIN | POLLOUT);
    }
    ready::notify(kernel, id, POLLIN | POLLOUT);
    Ok(())
}
