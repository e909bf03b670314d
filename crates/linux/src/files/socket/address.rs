//! Socket addresses and their C structures.

use super::Family;
use crate::errno::Errno;
use crate::files::inode::Name;

/// The name of a Unix socket (unix(7)).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnixName {
    Unnamed,
    Path(Name),
    Abstract(Name),
}

/// An address of any family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Unix(UnixName),
    Inet { ip: [u8; 4], port: u16 },
    Inet6 { ip: [u8; 16], port: u16 },
}

const MAPPED_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];

impl Address {
    /// The address of a socket that has none.
    pub(crate) fn unspecified(family: Family) -> Self {
        match family {
            Family::Unix => Self::Unix(UnixName::Unnamed),
            Family::Inet => Self::Inet {
                ip: [0; 4],
                port: 0,
            },
            Family::Inet6 => Self::Inet6 {
                ip: [0; 16],
                port: 0,
            },
        }
    }

    /// The address of the loopback interface.
    pub(crate) fn loopback(family: Family, port: u16) -> Self {
        match family {
            Family::Inet6 => {
                let mut ip = [0; 16];
                ip[15] = 1;
                Self::Inet6 { ip, port }
            }
            Family::Inet | Family::Unix => Self::Inet {
                ip: [127, 0, 0, 1],
                port,
            },
        }
    }

    /// Reads a `struct sockaddr`; none for AF_UNSPEC.
    pub(crate) fn decode(bytes: &[u8], family: Family) -> Result<Option<Self>, Errno> {
        let Some(number) = bytes.get(..2) else {
            return Err(Errno::EINVAL);
        };
        let number = u16::from_le_bytes([number[0], number[1]]);
        if number == 0 && family != Family::Inet {
            return Ok(None);
        }
        if number == 0 && bytes.len() >= 16 && bytes[4..8] != [0; 4] {
            return Err(Errno::EAFNOSUPPORT);
        }
        if number == 0 {
            return Ok(None);
        }
        if number != family.number() {
            return Err(match family {
                Family::Unix => Errno::EINVAL,
                Family::Inet | Family::Inet6 => Errno::EAFNOSUPPORT,
            });
        }
        let port = || u16::from_be_bytes([bytes[2], bytes[3]]);
        Ok(Some(match family {
            Family::Unix => Self::Unix(decode_unix(&bytes[2..])?),
            Family::Inet => {
                let ip = bytes.get(4..8).ok_or(Errno::EINVAL)?;
                Self::Inet {
                    ip: ip.try_into().map_err(|_| Errno::EINVAL)?,
                    port: port(),
                }
            }
            Family::Inet6 => {
                let ip = bytes.get(8..24).ok_or(Errno::EINVAL)?;
                Self::Inet6 {
                    ip: ip.try_into().map_err(|_| Errno::EINVAL)?,
                    port: port(),
                }
            }
        }))
    }

    /// The `struct sockaddr`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Unix(name) => {
                bytes.extend_from_slice(&Family::Unix.number().to_le_bytes());
                match name {
                    UnixName::Unnamed => {}
                    UnixName::Path(path) => {
                        bytes.extend_from_slice(path);
                        bytes.push(0);
                    }
                    UnixName::Abstract(name) => {
                        bytes.push(0);
                        bytes.extend_from_slice(name);
                    }
                }
            }
            Self::Inet { ip, port } => {
                bytes.extend_from_slice(&Family::Inet.number().to_le_bytes());
                bytes.extend_from_slice(&port.to_be_bytes());
                bytes.extend_from_slice(ip);
                bytes.resize(16, 0);
            }
            Self::Inet6 { ip, port } => {
                bytes.extend_from_slice(&Family::Inet6.number().to_le_bytes());
                bytes.extend_from_slice(&port.to_be_bytes());
                bytes.extend_from_slice(&[0; 4]);
                bytes.extend_from_slice(ip);
                bytes.extend_from_slice(&[0; 4]);
            }
        }
        bytes
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Unix(_) => 0,
            Self::Inet { port, .. } | Self::Inet6 { port, .. } => *port,
        }
    }

    #[must_use]
    pub(crate) fn with_port(&self, port: u16) -> Self {
        match self {
            Self::Unix(_) => self.clone(),
            Self::Inet { ip, .. } => Self::Inet { ip: *ip, port },
            Self::Inet6 { ip, .. } => Self::Inet6 { ip: *ip, port },
        }
    }

    /// An IPv4-mapped address as the IPv4 address it means.
    #[must_use]
    pub(crate) fn unmapped(&self) -> Self {
        match self {
            Self::Inet6 { ip, port } if ip[..12] == MAPPED_PREFIX => Self::Inet {
                ip: [ip[12], ip[13], ip[14], ip[15]],
                port: *port,
            },
            other => other.clone(),
        }
    }

    /// The address as a socket of `family` sees it.
    #[must_use]
    pub(crate) fn seen_by(&self, family: Family) -> Self {
        match (self, family) {
            (Self::Inet { ip, port }, Family::Inet6) => {
                let mut mapped = [0; 16];
                mapped[..12].copy_from_slice(&MAPPED_PREFIX);
                mapped[12..].copy_from_slice(ip);
                Self::Inet6 {
                    ip: mapped,
                    port: *port,
                }
            }
            _ => self.clone(),
        }
    }

    /// Whether it means every address of this machine.
    pub(crate) fn is_wildcard(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Inet { ip, .. } => *ip == [0; 4],
            Self::Inet6 { ip, .. } => *ip == [0; 16],
        }
    }

    /// Whether it is an address of this machine; a wildcard counts.
    pub(crate) fn is_own(&self) -> bool {
        match self.unmapped() {
            Self::Unix(_) => true,
            Self::Inet { ip, .. } => ip[0] == 127 || ip == [0; 4],
            Self::Inet6 { ip, .. } => ip == [0; 16] || (ip[..15] == [0; 15] && ip[15] == 1),
        }
    }

    /// A destination: a wildcard means the loopback interface.
    #[must_use]
    pub(crate) fn as_destination(&self) -> Self {
        match self {
            Self::Inet { ip, port } if *ip == [0; 4] => Self::loopback(Family::Inet, *port),
            Self::Inet6 { ip, port } if *ip == [0; 16] => Self::loopback(Family::Inet6, *port),
            other => other.clone(),
        }
    }
}

fn decode_unix(path: &[u8]) -> Result<UnixName, Errno> {
    if path.len() > 108 {
        return Err(Errno::EINVAL);
    }
    Ok(match path.first() {
        None => UnixName::Unnamed,
        Some(0) => UnixName::Abstract(Name::from(&path[1..])),
        Some(_) => {
            let end = path
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(path.len());
            UnixName::Path(Name::from(&path[..end]))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        let addresses = [
            (
                Family::Unix,
                Address::Unix(UnixName::Path(Name::from(&b"/tmp/s"[..]))),
            ),
            (
                Family::Unix,
                Address::Unix(UnixName::Abstract(Name::from(&b"a\0b"[..]))),
            ),
            (Family::Unix, Address::Unix(UnixName::Unnamed)),
            (
                Family::Inet,
                Address::Inet {
                    ip: [127, 0, 0, 1],
                    port: 8080,
                },
            ),
            (Family::Inet6, Address::loopback(Family::Inet6, 53)),
        ];
        for (family, address) in addresses {
            let decoded = Address::decode(&address.encode(), family).unwrap();
            assert_eq!(decoded, Some(address));
        }
        assert_eq!(
            Address::decode(
                &[2, 0, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0],
                Family::Inet6
            ),
            Err(Errno::EAFNOSUPPORT)
        );
    }

    #[test]
    fn mapped_addresses_mean_ipv4() {
        let plain = Address::loopback(Family::Inet, 7);
        let mapped = plain.seen_by(Family::Inet6);
        assert_ne!(plain, mapped);
        assert_eq!(mapped.unmapped(), plain);
        assert!(mapped.is_own());
        assert!(
            !Address::Inet {
                ip: [10, 0, 0, 1],
                port: 7
            }
            .is_own()
        );
    }
}
