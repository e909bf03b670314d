//! One end of a connection that belongs to no process in the world: that of a scripted client.

use super::{Address, Family, Kind, Socket, Stage, connect, receive, socket_of, write};
use crate::errno::Errno;
use crate::files::inode::{InodeId, Node};
use crate::files::io::{Buffer, IoError};
use crate::files::open;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Bytes that are taken in one go.
const PIECE: usize = 64 << 10;

/// What has come for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeerBytes {
    Some(Vec<u8>),
    NotYet,
    Closed,
}

fn address(port: u16) -> Address {
    Address::loopback(Family::Inet, port)
}

/// Whether a socket listens on a port of the loopback interface.
pub(crate) fn is_listening(kernel: &Kernel, port: u16) -> bool {
    matches!(connect::find_listener(kernel, &address(port)), Ok(Some(_)))
}

/// A socket that is connected to a port; none if no socket listens there.
pub(crate) fn peer_connects(kernel: &mut Kernel, tid: Tid, port: u16) -> Option<InodeId> {
    let socket = Socket::new(Family::Inet, Kind::Stream);
    let id = open::create_anonymous_inode(kernel, 0o777, Node::Socket(Box::new(socket)));
    kernel.state.files.inode_mut(id).holders += 1;
    match connect(kernel, tid, id, Some(&address(port)), true) {
        Ok(()) | Err(IoError::Errno(Errno::EINPROGRESS)) => {}
        Err(_) => return None,
    }
    let socket = socket_of(&kernel.state.files, id)?;
    let is_connected = matches!(socket.stage, Stage::Connected { partner: Some(_) });
    is_connected.then_some(id)
}

/// Sends bytes; gives how many were taken.
pub(crate) fn peer_sends(
    kernel: &mut Kernel,
    tid: Tid,
    id: InodeId,
    bytes: &[u8],
) -> Option<usize> {
    let is_open = socket_of(&kernel.state.files, id)
        .is_some_and(|socket| matches!(socket.stage, Stage::Connected { partner: Some(_) }));
    if !is_open {
        return None;
    }
    write(kernel, tid, id, &Buffer::Own(bytes.to_vec()), 0).ok()
}

/// Takes some of the bytes that have come.
pub(crate) fn peer_receives(kernel: &mut Kernel, id: InodeId) -> PeerBytes {
    let mut buffer = Buffer::Own(Vec::new());
    match receive(kernel, id, &mut buffer, 0, PIECE, false) {
        Ok(received) if received.count == 0 => PeerBytes::Closed,
        Ok(_) => match buffer {
            Buffer::Own(bytes) => PeerBytes::Some(bytes),
            Buffer::User { .. } => PeerBytes::Closed,
        },
        Err(IoError::WouldBlock) => PeerBytes::NotYet,
        Err(IoError::Errno(_)) => PeerBytes::Closed,
    }
}
