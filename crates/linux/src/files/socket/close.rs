//! The end of sockets: what closing one means for its partner, its name, and connections that wait at it.

use std::collections::VecDeque;

use super::{Address, Family, Socket, Stage, UnixName, socket_mut};
use crate::errno::Errno;
use crate::files::flags::{POLLIN, POLLOUT};
use crate::files::inode::{InodeId, Node};
use crate::files::{open, ready};
use crate::kernel::Kernel;

/// The last descriptor of a socket is closed.
pub(crate) fn closed(kernel: &mut Kernel, id: InodeId) {
    let Some(socket) = socket_mut(&mut kernel.state.files, id) else {
        return;
    };
    let stage = std::mem::replace(&mut socket.stage, Stage::Connected { partner: None });
    let is_reset = socket.options.resets_on_close || !socket.inbox.is_empty();
    let is_stream = socket.is_connection_oriented();
    let (name, local) = (socket.name.take(), socket.local.clone());
    match stage {
        Stage::Connected {
            partner: Some(partner),
        } if is_stream => part(kernel, partner, is_reset),
        Stage::Listening { waiting, .. } => drop_waiting(kernel, waiting),
        _ => {}
    }
    if !is_stream {
        forget_partner(kernel, id);
    }
    match local {
        Address::Unix(UnixName::Abstract(name)) => kernel.state.files.ports.release_name(&name),
        Address::Unix(_) => {}
        address => kernel.state.files.ports.release(address.port(), id),
    }
    if let Some(name) = name {
        kernel.state.files.inode_mut(name).node = Node::SocketName(None);
        open::release_inode(kernel, name);
    }
    ready::notify(kernel, id, POLLIN | POLLOUT);
}

/// Tells the partner of a closed stream.
fn part(kernel: &mut Kernel, partner: InodeId, is_reset: bool) {
    if let Some(other) = socket_mut(&mut kernel.state.files, partner) {
        other.stage = Stage::Connected { partner: None };
        other.is_read_shut = true;
        if is_reset {
            other.error = Some(Errno::ECONNRESET);
            other.is_write_shut = true;
        }
        ready::notify(kernel, partner, POLLIN | POLLOUT);
    }
}

/// Datagram sockets that were connected to a closed one lose it.
fn forget_partner(kernel: &mut Kernel, gone: InodeId) {
    let connected: Vec<InodeId> = kernel
        .state
        .files
        .inodes
        .iter()
        .filter(|(_, inode)| {
            matches!(&inode.node, Node::Socket(socket)
                if matches!(socket.stage, Stage::Connected { partner: Some(other) } if other == gone))
        })
        .map(|(id, _)| InodeId(id))
        .collect();
    for id in connected {
        if let Some(socket) = socket_mut(&mut kernel.state.files, id) {
            socket.stage = Stage::Connected { partner: None };
            ready::notify(kernel, id, POLLOUT);
        }
    }
}

/// Closes connections that will never be accepted.
pub(super) fn drop_waiting(kernel: &mut Kernel, waiting: VecDeque<InodeId>) {
    for id in waiting {
        if let Some(socket) = socket_mut(&mut kernel.state.files, id)
            && socket.family != Family::Unix
        {
            socket.options.resets_on_close = true;
        }
        closed(kernel, id);
        open::release_inode(kernel, id);
    }
}

/// Gives back what a freed socket holds.
pub(crate) fn destroy(kernel: &mut Kernel, socket: &mut Socket) {
    for open in socket.inbox.clear(&mut kernel.frames) {
        open::release(kernel, open);
    }
}
