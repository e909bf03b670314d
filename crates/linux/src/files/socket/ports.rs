//! Which socket has which port or abstract name.

use std::collections::BTreeMap;

use super::Address;
use crate::errno::Errno;
use crate::files::inode::{InodeId, Name};

const EPHEMERAL_FIRST: u16 = 32768;
const EPHEMERAL_LAST: u16 = 60999;

/// TCP and UDP have port numbers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// A socket at a port.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) address: Address,
    pub(crate) socket: InodeId,
    pub(crate) reuse_address: bool,
    pub(crate) reuse_port: bool,
    /// An IPv6 wildcard that leaves IPv4 alone.
    pub(crate) only_v6: bool,
    pub(crate) is_listening: bool,
}

/// All bound ports and abstract names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports {
    bound: BTreeMap<(Protocol, u16), Vec<Bound>>,
    names: BTreeMap<Name, InodeId>,
    last: u16,
}

impl Bound {
    /// Whether packets to `destination` reach it; the better the fit, the higher the number.
    fn fit(&self, destination: &Address) -> Option<u32> {
        let (own, wanted) = (self.address.unmapped(), destination.unmapped());
        let has_same_family = matches!(
            (&own, &wanted),
            (Address::Inet { .. }, Address::Inet { .. })
                | (Address::Inet6 { .. }, Address::Inet6 { .. })
        );
        if own == wanted {
            Some(3)
        } else if has_same_family && own.is_wildcard() {
            Some(2)
        } else if !self.only_v6
            && matches!(own, Address::Inet6 { .. })
            && own.is_wildcard()
            && matches!(wanted, Address::Inet { .. })
        {
            Some(1)
        } else {
            None
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.fit(&other.address).is_some() || other.fit(&self.address).is_some()
    }
}

impl Ports {
    /// Binds to the port in the address, or to a free one if that is zero.
    pub(crate) fn bind(&mut self, protocol: Protocol, mut bound: Bound) -> Result<u16, Errno> {
        let port = match bound.address.port() {
            0 => self.free_port(protocol)?,
            port => port,
        };
        bound.address = bound.address.with_port(port);
        let there = self.bound.entry((protocol, port)).or_default();
        let in_the_way = there.iter().any(|other| {
            let both_reuse_port = other.reuse_port && bound.reuse_port;
            let both_reuse_address = other.reuse_address
                && bound.reuse_address
                && (protocol == Protocol::Udp || !other.is_listening);
            other.overlaps(&bound) && !both_reuse_port && !both_reuse_address
        });
        if in_the_way {
            return Err(Errno::EADDRINUSE);
        }
        there.push(bound);
        Ok(port)
    }

    fn free_port(&mut self, protocol: Protocol) -> Result<u16, Errno> {
        for _ in EPHEMERAL_FIRST..=EPHEMERAL_LAST {
            let next = if (EPHEMERAL_FIRST..EPHEMERAL_LAST).contains(&self.last) {
                self.last + 1
            } else {
                EPHEMERAL_FIRST
            };
            self.last = next;
            if self.bound.get(&(protocol, next)).is_none_or(Vec::is_empty) {
                return Ok(next);
            }
        }
        Err(Errno::EADDRINUSE)
    }

    /// A bound socket begins to listen; EADDRINUSE if another already does there.
    pub(crate) fn listen(&mut self, port: u16, socket: InodeId) -> Result<(), Errno> {
        let Some(there) = self.bound.get_mut(&(Protocol::Tcp, port)) else {
            return Ok(());
        };
        let Some(index) = there.iter().position(|bound| bound.socket == socket) else {
            return Ok(());
        };
        let own = there[index].clone();
        let taken = there.iter().any(|other| {
            other.socket != socket
                && other.is_listening
                && other.overlaps(&own)
                && !(other.reuse_port && own.reuse_port)
        });
        if taken {
            return Err(Errno::EADDRINUSE);
        }
        there[index].is_listening = true;
        Ok(())
    }

    /// The sockets that packets to `destination` reach, best fit first.
    pub(crate) fn find(&self, protocol: Protocol, destination: &Address) -> Vec<InodeId> {
        let Some(there) = self.bound.get(&(protocol, destination.port())) else {
            return Vec::new();
        };
        let mut found: Vec<(u32, InodeId)> = there
            .iter()
            .filter_map(|bound| Some((bound.fit(destination)?, bound.socket)))
            .collect();
        found.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
        found.into_iter().map(|(_, socket)| socket).collect()
    }

    /// The socket gives up its port.
    pub(crate) fn release(&mut self, port: u16, socket: InodeId) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            if let Some(there) = self.bound.get_mut(&(protocol, port)) {
                there.retain(|bound| bound.socket != socket);
                if there.is_empty() {
                    self.bound.remove(&(protocol, port));
                }
            }
        }
    }

    /// Takes an abstract name.
    pub(crate) fn bind_name(&mut self, name: Name, socket: InodeId) -> Result<(), Errno> {
        if self.names.contains_key(&name) {
            return Err(Errno::EADDRINUSE);
        }
        self.names.insert(name, socket);
        Ok(())
    }

    /// An abstract name that no socket has (`autobind` of unix(7)).
    pub(crate) fn free_name(&mut self) -> Name {
        (0_u32..)
            .map(|number| Name::from(format!("{number:05x}").into_bytes()))
            .find(|name| !self.names.contains_key(name))
            .expect("there are more names than sockets")
    }

    pub(crate) fn find_name(&self, name: &[u8]) -> Option<InodeId> {
        self.names.get(name).copied()
    }

    pub(crate) fn release_name(&mut self, name: &[u8]) {
        self.names.remove(name);
    }
}
