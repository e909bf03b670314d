//! Socket options (socket(7), tcp(7), ip(7)).

use std::collections::BTreeMap;

use raddle_stdx::width::{low_u32, to_u64, to_usize};

use super::{Address, Family, Kind, Socket, Stage, UnixName};
use crate::errno::Errno;

const SOL_SOCKET: u32 = 1;
const IPPROTO_IP: u32 = 0;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_IPV6: u32 = 41;

const SO_REUSEADDR: u32 = 2;
const SO_TYPE: u32 = 3;
const SO_ERROR: u32 = 4;
const SO_SNDBUF: u32 = 7;
const SO_RCVBUF: u32 = 8;
const SO_LINGER: u32 = 13;
const SO_REUSEPORT: u32 = 15;
const SO_PASSCRED: u32 = 16;
const SO_PEERCRED: u32 = 17;
const SO_RCVTIMEO: u32 = 20;
const SO_SNDTIMEO: u32 = 21;
const SO_ACCEPTCONN: u32 = 30;
const SO_PEERSEC: u32 = 31;
const SO_SNDBUFFORCE: u32 = 32;
const SO_RCVBUFFORCE: u32 = 33;
const SO_PROTOCOL: u32 = 38;
const SO_DOMAIN: u32 = 39;
const SO_PEERGROUPS: u32 = 59;
const TCP_INFO: u32 = 11;
const IPV6_V6ONLY: u32 = 26;

/// Options of SOL_SOCKET that are kept and reported, without effect on a loopback network.
const KEPT: &[u32] = &[
    1, 5, 6, 9, 10, 11, 12, 18, 19, 25, 29, 34, 35, 36, 37, 40, 41, 42, 43, 44, 45, 46, 47, 49, 50,
    60, 63, 65, 67, 69, 70,
];

/// What has been set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) reuse_address: bool,
    pub(crate) reuse_port: bool,
    pub(crate) pass_credentials: bool,
    pub(crate) only_v6: bool,
    /// Nanoseconds.
    pub(crate) receive_timeout: Option<u64>,
    pub(crate) send_timeout: Option<u64>,
    /// SO_LINGER with a timeout of zero: closing resets the connection.
    pub(crate) resets_on_close: bool,
    linger: [u8; 8],
    send_buffer: Option<u32>,
    receive_buffer: Option<u32>,
    /// Everything without effect, by level and name.
    kept: BTreeMap<(u32, u32), Vec<u8>>,
}

fn integer(value: &[u8]) -> Result<u32, Errno> {
    let bytes = value.get(..4).ok_or(Errno::EINVAL)?;
    Ok(u32::from_le_bytes(
        bytes.try_into().map_err(|_| Errno::EINVAL)?,
    ))
}

/// A `struct timeval` as nanoseconds; zero means for ever.
fn timeout(value: &[u8]) -> Result<Option<u64>, Errno> {
    let bytes: [u8; 16] = value
        .get(..16)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(Errno::EINVAL)?;
    let (seconds, micros) = bytes.split_at(8);
    let seconds = i64::from_le_bytes(seconds.try_into().map_err(|_| Errno::EINVAL)?);
    let micros = i64::from_le_bytes(micros.try_into().map_err(|_| Errno::EINVAL)?);
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno::EDOM);
    }
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let nanos = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(micros.unsigned_abs() * 1000);
    Ok((nanos > 0).then_some(nanos))
}

/// `setsockopt`.
pub(crate) fn set_option(
    socket: &mut Socket,
    level: u32,
    name: u32,
    value: &[u8],
) -> Result<(), Errno> {
    let options = &mut socket.options;
    match (level, name) {
        (SOL_SOCKET, SO_REUSEADDR) => options.reuse_address = integer(value)? != 0,
        (SOL_SOCKET, SO_REUSEPORT) => options.reuse_port = integer(value)? != 0,
        (SOL_SOCKET, SO_PASSCRED) => options.pass_credentials = integer(value)? != 0,
        (SOL_SOCKET, SO_RCVTIMEO) => options.receive_timeout = timeout(value)?,
        (SOL_SOCKET, SO_SNDTIMEO) => options.send_timeout = timeout(value)?,
        (SOL_SOCKET, SO_LINGER) => {
            let bytes: [u8; 8] = value
                .get(..8)
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or(Errno::EINVAL)?;
            options.linger = bytes;
            options.resets_on_close = integer(&bytes)? != 0 && integer(&bytes[4..])? == 0;
        }
        (SOL_SOCKET, SO_SNDBUF | SO_SNDBUFFORCE) => {
            let size = integer(value)?.clamp(2304, 212_992) * 2;
            options.send_buffer = Some(size);
        }
        (SOL_SOCKET, SO_RCVBUF | SO_RCVBUFFORCE) => {
            let size = integer(value)?.clamp(1152, 212_992) * 2;
            options.receive_buffer = Some(size);
            socket.inbox.capacity = to_usize(u64::from(size)).max(4096);
        }
        (SOL_SOCKET, SO_TYPE | SO_ERROR | SO_DOMAIN | SO_PROTOCOL | SO_ACCEPTCONN) => {
            return Err(Errno::ENOPROTOOPT);
        }
        (IPPROTO_IPV6, IPV6_V6ONLY) if socket.family == Family::Inet6 => {
            options.only_v6 = integer(value)? != 0;
        }
        (SOL_SOCKET, name) if !KEPT.contains(&name) => return Err(Errno::ENOPROTOOPT),
        (SOL_SOCKET, _) => keep(options, level, name, value),
        (IPPROTO_IP | IPPROTO_IPV6, _) if socket.family != Family::Unix => {
            keep(options, level, name, value);
        }
        (IPPROTO_TCP, _) if socket.family != Family::Unix && socket.kind == Kind::Stream => {
            keep(options, level, name, value);
        }
        _ => return Err(Errno::EOPNOTSUPP),
    }
    Ok(())
}

fn keep(options: &mut Options, level: u32, name: u32, value: &[u8]) {
    options
        .kept
        .insert((level, name), value[..value.len().min(128)].to_vec());
}

/// `getsockopt`: the whole value; the caller cuts it to the room there is.
pub(crate) fn get_option(socket: &mut Socket, level: u32, name: u32) -> Result<Vec<u8>, Errno> {
    let word = |value: u32| Ok(value.to_le_bytes().to_vec());
    if level == SOL_SOCKET
        && let Some(value) = socket_option(socket, name)
    {
        return Ok(value);
    }
    let options = &socket.options;
    if let Some(value) = options.kept.get(&(level, name)) {
        return Ok(value.clone());
    }
    match (level, name) {
        (SOL_SOCKET, SO_PEERSEC) => Err(Errno::ENOPROTOOPT),
        (SOL_SOCKET, SO_PEERGROUPS) => Ok(Vec::new()),
        (SOL_SOCKET, name) if KEPT.contains(&name) => word(0),
        (IPPROTO_IPV6, IPV6_V6ONLY) => word(u32::from(options.only_v6)),
        (IPPROTO_TCP, TCP_INFO) if socket.kind == Kind::Stream => {
            let mut info = vec![0; 104];
            info[0] = match socket.stage {
                Stage::Connected { partner: Some(_) } => 1,
                Stage::Listening { .. } => 10,
                _ => 7,
            };
            Ok(info)
        }
        // TCP_MAXSEG of a loopback interface.
        (IPPROTO_TCP, 2) if socket.kind == Kind::Stream => word(65483),
        (IPPROTO_TCP, _) if socket.family != Family::Unix && socket.kind == Kind::Stream => word(0),
        (IPPROTO_IP | IPPROTO_IPV6, _) if socket.family != Family::Unix => word(0),
        (SOL_SOCKET, _) => Err(Errno::ENOPROTOOPT),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

fn socket_option(socket: &mut Socket, name: u32) -> Option<Vec<u8>> {
    let options = &socket.options;
    let value = match name {
        SO_REUSEADDR => u32::from(options.reuse_address),
        SO_REUSEPORT => u32::from(options.reuse_port),
        SO_PASSCRED => u32::from(options.pass_credentials),
        SO_TYPE => socket.kind.number(),
        SO_DOMAIN => u32::from(socket.family.number()),
        SO_PROTOCOL => match (socket.family, socket.kind) {
            (Family::Unix, _) => 0,
            (_, Kind::Stream) => 6,
            _ => 17,
        },
        SO_ACCEPTCONN => u32::from(matches!(socket.stage, Stage::Listening { .. })),
        SO_ERROR => socket.take_error().map_or(0, |errno| u32::from(errno.0)),
        SO_SNDBUF => options.send_buffer.unwrap_or(212_992),
        SO_RCVBUF => options
            .receive_buffer
            .unwrap_or(low_u32(to_u64(socket.inbox.capacity))),
        SO_LINGER => return Some(options.linger.to_vec()),
        SO_RCVTIMEO => return Some(timeval(options.receive_timeout)),
        SO_SNDTIMEO => return Some(timeval(options.send_timeout)),
        SO_PEERCRED => {
            let peer = socket.peer;
            return Some(
                [peer.pid, peer.uid, peer.gid]
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect(),
            );
        }
        _ => return None,
    };
    Some(value.to_le_bytes().to_vec())
}

fn timeval(nanos: Option<u64>) -> Vec<u8> {
    let nanos = nanos.unwrap_or(0);
    [nanos / 1_000_000_000, nanos % 1_000_000_000 / 1000]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

impl Socket {
    /// Whether another socket can find this one by its address.
    pub(super) fn is_bound(&self) -> bool {
        match &self.local {
            Address::Unix(name) => *name != UnixName::Unnamed,
            address => address.port() != 0,
        }
    }
}
