//! Sockets: Unix, and TCP and UDP over the loopback interface. There is no other network in this world.
//!
//! A connected stream is a pair of sockets, each with an inbox; sending puts bytes into the partner's inbox.
//! Reading order: [`Socket`], [`inbox`], `connect`, [`transfer`].

mod address;
mod close;
mod connect;
mod inbox;
mod interface;
mod options;
mod peer;
mod ports;
mod transfer;

use std::collections::VecDeque;

use raddle_world::VirtualTime;

pub(crate) use address::{Address, UnixName};
pub(crate) use close::{closed, destroy};
pub(crate) use connect::{accept, bind, connect, listen, pair, shutdown};
pub(crate) use interface::interface_ioctl;
pub(crate) use options::{Options, get_option, set_option};
pub(crate) use peer::{PeerBytes, is_listening, peer_connects, peer_receives, peer_sends};
pub(crate) use ports::Ports;
pub(crate) use transfer::{Outgoing, Received, read, receive, send, write};

use super::flags::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM};
use super::inode::{InodeId, Node};
use super::open::OpenId;
use super::state::State;
use crate::call::Call;
use crate::errno::Errno;
use crate::kernel::Kernel;
use inbox::Inbox;

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Unix,
    Inet,
    Inet6,
}

impl Family {
    /// The `AF_*` number.
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::Unix => 1,
            Self::Inet => 2,
            Self::Inet6 => 10,
        }
    }
}

/// Type of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stream,
    Datagram,
    SeqPacket,
}

impl Kind {
    /// The `SOCK_*` number.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Stream => 1,
            Self::Datagram => 2,
            Self::SeqPacket => 5,
        }
    }
}

/// Who is at the other end (`struct ucred`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Credentials {
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Where a socket is in its life.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// Not connected; a datagram socket stays here.
    Idle,
    Listening {
        backlog: usize,
        /// Connected sockets that no thread has accepted yet.
        waiting: VecDeque<InodeId>,
    },
    /// Connected; the partner is gone if none.
    Connected { partner: Option<InodeId> },
    /// A connection attempt failed; the error is to be fetched.
    Failed,
}

/// One socket.
#[derive(Debug, Clone)]
pub(crate) struct Socket {
    pub(crate) family: Family,
    pub(crate) kind: Kind,
    pub(crate) stage: Stage,
    pub(crate) local: Address,
    pub(crate) remote: Option<Address>,
    inbox: Inbox,
    is_read_shut: bool,
    is_write_shut: bool,
    /// What `SO_ERROR` will give.
    error: Option<Errno>,
    /// False while a nonblocking connect has succeeded and no later `connect` has asked about it.
    is_connect_reported: bool,
    pub(crate) options: Options,
    /// `SO_PEERCRED`.
    peer: Credentials,
    /// The inode in the file system that names this socket.
    name: Option<InodeId>,
}

impl Socket {
    pub(crate) fn new(family: Family, kind: Kind) -> Self {
        Self {
            family,
            kind,
            stage: Stage::Idle,
            local: Address::unspecified(family),
            remote: None,
            inbox: Inbox::default(),
            is_read_shut: false,
            is_write_shut: false,
            error: None,
            is_connect_reported: true,
            options: Options::default(),
            peer: Credentials {
                pid: 0,
                uid: u32::MAX,
                gid: u32::MAX,
            },
            name: None,
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.kind == Kind::Stream
    }

    fn is_connection_oriented(&self) -> bool {
        self.kind != Kind::Datagram
    }

    /// What FIONREAD tells.
    pub(crate) fn readable_bytes(&self) -> usize {
        self.inbox.next_len(self.is_stream())
    }

    /// Poll bits.
    pub(crate) fn readiness(&self, state: &State) -> u32 {
        let mut bits = 0;
        if let Stage::Listening { waiting, .. } = &self.stage
            && self.family != Family::Unix
        {
            return if waiting.is_empty() {
                0
            } else {
                POLLIN | POLLRDNORM
            };
        }
        if !self.inbox.is_empty() {
            bits |= POLLIN | POLLRDNORM;
        }
        if self.is_read_shut {
            bits |= POLLIN | POLLRDNORM | POLLRDHUP;
        }
        if self.error.is_some() {
            bits |= POLLERR;
        }
        match &self.stage {
            Stage::Listening { waiting, .. } => {
                if !waiting.is_empty() {
                    bits |= POLLIN | POLLRDNORM;
                }
            }
            Stage::Connected { partner: None } if self.is_connection_oriented() => {
                bits |= POLLIN | POLLOUT | POLLHUP | POLLRDHUP | POLLRDNORM | POLLWRNORM;
            }
            Stage::Connected {
                partner: Some(partner),
            } => {
                let has_room =
                    socket_of(state, *partner).is_none_or(|partner| partner.inbox.is_writable());
                if has_room || self.is_write_shut {
                    bits |= POLLOUT | POLLWRNORM;
                }
            }
            Stage::Failed => bits |= POLLIN | POLLOUT | POLLHUP | POLLRDNORM | POLLWRNORM,
            Stage::Idle if self.is_connection_oriented() => {
                bits |= POLLHUP | POLLOUT | POLLWRNORM;
            }
            Stage::Idle | Stage::Connected { partner: None } => bits |= POLLOUT | POLLWRNORM,
        }
        if self.is_read_shut && self.is_write_shut {
            bits |= POLLHUP;
        }
        bits
    }

    /// Takes the pending error, as reads, writes and SO_ERROR do.
    pub(crate) fn take_error(&mut self) -> Option<Errno> {
        self.error.take()
    }
}

/// The socket behind an inode.
pub(crate) fn socket_of(state: &State, id: InodeId) -> Option<&Socket> {
    match &state.inodes.get(id.0)?.node {
        Node::Socket(socket) => Some(socket),
        _ => None,
    }
}

/// The socket behind an inode, to be changed.
pub(crate) fn socket_mut(state: &mut State, id: InodeId) -> Option<&mut Socket> {
    match &mut state.inodes.get_mut(id.0)?.node {
        Node::Socket(socket) => Some(socket),
        _ => None,
    }
}

impl Kernel {
    /// Whether an object of the file layer is a socket that takes connections.
    pub(crate) fn is_listening(&self, object: u32) -> bool {
        let socket = socket_of(&self.state.files, InodeId(object));
        socket.is_some_and(|socket| matches!(socket.stage, Stage::Listening { .. }))
    }
}

/// The credentials of a thread's process.
pub(crate) fn credentials_of(kernel: &Kernel, tid: crate::thread::Tid) -> Credentials {
    let pid = kernel.process_of(tid).pid;
    let who = kernel.credentials(tid);
    Credentials {
        pid: pid.0,
        uid: who.users.effective,
        gid: who.groups.effective,
    }
}

/// When a receive gives up (`SO_RCVTIMEO`).
pub(crate) fn receive_deadline(call: &Call<'_>, open: OpenId) -> Option<VirtualTime> {
    deadline(call, open, |options| options.receive_timeout)
}

/// When a send gives up (`SO_SNDTIMEO`).
pub(crate) fn send_deadline(call: &Call<'_>, open: OpenId) -> Option<VirtualTime> {
    deadline(call, open, |options| options.send_timeout)
}

fn deadline(
    call: &Call<'_>,
    open: OpenId,
    timeout: impl Fn(&Options) -> Option<u64>,
) -> Option<VirtualTime> {
    if call.is_retry {
        return call.deadline;
    }
    let files = &call.kernel.state.files;
    let socket = socket_of(files, files.open_file(open).inode)?;
    let nanos = timeout(&socket.options)?;
    Some(call.kernel.state.now.after(raddle_world::Duration(nanos)))
}
